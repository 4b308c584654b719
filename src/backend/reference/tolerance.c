/* Error measures and their limits; docs/verification.md derives the constants. */
#include <math.h>

#include "backend/reference/reference.h"
#include "profiler/candidate.h"

cs_error_measure cs_measure_error(const float *out, const double *value, const double *magnitude,
                                  int64_t n) {
  cs_error_sums sums = cs_no_error();
  for (int64_t i = 0; i < n; i++) cs_error_add(&sums, (double)out[i], value[i], magnitude[i]);
  return cs_error_of(&sums);
}

static const double unit_f32 = 0x1p-24;

static double storage_unit(cs_precision precision) {
  switch (cs_precision_storage(precision)) {
    case CS_DTYPE_F16:
      return 0x1p-11;
    case CS_DTYPE_BF16:
      return 0x1p-8;
    default:
      return unit_f32;
  }
}

/* Has an exponential in it, or the like. */
static bool is_curved(cs_act_kind kind) {
  switch (kind) {
    case CS_ACT_SIGMOID:
    case CS_ACT_TANH:
    case CS_ACT_ELU:
    case CS_ACT_SWISH:
    case CS_ACT_SELU:
    case CS_ACT_EXP:
    case CS_ACT_SOFTPLUS:
    case CS_ACT_ERF:
    case CS_ACT_GELU:
      return true;
    default:
      return false;
  }
}

/* Elementary functions (exp, tanh, pow, a reciprocal) in f32 arithmetic, in units of 2^-24. */
static double function_units(const cs_op_desc *desc) {
  switch (desc->op) {
    case CS_OP_INSTANCE_NORM:
    case CS_OP_LRN:
    case CS_OP_SOFTMAX:
    case CS_OP_POW:
      return 64;
    default:
      break;
  }
  bool curved = is_curved(cs_op_own_activation(desc->op, &desc->attrs).kind) ||
                is_curved(desc->activation.kind);
  return curved ? 16 : 0;
}

static bool is_product(cs_op op) {
  return op == CS_OP_CONV || op == CS_OP_CONV_TRANSPOSE || op == CS_OP_GEMM || op == CS_OP_MATMUL;
}

/* The transforms of larger filters have larger constants. */
static double winograd_factor(const cs_op_desc *desc) {
  const int64_t *kernel = desc->attrs.conv.kernel;
  return kernel[0] <= 3 && kernel[1] <= 3 ? 12 : 512;
}

/* Sums of n terms in f32. Tensor cores align and truncate what they add, which drifts with n. */
static double accumulation(const cs_op_desc *desc, uint32_t notes) {
  double n = (double)cs_op_reduction(desc);
  if (n <= 1) return 2 * unit_f32;
  double units = 8 + 4 * sqrt(n);
  if (desc->precision != CS_PRECISION_F32) units += n / 4;
  if (notes & CS_NOTE_FFT) units *= 8;
  if (notes & CS_NOTE_WINOGRAD) units *= winograd_factor(desc);
  double limit = units * unit_f32;
  if (notes & CS_NOTE_REDUCED_PRECISION_REDUCTION) limit += 0x1p-11 * (2 + sqrt(n) / 2);
  return limit;
}

/* The same output type on both sides is no arithmetic at all for these. */
static bool moves_only(const cs_op_desc *desc) {
  cs_op op = desc->op;
  if (op == CS_OP_MAX || op == CS_OP_MIN) return desc->activation.kind == CS_ACT_NONE;
  return op == CS_OP_MAX_POOL || op == CS_OP_PAD || op == CS_OP_COPY || op == CS_OP_RELU ||
         op == CS_OP_CLIP || op == CS_OP_GLOBAL_MAX_POOL || op == CS_OP_REDUCE_MAX ||
         op == CS_OP_REDUCE_MIN || op == CS_OP_ABS || op == CS_OP_NEG || op == CS_OP_TRANSPOSE ||
         op == CS_OP_SLICE || (op == CS_OP_RESIZE && desc->attrs.resize.mode == CS_RESIZE_NEAREST);
}

void cs_tolerance(const cs_op_desc *desc, uint32_t notes, double *rel_l2, double *max_scaled) {
  double unit = storage_unit(desc->precision);
  if (desc->op == CS_OP_COPY)
    unit = desc->output.dtype == CS_DTYPE_F32   ? unit_f32
           : desc->output.dtype == CS_DTYPE_F16 ? 0x1p-11
                                                : 0x1p-8;
  if (moves_only(desc)) {
    *max_scaled = *rel_l2 = 1.01 * unit;
    return;
  }
  double rounding = unit == unit_f32 ? 2 * unit : 2.01 * unit;
  double input = 0;
  if (is_product(desc->op)) {
    if (desc->precision == CS_PRECISION_TF32) input = 0x1p-9;
    if (notes & CS_NOTE_DOWN_CONVERT_INPUTS) input = fmax(input, 0x1p-7);
    if ((notes & (CS_NOTE_WINOGRAD | CS_NOTE_FFT)) && desc->precision != CS_PRECISION_F32)
      input = fmax(input, 16 * fmax(unit, 0x1p-11));
  }
  if (desc->has_prologue) input += 1.01 * unit + 2 * unit_f32;
  double sum = accumulation(desc, notes) + function_units(desc) * unit_f32;
  *max_scaled = rounding + input + sum;
  *rel_l2 = (unit == unit_f32 ? 4 : 2) * *max_scaled;
}
