/* Which operations Winograd's way computes, how its tiles lie, and its filters. */
#include "backend/cuda/winograd.h"

#include <string.h>

#include "base/base.h"

#define LEAST_CHANNELS 8 /* and filters: with fewer the transforms are all of the time */
#define TILE_ALIGNMENT 32
#define FILTER_ALIGNMENT 4
#define PART_ALIGNMENT 256
#define RUN 16              /* filters packed together: a cache line */
#define MOST_ROWS (1 << 20) /* channels and filters: tiles of them are a grid's extent */

static const struct {
  const char *id;
  int m;
} variants[] = {{CS_WINOGRAD_PREFIX "v1-2x2", 2}, {CS_WINOGRAD_PREFIX "v1-4x4", 4}};
#define N_VARIANTS ((int)(sizeof variants / sizeof *variants))

const char *cs_winograd_id(int index) {
  return index < N_VARIANTS ? variants[index].id : NULL;
}

static const char *refuse(const cs_op_desc *desc) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  if (desc->op != CS_OP_CONV || desc->output.shape.rank != 4) return "no convolution";
  if (desc->precision != CS_PRECISION_F32) return "not of f32";
  if (conv->group != 1) return "in groups";
  if (desc->has_prologue) return "with a prologue";
  for (int axis = 0; axis < 2; axis++) {
    if (conv->kernel[axis] != 3) return "not 3 × 3";
    if (conv->strides[axis] != 1 || conv->dilations[axis] != 1) return "with strides or dilations";
  }
  for (int i = 0; i < desc->n_inputs; i++)
    if (desc->inputs[i].dtype != CS_DTYPE_F32 || cs_layout_granule(desc->inputs[i].layout) != 1)
      return "of another type or a blocked layout";
  if (desc->output.dtype != CS_DTYPE_F32 || cs_layout_granule(desc->output.layout) != 1)
    return "of another type or a blocked layout";
  /* Neighbouring threads have neighbouring tiles. */
  if (desc->inputs[0].layout != CS_LAYOUT_NCHW || desc->output.layout != CS_LAYOUT_NCHW)
    return "not of planes";
  if (desc->inputs[0].shape.dims[1] < LEAST_CHANNELS || conv->out_channels < LEAST_CHANNELS)
    return "of few channels";
  return NULL;
}

/* So that every index of a thread is below 2^31, and every extent an int. */
static bool fits(const cs_op_desc *desc, const cs_winograd *w) {
  const int64_t most = INT32_MAX / 2;
  const int64_t *in = desc->inputs[0].shape.dims, *out = desc->output.shape.dims;
  const int64_t *pads = desc->attrs.conv.pads;
  for (int axis = 2; axis < 4; axis++)
    if (in[axis] > most / 4 || out[axis] > most / 4 || pads[axis - 2] > most / 4) return false;
  double tiles = (double)out[0] * (double)w->tiles_h * (double)w->tiles_w;
  return tiles * (double)w->channels < (double)most && tiles * (double)w->filters < (double)most &&
         w->channels <= MOST_ROWS && w->filters <= MOST_ROWS;
}

const char *cs_winograd_make(const cs_op_desc *desc, const char *id, cs_winograd *out) {
  int v = 0;
  memset(out, 0, sizeof(*out));
  while (v < N_VARIANTS && strcmp(variants[v].id, id) != 0) v++;
  if (v == N_VARIANTS) return "asked for by no such name";
  const char *refusal = refuse(desc);
  if (refusal) return refusal;
  out->m = variants[v].m;
  out->n = out->m + 2;
  out->channels = desc->inputs[0].shape.dims[1];
  out->filters = desc->output.shape.dims[1];
  out->tiles_h = (desc->output.shape.dims[2] + out->m - 1) / out->m;
  out->tiles_w = (desc->output.shape.dims[3] + out->m - 1) / out->m;
  if (!fits(desc, out)) return "too large";
  out->tiles = desc->output.shape.dims[0] * out->tiles_h * out->tiles_w;
  out->pitch = cs_round_up(out->tiles, TILE_ALIGNMENT);
  out->filter_pitch = cs_round_up(out->filters, FILTER_ALIGNMENT);
  return NULL;
}

int cs_winograd_vector(const cs_winograd *w, const cs_tensor_desc *y) {
  const int64_t *s = y->strides;
  for (int v = w->m; v > 1; v /= 2) {
    bool whole = y->shape.dims[3] % v == 0 && s[3] == 1 && s[0] % v == 0 && s[1] % v == 0 &&
                 s[2] % v == 0 && y->alignment % (v * (int64_t)sizeof(float)) == 0;
    if (whole) return v;
  }
  return 1;
}

static int64_t rows_bytes(const cs_winograd *w, int64_t rows, int64_t pitch) {
  return cs_round_up(w->n * w->n * rows * pitch * (int64_t)sizeof(float), PART_ALIGNMENT);
}

int64_t cs_winograd_tiles_bytes(const cs_winograd *w) {
  return rows_bytes(w, w->channels, w->pitch);
}

int64_t cs_winograd_workspace(const cs_winograd *w) {
  return cs_winograd_tiles_bytes(w) + rows_bytes(w, w->filters, w->pitch);
}

int64_t cs_winograd_filters_bytes(const cs_winograd *w) {
  return rows_bytes(w, w->channels, w->filter_pitch);
}

int64_t cs_winograd_weight_bytes(const cs_winograd *w, bool has_bias) {
  return cs_winograd_filters_bytes(w) + (has_bias ? w->filters * (int64_t)sizeof(float) : 0);
}

/* ---- Filters ---- */

/* What three taps are at each point. */
static const double at_points_2[4][3] = {
    {-1, 0, 0}, {1. / 2, 1. / 2, 1. / 2}, {1. / 2, -1. / 2, 1. / 2}, {0, 0, 1}};
static const double at_points_4[6][3] = {{16. / 9, 0, 0},           {-1, -1. / 2, -1. / 4},
                                         {-1, 1. / 2, -1. / 4},     {1. / 9, 1. / 6, 1. / 4},
                                         {1. / 9, -1. / 6, 1. / 4}, {0, 0, 1}};

/* One filter of one channel, in double precision, rounded once. */
static void transform_filter(int m, const float taps[9], float *out, int64_t step) {
  const double(*at)[3] = m == 2 ? at_points_2 : at_points_4;
  int n = m + 2;
  double rows[CS_WINOGRAD_MOST][3];
  for (int i = 0; i < n; i++)
    for (int x = 0; x < 3; x++)
      rows[i][x] = at[i][0] * taps[x] + at[i][1] * taps[3 + x] + at[i][2] * taps[6 + x];
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      out[(i * n + j) * step] =
          (float)(rows[i][0] * at[j][0] + rows[i][1] * at[j][1] + rows[i][2] * at[j][2]);
}

/* Filters k … k + n - 1 of channel c, which lie side by side in each of the n² matrices. */
static void pack_run(const cs_winograd *w, const float *weight, int64_t c, int64_t k, int64_t n,
                     float *filters) {
  float run[CS_WINOGRAD_MOST * CS_WINOGRAD_MOST][RUN];
  for (int64_t i = 0; i < n; i++)
    transform_filter(w->m, weight + ((k + i) * w->channels + c) * 9, &run[0][i], RUN);
  for (int64_t p = 0; p < w->n * w->n; p++)
    memcpy(filters + (p * w->channels + c) * w->filter_pitch + k, run[p],
           (size_t)n * sizeof(float));
}

void cs_winograd_pack(const cs_winograd *w, const float *weight, const float *bias,
                      void *host_out) {
  memset(host_out, 0, (size_t)cs_winograd_filters_bytes(w));
  for (int64_t c = 0; c < w->channels; c++)
    for (int64_t k = 0; k < w->filters; k += RUN)
      pack_run(w, weight, c, k, cs_min_i64(RUN, w->filters - k), host_out);
  if (!bias) return;
  memcpy((char *)host_out + cs_winograd_filters_bytes(w), bias, (size_t)w->filters * sizeof(*bias));
}
