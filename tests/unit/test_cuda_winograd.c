/* Winograd's way without a GPU: the kernels' steps with their transforms, on what is packed for
 * them, are the convolution; its workspace; what is refused. */
#include "values_fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/winograd_exec.h"

typedef struct layer {
  int64_t n, c, h, w, k, pads[4];
} layer;

/* Whole and cut tiles, images smaller than a tile, padding on some sides, beyond a tile's. */
static const layer layers[] = {
    {1, 8, 8, 8, 8, {1, 1, 1, 1}},   {2, 9, 7, 10, 13, {1, 1, 1, 1}},
    {3, 16, 5, 3, 8, {0, 0, 0, 0}},  {1, 12, 1, 1, 10, {1, 1, 1, 1}},
    {2, 8, 9, 6, 17, {0, 1, 2, 0}},  {1, 33, 4, 13, 9, {2, 2, 2, 2}},
    {2, 10, 6, 6, 11, {3, 0, 0, 5}},
};
#define N_LAYERS (sizeof layers / sizeof *layers)

static cs_op_desc desc_of(const layer *l, bool bias) {
  cs_op_desc d = {.op = CS_OP_CONV, .precision = CS_PRECISION_F32, .n_inputs = 1, .has_bias = bias};
  cs_shape in = {4, {l->n, l->c, l->h, l->w}};
  cs_shape out = {
      4, {l->n, l->k, l->h + l->pads[0] + l->pads[2] - 2, l->w + l->pads[1] + l->pads[3] - 2}};
  d.attrs.conv = (cs_conv_attrs){.out_channels = l->k,
                                 .kernel = {3, 3},
                                 .strides = {1, 1},
                                 .dilations = {1, 1},
                                 .group = 1,
                                 .bias = bias};
  memcpy(d.attrs.conv.pads, l->pads, sizeof l->pads);
  d.inputs[0] = cs_tensor_dense(&in, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  d.output = cs_tensor_dense(&out, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  return d;
}

/* ---- The kernels' steps ---- */

/* Both axes of a tile: the columns, then the rows. */
static void transform(bool forth, int m, float *tile) {
  int n = m + 2, left = forth ? n : m;
  float all[CS_WINOGRAD_MOST * CS_WINOGRAD_MOST];
  for (int j = 0; j < n; j++) {
    if (forth) cs_winograd_forth(m, tile + j, all + j, n);
    if (!forth) cs_winograd_back(m, tile + j, all + j, n);
  }
  for (int i = 0; i < left; i++) {
    if (forth) cs_winograd_forth(m, all + i * n, tile + i * n, 1);
    if (!forth) cs_winograd_back(m, all + i * n, tile + i * n, 1);
  }
}

static void step_inputs(const cs_op_desc *d, const cs_winograd *w, const float *x, float *out) {
  const int64_t *in = d->inputs[0].shape.dims, *pads = d->attrs.conv.pads;
  for (int64_t c = 0; c < w->channels; c++)
    for (int64_t t = 0; t < w->tiles; t++) {
      int64_t image = t / (w->tiles_h * w->tiles_w);
      int64_t y0 = t / w->tiles_w % w->tiles_h * w->m - pads[0];
      int64_t x0 = t % w->tiles_w * w->m - pads[1];
      float tile[CS_WINOGRAD_MOST * CS_WINOGRAD_MOST] = {0};
      for (int64_t i = 0; i < w->n; i++)
        for (int64_t j = 0; j < w->n; j++)
          if (y0 + i >= 0 && y0 + i < in[2] && x0 + j >= 0 && x0 + j < in[3])
            tile[i * w->n + j] = x[cs_tensor_offset4(&d->inputs[0], image, c, y0 + i, x0 + j)];
      transform(true, w->m, tile);
      for (int64_t i = 0; i < w->n * w->n; i++) out[(i * w->channels + c) * w->pitch + t] = tile[i];
    }
}

static void step_products(const cs_winograd *w, const float *filters, const float *tiles,
                          float *sums) {
  for (int64_t i = 0; i < w->n * w->n; i++)
    for (int64_t k = 0; k < w->filters; k++)
      for (int64_t t = 0; t < w->tiles; t++) {
        float sum = 0;
        for (int64_t c = 0; c < w->channels; c++)
          sum += filters[(i * w->channels + c) * w->filter_pitch + k] *
                 tiles[(i * w->channels + c) * w->pitch + t];
        sums[(i * w->filters + k) * w->pitch + t] = sum;
      }
}

static void step_outputs(const cs_op_desc *d, const cs_winograd *w, const float *sums,
                         const float *bias, float *y) {
  const int64_t *out = d->output.shape.dims;
  for (int64_t k = 0; k < w->filters; k++)
    for (int64_t t = 0; t < w->tiles; t++) {
      int64_t image = t / (w->tiles_h * w->tiles_w);
      int64_t y0 = t / w->tiles_w % w->tiles_h * w->m, x0 = t % w->tiles_w * w->m;
      float tile[CS_WINOGRAD_MOST * CS_WINOGRAD_MOST];
      for (int64_t i = 0; i < w->n * w->n; i++) tile[i] = sums[(i * w->filters + k) * w->pitch + t];
      transform(false, w->m, tile);
      for (int64_t i = 0; i < w->m && y0 + i < out[2]; i++)
        for (int64_t j = 0; j < w->m && x0 + j < out[3]; j++)
          y[cs_tensor_offset4(&d->output, image, k, y0 + i, x0 + j)] =
              tile[i * w->n + j] + (bias ? bias[k] : 0);
    }
}

static void compute(const cs_op_desc *d, const char *id, const float *x, const float *weight,
                    const float *bias, float *y) {
  char own_id[64];
  cs_exec e = {.kind = CS_EXEC_WINOGRAD, .id = own_id, .desc = *d};
  snprintf(own_id, sizeof own_id, "%s", id);
  ok(cs_winograd_prepare(&e));
  cs_exec_plan_weights(&e);
  const cs_winograd *w = &e.winograd;
  char *packed = zeros(e.weight_bytes, 1);
  ok(cs_exec_pack_weights(&e, weight, bias, packed));
  char *workspace = zeros(e.workspace_bytes, 1);
  float *tiles = (float *)(void *)workspace;
  float *sums = (float *)(void *)(workspace + e.staging_bytes);
  assert_true(w->n * w->n * w->filters * w->pitch * 4 <= e.workspace_bytes - e.staging_bytes);
  step_inputs(d, w, x, tiles);
  step_products(w, (const float *)(const void *)packed, tiles, sums);
  step_outputs(d, w, sums,
               d->has_bias ? (const float *)(const void *)(packed + e.bias_offset) : NULL, y);
  free(packed);
  free(workspace);
}

/* Largest difference over the largest value. */
static double error_of(const layer *l, const char *id, bool has_bias) {
  cs_op_desc d = desc_of(l, has_bias);
  int64_t n_y = count(&d.output.shape);
  float *x = random_values(count(&d.inputs[0].shape), 1), *y = zeros(n_y, sizeof *y);
  float *weight = random_values(cs_op_weight_elements(&d), 2);
  float *bias = has_bias ? random_values(l->k, 3) : NULL;
  double *wanted = reference_of(&d, x, weight, bias);
  double worst = 0, largest = 0;
  compute(&d, id, x, weight, bias, y);
  for (int64_t i = 0; i < n_y; i++) {
    worst = fmax(worst, fabs((double)y[i] - wanted[i]));
    largest = fmax(largest, fabs(wanted[i]));
  }
  free(x), free(weight), free(bias), free(y), free(wanted);
  return worst / largest;
}

static void the_steps_are_the_convolution(void **state) {
  (void)state;
  for (int v = 0; cs_winograd_id(v); v++)
    for (size_t i = 0; i < N_LAYERS; i++)
      for (int bias = 0; bias < 2; bias++) {
        double error = error_of(&layers[i], cs_winograd_id(v), bias);
        if (!(error < 2e-6))
          fail_msg("%s, layer %zu: error %g of the largest output", cs_winograd_id(v), i, error);
      }
}

/* ---- Workspace ---- */

/* It grows with the batch, so that parts of one fit where the whole does not. */
static void a_limit_leaves_out_what_does_not_fit(void **state) {
  (void)state;
  layer l = {8, 64, 56, 56, 64, {1, 1, 1, 1}};
  cs_op_desc d = desc_of(&l, true);
  /* Of 8 images: 8 · 14 · 14 tiles of 36 elements, and 8 · 28 · 28 of 16, of 64 + 64 rows. */
  int64_t four = 36LL * 8 * 196 * 128 * 4, two = 16LL * 8 * 784 * 128 * 4;
  struct {
    int64_t limit;
    size_t n;
  } cases[] = {{two, 2}, {two - 1, 1}, {four, 1}, {four - 1, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cs_candidate_list list = {0};
    cs_enumerate_options options = {.workspace_limit = cases[i].limit};
    ok(cs_winograd_enumerate(&d, &options, &list));
    assert_int_equal(list.n, cases[i].n);
    for (size_t j = 0; j < list.n; j++) {
      assert_string_equal(list.items[j].family, "cuda.winograd");
      assert_true(list.items[j].notes & CS_NOTE_WINOGRAD);
      assert_true(list.items[j].deterministic);
      assert_int_equal(list.items[j].workspace_bytes, j + 1 == list.n ? four : two);
      cs_exec e = {.kind = CS_EXEC_WINOGRAD, .id = list.items[j].id, .desc = d};
      ok(cs_winograd_prepare(&e)); /* what is offered is prepared, with as much */
      assert_int_equal(e.workspace_bytes, list.items[j].workspace_bytes);
    }
    cs_candidate_list_free(&list);
  }
}

/* ---- Vectors that outputs leave in ---- */

static void outputs_leave_in_vectors_that_hold(void **state) {
  (void)state;
  /* Strides of 9 images' planes of 8 filters; alignment in bytes; outputs together, of tiles 4 × 4
   * and 2 × 2. */
  static const struct {
    int64_t width, strides[4], alignment;
    int four, two;
  } cases[] = {
      {8, {512, 64, 8, 1}, 256, 4, 2},   {6, {288, 36, 6, 1}, 256, 2, 2},
      {7, {336, 42, 7, 1}, 256, 1, 1},   {1, {48, 6, 1, 1}, 256, 1, 1},
      {8, {512, 64, 8, 1}, 8, 2, 2},     {8, {512, 64, 8, 1}, 4, 1, 1},
      {8, {514, 64, 8, 1}, 256, 2, 2},   {8, {512, 63, 8, 1}, 256, 1, 1},
      {8, {512, 64, 10, 1}, 256, 2, 2},  {4, {512, 64, 8, 2}, 256, 1, 1},
      {8, {-512, 64, -8, 1}, 256, 4, 2}, {8, {512, 64, 8, -1}, 256, 1, 1},
      {12, {1024, 96, 12, 1}, 16, 4, 2},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cs_tensor_desc y = {.shape = {4, {9, 8, 6, cases[i].width}}, .alignment = cases[i].alignment};
    memcpy(y.strides, cases[i].strides, sizeof cases[i].strides);
    cs_winograd four = {.m = 4}, two = {.m = 2};
    int found[2] = {cs_winograd_vector(&four, &y), cs_winograd_vector(&two, &y)};
    if (found[0] != cases[i].four || found[1] != cases[i].two)
      fail_msg("case %zu: vectors of %d and %d", i, found[0], found[1]);
  }
}

/* ---- What is refused ---- */

static void expect_refused(const cs_op_desc *d, const char *why) {
  cs_winograd w;
  const char *refusal = cs_winograd_make(d, "cuda.winograd.v1-4x4", &w);
  assert_non_null(refusal);
  assert_string_equal(refusal, why);
}

static void what_has_no_tiles_is_refused(void **state) {
  (void)state;
  cs_winograd w;
  cs_op_desc d = desc_of(&layers[0], true);
  assert_null(cs_winograd_make(&d, "cuda.winograd.v1-4x4", &w));
  assert_string_equal(cs_winograd_make(&d, "cuda.winograd.v1-3x3", &w),
                      "asked for by no such name");
  d.precision = CS_PRECISION_TF32;
  expect_refused(&d, "not of f32");
  d = desc_of(&layers[0], true), d.attrs.conv.strides[1] = 2;
  expect_refused(&d, "with strides or dilations");
  d = desc_of(&layers[0], true), d.attrs.conv.dilations[0] = 2;
  expect_refused(&d, "with strides or dilations");
  d = desc_of(&layers[0], true), d.attrs.conv.kernel[0] = 5;
  expect_refused(&d, "not 3 × 3");
  d = desc_of(&layers[0], true), d.attrs.conv.group = 2;
  expect_refused(&d, "in groups");
  d = desc_of(&layers[0], true);
  d.output = cs_tensor_dense(&d.output.shape, CS_DTYPE_F32, CS_LAYOUT_NHWC);
  expect_refused(&d, "not of planes");
  layer few = layers[0];
  few.c = 3;
  d = desc_of(&few, true);
  expect_refused(&d, "of few channels");
}

/* Indices of threads, extents and pads are 32-bit numbers. */
static void what_is_too_large_is_refused(void **state) {
  (void)state;
  static const layer large[] = {
      {1 << 20, 64, 56, 56, 64, {1, 1, 1, 1}},
      {1, 8, 1, 8, 8, {1 << 30, 1, 1, 1}},   /* rows of padding alone */
      {1, 8, 8, 1, 8, {1, INT32_MAX, 1, 1}}, /* the format's largest pad */
      {1, (1 << 20) + 1, 1, 1, 8, {1, 1, 1, 1}},
      {1, 8, 1, 1, (1 << 20) + 1, {1, 1, 1, 1}},
      {1 << 27, 8, 1, 1, 8, {1, 1, 1, 1}}, /* 2^30 tiles of channels */
  };
  for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
    cs_op_desc d = desc_of(&large[i], true);
    expect_refused(&d, "too large");
  }
  layer most = {(1 << 27) - 1, 8, 1, 1, 8, {1, 1, 1, 1}};
  cs_op_desc d = desc_of(&most, true);
  cs_winograd w;
  assert_null(cs_winograd_make(&d, "cuda.winograd.v1-4x4", &w));
  assert_int_equal(w.pitch, 1 << 27);
  assert_int_equal(cs_winograd_workspace(&w), 36LL * 16 * 4 * (1 << 27));
}

/* Its layout may be another's than the output's. */
static void residuals_are_planes_or_rows(void **state) {
  (void)state;
  cs_winograd w;
  cs_op_desc d = desc_of(&layers[0], true);
  d.n_inputs = 2, d.has_residual = true;
  for (cs_layout layout = 0; layout < CS_LAYOUT_COUNT; layout++) {
    d.inputs[1] = cs_tensor_dense(&d.output.shape, CS_DTYPE_F32, layout);
    if (cs_layout_granule(layout) == 1) {
      assert_null(cs_winograd_make(&d, "cuda.winograd.v1-4x4", &w));
    } else {
      expect_refused(&d, "of another type or a blocked layout");
    }
  }
  d.inputs[1] = cs_tensor_dense(&d.output.shape, CS_DTYPE_F16, CS_LAYOUT_NCHW);
  expect_refused(&d, "of another type or a blocked layout");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_steps_are_the_convolution),
      cmocka_unit_test(a_limit_leaves_out_what_does_not_fit),
      cmocka_unit_test(outputs_leave_in_vectors_that_hold),
      cmocka_unit_test(what_has_no_tiles_is_refused),
      cmocka_unit_test(what_is_too_large_is_refused),
      cmocka_unit_test(residuals_are_planes_or_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
