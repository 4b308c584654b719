#include "backend/cuda/columns_exec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIAS_ALIGNMENT 256
#define FAMILY "cuda.col2im"
#define MOST_PIECES 16                    /* two launches each */
#define LIBRARY_BYTES ((int64_t)32 << 20) /* of the limit, left for cuBLASLt's own workspace */
#define CACHE_SHARE 0.5                   /* of the L2 cache, for columns that are read again */

/* ---- Ids ---- */

const char *cs_columns_id_parse(const char *id, int *pieces) {
  size_t prefix = strlen(CS_COLUMNS_PREFIX);
  char *end;
  if (strncmp(id, CS_COLUMNS_PREFIX, prefix) != 0) return NULL;
  if (id[prefix] < '1' || id[prefix] > '9') return NULL;
  errno = 0;
  long value = strtol(id + prefix, &end, 10);
  if (errno || value > MOST_PIECES || *end != ':') return NULL;
  *pieces = (int)value;
  return end + 1;
}

/* ---- Enumerating ---- */

static cs_status add_product(const cs_columns *columns, const cs_candidate *product,
                             cs_candidate_list *out) {
  char id[512], family[] = FAMILY;
  cs_candidate candidate = {
      .id = id,
      .family = family,
      .deterministic = product->deterministic,
      .notes = product->notes,
      .fused = true,
      .workspace_bytes = cs_columns_bytes(columns) + product->workspace_bytes};
  snprintf(id, sizeof(id), CS_COLUMNS_PREFIX "%d:%s", columns->pieces, product->id);
  return cs_candidate_list_add_copy(out, &candidate);
}

static cs_status add_pieces(cs_cuda_backend *cuda, const cs_op_desc *desc,
                            const cs_columns *columns, const cs_enumerate_options *options,
                            cs_candidate_list *out) {
  cs_candidate_list products = {0};
  cs_cublaslt_problem problem;
  cs_enumerate_options own = *options;
  cs_op_desc piece = cs_columns_piece(columns, desc);
  own.workspace_limit -= cs_columns_bytes(columns);
  own.full = false; /* the picks alone: the product is not all there is to it */
  if (cs_cublaslt_columns_make(&piece, columns, &problem)) return CS_OK;
  cs_status st =
      cs_cublaslt_enumerate(&cuda->cublaslt, &cuda->base.logger, &problem, &own, &products);
  for (size_t i = 0; i < products.n && st == CS_OK; i++) {
    st = add_product(columns, &products.items[i], out);
  }
  cs_candidate_list_free(&products);
  return st;
}

cs_status cs_columns_enumerate(cs_cuda_backend *cuda, const cs_op_desc *desc,
                               const cs_enumerate_options *options, cs_candidate_list *out) {
  cs_columns whole, cached;
  int64_t batch = desc->inputs[0].shape.dims[0], limit = options->workspace_limit;
  if (cs_columns_make(desc, &whole)) return CS_OK;
  cached = whole;
  if (!cs_columns_cut(&whole, batch, limit - LIBRARY_BYTES) &&
      !cs_columns_cut(&whole, batch, limit))
    return CS_OK;
  if (whole.pieces > MOST_PIECES) return CS_OK;
  CS_RETURN_IF_ERROR(add_pieces(cuda, desc, &whole, options, out));
  int64_t cache = (int64_t)(CACHE_SHARE * (double)cuda->info.cache_bytes);
  if (!cs_columns_cut(&cached, batch, cs_min_i64(cache, limit)) || cached.pieces == whole.pieces ||
      cached.pieces > MOST_PIECES)
    return CS_OK;
  return add_pieces(cuda, desc, &cached, options, out);
}

static cs_status add_scatter(const cs_op_desc *desc, const cs_enumerate_options *options,
                             cs_candidate_list *out) {
  char id[] = CS_CUDA_SCATTER_ID, family[] = "cuda.convtranspose_scatter";
  /* Not deterministic: additions come in any order. */
  cs_candidate candidate = {.id = id, .family = family, .fused = true};
  if (options->deterministic || !cs_baseline_is_wanted(options, family) ||
      !cs_cuda_scatter_takes(desc))
    return CS_OK;
  candidate.workspace_bytes = cs_cuda_scatter_workspace(desc);
  if (candidate.workspace_bytes > options->workspace_limit) return CS_OK;
  return cs_candidate_list_add_copy(out, &candidate);
}

/* The rows that the product of a piece is of; false: its pixels are planes. */
static bool rows_of(const cs_columns *columns, const cs_cublaslt_problem *problem,
                    cs_product_rows *out) {
  *out = (cs_product_rows){.rows = problem->n,
                           .in = problem->k,
                           .out = problem->m,
                           .pitch = problem->b.pitch,
                           .weight_pitch = cs_round_up(problem->k, 16),
                           .alignment = problem->b.alignment};
  return !columns->planes;
}

static cs_status add_rungs(const cs_op_desc *desc, const cs_enumerate_options *options,
                           cs_candidate_list *out) {
  cs_columns columns;
  cs_cublaslt_problem problem;
  cs_product_rows rows;
  if (!cs_baseline_is_wanted(options, FAMILY) || cs_columns_make(desc, &columns) ||
      !cs_columns_cut(&columns, desc->inputs[0].shape.dims[0], options->workspace_limit) ||
      columns.pieces > MOST_PIECES)
    return CS_OK;
  cs_op_desc piece = cs_columns_piece(&columns, desc);
  if (cs_cublaslt_columns_make(&piece, &columns, &problem) || !rows_of(&columns, &problem, &rows))
    return CS_OK;
  for (int r = 0; cs_cuda_product_rung(r); r++) {
    cs_candidate rung = {.id = (char *)(uintptr_t)cs_cuda_product_rung(r), .deterministic = true};
    if (cs_cuda_product_takes(rung.id, &rows)) {
      CS_RETURN_IF_ERROR(add_product(&columns, &rung, out));
    }
  }
  return CS_OK;
}

cs_status cs_columns_baselines(const cs_op_desc *desc, const cs_enumerate_options *options,
                               cs_candidate_list *out) {
  CS_RETURN_IF_ERROR(add_scatter(desc, options, out));
  return add_rungs(desc, options, out);
}

/* ---- Preparing ---- */

static cs_status refuse(const cs_exec *exec, const char *why) {
  return cs_error(CS_CODE_BAD_INPUT, "'%s' is for products of columns, and this %s is %s", exec->id,
                  cs_op_name(exec->desc.op), why);
}

static cs_status prepare_rung(cs_exec *exec, const char *rung) {
  if (!rows_of(&exec->columns, &exec->product, &exec->rows)) return refuse(exec, "one of planes");
  if (!cs_cuda_product_takes(rung, &exec->rows)) return refuse(exec, "not of that rung's extents");
  exec->rung = rung; /* within the exec's id */
  exec->product.a.pitch = exec->rows.weight_pitch;
  return CS_OK;
}

cs_status cs_columns_prepare(cs_exec *exec) {
  cs_cuda_backend *cuda = exec->backend;
  int pieces = 0;
  const char *product = cs_columns_id_parse(exec->id, &pieces);
  const char *refusal =
      product ? cs_columns_make(&exec->desc, &exec->columns) : "asked for by no such name";
  if (refusal) return refuse(exec, refusal);
  if (exec->columns.images % pieces != 0) return refuse(exec, "of a batch that cannot be cut so");
  exec->columns.images /= pieces;
  exec->columns.pieces = pieces;
  cs_op_desc piece = cs_columns_piece(&exec->columns, &exec->desc);
  refusal = cs_cublaslt_columns_make(&piece, &exec->columns, &exec->product);
  if (refusal) return refuse(exec, refusal);
  exec->staging_bytes = exec->workspace_bytes = cs_columns_bytes(&exec->columns);
  if (strncmp(product, "cuda.", 5) == 0) return prepare_rung(exec, product);
  CS_RETURN_IF_ERROR(cs_cublaslt_plan_create(&cuda->cublaslt, &cuda->base.logger, &exec->product,
                                             product, &exec->matmul));
  exec->workspace_bytes += cs_cublaslt_plan_workspace(exec->matmul);
  return CS_OK;
}

cs_status cs_scatter_prepare(cs_exec *exec) {
  if (!cs_cuda_scatter_takes(&exec->desc)) return refuse(exec, "no such operation");
  exec->workspace_bytes = cs_cuda_scatter_workspace(&exec->desc);
  return CS_OK;
}

/* ---- Weights: a row of channels for each tap and filter, then the bias in f32 ---- */

static const cs_cublaslt_matrix *weights_of(const cs_exec *exec) {
  return exec->columns.planes ? &exec->product.b : &exec->product.a;
}

void cs_columns_plan_weights(cs_exec *exec) {
  if (exec->kind == CS_EXEC_SCATTER) {
    exec->weight_bytes = cs_cuda_scatter_weight_bytes(&exec->desc);
    return;
  }
  const cs_cublaslt_matrix *w = weights_of(exec);
  exec->weight_bytes = w->columns * w->pitch * cs_dtype_size(exec->product.storage);
  if (!exec->desc.has_bias) return;
  exec->bias_dtype = CS_DTYPE_F32;
  exec->bias_offset = cs_round_up(exec->weight_bytes, BIAS_ALIGNMENT);
  exec->weight_bytes = exec->bias_offset + exec->columns.filters * (int64_t)sizeof(float);
}

static void store(cs_dtype dtype, void *out, int64_t index, float value) {
  if (dtype == CS_DTYPE_F32) {
    ((float *)out)[index] = value;
  } else {
    ((uint16_t *)out)[index] = dtype == CS_DTYPE_F16 ? cs_f32_to_f16(value) : cs_f32_to_bf16(value);
  }
}

/* From [channel][filter][tap] to rows [tap][filter] of channels. */
void cs_columns_pack(const cs_exec *exec, const float *weight, const float *bias, void *host_out) {
  if (exec->kind == CS_EXEC_SCATTER) {
    cs_cuda_scatter_pack(&exec->desc, weight, bias, host_out);
    return;
  }
  const cs_cublaslt_matrix *w = weights_of(exec);
  int64_t filters = exec->columns.filters, taps = w->columns / filters;
  memset(host_out, 0, (size_t)exec->weight_bytes);
  for (int64_t c = 0; c < w->rows; c++)
    for (int64_t k = 0; k < filters; k++)
      for (int64_t t = 0; t < taps; t++)
        store(exec->product.storage, host_out, (t * filters + k) * w->pitch + c,
              weight[(c * filters + k) * taps + t]);
  if (exec->bias_offset < 0) return;
  memcpy((char *)host_out + exec->bias_offset, bias, (size_t)filters * sizeof(*bias));
}

/* ---- Launching ---- */

static cs_status launch_product(const cs_bound *bound, const void *x, cudaStream_t stream) {
  const cs_launch *launch = &bound->launch;
  const cs_exec *exec = launch->exec;
  const void *weights = launch->weights;
  if (exec->rung) {
    return cs_cuda_product(exec->rung, exec->product.storage, &exec->rows, x, weights,
                           launch->workspace, stream);
  }
  void *own = (char *)launch->workspace + exec->staging_bytes;
  bool planes = exec->columns.planes;
  return cs_cublaslt_launch(exec->matmul, bound->product, planes ? x : weights,
                            planes ? weights : x, NULL, launch->workspace, own, stream);
}

static cs_status launch_piece(const cs_bound *bound, const cs_op_desc *piece, const void *x,
                              void *y, cudaStream_t stream) {
  const cs_launch *launch = &bound->launch;
  const cs_exec *exec = launch->exec;
  const float *bias = NULL;
  if (exec->bias_offset >= 0)
    bias = (const float *)((const char *)launch->weights + exec->bias_offset);
  CS_RETURN_IF_ERROR(launch_product(bound, x, stream));
  return cs_cuda_gather_columns(piece, &exec->columns, launch->workspace, bias, y, stream);
}

cs_status cs_columns_launch(const cs_bound *bound, cudaStream_t stream) {
  const cs_launch *launch = &bound->launch;
  const cs_exec *exec = launch->exec;
  if (exec->kind == CS_EXEC_SCATTER) {
    return cs_cuda_scatter_launch(&exec->desc, launch->inputs[0], launch->weights,
                                  launch->workspace, launch->output, stream);
  }
  cs_op_desc piece = cs_columns_piece(&exec->columns, &exec->desc);
  int64_t size = cs_dtype_size(exec->desc.output.dtype), images = exec->columns.images;
  for (int i = 0; i < exec->columns.pieces; i++) {
    const char *x =
        (const char *)launch->inputs[0] + i * images * exec->desc.inputs[0].strides[0] * size;
    char *y = (char *)launch->output + i * images * exec->desc.output.strides[0] * size;
    CS_RETURN_IF_ERROR(launch_piece(bound, &piece, x, y, stream));
  }
  return CS_OK;
}
