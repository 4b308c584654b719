#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/params_store.h"

/* Finds `<node>.<what>` and checks that it has `want` elements. */
static cs_status fetch(const cs_params *params, const char *node, const char *what, int64_t want,
                       const float **out) {
  cs_strbuf buffer = {0};
  char *name = NULL;
  cs_strbuf_printf(&buffer, "%s.%s", node, what);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&buffer, &name));
  cs_status st = CS_OK;
  int64_t count = 0;
  *out = cs_params_get(params, name, &count);
  if (!*out) {
    st = cs_error(CS_CODE_NOT_FOUND, "no parameter \"%s\"", name);
  } else if (count != want) {
    st = cs_error(CS_CODE_INTERNAL, "parameter \"%s\": %" PRId64 " elements, wanted %" PRId64, name,
                  count, want);
  }
  free(name);
  return st;
}

/* The affine map of a BatchNormalization: scale[channels], then shift[channels]. */
static cs_status affine_of(const cs_params *params, const char *node, int64_t channels,
                           double epsilon, double **out) {
  const float *weight, *bias, *mean, *variance;
  CS_RETURN_IF_ERROR(fetch(params, node, "weight", channels, &weight));
  CS_RETURN_IF_ERROR(fetch(params, node, "bias", channels, &bias));
  CS_RETURN_IF_ERROR(fetch(params, node, "running_mean", channels, &mean));
  CS_RETURN_IF_ERROR(fetch(params, node, "running_var", channels, &variance));
  double *affine = cs_calloc((size_t)channels * 2, sizeof *affine);
  if (!affine) return cs_no_memory(node, (size_t)channels * 2 * sizeof *affine);
  for (int64_t c = 0; c < channels; c++) {
    affine[c] = weight[c] / sqrt(variance[c] + epsilon);
    affine[channels + c] = bias[c] - mean[c] * affine[c];
  }
  *out = affine;
  return CS_OK;
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

/* Output and input channel of weight element `i`: Conv and Gemm store [K, C/g, taps],
 * ConvTranspose stores [C, K/g, taps]. */
static void channels_of(const weight_view *view, int64_t i, int64_t *output, int64_t *input) {
  bool transposed = view->op == CS_OP_CONV_TRANSPOSE;
  int64_t outer_count = transposed ? view->inputs : view->outputs;
  int64_t inner_count = (transposed ? view->outputs : view->inputs) / view->group;
  int64_t outer = i / view->taps / inner_count, inner = i / view->taps % inner_count;
  int64_t whole_inner = outer / (outer_count / view->group) * inner_count + inner;
  *output = transposed ? whole_inner : outer;
  *input = transposed ? outer : whole_inner;
}

/* op(scale·x + shift) as an operation on x. */
static void fold_before(const weight_view *view, const double *affine, double *weight,
                        double *bias) {
  for (int64_t i = 0; i < view->elements; i++) {
    int64_t output, input;
    channels_of(view, i, &output, &input);
    bias[output] += weight[i] * affine[view->inputs + input];
    weight[i] *= affine[input];
  }
}

/* scale·op(x) + shift as one operation. */
static void fold_after(const weight_view *view, const double *affine, double *weight,
                       double *bias) {
  for (int64_t i = 0; i < view->elements; i++) {
    int64_t output, input;
    channels_of(view, i, &output, &input);
    weight[i] *= affine[output];
  }
  for (int64_t k = 0; k < view->outputs; k++) {
    bias[k] = bias[k] * affine[k] + affine[view->outputs + k];
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
                               float **weight, int64_t *n_weight, float **bias, int64_t *n_bias) {
  cs_status st = CS_OK;
  weight_view view = view_of(graph, node);
  const float *raw_weight, *raw_bias = NULL;
  double *before = NULL, *after = NULL, *prologue = NULL, *w = NULL, *b = NULL;
  CS_TRY(st, fetch(params, node->name, "weight", view.elements, &raw_weight), done);
  if (view.has_bias) {
    CS_TRY(st, fetch(params, node->name, "bias", view.outputs, &raw_bias), done);
  }
  CS_TRY(st, affine_of_fold(params, node, &node->bn_before, view.inputs, "before", &before), done);
  CS_TRY(st, affine_of_fold(params, node, &node->bn_after, view.outputs, "behind", &after), done);
  CS_TRY(st,
         affine_of_fold(params, node, &node->prologue, view.inputs, "as the prologue", &prologue),
         done);
  w = cs_calloc((size_t)view.elements, sizeof *w);
  b = cs_calloc((size_t)(view.outputs + 2 * view.inputs), sizeof *b);
  if (!w || !b) {
    st = cs_no_memory(node->name, (size_t)view.elements * sizeof *w);
    goto done;
  }
  for (int64_t i = 0; i < view.elements; i++) w[i] = raw_weight[i];
  for (int64_t k = 0; raw_bias && k < view.outputs; k++) b[k] = raw_bias[k];
  if (before) fold_before(&view, before, w, b);
  if (after) fold_after(&view, after, w, b);
  CS_TRY(st, narrow(w, view.elements, node->name, weight), done);
  *n_weight = view.elements;
  if (raw_bias || before || after) *n_bias = view.outputs;
  if (prologue) {
    memcpy(b + *n_bias, prologue, (size_t)(2 * view.inputs) * sizeof *b);
    *n_bias += 2 * view.inputs;
  }
  if (*n_bias > 0) CS_TRY(st, narrow(b, *n_bias, node->name, bias), done);
done:
  free(b);
  free(w);
  free(prologue);
  free(after);
  free(before);
  return st;
}

static cs_status batch_norm_node(const cs_params *params, const cs_graph *graph,
                                 const cs_node *node, float **weight, int64_t *n_weight,
                                 float **bias, int64_t *n_bias) {
  cs_status st = CS_OK;
  double *affine = NULL;
  int64_t channels = graph->values[node->inputs[0]].shape.dims[1];
  if (node->bn_before.node || node->bn_after.node) {
    return cs_error(CS_CODE_INTERNAL, "node \"%s\": a BatchNormalization folded into another",
                    node->name);
  }
  CS_TRY(st, affine_of(params, node->name, channels, node->attrs.batch_norm.epsilon, &affine),
         done);
  CS_TRY(st, narrow(affine, channels, node->name, weight), done);
  *n_weight = channels;
  CS_TRY(st, narrow(affine + channels, channels, node->name, bias), done);
  *n_bias = channels;
done:
  free(affine);
  return st;
}

cs_status cs_params_of_node(const cs_params *params, const cs_graph *graph, int node,
                            float **weight, int64_t *n_weight, float **bias, int64_t *n_bias) {
  cs_status st = CS_OK;
  const cs_node *it = &graph->nodes[node];
  *weight = *bias = NULL;
  *n_weight = *n_bias = 0;
  switch (it->op) {
    case CS_OP_CONV:
    case CS_OP_CONV_TRANSPOSE:
    case CS_OP_GEMM:
      st = weighted_node(params, graph, it, weight, n_weight, bias, n_bias);
      break;
    case CS_OP_BATCH_NORM:
      st = batch_norm_node(params, graph, it, weight, n_weight, bias, n_bias);
      break;
    default:
      break;
  }
  if (st != CS_OK) {
    free(*weight);
    free(*bias);
    *weight = *bias = NULL;
    *n_weight = *n_bias = 0;
  }
  return st;
}
