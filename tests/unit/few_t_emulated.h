/* conv_few_t.cu's kernel on the host: the same plan, places and order of products, with the tensor
 * cores' and ldmatrix's layouts as NVIDIA documents them. */
#ifndef CONVSCHED_TESTS_UNIT_FEW_T_EMULATED_H_
#define CONVSCHED_TESTS_UNIT_FEW_T_EMULATED_H_

#include "backend/cuda/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a run did that it must not. */
typedef struct few_t_faults {
  int64_t reads_outside; /* of the input */
  int64_t places_twice;  /* vectors of a row that land where another one did */
  int64_t slot_overrun;  /* bytes past a row's slot */
  int64_t misaligned;    /* vectors */
  int64_t unwritten;     /* sums stored that nothing had been staged for */
  int64_t outputs;       /* stored */
} few_t_faults;

/* All warps of a launch one after another, with `warps` of them, in parts of `strip` rows of blocks
 * (0: as it is launched); input and output as the desc says
 * (activation none or tanh), weights as packed. `input_bytes`: from `input` on. */
cs_status few_t_emulate(const cs_op_desc *desc, const char *id, int warps, int strip,
                        const void *input, int64_t input_bytes, const void *weights, void *output,
                        few_t_faults *faults) CS_MUST_USE;

/* The kernel's tanh, but for the device's own exponential and quotient. */
float few_t_tanh(float x);

#ifdef __cplusplus
}
#endif
#endif
