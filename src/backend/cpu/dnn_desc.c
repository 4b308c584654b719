/* Operation descriptors of oneDNN 2.x from ours. */
#include <string.h>

#include "backend/cpu/dnn.h"

/* Strides of axes that have one position do not matter to us, but do to oneDNN's comparison of
 * memory descriptors with format tags: they are given the dense value. */
static bool tensor_md(const cs_tensor_desc *tensor, dnnl_memory_desc_t *md) {
  static const dnnl_format_tag_t plain[] = {dnnl_format_tag_undef, dnnl_a, dnnl_ab, dnnl_abc,
                                            dnnl_abcd};
  int rank = tensor->shape.rank;
  if (rank < 1 || rank > 4 || tensor->dtype != CS_DTYPE_F32) return false;
  dnnl_format_tag_t tag = plain[rank];
  if (rank == 4 && tensor->layout == CS_LAYOUT_NHWC) tag = dnnl_nhwc;
  if (rank == 4 && tensor->layout == CS_LAYOUT_NCHW16C) tag = dnnl_nChw16c;
  if (rank == 4 && tensor->layout == CS_LAYOUT_NCHW8C) tag = dnnl_nChw8c;
  dnnl_dims_t dims;
  for (int i = 0; i < rank; i++) dims[i] = tensor->shape.dims[i];
  if (dnnl_memory_desc_init_by_tag(md, rank, dims, dnnl_f32, tag) != dnnl_success) return false;
  for (int i = 0; i < rank; i++) {
    int64_t positions = tensor->shape.dims[i];
    if (i == 1)
      positions = cs_round_up(positions, cs_layout_granule(tensor->layout)) /
                  cs_layout_granule(tensor->layout);
    if (positions > 1) md->format_desc.blocking.strides[i] = tensor->strides[i];
  }
  return true;
}

static bool vector_md(int64_t n, dnnl_memory_desc_t *md) {
  dnnl_dims_t dims = {n};
  return dnnl_memory_desc_init_by_tag(md, 1, dims, dnnl_f32, dnnl_x) == dnnl_success;
}

static void add_arg(dnn_description *d, int arg, dnn_source source, const dnnl_memory_desc_t *md) {
  d->args[d->n_args++] = (dnn_arg){arg, source, *md};
}

static bool append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, double alpha, double beta) {
  return dnnl_post_ops_append_eltwise(ops, 1.0f, kind, (float)alpha, (float)beta) == dnnl_success;
}

/* false: oneDNN 2.6 has no such function. */
static bool append_activation(dnnl_post_ops_t ops, cs_activation act) {
  switch (act.kind) {
    case CS_ACT_NONE:
      return true;
    case CS_ACT_RELU:
      return append_eltwise(ops, dnnl_eltwise_relu, 0, 0);
    case CS_ACT_LEAKY_RELU:
      return append_eltwise(ops, dnnl_eltwise_relu, act.alpha, 0);
    case CS_ACT_CLIP:
      return append_eltwise(ops, dnnl_eltwise_clip, act.alpha, act.beta);
    case CS_ACT_SIGMOID:
      return append_eltwise(ops, dnnl_eltwise_logistic, 0, 0);
    case CS_ACT_TANH:
      return append_eltwise(ops, dnnl_eltwise_tanh, 0, 0);
    case CS_ACT_ELU:
      return append_eltwise(ops, dnnl_eltwise_elu, act.alpha, 0);
    case CS_ACT_HARD_SIGMOID:
      return append_eltwise(ops, dnnl_eltwise_linear, act.alpha, act.beta) &&
             append_eltwise(ops, dnnl_eltwise_clip, 0, 1);
    case CS_ACT_HARD_SWISH:
      return append_eltwise(ops, dnnl_eltwise_hardswish, 0, 0);
    case CS_ACT_SWISH:
      return append_eltwise(ops, dnnl_eltwise_swish, act.alpha, 0);
    default:
      return false;
  }
}

/* Fused activation (and residual, in front of it) as post-operations. */
static bool describe_epilogue(const cs_op_desc *desc, dnn_description *d) {
  if (dnnl_primitive_attr_create(&d->attr) != dnnl_success) return false;
  bool ok =
      dnnl_primitive_attr_set_scratchpad_mode(d->attr, dnnl_scratchpad_mode_user) == dnnl_success;
  dnnl_post_ops_t ops;
  if (!ok || dnnl_post_ops_create(&ops) != dnnl_success) return false;
  if (desc->has_residual) {
    int last = desc->n_inputs - 1;
    dnnl_memory_desc_t md;
    ok = tensor_md(&desc->inputs[last], &md) &&
         dnnl_post_ops_append_binary(ops, dnnl_binary_add, &md) == dnnl_success;
    if (ok)
      add_arg(d, DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
              (dnn_source)(DNN_FROM_INPUT0 + last), &md);
  }
  ok = ok && append_activation(ops, desc->activation);
  if (ok) ok = dnnl_primitive_attr_set_post_ops(d->attr, ops) == dnnl_success;
  dnnl_post_ops_destroy(ops);
  return ok;
}

static bool weights_any(int rank, const dnnl_dims_t dims, dnnl_memory_desc_t *md) {
  return dnnl_memory_desc_init_by_tag(md, rank, dims, dnnl_f32, dnnl_format_tag_any) ==
         dnnl_success;
}

/* [G,] K/G, C/G, R, S; `transposed`: PyTorch keeps C outermost. */
static bool conv_weights(const cs_op_desc *desc, bool transposed, dnn_description *d,
                         dnnl_memory_desc_t *any) {
  const cs_conv_attrs *a = &desc->attrs.conv;
  int64_t k = a->out_channels / a->group, c = desc->inputs[0].shape.dims[1] / a->group;
  int64_t taps = a->kernel[0] * a->kernel[1];
  dnnl_dims_t dims = {a->group, k, c, a->kernel[0], a->kernel[1]};
  dnnl_dims_t strides = {k * c * taps, transposed ? taps : c * taps, transposed ? k * taps : taps,
                         a->kernel[1], 1};
  int skip = a->group == 1 ? 1 : 0;
  d->has_weights = true;
  return weights_any(5 - skip, dims + skip, any) &&
         dnnl_memory_desc_init_by_strides(&d->plain_weights, 5 - skip, dims + skip, dnnl_f32,
                                          strides + skip) == dnnl_success;
}

static bool describe_conv(const cs_op_desc *desc, bool winograd, dnn_description *d) {
  const cs_conv_attrs *a = &desc->attrs.conv;
  bool transposed = desc->op == CS_OP_CONV_TRANSPOSE;
  dnnl_memory_desc_t x, w, b, y;
  if (!tensor_md(&desc->inputs[0], &x) || !tensor_md(&desc->output, &y) ||
      !conv_weights(desc, transposed, d, &w))
    return false;
  if (desc->has_bias && !vector_md(a->out_channels, &b)) return false;
  dnnl_dims_t strides = {a->strides[0], a->strides[1]};
  dnnl_dims_t dilations = {a->dilations[0] - 1, a->dilations[1] - 1};
  dnnl_dims_t begin = {a->pads[0], a->pads[1]};
  dnnl_dims_t end = {a->pads[2], a->pads[3]};
  const dnnl_memory_desc_t *bias = desc->has_bias ? &b : NULL;
  dnnl_status_t made;
  if (transposed) {
    for (int i = 0; i < 2; i++) end[i] -= a->output_padding[i];
    made = dnnl_dilated_deconvolution_forward_desc_init(
        &d->op.deconv, dnnl_forward_inference,
        winograd ? dnnl_deconvolution_winograd : dnnl_deconvolution_direct, &x, &w, bias, &y,
        strides, dilations, begin, end);
  } else {
    made = dnnl_dilated_convolution_forward_desc_init(
        &d->op.conv, dnnl_forward_inference,
        winograd ? dnnl_convolution_winograd : dnnl_convolution_direct, &x, &w, bias, &y, strides,
        dilations, begin, end);
  }
  if (made != dnnl_success) return false;
  add_arg(d, DNNL_ARG_SRC, DNN_FROM_INPUT0, &x);
  add_arg(d, DNNL_ARG_DST, DNN_FROM_OUTPUT, &y);
  if (bias) add_arg(d, DNNL_ARG_BIAS, DNN_FROM_BIAS, &b);
  return true;
}

static bool describe_gemm(const cs_op_desc *desc, dnn_description *d) {
  dnnl_memory_desc_t x, w, b, y;
  dnnl_dims_t dims = {desc->output.shape.dims[1], desc->inputs[0].shape.dims[1]};
  if (!tensor_md(&desc->inputs[0], &x) || !tensor_md(&desc->output, &y) ||
      !weights_any(2, dims, &w) || !vector_md(dims[0], &b) ||
      dnnl_memory_desc_init_by_tag(&d->plain_weights, 2, dims, dnnl_f32, dnnl_ab) != dnnl_success)
    return false;
  d->has_weights = true;
  if (dnnl_inner_product_forward_desc_init(&d->op.inner_product, dnnl_forward_inference, &x, &w,
                                           desc->has_bias ? &b : NULL, &y) != dnnl_success)
    return false;
  add_arg(d, DNNL_ARG_SRC, DNN_FROM_INPUT0, &x);
  add_arg(d, DNNL_ARG_DST, DNN_FROM_OUTPUT, &y);
  if (desc->has_bias) add_arg(d, DNNL_ARG_BIAS, DNN_FROM_BIAS, &b);
  return true;
}

/* With axes of extent 1 in front, as oneDNN wants all tensors of a product to have as many. */
static bool factor_md(const cs_tensor_desc *factor, int rank, dnnl_memory_desc_t *md) {
  cs_tensor_desc whole = *factor;
  int missing = rank - factor->shape.rank;
  for (int i = 0; i < rank; i++) {
    whole.shape.dims[i] = i < missing ? 1 : factor->shape.dims[i - missing];
    whole.strides[i] = i < missing ? 1 : factor->strides[i - missing];
  }
  whole.shape.rank = rank;
  return tensor_md(&whole, md);
}

/* Batch axes of extent 1 are broadcast. */
static bool describe_matmul(const cs_op_desc *desc, dnn_description *d) {
  const cs_binary_attrs *binary = &desc->attrs.binary;
  bool constant = cs_op_has_operand(desc), first = constant && binary->operand_first;
  dnn_source of_a = first ? DNN_FROM_WEIGHTS : DNN_FROM_INPUT0, of_b = DNN_FROM_INPUT1;
  dnnl_memory_desc_t a, b, y;
  cs_tensor_desc operand = {0};
  if (constant) {
    operand = cs_op_operand(desc, CS_DTYPE_F32);
    of_b = first ? DNN_FROM_INPUT0 : DNN_FROM_WEIGHTS;
  }
  int rank = desc->output.shape.rank;
  const cs_tensor_desc *in_b = first ? &desc->inputs[0] : constant ? &operand : &desc->inputs[1];
  if (!factor_md(first ? &operand : &desc->inputs[0], rank, &a) || !factor_md(in_b, rank, &b) ||
      !tensor_md(&desc->output, &y) ||
      dnnl_matmul_desc_init(&d->op.matmul, &a, &b, NULL, &y) != dnnl_success)
    return false;
  add_arg(d, DNNL_ARG_SRC, of_a, &a);
  add_arg(d, DNNL_ARG_WEIGHTS, of_b, &b);
  add_arg(d, DNNL_ARG_DST, DNN_FROM_OUTPUT, &y);
  return true;
}

/* oneDNN's averages with padding divide by the whole window, so a window may not reach past the
 * padded image; otherwise the end padding is stretched until the output extent comes out. */
static bool pool_end_pads(const cs_op_desc *desc, dnnl_dims_t end) {
  const cs_pool_attrs *a = &desc->attrs.pool;
  for (int i = 0; i < 2; i++) {
    int64_t reach = (desc->output.shape.dims[2 + i] - 1) * a->strides[i] +
                    a->dilations[i] * (a->kernel[i] - 1) + 1 - a->pads[i] -
                    desc->inputs[0].shape.dims[2 + i];
    if (reach > a->pads[2 + i] && desc->op == CS_OP_AVERAGE_POOL && a->count_include_pad)
      return false;
    end[i] = cs_max_i64(a->pads[2 + i], reach);
  }
  return true;
}

static bool describe_pool(const cs_op_desc *desc, dnn_description *d) {
  const cs_pool_attrs *a = &desc->attrs.pool;
  const int64_t *in = desc->inputs[0].shape.dims;
  dnnl_memory_desc_t x, y;
  if (!tensor_md(&desc->inputs[0], &x) || !tensor_md(&desc->output, &y)) return false;
  dnnl_dims_t strides = {1, 1}, kernel = {in[2], in[3]}, dilations = {0, 0}, begin = {0, 0},
              end = {0, 0};
  dnnl_alg_kind_t kind = dnnl_pooling_avg_exclude_padding;
  if (desc->op == CS_OP_GLOBAL_MAX_POOL) kind = dnnl_pooling_max;
  if (desc->op != CS_OP_GLOBAL_AVERAGE_POOL && desc->op != CS_OP_GLOBAL_MAX_POOL) {
    for (int i = 0; i < 2; i++) {
      strides[i] = a->strides[i], kernel[i] = a->kernel[i], dilations[i] = a->dilations[i] - 1;
      begin[i] = a->pads[i];
    }
    if (!pool_end_pads(desc, end)) return false;
    if (desc->op == CS_OP_MAX_POOL)
      kind = dnnl_pooling_max;
    else if (a->count_include_pad)
      kind = dnnl_pooling_avg_include_padding;
  }
  if (dnnl_pooling_v2_forward_desc_init(&d->op.pool, dnnl_forward_inference, kind, &x, &y, strides,
                                        kernel, dilations, begin, end) != dnnl_success)
    return false;
  add_arg(d, DNNL_ARG_SRC, DNN_FROM_INPUT0, &x);
  add_arg(d, DNNL_ARG_DST, DNN_FROM_OUTPUT, &y);
  return true;
}

/* Operations whose source and destination share one descriptor. */
static bool describe_same(const cs_op_desc *desc, dnn_description *d) {
  dnnl_memory_desc_t x, y;
  if (!tensor_md(&desc->inputs[0], &x) || !tensor_md(&desc->output, &y) ||
      !dnnl_memory_desc_equal(&x, &y))
    return false;
  dnnl_prop_kind_t inference = dnnl_forward_inference;
  dnnl_status_t made = dnnl_unimplemented;
  const cs_lrn_attrs *lrn = &desc->attrs.lrn;
  switch (desc->op) {
    case CS_OP_RELU:
      made = dnnl_eltwise_forward_desc_init(&d->op.eltwise, inference, dnnl_eltwise_relu, &x, 0, 0);
      break;
    case CS_OP_LEAKY_RELU:
      made = dnnl_eltwise_forward_desc_init(&d->op.eltwise, inference, dnnl_eltwise_relu, &x,
                                            (float)desc->attrs.leaky_relu.alpha, 0);
      break;
    case CS_OP_CLIP:
      made =
          dnnl_eltwise_forward_desc_init(&d->op.eltwise, inference, dnnl_eltwise_clip, &x,
                                         (float)desc->attrs.clip.min, (float)desc->attrs.clip.max);
      break;
    case CS_OP_SIGMOID:
      made = dnnl_eltwise_forward_desc_init(&d->op.eltwise, inference, dnnl_eltwise_logistic, &x, 0,
                                            0);
      break;
    case CS_OP_TANH:
      made = dnnl_eltwise_forward_desc_init(&d->op.eltwise, inference, dnnl_eltwise_tanh, &x, 0, 0);
      break;
    case CS_OP_LRN: /* oneDNN's window of an even size is one channel shorter than ONNX's */
      if (lrn->size % 2 == 1)
        made = dnnl_lrn_forward_desc_init(&d->op.lrn, inference, dnnl_lrn_across_channels, &x,
                                          lrn->size, (float)lrn->alpha, (float)lrn->beta,
                                          (float)lrn->bias);
      break;
    case CS_OP_SOFTMAX:
      made =
          dnnl_softmax_forward_desc_init(&d->op.softmax, inference, &x, (int)desc->attrs.axis.axis);
      break;
    default:
      break;
  }
  if (made != dnnl_success) return false;
  add_arg(d, DNNL_ARG_SRC, DNN_FROM_INPUT0, &x);
  add_arg(d, DNNL_ARG_DST, DNN_FROM_OUTPUT, &y);
  return true;
}

/* Running statistics are folded in already: mean 0, variance 1, epsilon 0. */
static bool describe_batch_norm(const cs_op_desc *desc, dnn_description *d) {
  dnnl_memory_desc_t x, y, c;
  if (desc->output.shape.rank != 4 || !tensor_md(&desc->inputs[0], &x) ||
      !tensor_md(&desc->output, &y) || !dnnl_memory_desc_equal(&x, &y) ||
      !vector_md(desc->output.shape.dims[1], &c))
    return false;
  unsigned flags = dnnl_use_global_stats | dnnl_use_scale | dnnl_use_shift;
  if (dnnl_batch_normalization_forward_desc_init(&d->op.batch_norm, dnnl_forward_inference, &x,
                                                 0.0f, flags) != dnnl_success)
    return false;
  add_arg(d, DNNL_ARG_SRC, DNN_FROM_INPUT0, &x);
  add_arg(d, DNNL_ARG_DST, DNN_FROM_OUTPUT, &y);
  add_arg(d, DNNL_ARG_SCALE, DNN_FROM_WEIGHTS, &c);
  add_arg(d, DNNL_ARG_SHIFT, DNN_FROM_BIAS, &c);
  add_arg(d, DNNL_ARG_MEAN, DNN_FROM_MEAN, &c);
  add_arg(d, DNNL_ARG_VARIANCE, DNN_FROM_VARIANCE, &c);
  return true;
}

static dnnl_alg_kind_t binary_kind(cs_op op) {
  switch (op) {
    case CS_OP_ADD:
      return dnnl_binary_add;
    case CS_OP_MUL:
      return dnnl_binary_mul;
    case CS_OP_SUB:
      return dnnl_binary_sub;
    case CS_OP_DIV:
      return dnnl_binary_div;
    case CS_OP_MAX:
      return dnnl_binary_max;
    case CS_OP_MIN:
      return dnnl_binary_min;
    default:
      return dnnl_alg_kind_undef;
  }
}

/* oneDNN 2.6.3 gets a post-operation wrong where the last channel block is not full; what it writes
 * into that block's lanes of a broadcast or of a division is not zero. It broadcasts the second
 * operand alone, of as many axes. */
static bool describe_binary(const cs_op_desc *desc, dnn_description *d) {
  dnnl_memory_desc_t a, b, y;
  const cs_shape *out = &desc->output.shape;
  bool constant = cs_op_has_operand(desc);
  cs_tensor_desc second = constant ? cs_op_operand(desc, CS_DTYPE_F32) : desc->inputs[1];
  bool alike = cs_shape_equal(&second.shape, out), partial = false;
  if (out->rank == 4) partial = out->dims[1] % cs_layout_granule(desc->output.layout) != 0;
  bool plain = alike && (desc->op == CS_OP_ADD || desc->op == CS_OP_MUL);
  if (partial && (desc->activation.kind != CS_ACT_NONE || !plain)) return false;
  if (!cs_shape_equal(&desc->inputs[0].shape, out) || second.shape.rank != out->rank) return false;
  if (binary_kind(desc->op) == dnnl_alg_kind_undef ||
      (constant && desc->attrs.binary.operand_first))
    return false;
  if (!tensor_md(&desc->inputs[0], &a) || !tensor_md(&second, &b) ||
      !tensor_md(&desc->output, &y) ||
      dnnl_binary_desc_init(&d->op.binary, binary_kind(desc->op), &a, &b, &y) != dnnl_success)
    return false;
  add_arg(d, DNNL_ARG_SRC_0, DNN_FROM_INPUT0, &a);
  add_arg(d, DNNL_ARG_SRC_1, constant ? DNN_FROM_WEIGHTS : DNN_FROM_INPUT1, &b);
  add_arg(d, DNNL_ARG_DST, DNN_FROM_OUTPUT, &y);
  return true;
}

static bool describe_copy(const cs_op_desc *desc, dnn_description *d) {
  dnnl_memory_desc_t x, y;
  if (!tensor_md(&desc->inputs[0], &x) || !tensor_md(&desc->output, &y)) return false;
  d->is_reorder = true;
  add_arg(d, DNNL_ARG_FROM, DNN_FROM_INPUT0, &x);
  add_arg(d, DNNL_ARG_TO, DNN_FROM_OUTPUT, &y);
  return true;
}

static bool describe_op(const cs_op_desc *desc, bool winograd, dnn_description *d) {
  switch (desc->op) {
    case CS_OP_CONV:
    case CS_OP_CONV_TRANSPOSE:
      return describe_conv(desc, winograd, d);
    case CS_OP_GEMM:
      return describe_gemm(desc, d);
    case CS_OP_MATMUL:
      return describe_matmul(desc, d);
    case CS_OP_MAX_POOL:
    case CS_OP_AVERAGE_POOL:
    case CS_OP_GLOBAL_AVERAGE_POOL:
    case CS_OP_GLOBAL_MAX_POOL:
      return describe_pool(desc, d);
    case CS_OP_BATCH_NORM:
      return describe_batch_norm(desc, d);
    case CS_OP_COPY:
      return describe_copy(desc, d);
    default:
      return cs_op_is_binary(desc->op) ? describe_binary(desc, d) : describe_same(desc, d);
  }
}

bool dnn_describe(const cs_op_desc *desc, bool winograd, dnn_description *out) {
  memset(out, 0, sizeof *out);
  out->bias_elements = cs_op_bias_elements(desc);
  if (describe_op(desc, winograd, out) && describe_epilogue(desc, out)) return true;
  dnn_description_clear(out);
  return false;
}

void dnn_description_clear(dnn_description *description) {
  if (description->attr) dnnl_primitive_attr_destroy(description->attr);
  memset(description, 0, sizeof *description);
}
