/* conv_stationary_t.cu's kernel on the host: the same plan, packed weights, order of products and
 * places of outputs, without a GPU. */
#ifndef CONVSCHED_TESTS_UNIT_STATIONARY_T_EMULATED_H_
#define CONVSCHED_TESTS_UNIT_STATIONARY_T_EMULATED_H_

#include "backend/cuda/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a run did that it must not. */
typedef struct stationary_t_faults {
  int64_t misplaced; /* boxes, parts or rows of taps that are not whole groups of swizzled rows */
  int64_t overrun;   /* pixels past a stage, weights past those that a block loads */
  int64_t outputs;   /* stored */
} stationary_t_faults;

bool stationary_t_takes(const cs_op_desc *desc);

/* NULL: there are no more variants. */
const char *stationary_t_id(int variant);

/* All tiles of a launch one after another; weight and bias f32, input and output as the desc says
 * (activation none, relu or leaky relu). NOT_FOUND: too much for shared memory. */
cs_status stationary_t_emulate(const cs_op_desc *desc, int variant, const void *input,
                               const float *weight, const float *bias, void *output,
                               stationary_t_faults *faults) CS_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
