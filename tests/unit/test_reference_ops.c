/* The plain C reference against values worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backend/reference/reference.h"

static cs_tensor_desc plain(int64_t n, int64_t c, int64_t h, int64_t w) {
  cs_shape shape = {4, {n, c, h, w}};
  return cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
}

static cs_op_desc op_of(cs_op op, cs_tensor_desc x, cs_tensor_desc y) {
  cs_op_desc d = {.op = op, .n_inputs = 1, .output = y};
  d.inputs[0] = x;
  return d;
}

static cs_op_desc conv_of(cs_op op, cs_tensor_desc x, cs_tensor_desc y, int64_t kh, int64_t kw) {
  cs_op_desc d = op_of(op, x, y);
  d.attrs.conv = (cs_conv_attrs){.out_channels = y.shape.dims[1], .group = 1, .kernel = {kh, kw}};
  for (int i = 0; i < 2; i++) d.attrs.conv.strides[i] = d.attrs.conv.dilations[i] = 1;
  return d;
}

static void expect(const cs_op_desc *d, const double *const *inputs, const float *weight,
                   const float *bias, const double *wanted, int64_t n) {
  double value[256], magnitude[256];
  assert_true(n <= 256);
  for (int threads = 1; threads <= 2; threads++) {
    memset(value, 0x55, sizeof value);
    cs_status st = cs_reference_run(d, inputs, weight, bias, value, magnitude, threads);
    if (st != CS_OK) fail_msg("%s", cs_status_message(st));
    for (int64_t i = 0; i < n; i++) {
      if (fabs(value[i] - wanted[i]) > 1e-9 * (1 + fabs(wanted[i])))
        fail_msg("element %d: found %.12g, wanted %.12g", (int)i, value[i], wanted[i]);
    }
  }
}

static void expect_magnitude(const cs_op_desc *d, const double *const *inputs, const float *weight,
                             const float *bias, const double *wanted, int64_t n) {
  double value[256], magnitude[256];
  cs_status st = cs_reference_run(d, inputs, weight, bias, value, magnitude, 1);
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
  for (int64_t i = 0; i < n; i++) assert_true(fabs(magnitude[i] - wanted[i]) < 1e-9);
}

static const double one_to_nine[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
static const double *const nine[] = {one_to_nine};

static void conv_pads_on_the_side_asked_for(void **state) {
  (void)state;
  const float w[] = {1, 2, 3, 4};
  cs_op_desc d = conv_of(CS_OP_CONV, plain(1, 1, 3, 3), plain(1, 1, 3, 3), 2, 2);
  d.attrs.conv.pads[0] = d.attrs.conv.pads[1] = 1; /* top and left */
  const double begin[] = {4, 11, 18, 18, 37, 47, 36, 67, 77};
  expect(&d, nine, w, NULL, begin, 9);
  cs_op_desc e = conv_of(CS_OP_CONV, plain(1, 1, 3, 3), plain(1, 1, 3, 3), 2, 2);
  e.attrs.conv.pads[2] = e.attrs.conv.pads[3] = 1; /* bottom and right */
  const double end[] = {37, 47, 21, 67, 77, 33, 23, 26, 9};
  expect(&e, nine, w, NULL, end, 9);
}

static void conv_strides_and_dilates(void **state) {
  (void)state;
  const double x[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
                      13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24};
  const double *inputs[] = {x};
  const float w[] = {1, 10, 100, 1000};
  cs_op_desc d = conv_of(CS_OP_CONV, plain(1, 1, 5, 5), plain(1, 1, 2, 4), 2, 2);
  d.attrs.conv.strides[0] = 2;
  d.attrs.conv.dilations[0] = 2;
  /* (0,0): 0 + 10·1 + 100·10 + 1000·11 */
  const double wanted[] = {12010, 13121, 14232, 15343, 23120 + 0, 24231, 25342, 26453};
  expect(&d, inputs, w, NULL, wanted, 8);
}

static void conv_keeps_groups_apart(void **state) {
  (void)state;
  const double x[] = {1, 2, 3, 4}, residual[] = {100, -200, 300, -400};
  const double *inputs[] = {x, residual};
  const float w[] = {1, 10, 2, 20, 3, 30, 4, 40}, bias[] = {0.5f, -0.5f, 1, -1};
  cs_op_desc d = conv_of(CS_OP_CONV, plain(1, 4, 1, 1), plain(1, 4, 1, 1), 1, 1);
  d.attrs.conv.group = 2;
  d.has_bias = true;
  const double sums[] = {21.5, 41.5, 130, 171};
  expect(&d, inputs, w, bias, sums, 4);
  d.has_residual = true;
  d.n_inputs = 2;
  d.inputs[1] = d.output;
  d.activation.kind = CS_ACT_RELU;
  const double rectified[] = {121.5, 0, 430, 0}, magnitudes[] = {121.5, 242.5, 430, 573};
  expect(&d, inputs, w, bias, rectified, 4);
  expect_magnitude(&d, inputs, w, bias, magnitudes, 4);
}

static void conv_transpose_scatters(void **state) {
  (void)state;
  const double x[] = {1, 2, 3, 4};
  const double *inputs[] = {x};
  const float w[] = {1, 2, 3, 4};
  cs_op_desc d = conv_of(CS_OP_CONV_TRANSPOSE, plain(1, 1, 2, 2), plain(1, 1, 4, 4), 2, 2);
  d.attrs.conv.strides[0] = d.attrs.conv.strides[1] = 2;
  const double apart[] = {1, 2, 2, 4, 3, 4, 6, 8, 3, 6, 4, 8, 9, 12, 12, 16};
  expect(&d, inputs, w, NULL, apart, 16);
  /* stride 1: overlaps add; one more row and column of nothing by output_padding */
  cs_op_desc e = conv_of(CS_OP_CONV_TRANSPOSE, plain(1, 1, 2, 2), plain(1, 1, 3, 3), 2, 2);
  const double overlapping[] = {1, 4, 4, 6, 20, 16, 9, 24, 16};
  expect(&e, inputs, w, NULL, overlapping, 9);
  /* stride 2, pads that cut top and left, output_padding that adds bottom and right */
  cs_op_desc f = conv_of(CS_OP_CONV_TRANSPOSE, plain(1, 1, 2, 2), plain(1, 1, 4, 4), 2, 2);
  f.attrs.conv.strides[0] = f.attrs.conv.strides[1] = 2;
  f.attrs.conv.pads[0] = f.attrs.conv.pads[1] = 1;
  f.attrs.conv.output_padding[0] = f.attrs.conv.output_padding[1] = 1;
  const double shifted[] = {4, 6, 8, 0, 6, 4, 8, 0, 12, 12, 16, 0, 0, 0, 0, 0};
  expect(&f, inputs, w, NULL, shifted, 16);
}

static void conv_transpose_takes_its_weight_input_channel_first(void **state) {
  (void)state;
  const double x[] = {1, 10, 100, 1000};
  const double *inputs[] = {x};
  const float w[] = {1, 2, 3, 4, 5, 6, 7, 8}; /* [4, 4 / 2] */
  cs_op_desc d = conv_of(CS_OP_CONV_TRANSPOSE, plain(1, 4, 1, 1), plain(1, 4, 1, 1), 1, 1);
  d.attrs.conv.group = 2;
  const double wanted[] = {31, 42, 7500, 8600};
  expect(&d, inputs, w, NULL, wanted, 4);
}

static void gemm_multiplies_rows(void **state) {
  (void)state;
  const double x[] = {1, 2, 3, -1, 0, 1};
  const double *inputs[] = {x};
  const float w[] = {1, 0, -1, 2, 2, 2}, bias[] = {10, -13};
  cs_shape in = {2, {2, 3}}, out = {2, {2, 2}};
  cs_op_desc d = op_of(CS_OP_GEMM, cs_tensor_dense(&in, CS_DTYPE_F32, CS_LAYOUT_NCHW),
                       cs_tensor_dense(&out, CS_DTYPE_F32, CS_LAYOUT_NCHW));
  d.attrs.gemm.out_features = 2;
  d.has_bias = true;
  const double wanted[] = {8, -1, 8, -13};
  expect(&d, inputs, w, bias, wanted, 4);
  d.activation.kind = CS_ACT_LEAKY_RELU;
  d.activation.alpha = 0.5;
  const double leaky[] = {8, -0.5, 8, -6.5};
  expect(&d, inputs, w, bias, leaky, 4);
}

static cs_op_desc pool_of(cs_op op, int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  cs_op_desc d = op_of(op, plain(1, 1, in, in), plain(1, 1, out, out));
  for (int i = 0; i < 2; i++) {
    d.attrs.pool.kernel[i] = kernel;
    d.attrs.pool.strides[i] = stride;
    d.attrs.pool.dilations[i] = 1;
  }
  return d;
}

static void max_pool_ignores_padding(void **state) {
  (void)state;
  const double negative[] = {-1, -2, -3, -4, -5, -6, -7, -8, -9};
  const double *inputs[] = {negative};
  cs_op_desc d = pool_of(CS_OP_MAX_POOL, 3, 2, 2, 2);
  d.attrs.pool.pads[0] = d.attrs.pool.pads[1] = 1;
  const double wanted[] = {-1, -2, -4, -5};
  expect(&d, inputs, NULL, NULL, wanted, 4);
}

static void max_pool_in_ceil_mode_keeps_a_cut_window(void **state) {
  (void)state;
  cs_op_desc d = pool_of(CS_OP_MAX_POOL, 3, 2, 2, 2);
  d.attrs.pool.ceil_mode = true;
  const double wanted[] = {5, 6, 8, 9};
  expect(&d, nine, NULL, NULL, wanted, 4);
}

static void max_pool_dilates(void **state) {
  (void)state;
  cs_op_desc d = pool_of(CS_OP_MAX_POOL, 3, 1, 2, 1);
  d.attrs.pool.dilations[0] = d.attrs.pool.dilations[1] = 2;
  const double x[] = {3, 100, 1, 100, 100, 100, 7, 100, 2}, seven[] = {7};
  const double *inputs[] = {x};
  expect(&d, inputs, NULL, NULL, seven, 1);
}

static void average_pool_counts_what_it_is_told_to(void **state) {
  (void)state;
  cs_op_desc d = pool_of(CS_OP_AVERAGE_POOL, 3, 3, 2, 1);
  d.attrs.pool.pads[0] = d.attrs.pool.pads[1] = 1;
  const double exclude[] = {1, 1.5, 2.5, 2.5, 3, 4, 5.5, 6, 7};
  expect(&d, nine, NULL, NULL, exclude, 9);
  d.attrs.pool.count_include_pad = true;
  const double include[] = {0.25, 0.75, 1.25, 1.25, 3, 4, 2.75, 6, 7};
  expect(&d, nine, NULL, NULL, include, 9);
}

/* Windows of 2 at stride 2 over 3 + pad 0: the second reaches one past the image. ceil_mode's
 * overhang is no padding, so it does not count even with count_include_pad. */
static void average_pool_never_counts_the_overhang(void **state) {
  (void)state;
  cs_op_desc d = pool_of(CS_OP_AVERAGE_POOL, 3, 2, 2, 2);
  d.attrs.pool.ceil_mode = d.attrs.pool.count_include_pad = true;
  const double wanted[] = {3, 4.5, 7.5, 9};
  expect(&d, nine, NULL, NULL, wanted, 4);
}

static void global_average_pool_averages(void **state) {
  (void)state;
  const double x[] = {1, 2, 3, 4, -8, 0, 0, 0}, wanted[] = {2.5, -2};
  const double *inputs[] = {x};
  cs_op_desc d = op_of(CS_OP_GLOBAL_AVERAGE_POOL, plain(1, 2, 2, 2), plain(1, 2, 1, 1));
  expect(&d, inputs, NULL, NULL, wanted, 2);
}

/* x = 1, 2, 3, 4 over channels; alpha/size = 1, bias 1, beta 1: y = x / (1 + sum of squares). */
static void lrn_windows_of_odd_and_even_size(void **state) {
  (void)state;
  const double x[] = {1, 2, 3, 4};
  const double *inputs[] = {x};
  cs_op_desc d = op_of(CS_OP_LRN, plain(1, 4, 1, 1), plain(1, 4, 1, 1));
  d.attrs.lrn = (cs_lrn_attrs){3, 3, 1, 1};
  const double odd[] = {1 / 6.0, 2 / 15.0, 3 / 30.0, 4 / 26.0};
  expect(&d, inputs, NULL, NULL, odd, 4);
  d.attrs.lrn = (cs_lrn_attrs){2, 2, 1, 1}; /* [c, c + 1] */
  const double even[] = {1 / 6.0, 2 / 14.0, 3 / 26.0, 4 / 17.0};
  expect(&d, inputs, NULL, NULL, even, 4);
  d.attrs.lrn = (cs_lrn_attrs){4, 4, 0.5, 2}; /* [c − 1, c + 2], square root */
  const double four[] = {1 / sqrt(16), 2 / sqrt(32), 3 / sqrt(31), 4 / sqrt(27)};
  expect(&d, inputs, NULL, NULL, four, 4);
}

static void softmax_normalises_its_axis(void **state) {
  (void)state;
  const double l2 = log(2.0), x[] = {0, l2, 1000, 1000 + l2},
               wanted[] = {1 / 3.0, 2 / 3.0, 1 / 3.0, 2 / 3.0};
  const double *inputs[] = {x};
  cs_shape rows = {2, {2, 2}};
  cs_tensor_desc t = cs_tensor_dense(&rows, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  cs_op_desc d = op_of(CS_OP_SOFTMAX, t, t);
  d.attrs.axis.axis = 1;
  expect(&d, inputs, NULL, NULL, wanted, 4);
  const double planes[] = {0, l2, l2, 0}, channels[] = {1 / 3.0, 2 / 3.0, 2 / 3.0, 1 / 3.0};
  const double *both[] = {planes};
  cs_op_desc e = op_of(CS_OP_SOFTMAX, plain(1, 2, 1, 2), plain(1, 2, 1, 2));
  e.attrs.axis.axis = 1;
  expect(&e, both, NULL, NULL, channels, 4);
}

static void pad_adds_its_value_around(void **state) {
  (void)state;
  const double x[] = {1, 2}, wanted[] = {7, 7, 7, 7, 7, 1, 2, 7, 7, 7, 7, 7};
  const double *inputs[] = {x};
  cs_op_desc d = op_of(CS_OP_PAD, plain(1, 1, 1, 2), plain(1, 1, 3, 4));
  d.attrs.pad.rank = 4;
  d.attrs.pad.pads[2] = d.attrs.pad.pads[3] = 1;
  d.attrs.pad.pads[6] = d.attrs.pad.pads[7] = 1;
  d.attrs.pad.value = 7;
  expect(&d, inputs, NULL, NULL, wanted, 12);
}

static void batch_norm_scales_and_shifts_channels(void **state) {
  (void)state;
  const double x[] = {1, 2, 3, 4}, wanted[] = {3, 5, 0, 0};
  const double *inputs[] = {x};
  const float scale[] = {2, -1}, shift[] = {1, 3};
  cs_op_desc d = op_of(CS_OP_BATCH_NORM, plain(1, 2, 1, 2), plain(1, 2, 1, 2));
  d.has_bias = true;
  d.activation.kind = CS_ACT_RELU;
  expect(&d, inputs, scale, shift, wanted, 4);
}

static void activations_and_pairs(void **state) {
  (void)state;
  const double x[] = {-2, 0.5, 3}, y[] = {4, -4, 2};
  const double *inputs[] = {x, y};
  cs_op_desc d = op_of(CS_OP_RELU, plain(1, 3, 1, 1), plain(1, 3, 1, 1));
  const double relu[] = {0, 0.5, 3}, leaky[] = {-0.2, 0.5, 3}, clip[] = {-1, 0.5, 1};
  const double sum[] = {2, -3.5, 5}, product[] = {-8, -2, 6};
  const double sigmoid[] = {0.11920292202211755, 0.6224593312018546, 0.9525741268224334};
  const double tangent[] = {-0.9640275800758169, 0.46211715726000973, 0.9950547536867305};
  expect(&d, inputs, NULL, NULL, relu, 3);
  d.op = CS_OP_LEAKY_RELU, d.attrs.leaky_relu.alpha = 0.1;
  expect(&d, inputs, NULL, NULL, leaky, 3);
  d.op = CS_OP_CLIP, d.attrs.clip.min = -1, d.attrs.clip.max = 1;
  expect(&d, inputs, NULL, NULL, clip, 3);
  d.op = CS_OP_SIGMOID;
  expect(&d, inputs, NULL, NULL, sigmoid, 3);
  d.op = CS_OP_TANH;
  expect(&d, inputs, NULL, NULL, tangent, 3);
  d.n_inputs = 2, d.inputs[1] = d.inputs[0], d.op = CS_OP_ADD;
  expect(&d, inputs, NULL, NULL, sum, 3);
  d.op = CS_OP_MUL;
  expect(&d, inputs, NULL, NULL, product, 3);
}

/* x [1, 2, 1, 3] */
static void reductions(void **state) {
  (void)state;
  const double x[] = {1, -2, 3, 4, 6, -8};
  const double *inputs[] = {x};
  cs_op_desc d = op_of(CS_OP_REDUCE_SUM, plain(1, 2, 1, 3), plain(1, 2, 1, 1));
  d.attrs.reduce = (cs_reduce_attrs){.n_axes = 2, .axes = {2, 3}, .keepdims = true};
  expect(&d, inputs, NULL, NULL, (const double[]){2, 2}, 2);
  expect_magnitude(&d, inputs, NULL, NULL, (const double[]){6, 18}, 2);
  d.op = CS_OP_REDUCE_MEAN;
  expect(&d, inputs, NULL, NULL, (const double[]){2.0 / 3, 2.0 / 3}, 2);
  expect_magnitude(&d, inputs, NULL, NULL, (const double[]){2, 6}, 2);
  d.op = CS_OP_REDUCE_MIN;
  expect(&d, inputs, NULL, NULL, (const double[]){-2, -8}, 2);
  d.op = CS_OP_GLOBAL_MAX_POOL;
  expect(&d, inputs, NULL, NULL, (const double[]){3, 6}, 2);
  /* Over the channels, whose axis goes. */
  const cs_shape dropped = {3, {1, 1, 3}};
  d.op = CS_OP_REDUCE_MAX, d.output = cs_tensor_dense(&dropped, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  d.attrs.reduce = (cs_reduce_attrs){.n_axes = 1, .axes = {1}};
  expect(&d, inputs, NULL, NULL, (const double[]){4, 6, 3}, 3);
  const double holes[] = {1, NAN, 3, 4, 6, -8};
  double value[3];
  assert_true(cs_reference_run(&d, (const double *const[]){holes}, NULL, NULL, value, NULL, 1) ==
              CS_OK);
  assert_true(value[0] == 4 && isnan(value[1]) && value[2] == 3);
}

/* Planes of mean 2 and variance 5, and of one number four times. */
static void instances_are_normalised(void **state) {
  (void)state;
  const double x[] = {-1, 1, 3, 5, 7, 7, 7, 7};
  const float scale[] = {2, 3}, shift[] = {1, -1};
  cs_op_desc d = op_of(CS_OP_INSTANCE_NORM, plain(1, 2, 2, 2), plain(1, 2, 2, 2));
  d.has_bias = true, d.attrs.batch_norm.epsilon = 4; /* √(5 + 4) = 3 */
  expect(&d, (const double *const[]){x}, scale, shift,
         (const double[]){-1, 1.0 / 3, 5.0 / 3, 3, -1, -1, -1, -1}, 8);
}

/* Values of Python's math module. */
static void functions_of_one_number(void **state) {
  (void)state;
  static const struct {
    cs_op op;
    double alpha, beta, wanted[3];
  } rows[] = {
      {CS_OP_ELU, 0.5, 0, {-0.43233235838169365, 0.5, 4}},
      {CS_OP_SELU, 1.5, 2, {-2.5939941502901619, 1, 8}},
      {CS_OP_HARD_SIGMOID, 0.25, 0.6, {0.1, 0.725, 1}},
      {CS_OP_HARD_SWISH, 0, 0, {-1.0 / 3, 0.29166666666666669, 4}},
      {CS_OP_SWISH, 2, 0, {-0.035972419924183116, 0.36552928931500245, 3.9986585994781345}},
      {CS_OP_ABS, 0, 0, {2, 0.5, 4}},
      {CS_OP_NEG, 0, 0, {2, -0.5, -4}},
      {CS_OP_EXP, 0, 0, {0.1353352832366127, 1.6487212707001282, 54.598150033144236}},
      {CS_OP_SOFTPLUS, 0, 0, {0.12692801104297252, 0.97407698418010669, 4.0181499279178094}},
      {CS_OP_ERF, 0, 0, {-0.99532226501895271, 0.52049987781304652, 0.99999998458274209}},
      {CS_OP_GELU, 0, 0, {-0.045500263896358417, 0.34573123063700656, 3.9998733150326675}}};
  const double x[] = {-2, 0.5, 4};
  const double *inputs[] = {x};
  cs_op_desc d = op_of(CS_OP_ELU, plain(1, 3, 1, 1), plain(1, 3, 1, 1));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    d.op = rows[i].op;
    d.attrs.unary.alpha = rows[i].alpha, d.attrs.unary.beta = rows[i].beta;
    expect(&d, inputs, NULL, NULL, rows[i].wanted, 3);
  }
  d.op = CS_OP_SQRT;
  const double squares[] = {0, 0.25, 4};
  expect(&d, (const double *const[]){squares}, NULL, NULL, (const double[]){0, 0.5, 2}, 3);
  d.op = CS_OP_PRELU, d.attrs.binary = (cs_binary_attrs){.operand = {1, {1}}};
  expect(&d, inputs, (const float[]){0.25f}, NULL, (const double[]){-0.5, 0.5, 4}, 3);
}

/* x [1, 2, 1, 2] with y [2, 1, 1]: one number per channel. */
static void operands_are_broadcast(void **state) {
  (void)state;
  const double x[] = {1, -2, 3, 4}, y[] = {2, -1};
  const double *inputs[] = {x, y}, *swapped[] = {y, x};
  cs_op_desc d = op_of(CS_OP_ADD, plain(1, 2, 1, 2), plain(1, 2, 1, 2));
  const cs_shape channels = {3, {2, 1, 1}};
  d.n_inputs = 2, d.inputs[1] = cs_tensor_dense(&channels, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  expect(&d, inputs, NULL, NULL, (const double[]){3, 0, 2, 3}, 4);
  expect_magnitude(&d, inputs, NULL, NULL, (const double[]){3, 4, 4, 5}, 4);
  d.op = CS_OP_MUL;
  expect(&d, inputs, NULL, NULL, (const double[]){2, -4, -3, -4}, 4);
  d.op = CS_OP_SUB;
  expect(&d, inputs, NULL, NULL, (const double[]){-1, -4, 4, 5}, 4);
  d.op = CS_OP_DIV;
  expect(&d, inputs, NULL, NULL, (const double[]){0.5, -1, -3, -4}, 4);
  d.op = CS_OP_MAX;
  expect(&d, inputs, NULL, NULL, (const double[]){2, 2, 3, 4}, 4);
  d.op = CS_OP_MIN;
  expect(&d, inputs, NULL, NULL, (const double[]){1, -2, -1, -1}, 4);
  d.op = CS_OP_POW;
  expect(&d, inputs, NULL, NULL, (const double[]){1, 4, 1.0 / 3, 0.25}, 4);
  cs_tensor_desc whole = d.inputs[0];
  d.inputs[0] = d.inputs[1], d.inputs[1] = whole, d.op = CS_OP_SUB;
  expect(&d, swapped, NULL, NULL, (const double[]){1, 4, -4, -5}, 4);
}

static void constants_stand_for_either_operand(void **state) {
  (void)state;
  const double x[] = {1, -2, 4, 8};
  const double *inputs[] = {x};
  const float constant[] = {2, -1, 4};
  cs_op_desc d = op_of(CS_OP_DIV, plain(2, 1, 1, 2), plain(2, 3, 1, 2));
  d.attrs.binary.operand = (cs_shape){3, {3, 1, 1}};
  expect(&d, inputs, constant, NULL,
         (const double[]){0.5, -1, -1, 2, 0.25, -0.5, 2, 4, -4, -8, 1, 2}, 12);
  d.attrs.binary.operand_first = true;
  expect(&d, inputs, constant, NULL,
         (const double[]){2, -1, -1, 0.5, 4, -2, 0.5, 0.25, -0.25, -0.125, 1, 0.5}, 12);
}

/* a [2, 1, 2, 3] · b [2, 3, 1]: each matrix of a with each of b. */
static void products_of_matrices(void **state) {
  (void)state;
  const double a[] = {1, 2, 3, -1, 0, 1, 2, -2, 1, 0, 0, 4}, b[] = {1, -1, 2, 0, 3, 1};
  const double *inputs[] = {a, b}, *second[] = {b};
  const float constant[] = {1, -1, 2, 0, 3, 1};
  const double wanted[] = {5, 1, 9, 1, 6, 8, -5, 4}, magnitudes[] = {9, 3, 9, 1, 6, 8, 7, 4};
  const cs_shape columns = {3, {2, 3, 1}}, matrix = {2, {3, 2}}, row = {2, {1, 3}};
  cs_op_desc d = op_of(CS_OP_MATMUL, plain(2, 1, 2, 3), plain(2, 2, 2, 1));
  d.n_inputs = 2, d.inputs[1] = cs_tensor_dense(&columns, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  expect(&d, inputs, NULL, NULL, wanted, 8);
  expect_magnitude(&d, inputs, NULL, NULL, magnitudes, 8);
  d.activation.kind = CS_ACT_RELU;
  expect(&d, inputs, NULL, NULL, (const double[]){5, 1, 9, 1, 6, 8, 0, 4}, 8);
  d.activation.kind = CS_ACT_NONE;
  d.n_inputs = 1, d.attrs.binary.operand = columns;
  expect(&d, inputs, constant, NULL, wanted, 8);
  expect_magnitude(&d, inputs, constant, NULL, magnitudes, 8);
  /* The constant [1, 3] in front of b, and two matrices without an axis of images. */
  d.attrs.binary = (cs_binary_attrs){.operand = row, .operand_first = true};
  d.inputs[0] = cs_tensor_dense(&columns, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  const cs_shape images = {3, {2, 1, 1}}, square = {2, {1, 2}};
  d.output = cs_tensor_dense(&images, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  expect(&d, second, constant, NULL, (const double[]){6, -1}, 2);
  d.inputs[0] = cs_tensor_dense(&matrix, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  d.output = cs_tensor_dense(&square, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  expect(&d, second, constant, NULL, (const double[]){5, 1}, 2);
}

static void the_largest_of_nan_is_nan(void **state) {
  (void)state;
  const double x[] = {NAN, 1}, y[] = {1, NAN};
  const double *inputs[] = {x, y};
  double value[2];
  cs_op_desc d = op_of(CS_OP_MAX, plain(1, 2, 1, 1), plain(1, 2, 1, 1));
  d.n_inputs = 2, d.inputs[1] = d.inputs[0];
  for (int i = 0; i < 2; i++) {
    d.op = i ? CS_OP_MIN : CS_OP_MAX;
    assert_true(cs_reference_run(&d, inputs, NULL, NULL, value, NULL, 1) == CS_OK);
    assert_true(isnan(value[0]) && isnan(value[1]));
  }
}

static void operators_that_never_reach_a_backend_are_refused(void **state) {
  (void)state;
  cs_op_desc d = op_of(CS_OP_CONCAT, plain(1, 1, 3, 3), plain(1, 1, 3, 3));
  double value[9];
  cs_status st = cs_reference_run(&d, nine, NULL, NULL, value, NULL, 1);
  assert_int_equal(cs_status_code(st), CS_CODE_INTERNAL);
  assert_non_null(strstr(cs_status_message(st), "Concat"));
  cs_status_free(st);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(conv_pads_on_the_side_asked_for),
      cmocka_unit_test(conv_strides_and_dilates),
      cmocka_unit_test(conv_keeps_groups_apart),
      cmocka_unit_test(conv_transpose_scatters),
      cmocka_unit_test(conv_transpose_takes_its_weight_input_channel_first),
      cmocka_unit_test(gemm_multiplies_rows),
      cmocka_unit_test(max_pool_ignores_padding),
      cmocka_unit_test(max_pool_in_ceil_mode_keeps_a_cut_window),
      cmocka_unit_test(max_pool_dilates),
      cmocka_unit_test(average_pool_counts_what_it_is_told_to),
      cmocka_unit_test(average_pool_never_counts_the_overhang),
      cmocka_unit_test(global_average_pool_averages),
      cmocka_unit_test(lrn_windows_of_odd_and_even_size),
      cmocka_unit_test(softmax_normalises_its_axis),
      cmocka_unit_test(pad_adds_its_value_around),
      cmocka_unit_test(batch_norm_scales_and_shifts_channels),
      cmocka_unit_test(activations_and_pairs),
      cmocka_unit_test(reductions),
      cmocka_unit_test(instances_are_normalised),
      cmocka_unit_test(functions_of_one_number),
      cmocka_unit_test(operands_are_broadcast),
      cmocka_unit_test(constants_stand_for_either_operand),
      cmocka_unit_test(products_of_matrices),
      cmocka_unit_test(the_largest_of_nan_is_nan),
      cmocka_unit_test(operators_that_never_reach_a_backend_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
