/* What moves elements in the plain C reference, against values worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backend/reference/reference.h"
#include "graph/resample.h"

#define MOST 64

static const double numbers[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static void expect(cs_op op, cs_shape in, cs_attrs attrs, cs_shape out, const double *wanted) {
  const double *inputs[] = {numbers};
  double value[MOST], magnitude[MOST];
  cs_op_desc d = {.op = op, .attrs = attrs, .n_inputs = 1};
  d.inputs[0] = cs_tensor_dense(&in, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  d.output = cs_tensor_dense(&out, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  int64_t n = 1;
  for (int i = 0; i < out.rank; i++) n *= out.dims[i];
  assert_true(n <= MOST);
  for (int threads = 1; threads <= 2; threads++) {
    cs_status st = cs_reference_run(&d, inputs, NULL, NULL, value, magnitude, threads);
    if (st != CS_OK) fail_msg("%s", cs_status_message(st));
    for (int64_t i = 0; i < n; i++) {
      if (fabs(value[i] - wanted[i]) > 1e-9)
        fail_msg("element %d: found %.12g, wanted %.12g", (int)i, value[i], wanted[i]);
    }
  }
}
#define WANTED(...) ((const double[]){__VA_ARGS__})

static void transposes(void **state) {
  (void)state;
  cs_attrs turned = {.transpose = {.perm = {2, 0, 1}, .n_perm = 3}};
  expect(CS_OP_TRANSPOSE, (cs_shape){3, {2, 2, 3}}, turned, (cs_shape){3, {3, 2, 2}},
         WANTED(1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12));
  /* Channels 0 1 2 | 3 4 5 of two pixels are shuffled. */
  cs_attrs shuffled = {.transpose = {.perm = {0, 2, 1, 3, 4},
                                     .n_perm = 5,
                                     .input_shape = {5, {1, 2, 3, 1, 2}},
                                     .output_shape = {4, {1, 6, 1, 2}}}};
  expect(CS_OP_TRANSPOSE, (cs_shape){4, {1, 6, 1, 2}}, shuffled, (cs_shape){4, {1, 6, 1, 2}},
         WANTED(1, 2, 7, 8, 3, 4, 9, 10, 5, 6, 11, 12));
  /* ONNX: DepthToSpace of [1, 8, 1, 2] in blocks of 2, DCR and CRD. */
  cs_attrs dcr = {.transpose = {.perm = {0, 3, 4, 1, 5, 2},
                                .n_perm = 6,
                                .input_shape = {6, {1, 2, 2, 2, 1, 2}},
                                .output_shape = {4, {1, 2, 2, 4}}}};
  expect(CS_OP_TRANSPOSE, (cs_shape){4, {1, 8, 1, 2}}, dcr, (cs_shape){4, {1, 2, 2, 4}},
         WANTED(1, 5, 2, 6, 9, 13, 10, 14, 3, 7, 4, 8, 11, 15, 12, 16));
  cs_attrs crd = {.transpose = {.perm = {0, 1, 4, 2, 5, 3},
                                .n_perm = 6,
                                .input_shape = {6, {1, 2, 2, 2, 1, 2}},
                                .output_shape = {4, {1, 2, 2, 4}}}};
  expect(CS_OP_TRANSPOSE, (cs_shape){4, {1, 8, 1, 2}}, crd, (cs_shape){4, {1, 2, 2, 4}},
         WANTED(1, 3, 2, 4, 5, 7, 6, 8, 9, 11, 10, 12, 13, 15, 14, 16));
}

static void slices(void **state) {
  (void)state;
  cs_shape in = {2, {3, 4}};
  cs_attrs part = {.slice = {2, {0, 1}, {1, 0}, {3, 4}, {1, 3}}};
  expect(CS_OP_SLICE, in, part, (cs_shape){2, {2, 2}}, WANTED(5, 8, 9, 12));
  cs_attrs back = {.slice = {1, {1}, {3}, {-5}, {-2}}};
  expect(CS_OP_SLICE, in, back, (cs_shape){2, {3, 2}}, WANTED(4, 2, 8, 6, 12, 10));
}

static void pads(void **state) {
  (void)state;
  cs_shape in = {2, {2, 3}}, out = {2, {2, 7}};
  cs_attrs attrs = {.pad = {.rank = 2, .pads = {0, 2, 0, 2}, .value = -1}};
  expect(CS_OP_PAD, in, attrs, out, WANTED(-1, -1, 1, 2, 3, -1, -1, -1, -1, 4, 5, 6, -1, -1));
  attrs.pad.mode = CS_PAD_REFLECT;
  expect(CS_OP_PAD, in, attrs, out, WANTED(3, 2, 1, 2, 3, 2, 1, 6, 5, 4, 5, 6, 5, 4));
  attrs.pad.mode = CS_PAD_EDGE;
  expect(CS_OP_PAD, in, attrs, out, WANTED(1, 1, 1, 2, 3, 3, 3, 4, 4, 4, 5, 6, 6, 6));
  attrs.pad.mode = CS_PAD_WRAP;
  expect(CS_OP_PAD, in, attrs, out, WANTED(2, 3, 1, 2, 3, 1, 2, 5, 6, 4, 5, 6, 4, 5));
  /* The first column is cut off. */
  cs_attrs cut = {.pad = {.rank = 2, .pads = {0, -1, 1, 1}, .mode = CS_PAD_EDGE}};
  expect(CS_OP_PAD, in, cut, (cs_shape){2, {3, 3}}, WANTED(2, 3, 3, 5, 6, 6, 5, 6, 6));
}

/* A row of pixels. */
static void expect_row(cs_resize_attrs resize, int64_t in, int64_t out, const double *wanted) {
  resize.sizes[0] = 1, resize.sizes[1] = out;
  expect(CS_OP_RESIZE, (cs_shape){4, {1, 1, 1, in}}, (cs_attrs){.resize = resize},
         (cs_shape){4, {1, 1, 1, out}}, wanted);
}

static void resizes(void **state) {
  (void)state;
  cs_resize_attrs nearest = {.coordinates = CS_RESIZE_ASYMMETRIC, .nearest = CS_RESIZE_FLOOR};
  expect_row(nearest, 3, 6, WANTED(1, 1, 2, 2, 3, 3));
  nearest.nearest = CS_RESIZE_CEIL;
  expect_row(nearest, 3, 6, WANTED(1, 2, 2, 3, 3, 3));
  /* 0, 1.5, 3: halves. */
  nearest.coordinates = CS_RESIZE_ALIGN_CORNERS, nearest.nearest = CS_RESIZE_ROUND_PREFER_FLOOR;
  expect_row(nearest, 4, 3, WANTED(1, 2, 4));
  nearest.nearest = CS_RESIZE_ROUND_PREFER_CEIL;
  expect_row(nearest, 4, 3, WANTED(1, 3, 4));
  cs_resize_attrs linear = {.mode = CS_RESIZE_LINEAR};
  expect_row(linear, 2, 4, WANTED(1, 1.25, 1.75, 2));
  expect_row(linear, 4, 2, WANTED(1.5, 3.5));
  linear.coordinates = CS_RESIZE_ALIGN_CORNERS;
  expect_row(linear, 2, 4, WANTED(1, 4.0 / 3, 5.0 / 3, 2));
  expect_row(linear, 3, 1, WANTED(1));
  linear.coordinates = CS_RESIZE_PYTORCH_HALF_PIXEL;
  expect_row(linear, 3, 1, WANTED(1));
  linear.coordinates = CS_RESIZE_HALF_PIXEL;
  expect_row(linear, 3, 1, WANTED(2));
  linear.coordinates = CS_RESIZE_ASYMMETRIC;
  expect_row(linear, 2, 4, WANTED(1, 1.5, 2, 2));
  /* By 1.5 from 3 to 4.5: (i + 0.5) / 1.5 − 0.5, and symmetric 3/2 (1 − 4/4.5) further. */
  linear.coordinates = CS_RESIZE_HALF_PIXEL_SYMMETRIC, linear.scales[0] = linear.scales[1] = 1.5;
  expect_row(linear, 3, 4, WANTED(1, 1 + 2.0 / 3, 2 + 1.0 / 3, 3));
  cs_resize_attrs crop = {.mode = CS_RESIZE_LINEAR,
                          .coordinates = CS_RESIZE_TF_CROP,
                          .roi = {0, 0.5, 1, 1.5},
                          .extrapolation_value = 9};
  expect_row(crop, 5, 3, WANTED(3, 5, 9));
  /* At one half the weights of a = −0.75 are −3/32, 19/32, 19/32, −3/32. */
  cs_resize_attrs cubic = {.mode = CS_RESIZE_CUBIC, .cubic_coeff_a = -0.75};
  cubic.coordinates = CS_RESIZE_ALIGN_CORNERS;
  expect_row(cubic, 2, 3, WANTED(1, 1.5, 2));
  expect_row(cubic, 4, 3, WANTED(1, 2.5, 4));
  cubic.exclude_outside = true;
  expect_row(cubic, 2, 3, WANTED(1, 1.5, 2));
}

/* What kernels read of an axis by taps is what its windows are: the same elements, the same
 * weights.
 */
static void expect_taps(const cs_resize_axis *axis, int64_t size) {
  for (int64_t i = 0; i < size; i++) {
    double weight[CS_RESIZE_TAPS], wanted[MOST] = {0}, found[MOST] = {0};
    int64_t first = 0;
    cs_resize_window window = cs_resize_window_of(axis, i);
    int taps = cs_resize_taps_in(axis->mode, axis, i, &first, weight);
    assert_int_equal(taps > 0, window.n > 0);
    for (int t = 0; t < taps; t++) found[cs_resize_inside(axis, first + t)] += weight[t];
    for (int64_t t = 0; t < window.n; t++)
      wanted[cs_resize_inside(axis, window.first + t)] += cs_resize_weight(axis, &window, t);
    for (int k = 0; k < MOST; k++) assert_true(fabs(found[k] - wanted[k]) < 1e-14);
  }
}

static void taps_and_windows(void **state) {
  (void)state;
  static const int64_t extents[] = {1, 4, 7, 30}, sizes[] = {1, 3, 7, 16, 60};
  for (int how = 0; how < 7 * 3 * 2; how++)
    for (int e = 0; e < 4; e++)
      for (int s = 0; s < 5; s++) {
        cs_op_desc d = {.op = CS_OP_RESIZE, .n_inputs = 1};
        d.attrs.resize = (cs_resize_attrs){.sizes = {sizes[s], sizes[s]},
                                           .roi = {0.1, 0.2, 1.3, 0.7},
                                           .cubic_coeff_a = -0.6,
                                           .mode = (cs_resize_mode)(how % 3),
                                           .coordinates = (cs_resize_coordinates)(how / 6),
                                           .exclude_outside = how / 3 % 2 != 0};
        cs_shape in = {4, {1, 1, extents[e], extents[e]}};
        d.inputs[0] = cs_tensor_dense(&in, CS_DTYPE_F32, CS_LAYOUT_NCHW);
        for (int i = 0; i < 2; i++) {
          cs_resize_axis axis;
          cs_resize_axis_of(&d, i, &axis);
          expect_taps(&axis, sizes[s]);
        }
      }
}

/* (i + 0.5) / scale. */
static void resizes_as_tensorflow(void **state) {
  (void)state;
  cs_resize_attrs nearest = {.coordinates = CS_RESIZE_TF_HALF_PIXEL_FOR_NN,
                             .nearest = CS_RESIZE_FLOOR};
  expect_row(nearest, 3, 6, WANTED(1, 1, 2, 2, 3, 3));
  expect_row(nearest, 5, 3, WANTED(1, 3, 5));
  nearest.nearest = CS_RESIZE_CEIL;
  expect_row(nearest, 3, 6, WANTED(2, 2, 3, 3, 3, 3));
  expect_row(nearest, 4, 2, WANTED(2, 4));
}

/* From 4 to 2 the places are 0.5 and 2.5, and a filter reaches twice as far. */
static void resizes_without_aliasing(void **state) {
  (void)state;
  cs_resize_attrs linear = {.mode = CS_RESIZE_LINEAR, .antialias = true};
  /* Weights 1/8, 3/8, 3/8, 1/8 of elements −1 … 2 and 1 … 4. */
  expect_row(linear, 4, 2, WANTED(13.0 / 8, 27.0 / 8));
  expect_row(linear, 2, 4, WANTED(1, 1.25, 1.75, 2));
  /* One pixel: its place is 1.5, elements −2 … 5 have 1/32, 3/32, 5/32, 7/32, 7/32, … */
  expect_row(linear, 4, 1, WANTED(2.5));
  linear.exclude_outside = true;
  expect_row(linear, 4, 2, WANTED(12.0 / 7, 23.0 / 7));
  /* By 0.5 though the size is another: places 0.5, 2.5, 4.5. */
  linear.exclude_outside = false, linear.scales[0] = 1, linear.scales[1] = 0.5;
  expect_row(linear, 6, 2, WANTED(13.0 / 8, 3.5));
  /* Elements −3 … 4 of the cubic, a = −0.75, at 1.75, 1.25, 0.75, 0.25 and back: −0.03515625,
   * −0.10546875, 0.26171875, 0.87890625 halved. */
  cs_resize_attrs cubic = {.mode = CS_RESIZE_CUBIC, .cubic_coeff_a = -0.75, .antialias = true};
  expect_row(cubic, 4, 2, WANTED(1.490234375, 3.509765625));
  cs_resize_attrs nearest = {.nearest = CS_RESIZE_FLOOR, .antialias = true};
  expect_row(nearest, 4, 2, WANTED(1, 3));
  /* Both axes: rows 1 2 3 4 and 5 6 7 8 are averaged. */
  cs_attrs both = {.resize = {.mode = CS_RESIZE_LINEAR, .antialias = true, .sizes = {1, 2}}};
  expect(CS_OP_RESIZE, (cs_shape){4, {1, 1, 2, 4}}, both, (cs_shape){4, {1, 1, 1, 2}},
         WANTED(13.0 / 8 + 2, 27.0 / 8 + 2));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(transposes),
                                     cmocka_unit_test(slices),
                                     cmocka_unit_test(pads),
                                     cmocka_unit_test(resizes),
                                     cmocka_unit_test(taps_and_windows),
                                     cmocka_unit_test(resizes_as_tensorflow),
                                     cmocka_unit_test(resizes_without_aliasing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
