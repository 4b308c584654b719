/* Transposed convolutions by steps of 2 to few channels: last layers of generators, and what meets
 * the edges of parts, blocks, steps, fragments and vectors. */
#ifndef CONVSCHED_TESTS_FEW_T_CASES_H_
#define CONVSCHED_TESTS_FEW_T_CASES_H_

#include "conformance_cases.h"

#define FEW_T_FAMILY "cuda.mma_few_t."

static inline void few_t_case(cc_context *x, const char *name, const int in[4], const int conv[3],
                              const int pads[4], const int more[2], int flags, cs_act_kind act) {
  cc_conv_transpose(x, name, in, conv, CC2(2, 2), pads, CC2(1, 1), more, 1, flags, act);
}

/* Every kernel size with each parity of the left padding. */
static inline void few_t_sizes(cc_context *x) {
  const int *zero = CC2(0, 0), *one = CC2(1, 1), *none = CC4(0, 0, 0, 0), *p1 = CC4(1, 1, 1, 1);
  few_t_case(x, "k3_p1_more", CC4(2, 16, 9, 14), CC3(3, 3, 3), p1, one, CC_BIAS, CS_ACT_TANH);
  few_t_case(x, "k3_p0", CC4(1, 24, 5, 17), CC3(8, 3, 3), none, zero, 0, CS_ACT_NONE);
  few_t_case(x, "k4_p0", CC4(1, 40, 6, 16), CC3(3, 4, 4), none, zero, CC_BIAS, CS_ACT_NONE);
  few_t_case(x, "k4_p2", CC4(2, 64, 7, 9), CC3(2, 4, 4), CC4(2, 2, 2, 2), zero, CC_BIAS,
             CS_ACT_NONE);
  few_t_case(x, "k4_p1_many", CC4(2, 32, 8, 8), CC3(7, 4, 4), p1, zero, CC_BIAS, CS_ACT_NONE);
  few_t_case(x, "k5_p2_more", CC4(2, 64, 14, 14), CC3(1, 5, 5), CC4(2, 2, 2, 2), one, CC_BIAS,
             CS_ACT_TANH);
  few_t_case(x, "k5_p1", CC4(1, 48, 11, 20), CC3(3, 5, 5), p1, zero, 0, CS_ACT_NONE);
  few_t_case(x, "k5_asym", CC4(1, 8, 6, 5), CC3(5, 5, 5), CC4(1, 2, 2, 1), zero, CC_BIAS,
             CS_ACT_NONE);
  few_t_case(x, "k3_p2", CC4(1, 8, 9, 9), CC3(4, 3, 3), CC4(2, 2, 2, 2), CC2(1, 0), CC_BIAS,
             CS_ACT_NONE);
}

/* Kernels of 4 × 4, padding 1. */
static inline void few_t_generators(cc_context *x) {
  const int *zero = CC2(0, 0), *p1 = CC4(1, 1, 1, 1);
  few_t_case(x, "dcgan", CC4(2, 64, 32, 32), CC3(3, 4, 4), p1, zero, 0, CS_ACT_TANH);
  few_t_case(x, "mnist", CC4(3, 64, 14, 14), CC3(1, 4, 4), p1, zero, CC_BIAS, CS_ACT_TANH);
  few_t_case(x, "wide", CC4(1, 64, 5, 65), CC3(3, 4, 4), p1, zero, CC_BIAS, CS_ACT_NONE);
  few_t_case(x, "rgba_odd", CC4(1, 64, 7, 33), CC3(4, 4, 4), p1, CC2(0, 1), CC_BIAS, CS_ACT_NONE);
  few_t_case(x, "two_filters", CC4(2, 16, 3, 16), CC3(2, 4, 4), p1, zero, CC_BIAS, CS_ACT_NONE);
  few_t_case(x, "pixel", CC4(5, 64, 1, 1), CC3(3, 4, 4), p1, zero, CC_BIAS, CS_ACT_NONE);
  few_t_case(x, "tail_step", CC4(1, 24, 6, 10), CC3(3, 4, 4), p1, zero, CC_BIAS, CS_ACT_NONE);
  few_t_case(x, "one_vector", CC4(1, 8, 4, 19), CC3(3, 4, 4), p1, zero, CC_BIAS, CS_ACT_NONE);
  few_t_case(x, "held_tail", CC4(1, 56, 6, 10), CC3(3, 4, 4), p1, zero, CC_BIAS, CS_ACT_NONE);
  few_t_case(x, "channels_128", CC4(1, 128, 9, 20), CC3(3, 4, 4), p1, zero, CC_BIAS, CS_ACT_NONE);
  few_t_case(x, "high", CC4(1, 32, 40, 4), CC3(3, 4, 4), CC4(3, 1, 0, 1), CC2(1, 0), CC_BIAS,
             CS_ACT_NONE);
  few_t_case(x, "pad_3", CC4(1, 16, 9, 9), CC3(3, 4, 4), CC4(3, 3, 3, 3), zero, CC_BIAS,
             CS_ACT_NONE);
  few_t_case(x, "slices", CC4(2, 64, 8, 8), CC3(3, 4, 4), p1, zero,
             CC_BIAS | CC_VIEW_IN | CC_VIEW_OUT, CS_ACT_NONE);
  few_t_case(x, "odd_slice", CC4(2, 32, 6, 18), CC3(4, 4, 4), p1, zero,
             CC_BIAS | CC_VIEW_OUT | CC_VIEW_ODD, CS_ACT_NONE);
}

/* The caller frees table->cases. */
static inline void few_t_cases(conformance_table *table) {
  const cs_layout nhwc[] = {CS_LAYOUT_NHWC};
  cc_context x = {table, nhwc, 1};
  few_t_generators(&x);
  few_t_sizes(&x);
}

/* Whether input pixel `at` is a tap of output pixel `out`. */
static inline bool few_t_is_tap(const cs_conv_attrs *conv, const int64_t out[2],
                                const int64_t at[2]) {
  for (int axis = 0; axis < 2; axis++) {
    int64_t tap = out[axis] + conv->pads[axis] - at[axis] * conv->strides[axis];
    if (tap < 0 || tap >= conv->kernel[axis]) return false;
  }
  return true;
}

static inline void few_t_infinite_cases(conformance_table *table) {
  const cs_layout nhwc[] = {CS_LAYOUT_NHWC};
  cc_context x = {table, nhwc, 1};
  const int *one = CC2(1, 1), *zero = CC2(0, 0), *p1 = CC4(1, 1, 1, 1);
  few_t_case(&x, "infinite_4x4", CC4(2, 64, 7, 33), CC3(3, 4, 4), p1, zero, CC_BIAS, CS_ACT_NONE);
  few_t_case(&x, "infinite_5x5", CC4(2, 16, 7, 18), CC3(3, 5, 5), CC4(2, 2, 2, 2), one, CC_BIAS,
             CS_ACT_NONE);
  few_t_case(&x, "infinite_3x3", CC4(2, 16, 7, 18), CC3(6, 3, 3), p1, one, CC_BIAS, CS_ACT_NONE);
}

/* Outputs in planes, whatever the inputs. */
static inline void few_t_planar(cs_op_desc *desc) {
  int64_t alignment = desc->output.alignment;
  desc->output = cs_tensor_dense(&desc->output.shape, desc->output.dtype, CS_LAYOUT_NCHW);
  desc->output.alignment = alignment;
}

static inline int few_t_variants(const cs_op_desc *desc, const char **of_family) {
  const char *ids[CS_CUDA_VARIANTS_MOST];
  int n = cs_cuda_kernel_variants(desc, ids, CS_CUDA_VARIANTS_MOST), found = 0;
  for (int i = 0; i < n; i++)
    if (strncmp(ids[i], FEW_T_FAMILY, strlen(FEW_T_FAMILY)) == 0) of_family[found++] = ids[i];
  return found;
}

#endif
