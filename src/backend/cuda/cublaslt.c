#include "backend/cuda/cublaslt.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cublaslt_algorithm.h"

/* An address that is aligned as biases are: heuristics and checks look at it, never through it. */
#define SOME_BIAS ((const void *)(uintptr_t)256)

struct cs_cublaslt_plan {
  const cs_cublaslt_api *api;
  cublasLtHandle_t handle;
  cs_cublaslt_problem problem;
  cs_cublaslt_operation operation;
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace_bytes;
};

/* ---- The handle ---- */

/* Of every handle: made once each. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

static cs_status open_locked(cs_cublaslt *lt, const cs_logger *logger) {
  const cs_cublaslt_api *api = NULL;
  if (lt->api) return CS_OK;
  cs_status st = cs_cublaslt_get(&api);
  if (cs_status_code(st) == CS_CODE_NOT_FOUND) {
    if (!lt->told) cs_log(logger, CS_LOG_WARNING, "%s", cs_status_message(st));
    lt->told = true;
    cs_status_free(st);
    return CS_OK;
  }
  CS_RETURN_IF_ERROR(st);
  CS_RETURN_IF_ERROR(
      cs_cublaslt_status(api, api->create(&lt->handle), "creating a cuBLASLt handle"));
  lt->api = api;
  return CS_OK;
}

cs_status cs_cublaslt_open(cs_cublaslt *lt, const cs_logger *logger) {
  pthread_mutex_lock(&open_lock);
  cs_status st = open_locked(lt, logger);
  pthread_mutex_unlock(&open_lock);
  return st;
}

void cs_cublaslt_close(cs_cublaslt *lt) {
  if (lt->api) (void)lt->api->destroy(lt->handle);
  memset(lt, 0, sizeof(*lt));
}

/* ---- Descriptors ---- */

static cs_status set(const cs_cublaslt_api *api, cublasLtMatmulDesc_t product,
                     cublasLtMatmulDescAttributes_t name, const void *value, size_t size) {
  return cs_cublaslt_status(api, api->operation_set(product, name, value, size),
                            "setting attribute %d of a matrix product", (int)name);
}

static cs_status set_product(const cs_cublaslt_api *api, const cs_cublaslt_problem *problem,
                             const void *bias, cublasLtMatmulDesc_t product) {
  const cublasOperation_t transposed = CUBLAS_OP_T, plain = CUBLAS_OP_N;
  const int32_t bias_type = (int32_t)problem->type;
  CS_RETURN_IF_ERROR(set(api, product, CUBLASLT_MATMUL_DESC_TRANSA,
                         problem->plain ? &plain : &transposed, sizeof(transposed)));
  CS_RETURN_IF_ERROR(set(api, product, CUBLASLT_MATMUL_DESC_TRANSB, &plain, sizeof(plain)));
  CS_RETURN_IF_ERROR(set(api, product, CUBLASLT_MATMUL_DESC_EPILOGUE, &problem->epilogue,
                         sizeof(problem->epilogue)));
  if (!problem->bias) return CS_OK;
  CS_RETURN_IF_ERROR(
      set(api, product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type, sizeof(bias_type)));
  return set(api, product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
}

static cs_status create_product(const cs_cublaslt_api *api, const cs_cublaslt_problem *problem,
                                const void *bias, cublasLtMatmulDesc_t *out) {
  *out = NULL;
  CS_RETURN_IF_ERROR(cs_cublaslt_status(
      api, api->operation_create(out, problem->compute, CUDA_R_32F), "describing a product"));
  cs_status st = set_product(api, problem, bias, *out);
  if (st == CS_OK) return CS_OK;
  (void)api->operation_destroy(*out);
  *out = NULL;
  return st;
}

static cs_status set_images(const cs_cublaslt_api *api, const cs_cublaslt_problem *problem,
                            const cs_cublaslt_matrix *matrix, cublasLtMatrixLayout_t layout) {
  const int32_t images = (int32_t)problem->images;
  const int64_t image = matrix->image;
  cublasStatus_t result =
      api->layout_set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &images, sizeof(images));
  if (result == CUBLAS_STATUS_SUCCESS) {
    result =
        api->layout_set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &image, sizeof(image));
  }
  return cs_cublaslt_status(api, result, "describing %d matrices", (int)images);
}

/* The layout is *out's also where its images cannot be told. */
static cs_status create_layout(const cs_cublaslt_api *api, const cs_cublaslt_problem *problem,
                               const cs_cublaslt_matrix *matrix, cublasLtMatrixLayout_t *out) {
  bool result = matrix == &problem->c || matrix == &problem->d;
  CS_RETURN_IF_ERROR(cs_cublaslt_status(
      api,
      api->layout_create(out, result ? problem->result_type : problem->type, (uint64_t)matrix->rows,
                         (uint64_t)matrix->columns, matrix->pitch),
      "describing a matrix of %" PRId64 " x %" PRId64, matrix->rows, matrix->columns));
  return problem->images > 1 ? set_images(api, problem, matrix, *out) : CS_OK;
}

cs_status cs_cublaslt_operation_create(const cs_cublaslt_api *api,
                                       const cs_cublaslt_problem *problem,
                                       cs_cublaslt_operation *out) {
  cs_status st = CS_OK;
  memset(out, 0, sizeof(*out));
  CS_TRY(st, create_product(api, problem, SOME_BIAS, &out->product), done);
  CS_TRY(st, create_layout(api, problem, &problem->a, &out->a), done);
  CS_TRY(st, create_layout(api, problem, &problem->b, &out->b), done);
  CS_TRY(st, create_layout(api, problem, &problem->c, &out->c), done);
  CS_TRY(st, create_layout(api, problem, &problem->d, &out->d), done);
done:
  if (st != CS_OK) cs_cublaslt_operation_clear(api, out);
  return st;
}

void cs_cublaslt_operation_clear(const cs_cublaslt_api *api, cs_cublaslt_operation *operation) {
  cublasLtMatrixLayout_t layouts[] = {operation->a, operation->b, operation->c, operation->d};
  for (int i = 0; i < 4; i++) {
    if (layouts[i]) (void)api->layout_destroy(layouts[i]);
  }
  if (operation->product) (void)api->operation_destroy(operation->product);
  memset(operation, 0, sizeof(*operation));
}

/* ---- Plans ---- */

static cs_status check_version(const cs_cublaslt *lt, const char *text, const cs_cublaslt_id *id) {
  char wanted[32], found[32];
  cs_cublaslt_version_text(id->version, wanted, sizeof(wanted));
  if (!lt->api) {
    return cs_error(CS_CODE_BAD_INPUT, "'%s' is of cuBLASLt %s, which is not on this machine", text,
                    wanted);
  }
  if (id->version == lt->api->version) return CS_OK;
  cs_cublaslt_version_text(lt->api->version, found, sizeof(found));
  return cs_error(CS_CODE_BAD_INPUT, "'%s' is of cuBLASLt %s, and this machine has %s", text,
                  wanted, found);
}

cs_presence cs_cublaslt_presence(const cs_cublaslt_api *api, const char *candidate) {
  cs_cublaslt_id id;
  if (!cs_cublaslt_id_parse(candidate, &id)) return CS_PRESENCE_UNTOLD;
  if (!api) return CS_PRESENCE_NO_LIBRARY;
  return id.version == api->version ? CS_PRESENCE_THERE : CS_PRESENCE_OTHER_VERSION;
}

static cs_status find_algorithm(cs_cublaslt_plan *plan, const cs_cublaslt *lt, const char *text,
                                const cs_cublaslt_id *id) {
  const cs_cublaslt_operation *o = &plan->operation;
  cublasLtMatmulHeuristicResult_t told;
  memset(&told, 0, sizeof(told));
  cublasStatus_t result = cs_cublaslt_algorithm_of_id(lt, &plan->problem, id, &plan->algorithm);
  if (result == CUBLAS_STATUS_SUCCESS) {
    result = lt->api->algorithm_check(lt->handle, o->product, o->a, o->b, o->c, o->d,
                                      &plan->algorithm, &told);
  }
  if (cs_cublaslt_unsupported(result)) {
    return cs_error(CS_CODE_BAD_INPUT, "'%s' does not compute this product (cuBLASLt: %s)", text,
                    lt->api->status_name(result));
  }
  plan->workspace_bytes = told.workspaceSize;
  return cs_cublaslt_status(lt->api, result, "checking '%s'", text);
}

cs_status cs_cublaslt_plan_create(cs_cublaslt *lt, const cs_logger *logger,
                                  const cs_cublaslt_problem *problem, const char *id,
                                  cs_cublaslt_plan **out) {
  cs_cublaslt_id parsed;
  cs_status st = CS_OK;
  *out = NULL;
  if (!cs_cublaslt_id_parse(id, &parsed)) {
    return cs_error(CS_CODE_BAD_INPUT, "'%s' names no algorithm of cuBLASLt", id);
  }
  CS_RETURN_IF_ERROR(cs_cublaslt_open(lt, logger));
  CS_RETURN_IF_ERROR(check_version(lt, id, &parsed));
  cs_cublaslt_plan *plan = cs_calloc(1, sizeof(*plan));
  if (!plan) return cs_no_memory("a matrix product", sizeof(*plan));
  plan->api = lt->api;
  plan->handle = lt->handle;
  plan->problem = *problem;
  CS_TRY(st, cs_cublaslt_operation_create(plan->api, problem, &plan->operation), done);
  CS_TRY(st, find_algorithm(plan, lt, id, &parsed), done);
  *out = plan;
  plan = NULL;
done:
  cs_cublaslt_plan_destroy(plan);
  return st;
}

void cs_cublaslt_plan_destroy(cs_cublaslt_plan *plan) {
  if (!plan) return;
  cs_cublaslt_operation_clear(plan->api, &plan->operation);
  free(plan);
}

int64_t cs_cublaslt_plan_workspace(const cs_cublaslt_plan *plan) {
  return (int64_t)plan->workspace_bytes;
}

/* ---- Launching ---- */

cs_status cs_cublaslt_bind(const cs_cublaslt_plan *plan, const void *bias,
                           cublasLtMatmulDesc_t *out) {
  return create_product(plan->api, &plan->problem, bias, out);
}

/* The plan may be gone by now; the library's table never is. */
void cs_cublaslt_unbind(cublasLtMatmulDesc_t product) {
  const cs_cublaslt_api *api = NULL;
  if (!product) return;
  cs_status_free(cs_cublaslt_get(&api));
  if (api) (void)api->operation_destroy(product);
}

cs_status cs_cublaslt_launch(const cs_cublaslt_plan *plan, cublasLtMatmulDesc_t product,
                             const void *weights, const void *input, const void *residual,
                             void *output, void *workspace, cudaStream_t stream) {
  const cs_cublaslt_operation *o = &plan->operation;
  const float one = 1.0f, beta = residual ? 1.0f : 0.0f;
  return cs_cublaslt_status(
      plan->api,
      plan->api->matmul(plan->handle, product, &one, weights, o->a, input, o->b, &beta,
                        residual ? residual : output, o->c, output, o->d, &plan->algorithm,
                        plan->workspace_bytes ? workspace : NULL, plan->workspace_bytes, stream),
      "launching the product");
}
