/* Operators: the table, their attributes, and the concrete description of one operation
 * (cs_op_desc) that backends, profiler and scheduler share. Pure data. */
#ifndef CONVSCHED_GRAPH_OP_H_
#define CONVSCHED_GRAPH_OP_H_

#include <jansson.h>

#include "base/base.h"

#define CS_MAX_RANK 8

/* X(enum suffix, name). Semantics are ONNX's. CS_OP_COPY is not in the format: it is the layout
 * transform, cast or concat copy that lowering inserts. */
#define CS_OPS(X)                             \
  X(CONV, "Conv")                             \
  X(CONV_TRANSPOSE, "ConvTranspose")          \
  X(GEMM, "Gemm")                             \
  X(BATCH_NORM, "BatchNormalization")         \
  X(RELU, "Relu")                             \
  X(LEAKY_RELU, "LeakyRelu")                  \
  X(CLIP, "Clip")                             \
  X(SIGMOID, "Sigmoid")                       \
  X(TANH, "Tanh")                             \
  X(ADD, "Add")                               \
  X(MUL, "Mul")                               \
  X(SUB, "Sub")                               \
  X(DIV, "Div")                               \
  X(MAX, "Max")                               \
  X(MIN, "Min")                               \
  X(POW, "Pow")                               \
  X(PRELU, "PRelu")                           \
  X(ELU, "Elu")                               \
  X(SELU, "Selu")                             \
  X(HARD_SIGMOID, "HardSigmoid")              \
  X(HARD_SWISH, "HardSwish")                  \
  X(SWISH, "Swish")                           \
  X(SQRT, "Sqrt")                             \
  X(ABS, "Abs")                               \
  X(NEG, "Neg")                               \
  X(EXP, "Exp")                               \
  X(SOFTPLUS, "Softplus")                     \
  X(ERF, "Erf")                               \
  X(GELU, "Gelu")                             \
  X(MAX_POOL, "MaxPool")                      \
  X(AVERAGE_POOL, "AveragePool")              \
  X(GLOBAL_AVERAGE_POOL, "GlobalAveragePool") \
  X(GLOBAL_MAX_POOL, "GlobalMaxPool")         \
  X(REDUCE_MEAN, "ReduceMean")                \
  X(REDUCE_SUM, "ReduceSum")                  \
  X(REDUCE_MAX, "ReduceMax")                  \
  X(REDUCE_MIN, "ReduceMin")                  \
  X(INSTANCE_NORM, "InstanceNormalization")   \
  X(LRN, "LRN")                               \
  X(SOFTMAX, "Softmax")                       \
  X(CONCAT, "Concat")                         \
  X(FLATTEN, "Flatten")                       \
  X(PAD, "Pad")                               \
  X(RESHAPE, "Reshape")                       \
  X(TRANSPOSE, "Transpose")                   \
  X(SLICE, "Slice")                           \
  X(RESIZE, "Resize")                         \
  X(IDENTITY, "Identity")                     \
  X(DROPOUT, "Dropout")                       \
  X(COPY, "Copy")

typedef enum cs_op {
#define CS_OP_ENUM(suffix, name) CS_OP_##suffix,
  CS_OPS(CS_OP_ENUM)
#undef CS_OP_ENUM
      CS_OP_COUNT
} cs_op;
const char *cs_op_name(cs_op op);
bool cs_op_parse(const char *name, cs_op *out); /* false: unknown (Copy counts as unknown) */

/* Attributes by family; H before W; pads are {top, left, bottom, right} as in ONNX. */
typedef struct cs_conv_attrs { /* Conv, ConvTranspose */
  int64_t out_channels, group;
  int64_t kernel[2], strides[2], pads[4], dilations[2];
  int64_t output_padding[2]; /* ConvTranspose */
  bool bias;
} cs_conv_attrs;
typedef struct cs_gemm_attrs { /* y = x·Wᵀ + b; x [N, in_features] */
  int64_t out_features;
  bool bias;
} cs_gemm_attrs;
typedef struct cs_pool_attrs { /* MaxPool, AveragePool */
  int64_t kernel[2], strides[2], pads[4], dilations[2];
  bool ceil_mode, count_include_pad;
} cs_pool_attrs;
typedef struct cs_lrn_attrs {
  int64_t size;
  double alpha, beta, bias;
} cs_lrn_attrs;
typedef struct cs_shape {
  int rank;
  int64_t dims[CS_MAX_RANK]; /* CS_DIM_N in dims[0] while the batch is symbolic */
} cs_shape;
typedef struct cs_binary_attrs { /* Add, Mul, Sub, Div, Max, Min, Pow, PRelu */
  cs_shape operand;              /* of a constant that stands for one input; rank 0: two inputs */
  bool operand_first;            /* constant op x instead of x op constant */
} cs_binary_attrs;
typedef struct cs_reduce_attrs { /* ReduceMean, ReduceSum, ReduceMax, ReduceMin */
  int n_axes;                    /* 0: all of them, before shapes are inferred */
  int64_t axes[CS_MAX_RANK];     /* ascending and non-negative once shapes are inferred */
  bool keepdims;
} cs_reduce_attrs;
typedef struct cs_transpose_attrs {
  cs_shape input_shape;      /* the input read as such a tensor, each axis split; rank 0: its own */
  int64_t perm[CS_MAX_RANK]; /* output axis i is input axis perm[i], of input_shape's axes */
  int n_perm;
  cs_shape output_shape; /* axes of the result merged to such ones; rank 0: none */
} cs_transpose_attrs;
/* Once shapes are inferred: start and end within the axis; an end of −extent − 1 is before its
 * beginning. */
typedef struct cs_slice_attrs {
  int n_axes;
  int64_t axes[CS_MAX_RANK], starts[CS_MAX_RANK], ends[CS_MAX_RANK], steps[CS_MAX_RANK];
} cs_slice_attrs;
typedef enum cs_pad_mode {
  CS_PAD_CONSTANT,
  CS_PAD_REFLECT, /* mirrored at the border element, which is not repeated */
  CS_PAD_EDGE,    /* the border element */
  CS_PAD_WRAP     /* the other end */
} cs_pad_mode;
typedef struct cs_pad_attrs {
  int rank;                      /* of the list: 2 · rank pads */
  int64_t pads[2 * CS_MAX_RANK]; /* begins of all axes, then ends; negative: cut off */
  double value;                  /* constant mode */
  cs_pad_mode mode;
} cs_pad_attrs;
typedef enum cs_resize_mode { CS_RESIZE_NEAREST, CS_RESIZE_LINEAR, CS_RESIZE_CUBIC } cs_resize_mode;
typedef enum cs_resize_coordinates {
  CS_RESIZE_HALF_PIXEL,
  CS_RESIZE_HALF_PIXEL_SYMMETRIC,
  CS_RESIZE_PYTORCH_HALF_PIXEL,
  CS_RESIZE_ALIGN_CORNERS,
  CS_RESIZE_ASYMMETRIC,
  CS_RESIZE_TF_CROP,
  CS_RESIZE_TF_HALF_PIXEL_FOR_NN
} cs_resize_coordinates;
typedef enum cs_resize_nearest {
  CS_RESIZE_ROUND_PREFER_FLOOR,
  CS_RESIZE_ROUND_PREFER_CEIL,
  CS_RESIZE_FLOOR,
  CS_RESIZE_CEIL
} cs_resize_nearest;
typedef struct cs_resize_attrs { /* of H and W */
  int64_t sizes[2];              /* of the output */
  double scales[2];              /* 0: output by input */
  double roi[4];                 /* tf_crop_and_resize: begins, then ends, 1 is the whole input */
  double extrapolation_value;    /* … where it reaches past the input */
  double cubic_coeff_a;
  cs_resize_mode mode;
  cs_resize_coordinates coordinates;
  cs_resize_nearest nearest;
  bool exclude_outside; /* weights of what is outside are 0, the others add up to 1 */
  bool antialias; /* linear, cubic: an axis that shrinks has its filter widened by 1 / scale */
} cs_resize_attrs;
typedef union cs_attrs {
  cs_conv_attrs conv;
  cs_gemm_attrs gemm;
  cs_pool_attrs pool;
  cs_lrn_attrs lrn;
  cs_binary_attrs binary;
  cs_reduce_attrs reduce;
  struct {
    double epsilon;
  } batch_norm; /* and InstanceNormalization */
  struct {
    double alpha, beta;
  } unary; /* of Elu … Gelu, in the order of cs_unary_info */
  struct {
    double alpha;
  } leaky_relu;
  struct {
    double min, max;
  } clip;
  struct {
    int64_t axis;
  } axis; /* Concat, Softmax, Flatten; made non-negative by the loader */
  cs_shape reshape;
  cs_transpose_attrs transpose;
  cs_slice_attrs slice;
  cs_pad_attrs pad;
  cs_resize_attrs resize;
} cs_attrs;

/* A function of one number: an activation fused behind an operation, y = act(x), or an operator of
 * its own. Up to CS_ACT_SWISH they may be fused. */
typedef enum cs_act_kind {
  CS_ACT_NONE,
  CS_ACT_RELU,
  CS_ACT_LEAKY_RELU,
  CS_ACT_CLIP,
  CS_ACT_SIGMOID,
  CS_ACT_TANH,
  CS_ACT_ELU,          /* alpha (exp(x) − 1) below zero */
  CS_ACT_HARD_SIGMOID, /* alpha x + beta, cut to 0 … 1 */
  CS_ACT_HARD_SWISH,   /* x times (x / 6 + 1/2, cut to 0 … 1) */
  CS_ACT_SWISH,        /* x / (1 + exp(−alpha x)) */
  CS_ACT_SELU,         /* beta x; beta alpha (exp(x) − 1) below zero */
  CS_ACT_SQRT,
  CS_ACT_ABS,
  CS_ACT_NEG,
  CS_ACT_EXP,
  CS_ACT_SOFTPLUS, /* log(1 + exp(x)) */
  CS_ACT_ERF,
  CS_ACT_GELU /* x (1 + erf(x / √2)) / 2 */
} cs_act_kind;
typedef struct cs_activation {
  cs_act_kind kind;
  double alpha; /* LeakyRelu's slope; Clip's min; as above */
  double beta;  /* Clip's max; as above */
} cs_activation;
const char *cs_act_name(cs_act_kind kind); /* "none", "relu", … */
int cs_act_params(cs_act_kind kind);       /* 0; 1: alpha; 2: beta too */
/* Whether passes put it behind another operation. The others lose too much of what rounding left
 * (Sqrt near 0, Exp), or follow none in networks. */
bool cs_act_fuses(cs_act_kind kind);
/* What Relu … Gelu compute; none for other operators. */
cs_activation cs_op_own_activation(cs_op op, const cs_attrs *attrs);

typedef enum cs_dtype { CS_DTYPE_F32, CS_DTYPE_F16, CS_DTYPE_BF16 } cs_dtype;
int64_t cs_dtype_size(cs_dtype dtype);
const char *cs_dtype_name(cs_dtype dtype);
/* The storage type of activations and weights under a precision (f32 and tf32 store f32). */
cs_dtype cs_precision_storage(cs_precision precision);

/* How a rank-4 tensor lies in memory. Tensors of other ranks are row-major (NCHW). NCHW16C/NCHW8C:
 * channels in blocks of 16/8 lanes, the last block padded with zeros (oneDNN's nChw16c/nChw8c). */
typedef enum cs_layout {
  CS_LAYOUT_NCHW,
  CS_LAYOUT_NHWC,
  CS_LAYOUT_NCHW16C,
  CS_LAYOUT_NCHW8C,
  CS_LAYOUT_COUNT
} cs_layout;
const char *cs_layout_name(cs_layout layout);
bool cs_layout_parse(const char *name, cs_layout *out);
int64_t cs_layout_granule(
    cs_layout layout); /* channel offsets of views are multiples of it: 1, 1, 16, 8 */

cs_status cs_shape_elements(const cs_shape *shape,
                            int64_t *out) CS_MUST_USE; /* BAD_INPUT on overflow; N counts as one */
bool cs_shape_equal(const cs_shape *a, const cs_shape *b);
/* The shape of two tensors broadcast against each other: axes lined up from the last one, equal
 * extents or one of 1. false: they do not fit, or a symbolic batch would not come first. */
bool cs_shape_broadcast(const cs_shape *a, const cs_shape *b, cs_shape *out);

/* A tensor as an operation sees it. `strides` in elements; for NCHW and NHWC strides[i] belongs to
 * logical axis i (N, C, H, W); for the blocked layouts strides[1] is the step between channel
 * blocks and the lanes of a block are adjacent. The layout says the *order*; a view into a wider
 * tensor keeps its parent's strides. */
typedef struct cs_tensor_desc {
  cs_shape shape;
  int64_t strides[CS_MAX_RANK];
  cs_dtype dtype;
  cs_layout layout;
  int64_t alignment; /* bytes; largest power of two <= 256 that divides every address it gets */
} cs_tensor_desc;
/* Dense (packed) strides of the layout, alignment 256. */
cs_tensor_desc cs_tensor_dense(const cs_shape *shape, cs_dtype dtype, cs_layout layout);
/* Bytes from the first to behind the last element. */
int64_t cs_tensor_span_bytes(const cs_tensor_desc *desc);
bool cs_tensor_is_dense(const cs_tensor_desc *desc);
/* `desc` as a tensor of the shape it is broadcast to, with strides of 0 where it repeats. One of
 * blocked layout and a single channel comes out as NCHW, since only its first lane is read. */
cs_tensor_desc cs_tensor_broadcast(const cs_tensor_desc *desc, const cs_shape *shape);
/* Element offset of logical index [n, c, h, w] (rank-4). */
int64_t cs_tensor_offset4(const cs_tensor_desc *desc, int64_t n, int64_t c, int64_t h, int64_t w);

#define CS_MAX_OP_INPUTS 3

/* One concrete operation: everything that decides which implementations exist and how fast they
 * are, and nothing else (no names, no pointers).
 *   y = act(op(x; weight) + bias [+ residual])
 * Conv: weight [K, C/group, R, S]; ConvTranspose: weight [C, K/group, R, S]; Gemm: weight
 * [out, in]; BatchNormalization: weight = scale [C], bias = shift [C] (running statistics folded
 * in), always both. Add … PRelu: two inputs, or one and a weight in attrs.binary.operand's shape;
 * they are broadcast to the output's. Concat never reaches a backend (views and Copy tasks replace
 * it), nor do Identity, Dropout, Flatten, Reshape (views or Copy), nor a Slice that is a view.
 * Relu, LeakyRelu, Clip, Sigmoid, Tanh reach it as themselves, their parameter in attrs. Copy:
 * logical shapes equal; dtype, layout, strides differ.
 *
 * A Conv may have a prologue, op(prologue(scale[c] · x + shift[c]); weight), rounded to the storage
 * type before it is multiplied. Scale [C], then shift [C] follow the bias in its array, in f32. */
typedef struct cs_op_desc {
  cs_op op;
  cs_attrs attrs;
  cs_activation activation;
  bool has_bias;
  bool has_prologue;
  cs_activation prologue; /* behind scale and shift of the input's channels */
  bool has_residual;      /* the last input, shaped as the output, added before the activation */
  int n_inputs;           /* data inputs and the residual */
  cs_tensor_desc inputs[CS_MAX_OP_INPUTS];
  cs_tensor_desc output;
  cs_precision precision;
} cs_op_desc;

/* Elements of the weight and bias arrays (0: none), in the shapes above; the bias array includes
 * what a prologue has. */
int64_t cs_op_weight_elements(const cs_op_desc *desc);
int64_t cs_op_bias_elements(const cs_op_desc *desc);
/* Where in the bias array the prologue's scale [C] begins, with shift [C] behind it. */
const float *cs_op_prologue(const cs_op_desc *desc, const float *bias);
/* Shape of the weight as above; rank 0 if none. */
cs_shape cs_op_weight_shape(const cs_op_desc *desc);
/* Add, Mul, Sub, Div, Max, Min, Pow, PRelu (x and its slope). */
bool cs_op_is_binary(cs_op op);
/* Has a binary operator a constant for one of its inputs? */
bool cs_op_has_operand(const cs_op_desc *desc);
/* That constant as backends lay it out: dense in the output's layout, right-aligned to its rank. */
cs_tensor_desc cs_op_operand(const cs_op_desc *desc, cs_dtype dtype);
/* What ReduceMean … ReduceMin and the global pools reduce: `reduced[axis]` of the input's axes;
 * false: another operator. */
bool cs_op_reduces(const cs_op_desc *desc, bool reduced[CS_MAX_RANK]);
/* The output of such an operator with the input's axes, extents of 1 for those reduced. */
cs_tensor_desc cs_op_kept_output(const cs_op_desc *desc);
/* Flatten, Reshape, Identity, Dropout: the elements in the same order. They are views or copies. */
bool cs_op_keeps_order(cs_op op);
/* A Transpose or Slice as a loop nest that copies: axes in the output's order, the first outermost.
 * false: another operator, or one of its tensors has blocks of channels. */
typedef struct cs_movement {
  int rank;
  int64_t size[CS_MAX_RANK], in_stride[CS_MAX_RANK], out_stride[CS_MAX_RANK]; /* elements */
  int64_t in_offset; /* of the first element */
} cs_movement;
bool cs_op_movement(const cs_op_desc *desc, cs_movement *out);
/* What ONNX and the graph format call them; -1: no such name. */
int cs_pad_mode_named(const char *name);
int cs_resize_mode_named(const char *name);
int cs_resize_coordinates_named(const char *name);
int cs_resize_nearest_named(const char *name);
/* The axes of a tensor split into `factors`, outermost first: the stride of each. false: they do
 * not split each axis by itself. */
bool cs_shape_split(const cs_shape *shape, const int64_t *strides, const cs_shape *factors,
                    int64_t factor_strides[CS_MAX_RANK]);
/* What a Slice takes of its k-th listed axis, of extent `extent`. */
typedef struct cs_slice_range {
  int64_t first, step, count;
} cs_slice_range;
cs_slice_range cs_slice_range_of(const cs_slice_attrs *slice, int k, int64_t extent);
/* Whether an input (or the weight: index n_inputs) has to be positive for the result to be a number
 * of ordinary size: a divisor, the base of a power, what a root is taken of. */
bool cs_op_wants_positive(const cs_op_desc *desc, int index);
/* Floating-point operations (a multiply-add is two) and the fewest bytes moved (each input, weight
 * and output once). */
double cs_op_flops(const cs_op_desc *desc);
double cs_op_bytes(const cs_op_desc *desc);
/* Number of products summed into one output element (the reduction length; >= 1). */
int64_t cs_op_reduction(const cs_op_desc *desc);
/* The signature: a stable text of every field, equal exactly when the fields that matter are. It is
 * the first half of a profile key. Alignments of 16 bytes and more count as the same (no vector
 * access is wider); BatchNormalization's epsilon is in its scale already and does not count. free()
 * releases. */
cs_status cs_op_signature(const cs_op_desc *desc, char **out) CS_MUST_USE;
/* Equal but for how tensors lie in memory (layouts, strides, alignments). */
bool cs_signatures_alike(const char *a, const char *b);

/* Output extent of a convolution or pooling axis; < 1 when the window does not fit. With ceil_mode
 * a last window that would start in the end padding is dropped (ONNX, PyTorch). */
int64_t cs_window_extent(int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                         int64_t pad_begin, int64_t pad_end, bool ceil_mode);

#endif
