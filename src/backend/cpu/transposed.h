/* Transposed convolutions computed in ways of their own: as one matrix product whose columns are
 * then summed up, by gathering, and by scattering. f32, one group, NCHW or NHWC. */
#ifndef CONVSCHED_BACKEND_CPU_TRANSPOSED_H_
#define CONVSCHED_BACKEND_CPU_TRANSPOSED_H_

#include "graph/op.h"

typedef enum cpu_transposed {
  CPU_TRANSPOSED_NONE,
  /* A product of all pixels with all taps (oneDNN's sgemm), and every output's sum of its columns.
   */
  CPU_TRANSPOSED_GEMM,
  /* Every output gathers its inputs. Those of one remainder by the stride have the same taps: they
   * are a dense convolution, several outputs at a time without a branch. */
  CPU_TRANSPOSED_GATHER,
  /* Every input is added to the outputs that it reaches, in plain loops: what to be compared with.
   */
  CPU_TRANSPOSED_SCATTER,
  CPU_TRANSPOSED_FORMS
} cpu_transposed;

const char *cpu_transposed_name(cpu_transposed form); /* "gemm", "gather", "scatter" */
bool cpu_transposed_takes(const cs_op_desc *desc);
int64_t cpu_transposed_workspace(const cs_op_desc *desc, cpu_transposed form); /* bytes */
int64_t cpu_transposed_weight_bytes(const cs_op_desc *desc, cpu_transposed form);
/* PyTorch-shaped weight and bias (NULL: none) as the form reads them. `out` is zeros. */
void cpu_transposed_pack(const cs_op_desc *desc, cpu_transposed form, const float *weight,
                         const float *bias, float *out);
/* y = act(x transposed-convolved + bias), on the calling thread's number of threads. */
cs_status cpu_transposed_run(const cs_op_desc *desc, cpu_transposed form, const float *x,
                             const float *weights, float *workspace, float *y) CS_MUST_USE;

#endif
