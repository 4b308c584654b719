#include "backend/cuda/cublaslt_problem.h"

#include <string.h>

#include "backend/cuda/dense_layer.h"

#define BIAS_ALIGNMENT 256
#define VECTOR_BYTES 16 /* no access is wider, and signatures make no finer difference */

static cudaDataType_t data_type(cs_dtype dtype) {
  switch (dtype) {
    case CS_DTYPE_F16:
      return CUDA_R_16F;
    case CS_DTYPE_BF16:
      return CUDA_R_16BF;
    case CS_DTYPE_F32:
      break;
  }
  return CUDA_R_32F;
}

/* Elements from one pixel (or row) to the next in memory, of a tensor whose channels lie side by
 * side; 0: there is no one such distance. */
static int64_t row_pitch(const cs_tensor_desc *t) {
  static const int inwards[] = {3, 2, 0}; /* W, H, N */
  int64_t pitch = 0, rows = 1;
  if (t->shape.dims[1] > 1 && t->strides[1] != 1) return 0;
  for (int i = 0; i < 3; i++) {
    int axis = inwards[i];
    int64_t extent = axis < t->shape.rank ? t->shape.dims[axis] : 1;
    if (extent == 1) continue;
    if (rows == 1) pitch = t->strides[axis];
    if (t->strides[axis] != rows * pitch) return 0;
    rows *= extent;
  }
  if (rows > 1) return pitch >= t->shape.dims[1] ? pitch : 0;
  /* One row: any pitch says the same, so an aligned one. */
  return cs_round_up(t->shape.dims[1], VECTOR_BYTES / cs_dtype_size(t->dtype));
}

/* Rows of a MatMul's factor or result, which are columns here, image by image. Axes of one element
 * have any stride. */
static bool make_images(const cs_tensor_desc *t, cs_cublaslt_matrix *out) {
  int row = t->shape.rank - 2, element = row + 1;
  int64_t size = cs_dtype_size(t->dtype), images = 1;
  out->rows = t->shape.dims[element];
  out->columns = t->shape.dims[row];
  out->image = 0;
  out->alignment = cs_min_i64(t->alignment, VECTOR_BYTES);
  out->pitch = out->columns > 1 ? t->strides[row] : cs_round_up(out->rows, VECTOR_BYTES / size);
  if (out->rows > 1 && t->strides[element] != 1) return false;
  for (int axis = row - 1; axis >= 0; axis--) {
    if (t->shape.dims[axis] == 1) continue;
    if (images == 1) out->image = t->strides[axis];
    if (t->strides[axis] != images * out->image) return false;
    images *= t->shape.dims[axis];
  }
  while (out->image * size % out->alignment != 0) out->alignment /= 2;
  return out->pitch >= out->rows;
}

static bool make_matrix(const cs_tensor_desc *t, int64_t rows, cs_cublaslt_matrix *out) {
  out->rows = t->shape.dims[1];
  out->columns = rows;
  out->pitch = row_pitch(t);
  out->alignment = cs_min_i64(t->alignment, VECTOR_BYTES);
  return out->pitch > 0;
}

static const char *refuse_operation(const cs_op_desc *desc) {
  const cs_conv_attrs *a = &desc->attrs.conv;
  if (desc->has_prologue) return "a prologue";
  if (desc->op == CS_OP_GEMM || desc->op == CS_OP_MATMUL) return NULL;
  if (desc->op != CS_OP_CONV) return "neither a Gemm nor a Conv nor a MatMul";
  if (a->group != 1) return "a convolution in groups";
  if (a->kernel[0] != 1 || a->kernel[1] != 1) return "a kernel larger than 1×1";
  if (a->strides[0] != 1 || a->strides[1] != 1) return "a stride other than 1";
  for (int i = 0; i < 4; i++) {
    if (a->pads[i] != 0) return "padding";
  }
  return NULL;
}

static const char *refuse_tensors(const cs_op_desc *desc) {
  if (desc->op == CS_OP_MATMUL) return NULL; /* its own ranks; row-major */
  int rank = desc->op == CS_OP_GEMM ? 2 : 4;
  int n_inputs = desc->has_residual ? 2 : 1;
  if (desc->n_inputs != n_inputs || desc->output.shape.rank != rank) return "other tensors";
  for (int i = 0; i < n_inputs; i++) {
    const cs_tensor_desc *t = &desc->inputs[i];
    if (t->shape.rank != rank) return "other tensors";
    if (t->dtype != desc->output.dtype) return "inputs of another type than the output";
    if (cs_layout_granule(t->layout) != 1) return "a blocked layout";
  }
  return cs_layout_granule(desc->output.layout) != 1 ? "a blocked layout" : NULL;
}

static const char *choose_epilogue(const cs_op_desc *desc, cublasLtEpilogue_t *out) {
  bool relu = desc->activation.kind == CS_ACT_RELU;
  if (!relu && desc->activation.kind != CS_ACT_NONE) return "an activation other than ReLU";
  if (desc->has_bias) {
    *out = relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  } else {
    *out = relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
  }
  return NULL;
}

static const char *refuse_extents(const cs_cublaslt_problem *p) {
  if (p->m < 1 || p->n < 1 || p->k < 1) return "a matrix without elements";
  bool fits = p->m <= INT32_MAX && p->n <= INT32_MAX && p->k <= INT32_MAX;
  return fits && p->images <= INT32_MAX ? NULL : "more than 2³¹ rows";
}

static const char *make_matrices(const cs_op_desc *desc, cs_cublaslt_problem *p) {
  const cs_tensor_desc *in = &desc->inputs[0], *out = &desc->output;
  p->m = out->shape.dims[1];
  p->k = in->shape.dims[1];
  p->n = out->shape.dims[0];
  for (int i = 2; i < out->shape.rank; i++) p->n *= out->shape.dims[i];
  const char *refusal = refuse_extents(p);
  if (refusal) return refusal;
  int64_t vector = VECTOR_BYTES / cs_dtype_size(out->dtype);
  p->a = (cs_cublaslt_matrix){.rows = p->k,
                              .columns = p->m,
                              .pitch = cs_round_up(p->k, vector),
                              .alignment = BIAS_ALIGNMENT};
  if (!make_matrix(in, p->n, &p->b)) return "input pixels that are not the rows of a matrix";
  if (!make_matrix(out, p->n, &p->d)) return "output pixels that are not the rows of a matrix";
  p->c = p->d;
  if (desc->has_residual && !make_matrix(&desc->inputs[1], p->n, &p->c)) {
    return "residual pixels that are not the rows of a matrix";
  }
  return NULL;
}

static const char *make_factors(const cs_op_desc *desc, cs_cublaslt_problem *p) {
  const cs_shape *out = &desc->output.shape;
  if (out->rank < 2 || desc->has_residual || desc->has_bias) return "other tensors";
  for (int i = 0; i < desc->n_inputs; i++) {
    if (desc->inputs[i].dtype != desc->output.dtype) return "inputs of another type";
  }
  cs_matmul_factors of = cs_op_factors(desc, desc->output.dtype);
  p->matmul = true;
  p->constant = cs_op_weight_elements(desc);
  p->m = out->dims[out->rank - 1];
  p->n = out->dims[out->rank - 2];
  p->k = of.a.shape.dims[out->rank - 1];
  for (int i = 0; i < out->rank - 2; i++) p->images *= out->dims[i];
  if (!make_images(&of.b, &p->a)) return "a second factor whose images lie at no one distance";
  if (!make_images(&of.a, &p->b)) return "a first factor whose images lie at no one distance";
  if (!make_images(&desc->output, &p->d)) return "output images that lie at no one distance";
  p->c = p->d;
  return refuse_extents(p);
}

const char *cs_cublaslt_problem_make(const cs_op_desc *desc, cs_cublaslt_problem *out) {
  cs_op_desc dense;
  memset(out, 0, sizeof(*out));
  if (cs_dense_layer(desc, &dense)) desc = &dense;
  const char *refusal = refuse_operation(desc);
  if (!refusal) refusal = refuse_tensors(desc);
  if (!refusal) refusal = choose_epilogue(desc, &out->epilogue);
  out->images = 1;
  if (!refusal) {
    refusal = desc->op == CS_OP_MATMUL ? make_factors(desc, out) : make_matrices(desc, out);
  }
  if (refusal) return refusal;
  out->convolution = desc->op == CS_OP_CONV;
  out->storage = desc->output.dtype;
  out->type = data_type(out->storage);
  out->compute =
      desc->precision == CS_PRECISION_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  out->bias = desc->has_bias;
  out->residual = desc->has_residual;
  out->precision = desc->precision;
  return NULL;
}

static int64_t matrix_bytes(const cs_cublaslt_problem *problem) {
  if (problem->matmul) return problem->constant * cs_dtype_size(problem->storage);
  return problem->m * problem->a.pitch * cs_dtype_size(problem->storage);
}

int64_t cs_cublaslt_bias_offset(const cs_cublaslt_problem *problem) {
  return problem->bias ? cs_round_up(matrix_bytes(problem), BIAS_ALIGNMENT) : -1;
}

int64_t cs_cublaslt_weight_bytes(const cs_cublaslt_problem *problem) {
  if (!problem->bias) return matrix_bytes(problem);
  return cs_cublaslt_bias_offset(problem) + problem->m * cs_dtype_size(problem->storage);
}

uint32_t cs_cublaslt_reductions(const cs_cublaslt_problem *problem, bool deterministic) {
  uint32_t mask = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  /* In place, and in the output's type: parts are added in the order in which they come. */
  if (problem->storage == CS_DTYPE_F32 && !deterministic) mask |= CUBLASLT_REDUCTION_SCHEME_INPLACE;
  return mask;
}
