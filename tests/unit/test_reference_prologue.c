/* A convolution with a prologue is BatchNormalization, activation and convolution one after the
 * other, in the reference; and its tolerance lets storing in between pass, and mistakes not. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/reference/reference.h"

#define IN 24
#define OUT 10
#define PIXELS 35
#define N_IN (2 * IN * PIXELS)
#define N_OUT (2 * OUT * PIXELS)

typedef struct layer {
  cs_op_desc desc;
  double x[N_IN], added[N_OUT];
  float weight[OUT * IN], bias[OUT + 2 * IN];
  double value[N_OUT], magnitude[N_OUT];
} layer;

static void ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

static layer *make_layer(cs_precision precision, bool has_bias) {
  layer *l = calloc(1, sizeof *l);
  assert_non_null(l);
  cs_shape in = {4, {2, IN, 5, 7}}, out = {4, {2, OUT, 5, 7}};
  cs_dtype dtype = cs_precision_storage(precision);
  l->desc = (cs_op_desc){.op = CS_OP_CONV,
                         .n_inputs = 2,
                         .has_bias = has_bias,
                         .has_residual = true,
                         .has_prologue = true,
                         .prologue = {.kind = CS_ACT_RELU},
                         .activation = {.kind = CS_ACT_TANH},
                         .precision = precision};
  l->desc.inputs[0] = cs_tensor_dense(&in, dtype, CS_LAYOUT_NCHW);
  l->desc.inputs[1] = l->desc.output = cs_tensor_dense(&out, dtype, CS_LAYOUT_NCHW);
  l->desc.attrs.conv = (cs_conv_attrs){.out_channels = OUT,
                                       .group = 1,
                                       .kernel = {1, 1},
                                       .strides = {1, 1},
                                       .dilations = {1, 1},
                                       .bias = has_bias};
  cs_rng rng;
  cs_rng_init(&rng, 9, 1);
  for (int i = 0; i < N_IN; i++) l->x[i] = cs_rng_normal(&rng);
  for (int i = 0; i < N_OUT; i++) l->added[i] = cs_rng_normal(&rng);
  cs_rng_fill_normal(&rng, l->weight, OUT * IN, 0, 0.2);
  cs_rng_fill_normal(&rng, l->bias, OUT + 2 * IN, 0, 0.7);
  cs_round_to_dtype(dtype, l->weight, OUT * IN);
  const double *inputs[] = {l->x, l->added};
  ok(cs_reference_run(&l->desc, inputs, l->weight, l->bias, l->value, l->magnitude, 2));
  return l;
}

/* The unfused sequence; `dtype`: what is stored in between and at the end. */
static void run_unfused(const layer *l, cs_dtype dtype, bool activated, float *out) {
  static double between[N_IN], value[N_OUT];
  static float stored[N_IN];
  const float *scale = cs_op_prologue(&l->desc, l->bias);
  cs_op_desc norm = {.op = CS_OP_BATCH_NORM, .n_inputs = 1, .has_bias = true}, conv = l->desc;
  norm.inputs[0] = norm.output = l->desc.inputs[0];
  if (activated) norm.activation = l->desc.prologue;
  const double *first[] = {l->x}, *second[] = {between, l->added};
  ok(cs_reference_run(&norm, first, scale, scale + IN, between, NULL, 1));
  for (int i = 0; i < N_IN; i++) stored[i] = (float)between[i];
  cs_round_to_dtype(dtype, stored, N_IN);
  for (int i = 0; i < N_IN && dtype != CS_DTYPE_F32; i++) between[i] = stored[i];
  conv.has_prologue = false;
  ok(cs_reference_run(&conv, second, l->weight, l->bias, value, NULL, 1));
  for (int i = 0; i < N_OUT; i++) out[i] = (float)value[i];
  cs_round_to_dtype(dtype, out, N_OUT);
}

static void it_is_the_unfused_sequence(void **state) {
  (void)state;
  for (int has_bias = 0; has_bias < 2; has_bias++) {
    layer *l = make_layer(CS_PRECISION_F32, has_bias);
    static float out[N_OUT];
    run_unfused(l, CS_DTYPE_F32, true, out);
    for (int i = 0; i < N_OUT; i++) assert_true(fabs(out[i] - l->value[i]) < 1e-7);
    /* The magnitude: what is summed before anything is cut off. */
    const float *scale = cs_op_prologue(&l->desc, l->bias), *shift = scale + IN;
    double sum = fabs(l->added[0]) + (has_bias ? fabs((double)l->bias[0]) : 0);
    for (int c = 0; c < IN; c++) {
      sum +=
          fabs((double)l->weight[c]) * (fabs(scale[c] * l->x[c * PIXELS]) + fabs((double)shift[c]));
    }
    assert_true(fabs(sum - l->magnitude[0]) < 1e-9 * sum);
    free(l);
  }
}

static bool passes(const layer *l, const float *out) {
  double rel_l2, max_scaled;
  cs_tolerance(&l->desc, 0, &rel_l2, &max_scaled);
  cs_error_measure e = cs_measure_error(out, l->value, l->magnitude, N_OUT);
  return e.finite && e.rel_l2 <= rel_l2 && e.max_scaled <= max_scaled;
}

static void storing_in_between_passes_and_mistakes_do_not(void **state) {
  (void)state;
  const cs_precision precisions[] = {CS_PRECISION_F32, CS_PRECISION_TF32, CS_PRECISION_F16,
                                     CS_PRECISION_BF16};
  for (int i = 0; i < 4; i++) {
    layer *l = make_layer(precisions[i], true);
    cs_dtype dtype = cs_precision_storage(precisions[i]);
    static float out[N_OUT];
    run_unfused(l, dtype, true, out);
    assert_true(passes(l, out));
    run_unfused(l, dtype, false, out); /* the activation is forgotten */
    assert_false(passes(l, out));
    float *scale = l->bias + OUT, kept = scale[IN + 3];
    scale[IN + 3] = 0; /* one shift is */
    run_unfused(l, dtype, true, out);
    assert_false(passes(l, out));
    scale[IN + 3] = kept;
    for (int c = IN - 1; c > 0; c--) scale[c] = scale[c - 1]; /* scales of other channels */
    run_unfused(l, dtype, true, out);
    assert_false(passes(l, out));
    free(l);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_is_the_unfused_sequence),
      cmocka_unit_test(storing_in_between_passes_and_mistakes_do_not),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
