/* Element by element operations, BatchNormalization and Softmax by definition. */
#include <math.h>

#include "backend/reference/internal.h"

static cs_activation activation_of(const cs_op_desc *d) {
  switch (d->op) {
    case CS_OP_RELU:
      return (cs_activation){CS_ACT_RELU, 0, 0};
    case CS_OP_LEAKY_RELU:
      return (cs_activation){CS_ACT_LEAKY_RELU, d->attrs.leaky_relu.alpha, 0};
    case CS_OP_CLIP:
      return (cs_activation){CS_ACT_CLIP, d->attrs.clip.min, d->attrs.clip.max};
    case CS_OP_SIGMOID:
      return (cs_activation){CS_ACT_SIGMOID, 0, 0};
    case CS_OP_TANH:
      return (cs_activation){CS_ACT_TANH, 0, 0};
    default:
      return (cs_activation){CS_ACT_NONE, 0, 0};
  }
}

void ref_pointwise_plane(const ref_args *args, int64_t plane) {
  const cs_op_desc *d = args->desc;
  cs_activation activation = activation_of(d);
  int64_t elements = 1;
  for (int i = d->output.shape.rank == 4 ? 2 : 1; i < d->output.shape.rank; i++)
    elements *= d->output.shape.dims[i];
  for (int64_t at = plane * elements; at < (plane + 1) * elements; at++) {
    double x = args->inputs[0][at];
    if (d->op == CS_OP_ADD)
      ref_store(args, at, x + args->inputs[1][at], fabs(x) + fabs(args->inputs[1][at]));
    else if (d->op == CS_OP_MUL)
      ref_store(args, at, x * args->inputs[1][at], fabs(x * args->inputs[1][at]));
    else
      ref_store(args, at, ref_activation(activation, x), fabs(x));
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
