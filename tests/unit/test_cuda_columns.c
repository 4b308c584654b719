/* Transposed convolutions as products of columns, without a GPU: which inputs reach an output, and
 * that the product which cuBLASLt is asked for, and gathering its columns, are the operation. */
#include "values_fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/columns_exec.h"

typedef struct layer {
  int64_t n, c, h, w, k;
  int kernel[2], stride[2], dilation[2], pads[4], more[2]; /* more: output padding */
} layer;

static const layer layers[] = {
    {2, 3, 4, 5, 6, {4, 4}, {2, 2}, {1, 1}, {1, 1, 1, 1}, {0, 0}},
    {4, 5, 1, 1, 3, {4, 4}, {1, 1}, {1, 1}, {0, 0, 0, 0}, {0, 0}},
    {2, 2, 3, 4, 5, {5, 3}, {2, 3}, {1, 1}, {2, 0, 1, 1}, {0, 0}},
    {3, 4, 5, 6, 8, {3, 3}, {2, 2}, {3, 3}, {1, 1, 1, 1}, {0, 0}},
    {2, 4, 4, 3, 8, {3, 4}, {4, 4}, {2, 2}, {1, 1, 1, 1}, {0, 0}},
    {1, 8, 3, 3, 2, {2, 2}, {3, 3}, {1, 1}, {0, 0, 0, 0}, {2, 2}},
    {4, 1, 6, 6, 1, {3, 3}, {1, 1}, {2, 2}, {2, 3, 2, 3}, {0, 0}},
};
#define N_LAYERS (sizeof layers / sizeof *layers)

static cs_op_desc desc_of(const layer *l, cs_layout layout, bool bias) {
  cs_op_desc d = {.op = CS_OP_CONV_TRANSPOSE, .n_inputs = 1, .has_bias = bias};
  cs_shape in = {4, {l->n, l->c, l->h, l->w}}, out = {4, {l->n, l->k}};
  cs_conv_attrs *conv = &d.attrs.conv;
  *conv = (cs_conv_attrs){.out_channels = l->k, .group = 1, .bias = bias};
  for (int i = 0; i < 2; i++) {
    conv->kernel[i] = l->kernel[i], conv->strides[i] = l->stride[i];
    conv->dilations[i] = l->dilation[i], conv->output_padding[i] = l->more[i];
    conv->pads[i] = l->pads[i], conv->pads[2 + i] = l->pads[2 + i];
    out.dims[2 + i] = (in.dims[2 + i] - 1) * l->stride[i] - l->pads[i] - l->pads[2 + i] +
                      l->dilation[i] * (l->kernel[i] - 1) + 1 + l->more[i];
  }
  d.inputs[0] = cs_tensor_dense(&in, CS_DTYPE_F32, layout);
  d.output = cs_tensor_dense(&out, CS_DTYPE_F32, layout);
  return d;
}

/* ---- One axis ---- */

static void every_input_that_reaches_an_output_is_found_once(void **state) {
  (void)state;
  for (size_t i = 0; i < N_LAYERS; i++) {
    cs_op_desc d = desc_of(&layers[i], CS_LAYOUT_NCHW, false);
    cs_columns columns;
    assert_null(cs_columns_make(&d, &columns));
    const cs_axis_map *axes[] = {&columns.h, &columns.w};
    for (int axis = 0; axis < 2; axis++) {
      const cs_axis_map *a = axes[axis];
      int found = 0, wanted = 0;
      for (int out = 0; out < a->out; out++) {
        cs_reach reach = cs_reach_of(a, out);
        for (int j = 0; j < reach.n; j++) {
          int tap = reach.tap + j * a->tap_step, in = reach.in - j * a->in_step;
          assert_in_range(tap, 0, a->kernel - 1);
          assert_in_range(in, 0, a->in - 1);
          assert_int_equal(cs_reached(a, in, tap), out);
          found++;
        }
      }
      for (int in = 0; in < a->in; in++)
        for (int tap = 0; tap < a->kernel; tap++) {
          int out =
              in * layers[i].stride[axis] + tap * layers[i].dilation[axis] - layers[i].pads[axis];
          bool there = out >= 0 && out < a->out;
          assert_int_equal(cs_reached(a, in, tap), there ? out : -1);
          wanted += there;
        }
      assert_int_equal(found, wanted);
    }
  }
}

/* ---- The whole ---- */

/* What cuBLASLt computes of a problem: D = op(A) · B by columns. */
static void multiply(const cs_cublaslt_problem *p, const float *a, const float *b, float *d) {
  for (int64_t image = 0; image < p->images; image++)
    for (int64_t column = 0; column < p->n; column++)
      for (int64_t row = 0; row < p->m; row++) {
        double sum = 0;
        for (int64_t k = 0; k < p->k; k++) {
          int64_t at = p->plain ? k * p->a.pitch + row : row * p->a.pitch + k;
          sum += (double)a[image * p->a.image + at] *
                 (double)b[image * p->b.image + column * p->b.pitch + k];
        }
        d[image * p->d.image + column * p->d.pitch + row] = (float)sum;
      }
}

/* What the kernel does, for one piece. */
static void gather(const cs_op_desc *desc, const cs_columns *c, const float *values,
                   const float *bias, float *y) {
  const cs_column_strides s = cs_columns_strides(c);
  const int64_t *out = desc->output.shape.dims;
  for (int64_t n = 0; n < out[0]; n++)
    for (int64_t k = 0; k < out[1]; k++)
      for (int64_t oy = 0; oy < out[2]; oy++)
        for (int64_t ox = 0; ox < out[3]; ox++) {
          cs_reach h = cs_reach_of(&c->h, (int)oy), w = cs_reach_of(&c->w, (int)ox);
          float sum = bias ? bias[k] : 0;
          for (int i = 0; i < h.n; i++)
            for (int j = 0; j < w.n; j++) {
              int64_t tap =
                  (int64_t)(h.tap + i * c->h.tap_step) * c->w.kernel + w.tap + j * c->w.tap_step;
              sum += values[n * s.image + k * s.filter + (h.in - i * c->h.in_step) * s.h +
                            (w.in - j * c->w.in_step) * s.w + tap * s.tap];
            }
          y[cs_tensor_offset4(&desc->output, n, k, oy, ox)] = sum;
        }
}

/* By a rung of our own (rows), or what cuBLASLt would be asked for. */
static void prepare(cs_exec *e, int pieces) {
  char id[64];
  snprintf(id, sizeof id, "cuda.col2im/%d:cuda.gemm.register.v1", pieces);
  e->id = id;
  e->bias_offset = -1;
  ok(cs_columns_prepare(e));
  e->id = NULL;
  assert_int_equal(e->rows.weight_pitch % 16, 0);
  assert_int_equal(e->workspace_bytes, cs_columns_bytes(&e->columns));
}

static void ask(cs_exec *e, int pieces) {
  assert_null(cs_columns_make(&e->desc, &e->columns));
  e->columns.images /= pieces;
  e->columns.pieces = pieces;
  cs_op_desc piece = cs_columns_piece(&e->columns, &e->desc);
  assert_int_equal(piece.output.shape.dims[0] * pieces, e->desc.output.shape.dims[0]);
  assert_null(cs_cublaslt_columns_make(&piece, &e->columns, &e->product));
}

/* The steps of a candidate, with what is packed for it, in so many pieces. */
static void compute(const cs_op_desc *d, bool rung, int pieces, const float *x, const float *weight,
                    const float *bias, float *y) {
  cs_exec e = {.kind = CS_EXEC_COLUMNS, .desc = *d};
  if (rung) {
    prepare(&e, pieces);
  } else {
    ask(&e, pieces);
  }
  cs_op_desc piece = cs_columns_piece(&e.columns, d);
  cs_exec_plan_weights(&e);
  char *packed = zeros(e.weight_bytes, 1);
  ok(cs_exec_pack_weights(&e, weight, bias, packed));
  float *columns = zeros(cs_columns_bytes(&e.columns) / (int64_t)sizeof(float), sizeof *columns);
  const float *w = (const float *)(const void *)packed;
  for (int i = 0; i < pieces; i++) {
    const float *from = x + i * e.columns.images * d->inputs[0].strides[0];
    bool planes = e.columns.planes;
    multiply(&e.product, planes ? from : w, planes ? w : from, columns);
    gather(&piece, &e.columns, columns,
           d->has_bias ? (const float *)(const void *)(packed + e.bias_offset) : NULL,
           y + i * e.columns.images * d->output.strides[0]);
  }
  free(columns);
  free(packed);
}

static void check(const layer *l, cs_layout layout, bool has_bias, bool rung, int pieces) {
  cs_op_desc d = desc_of(l, layout, has_bias);
  int64_t n_x = count(&d.inputs[0].shape);
  int64_t n_y = count(&d.output.shape);
  float *x = random_values(n_x, 1), *weight = random_values(cs_op_weight_elements(&d), 2);
  float *bias = has_bias ? random_values(l->k, 3) : NULL;
  float *input = zeros(n_x, sizeof *input), *y = zeros(n_y, sizeof *y);
  float *logical = zeros(n_y, sizeof *logical);
  double *wanted = reference_of(&d, x, weight, bias);
  cs_tensor_from_f32(&d.inputs[0], x, input);
  compute(&d, rung, pieces, input, weight, bias, y);
  cs_tensor_to_f32(&d.output, y, logical);
  for (int64_t i = 0; i < n_y; i++)
    if (fabs((double)logical[i] - wanted[i]) > 1e-4)
      fail_msg("element %lld: %g, wanted %g", (long long)i, (double)logical[i], wanted[i]);
  free(x), free(weight), free(bias), free(input), free(y), free(logical), free(wanted);
}

static void product_and_gathering_are_the_operation(void **state) {
  (void)state;
  static const cs_layout layouts[] = {CS_LAYOUT_NCHW, CS_LAYOUT_NHWC};
  for (size_t i = 0; i < N_LAYERS; i++)
    for (int layout = 0; layout < 2; layout++)
      for (int pieces = 1; pieces <= layers[i].n; pieces++)
        if (layers[i].n % pieces == 0)
          check(&layers[i], layouts[layout], pieces == 1, false, pieces);
}

static void rungs_take_rows(void **state) {
  (void)state;
  for (size_t i = 0; i < N_LAYERS; i++)
    for (int pieces = 1; pieces <= layers[i].n; pieces++)
      if (layers[i].n % pieces == 0) check(&layers[i], CS_LAYOUT_NHWC, pieces == 1, true, pieces);
  char id[] = "cuda.col2im/1:cuda.gemm.naive.v1", none[] = "cuda.col2im/1:cuda.gemm.other.v1";
  cs_exec planes = {
      .kind = CS_EXEC_COLUMNS, .id = id, .desc = desc_of(&layers[0], CS_LAYOUT_NCHW, false)};
  cs_exec other = {
      .kind = CS_EXEC_COLUMNS, .id = none, .desc = desc_of(&layers[0], CS_LAYOUT_NHWC, false)};
  cs_status st = cs_columns_prepare(&planes);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  cs_status_free(st);
  st = cs_columns_prepare(&other);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  cs_status_free(st);
}

/* ---- Pieces, and what is refused ---- */

static void a_batch_is_cut_until_its_columns_fit(void **state) {
  (void)state;
  layer l = {12, 3, 4, 4, 8, {4, 4}, {2, 2}, {1, 1}, {1, 1, 1, 1}, {0, 0}};
  cs_op_desc d = desc_of(&l, CS_LAYOUT_NHWC, false);
  cs_columns columns;
  assert_null(cs_columns_make(&d, &columns));
  int64_t image = 4 * 4 * 16 * 8 * 4;
  assert_int_equal(cs_columns_bytes(&columns), 12 * image);
  assert_true(cs_columns_cut(&columns, 12, 12 * image));
  assert_int_equal(columns.pieces, 1);
  assert_true(cs_columns_cut(&columns, 12, 5 * image)); /* of 12 no fifth: 4 at a time */
  assert_int_equal(columns.pieces, 3);
  assert_int_equal(columns.images, 4);
  assert_false(cs_columns_cut(&columns, 12, image - 1));
}

static void ids_are_read(void **state) {
  (void)state;
  int pieces = 0;
  assert_string_equal(cs_columns_id_parse("cuda.col2im/4:cublaslt.v1:algo1", &pieces),
                      "cublaslt.v1:algo1");
  assert_int_equal(pieces, 4);
  static const char *const wrong[] = {"cuda.col2im/0:x", "cuda.col2im/:x",   "cuda.col2im/17:x",
                                      "cuda.col2im/4",   "cuda.col2im/-1:x", "cublaslt.v1:algo1"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_null(cs_columns_id_parse(wrong[i], &pieces));
}

static void what_is_no_product_is_refused(void **state) {
  (void)state;
  cs_columns columns;
  cs_op_desc d = desc_of(&layers[0], CS_LAYOUT_NHWC, false);
  d.attrs.conv.group = 3;
  assert_string_equal(cs_columns_make(&d, &columns), "in groups");
  d = desc_of(&layers[0], CS_LAYOUT_NHWC, false);
  d.has_residual = true;
  assert_non_null(cs_columns_make(&d, &columns));
  d = desc_of(&layers[0], CS_LAYOUT_NCHW, false);
  d.inputs[0].strides[2] += 1; /* lines of planes with gaps */
  assert_string_equal(cs_columns_make(&d, &columns), "pixels that lie at no one distance");
  d.op = CS_OP_CONV;
  assert_string_equal(cs_columns_make(&d, &columns), "no transposed convolution");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_input_that_reaches_an_output_is_found_once),
      cmocka_unit_test(product_and_gathering_are_the_operation),
      cmocka_unit_test(rungs_take_rows),
      cmocka_unit_test(a_batch_is_cut_until_its_columns_fit),
      cmocka_unit_test(ids_are_read),
      cmocka_unit_test(what_is_no_product_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
