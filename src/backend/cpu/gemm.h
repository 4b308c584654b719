/* Dense layers in ways of their own, to be compared with: rungs of a ladder whose top is oneDNN.
 * f32, dense, no residual. */
#ifndef CONVSCHED_BACKEND_CPU_GEMM_H_
#define CONVSCHED_BACKEND_CPU_GEMM_H_

#include "graph/op.h"

typedef enum cpu_gemm {
  CPU_GEMM_NONE,
  CPU_GEMM_NAIVE,   /* three loops: every output a sum of its own */
  CPU_GEMM_BLOCKED, /* tiles of sums in registers, blocks of factors in the caches */
  CPU_GEMM_FORMS
} cpu_gemm;

const char *cpu_gemm_name(cpu_gemm form); /* "naive", "blocked" */
bool cpu_gemm_takes(const cs_op_desc *desc);
int64_t cpu_gemm_weight_bytes(const cs_op_desc *desc, cpu_gemm form);
/* PyTorch-shaped weight and bias (NULL: none) as the form reads them. `out` is zeros. */
void cpu_gemm_pack(const cs_op_desc *desc, cpu_gemm form, const float *weight, const float *bias,
                   float *out);
/* y = act(x · Wᵀ + bias), on the calling thread's number of threads. */
void cpu_gemm_run(const cs_op_desc *desc, cpu_gemm form, const float *x, const float *weights,
                  float *y);

#endif
