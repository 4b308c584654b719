/* Error measures, and tolerances that planted mistakes must not pass. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/reference/reference.h"
#include "profiler/candidate.h"

#define CHANNELS 32
#define PIXELS 36
#define OUT (2 * CHANNELS * PIXELS)

typedef struct layer {
  cs_op_desc desc;
  double x[2 * 64 * PIXELS], value[OUT], magnitude[OUT];
  float weight[CHANNELS * 64 * 9], bias[CHANNELS], out[OUT];
} layer;

/* A 3x3 convolution of two images, 64 channels to 32, 6x6; out = the reference, rounded. */
static layer *make_layer(cs_precision precision) {
  layer *l = calloc(1, sizeof *l);
  cs_shape in = {4, {2, 64, 6, 6}}, out = {4, {2, CHANNELS, 6, 6}};
  cs_dtype dtype = cs_precision_storage(precision);
  l->desc = (cs_op_desc){.op = CS_OP_CONV, .n_inputs = 1, .has_bias = true};
  l->desc.precision = precision;
  l->desc.inputs[0] = cs_tensor_dense(&in, dtype, CS_LAYOUT_NCHW);
  l->desc.output = cs_tensor_dense(&out, dtype, CS_LAYOUT_NCHW);
  l->desc.attrs.conv = (cs_conv_attrs){.out_channels = CHANNELS,
                                       .group = 1,
                                       .kernel = {3, 3},
                                       .strides = {1, 1},
                                       .pads = {1, 1, 1, 1},
                                       .dilations = {1, 1},
                                       .bias = true};
  cs_rng rng;
  cs_rng_init(&rng, 5, 1);
  for (size_t i = 0; i < sizeof l->x / sizeof *l->x; i++) l->x[i] = cs_rng_normal(&rng);
  cs_rng_fill_normal(&rng, l->weight, CHANNELS * 64 * 9, 0, 0.04);
  cs_rng_fill_normal(&rng, l->bias, CHANNELS, 0, 0.5);
  const double *inputs[] = {l->x};
  cs_status st = cs_reference_run(&l->desc, inputs, l->weight, l->bias, l->value, l->magnitude, 1);
  assert_true(st == CS_OK);
  for (int i = 0; i < OUT; i++) l->out[i] = (float)l->value[i];
  cs_round_to_dtype(dtype, l->out, OUT);
  return l;
}

static bool passes(const layer *l, uint32_t notes) {
  double rel_l2, max_scaled;
  cs_tolerance(&l->desc, notes, &rel_l2, &max_scaled);
  cs_error_measure e = cs_measure_error(l->out, l->value, l->magnitude, OUT);
  return e.finite && e.rel_l2 <= rel_l2 && e.max_scaled <= max_scaled;
}

static const cs_precision precisions[] = {CS_PRECISION_F32, CS_PRECISION_TF32, CS_PRECISION_F16,
                                          CS_PRECISION_BF16};

static void rounding_passes(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    layer *l = make_layer(precisions[i]);
    assert_true(passes(l, 0));
    free(l);
  }
}

static void swap_images(layer *l) {
  for (int i = 0; i < OUT / 2; i++) {
    float keep = l->out[i];
    l->out[i] = l->out[i + OUT / 2];
    l->out[i + OUT / 2] = keep;
  }
}
static void shift_a_slice(layer *l) {
  memmove(l->out, l->out + PIXELS, (CHANNELS - 1) * PIXELS * sizeof *l->out);
}
static void drop_a_branch(layer *l) {
  memset(l->out, 0, (CHANNELS / 4) * PIXELS * sizeof *l->out);
}
static void drop_the_bias(layer *l) {
  for (int i = 0; i < OUT; i++) l->out[i] -= l->bias[i / PIXELS % CHANNELS];
}
static void rectify_too_much(layer *l) {
  for (int i = 0; i < OUT; i++) l->out[i] = l->out[i] > 0 ? l->out[i] : 0;
}
static void leave_one_element_stale(layer *l) {
  l->out[17] = l->out[17] + 2.0f;
}
static void leave_a_nan(layer *l) {
  l->out[OUT - 1] = NAN;
}

static void planted_mistakes_fail_in_every_precision(void **state) {
  (void)state;
  void (*const mistakes[])(layer *) = {swap_images,   shift_a_slice,    drop_a_branch,
                                       drop_the_bias, rectify_too_much, leave_one_element_stale,
                                       leave_a_nan};
  const uint32_t notes[] = {0, CS_NOTE_TENSOR_CORE, CS_NOTE_WINOGRAD, CS_NOTE_FFT};
  for (int i = 0; i < 4; i++)
    for (size_t m = 0; m < sizeof mistakes / sizeof *mistakes; m++) {
      layer *l = make_layer(precisions[i]);
      mistakes[m](l);
      for (size_t n = 0; n < sizeof notes / sizeof *notes; n++)
        if (passes(l, notes[n]))
          fail_msg("mistake %d passes in %s", (int)m, cs_precision_name(precisions[i]));
      free(l);
    }
}

/* f32 results that were computed in a narrower type are caught as well. */
static void narrower_arithmetic_fails_in_f32(void **state) {
  (void)state;
  layer *l = make_layer(CS_PRECISION_F32);
  cs_round_to_dtype(CS_DTYPE_F16, l->out, OUT);
  assert_false(passes(l, 0));
  assert_false(passes(l, CS_NOTE_WINOGRAD));
  l->desc.precision = CS_PRECISION_TF32;
  assert_true(passes(l, 0));
  free(l);
}

static void measures(void **state) {
  (void)state;
  const double value[] = {3, 0, -4}, magnitude[] = {6, 2, 4};
  const float exact[] = {3, 0, -4}, off[] = {3, 1, -4}, infinite[] = {3, INFINITY, -4};
  cs_error_measure e = cs_measure_error(exact, value, magnitude, 3);
  assert_true(e.rel_l2 == 0 && e.max_scaled == 0 && e.finite);
  e = cs_measure_error(off, value, magnitude, 3);
  assert_true(fabs(e.rel_l2 - 0.2) < 1e-12 && fabs(e.max_scaled - 0.5) < 1e-12 && e.finite);
  assert_false(cs_measure_error(infinite, value, magnitude, 3).finite);
  const double zeros[] = {0, 0, 0};
  const float nothing[] = {0, 0, 0};
  e = cs_measure_error(nothing, zeros, zeros, 3);
  assert_true(e.rel_l2 == 0 && e.max_scaled == 0);
  assert_true(isinf(cs_measure_error(off, zeros, zeros, 3).rel_l2));
}

static void winograd_has_more_room_for_larger_filters(void **state) {
  (void)state;
  layer *l = make_layer(CS_PRECISION_F32);
  double plain, three, five, rel_l2;
  cs_tolerance(&l->desc, 0, &rel_l2, &plain);
  cs_tolerance(&l->desc, CS_NOTE_WINOGRAD, &rel_l2, &three);
  l->desc.attrs.conv.kernel[0] = l->desc.attrs.conv.kernel[1] = 5;
  cs_tolerance(&l->desc, CS_NOTE_WINOGRAD, &rel_l2, &five);
  assert_true(plain < three && 3 * three < five && five < 0.01);
  free(l);
}

static void limits_grow_with_the_reduction_and_the_storage_unit(void **state) {
  (void)state;
  layer *l = make_layer(CS_PRECISION_F32);
  double short_l2, long_l2, scaled, previous = 0;
  cs_tolerance(&l->desc, 0, &short_l2, &scaled);
  l->desc.inputs[0].shape.dims[1] = 640;
  cs_tolerance(&l->desc, 0, &long_l2, &scaled);
  assert_true(long_l2 > short_l2 && long_l2 < 10 * short_l2);
  const cs_precision rising[] = {CS_PRECISION_F32, CS_PRECISION_F16, CS_PRECISION_BF16};
  for (int i = 0; i < 3; i++) {
    l->desc.precision = rising[i];
    cs_tolerance(&l->desc, 0, &long_l2, &scaled);
    assert_true(scaled > previous && long_l2 < 0.1);
    previous = scaled;
  }
  free(l);
}

/* What a device does whose blocks each sum a part. */
static void sums_of_parts_are_the_whole(void **state) {
  (void)state;
  layer *l = make_layer(CS_PRECISION_F16);
  l->out[OUT / 3] += 1;
  for (int finite = 1; finite >= 0; finite--) {
    if (!finite) l->out[OUT / 2] = NAN;
    cs_error_measure whole = cs_measure_error(l->out, l->value, l->magnitude, OUT);
    cs_error_sums sums = cs_no_error();
    for (int part = 0; part < 7; part++) {
      cs_error_sums some = cs_no_error();
      for (int i = part; i < OUT; i += 7) {
        cs_error_add(&some, (double)l->out[i], l->value[i], l->magnitude[i]);
      }
      cs_error_merge(&sums, &some);
    }
    cs_error_measure found = cs_error_of(&sums);
    assert_true(fabs(found.rel_l2 - whole.rel_l2) <= 1e-12 * whole.rel_l2);
    assert_true(found.max_scaled == whole.max_scaled && whole.max_scaled > 0);
    assert_int_equal(found.finite, finite);
    assert_int_equal(whole.finite, finite);
  }
  free(l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rounding_passes),
      cmocka_unit_test(planted_mistakes_fail_in_every_precision),
      cmocka_unit_test(narrower_arithmetic_fails_in_f32),
      cmocka_unit_test(measures),
      cmocka_unit_test(sums_of_parts_are_the_whole),
      cmocka_unit_test(winograd_has_more_room_for_larger_filters),
      cmocka_unit_test(limits_grow_with_the_reduction_and_the_storage_unit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
