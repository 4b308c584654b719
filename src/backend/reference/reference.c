#include "backend/reference/reference.h"

#include <math.h>
#include <stdlib.h>

#include "backend/reference/internal.h"

/* A plane is what one worker computes at a time: an image and channel of rank-4 outputs, a row of
 * the others, all for Softmax's axis, whose rows may run through planes. */
typedef struct ref_loop {
  ref_args args;
  void (*plane)(const ref_args *args, int64_t plane);
  int64_t plane_elements;
} ref_loop;

static int64_t elements_from(const cs_shape *shape, int axis) {
  int64_t n = 1;
  for (int i = axis; i < shape->rank; i++) n *= shape->dims[i];
  return n;
}

/* Bias, residual and fused activation over one plane. */
static void finish_plane(const ref_loop *loop, int64_t plane) {
  const ref_args *a = &loop->args;
  const cs_op_desc *d = a->desc;
  bool has_bias = d->has_bias && d->op != CS_OP_BATCH_NORM && d->op != CS_OP_INSTANCE_NORM;
  if (!has_bias && !d->has_residual && d->activation.kind == CS_ACT_NONE) return;
  const double *residual = d->has_residual ? a->inputs[d->n_inputs - 1] : NULL;
  int64_t channels = d->output.shape.rank > 1 ? d->output.shape.dims[1] : 1;
  for (int64_t i = 0; i < loop->plane_elements; i++) {
    int64_t at = plane * loop->plane_elements + i;
    double y = a->value[at], magnitude = a->magnitude ? a->magnitude[at] : 0;
    if (has_bias) {
      double b = a->bias[d->op == CS_OP_GEMM ? i : plane % channels];
      y += b, magnitude += fabs(b);
    }
    if (residual) y += residual[at], magnitude += fabs(residual[at]);
    ref_store(a, at, ref_activation(d->activation, y), magnitude);
  }
}

static cs_status run_plane(void *user, int64_t index, int worker) {
  (void)worker;
  const ref_loop *loop = user;
  loop->plane(&loop->args, index);
  finish_plane(loop, index);
  return CS_OK;
}

static cs_status choose(const cs_op_desc *desc, ref_loop *loop, int64_t *planes) {
  const cs_shape *out = &desc->output.shape;
  int64_t total = elements_from(out, 0);
  loop->plane_elements = elements_from(out, out->rank == 4 ? 2 : 1);
  switch (desc->op) {
    case CS_OP_CONV:
      loop->plane = ref_conv_plane;
      break;
    case CS_OP_CONV_TRANSPOSE:
      loop->plane = ref_conv_transpose_plane;
      break;
    case CS_OP_GEMM:
      loop->plane = ref_gemm_plane;
      break;
    case CS_OP_MATMUL:
      loop->plane = ref_matmul_plane;
      break;
    case CS_OP_MAX_POOL:
    case CS_OP_AVERAGE_POOL:
      loop->plane = ref_pool_plane;
      break;
    case CS_OP_GLOBAL_AVERAGE_POOL:
      loop->plane = ref_global_pool_plane;
      break;
    case CS_OP_LRN:
      loop->plane = ref_lrn_plane;
      break;
    case CS_OP_BATCH_NORM:
      loop->plane = ref_batch_norm_plane;
      break;
    case CS_OP_INSTANCE_NORM:
      loop->plane = ref_instance_norm_plane;
      break;
    case CS_OP_GLOBAL_MAX_POOL:
    case CS_OP_REDUCE_MEAN:
    case CS_OP_REDUCE_SUM:
    case CS_OP_REDUCE_MAX:
    case CS_OP_REDUCE_MIN:
      loop->plane = ref_reduce_plane;
      break;
    case CS_OP_PAD:
      loop->plane = ref_pad_plane;
      break;
    case CS_OP_TRANSPOSE:
    case CS_OP_SLICE:
      loop->plane = ref_move_plane;
      break;
    case CS_OP_RESIZE:
      loop->plane = ref_resize_plane;
      break;
    case CS_OP_SOFTMAX:
      loop->plane = ref_softmax_plane;
      loop->plane_elements = elements_from(out, (int)desc->attrs.axis.axis);
      break;
    case CS_OP_COPY:
      loop->plane = ref_pointwise_plane;
      break;
    default:
      if (cs_op_is_binary(desc->op)) {
        loop->plane = ref_binary_plane;
        break;
      }
      if (cs_op_own_activation(desc->op, &desc->attrs).kind != CS_ACT_NONE) {
        loop->plane = ref_pointwise_plane;
        break;
      }
      return cs_error(CS_CODE_INTERNAL,
                      "the reference has no operator %s: it never reaches a backend",
                      cs_op_name(desc->op));
  }
  *planes = loop->plane_elements > 0 ? total / loop->plane_elements : 0;
  return CS_OK;
}

cs_status cs_reference_run(const cs_op_desc *desc, const double *const *inputs, const float *weight,
                           const float *bias, double *value, double *magnitude, int threads) {
  ref_loop loop = {.args = {desc, inputs, weight, bias, value, magnitude, NULL}};
  int64_t planes = 0;
  CS_RETURN_IF_ERROR(choose(desc, &loop, &planes));
  if (cs_op_flops(desc) < 1e6) threads = 1;
  if (!desc->has_prologue) return cs_parallel_for(planes, threads, run_plane, &loop);
  const double *applied[CS_MAX_OP_INPUTS] = {NULL};
  double *first = NULL, *first_magnitude = NULL;
  for (int i = 1; i < desc->n_inputs; i++) applied[i] = inputs[i];
  cs_status st = ref_apply_prologue(&loop.args, threads, &first, &first_magnitude);
  applied[0] = first;
  loop.args.inputs = applied;
  loop.args.input_magnitude = first_magnitude;
  if (st == CS_OK) st = cs_parallel_for(planes, threads, run_plane, &loop);
  free(first);
  free(first_magnitude);
  return st;
}
