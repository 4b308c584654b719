/* A prepared candidate, and its binding to memory. */
#ifndef CONVSCHED_BACKEND_CUDA_EXEC_H_
#define CONVSCHED_BACKEND_CUDA_EXEC_H_

#include "backend/cuda/cublaslt.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cudnn_legacy.h"
#include "backend/cuda/cudnn_plan.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/winograd.h"

typedef enum cs_exec_kind {
  CS_EXEC_GRAPH,  /* a graph-API plan */
  CS_EXEC_LEGACY, /* a named cuDNN algorithm */
  CS_EXEC_CUBLASLT,
  CS_EXEC_COLUMNS, /* columns by cuBLASLt, then gathered */
  CS_EXEC_SCATTER, /* every input added to its outputs */
  CS_EXEC_WINOGRAD,
  CS_EXEC_KERNEL /* a kernel of our own */
} cs_exec_kind;

struct cs_exec {
  cs_cuda_backend *backend;
  cs_exec_kind kind;
  char *id;
  cs_op_desc desc;
  cs_cudnn_problem problem; /* graph and legacy: what cuDNN computes */
  bool epilogue;            /* the epilogue kernel follows */
  bool moved;               /* the output is computed at the start of the workspace, then moved */
  cs_tensor_desc staged;    /* moved: what lies there */
  int64_t staging_bytes;    /* of the workspace, what comes before the library's own, or sums */
  int64_t workspace_bytes;
  int64_t weight_bytes;
  int64_t bias_offset; /* in the packed weights; -1: no bias there */
  cs_dtype bias_dtype; /* as packed */
  cs_cudnn_plan *plan; /* graph */
  cs_cudnn_legacy *legacy;
  cs_cublaslt_problem product; /* cuBLASLt, columns: what it computes */
  cs_cublaslt_plan *matmul;    /* the same */
  cs_columns columns;          /* columns */
  const char *rung;            /* columns: by this rung of our own; NULL: by cuBLASLt */
  cs_product_rows rows;        /* of a rung */
  cs_winograd winograd;        /* winograd */
  cs_cuda_kernel kernel;       /* own kernel */
};

cs_status cs_exec_prepare(cs_backend *backend, const cs_op_desc *desc,
                          const cs_candidate *candidate, cs_exec **out) CS_MUST_USE;
void cs_exec_destroy(cs_exec *exec);
int64_t cs_exec_workspace(const cs_exec *exec);
int64_t cs_exec_weight_bytes(const cs_exec *exec);
cs_status cs_exec_pack_weights(const cs_exec *exec, const float *weight, const float *bias,
                               void *host_out) CS_MUST_USE;

/* Sets weight_bytes, bias_offset and bias_dtype (weights.c). */
void cs_exec_plan_weights(cs_exec *exec);

/* A launch with everything that running it needs made beforehand. */
typedef struct cs_bound {
  cs_launch launch; /* name is a copy of its own; waits stay the schedule's */
  char *name;
  cudnnBackendDescriptor_t pack; /* graph plans: the variant pack */
  cublasLtMatmulDesc_t product;  /* cuBLASLt, columns: with the bias's address */
  cs_cuda_merge_part *parts;     /* of the leader of a merged launch: its own and the members' */
  int n_parts;
} cs_bound;
cs_status cs_bound_create(const cs_launch *launch, cs_bound *out) CS_MUST_USE;
/* Makes `member`, whose launch says so, part of the leader's kernel; both stay where they are until
 * they are cleared. BAD_INPUT: no kernel computes both. */
cs_status cs_bound_join(cs_bound *leader, const cs_bound *member) CS_MUST_USE;
void cs_bound_clear(cs_bound *bound);
bool cs_bound_needs_cudnn(const cs_bound *bound);
/* Kernels begin early from this compute capability on. */
#define CS_CUDA_EARLY_CAPABILITY 90
bool cs_cuda_begins_early(const cs_backend *backend, const cs_candidate *candidate);
/* All its kernels are ours, and wait themselves for what comes before (kernel_util.cuh). */
bool cs_bound_waits_itself(const cs_bound *bound);
/* Enqueues on `stream`, of a merged launch all at the leader and nothing at the others; `slot` may
 * be NULL where cuDNN is not needed. Errors name the launch. */
cs_status cs_bound_launch(const cs_bound *bound, cs_cudnn_slot *slot,
                          cudaStream_t stream) CS_MUST_USE;

#endif
