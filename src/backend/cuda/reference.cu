/* The double twin of the plain C reference: each operation by definition, one thread an output
 * element, double sums. Value and magnitude come out as row-major NCHW doubles, or are compared
 * with an output where they are made: then nothing but a sum for each block is written. */
#include "backend/cuda/reference.cuh"
#include "graph/functions.h"

struct RefParams {
  RefTensor in[CS_MAX_OP_INPUTS]; /* of a binary operator: broadcast to the output's shape */
  bool constant, constant_first;  /* of a binary operator: the weight stands for one input */
  int64_t constant_stride[4];
  const float *weight, *bias;
  const float *scale, *shift; /* of the prologue; NULL: there is none */
  int64_t total, dim[4];
  int64_t reduced_size[4]; /* of a reduction: extents of the input where it reduces, else 1 */
  cs_attrs attrs;
  cs_activation act, own_act; /* behind the operation; the operation itself */
  cs_activation prologue;
  cs_shape in_shape, out_shape;
  cs_resize_axis resize[2];
  int op, residual; /* residual: its index or -1 */
};

/* What was summed for one element, and the sum of the absolute values. */
struct RefSum {
  double value, magnitude;
};

__device__ __forceinline__ void ref_add(RefSum *sum, double term) {
  sum->value += term;
  sum->magnitude += fabs(term);
}

/* A product whose input goes through the prologue first. */
__device__ void ref_add_product(const RefParams &p, RefSum *sum, double x, int64_t c,
                                double weight) {
  if (p.scale == nullptr) {
    ref_add(sum, x * weight);
    return;
  }
  double product = p.scale[c] * x, shift = p.shift[c];
  sum->value += ref_activation(p.prologue, product + shift) * weight;
  sum->magnitude += (fabs(product) + fabs(shift)) * fabs(weight);
}

__device__ RefSum ref_conv(const RefParams &p, int64_t n, int64_t k, int64_t oh, int64_t ow) {
  const cs_conv_attrs &a = p.attrs.conv;
  int64_t channels = p.in[0].dim[1] / a.group, filters = p.dim[1] / a.group;
  int64_t first = k / filters * channels;
  RefSum sum = {0, 0};
  for (int64_t r = 0; r < a.kernel[0]; r++)
    for (int64_t s = 0; s < a.kernel[1]; s++) {
      int64_t h = oh * a.strides[0] - a.pads[0] + r * a.dilations[0];
      int64_t w = ow * a.strides[1] - a.pads[1] + s * a.dilations[1];
      if (h < 0 || h >= p.in[0].dim[2] || w < 0 || w >= p.in[0].dim[3]) continue;
      for (int64_t c = 0; c < channels; c++) {
        int64_t at = ((k * channels + c) * a.kernel[0] + r) * a.kernel[1] + s;
        ref_add_product(p, &sum, ref_load(p.in[0], n, first + c, h, w), first + c, p.weight[at]);
      }
    }
  return sum;
}

__device__ RefSum ref_conv_transpose(const RefParams &p, int64_t n, int64_t k, int64_t oh,
                                     int64_t ow) {
  const cs_conv_attrs &a = p.attrs.conv;
  int64_t channels = p.in[0].dim[1] / a.group, filters = p.dim[1] / a.group;
  int64_t first = k / filters * channels;
  RefSum sum = {0, 0};
  for (int64_t r = 0; r < a.kernel[0]; r++)
    for (int64_t s = 0; s < a.kernel[1]; s++) {
      int64_t h = oh + a.pads[0] - r * a.dilations[0], w = ow + a.pads[1] - s * a.dilations[1];
      if (h < 0 || w < 0 || h % a.strides[0] != 0 || w % a.strides[1] != 0) continue;
      h /= a.strides[0], w /= a.strides[1];
      if (h >= p.in[0].dim[2] || w >= p.in[0].dim[3]) continue;
      for (int64_t c = 0; c < channels; c++) {
        int64_t at = (((first + c) * filters + k % filters) * a.kernel[0] + r) * a.kernel[1] + s;
        ref_add(&sum, ref_load(p.in[0], n, first + c, h, w) * p.weight[at]);
      }
    }
  return sum;
}

__device__ RefSum ref_gemm(const RefParams &p, int64_t n, int64_t k) {
  RefSum sum = {0, 0};
  for (int64_t c = 0; c < p.in[0].dim[1]; c++)
    ref_add(&sum, ref_load(p.in[0], n, c, 0, 0) * p.weight[k * p.in[0].dim[1] + c]);
  return sum;
}

__device__ RefSum ref_pool(const RefParams &p, int64_t n, int64_t c, int64_t oh, int64_t ow) {
  const cs_pool_attrs &a = p.attrs.pool;
  int64_t height = p.in[0].dim[2], width = p.in[0].dim[3], padded = 0, inside = 0;
  double largest = -INFINITY;
  RefSum sum = {0, 0};
  for (int64_t r = 0; r < a.kernel[0]; r++)
    for (int64_t s = 0; s < a.kernel[1]; s++) {
      int64_t h = oh * a.strides[0] - a.pads[0] + r * a.dilations[0];
      int64_t w = ow * a.strides[1] - a.pads[1] + s * a.dilations[1];
      padded += h < height + a.pads[2] && w < width + a.pads[3];
      if (h < 0 || h >= height || w < 0 || w >= width) continue;
      double x = ref_load(p.in[0], n, c, h, w);
      inside++;
      ref_add(&sum, x);
      if (x > largest || isnan(x)) largest = x;
    }
  if (p.op == CS_OP_MAX_POOL) return {largest, fabs(largest)};
  double count = (double)(a.count_include_pad ? padded : inside);
  return {sum.value / count, sum.magnitude / count};
}

__device__ RefSum ref_global_pool(const RefParams &p, int64_t n, int64_t c) {
  RefSum sum = {0, 0};
  for (int64_t h = 0; h < p.in[0].dim[2]; h++)
    for (int64_t w = 0; w < p.in[0].dim[3]; w++) ref_add(&sum, ref_load(p.in[0], n, c, h, w));
  double count = (double)(p.in[0].dim[2] * p.in[0].dim[3]);
  return {sum.value / count, sum.magnitude / count};
}

/* Everything at the output element's place on the axes that are not reduced; `at` has 0 on the
 * others. */
__device__ RefSum ref_reduce(const RefParams &p, const int64_t (&at)[4]) {
  bool smallest = p.op == CS_OP_REDUCE_MIN;
  bool extreme = smallest || p.op == CS_OP_REDUCE_MAX || p.op == CS_OP_GLOBAL_MAX_POOL;
  double best = smallest ? INFINITY : -INFINITY;
  RefSum sum = {0, 0};
  const int64_t *size = p.reduced_size;
  int64_t length = size[0] * size[1] * size[2] * size[3];
  for (int64_t i = 0; i < length; i++) {
    int64_t w = i % size[3], h = i / size[3] % size[2], c = i / size[3] / size[2] % size[1];
    int64_t n = i / size[3] / size[2] / size[1];
    double x = ref_load(p.in[0], at[0] + n, at[1] + c, at[2] + h, at[3] + w);
    ref_add(&sum, x);
    if ((smallest ? x < best : x > best) || isnan(x)) best = x;
  }
  if (extreme) return {best, fabs(best)};
  double count = p.op == CS_OP_REDUCE_MEAN ? (double)length : 1.0;
  return {sum.value / count, sum.magnitude / count};
}

__device__ RefSum ref_instance_norm(const RefParams &p, int64_t n, int64_t c, int64_t h,
                                    int64_t w) {
  int64_t height = p.dim[2], width = p.dim[3], count = height * width;
  RefSum sum = {0, 0};
  double squares = 0;
  for (int64_t i = 0; i < count; i++) ref_add(&sum, ref_load(p.in[0], n, c, i / width, i % width));
  double mean = sum.value / (double)count;
  for (int64_t i = 0; i < count; i++) {
    double d = ref_load(p.in[0], n, c, i / width, i % width) - mean;
    squares += d * d;
  }
  double scale = p.weight[c] / sqrt(squares / (double)count + p.attrs.batch_norm.epsilon);
  double x = ref_load(p.in[0], n, c, h, w), shift = p.bias[c];
  return {(x - mean) * scale + shift,
          fabs(scale) * (fabs(x) + sum.magnitude / (double)count) + fabs(shift)};
}

__device__ RefSum ref_lrn(const RefParams &p, int64_t n, int64_t c, int64_t h, int64_t w) {
  const cs_lrn_attrs &a = p.attrs.lrn;
  int64_t first = c - (a.size - 1) / 2, last = c + a.size / 2;
  if (first < 0) first = 0;
  if (last > p.dim[1] - 1) last = p.dim[1] - 1;
  double squares = 0;
  for (int64_t j = first; j <= last; j++) {
    double x = ref_load(p.in[0], n, j, h, w);
    squares += x * x;
  }
  double y =
      ref_load(p.in[0], n, c, h, w) / pow(a.bias + a.alpha / (double)a.size * squares, a.beta);
  return {y, fabs(y)};
}

__device__ RefSum ref_softmax(const RefParams &p, const int64_t (&at)[4]) {
  int64_t axis = p.attrs.axis.axis, i[4] = {at[0], at[1], at[2], at[3]};
  int64_t length = axis == 0 ? p.dim[0] : axis == 1 ? p.dim[1] : axis == 2 ? p.dim[2] : p.dim[3];
  double largest = -INFINITY, sum = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t j = 0; j < length; j++) {
      double x = ref_load(p.in[0], axis == 0 ? j : i[0], axis == 1 ? j : i[1], axis == 2 ? j : i[2],
                          axis == 3 ? j : i[3]);
      if (pass == 0)
        largest = fmax(largest, x);
      else
        sum += exp(x - largest);
    }
  double y = exp(ref_load(p.in[0], i[0], i[1], i[2], i[3]) - largest) / sum;
  return {y, y};
}

/* What lies at a row-major index of the input. */
__device__ RefSum ref_moved(const RefParams &p, int64_t source) {
  int64_t from[4];
  ref_place(p.in[0].dim, source, from);
  double y = ref_load(p.in[0], from[0], from[1], from[2], from[3]);
  return {y, fabs(y)};
}

/* Transpose, Slice, Pad. */
__device__ RefSum ref_move(const RefParams &p, const int64_t (&at)[4]) {
  int64_t index = ((at[0] * p.dim[1] + at[1]) * p.dim[2] + at[2]) * p.dim[3] + at[3];
  if (p.op == CS_OP_TRANSPOSE)
    return ref_moved(p, ref_transpose_source(&p.attrs.transpose, &p.in_shape, index));
  if (p.op == CS_OP_SLICE)
    return ref_moved(p, ref_slice_source(&p.attrs.slice, &p.in_shape, &p.out_shape, index));
  int64_t source = ref_pad_source(&p.attrs.pad, &p.in_shape, &p.out_shape, index);
  double value = p.attrs.pad.value;
  if (source < 0) return {value, fabs(value)};
  return ref_moved(p, source);
}

__device__ RefSum ref_resize(const RefParams &p, int64_t n, int64_t c, int64_t h, int64_t w) {
  double outside = p.attrs.resize.extrapolation_value;
  cs_resize_window rows = cs_resize_window_of(&p.resize[0], h);
  cs_resize_window columns = cs_resize_window_of(&p.resize[1], w);
  if (rows.n == 0 || columns.n == 0) return {outside, fabs(outside)};
  RefSum sum = {0, 0};
  for (int64_t r = 0; r < rows.n; r++) {
    double down = cs_resize_weight(&p.resize[0], &rows, r);
    int64_t y = cs_resize_inside(&p.resize[0], rows.first + r);
    for (int64_t s = 0; s < columns.n; s++) {
      int64_t x = cs_resize_inside(&p.resize[1], columns.first + s);
      double across = cs_resize_weight(&p.resize[1], &columns, s);
      ref_add(&sum, down * across * ref_load(p.in[0], n, c, y, x));
    }
  }
  return sum;
}

__device__ RefSum ref_binary(const RefParams &p, const int64_t (&at)[4]) {
  double a = ref_load(p.in[0], at[0], at[1], at[2], at[3]), b;
  if (p.constant) {
    int64_t index = 0;
    for (int axis = 0; axis < 4; axis++) index += at[axis] * p.constant_stride[axis];
    b = p.weight[index];
  } else {
    b = ref_load(p.in[1], at[0], at[1], at[2], at[3]);
  }
  cs_op op = (cs_op)p.op;
  double y = p.constant_first ? ref_combine(op, b, a) : ref_combine(op, a, b);
  bool sum = p.op == CS_OP_ADD || p.op == CS_OP_SUB;
  return {y, sum ? fabs(a) + fabs(b) : fabs(y)};
}

__device__ RefSum ref_pointwise(const RefParams &p, int64_t n, int64_t c, int64_t h, int64_t w) {
  double x = ref_load(p.in[0], n, c, h, w);
  if (p.op == CS_OP_BATCH_NORM) {
    double product = p.weight[c] * x, shift = p.bias[c];
    return {product + shift, fabs(product) + fabs(shift)};
  }
  bool sum = p.own_act.kind == CS_ACT_HARD_SIGMOID;
  double magnitude = sum ? fabs(p.own_act.alpha * x) + fabs(p.own_act.beta) : fabs(x);
  return {ref_activation(p.own_act, x), magnitude};
}

/* One element, activated; the magnitude is that of the sum before. */
__device__ __forceinline__ RefSum ref_element(const RefParams &p, const int64_t (&at)[4]) {
  RefSum sum;
  switch (p.op) {
    case CS_OP_CONV:
      sum = ref_conv(p, at[0], at[1], at[2], at[3]);
      break;
    case CS_OP_CONV_TRANSPOSE:
      sum = ref_conv_transpose(p, at[0], at[1], at[2], at[3]);
      break;
    case CS_OP_GEMM:
      sum = ref_gemm(p, at[0], at[1]);
      break;
    case CS_OP_MAX_POOL:
    case CS_OP_AVERAGE_POOL:
      sum = ref_pool(p, at[0], at[1], at[2], at[3]);
      break;
    case CS_OP_GLOBAL_AVERAGE_POOL:
      sum = ref_global_pool(p, at[0], at[1]);
      break;
    case CS_OP_GLOBAL_MAX_POOL:
    case CS_OP_REDUCE_MEAN:
    case CS_OP_REDUCE_SUM:
    case CS_OP_REDUCE_MAX:
    case CS_OP_REDUCE_MIN:
      sum = ref_reduce(p, at);
      break;
    case CS_OP_INSTANCE_NORM:
      sum = ref_instance_norm(p, at[0], at[1], at[2], at[3]);
      break;
    case CS_OP_LRN:
      sum = ref_lrn(p, at[0], at[1], at[2], at[3]);
      break;
    case CS_OP_SOFTMAX:
      sum = ref_softmax(p, at);
      break;
    case CS_OP_PAD:
    case CS_OP_TRANSPOSE:
    case CS_OP_SLICE:
      sum = ref_move(p, at);
      break;
    case CS_OP_RESIZE:
      sum = ref_resize(p, at[0], at[1], at[2], at[3]);
      break;
    case CS_OP_ADD:
    case CS_OP_MUL:
    case CS_OP_SUB:
    case CS_OP_DIV:
    case CS_OP_MAX:
    case CS_OP_MIN:
    case CS_OP_POW:
    case CS_OP_PRELU:
      sum = ref_binary(p, at);
      break;
    default:
      sum = ref_pointwise(p, at[0], at[1], at[2], at[3]);
      break;
  }
  if (p.bias != nullptr && p.op != CS_OP_BATCH_NORM && p.op != CS_OP_INSTANCE_NORM)
    ref_add(&sum, (double)p.bias[at[1]]);
  if (p.residual >= 0) {
    double added = p.residual == 1 ? ref_load(p.in[1], at[0], at[1], at[2], at[3])
                                   : ref_load(p.in[2], at[0], at[1], at[2], at[3]);
    ref_add(&sum, added);
  }
  return {ref_activation(p.act, sum.value), sum.magnitude};
}

struct RefArrayParams {
  RefParams op;
  double *value, *magnitude;
};

__global__ void cs_reference_kernel(const __grid_constant__ RefArrayParams p) {
  int64_t index = thread_index<int64_t>(), at[4];
  if (index >= p.op.total) return;
  ref_place(p.op.dim, index, at);
  RefSum sum = ref_element(p.op, at);
  p.value[index] = sum.value;
  p.magnitude[index] = sum.magnitude;
}

/* ---- Compared with an output ---- */

struct RefErrorParams {
  RefParams op;
  RefTensor out;
  cs_error_sums *sums; /* one a block */
};

/* A thread takes every (threads of the grid)th element. */
__global__ void cs_reference_error_kernel(const __grid_constant__ RefErrorParams p) {
  int64_t step = (int64_t)gridDim.x * blockDim.x, at[4];
  cs_error_sums sums = cs_no_error();
  for (int64_t index = thread_index<int64_t>(); index < p.op.total; index += step) {
    ref_place(p.op.dim, index, at);
    RefSum sum = ref_element(p.op, at);
    cs_error_add(&sums, ref_load(p.out, at[0], at[1], at[2], at[3]), sum.value, sum.magnitude);
  }
  block_errors(&sums);
  if (threadIdx.x == 0) p.sums[blockIdx.x] = sums;
}

/* ---- Launch ---- */

static bool has_twin(cs_op op) {
  return op != CS_OP_CONCAT && !cs_op_keeps_order(op) && op < CS_OP_COUNT;
}

/* The operands as tensors of the output's shape. */
static void ref_broadcast(const cs_op_desc *desc, const void *const *inputs, RefParams *p) {
  for (int i = 0; i < desc->n_inputs; i++) {
    cs_tensor_desc whole = cs_tensor_broadcast(&desc->inputs[i], &desc->output.shape);
    p->in[i] = ref_tensor(&whole, inputs[i]);
  }
  p->constant = cs_op_has_operand(desc);
  if (!p->constant) return;
  p->constant_first = desc->attrs.binary.operand_first;
  cs_tensor_desc operand =
      cs_tensor_dense(&desc->attrs.binary.operand, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  operand = cs_tensor_broadcast(&operand, &desc->output.shape);
  View view = view_of(&operand);
  memcpy(p->constant_stride, view.stride, sizeof view.stride);
}

static cs_status ref_params(const cs_op_desc *desc, const void *const *inputs, const float *weight,
                            const float *bias, RefParams *p) {
  if (!has_twin(desc->op) || !(desc->op == CS_OP_COPY || plain_tensors(desc)))
    return cs_error(CS_CODE_INTERNAL, "%s: no GPU reference for this operation",
                    cs_op_name(desc->op));
  for (int i = 0; i < desc->n_inputs; i++) p->in[i] = ref_tensor(&desc->inputs[i], inputs[i]);
  if (cs_op_is_binary(desc->op)) ref_broadcast(desc, inputs, p);
  bool reduced[CS_MAX_RANK];
  bool reduces = cs_op_reduces(desc, reduced);
  cs_tensor_desc kept = reduces ? cs_op_kept_output(desc) : desc->output;
  for (int i = 0; i < 4; i++) p->reduced_size[i] = reduces && reduced[i] ? p->in[0].dim[i] : 1;
  View out = view_of(&kept);
  memcpy(p->dim, out.dim, sizeof out.dim);
  p->total = view_elements(out);
  p->weight = weight, p->bias = desc->has_bias || desc->op == CS_OP_BATCH_NORM ? bias : NULL;
  if (desc->has_prologue) {
    p->scale = cs_op_prologue(desc, bias);
    p->shift = p->scale + desc->inputs[0].shape.dims[1];
    p->prologue = desc->prologue;
  }
  p->attrs = desc->attrs;
  p->in_shape = desc->inputs[0].shape, p->out_shape = desc->output.shape;
  for (int i = 0; i < 2 && desc->op == CS_OP_RESIZE; i++) cs_resize_axis_of(desc, i, &p->resize[i]);
  p->act = desc->activation, p->own_act = cs_op_own_activation(desc->op, &desc->attrs);
  p->op = (int)desc->op;
  p->residual = desc->has_residual ? desc->n_inputs - 1 : -1;
  return CS_OK;
}

cs_status cs_cuda_reference_launch(const cs_op_desc *desc, const void *const *inputs,
                                   const float *weight, const float *bias, double *value,
                                   double *magnitude, cudaStream_t stream) {
  RefArrayParams p = {};
  CS_RETURN_IF_ERROR(ref_params(desc, inputs, weight, bias, &p.op));
  p.value = value, p.magnitude = magnitude;
  return launch_linear("reference", cs_reference_kernel, p.op.total, p, stream);
}

cs_status cs_cuda_reference_error_launch(const cs_op_desc *desc, const void *const *inputs,
                                         const float *weight, const float *bias, const void *output,
                                         cs_error_sums *sums, int *n_sums, cudaStream_t stream) {
  RefErrorParams p = {};
  CS_RETURN_IF_ERROR(ref_params(desc, inputs, weight, bias, &p.op));
  cs_tensor_desc kept = cs_op_kept_output(desc);
  p.out = ref_tensor(&kept, output);
  p.sums = sums;
  unsigned block = block_size(p.op.total);
  *n_sums = (int)cs_min_i64((p.op.total + block - 1) / block, CS_CUDA_ERROR_SUMS);
  if (*n_sums == 0) return CS_OK;
  return launch_kernel("reference_error", cs_reference_error_kernel, dim3((unsigned)*n_sums),
                       dim3(block), p, stream);
}
