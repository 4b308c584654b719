#include "backend/cuda/cublaslt_algorithm.h"

#include <string.h>

static const struct {
  cublasLtMatmulAlgoConfigAttributes_t name;
  size_t size;
} attributes[CS_CUBLASLT_N_ATTRIBUTES] = {
    [CS_CUBLASLT_TILE] = {CUBLASLT_ALGO_CONFIG_TILE_ID, 4},
    [CS_CUBLASLT_STAGES] = {CUBLASLT_ALGO_CONFIG_STAGES_ID, 4},
    [CS_CUBLASLT_SPLITS] = {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4},
    [CS_CUBLASLT_REDUCTION] = {CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4},
    [CS_CUBLASLT_SWIZZLE] = {CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4},
    [CS_CUBLASLT_CUSTOM] = {CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4},
    [CS_CUBLASLT_INNER] = {CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2},
    [CS_CUBLASLT_CLUSTER] = {CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2},
};

cublasStatus_t cs_cublaslt_set_attribute(const cs_cublaslt_api *api,
                                         cublasLtMatmulAlgo_t *algorithm,
                                         cs_cublaslt_attribute attribute, uint32_t value) {
  uint16_t half = (uint16_t)value;
  bool wide = attributes[attribute].size == sizeof(value);
  if (!wide && half != value) return CUBLAS_STATUS_INVALID_VALUE;
  return api->algorithm_set(algorithm, attributes[attribute].name,
                            wide ? (const void *)&value : (const void *)&half,
                            attributes[attribute].size);
}

static cublasStatus_t get_attribute(const cs_cublaslt_api *api,
                                    const cublasLtMatmulAlgo_t *algorithm,
                                    cs_cublaslt_attribute attribute, uint32_t *out) {
  uint16_t half = 0;
  size_t written = 0;
  bool wide = attributes[attribute].size == sizeof(*out);
  *out = 0;
  cublasStatus_t result =
      api->algorithm_get(algorithm, attributes[attribute].name, wide ? (void *)out : (void *)&half,
                         attributes[attribute].size, &written);
  if (!wide) *out = half;
  return result;
}

cublasStatus_t cs_cublaslt_algorithm_init(const cs_cublaslt *lt, const cs_cublaslt_problem *problem,
                                          int algorithm, cublasLtMatmulAlgo_t *out) {
  memset(out, 0, sizeof(*out));
  return lt->api->algorithm_init(lt->handle, problem->compute, CUDA_R_32F, problem->type,
                                 problem->type, problem->result_type, problem->result_type,
                                 algorithm, out);
}

/* An attribute is set only where it differs: some algorithms refuse to have theirs set. */
static cublasStatus_t set_attributes(const cs_cublaslt_api *api, const cs_cublaslt_id *id,
                                     cublasLtMatmulAlgo_t *algorithm) {
  for (int i = 0; i < CS_CUBLASLT_N_ATTRIBUTES; i++) {
    uint32_t now = 0;
    cublasStatus_t result = get_attribute(api, algorithm, (cs_cublaslt_attribute)i, &now);
    if (result == CUBLAS_STATUS_SUCCESS && now == id->attributes[i]) continue;
    result = cs_cublaslt_set_attribute(api, algorithm, (cs_cublaslt_attribute)i, id->attributes[i]);
    if (result != CUBLAS_STATUS_SUCCESS) return result;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cs_cublaslt_algorithm_of_id(const cs_cublaslt *lt,
                                           const cs_cublaslt_problem *problem,
                                           const cs_cublaslt_id *id, cublasLtMatmulAlgo_t *out) {
  cublasStatus_t result = cs_cublaslt_algorithm_init(lt, problem, (int)id->algorithm, out);
  if (result != CUBLAS_STATUS_SUCCESS) return result;
  result = set_attributes(lt->api, id, out);
  if (result != CUBLAS_STATUS_SUCCESS) return result;
  for (int i = 0; i < CS_CUBLASLT_WORDS; i++) {
    if (id->has_word[i]) out->data[i] = id->words[i];
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cs_cublaslt_id_of_algorithm(const cs_cublaslt *lt,
                                           const cs_cublaslt_problem *problem,
                                           const cublasLtMatmulAlgo_t *algorithm,
                                           cs_cublaslt_id *out) {
  const cs_cublaslt_api *api = lt->api;
  int32_t number = 0;
  size_t written = 0;
  memset(out, 0, sizeof(*out));
  out->version = api->version;
  cublasStatus_t result =
      api->algorithm_get(algorithm, CUBLASLT_ALGO_CONFIG_ID, &number, sizeof(number), &written);
  for (int i = 0; result == CUBLAS_STATUS_SUCCESS && i < CS_CUBLASLT_N_ATTRIBUTES; i++) {
    result = get_attribute(api, algorithm, (cs_cublaslt_attribute)i, &out->attributes[i]);
  }
  if (result != CUBLAS_STATUS_SUCCESS) return result;
  out->algorithm = (uint32_t)number;
  cublasLtMatmulAlgo_t made;
  result = cs_cublaslt_algorithm_of_id(lt, problem, out, &made);
  if (result != CUBLAS_STATUS_SUCCESS) return result;
  for (int i = 0; i < CS_CUBLASLT_WORDS; i++) {
    out->has_word[i] = made.data[i] != algorithm->data[i];
    if (out->has_word[i]) out->words[i] = algorithm->data[i];
  }
  return CUBLAS_STATUS_SUCCESS;
}

/* ---- What an algorithm can do ---- */

int cs_cublaslt_capability(const cs_cublaslt_api *api, const cublasLtMatmulAlgo_t *algorithm,
                           cublasLtMatmulAlgoCapAttributes_t capability, int absent) {
  int value = 0;
  size_t written = 0;
  cublasStatus_t result =
      api->algorithm_capability(algorithm, capability, &value, sizeof(value), &written);
  return result == CUBLAS_STATUS_SUCCESS && written == sizeof(value) ? value : absent;
}

bool cs_cublaslt_precise(cs_precision precision, uint64_t flags) {
  const uint64_t halves =
      CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF;
  if (flags & CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F) return false;
  bool full = precision == CS_PRECISION_F32 || precision == CS_PRECISION_TF32;
  if (full && (flags & halves)) return false;
  return precision != CS_PRECISION_F32 || !(flags & (CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK |
                                                     CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32));
}

static bool aligned(const cs_cublaslt_api *api, const cublasLtMatmulAlgo_t *algorithm,
                    cublasLtMatmulAlgoCapAttributes_t capability,
                    const cs_cublaslt_problem *problem, const cs_cublaslt_matrix *matrix) {
  int wanted = cs_cublaslt_capability(api, algorithm, capability, 1);
  if (wanted <= 1) return true;
  bool result = matrix == &problem->c || matrix == &problem->d;
  int64_t pitch = matrix->pitch * cs_dtype_size(result ? problem->result : problem->storage);
  return matrix->alignment % wanted == 0 && pitch % wanted == 0;
}

bool cs_cublaslt_admissible(const cs_cublaslt_api *api, const cs_cublaslt_problem *problem,
                            const cublasLtMatmulAlgo_t *algorithm, uint32_t *notes) {
  uint64_t flags = 0;
  size_t written = 0;
  *notes = 0;
  /* What tells nothing of its arithmetic might narrow it. */
  if (api->algorithm_capability(algorithm, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, &flags,
                                sizeof(flags), &written) != CUBLAS_STATUS_SUCCESS) {
    return false;
  }
  if (flags & CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK) *notes |= CS_NOTE_TENSOR_CORE;
  if (!cs_cublaslt_precise(problem->precision, flags)) return false;
  if (problem->residual &&
      cs_cublaslt_capability(api, algorithm, CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT, 1) ==
          0) {
    return false;
  }
  return aligned(api, algorithm, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES, problem, &problem->a) &&
         aligned(api, algorithm, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES, problem, &problem->b) &&
         aligned(api, algorithm, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES, problem, &problem->c) &&
         aligned(api, algorithm, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES, problem, &problem->d);
}
