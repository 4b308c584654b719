/* Element by element operations, BatchNormalization and Softmax by definition. */
#include <math.h>

#include "backend/reference/internal.h"

void ref_pointwise_plane(const ref_args *args, int64_t plane) {
  const cs_op_desc *d = args->desc;
  cs_activation activation = cs_op_own_activation(d->op, &d->attrs);
  int64_t elements = 1;
  for (int i = d->output.shape.rank == 4 ? 2 : 1; i < d->output.shape.rank; i++)
    elements *= d->output.shape.dims[i];
  for (int64_t at = plane * elements; at < (plane + 1) * elements; at++) {
    double x = args->inputs[0][at];
    /* What HardSigmoid sums. */
    bool sum = activation.kind == CS_ACT_HARD_SIGMOID;
    double magnitude = sum ? fabs(activation.alpha * x) + fabs(activation.beta) : fabs(x);
    ref_store(args, at, ref_activation(activation, x), magnitude);
  }
}

/* Row-major index into a tensor of shape `from` of what output element `at` reads of it: axes lined
 * up from the last, an extent of 1 repeats. */
static int64_t broadcast_index(const cs_shape *from, const cs_shape *out, int64_t at) {
  int64_t index = 0, step = 1;
  for (int i = out->rank - 1; i >= 0; i--) {
    int axis = i - (out->rank - from->rank);
    if (axis < 0) break;
    if (from->dims[axis] > 1) index += at % out->dims[i] * step;
    step *= from->dims[axis];
    at /= out->dims[i];
  }
  return index;
}

void ref_binary_plane(const ref_args *args, int64_t plane) {
  const cs_op_desc *d = args->desc;
  const cs_shape *out = &d->output.shape, *operand = &d->attrs.binary.operand;
  bool constant = cs_op_has_operand(d);
  int64_t elements = 1;
  for (int i = out->rank == 4 ? 2 : 1; i < out->rank; i++) elements *= out->dims[i];
  for (int64_t at = plane * elements; at < (plane + 1) * elements; at++) {
    double a = args->inputs[0][broadcast_index(&d->inputs[0].shape, out, at)], b;
    if (constant)
      b = args->weight[broadcast_index(operand, out, at)];
    else
      b = args->inputs[1][broadcast_index(&d->inputs[1].shape, out, at)];
    bool swapped = constant && d->attrs.binary.operand_first;
    double y = ref_combine(d->op, swapped ? b : a, swapped ? a : b);
    bool sum = d->op == CS_OP_ADD || d->op == CS_OP_SUB;
    ref_store(args, at, y, sum ? fabs(a) + fabs(b) : fabs(y));
  }
}

void ref_batch_norm_plane(const ref_args *args, int64_t plane) {
  const cs_shape *shape = &args->desc->output.shape;
  int64_t elements = shape->rank == 4 ? shape->dims[2] * shape->dims[3] : shape->dims[1];
  for (int64_t i = 0; i < elements; i++) {
    int64_t at = plane * elements + i;
    int64_t c = shape->rank == 4 ? plane % shape->dims[1] : i;
    double product = args->weight[c] * args->inputs[0][at], shift = args->bias[c];
    ref_store(args, at, product + shift, fabs(product) + fabs(shift));
  }
}

/* A plane holds everything from the axis on: `inner` interleaved rows of `length`. */
void ref_softmax_plane(const ref_args *args, int64_t plane) {
  const cs_op_desc *d = args->desc;
  const cs_shape *shape = &d->output.shape;
  int64_t length = shape->dims[d->attrs.axis.axis], inner = 1;
  for (int i = (int)d->attrs.axis.axis + 1; i < shape->rank; i++) inner *= shape->dims[i];
  for (int64_t j = 0; j < inner; j++) {
    int64_t first = plane * length * inner + j;
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < length; i++)
      largest = fmax(largest, args->inputs[0][first + i * inner]);
    for (int64_t i = 0; i < length; i++) sum += exp(args->inputs[0][first + i * inner] - largest);
    for (int64_t i = 0; i < length; i++) {
      double y = exp(args->inputs[0][first + i * inner] - largest) / sum;
      ref_store(args, first + i * inner, y, y);
    }
  }
}
