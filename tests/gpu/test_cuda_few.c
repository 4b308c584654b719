/* The tensor-core convolution of few channels: every tile of it against the plain C reference, and
 * an infinite input reaches the outputs whose windows hold it, no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>

#include "kernel_check.h"

#define FAMILY "cuda.mma_few."

static int few_variants(const cs_op_desc *desc, const char **few) {
  const char *ids[CS_CUDA_VARIANTS_MOST];
  int n = cs_cuda_kernel_variants(desc, ids, CS_CUDA_VARIANTS_MOST), found = 0;
  for (int i = 0; i < n; i++)
    if (strncmp(ids[i], FAMILY, strlen(FAMILY)) == 0) few[found++] = ids[i];
  return found;
}

/* First layers of known networks, and what meets the edges of tiles, groups, pairs and vectors. */
static conformance_table table_of(void) {
  conformance_table table = {0};
  const cs_layout nhwc[] = {CS_LAYOUT_NHWC};
  cc_context x = {&table, nhwc, 1};
  const int *one = CC2(1, 1), *two = CC2(2, 2), *none = CC4(0, 0, 0, 0), *p1 = CC4(1, 1, 1, 1);
  const int *p3 = CC4(3, 3, 3, 3);
  cc_conv(&x, "googlenet", CC4(2, 3, 80, 78), CC3(64, 7, 7), two, p3, one, 1, CC_BIAS, CS_ACT_RELU);
  cc_conv(&x, "inception", CC4(1, 3, 75, 75), CC3(32, 3, 3), two, none, one, 1, CC_BIAS,
          CS_ACT_RELU);
  cc_conv(&x, "squeezenet", CC4(3, 3, 33, 36), CC3(64, 3, 3), two, none, one, 1, CC_BIAS,
          CS_ACT_RELU);
  cc_conv(&x, "vgg", CC4(1, 3, 19, 50), CC3(64, 3, 3), one, p1, one, 1, CC_BIAS, CS_ACT_RELU);
  cc_conv(&x, "alexnet", CC4(1, 3, 99, 99), CC3(96, 11, 11), CC2(4, 4), CC4(2, 2, 2, 2), one, 1, 0,
          CS_ACT_NONE);
  cc_conv(&x, "one_channel", CC4(2, 1, 28, 28), CC3(6, 5, 5), one, CC4(2, 2, 2, 2), one, 1, CC_BIAS,
          CS_ACT_TANH);
  cc_conv(&x, "four_channels", CC4(1, 4, 21, 17), CC3(40, 3, 5), one, CC4(0, 3, 2, 1), one, 1,
          CC_BIAS, CS_ACT_CLIP);
  cc_conv(&x, "eight_channels", CC4(2, 8, 17, 18), CC3(33, 3, 2), two, p1, one, 1, CC_BIAS,
          CS_ACT_LEAKY_RELU);
  cc_conv(&x, "five_channels", CC4(1, 5, 9, 40), CC3(65, 2, 3), CC2(3, 1), p1, CC2(2, 1), 1,
          CC_BIAS, CS_ACT_SIGMOID);
  cc_conv(&x, "pixel", CC4(5, 3, 1, 1), CC3(10, 1, 1), one, none, one, 1, CC_BIAS, CS_ACT_NONE);
  cc_conv(&x, "slice", CC4(1, 3, 18, 18), CC3(32, 3, 3), one, p1, one, 1,
          CC_BIAS | CC_VIEW_IN | CC_VIEW_OUT, CS_ACT_RELU);
  cc_conv(&x, "odd_slice", CC4(1, 3, 18, 18), CC3(30, 3, 3), two, p1, one, 1,
          CC_BIAS | CC_VIEW_IN | CC_VIEW_OUT | CC_VIEW_ODD, CS_ACT_RELU);
  /* Several tiles a block. */
  cc_conv(&x, "many_tiles", CC4(3, 3, 112, 110), CC3(132, 3, 3), one, p1, one, 1, CC_BIAS,
          CS_ACT_RELU);
  return table;
}

static void every_tile_is_right(void **state) {
  (void)state;
  conformance_table table = table_of();
  int failures = 0, variants = 0;
  for (int i = 0; i < table.n; i++) {
    const conformance_case *c = &table.cases[i];
    if (c->desc.precision == CS_PRECISION_F32) continue;
    const char *few[CS_CUDA_VARIANTS_MOST];
    int n = few_variants(&c->desc, few);
    if (n == 0) failures += kc_complain(c->name, FAMILY, "not offered");
    kc_run run = kc_run_create(c);
    for (int v = 0; v < n; v++) failures += kc_check_variant(&run, few[v]);
    variants += n;
    kc_run_free(&run);
  }
  fprintf(stderr, "%d variants, %d failures\n", variants, failures);
  assert_true(variants > 2 * table.n); /* three for most, in three precisions of four */
  assert_int_equal(failures, 0);
  free(table.cases);
}

/* Whether the window of output pixel (h, w) holds input pixel (at_h, at_w). */
static bool window_holds(const cs_conv_attrs *conv, const int64_t out[2], const int64_t at[2]) {
  for (int axis = 0; axis < 2; axis++) {
    int64_t tap = at[axis] - (out[axis] * conv->strides[axis] - conv->pads[axis]);
    if (tap < 0 || tap % conv->dilations[axis] != 0) return false;
    if (tap / conv->dilations[axis] >= conv->kernel[axis]) return false;
  }
  return true;
}

/* Sets one input infinite and counts the outputs that are finite where they should not be, or the
 * other way round. */
static int infinite_elsewhere(kc_run *run, const char *id, int64_t channel, const int64_t at[2]) {
  const conformance_case *c = run->c;
  const cs_op_desc *d = &c->desc;
  kc_region *input = &run->inputs[0], saved = {.bytes = input->bytes};
  saved.host = kc_alloc(input->bytes + 2 * KC_GUARD);
  memcpy(saved.host, input->host, input->bytes + 2 * KC_GUARD);
  int64_t elements = kc_elements(&d->inputs[0].shape);
  float *values = kc_alloc((size_t)elements * sizeof(float));
  unsigned char *tensor = input->host + KC_GUARD + c->inputs[0].offset;
  cs_tensor_to_f32(&d->inputs[0], tensor, values);
  const int64_t *dims = d->inputs[0].shape.dims;
  values[(channel * dims[2] + at[0]) * dims[3] + at[1]] = INFINITY; /* of the first image */
  cs_tensor_from_f32(&d->inputs[0], values, tensor);
  kc_upload(input);
  cs_cuda_kernel kernel = kc_kernel(d, id);
  kc_region weights = kc_region_create(cs_cuda_kernel_weight_bytes(&kernel, d));
  int failures = kc_failed(
      c->name, id,
      cs_cuda_kernel_pack_weights(&kernel, d, run->weight, run->bias, weights.host + KC_GUARD));
  kc_upload(&weights);
  failures += kc_failed(c->name, id,
                        cs_cuda_kernel_launch(&kernel, d, run->in, weights.base + KC_GUARD,
                                              run->output.base + KC_GUARD + c->output.offset, 0));
  unsigned char *now = kc_download(&run->output);
  float *out = kc_alloc((size_t)run->elements * sizeof(float));
  cs_tensor_to_f32(&d->output, now + KC_GUARD + c->output.offset, out);
  const int64_t *od = d->output.shape.dims;
  int wrong = 0;
  for (int64_t i = 0; i < run->elements; i++) {
    int64_t pixel[2] = {i / od[3] % od[2], i % od[3]};
    bool reached = i < od[1] * od[2] * od[3] && window_holds(&d->attrs.conv, pixel, at);
    wrong += reached == (bool)isfinite(out[i]);
  }
  if (wrong > 0) failures += kc_complain(c->name, id, "an infinite input reaches other outputs");
  memcpy(input->host, saved.host, input->bytes + 2 * KC_GUARD);
  kc_upload(input);
  kc_region_free(&weights);
  free(saved.host);
  free(values);
  free(now);
  free(out);
  return failures;
}

static void infinities_stay_in_their_windows(void **state) {
  (void)state;
  conformance_table table = {0};
  const cs_layout nhwc[] = {CS_LAYOUT_NHWC};
  cc_context x = {&table, nhwc, 1};
  cc_conv(&x, "infinite_7x7", CC4(2, 3, 40, 38), CC3(64, 7, 7), CC2(2, 2), CC4(3, 3, 3, 3),
          CC2(1, 1), 1, CC_BIAS, CS_ACT_NONE);
  cc_conv(&x, "infinite_3x3", CC4(2, 3, 23, 21), CC3(32, 3, 3), CC2(1, 1), CC4(0, 1, 1, 0),
          CC2(1, 1), 1, CC_BIAS, CS_ACT_NONE);
  int failures = 0, checked = 0;
  for (int i = 0; i < table.n; i++) {
    const conformance_case *c = &table.cases[i];
    const char *few[CS_CUDA_VARIANTS_MOST];
    if (c->desc.precision == CS_PRECISION_F32) continue;
    int n = few_variants(&c->desc, few);
    kc_run run = kc_run_create(c);
    for (int v = 0; v < n; v++)
      for (int64_t channel = 0; channel < 3; channel++) {
        failures += infinite_elsewhere(&run, few[v], channel, (const int64_t[]){11, 9 + channel});
        failures += infinite_elsewhere(&run, few[v], channel, (const int64_t[]){0, 0});
        checked++;
      }
    kc_run_free(&run);
  }
  assert_true(checked >= 2 * 3 * 3 * 3);
  assert_int_equal(failures, 0);
  free(table.cases);
}

int main(void) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return 77;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_tile_is_right),
      cmocka_unit_test(infinities_stay_in_their_windows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
