#include <stdlib.h>
#include <string.h>

#include "backend/cuda/columns_exec.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cudnn_engines.h"
#include "backend/cuda/cudnn_legacy.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/winograd_exec.h"

int cs_cuda_layouts(const cs_backend *backend, cs_precision precision,
                    cs_layout out[CS_MAX_DEVICE_LAYOUTS]) {
  (void)backend;
  bool channels_last = precision != CS_PRECISION_F32;
  out[0] = channels_last ? CS_LAYOUT_NHWC : CS_LAYOUT_NCHW;
  out[1] = channels_last ? CS_LAYOUT_NCHW : CS_LAYOUT_NHWC;
  return 2;
}

bool cs_cuda_takes_prologue(cs_backend *backend, const cs_op_desc *desc) {
  (void)backend;
  return cs_cuda_kernel_takes_prologue(desc);
}

/* cuDNN's version is in the device's identity. cuBLASLt is not loaded where none of its candidates
 * was recorded. */
cs_presence cs_cuda_presence(cs_backend *backend, const char *candidate) {
  const cs_cublaslt_api *api = NULL;
  int pieces;
  const char *product = cs_columns_id_parse(candidate, &pieces);
  (void)backend;
  if (product) candidate = product;
  if (strncmp(candidate, CS_CUBLASLT_PREFIX, strlen(CS_CUBLASLT_PREFIX)) != 0) {
    return CS_PRESENCE_UNTOLD;
  }
  cs_status_free(cs_cublaslt_get(&api));
  return cs_cublaslt_presence(api, candidate);
}

/* "cuda.maxpool.v1" → "cuda.maxpool". */
static cs_status family_of_kernel(const char *id, char **out) {
  CS_RETURN_IF_ERROR(cs_strdup_to(id, out));
  char *dot = NULL;
  for (char *p = *out; *p; p++) {
    if (*p == '.') dot = p;
  }
  if (dot) *dot = '\0';
  return CS_OK;
}

static cs_status add_kernel(const char *id, cs_candidate_list *out) {
  cs_candidate candidate = {
      .deterministic = true, .fused = true, .merges = cs_cuda_kernel_merges(id)};
  cs_status st = cs_strdup_to(id, &candidate.id);
  if (st == CS_OK) st = family_of_kernel(id, &candidate.family);
  if (st == CS_OK) st = cs_candidate_list_add(out, &candidate);
  cs_candidate_clear(&candidate);
  return st;
}

static cs_status add_kernels(const cs_op_desc *desc, cs_candidate_list *out) {
  const char *ids[CS_CUDA_VARIANTS_MOST];
  int n = cs_cuda_kernel_variants(desc, ids, CS_CUDA_VARIANTS_MOST);
  n = (int)cs_min_i64(n, CS_CUDA_VARIANTS_MOST);
  for (int i = 0; i < n; i++) CS_RETURN_IF_ERROR(add_kernel(ids[i], out));
  return CS_OK;
}

static cs_status add_baseline(const char *id, const cs_enumerate_options *options,
                              cs_candidate_list *out) {
  char *family = NULL;
  CS_RETURN_IF_ERROR(family_of_kernel(id, &family));
  bool wanted = cs_baseline_is_wanted(options, family);
  free(family);
  return wanted ? add_kernel(id, out) : CS_OK;
}

cs_status cs_cuda_baselines(cs_backend *backend, const cs_op_desc *desc,
                            const cs_enumerate_options *options, cs_candidate_list *out) {
  const char *ids[CS_CUDA_VARIANTS_MOST];
  CS_RETURN_IF_ERROR(cs_cuda_enter(cs_cuda(backend)));
  int n = cs_cuda_kernel_baselines(desc, ids, CS_CUDA_VARIANTS_MOST);
  n = (int)cs_min_i64(n, CS_CUDA_VARIANTS_MOST);
  for (int i = 0; i < n; i++) CS_RETURN_IF_ERROR(add_baseline(ids[i], options, out));
  return cs_columns_baselines(desc, options, out);
}

cs_status cs_cuda_enumerate(cs_backend *backend, const cs_op_desc *desc,
                            const cs_enumerate_options *options, cs_candidate_list *out) {
  cs_cuda_backend *cuda = cs_cuda(backend);
  cs_status st = CS_OK;
  cs_cudnn_slot *slot = NULL;
  cs_cudnn_problem problem;
  cs_cublaslt_problem product;
  CS_RETURN_IF_ERROR(cs_cuda_enter(cuda));
  if (cs_cudnn_problem_make(desc, &problem)) {
    CS_TRY(st, cs_cudnn_acquire(&cuda->pool, &slot), done);
    cs_cudnn_target target = {.handle = slot->handle};
    CS_TRY(st, cs_cudnn_enumerate(&target, &problem, options, out), done);
    CS_TRY(st, cs_cudnn_legacy_enumerate(slot->handle, &problem, options, out), done);
  }
  if (!cs_cublaslt_problem_make(desc, &product)) {
    CS_TRY(st, cs_cublaslt_enumerate(&cuda->cublaslt, &cuda->base.logger, &product, options, out),
           done);
  }
  CS_TRY(st, cs_columns_enumerate(cuda, desc, options, out), done);
  CS_TRY(st, cs_winograd_enumerate(desc, options, out), done);
  CS_TRY(st, add_kernels(desc, out), done);
done:
  cs_cudnn_release(&cuda->pool, slot);
  return st;
}
