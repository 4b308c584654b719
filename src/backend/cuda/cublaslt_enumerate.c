#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cublaslt_algorithm.h"

/* Heuristics' picks that are offered, and asked for: not all are admissible. */
#define GEMM_PICKS 8
#define CONVOLUTION_PICKS 3
#define ASKED_MOST 24
/* Full enumeration: algorithms, values of one attribute, and configurations of one algorithm. */
#define ALGORITHMS_MOST 128
#define VALUES_MOST 128
#define GRID_LIMIT 512

typedef struct enumeration {
  const cs_cublaslt *lt;
  const cs_cublaslt_problem *problem;
  const cs_enumerate_options *options;
  const cs_logger *logger;
  uint32_t reductions; /* that are admissible */
  cs_cublaslt_operation operation;
  cs_candidate_list *out;
} enumeration;

/* Appends the algorithm; *added tells whether it was admissible and new. */
static cs_status add_algorithm(enumeration *e, const cublasLtMatmulAlgo_t *algorithm, bool *added) {
  const cs_cublaslt_operation *o = &e->operation;
  const cs_cublaslt_api *api = e->lt->api;
  cublasLtMatmulHeuristicResult_t told;
  cs_cublaslt_id id;
  cs_candidate candidate = {.fused = true};
  cs_status st = CS_OK;
  *added = false;
  memset(&told, 0, sizeof(told));
  if (!cs_cublaslt_admissible(api, e->problem, algorithm, &candidate.notes)) return CS_OK;
  cublasStatus_t result = cs_cublaslt_id_of_algorithm(e->lt, e->problem, algorithm, &id);
  if (result == CUBLAS_STATUS_SUCCESS) {
    result =
        api->algorithm_check(e->lt->handle, o->product, o->a, o->b, o->c, o->d, algorithm, &told);
  }
  if (cs_cublaslt_unsupported(result)) return CS_OK;
  CS_RETURN_IF_ERROR(cs_cublaslt_status(api, result, "checking an algorithm of cuBLASLt"));
  uint32_t reduction = id.attributes[CS_CUBLASLT_REDUCTION];
  if (reduction & ~e->reductions) return CS_OK;
  candidate.deterministic = !(reduction & CUBLASLT_REDUCTION_SCHEME_INPLACE);
  candidate.workspace_bytes = (int64_t)told.workspaceSize;
  if (candidate.workspace_bytes > e->options->workspace_limit) return CS_OK;
  CS_TRY(st, cs_cublaslt_id_format(&id, &candidate.id), done);
  if (cs_candidate_find(e->out, candidate.id)) goto done;
  CS_TRY(st, cs_strdup_to("cublaslt", &candidate.family), done);
  CS_TRY(st, cs_candidate_list_add(e->out, &candidate), done);
  *added = true;
done:
  cs_candidate_clear(&candidate);
  return st;
}

/* ---- Heuristics ---- */

static cs_status prefer(const enumeration *e, cublasLtMatmulPreference_t preference) {
  const cs_cublaslt_problem *p = e->problem;
  const uint64_t limit = (uint64_t)cs_max_i64(e->options->workspace_limit, 0);
  const uint32_t a = (uint32_t)p->a.alignment, b = (uint32_t)p->b.alignment,
                 c = (uint32_t)p->c.alignment, d = (uint32_t)p->d.alignment;
  const struct {
    cublasLtMatmulPreferenceAttributes_t name;
    const void *value;
    size_t size;
  } wanted[] = {
      {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof(limit)},
      {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &e->reductions, sizeof(e->reductions)},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &a, sizeof(a)},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &b, sizeof(b)},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &c, sizeof(c)},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &d, sizeof(d)},
  };
  for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
    CS_RETURN_IF_ERROR(cs_cublaslt_status(
        e->lt->api,
        e->lt->api->preference_set(preference, wanted[i].name, wanted[i].value, wanted[i].size),
        "setting attribute %d of a preference", (int)wanted[i].name));
  }
  return CS_OK;
}

/* What cuBLASLt calls invalid may be a mistake of ours: that is said, and goes on without. */
static cs_status ask(const enumeration *e, cublasLtMatmulPreference_t preference,
                     cublasLtMatmulHeuristicResult_t results[ASKED_MOST], int *n) {
  const cs_cublaslt_operation *o = &e->operation;
  cublasStatus_t result = e->lt->api->algorithm_heuristic(
      e->lt->handle, o->product, o->a, o->b, o->c, o->d, preference, ASKED_MOST, results, n);
  if (result == CUBLAS_STATUS_SUCCESS) return CS_OK;
  *n = 0;
  if (!cs_cublaslt_unsupported(result)) {
    return cs_cublaslt_status(e->lt->api, result, "asking cuBLASLt's heuristics");
  }
  cs_log(e->logger, result == CUBLAS_STATUS_INVALID_VALUE ? CS_LOG_WARNING : CS_LOG_DEBUG,
         "cuBLASLt has nothing for a product of %lld x %lld x %lld: %s", (long long)e->problem->m,
         (long long)e->problem->n, (long long)e->problem->k, e->lt->api->status_name(result));
  return CS_OK;
}

static cs_status add_picks(enumeration *e) {
  cublasLtMatmulHeuristicResult_t results[ASKED_MOST];
  cublasLtMatmulPreference_t preference = NULL;
  cs_status st = CS_OK;
  int n = 0, wanted = e->problem->convolution ? CONVOLUTION_PICKS : GEMM_PICKS;
  memset(results, 0, sizeof(results));
  CS_RETURN_IF_ERROR(cs_cublaslt_status(e->lt->api, e->lt->api->preference_create(&preference),
                                        "creating a preference"));
  CS_TRY(st, prefer(e, preference), done);
  CS_TRY(st, ask(e, preference, results, &n), done);
  for (int i = 0; i < n && wanted > 0; i++) {
    bool added = false;
    if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
    CS_TRY(st, add_algorithm(e, &results[i].algo, &added), done);
    wanted -= added;
  }
done:
  (void)e->lt->api->preference_destroy(preference);
  return st;
}

/* ---- Full enumeration ---- */

typedef struct axis {
  cs_cublaslt_attribute attribute;
  uint32_t values[VALUES_MOST];
  int n;
} axis;

/* The values that a capability lists; one, "undefined", where it lists none. */
static void read_list(const cs_cublaslt_api *api, const cublasLtMatmulAlgo_t *algorithm,
                      cublasLtMatmulAlgoCapAttributes_t capability, axis *out) {
  size_t bytes = 0, written = 0;
  out->n = 1;
  out->values[0] = 0;
  if (api->algorithm_capability(algorithm, capability, NULL, 0, &bytes) != CUBLAS_STATUS_SUCCESS ||
      bytes < sizeof(uint32_t) || bytes > sizeof(out->values)) {
    return;
  }
  if (api->algorithm_capability(algorithm, capability, out->values, bytes, &written) ==
      CUBLAS_STATUS_SUCCESS) {
    out->n = (int)(written / sizeof(uint32_t));
  }
}

static void count_up(axis *out, int most) {
  out->n = 0;
  for (int i = 0; i <= most && i < VALUES_MOST; i++) out->values[out->n++] = (uint32_t)i;
}

enum { TILES, STAGES, CUSTOMS, SWIZZLES, SPLITS, N_AXES };

static void read_axes(const cs_cublaslt_api *api, const cublasLtMatmulAlgo_t *algorithm,
                      axis axes[N_AXES]) {
  static const cs_cublaslt_attribute names[N_AXES] = {CS_CUBLASLT_TILE, CS_CUBLASLT_STAGES,
                                                      CS_CUBLASLT_CUSTOM, CS_CUBLASLT_SWIZZLE,
                                                      CS_CUBLASLT_SPLITS};
  for (int i = 0; i < N_AXES; i++) axes[i].attribute = names[i];
  read_list(api, algorithm, CUBLASLT_ALGO_CAP_TILE_IDS, &axes[TILES]);
  read_list(api, algorithm, CUBLASLT_ALGO_CAP_STAGES_IDS, &axes[STAGES]);
  count_up(&axes[CUSTOMS],
           cs_cublaslt_capability(api, algorithm, CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX, 0));
  count_up(&axes[SWIZZLES],
           cs_cublaslt_capability(api, algorithm, CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT, 0));
  axes[SPLITS].n = 0;
  bool splits = cs_cublaslt_capability(api, algorithm, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, 0) != 0;
  for (uint32_t s = 1; s <= (splits ? 32u : 1u); s *= 2) axes[SPLITS].values[axes[SPLITS].n++] = s;
}

/* One point of the grid, with the reduction that its splits want. False: it cannot be set. */
static bool set_point(const cs_cublaslt_api *api, const axis axes[N_AXES], const int at[N_AXES],
                      uint32_t reduction, cublasLtMatmulAlgo_t *algorithm) {
  bool splits = axes[SPLITS].values[at[SPLITS]] > 1;
  for (int i = 0; i < N_AXES; i++) {
    if (cs_cublaslt_set_attribute(api, algorithm, axes[i].attribute, axes[i].values[at[i]]) !=
        CUBLAS_STATUS_SUCCESS) {
      return false;
    }
  }
  return cs_cublaslt_set_attribute(api, algorithm, CS_CUBLASLT_REDUCTION, splits ? reduction : 0) ==
         CUBLAS_STATUS_SUCCESS;
}

/* Advances the grid like an odometer; false after the last point. */
static bool next_point(const axis axes[N_AXES], int at[N_AXES]) {
  for (int i = 0; i < N_AXES; i++) {
    if (++at[i] < axes[i].n) return true;
    at[i] = 0;
  }
  return false;
}

static cs_status add_grid(enumeration *e, int number) {
  static const uint32_t schemes[] = {CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
                                     CUBLASLT_REDUCTION_SCHEME_INPLACE};
  const cs_cublaslt_api *api = e->lt->api;
  cublasLtMatmulAlgo_t fresh;
  if (cs_cublaslt_algorithm_init(e->lt, e->problem, number, &fresh) != CUBLAS_STATUS_SUCCESS) {
    return CS_OK;
  }
  axis *axes = cs_calloc(N_AXES, sizeof(*axes));
  if (!axes) return cs_no_memory("attributes of an algorithm", N_AXES * sizeof(*axes));
  int supported = cs_cublaslt_capability(api, &fresh, CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK, 0);
  int at[N_AXES] = {0}, points = 0;
  cs_status st = CS_OK;
  read_axes(api, &fresh, axes);
  do {
    bool splits = axes[SPLITS].values[at[SPLITS]] > 1, added = false;
    for (int s = 0; s < (splits ? 2 : 1) && st == CS_OK; s++) {
      cublasLtMatmulAlgo_t algorithm = fresh;
      if (splits && !(schemes[s] & e->reductions & (uint32_t)supported)) continue;
      if (set_point(api, axes, at, schemes[s], &algorithm)) {
        st = add_algorithm(e, &algorithm, &added);
      }
    }
  } while (st == CS_OK && ++points < GRID_LIMIT && next_point(axes, at));
  free(axes);
  return st;
}

static cs_status add_all(enumeration *e) {
  const cs_cublaslt_problem *p = e->problem;
  int numbers[ALGORITHMS_MOST], n = 0;
  cublasStatus_t result =
      e->lt->api->algorithm_ids(e->lt->handle, p->compute, CUDA_R_32F, p->type, p->type,
                                p->result_type, p->result_type, ALGORITHMS_MOST, numbers, &n);
  if (cs_cublaslt_unsupported(result)) return CS_OK;
  CS_RETURN_IF_ERROR(cs_cublaslt_status(e->lt->api, result, "asking for cuBLASLt's algorithms"));
  for (int i = 0; i < n; i++) CS_RETURN_IF_ERROR(add_grid(e, numbers[i]));
  return CS_OK;
}

cs_status cs_cublaslt_enumerate(cs_cublaslt *lt, const cs_logger *logger,
                                const cs_cublaslt_problem *problem,
                                const cs_enumerate_options *options, cs_candidate_list *out) {
  CS_RETURN_IF_ERROR(cs_cublaslt_open(lt, logger));
  if (!lt->api) return CS_OK;
  enumeration e = {.lt = lt,
                   .problem = problem,
                   .options = options,
                   .logger = logger,
                   .reductions = cs_cublaslt_reductions(problem, options->deterministic),
                   .out = out};
  CS_RETURN_IF_ERROR(cs_cublaslt_operation_create(lt->api, problem, &e.operation));
  cs_status st = add_picks(&e);
  if (st == CS_OK && options->full) st = add_all(&e);
  cs_cublaslt_operation_clear(lt->api, &e.operation);
  return st;
}
