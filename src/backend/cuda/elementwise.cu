/* y = act(x · scale[c] + shift[c] ⊕ z), each part optional: activations, Add, Mul,
 * BatchNormalization and the epilogue of a convolution are all cases of it; and, in kernels of
 * their own, the binary operators of operands that are broadcast. */
#include "backend/cuda/loop_nest.cuh"

/* BROADCAST: x and z may repeat along the innermost axis, and are combined by any operator but Pow;
 * POWER: by Pow. FUNCTION: one of the functions that are never fused. */
enum { HAS_OTHER = 1, HAS_CHANNELS = 2, BROADCAST = 4, POWER = 8, FUNCTION = 16 };

template <bool WIDE>
struct ElementwiseParams {
  NestParams<WIDE> nest; /* y, x, then z and the channel index where they are there */
  const void *x, *other;
  const float *scale, *shift; /* may be NULL */
  void *y;
  int op; /* of x and z: CS_OP_ADD, CS_OP_MUL, … */
  Activation act;
};

/* V elements of an operand at `offset`: neighbours, or one for all. */
template <typename T, int V>
__device__ __forceinline__ void load_operand(const void *from, int64_t offset, bool adjacent,
                                             float (&v)[V]) {
  const T *at = static_cast<const T *>(from) + offset;
  if (V == 1 || adjacent) {
    load_vector<T, V>(at, v);
  } else {
    float one = Convert<T>::from(*at);
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = one;
  }
}

/* x = x op z; NaN stays NaN. */
template <int V>
__device__ __forceinline__ void combine(int op, float (&x)[V], const float (&z)[V]) {
  switch (op) {
    case CS_OP_MUL:
#pragma unroll
      for (int i = 0; i < V; i++) x[i] *= z[i];
      break;
    case CS_OP_SUB:
#pragma unroll
      for (int i = 0; i < V; i++) x[i] -= z[i];
      break;
    case CS_OP_DIV:
#pragma unroll
      for (int i = 0; i < V; i++) x[i] = x[i] / z[i];
      break;
    case CS_OP_MAX:
#pragma unroll
      for (int i = 0; i < V; i++) x[i] = x[i] > z[i] || isnan(x[i]) ? x[i] : z[i];
      break;
    case CS_OP_MIN:
#pragma unroll
      for (int i = 0; i < V; i++) x[i] = x[i] < z[i] || isnan(x[i]) ? x[i] : z[i];
      break;
    case CS_OP_PRELU:
#pragma unroll
      for (int i = 0; i < V; i++) x[i] = x[i] < 0.f ? z[i] * x[i] : x[i];
      break;
    default:
#pragma unroll
      for (int i = 0; i < V; i++) x[i] += z[i];
      break;
  }
}

/* What activate() does not know. */
__device__ __forceinline__ float function_of(const Activation &act, float x) {
  switch (act.kind) {
    case CS_ACT_SELU:
      return act.beta * (x < 0.f ? act.alpha * expm1f(x) : x);
    case CS_ACT_SQRT:
      return sqrtf(x);
    case CS_ACT_ABS:
      return fabsf(x);
    case CS_ACT_NEG:
      return -x;
    case CS_ACT_EXP:
      return expf(x);
    case CS_ACT_SOFTPLUS: {
      float above = x < 0.f ? 0.f : x; /* NaN stays NaN */
      return above + log1pf(expf(-fabsf(x)));
    }
    case CS_ACT_ERF:
      return erff(x);
    default: /* CS_ACT_GELU */
      return 0.5f * x * (1.f + erff(x * 0.70710678f));
  }
}

/* The vector of a [C] array at `offset`: V neighbours, or one channel for all. */
template <int V>
__device__ __forceinline__ void load_channels(const float *from, bool adjacent, float (&v)[V]) {
  if (V > 1 && adjacent) {
    load_vector<float, V>(from, v);
  } else {
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = from[0];
  }
}

template <typename T, int V, bool WIDE, int PARTS>
__global__ void cs_elementwise_kernel(const __grid_constant__ ElementwiseParams<WIDE> p) {
  begin_kernel();
  using I = typename Index<WIDE>::type;
  constexpr int kTensors = 2 + (PARTS & HAS_OTHER ? 1 : 0) + (PARTS & HAS_CHANNELS ? 1 : 0);
  I index = thread_index<I>();
  if (index >= p.nest.total) return;
  I offset[kTensors];
  nest_offsets(p.nest, index, offset);
  float x[V], other[V], scale[V], shift[V];
  if constexpr ((PARTS & BROADCAST) != 0) {
    load_operand<T, V>(p.x, offset[1], p.nest.stride[1][0] != 0, x);
    load_operand<T, V>(p.other, offset[2], p.nest.stride[2][0] != 0, other);
  } else {
    load_vector<T, V>(static_cast<const T *>(p.x) + offset[1], x);
    if constexpr ((PARTS & HAS_OTHER) != 0)
      load_vector<T, V>(static_cast<const T *>(p.other) + offset[2], other);
  }
  if constexpr ((PARTS & HAS_CHANNELS) != 0) {
    bool adjacent = p.nest.stride[kTensors - 1][0] != 0;
    load_channels<V>(p.shift + offset[kTensors - 1], adjacent, shift);
    if (p.scale != nullptr) {
      load_channels<V>(p.scale + offset[kTensors - 1], adjacent, scale);
#pragma unroll
      for (int i = 0; i < V; i++) x[i] = fmaf(x[i], scale[i], shift[i]);
    } else {
#pragma unroll
      for (int i = 0; i < V; i++) x[i] += shift[i];
    }
  }
  if constexpr ((PARTS & POWER) != 0) {
#pragma unroll
    for (int i = 0; i < V; i++) x[i] = powf(x[i], other[i]);
  } else if constexpr ((PARTS & BROADCAST) != 0) {
    combine<V>(p.op, x, other);
  } else if constexpr ((PARTS & HAS_OTHER) != 0) {
#pragma unroll
    for (int i = 0; i < V; i++) x[i] = p.op == CS_OP_MUL ? x[i] * other[i] : x[i] + other[i];
  }
  if constexpr ((PARTS & FUNCTION) != 0) {
#pragma unroll
    for (int i = 0; i < V; i++) x[i] = function_of(p.act, x[i]);
  } else {
    activate<V>(p.act, x);
  }
  store_vector<T, V>(static_cast<T *>(p.y) + offset[0], x);
}

/* What one launch computes, before it is known how wide and which type. */
struct Elementwise {
  const cs_tensor_desc *x_desc, *other_desc, *y_desc; /* other_desc: NULL when there is none */
  const void *x, *other;
  const float *scale, *shift;
  void *y;
  int op;
  cs_activation act;
};

template <typename T, int V, bool WIDE, int PARTS>
static cs_status launch_parts(const Elementwise &e, const LoopNest &nest, cudaStream_t stream) {
  ElementwiseParams<WIDE> params = {
      nest_params<WIDE>(&nest, V), e.x, e.other, e.scale, e.shift, e.y, e.op, activation_of(e.act)};
  return launch_linear("elementwise", cs_elementwise_kernel<T, V, WIDE, PARTS>, params.nest.total,
                       params, stream);
}

/* In whole vectors, or one element for each vector of the output. */
template <typename T>
static bool operand_vectorises(const LoopNest &nest, int tensor, int parts,
                               const cs_tensor_desc *desc) {
  if ((parts & BROADCAST) && nest.stride[tensor][0] == 0) return true;
  return nest_vectorises(&nest, tensor, kVector<T>, desc->alignment, sizeof(T));
}

template <typename T, int PARTS>
static cs_status launch_width(const Elementwise &e, const LoopNest &nest, cudaStream_t stream) {
  constexpr int V = kVector<T>;
  if (!nest_fits_narrow(&nest)) return launch_parts<T, 1, true, PARTS>(e, nest, stream);
  bool vector = nest_vectorises(&nest, 0, V, e.y_desc->alignment, sizeof(T)) &&
                operand_vectorises<T>(nest, 1, PARTS, e.x_desc);
  if (PARTS & HAS_OTHER) vector = vector && operand_vectorises<T>(nest, 2, PARTS, e.other_desc);
  if (PARTS & HAS_CHANNELS) {
    int t = nest.n_tensors - 1;
    bool aligned = ((uintptr_t)e.scale | (uintptr_t)e.shift) % 16 == 0;
    vector = vector && (nest.stride[t][0] == 0 || (aligned && nest_vectorises(&nest, t, V, 16, 4)));
  }
  return vector ? launch_parts<T, V, false, PARTS>(e, nest, stream)
                : launch_parts<T, 1, false, PARTS>(e, nest, stream);
}

static LoopNest nest_of(const Elementwise &e) {
  LoopNest nest = nest_begin(view_of(e.y_desc));
  nest_add(&nest, view_of(e.x_desc));
  if (e.other_desc) nest_add(&nest, view_of(e.other_desc));
  if (e.shift) nest_add_channels(&nest);
  nest_collapse(&nest);
  return nest;
}

static cs_status launch_elementwise(const Elementwise &e, cudaStream_t stream) {
  LoopNest nest = nest_of(e);
  return by_dtype(e.y_desc->dtype, [&](auto type) {
    using T = decltype(type);
    if (e.other_desc && e.shift) return launch_width<T, HAS_OTHER | HAS_CHANNELS>(e, nest, stream);
    if (e.other_desc) return launch_width<T, HAS_OTHER>(e, nest, stream);
    if (e.shift) return launch_width<T, HAS_CHANNELS>(e, nest, stream);
    return launch_width<T, 0>(e, nest, stream);
  });
}

cs_status cs_cuda_epilogue_launch(const cs_op_desc *desc, const cs_tensor_desc *x_desc,
                                  const void *x, const float *bias, const void *residual, void *y,
                                  cudaStream_t stream) {
  const cs_tensor_desc *residual_desc = residual ? &desc->inputs[desc->n_inputs - 1] : NULL;
  Elementwise e = {x_desc, residual_desc, &desc->output,   x, residual, NULL, bias,
                   y,      CS_OP_ADD,     desc->activation};
  return launch_elementwise(e, stream);
}

/* ---- Relu … Gelu, Add … PRelu ---- */

static int data_inputs(const cs_op_desc *desc) {
  return desc->n_inputs - (desc->has_residual ? 1 : 0);
}

struct ElementwiseIds {
  const char *of[CS_OP_COUNT]; /* NULL: another family's operator */
  constexpr ElementwiseIds() : of() {
    of[CS_OP_RELU] = "cuda.relu.v1", of[CS_OP_LEAKY_RELU] = "cuda.leaky_relu.v1";
    of[CS_OP_CLIP] = "cuda.clip.v1", of[CS_OP_SIGMOID] = "cuda.sigmoid.v1";
    of[CS_OP_TANH] = "cuda.tanh.v1", of[CS_OP_ADD] = "cuda.add.v1", of[CS_OP_MUL] = "cuda.mul.v1";
    of[CS_OP_SUB] = "cuda.sub.v1", of[CS_OP_DIV] = "cuda.div.v1", of[CS_OP_MAX] = "cuda.max.v1";
    of[CS_OP_MIN] = "cuda.min.v1", of[CS_OP_POW] = "cuda.pow.v1";
    of[CS_OP_PRELU] = "cuda.prelu.v1", of[CS_OP_ELU] = "cuda.elu.v1";
    of[CS_OP_SELU] = "cuda.selu.v1", of[CS_OP_HARD_SIGMOID] = "cuda.hard_sigmoid.v1";
    of[CS_OP_HARD_SWISH] = "cuda.hard_swish.v1", of[CS_OP_SWISH] = "cuda.swish.v1";
    of[CS_OP_SQRT] = "cuda.sqrt.v1", of[CS_OP_ABS] = "cuda.abs.v1", of[CS_OP_NEG] = "cuda.neg.v1";
    of[CS_OP_EXP] = "cuda.exp.v1", of[CS_OP_SOFTPLUS] = "cuda.softplus.v1";
    of[CS_OP_ERF] = "cuda.erf.v1", of[CS_OP_GELU] = "cuda.gelu.v1";
  }
};
static constexpr ElementwiseIds kIds;

bool cs_elementwise_takes(cs_op op) {
  return kIds.of[op] != NULL;
}

static int elementwise_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  bool binary = cs_op_is_binary(desc->op);
  int wanted = binary && !cs_op_has_operand(desc) ? 2 : 1, count = 0;
  if (desc->has_residual || desc->has_bias || data_inputs(desc) != wanted) return 0;
  if (!binary && desc->activation.kind != CS_ACT_NONE) return 0;
  if (cs_elementwise_takes(desc->op)) add_variant(ids, capacity, &count, kIds.of[desc->op]);
  return count;
}

static int64_t elementwise_weight_bytes(const cs_op_desc *desc) {
  if (!cs_op_has_operand(desc)) return 0;
  cs_tensor_desc operand = cs_op_operand(desc, desc->output.dtype);
  return cs_tensor_span_bytes(&operand);
}

/* The constant in the storage type and the output's layout. */
static cs_status elementwise_pack(const cs_op_desc *desc, const float *weight, const float *,
                                  void *host_out) {
  if (!cs_op_has_operand(desc)) return CS_OK;
  cs_tensor_desc operand = cs_op_operand(desc, desc->output.dtype);
  View view = view_of(&operand);
  for (int64_t n = 0; n < view.dim[0]; n++)
    for (int64_t c = 0; c < view.dim[1]; c++)
      for (int64_t h = 0; h < view.dim[2]; h++)
        for (int64_t w = 0; w < view.dim[3]; w++)
          put_rounded(
              operand.dtype, host_out,
              n * view.stride[0] + c * view.stride[1] + h * view.stride[2] + w * view.stride[3],
              *weight++);
  return CS_OK;
}

static bool repeats(const cs_op_desc *desc) {
  for (int i = 0; i < desc->n_inputs; i++)
    if (!cs_shape_equal(&desc->inputs[i].shape, &desc->output.shape)) return true;
  return cs_op_has_operand(desc);
}

static cs_status binary_launch(const cs_op_desc *desc, const void *const *inputs,
                               const void *weights, void *output, cudaStream_t stream) {
  bool constant = cs_op_has_operand(desc);
  const cs_shape *shape = &desc->output.shape;
  cs_tensor_desc x = cs_tensor_broadcast(&desc->inputs[0], shape), z = desc->inputs[1];
  if (constant) z = cs_op_operand(desc, desc->output.dtype);
  z = cs_tensor_broadcast(&z, shape);
  Elementwise e = {&x,   &z,   &desc->output, inputs[0],     constant ? weights : inputs[1],
                   NULL, NULL, output,        (int)desc->op, desc->activation};
  if (constant && desc->attrs.binary.operand_first) {
    e.x_desc = &z, e.x = weights;
    e.other_desc = &x, e.other = inputs[0];
  }
  bool plain = !repeats(desc) && (desc->op == CS_OP_ADD || desc->op == CS_OP_MUL);
  if (plain) return launch_elementwise(e, stream);
  LoopNest nest = nest_of(e);
  return by_dtype(e.y_desc->dtype, [&](auto type) {
    using T = decltype(type);
    if (desc->op == CS_OP_POW)
      return launch_width<T, HAS_OTHER | BROADCAST | POWER>(e, nest, stream);
    return launch_width<T, HAS_OTHER | BROADCAST>(e, nest, stream);
  });
}

static cs_status elementwise_launch(const cs_op_desc *desc, const char *, const void *const *inputs,
                                    const void *weights, void *output, cudaStream_t stream) {
  if (cs_op_is_binary(desc->op)) return binary_launch(desc, inputs, weights, output, stream);
  cs_activation act = cs_op_own_activation(desc->op, &desc->attrs);
  Elementwise e = {&desc->inputs[0], NULL, &desc->output, inputs[0], NULL, NULL, NULL, output,
                   CS_OP_ADD,        act};
  if (cs_act_fuses(act.kind)) return launch_elementwise(e, stream);
  LoopNest nest = nest_of(e);
  return by_dtype(e.y_desc->dtype, [&](auto type) {
    return launch_width<decltype(type), FUNCTION>(e, nest, stream);
  });
}

const KernelFamily cs_elementwise_family = {elementwise_variants, elementwise_weight_bytes,
                                            elementwise_pack, elementwise_launch};

/* ---- BatchNormalization: weights are f32 scale [C], then f32 shift [C] ---- */

static int64_t channels_of(const cs_op_desc *desc) {
  return view_of(&desc->output).dim[1];
}

static int batch_norm_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (data_inputs(desc) != 1 || desc->output.shape.rank < 2) return 0;
  add_variant(ids, capacity, &count, "cuda.batch_norm.v1");
  return count;
}

int64_t channel_weight_bytes(const cs_op_desc *desc) {
  return 2 * weight_part_bytes(channels_of(desc) * (int64_t)sizeof(float));
}

cs_status channel_pack(const cs_op_desc *desc, const float *weight, const float *bias,
                       void *host_out) {
  size_t bytes = (size_t)channels_of(desc) * sizeof(float);
  memset(host_out, 0, (size_t)channel_weight_bytes(desc));
  memcpy(host_out, weight, bytes);
  memcpy((char *)host_out + weight_part_bytes((int64_t)bytes), bias, bytes);
  return CS_OK;
}

static cs_status batch_norm_launch(const cs_op_desc *desc, const char *, const void *const *inputs,
                                   const void *weights, void *output, cudaStream_t stream) {
  const char *scale = static_cast<const char *>(weights);
  const char *shift = scale + weight_part_bytes(channels_of(desc) * (int64_t)sizeof(float));
  Elementwise e = {&desc->inputs[0],
                   desc->has_residual ? &desc->inputs[1] : NULL,
                   &desc->output,
                   inputs[0],
                   desc->has_residual ? inputs[1] : NULL,
                   reinterpret_cast<const float *>(scale),
                   reinterpret_cast<const float *>(shift),
                   output,
                   CS_OP_ADD,
                   desc->activation};
  return launch_elementwise(e, stream);
}

const KernelFamily cs_batch_norm_family = {batch_norm_variants, channel_weight_bytes, channel_pack,
                                           batch_norm_launch};
