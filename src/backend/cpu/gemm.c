#include "backend/cpu/gemm.h"

#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/omp.h"
#include "backend/cpu/tile.h"

#define ROWS CPU_TILE_ROWS
#define LANES CPU_TILE_LANES
#define DEPTH 256    /* of a block of weights: 16 KiB with its lanes, of a first-level cache */
#define ROW_BLOCK 64 /* rows of x that share a block of weights: DEPTH of each, a second level */

typedef struct problem {
  int64_t rows, in, out, blocks; /* blocks of LANES outputs */
  const float *x, *weights, *bias;
  bool has_bias;
  float *y;
} problem;

static problem problem_of(const cs_op_desc *desc) {
  int64_t out = desc->output.shape.dims[1];
  return (problem){.rows = desc->output.shape.dims[0],
                   .in = desc->inputs[0].shape.dims[1],
                   .out = out,
                   .blocks = (out + LANES - 1) / LANES};
}

const char *cpu_gemm_name(cpu_gemm form) {
  static const char *const names[] = {"", "naive", "blocked"};
  return names[form];
}

static bool plain(const cs_tensor_desc *tensor) {
  return tensor->dtype == CS_DTYPE_F32 && tensor->shape.rank == 2 && cs_tensor_is_dense(tensor) &&
         tensor->layout == CS_LAYOUT_NCHW;
}

bool cpu_gemm_takes(const cs_op_desc *desc) {
  return desc->op == CS_OP_GEMM && !desc->has_residual && plain(&desc->inputs[0]) &&
         plain(&desc->output);
}

static int64_t matrix_elements(const problem *p, cpu_gemm form) {
  return p->in * (form == CPU_GEMM_BLOCKED ? p->blocks * LANES : p->out);
}

int64_t cpu_gemm_weight_bytes(const cs_op_desc *desc, cpu_gemm form) {
  problem p = problem_of(desc);
  return (matrix_elements(&p, form) + p.out) * (int64_t)sizeof(float);
}

/* [output][input], of blocks [block][input][lane]. */
void cpu_gemm_pack(const cs_op_desc *desc, cpu_gemm form, const float *weight, const float *bias,
                   float *out) {
  problem p = problem_of(desc);
  if (form == CPU_GEMM_NAIVE) memcpy(out, weight, (size_t)(p.out * p.in) * sizeof *out);
  for (int64_t o = 0; form == CPU_GEMM_BLOCKED && o < p.out; o++) {
    float *block = out + o / LANES * p.in * LANES + o % LANES;
    for (int64_t i = 0; i < p.in; i++) block[i * LANES] = weight[o * p.in + i];
  }
  if (bias) memcpy(out + matrix_elements(&p, form), bias, (size_t)p.out * sizeof *bias);
}

static void run_naive(const problem *p) {
  CPU_PARALLEL_FOR
  for (int64_t row = 0; row < p->rows; row++)
    for (int64_t o = 0; o < p->out; o++) {
      float sum = p->has_bias ? p->bias[o] : 0;
      for (int64_t i = 0; i < p->in; i++) sum += p->x[row * p->in + i] * p->weights[o * p->in + i];
      p->y[row * p->out + o] = sum;
    }
}

/* Adds `depth` products from input `k` on to ROWS × LANES outputs from (row, block) on; rows beyond
 * the last are the last one's again, and not kept. */
static void add_tile(const problem *p, cpu_tile_fn add, int64_t row, int64_t block, int64_t k,
                     int64_t depth) {
  float sums[ROWS][LANES] = {{0}};
  const float *x[ROWS];
  int64_t rows = cs_min_i64(ROWS, p->rows - row), lanes = cs_min_i64(LANES, p->out - block * LANES);
  for (int64_t i = 0; i < ROWS; i++) x[i] = p->x + (row + cs_min_i64(i, rows - 1)) * p->in + k;
  add(sums, x, 1, depth, p->weights + (block * p->in + k) * LANES);
  for (int64_t i = 0; i < rows; i++) {
    float *y = p->y + (row + i) * p->out + block * LANES;
    for (int64_t lane = 0; lane < lanes; lane++) {
      float before = k > 0 ? y[lane] : p->has_bias ? p->bias[block * LANES + lane] : 0;
      y[lane] = before + sums[i][lane];
    }
  }
}

static void run_blocked(const problem *p) {
  cpu_tile_fn add = cpu_tile_choose();
  int64_t row_blocks = (p->rows + ROW_BLOCK - 1) / ROW_BLOCK;
  CPU_PARALLEL_FOR
  for (int64_t work = 0; work < row_blocks * p->blocks; work++) {
    int64_t block = work % p->blocks, first = work / p->blocks * ROW_BLOCK;
    int64_t end = cs_min_i64(first + ROW_BLOCK, p->rows);
    for (int64_t k = 0; k < p->in; k += DEPTH)
      for (int64_t row = first; row < end; row += ROWS)
        add_tile(p, add, row, block, k, cs_min_i64(DEPTH, p->in - k));
  }
}

void cpu_gemm_run(const cs_op_desc *desc, cpu_gemm form, const float *x, const float *weights,
                  float *y) {
  problem p = problem_of(desc);
  p.x = x;
  p.y = y;
  p.weights = weights;
  p.bias = weights + matrix_elements(&p, form);
  p.has_bias = desc->has_bias;
  if (form == CPU_GEMM_NAIVE) run_naive(&p);
  if (form == CPU_GEMM_BLOCKED) run_blocked(&p);
  if (desc->activation.kind != CS_ACT_NONE) {
    cpu_epilogue(&desc->output, y, NULL, NULL, desc->activation);
  }
}
