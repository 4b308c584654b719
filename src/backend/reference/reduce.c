/* Reductions and InstanceNormalization by definition. */
#include <math.h>

#include "backend/reference/internal.h"

/* Row-major index of the input's element whose place on the reduced axes is number `inner`, and on
 * the others number `outer`. */
static int64_t element_index(const cs_shape *in, const bool *reduced, int64_t outer,
                             int64_t inner) {
  int64_t index = 0, step = 1;
  for (int axis = in->rank - 1; axis >= 0; axis--) {
    int64_t *from = reduced[axis] ? &inner : &outer;
    index += *from % in->dims[axis] * step;
    *from /= in->dims[axis];
    step *= in->dims[axis];
  }
  return index;
}

static void reduce_element(const ref_args *args, const bool *reduced, int64_t outer,
                           int64_t length) {
  const cs_op_desc *d = args->desc;
  bool smallest = d->op == CS_OP_REDUCE_MIN;
  bool extreme = smallest || d->op == CS_OP_REDUCE_MAX || d->op == CS_OP_GLOBAL_MAX_POOL;
  double sum = 0, absolute = 0, best = smallest ? INFINITY : -INFINITY;
  for (int64_t i = 0; i < length; i++) {
    double x = args->inputs[0][element_index(&d->inputs[0].shape, reduced, outer, i)];
    sum += x, absolute += fabs(x);
    if ((smallest ? x < best : x > best) || isnan(x)) best = x;
  }
  double count = d->op == CS_OP_REDUCE_MEAN ? (double)length : 1;
  if (extreme)
    ref_store(args, outer, best, fabs(best));
  else
    ref_store(args, outer, sum / count, absolute / count);
}

void ref_reduce_plane(const ref_args *args, int64_t plane) {
  const cs_shape *in = &args->desc->inputs[0].shape, *out = &args->desc->output.shape;
  bool reduced[CS_MAX_RANK];
  int64_t length = 1, elements = 1;
  (void)cs_op_reduces(args->desc, reduced);
  for (int i = 0; i < in->rank; i++) length *= reduced[i] ? in->dims[i] : 1;
  for (int i = out->rank == 4 ? 2 : 1; i < out->rank; i++) elements *= out->dims[i];
  for (int64_t at = plane * elements; at < (plane + 1) * elements; at++)
    reduce_element(args, reduced, at, length);
}

/* The magnitude is of what is summed: x and the mean, scaled, and the shift. */
void ref_instance_norm_plane(const ref_args *args, int64_t plane) {
  const cs_op_desc *d = args->desc;
  const int64_t *dims = d->output.shape.dims;
  int64_t n = dims[2] * dims[3], c = plane % dims[1];
  const double *x = args->inputs[0] + plane * n;
  double sum = 0, absolute = 0, squares = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i], absolute += fabs(x[i]);
  double mean = sum / (double)n;
  for (int64_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
  double scale = args->weight[c] / sqrt(squares / (double)n + d->attrs.batch_norm.epsilon);
  double shift = args->bias[c];
  for (int64_t i = 0; i < n; i++) {
    double magnitude = fabs(scale) * (fabs(x[i]) + absolute / (double)n) + fabs(shift);
    ref_store(args, plane * n + i, (x[i] - mean) * scale + shift, magnitude);
  }
}
