/* The table of operators as they are written; docs/onnx.md is its text. Attributes have ONNX's
 * names and values in the graph format, so that they are written as a graph's JSON has them. */
#include <float.h>
#include <math.h>

#include "graph/graph_internal.h"
#include "onnx/export.h"
#include "onnx/wire_write.h"

#define WINDOW "kernel_shape strides pads dilations "

typedef cs_status (*more_fn)(cs_onnx_export *model, const cs_node *node, cs_strbuf *out);

typedef struct export_row {
  bool known;
  int64_t since;          /* opset; 0: the least that is written */
  const char *attributes; /* each followed by a space, that stay attributes; NULL: none */
  more_fn more;           /* what else it has: inputs, attributes; NULL: nothing */
} export_row;

/* A symbolic batch, which is the input's too, is 0: copied. */
static cs_status put_shape(cs_onnx_export *model, const cs_node *node, const char *what,
                           const cs_shape *shape, cs_strbuf *out) {
  int64_t extents[CS_MAX_RANK];
  for (int i = 0; i < shape->rank; i++) {
    extents[i] = shape->dims[i] == CS_DIM_N ? 0 : shape->dims[i];
  }
  return cs_onnx_put_list(model, node, what, extents, shape->rank, out);
}

static cs_status more_of_reshape(cs_onnx_export *model, const cs_node *node, cs_strbuf *out) {
  return put_shape(model, node, "shape", &node->attrs.reshape, out);
}

/* A bound that nothing exceeds is absent. */
static cs_status more_of_clip(cs_onnx_export *model, const cs_node *node, cs_strbuf *out) {
  bool low = node->attrs.clip.min > -(double)FLT_MAX, high = node->attrs.clip.max < (double)FLT_MAX;
  if (low) {
    CS_RETURN_IF_ERROR(cs_onnx_put_number(model, node, "min", node->attrs.clip.min, out));
  } else if (high) {
    cs_wire_put_text(out, CS_NODE_INPUT, "");
  }
  return high ? cs_onnx_put_number(model, node, "max", node->attrs.clip.max, out) : CS_OK;
}

static cs_status more_of_pad(cs_onnx_export *model, const cs_node *node, cs_strbuf *out) {
  const cs_pad_attrs *pad = &node->attrs.pad;
  if (pad->mode == CS_PAD_WRAP) model->opset = cs_max_i64(model->opset, 19);
  CS_RETURN_IF_ERROR(cs_onnx_put_list(model, node, "pads", pad->pads, 2 * pad->rank, out));
  if (pad->value == 0.0) return CS_OK;
  return cs_onnx_put_number(model, node, "constant_value", pad->value, out);
}

static cs_status more_of_slice(cs_onnx_export *model, const cs_node *node, cs_strbuf *out) {
  const cs_slice_attrs *slice = &node->attrs.slice;
  CS_RETURN_IF_ERROR(cs_onnx_put_list(model, node, "starts", slice->starts, slice->n_axes, out));
  CS_RETURN_IF_ERROR(cs_onnx_put_list(model, node, "ends", slice->ends, slice->n_axes, out));
  CS_RETURN_IF_ERROR(cs_onnx_put_list(model, node, "axes", slice->axes, slice->n_axes, out));
  return cs_onnx_put_list(model, node, "steps", slice->steps, slice->n_axes, out);
}

static cs_status more_of_reduction(cs_onnx_export *model, const cs_node *node, cs_strbuf *out) {
  return cs_onnx_put_list(model, node, "axes", node->attrs.reduce.axes, node->attrs.reduce.n_axes,
                          out);
}

/* ---- Resize ---- */

/* ONNX has scales or sizes: the sizes have to be what the scales give. */
static cs_status check_scales(const cs_onnx_export *model, const cs_node *node) {
  const cs_resize_attrs *resize = &node->attrs.resize;
  const int64_t *in = model->graph->values[node->inputs[0]].shape.dims;
  for (int i = 0; i < 2; i++) {
    double exact = floor(resize->scales[i] * (double)in[2 + i]);
    double narrowed = floor((double)(float)resize->scales[i] * (double)in[2 + i]);
    double wanted = (double)resize->sizes[i];
    if (exact == wanted && narrowed == wanted) continue;
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: node \"%s\": attribute sizes: found %g beside a scale of %g for an extent "
                    "of %lld, wanted %g, which is what the scale gives in ONNX",
                    model->graph->source, node->name, wanted, resize->scales[i],
                    (long long)in[2 + i], narrowed);
  }
  return CS_OK;
}

/* Opset 13 dropped tf_half_pixel_for_nn, (i + 0.5) / scale: half a pixel further than half_pixel
 * is, so that ⌊x⌋ of the one is ⌊x + 0.5⌋ of the other. */
static cs_status replace_tf_half_pixel(const cs_onnx_export *model, const char *name,
                                       cs_resize_attrs *resize) {
  if (resize->coordinates != CS_RESIZE_TF_HALF_PIXEL_FOR_NN) return CS_OK;
  bool nearest = resize->mode == CS_RESIZE_NEAREST;
  resize->coordinates = CS_RESIZE_HALF_PIXEL;
  if (nearest && resize->nearest == CS_RESIZE_FLOOR) {
    resize->nearest = CS_RESIZE_ROUND_PREFER_CEIL;
  } else if (nearest && resize->nearest == CS_RESIZE_ROUND_PREFER_FLOOR) {
    resize->nearest = CS_RESIZE_CEIL;
  } else {
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: node \"%s\": attribute coordinate_transformation_mode: found "
                    "tf_half_pixel_for_nn, wanted mode nearest and nearest_mode floor or "
                    "round_prefer_floor with it, which alone can be told in opset 18",
                    model->graph->source, name);
  }
  return CS_OK;
}

/* Inputs roi, scales, sizes; attribute axes: H and W. */
static cs_status more_of_resize(cs_onnx_export *model, const cs_node *node, cs_strbuf *out) {
  const cs_resize_attrs *resize = &node->attrs.resize;
  const int64_t planes[2] = {2, 3};
  cs_node told = *node;
  CS_RETURN_IF_ERROR(replace_tf_half_pixel(model, node->name, &told.attrs.resize));
  CS_RETURN_IF_ERROR(
      cs_onnx_put_attributes(model, &told,
                             "mode coordinate_transformation_mode nearest_mode cubic_coeff_a "
                             "exclude_outside antialias extrapolation_value ",
                             out));
  bool symmetric = resize->coordinates == CS_RESIZE_HALF_PIXEL_SYMMETRIC;
  if (symmetric) model->opset = cs_max_i64(model->opset, 19);
  if (resize->coordinates == CS_RESIZE_TF_CROP) {
    CS_RETURN_IF_ERROR(cs_onnx_put_numbers(model, node, "roi", resize->roi, 4, out));
  } else {
    cs_wire_put_text(out, CS_NODE_INPUT, "");
  }
  json_t *axes = cs_attr_save_ints(planes, 2);
  if (!axes) return cs_no_memory("attributes", 0);
  cs_onnx_put_ints(out, "axes", axes);
  json_decref(axes);
  if (resize->scales[0] > 0) {
    CS_RETURN_IF_ERROR(check_scales(model, node));
    return cs_onnx_put_numbers(model, node, "scales", resize->scales, 2, out);
  }
  cs_wire_put_text(out, CS_NODE_INPUT, "");
  return cs_onnx_put_list(model, node, "sizes", resize->sizes, 2, out);
}

/* ---- Other attributes ---- */

/* The weight is [out, in]. */
static cs_status more_of_gemm(cs_onnx_export *model, const cs_node *node, cs_strbuf *out) {
  (void)model;
  (void)node;
  cs_onnx_put_int(out, "transB", 1);
  return CS_OK;
}

/* Whether ceil_mode would give one more window, which starts in the end padding. */
static bool drops_windows(const cs_onnx_export *model, const cs_node *node) {
  const cs_pool_attrs *pool = &node->attrs.pool;
  const int64_t *in = model->graph->values[node->inputs[0]].shape.dims;
  const int64_t *out = model->graph->values[node->output].shape.dims;
  for (int axis = 0; pool->ceil_mode && axis < 2; axis++) {
    int64_t stride = pool->strides[axis],
            span = (pool->kernel[axis] - 1) * pool->dilations[axis] + 1;
    int64_t free_extent = in[2 + axis] + pool->pads[axis] + pool->pads[2 + axis] - span;
    if ((free_extent + stride - 1) / stride + 1 != out[2 + axis]) return true;
  }
  return false;
}

/* Since opset 22 such windows are dropped; before, shape inference counts them. */
static cs_status more_of_max_pool(cs_onnx_export *model, const cs_node *node, cs_strbuf *out) {
  (void)out;
  if (drops_windows(model, node)) model->opset = cs_max_i64(model->opset, 22);
  return CS_OK;
}

/* Dilations came with opset 19. */
static cs_status more_of_average_pool(cs_onnx_export *model, const cs_node *node, cs_strbuf *out) {
  const int64_t *dilations = node->attrs.pool.dilations;
  CS_RETURN_IF_ERROR(more_of_max_pool(model, node, out));
  if (dilations[0] == 1 && dilations[1] == 1) return CS_OK;
  model->opset = cs_max_i64(model->opset, 19);
  return cs_onnx_put_attributes(model, node, "dilations ", out);
}

static const export_row rows[CS_OP_COUNT] = {
    [CS_OP_CONV] = {true, 0, WINDOW "group ", NULL},
    [CS_OP_CONV_TRANSPOSE] = {true, 0, WINDOW "group output_padding ", NULL},
    [CS_OP_GEMM] = {true, 0, NULL, more_of_gemm},
    [CS_OP_BATCH_NORM] = {true, 0, "epsilon ", NULL},
    [CS_OP_RELU] = {true, 0, NULL, NULL},
    [CS_OP_LEAKY_RELU] = {true, 0, "alpha ", NULL},
    [CS_OP_CLIP] = {true, 0, NULL, more_of_clip},
    [CS_OP_SIGMOID] = {true, 0, NULL, NULL},
    [CS_OP_TANH] = {true, 0, NULL, NULL},
    [CS_OP_ADD] = {true, 0, NULL, NULL},
    [CS_OP_MUL] = {true, 0, NULL, NULL},
    [CS_OP_SUB] = {true, 0, NULL, NULL},
    [CS_OP_DIV] = {true, 0, NULL, NULL},
    [CS_OP_MAX] = {true, 0, NULL, NULL},
    [CS_OP_MIN] = {true, 0, NULL, NULL},
    [CS_OP_POW] = {true, 0, NULL, NULL},
    [CS_OP_PRELU] = {true, 0, NULL, NULL},
    [CS_OP_ELU] = {true, 0, "alpha ", NULL},
    [CS_OP_SELU] = {true, 0, "alpha gamma ", NULL},
    [CS_OP_HARD_SIGMOID] = {true, 0, "alpha beta ", NULL},
    [CS_OP_HARD_SWISH] = {true, 0, NULL, NULL},
    [CS_OP_SWISH] = {true, 24, "alpha ", NULL},
    [CS_OP_SQRT] = {true, 0, NULL, NULL},
    [CS_OP_ABS] = {true, 0, NULL, NULL},
    [CS_OP_NEG] = {true, 0, NULL, NULL},
    [CS_OP_EXP] = {true, 0, NULL, NULL},
    [CS_OP_SOFTPLUS] = {true, 0, NULL, NULL},
    [CS_OP_ERF] = {true, 0, NULL, NULL},
    [CS_OP_GELU] = {true, 20, NULL, NULL},
    [CS_OP_MAX_POOL] = {true, 0, WINDOW "ceil_mode ", more_of_max_pool},
    [CS_OP_AVERAGE_POOL] = {true, 0, "kernel_shape strides pads ceil_mode count_include_pad ",
                            more_of_average_pool},
    [CS_OP_GLOBAL_AVERAGE_POOL] = {true, 0, NULL, NULL},
    [CS_OP_GLOBAL_MAX_POOL] = {true, 0, NULL, NULL},
    [CS_OP_REDUCE_MEAN] = {true, 0, "keepdims ", more_of_reduction},
    [CS_OP_REDUCE_SUM] = {true, 0, "keepdims ", more_of_reduction},
    [CS_OP_REDUCE_MAX] = {true, 0, "keepdims ", more_of_reduction},
    [CS_OP_REDUCE_MIN] = {true, 0, "keepdims ", more_of_reduction},
    [CS_OP_INSTANCE_NORM] = {true, 0, "epsilon ", NULL},
    [CS_OP_LRN] = {true, 0, "size alpha beta bias ", NULL},
    [CS_OP_SOFTMAX] = {true, 0, "axis ", NULL},
    [CS_OP_CONCAT] = {true, 0, "axis ", NULL},
    [CS_OP_FLATTEN] = {true, 0, "axis ", NULL},
    [CS_OP_PAD] = {true, 0, "mode ", more_of_pad},
    [CS_OP_RESHAPE] = {true, 0, NULL, more_of_reshape},
    [CS_OP_TRANSPOSE] = {true, 0, "perm ", NULL},
    [CS_OP_SLICE] = {true, 0, NULL, more_of_slice},
    [CS_OP_RESIZE] = {true, 0, NULL, more_of_resize},
    [CS_OP_IDENTITY] = {true, 0, NULL, NULL},
    [CS_OP_DROPOUT] = {true, 0, NULL, NULL},
};

bool cs_onnx_exports(cs_op op) {
  return rows[op].known;
}

/* ---- Nodes ---- */

static void put_params(const cs_onnx_export *model, int param, int n, cs_strbuf *out) {
  for (int i = 0; i < n; i++) {
    cs_wire_put_text(out, CS_NODE_INPUT, model->initializers[param + i]);
  }
}

static void put_name(cs_strbuf *out, const char *name, cs_op op) {
  cs_wire_put_text(out, CS_NODE_OUTPUT, name);
  cs_wire_put_text(out, CS_NODE_NAME, name);
  cs_wire_put_text(out, CS_NODE_OP, cs_op_name(op));
}

/* A Reshape beside a Transpose whose tensors are read and written in other shapes. */
static cs_status put_reshape(cs_onnx_export *model, const cs_node *node, const char *what,
                             const cs_shape *shape, const char *input, const char *output) {
  cs_strbuf out = {0};
  cs_wire_put_text(&out, CS_NODE_INPUT, input);
  cs_status st = put_shape(model, node, what, shape, &out);
  put_name(&out, output, CS_OP_RESHAPE);
  cs_wire_put_message(&model->nodes, CS_GRAPH_NODE, &out);
  return st;
}

static cs_status put_transpose(cs_onnx_export *model, const cs_node *node) {
  const cs_transpose_attrs *transpose = &node->attrs.transpose;
  const char *from = model->graph->values[node->inputs[0]].name, *split = from;
  const char *moved = node->name;
  cs_strbuf out = {0};
  if (transpose->input_shape.rank) {
    CS_RETURN_IF_ERROR(cs_onnx_export_name(model, node->name, "split", &split));
    CS_RETURN_IF_ERROR(
        put_reshape(model, node, "input_shape", &transpose->input_shape, from, split));
  }
  if (transpose->output_shape.rank) {
    CS_RETURN_IF_ERROR(cs_onnx_export_name(model, node->name, "moved", &moved));
  }
  cs_wire_put_text(&out, CS_NODE_INPUT, split);
  put_name(&out, moved, CS_OP_TRANSPOSE);
  cs_status st = cs_onnx_put_attributes(model, node, rows[node->op].attributes, &out);
  cs_wire_put_message(&model->nodes, CS_GRAPH_NODE, &out);
  if (st != CS_OK || !transpose->output_shape.rank) return st;
  return put_reshape(model, node, "output_shape", &transpose->output_shape, moved, node->name);
}

static cs_status put_node(cs_onnx_export *model, const cs_node *node, int param, int n_params,
                          cs_strbuf *out) {
  const export_row *row = &rows[node->op];
  bool params_first = cs_op_is_binary(node->op) && node->attrs.binary.operand_first;
  if (params_first) put_params(model, param, n_params, out);
  for (int i = 0; i < node->n_inputs; i++) {
    cs_wire_put_text(out, CS_NODE_INPUT, model->graph->values[node->inputs[i]].name);
  }
  if (!params_first) put_params(model, param, n_params, out);
  put_name(out, node->name, node->op);
  if (row->attributes) {
    CS_RETURN_IF_ERROR(cs_onnx_put_attributes(model, node, row->attributes, out));
  }
  return row->more ? row->more(model, node, out) : CS_OK;
}

cs_status cs_onnx_export_node(cs_onnx_export *model, const cs_node *node, int param, int n_params) {
  cs_strbuf out = {0};
  if (!rows[node->op].known) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: node \"%s\": found operator %s, wanted one that is written as ONNX",
                    model->graph->source, node->name, cs_op_name(node->op));
  }
  model->opset = cs_max_i64(model->opset, rows[node->op].since);
  if (node->op == CS_OP_TRANSPOSE) return put_transpose(model, node);
  cs_status st = put_node(model, node, param, n_params, &out);
  cs_wire_put_message(&model->nodes, CS_GRAPH_NODE, &out);
  return st;
}
