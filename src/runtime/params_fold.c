#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/params_store.h"

/* Opens `<node>.<what>` and checks that it has `want` elements. */
static cs_status fetch(const cs_params *params, const char *node, const char *what, int64_t want,
                       cs_params_array *out) {
  cs_strbuf buffer = {0};
  char *name = NULL;
  cs_strbuf_printf(&buffer, "%s.%s", node, what);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&buffer, &name));
  cs_status st = cs_params_open(params, name, out);
  if (st == CS_OK && out->count != want) {
    st = cs_error(CS_CODE_INTERNAL, "parameter \"%s\": %" PRId64 " elements, wanted %" PRId64, name,
                  out->count, want);
  }
  free(name);
  return st;
}

/* The affine map of a BatchNormalization: scale[channels], then shift[channels]. */
static cs_status affine_of(const cs_params *params, const char *node, int64_t channels,
                           double epsilon, double **out) {
  static const char *const what[] = {"weight", "bias", "running_mean", "running_var"};
  enum { WEIGHT, BIAS, MEAN, VARIANCE, N };
  cs_status st = CS_OK;
  cs_params_array of[N] = {{0}};
  double *affine = NULL;
  for (int i = 0; i < N; i++) CS_TRY(st, fetch(params, node, what[i], channels, &of[i]), done);
  affine = cs_calloc((size_t)channels * 2, sizeof *affine);
  if (!affine) {
    st = cs_no_memory(node, (size_t)channels * 2 * sizeof *affine);
    goto done;
  }
  for (int64_t c = 0; c < channels; c++) {
    affine[c] = of[WEIGHT].data[c] / sqrt(of[VARIANCE].data[c] + epsilon);
    affine[channels + c] = of[BIAS].data[c] - of[MEAN].data[c] * affine[c];
  }
  *out = affine;
done:
  for (int i = 0; i < N; i++) cs_params_close(params, &of[i]);
  return st;
}

/* A weight array as outputs × inputs × taps, whatever order it is stored in. */
typedef struct weight_view {
  cs_op op;
  int64_t outputs, inputs; /* channels of the whole operation */
  int64_t group, taps;
  int64_t elements;
  bool has_bias;
} weight_view;

static weight_view view_of(const cs_graph *graph, const cs_node *node) {
  int64_t in = graph->values[node->inputs[0]].shape.dims[1];
  weight_view view = {.op = node->op, .inputs = in, .group = 1, .taps = 1};
  if (node->op == CS_OP_GEMM) {
    view.outputs = node->attrs.gemm.out_features;
    view.has_bias = node->attrs.gemm.bias;
  } else {
    const cs_conv_attrs *conv = &node->attrs.conv;
    view.outputs = conv->out_channels;
    view.group = conv->group;
    view.taps = conv->kernel[0] * conv->kernel[1];
    view.has_bias = conv->bias;
  }
  view.elements = view.outputs * (view.inputs / view.group) * view.taps;
  return view;
}

/* scale·op(scale'·x + shift') + shift as one operation on x; either map may be NULL. Conv and Gemm
 * store [K, C/g, taps], ConvTranspose stores [C, K/g, taps]. */
static void fold(const weight_view *view, const double *before, const double *after,
                 const float *raw, float *weight, double *bias) {
  bool transposed = view->op == CS_OP_CONV_TRANSPOSE;
  int64_t outers = transposed ? view->inputs : view->outputs;
  int64_t inners = (transposed ? view->outputs : view->inputs) / view->group;
  for (int64_t outer = 0, i = 0; outer < outers; outer++) {
    for (int64_t inner = 0; inner < inners; inner++) {
      int64_t whole_inner = outer / (outers / view->group) * inners + inner;
      int64_t output = transposed ? whole_inner : outer, input = transposed ? outer : whole_inner;
      for (int64_t tap = 0; tap < view->taps; tap++, i++) {
        double value = raw[i];
        if (before) {
          bias[output] += value * before[view->inputs + input];
          value *= before[input];
        }
        if (after) value *= after[output];
        weight[i] = (float)value;
      }
    }
  }
  for (int64_t k = 0; after && k < view->outputs; k++) {
    bias[k] = bias[k] * after[k] + after[view->outputs + k];
  }
}

static cs_status narrow(const double *from, int64_t count, const char *node, float **out) {
  float *data = cs_calloc((size_t)count, sizeof *data);
  if (!data) return cs_no_memory(node, (size_t)count * sizeof *data);
  for (int64_t i = 0; i < count; i++) data[i] = (float)from[i];
  *out = data;
  return CS_OK;
}

static cs_status check_fold(const cs_node *node, const cs_bn_fold *fold, int64_t channels,
                            const char *side) {
  if (fold->channels != channels) {
    return cs_error(CS_CODE_INTERNAL,
                    "node \"%s\": \"%s\" folded %s it has %" PRId64 " channels, wanted %" PRId64,
                    node->name, fold->node, side, fold->channels, channels);
  }
  if (fold == &node->bn_before && node->op == CS_OP_CONV_TRANSPOSE) {
    return cs_error(CS_CODE_INTERNAL, "node \"%s\": \"%s\" folded before a ConvTranspose",
                    node->name, fold->node);
  }
  return CS_OK;
}

static cs_status affine_of_fold(const cs_params *params, const cs_node *node,
                                const cs_bn_fold *fold, int64_t channels, const char *side,
                                double **out) {
  *out = NULL;
  if (!fold->node) return CS_OK;
  CS_RETURN_IF_ERROR(check_fold(node, fold, channels, side));
  return affine_of(params, fold->node, channels, fold->epsilon, out);
}

static cs_status weighted_node(const cs_params *params, const cs_graph *graph, const cs_node *node,
                               cs_node_params *out) {
  cs_status st = CS_OK;
  weight_view view = view_of(graph, node);
  cs_params_array bias = {0};
  double *before = NULL, *after = NULL, *prologue = NULL, *b = NULL;
  CS_TRY(st, fetch(params, node->name, "weight", view.elements, &out->raw), done);
  if (view.has_bias) CS_TRY(st, fetch(params, node->name, "bias", view.outputs, &bias), done);
  CS_TRY(st, affine_of_fold(params, node, &node->bn_before, view.inputs, "before", &before), done);
  CS_TRY(st, affine_of_fold(params, node, &node->bn_after, view.outputs, "behind", &after), done);
  CS_TRY(st,
         affine_of_fold(params, node, &node->prologue, view.inputs, "as the prologue", &prologue),
         done);
  b = cs_calloc((size_t)(view.outputs + 2 * view.inputs), sizeof *b);
  if (!b) {
    st = cs_no_memory(node->name, (size_t)(view.outputs + 2 * view.inputs) * sizeof *b);
    goto done;
  }
  for (int64_t k = 0; bias.data && k < view.outputs; k++) b[k] = bias.data[k];
  out->weight = out->raw.data;
  out->n_weight = view.elements;
  if (before || after) {
    out->own_weight = cs_calloc((size_t)view.elements, sizeof *out->own_weight);
    if (!out->own_weight) {
      st = cs_no_memory(node->name, (size_t)view.elements * sizeof *out->own_weight);
      goto done;
    }
    fold(&view, before, after, out->raw.data, out->own_weight, b);
    out->weight = out->own_weight;
    cs_params_close(params, &out->raw);
  }
  if (bias.data || before || after) out->n_bias = view.outputs;
  if (prologue) {
    memcpy(b + out->n_bias, prologue, (size_t)(2 * view.inputs) * sizeof *b);
    out->n_bias += 2 * view.inputs;
  }
  if (out->n_bias > 0) CS_TRY(st, narrow(b, out->n_bias, node->name, &out->own_bias), done);
done:
  free(b);
  free(prologue);
  free(after);
  free(before);
  cs_params_close(params, &bias);
  return st;
}

static cs_status batch_norm_node(const cs_params *params, const cs_graph *graph,
                                 const cs_node *node, cs_node_params *out) {
  cs_status st = CS_OK;
  double *affine = NULL;
  int64_t channels = graph->values[node->inputs[0]].shape.dims[1];
  if (node->bn_before.node || node->bn_after.node) {
    return cs_error(CS_CODE_INTERNAL, "node \"%s\": a BatchNormalization folded into another",
                    node->name);
  }
  CS_TRY(st, affine_of(params, node->name, channels, node->attrs.batch_norm.epsilon, &affine),
         done);
  CS_TRY(st, narrow(affine, channels, node->name, &out->own_weight), done);
  out->weight = out->own_weight;
  out->n_weight = channels;
  CS_TRY(st, narrow(affine + channels, channels, node->name, &out->own_bias), done);
  out->n_bias = channels;
done:
  free(affine);
  return st;
}

/* Scale and shift as they are: the statistics are the input's. */
static cs_status instance_norm_node(const cs_params *params, const cs_graph *graph,
                                    const cs_node *node, cs_node_params *out) {
  int64_t channels = graph->values[node->inputs[0]].shape.dims[1];
  cs_params_array bias = {0};
  cs_status st = CS_OK;
  CS_TRY(st, fetch(params, node->name, "weight", channels, &out->raw), done);
  CS_TRY(st, fetch(params, node->name, "bias", channels, &bias), done);
  out->own_bias = cs_calloc((size_t)channels, sizeof *out->own_bias);
  if (!out->own_bias) {
    st = cs_no_memory(node->name, (size_t)channels * sizeof *out->own_bias);
    goto done;
  }
  memcpy(out->own_bias, bias.data, (size_t)channels * sizeof *out->own_bias);
  out->weight = out->raw.data;
  out->n_weight = out->n_bias = channels;
done:
  cs_params_close(params, &bias);
  return st;
}

/* The constant of an Add … Pow or MatMul, where there is one. */
static cs_status operand_node(const cs_params *params, const cs_node *node, cs_node_params *out) {
  int64_t elements;
  if (!node->attrs.binary.operand.rank) return CS_OK;
  CS_RETURN_IF_ERROR(cs_shape_elements(&node->attrs.binary.operand, &elements));
  CS_RETURN_IF_ERROR(fetch(params, node->name, "weight", elements, &out->raw));
  out->weight = out->raw.data;
  out->n_weight = elements;
  return CS_OK;
}

cs_status cs_node_params_open(const cs_params *params, const cs_graph *graph, int node,
                              cs_node_params *out) {
  cs_status st = CS_OK;
  const cs_node *it = &graph->nodes[node];
  *out = (cs_node_params){0};
  switch (it->op) {
    case CS_OP_CONV:
    case CS_OP_CONV_TRANSPOSE:
    case CS_OP_GEMM:
      st = weighted_node(params, graph, it, out);
      break;
    case CS_OP_INSTANCE_NORM:
      st = instance_norm_node(params, graph, it, out);
      break;
    case CS_OP_BATCH_NORM:
      st = batch_norm_node(params, graph, it, out);
      break;
    default:
      if (cs_op_takes_operand(it->op)) st = operand_node(params, it, out);
      break;
  }
  out->bias = out->own_bias;
  if (st != CS_OK) cs_node_params_close(params, out);
  return st;
}

void cs_node_params_close(const cs_params *params, cs_node_params *opened) {
  cs_params_close(params, &opened->raw);
  free(opened->own_weight);
  free(opened->own_bias);
  *opened = (cs_node_params){0};
}
