#include "backend/cuda/cudnn_graph.h"

#include <stdlib.h>

#define MAX_DESCRIPTORS 24
#define MAX_OPERATIONS 4
#define FIRST_VIRTUAL_UID 100

struct cs_cudnn_graph {
  cudnnBackendDescriptor_t graph;
  cudnnBackendDescriptor_t parts[MAX_DESCRIPTORS]; /* everything below the graph */
  int n_parts;
  cudnnBackendDescriptor_t operations[MAX_OPERATIONS];
  int n_operations;
  const cs_cudnn_problem *problem; /* while building */
  int64_t next_virtual;
};

bool cs_cudnn_graph_has_bias(const cs_cudnn_problem *problem) {
  return cs_cudnn_problem_has_epilogue(problem);
}

/* Finishes a part of the graph, which then owns it. */
static cs_status add_part(cs_cudnn_graph *g, cs_descriptor *d, const char *what,
                          cudnnBackendDescriptor_t *out) {
  CS_RETURN_IF_ERROR(cs_descriptor_finish(d, what, out));
  g->parts[g->n_parts++] = *out;
  return CS_OK;
}

static cs_status add_tensor(cs_cudnn_graph *g, const cs_cudnn_tensor *t, int64_t uid,
                            cudnnDataType_t type, bool is_virtual, cudnnBackendDescriptor_t *out) {
  cs_descriptor d = cs_descriptor_begin(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  cs_descriptor_set(&d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  cs_descriptor_set(&d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, t->dims);
  cs_descriptor_set(&d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, t->strides);
  cs_descriptor_int(&d, CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
  cs_descriptor_int(&d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, t->alignment);
  cs_descriptor_set(&d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  return add_part(g, &d, "a tensor", out);
}

/* Where an operation writes: the output if it is the last one, else a new virtual f32 tensor. */
static cs_status add_result(cs_cudnn_graph *g, bool last, cudnnBackendDescriptor_t *out) {
  const cs_cudnn_problem *p = g->problem;
  if (last) return add_tensor(g, &p->output, CS_CUDNN_UID_OUTPUT, p->data_type, false, out);
  cs_cudnn_tensor t = p->output;
  t.alignment = 16; /* never in memory; the output's may be too little for f32 */
  return add_tensor(g, &t, FIRST_VIRTUAL_UID + g->next_virtual++, CUDNN_DATA_FLOAT, true, out);
}

static cs_status add_convolution(cs_cudnn_graph *g, bool last, cudnnBackendDescriptor_t *result) {
  const cs_cudnn_problem *p = g->problem;
  cudnnBackendDescriptor_t input = NULL, filter = NULL, conv = NULL, operation = NULL;
  CS_RETURN_IF_ERROR(add_tensor(g, &p->input, CS_CUDNN_UID_INPUT, p->data_type, false, &input));
  CS_RETURN_IF_ERROR(add_tensor(g, &p->filter, CS_CUDNN_UID_FILTER, p->data_type, false, &filter));
  CS_RETURN_IF_ERROR(add_result(g, last, result));

  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  cs_descriptor d = cs_descriptor_begin(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  cs_descriptor_set(&d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  cs_descriptor_set(&d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  cs_descriptor_int(&d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
  cs_descriptor_set(&d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, p->pre_pads);
  cs_descriptor_set(&d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, p->post_pads);
  cs_descriptor_set(&d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, p->strides);
  cs_descriptor_set(&d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, p->dilations);
  CS_RETURN_IF_ERROR(add_part(g, &d, "a convolution", &conv));

  const float one = 1.0f, zero = 0.0f;
  if (p->backward_data) {
    d = cs_descriptor_begin(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
    cs_descriptor_child(&d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, conv);
    cs_descriptor_child(&d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, filter);
    cs_descriptor_child(&d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, input);
    cs_descriptor_child(&d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, *result);
    cs_descriptor_set(&d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, 1,
                      &one);
    cs_descriptor_set(&d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, 1,
                      &zero);
  } else {
    d = cs_descriptor_begin(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    cs_descriptor_child(&d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, conv);
    cs_descriptor_child(&d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, filter);
    cs_descriptor_child(&d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, input);
    cs_descriptor_child(&d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, *result);
    cs_descriptor_set(&d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1,
                      &one);
    cs_descriptor_set(&d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1,
                      &zero);
  }
  CS_RETURN_IF_ERROR(add_part(g, &d, "a convolution operation", &operation));
  g->operations[g->n_operations++] = operation;
  return CS_OK;
}

/* y = mode(x[, b]); `b` NULL for unary modes. */
static cs_status add_pointwise(cs_cudnn_graph *g, cudnnBackendDescriptor_t pointwise,
                               cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                               cudnnBackendDescriptor_t y) {
  cudnnBackendDescriptor_t operation = NULL;
  cs_descriptor d = cs_descriptor_begin(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  cs_descriptor_child(&d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise);
  cs_descriptor_child(&d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b) cs_descriptor_child(&d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  cs_descriptor_child(&d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  CS_RETURN_IF_ERROR(add_part(g, &d, "a pointwise operation", &operation));
  g->operations[g->n_operations++] = operation;
  return CS_OK;
}

static cs_descriptor begin_pointwise(cudnnPointwiseMode_t mode) {
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  cs_descriptor d = cs_descriptor_begin(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  cs_descriptor_set(&d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  cs_descriptor_set(&d, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  return d;
}

static cs_status add_sum(cs_cudnn_graph *g, cudnnBackendDescriptor_t addend, bool last,
                         cudnnBackendDescriptor_t *value) {
  cudnnBackendDescriptor_t pointwise = NULL, result = NULL;
  cs_descriptor d = begin_pointwise(CUDNN_POINTWISE_ADD);
  CS_RETURN_IF_ERROR(add_part(g, &d, "a sum", &pointwise));
  CS_RETURN_IF_ERROR(add_result(g, last, &result));
  CS_RETURN_IF_ERROR(add_pointwise(g, pointwise, *value, addend, result));
  *value = result;
  return CS_OK;
}

static bool has_mode(cs_act_kind kind) {
  return kind == CS_ACT_NONE || kind == CS_ACT_RELU || kind == CS_ACT_LEAKY_RELU ||
         kind == CS_ACT_CLIP || kind == CS_ACT_SIGMOID || kind == CS_ACT_TANH;
}

static cs_status add_activation(cs_cudnn_graph *g, cudnnBackendDescriptor_t value) {
  const cs_activation *act = &g->problem->activation;
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_RELU_FWD;
  if (!has_mode(act->kind)) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "found %s behind a convolution of cuDNN's, wanted one it has",
                    cs_act_name(act->kind));
  }
  if (act->kind == CS_ACT_SIGMOID) mode = CUDNN_POINTWISE_SIGMOID_FWD;
  if (act->kind == CS_ACT_TANH) mode = CUDNN_POINTWISE_TANH_FWD;
  cudnnBackendDescriptor_t pointwise = NULL, result = NULL;
  cs_descriptor d = begin_pointwise(mode);
  if (act->kind == CS_ACT_LEAKY_RELU) {
    cs_descriptor_set(&d, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_TYPE_DOUBLE, 1,
                      &act->alpha);
  } else if (act->kind == CS_ACT_CLIP) {
    cs_descriptor_set(&d, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, CUDNN_TYPE_DOUBLE, 1, &act->alpha);
    cs_descriptor_set(&d, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, CUDNN_TYPE_DOUBLE, 1, &act->beta);
  }
  CS_RETURN_IF_ERROR(add_part(g, &d, "an activation", &pointwise));
  CS_RETURN_IF_ERROR(add_result(g, true, &result));
  return add_pointwise(g, pointwise, value, NULL, result);
}

static cs_status add_bias(cs_cudnn_graph *g, bool last, cudnnBackendDescriptor_t *value) {
  int64_t k = g->problem->output.dims[1];
  cs_cudnn_tensor shape = {{1, k, 1, 1}, {k, 1, k, k}, 256};
  if (!g->problem->filter_krsc) shape.strides[2] = shape.strides[3] = 1;
  cudnnBackendDescriptor_t bias = NULL;
  CS_RETURN_IF_ERROR(add_tensor(g, &shape, CS_CUDNN_UID_BIAS, g->problem->data_type, false, &bias));
  return add_sum(g, bias, last, value);
}

static cs_status add_operations(cs_cudnn_graph *g) {
  const cs_cudnn_problem *p = g->problem;
  bool activates = p->activation.kind != CS_ACT_NONE, bias = cs_cudnn_graph_has_bias(p);
  cudnnBackendDescriptor_t value = NULL;
  CS_RETURN_IF_ERROR(add_convolution(g, !p->has_residual && !bias && !activates, &value));
  if (p->has_residual) {
    cudnnBackendDescriptor_t residual = NULL;
    CS_RETURN_IF_ERROR(
        add_tensor(g, &p->residual, CS_CUDNN_UID_RESIDUAL, p->data_type, false, &residual));
    CS_RETURN_IF_ERROR(add_sum(g, residual, !bias && !activates, &value));
  }
  if (bias) CS_RETURN_IF_ERROR(add_bias(g, !activates, &value));
  return activates ? add_activation(g, value) : CS_OK;
}

cs_status cs_cudnn_graph_create(const cs_cudnn_target *target, const cs_cudnn_problem *problem,
                                cs_cudnn_graph **out) {
  *out = NULL;
  cs_status st = CS_OK;
  cs_cudnn_graph *g = cs_calloc(1, sizeof(*g));
  if (!g) return cs_no_memory("a cuDNN operation graph", sizeof(*g));
  g->problem = problem;
  CS_TRY(st, add_operations(g), done);
  cs_descriptor d = cs_descriptor_begin(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  cs_descriptor_set(&d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                    g->n_operations, g->operations);
  if (target->handle) {
    cs_descriptor_set(&d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target->handle);
  }
  CS_TRY(st, cs_descriptor_finish(&d, "an operation graph", &g->graph), done);
  g->problem = NULL;
  *out = g;
  g = NULL;
done:
  cs_cudnn_graph_destroy(g);
  return st;
}

void cs_cudnn_graph_destroy(cs_cudnn_graph *graph) {
  if (!graph) return;
  cs_descriptor_destroy(&graph->graph);
  for (int i = graph->n_parts - 1; i >= 0; i--) cs_descriptor_destroy(&graph->parts[i]);
  free(graph);
}

cudnnBackendDescriptor_t cs_cudnn_graph_descriptor(const cs_cudnn_graph *graph) {
  return graph->graph;
}
