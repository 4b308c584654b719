#include "backend/cuda/cudnn_legacy.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* X(name, value, notes, deterministic) */
#define FORWARD_ALGORITHMS(X)                                                         \
  X(IMPLICIT_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, 0, true)                 \
  X(IMPLICIT_PRECOMP_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, 0, true) \
  X(GEMM, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, 0, true)                                   \
  X(DIRECT, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, 0, true)                               \
  X(FFT, CUDNN_CONVOLUTION_FWD_ALGO_FFT, CS_NOTE_FFT, true)                           \
  X(FFT_TILING, CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING, CS_NOTE_FFT, true)             \
  X(WINOGRAD, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, CS_NOTE_WINOGRAD, true)            \
  X(WINOGRAD_NONFUSED, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, CS_NOTE_WINOGRAD, true)
#define BACKWARD_DATA_ALGORITHMS(X)                                             \
  X(ALGO_0, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, 0, false)                        \
  X(ALGO_1, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, 0, true)                         \
  X(FFT, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, CS_NOTE_FFT, true)                \
  X(FFT_TILING, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING, CS_NOTE_FFT, true)  \
  X(WINOGRAD, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, CS_NOTE_WINOGRAD, true) \
  X(WINOGRAD_NONFUSED, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, CS_NOTE_WINOGRAD, true)

typedef struct algorithm {
  const char *name;
  int value;
  uint32_t notes;
  bool deterministic;
} algorithm;
#define ALGORITHM_ROW(name, value, notes, deterministic) \
  {#name, (int)(value), notes, deterministic},
static const algorithm forward_algorithms[] = {FORWARD_ALGORITHMS(ALGORITHM_ROW)};
static const algorithm backward_data_algorithms[] = {BACKWARD_DATA_ALGORITHMS(ALGORITHM_ROW)};

typedef struct math_type {
  const char *name;
  cudnnMathType_t value;
} math_type;
static const math_type math_fma = {"fma", CUDNN_FMA_MATH};
static const math_type math_tensor_op = {"tensor_op", CUDNN_TENSOR_OP_MATH};

struct cs_cudnn_legacy {
  bool backward_data;
  int algorithm;
  size_t workspace_bytes;
  cudnnTensorDescriptor_t input, output;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t convolution;
};

static const algorithm *algorithms_of(const cs_cudnn_problem *problem, int *n) {
  if (problem->backward_data) {
    *n = (int)(sizeof(backward_data_algorithms) / sizeof(backward_data_algorithms[0]));
    return backward_data_algorithms;
  }
  *n = (int)(sizeof(forward_algorithms) / sizeof(forward_algorithms[0]));
  return forward_algorithms;
}

/* f32 forbids tensor cores; tf32 may use them or not; half types are made for them. */
static int math_types_of(cs_precision precision, const math_type *out[2]) {
  if (precision == CS_PRECISION_F32) {
    out[0] = &math_fma;
    return 1;
  }
  out[0] = &math_tensor_op;
  out[1] = &math_fma;
  return precision == CS_PRECISION_TF32 ? 2 : 1;
}

/* One pad per axis, and every extent and stride an int. */
static bool fits_legacy(const cs_cudnn_problem *p) {
  for (int i = 0; i < 4; i++) {
    if (p->input.strides[i] > INT_MAX || p->output.strides[i] > INT_MAX) return false;
    if (p->filter.strides[i] > INT_MAX) return false;
  }
  return p->pre_pads[0] == p->post_pads[0] && p->pre_pads[1] == p->post_pads[1];
}

static cudnnStatus_t describe_tensor(const cs_cudnn_tensor *t, cudnnDataType_t type,
                                     cudnnTensorDescriptor_t *out) {
  cudnnStatus_t result = cudnnCreateTensorDescriptor(out);
  if (result != CUDNN_STATUS_SUCCESS) return result;
  return cudnnSetTensor4dDescriptorEx(*out, type, (int)t->dims[0], (int)t->dims[1], (int)t->dims[2],
                                      (int)t->dims[3], (int)t->strides[0], (int)t->strides[1],
                                      (int)t->strides[2], (int)t->strides[3]);
}

static cudnnStatus_t describe_filter(const cs_cudnn_problem *p, cudnnFilterDescriptor_t *out) {
  cudnnStatus_t result = cudnnCreateFilterDescriptor(out);
  if (result != CUDNN_STATUS_SUCCESS) return result;
  const int64_t *d = p->filter.dims;
  return cudnnSetFilter4dDescriptor(*out, p->data_type,
                                    p->filter_krsc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
                                    (int)d[0], (int)d[1], (int)d[2], (int)d[3]);
}

static cudnnStatus_t describe_convolution(const cs_cudnn_problem *p,
                                          cudnnConvolutionDescriptor_t *out) {
  cudnnStatus_t result = cudnnCreateConvolutionDescriptor(out);
  if (result != CUDNN_STATUS_SUCCESS) return result;
  result = cudnnSetConvolution2dDescriptor(
      *out, (int)p->pre_pads[0], (int)p->pre_pads[1], (int)p->strides[0], (int)p->strides[1],
      (int)p->dilations[0], (int)p->dilations[1], CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  if (result != CUDNN_STATUS_SUCCESS) return result;
  return cudnnSetConvolutionGroupCount(*out, (int)p->groups);
}

/* Everything but algorithm and math type; the result says whether cuDNN takes the problem. */
static cudnnStatus_t describe(const cs_cudnn_problem *p, cs_cudnn_legacy *out) {
  out->backward_data = p->backward_data;
  cudnnStatus_t result = describe_tensor(&p->input, p->data_type, &out->input);
  if (result == CUDNN_STATUS_SUCCESS) {
    result = describe_tensor(&p->output, p->data_type, &out->output);
  }
  if (result == CUDNN_STATUS_SUCCESS) result = describe_filter(p, &out->filter);
  if (result == CUDNN_STATUS_SUCCESS) result = describe_convolution(p, &out->convolution);
  return result;
}

/* Chooses algorithm and math type and asks for the workspace. */
static cudnnStatus_t choose(cs_cudnn_legacy *legacy, cudnnHandle_t handle, const algorithm *a,
                            const math_type *math) {
  legacy->algorithm = a->value;
  cudnnStatus_t result = cudnnSetConvolutionMathType(legacy->convolution, math->value);
  if (result != CUDNN_STATUS_SUCCESS) return result;
  if (legacy->backward_data) {
    return cudnnGetConvolutionBackwardDataWorkspaceSize(
        handle, legacy->filter, legacy->input, legacy->convolution, legacy->output,
        (cudnnConvolutionBwdDataAlgo_t)a->value, &legacy->workspace_bytes);
  }
  return cudnnGetConvolutionForwardWorkspaceSize(
      handle, legacy->input, legacy->filter, legacy->convolution, legacy->output,
      (cudnnConvolutionFwdAlgo_t)a->value, &legacy->workspace_bytes);
}

static cs_status add_algorithm(const algorithm *a, const math_type *math, cs_cudnn_way way,
                               bool fused, int64_t workspace_bytes, cs_candidate_list *out) {
  cs_strbuf id = {0};
  cs_candidate candidate = {.workspace_bytes = workspace_bytes,
                            .deterministic = a->deterministic,
                            .fused = fused,
                            .notes = a->notes};
  if (math == &math_tensor_op) candidate.notes |= CS_NOTE_TENSOR_CORE;
  cs_strbuf_printf(&id, "%s:%s/%s", cs_cudnn_family(way), a->name, math->name);
  cs_status st = cs_strbuf_take(&id, &candidate.id);
  if (st == CS_OK) st = cs_strdup_to(cs_cudnn_family(way), &candidate.family);
  if (st == CS_OK) st = cs_candidate_list_add(out, &candidate);
  cs_candidate_clear(&candidate);
  return st;
}

/* Winograd's error is relative to what a tile of outputs is made of. Where an output has few
 * products, of a depthwise convolution, it is far beyond the smaller ones' own (cuDNN's non-fused
 * one came to 7 times the limit of a 3×3 in f32 on an H200), and there is nothing to gain. */
static bool is_too_coarse(const algorithm *a, const cs_cudnn_problem *problem) {
  return (a->notes & CS_NOTE_WINOGRAD) && problem->groups > 1 && problem->filter.dims[1] == 1;
}

static cs_status enumerate_way(cudnnHandle_t handle, cs_cudnn_way way,
                               const cs_cudnn_problem *whole, const cs_enumerate_options *options,
                               cs_candidate_list *out) {
  cs_status st = CS_OK;
  cs_cudnn_problem asked = cs_cudnn_way_problem(way, whole), *problem = &asked;
  cs_cudnn_legacy *legacy = cs_calloc(1, sizeof(*legacy));
  if (!legacy) return cs_no_memory("a cuDNN algorithm", sizeof(*legacy));
  cudnnStatus_t result = describe(problem, legacy);
  if (result != CUDNN_STATUS_SUCCESS) {
    if (!cs_cudnn_unsupported(result)) st = cs_cudnn_status(result, "describing a convolution");
    goto done;
  }
  int n_algorithms = 0;
  const algorithm *algorithms = algorithms_of(problem, &n_algorithms);
  const math_type *maths[2];
  int n_maths = math_types_of(problem->precision, maths);
  bool fused = !cs_cudnn_problem_has_epilogue(whole);
  int64_t staging = cs_cudnn_way_staging(way, problem);
  for (int i = 0; i < n_algorithms * n_maths; i++) {
    const algorithm *a = &algorithms[i / n_maths];
    const math_type *math = maths[i % n_maths];
    if (options->deterministic && !a->deterministic) continue;
    if (is_too_coarse(a, problem)) continue;
    if (choose(legacy, handle, a, math) != CUDNN_STATUS_SUCCESS) continue;
    int64_t workspace = staging + (int64_t)legacy->workspace_bytes;
    if (workspace > options->workspace_limit) continue;
    CS_TRY(st, add_algorithm(a, math, way, fused, workspace, out), done);
  }
done:
  cs_cudnn_legacy_destroy(legacy);
  return st;
}

cs_status cs_cudnn_legacy_enumerate(cudnnHandle_t handle, const cs_cudnn_problem *problem,
                                    const cs_enumerate_options *options, cs_candidate_list *out) {
  cs_cudnn_way way = {.legacy = true, .epilogue = true};
  cs_cudnn_problem dense;
  if (!fits_legacy(problem)) return CS_OK;
  CS_RETURN_IF_ERROR(enumerate_way(handle, way, problem, options, out));
  if (!cs_cudnn_problem_dense(problem, &dense)) return CS_OK;
  way.dense = true;
  return enumerate_way(handle, way, problem, options, out);
}

cs_status cs_cudnn_legacy_create(cudnnHandle_t handle, const cs_cudnn_problem *problem,
                                 const char *name, cs_cudnn_legacy **out) {
  *out = NULL;
  cs_status st = CS_OK;
  const char *slash = strchr(name, '/');
  const algorithm *a = NULL;
  const math_type *math = NULL;
  int n_algorithms = 0;
  const algorithm *algorithms = algorithms_of(problem, &n_algorithms);
  for (int i = 0; slash && i < n_algorithms; i++) {
    size_t length = strlen(algorithms[i].name);
    if (length == (size_t)(slash - name) && memcmp(name, algorithms[i].name, length) == 0) {
      a = &algorithms[i];
    }
  }
  const math_type *maths[2];
  int n_maths = math_types_of(problem->precision, maths);
  for (int i = 0; slash && i < n_maths; i++) {
    if (strcmp(slash + 1, maths[i]->name) == 0) math = maths[i];
  }
  if (!a || !math || !fits_legacy(problem)) {
    return cs_error(CS_CODE_BAD_INPUT, "no cuDNN algorithm '%s' for this operation", name);
  }
  cs_cudnn_legacy *legacy = cs_calloc(1, sizeof(*legacy));
  if (!legacy) return cs_no_memory("a cuDNN algorithm", sizeof(*legacy));
  cudnnStatus_t result = describe(problem, legacy);
  if (result == CUDNN_STATUS_SUCCESS) result = choose(legacy, handle, a, math);
  if (result != CUDNN_STATUS_SUCCESS) {
    CS_FAIL(st, done, cs_cudnn_unsupported(result) ? CS_CODE_BAD_INPUT : CS_CODE_DEVICE,
            "cuDNN algorithm '%s' cannot run this operation: %s", name,
            cudnnGetErrorString(result));
  }
  *out = legacy;
  legacy = NULL;
done:
  cs_cudnn_legacy_destroy(legacy);
  return st;
}

void cs_cudnn_legacy_destroy(cs_cudnn_legacy *legacy) {
  if (!legacy) return;
  if (legacy->input) (void)cudnnDestroyTensorDescriptor(legacy->input);
  if (legacy->output) (void)cudnnDestroyTensorDescriptor(legacy->output);
  if (legacy->filter) (void)cudnnDestroyFilterDescriptor(legacy->filter);
  if (legacy->convolution) (void)cudnnDestroyConvolutionDescriptor(legacy->convolution);
  free(legacy);
}

int64_t cs_cudnn_legacy_workspace(const cs_cudnn_legacy *legacy) {
  return (int64_t)legacy->workspace_bytes;
}

cs_status cs_cudnn_legacy_launch(const cs_cudnn_legacy *legacy, cudnnHandle_t handle,
                                 const void *input, const void *filter, void *output,
                                 void *workspace) {
  const float one = 1.0f, zero = 0.0f;
  if (legacy->backward_data) {
    return cs_cudnn_status(
        cudnnConvolutionBackwardData(handle, &one, legacy->filter, filter, legacy->input, input,
                                     legacy->convolution,
                                     (cudnnConvolutionBwdDataAlgo_t)legacy->algorithm, workspace,
                                     legacy->workspace_bytes, &zero, legacy->output, output),
        "launching a backward-data convolution");
  }
  return cs_cudnn_status(
      cudnnConvolutionForward(handle, &one, legacy->input, input, legacy->filter, filter,
                              legacy->convolution, (cudnnConvolutionFwdAlgo_t)legacy->algorithm,
                              workspace, legacy->workspace_bytes, &zero, legacy->output, output),
      "launching a convolution");
}
