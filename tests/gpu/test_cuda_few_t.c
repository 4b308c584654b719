/* The tensor-core kernel of transposed convolutions to few channels: every variant against the
 * plain C reference, in both layouts of the output; an infinite input reaches the outputs that it
 * is a tap of, no others; more parts than warps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>

#include "kernel_check.h"
/* … and this one cs_cuda_kernel_variants(). */
#include "few_t_cases.h"

static int check(const conformance_case *c, int *variants) {
  const char *ids[CS_CUDA_VARIANTS_MOST];
  int n = few_t_variants(&c->desc, ids), failures = 0;
  if (n == 0) return kc_complain(c->name, FEW_T_FAMILY, "not offered");
  kc_run run = kc_run_create(c);
  for (int v = 0; v < n; v++) failures += kc_check_variant(&run, ids[v]);
  *variants += n;
  kc_run_free(&run);
  return failures;
}

static void every_variant_is_right(void **state) {
  (void)state;
  conformance_table table = {0};
  few_t_cases(&table);
  int failures = 0, variants = 0;
  for (int i = 0; i < table.n; i++)
    if (table.cases[i].desc.precision != CS_PRECISION_F32)
      failures += check(&table.cases[i], &variants);
  fprintf(stderr, "%d variants, %d failures\n", variants, failures);
  assert_true(variants > table.n);
  assert_int_equal(failures, 0);
  free(table.cases);
}

static void planes_are_written_too(void **state) {
  (void)state;
  conformance_table table = {0};
  few_t_cases(&table);
  int failures = 0, variants = 0;
  for (int i = 0; i < table.n; i++) {
    conformance_case *c = &table.cases[i];
    if (c->desc.precision == CS_PRECISION_F32) continue;
    few_t_planar(&c->desc);
    c->output = (conformance_place){cs_tensor_span_bytes(&c->desc.output), 0};
    failures += check(c, &variants);
  }
  assert_int_equal(failures, 0);
  free(table.cases);
}

/* Warps walk through several parts each: 528 SMs' warps and more. */
static void a_large_batch_is_right(void **state) {
  (void)state;
  conformance_table table = {0};
  const cs_layout nhwc[] = {CS_LAYOUT_NHWC};
  cc_context x = {&table, nhwc, 1};
  const int *zero = CC2(0, 0), *p1 = CC4(1, 1, 1, 1);
  few_t_case(&x, "many_pictures", CC4(1900, 64, 4, 4), CC3(3, 4, 4), p1, zero, CC_BIAS,
             CS_ACT_TANH);
  few_t_case(&x, "many_odd", CC4(1700, 8, 3, 5), CC3(2, 5, 5), CC4(2, 2, 2, 2), CC2(1, 1), CC_BIAS,
             CS_ACT_SIGMOID);
  int failures = 0, variants = 0;
  for (int i = 0; i < table.n; i++)
    if (table.cases[i].desc.precision != CS_PRECISION_F32)
      failures += check(&table.cases[i], &variants);
  assert_int_equal(failures, 0);
  free(table.cases);
}

static float *download_values(const kc_run *run) {
  const cs_op_desc *d = &run->c->desc;
  unsigned char *now = kc_download(&run->output);
  float *out = kc_alloc((size_t)run->elements * sizeof(float));
  cs_tensor_to_f32(&d->output, now + KC_GUARD + run->c->output.offset, out);
  free(now);
  return out;
}

/* Sets one input of the first image infinite; counts the outputs that are finite where they should
 * not be, or the other way round. */
static int infinite_elsewhere(kc_run *run, const char *id, const int64_t at[2]) {
  const cs_op_desc *d = &run->c->desc;
  const int64_t *dims = d->inputs[0].shape.dims, *od = d->output.shape.dims;
  unsigned char *tensor = run->inputs[0].host + KC_GUARD + run->c->inputs[0].offset;
  float *values = kc_alloc((size_t)kc_elements(&d->inputs[0].shape) * sizeof(float));
  cs_tensor_to_f32(&d->inputs[0], tensor, values);
  int64_t place = (5 * dims[2] + at[0]) * dims[3] + at[1]; /* channel 5 */
  float before = values[place];
  values[place] = INFINITY;
  cs_tensor_from_f32(&d->inputs[0], values, tensor);
  kc_upload(&run->inputs[0]);
  cs_cuda_kernel kernel = kc_kernel(d, id);
  kc_region weights = kc_region_create(cs_cuda_kernel_weight_bytes(&kernel, d));
  int failures = kc_failed(
      run->c->name, id,
      cs_cuda_kernel_pack_weights(&kernel, d, run->weight, run->bias, weights.host + KC_GUARD));
  kc_upload(&weights);
  failures +=
      kc_failed(run->c->name, id,
                cs_cuda_kernel_launch(&kernel, d, run->in, weights.base + KC_GUARD,
                                      run->output.base + KC_GUARD + run->c->output.offset, 0));
  float *out = download_values(run);
  int wrong = 0;
  for (int64_t i = 0; i < run->elements; i++) {
    int64_t pixel[2] = {i / od[3] % od[2], i % od[3]};
    bool reached = i < od[1] * od[2] * od[3] && few_t_is_tap(&d->attrs.conv, pixel, at);
    wrong += reached == (bool)isfinite(out[i]);
  }
  if (wrong > 0)
    failures += kc_complain(run->c->name, id, "an infinite input reaches other outputs");
  values[place] = before;
  cs_tensor_from_f32(&d->inputs[0], values, tensor);
  kc_upload(&run->inputs[0]);
  kc_region_free(&weights);
  free(values);
  free(out);
  return failures;
}

static void infinities_stay_where_they_belong(void **state) {
  (void)state;
  conformance_table table = {0};
  few_t_infinite_cases(&table);
  int failures = 0, checked = 0;
  for (int i = 0; i < table.n; i++) {
    const conformance_case *c = &table.cases[i];
    const char *ids[CS_CUDA_VARIANTS_MOST];
    if (c->desc.precision == CS_PRECISION_F32) continue;
    int n = few_t_variants(&c->desc, ids);
    kc_run run = kc_run_create(c);
    for (int v = 0; v < n; v++) {
      failures += infinite_elsewhere(&run, ids[v], (const int64_t[]){0, 0});
      failures += infinite_elsewhere(&run, ids[v], (const int64_t[]){3, 16});
      failures += infinite_elsewhere(&run, ids[v], (const int64_t[]){6, 15});
      checked++;
    }
    kc_run_free(&run);
  }
  assert_true(checked >= 3 * 5);
  assert_int_equal(failures, 0);
  free(table.cases);
}

int main(void) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return 77;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_variant_is_right),
      cmocka_unit_test(planes_are_written_too),
      cmocka_unit_test(a_large_batch_is_right),
      cmocka_unit_test(infinities_stay_where_they_belong),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
