#include "backend/cpu/transposed.h"

#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/omp.h"
#include "backend/cpu/tile.h"

#define LANES CPU_TILE_LANES /* output channels computed together */
#define WIDE CPU_TILE_ROWS   /* outputs computed together, neighbours of one remainder */
#define COLUMN_BYTES ((int64_t)16 << 20) /* of columns at a time: what a cache may hold */

typedef struct problem {
  const cs_op_desc *desc;
  const cs_conv_attrs *conv;
  int64_t n, c, h, w, k, out_h, out_w, taps, blocks; /* blocks of LANES output channels */
  const int64_t *xs, *ys;                            /* strides of N, C, H, W, elements */
  const float *x, *weights, *bias;                   /* bias: NULL where there is none */
  float *y;
} problem;

static problem problem_of(const cs_op_desc *desc) {
  const int64_t *in = desc->inputs[0].shape.dims, *out = desc->output.shape.dims;
  const cs_conv_attrs *conv = &desc->attrs.conv;
  return (problem){.desc = desc,
                   .conv = conv,
                   .n = in[0],
                   .c = in[1],
                   .h = in[2],
                   .w = in[3],
                   .k = out[1],
                   .out_h = out[2],
                   .out_w = out[3],
                   .taps = conv->kernel[0] * conv->kernel[1],
                   .blocks = (out[1] + LANES - 1) / LANES,
                   .xs = desc->inputs[0].strides,
                   .ys = desc->output.strides};
}

const char *cpu_transposed_name(cpu_transposed form) {
  static const char *const names[] = {"", "gemm", "gather", "scatter"};
  return names[form];
}

static bool plain(const cs_tensor_desc *tensor) {
  return tensor->dtype == CS_DTYPE_F32 && tensor->shape.rank == 4 && cs_tensor_is_dense(tensor) &&
         (tensor->layout == CS_LAYOUT_NCHW || tensor->layout == CS_LAYOUT_NHWC);
}

bool cpu_transposed_takes(const cs_op_desc *desc) {
  return desc->op == CS_OP_CONV_TRANSPOSE && desc->attrs.conv.group == 1 && !desc->has_residual &&
         plain(&desc->inputs[0]) && plain(&desc->output);
}

/* ---- Weights ---- */

static int64_t filter_elements(const problem *p, cpu_transposed form) {
  return p->taps * p->c * (form == CPU_TRANSPOSED_GATHER ? p->blocks * LANES : p->k);
}

/* Where tap t of channel c for output channel k lies: [c][t][k], of gathering [block][t][c][lane].
 */
static int64_t place(const problem *p, cpu_transposed form, int64_t c, int64_t t, int64_t k) {
  if (form != CPU_TRANSPOSED_GATHER) return (c * p->taps + t) * p->k + k;
  return ((k / LANES * p->taps + t) * p->c + c) * LANES + k % LANES;
}

int64_t cpu_transposed_weight_bytes(const cs_op_desc *desc, cpu_transposed form) {
  problem p = problem_of(desc);
  return (filter_elements(&p, form) + p.k) * (int64_t)sizeof(float);
}

void cpu_transposed_pack(const cs_op_desc *desc, cpu_transposed form, const float *weight,
                         const float *bias, float *out) {
  problem p = problem_of(desc);
  for (int64_t c = 0; c < p.c; c++)
    for (int64_t k = 0; k < p.k; k++)
      for (int64_t t = 0; t < p.taps; t++)
        out[place(&p, form, c, t, k)] = weight[(c * p.k + k) * p.taps + t];
  if (bias) memcpy(out + filter_elements(&p, form), bias, (size_t)p.k * sizeof *bias);
}

/* ---- Which input an output's tap reads ---- */

/* On one axis; -1: none. */
static int64_t input_at(const cs_conv_attrs *conv, int axis, int64_t out, int64_t tap,
                        int64_t extent) {
  int64_t at = out + conv->pads[axis] - tap * conv->dilations[axis];
  if (at < 0 || at % conv->strides[axis] != 0) return -1;
  at /= conv->strides[axis];
  return at < extent ? at : -1;
}

/* ---- As a product ---- */

static int64_t images_at_a_time(const problem *p) {
  int64_t bytes = p->h * p->w * p->taps * p->k * (int64_t)sizeof(float);
  /* Images of NCHW are matrices of their own. */
  bool rows = p->desc->inputs[0].layout == CS_LAYOUT_NHWC;
  return rows ? cs_max_i64(1, cs_min_i64(p->n, COLUMN_BYTES / bytes)) : 1;
}

int64_t cpu_transposed_workspace(const cs_op_desc *desc, cpu_transposed form) {
  problem p = problem_of(desc);
  if (form != CPU_TRANSPOSED_GEMM) return 0;
  return images_at_a_time(&p) * p.h * p.w * p.taps * p.k * (int64_t)sizeof(float);
}

/* The columns that reach one output, summed; `columns` are those of its image. */
static void sum_columns(const problem *p, const float *columns, int64_t oy, int64_t ox, float *y) {
  int64_t step = p->ys[1];
  for (int64_t k = 0; k < p->k; k++) y[k * step] = p->bias ? p->bias[k] : 0;
  for (int64_t r = 0; r < p->conv->kernel[0]; r++) {
    int64_t iy = input_at(p->conv, 0, oy, r, p->h);
    for (int64_t s = 0; iy >= 0 && s < p->conv->kernel[1]; s++) {
      int64_t ix = input_at(p->conv, 1, ox, s, p->w);
      if (ix < 0) continue;
      int64_t tap = r * p->conv->kernel[1] + s;
      const float *column = columns + ((iy * p->w + ix) * p->taps + tap) * p->k;
      for (int64_t k = 0; k < p->k; k++) y[k * step] += column[k];
    }
  }
}

static cs_status run_gemm(const problem *p, float *columns) {
  int64_t at_a_time = images_at_a_time(p), pixels = p->h * p->w, row = p->taps * p->k;
  bool rows = p->desc->inputs[0].layout == CS_LAYOUT_NHWC;
  for (int64_t first = 0; first < p->n; first += at_a_time) {
    int64_t images = cs_min_i64(at_a_time, p->n - first);
    CS_RETURN_IF_ERROR(dnn_sgemm(!rows, images * pixels, row, p->c, p->x + first * p->xs[0],
                                 rows ? p->c : pixels, p->weights, columns));
    int64_t lines = images * p->out_h;
    CPU_PARALLEL_FOR
    for (int64_t line = 0; line < lines; line++) {
      int64_t image = line / p->out_h, oy = line % p->out_h;
      float *y = p->y + (first + image) * p->ys[0] + oy * p->ys[2];
      for (int64_t ox = 0; ox < p->out_w; ox++) {
        sum_columns(p, columns + image * pixels * row, oy, ox, y + ox * p->ys[3]);
      }
    }
  }
  return CS_OK;
}

/* ---- Gathering ---- */

/* WIDE outputs of a line, from `ox` a stride apart, for one block of channels. What lies outside of
 * the input is read from `zeros`. */
static void gather(const problem *p, cpu_tile_fn add_tap, const float *zeros, const float *image,
                   int64_t oy, int64_t ox, int64_t block, float *line) {
  const cs_conv_attrs *conv = p->conv;
  float sums[WIDE][LANES] = {{0}};
  int64_t lanes = cs_min_i64(LANES, p->k - block * LANES);
  for (int64_t r = 0; r < conv->kernel[0]; r++) {
    int64_t iy = input_at(conv, 0, oy, r, p->h);
    for (int64_t s = 0; iy >= 0 && s < conv->kernel[1]; s++) {
      int64_t shifted = ox + conv->pads[1] - s * conv->dilations[1];
      if (shifted % conv->strides[1] != 0) continue; /* another remainder's tap */
      const float *x[WIDE];
      for (int i = 0; i < WIDE; i++) {
        int64_t ix = input_at(conv, 1, ox + i * conv->strides[1], s, p->w);
        x[i] = ix < 0 ? zeros : image + iy * p->xs[2] + ix * p->xs[3];
      }
      int64_t tap = r * conv->kernel[1] + s;
      add_tap(sums, x, p->xs[1], p->c, p->weights + (block * p->taps + tap) * p->c * LANES);
    }
  }
  for (int i = 0; i < WIDE && ox + i * conv->strides[1] < p->out_w; i++) {
    float *y = line + (ox + i * conv->strides[1]) * p->ys[3] + block * LANES * p->ys[1];
    for (int64_t lane = 0; lane < lanes; lane++) {
      float bias = p->bias ? p->bias[block * LANES + lane] : 0;
      y[lane * p->ys[1]] = sums[i][lane] + bias;
    }
  }
}

static cs_status run_gather(const problem *p) {
  int64_t stride = p->conv->strides[1], lines = p->n * p->out_h;
  cpu_tile_fn add_tap = cpu_tile_choose();
  float *zeros = cs_calloc((size_t)(p->c * p->xs[1]), sizeof *zeros);
  if (!zeros) return cs_no_memory("zeros", (size_t)(p->c * p->xs[1]) * sizeof *zeros);
  CPU_PARALLEL_FOR
  for (int64_t work = 0; work < lines * p->blocks; work++) {
    int64_t line = work % lines, block = work / lines, n = line / p->out_h, oy = line % p->out_h;
    const float *image = p->x + n * p->xs[0];
    float *y = p->y + n * p->ys[0] + oy * p->ys[2];
    for (int64_t first = 0; first < cs_min_i64(stride, p->out_w); first++)
      for (int64_t ox = first; ox < p->out_w; ox += WIDE * stride)
        gather(p, add_tap, zeros, image, oy, ox, block, y);
  }
  free(zeros);
  return CS_OK;
}

/* ---- Scattering ---- */

/* One input pixel through one tap to the output that it reaches, if it is there. */
static void scatter(const problem *p, const float *x, int64_t tap, int64_t oy, int64_t ox,
                    float *image) {
  if (oy < 0 || oy >= p->out_h || ox < 0 || ox >= p->out_w) return;
  float *y = image + oy * p->ys[2] + ox * p->ys[3];
  for (int64_t c = 0; c < p->c; c++) {
    const float *w = p->weights + (c * p->taps + tap) * p->k;
    for (int64_t k = 0; k < p->k; k++) y[k * p->ys[1]] += x[c * p->xs[1]] * w[k];
  }
}

static void scatter_image(const problem *p, const float *x, float *y) {
  const cs_conv_attrs *conv = p->conv;
  for (int64_t k = 0; k < p->k; k++)
    for (int64_t oy = 0; oy < p->out_h; oy++)
      for (int64_t ox = 0; ox < p->out_w; ox++)
        y[k * p->ys[1] + oy * p->ys[2] + ox * p->ys[3]] = p->bias ? p->bias[k] : 0;
  for (int64_t iy = 0; iy < p->h; iy++)
    for (int64_t ix = 0; ix < p->w; ix++)
      for (int64_t tap = 0; tap < p->taps; tap++) {
        int64_t r = tap / conv->kernel[1], s = tap % conv->kernel[1];
        scatter(p, x + iy * p->xs[2] + ix * p->xs[3], tap,
                iy * conv->strides[0] + r * conv->dilations[0] - conv->pads[0],
                ix * conv->strides[1] + s * conv->dilations[1] - conv->pads[1], y);
      }
}

static cs_status run_scatter(const problem *p) {
  CPU_PARALLEL_FOR
  for (int64_t n = 0; n < p->n; n++) {
    scatter_image(p, p->x + n * p->xs[0], p->y + n * p->ys[0]);
  }
  return CS_OK;
}

/* ---- All ---- */

cs_status cpu_transposed_run(const cs_op_desc *desc, cpu_transposed form, const float *x,
                             const float *weights, float *workspace, float *y) {
  problem p = problem_of(desc);
  p.x = x;
  p.y = y;
  p.weights = weights;
  p.bias = desc->has_bias ? weights + filter_elements(&p, form) : NULL;
  CS_RETURN_IF_ERROR(form == CPU_TRANSPOSED_GEMM     ? run_gemm(&p, workspace)
                     : form == CPU_TRANSPOSED_GATHER ? run_gather(&p)
                                                     : run_scatter(&p));
  if (desc->activation.kind != CS_ACT_NONE) {
    cpu_epilogue(&desc->output, y, NULL, NULL, desc->activation);
  }
  return CS_OK;
}
