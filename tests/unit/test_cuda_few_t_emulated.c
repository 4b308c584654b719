/* The tensor-core kernel of transposed convolutions to few channels, emulated: its plan, its packed
 * weights and where it finds and puts everything, against the plain C reference, without a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>

#include "unit/emulated_case.h"
#include "unit/few_t_emulated.h"
/* … and this one cs_cuda_kernel_variants(). */
#include "few_t_cases.h"

/* Runs a variant; its output is in e->output. */
static int run_variant(emulated *e, const char *id, int warps, int strip, few_t_faults *faults) {
  const cs_op_desc *d = &e->c->desc;
  const conformance_place *in = &e->c->inputs[0];
  cs_cuda_kernel kernel;
  assert_true(cs_cuda_kernel_find(d, id, &kernel) == CS_OK);
  void *weights = zeros(cs_cuda_kernel_weight_bytes(&kernel, d));
  assert_true(cs_cuda_kernel_pack_weights(&kernel, d, e->weight, e->bias, weights) == CS_OK);
  memcpy(e->output, e->untouched, (size_t)e->c->output.bytes);
  cs_status st = few_t_emulate(d, id, warps, strip, e->input + in->offset, in->bytes - in->offset,
                               weights, e->output + e->c->output.offset, faults);
  free(weights);
  int failures = st == CS_OK ? 0 : complain(e, id, cs_status_message(st));
  cs_status_free(st);
  return failures;
}

static int check_variant(emulated *e, const char *id, int warps, int strip) {
  few_t_faults faults = {0};
  int failures = run_variant(e, id, warps, strip, &faults);
  failures += judge(e, id);
  if (faults.outputs != e->elements)
    failures += complain(e, id, "stores outputs twice, or leaves some out");
  if (faults.reads_outside > 0) failures += complain(e, id, "reads outside the input");
  if (faults.places_twice > 0) failures += complain(e, id, "loads two vectors to one place");
  if (faults.slot_overrun > 0) failures += complain(e, id, "writes past a row's slot");
  if (faults.misaligned > 0) failures += complain(e, id, "vectors that are not aligned");
  if (faults.unwritten > 0) failures += complain(e, id, "stores what no sum was put to");
  return failures;
}

static int run_case(const conformance_case *c, int *variants) {
  const char *ids[CS_CUDA_VARIANTS_MOST];
  int n = few_t_variants(&c->desc, ids), failures = 0;
  emulated e = emulated_of(c);
  if (n == 0) failures += complain(&e, FEW_T_FAMILY, "not offered");
  for (int v = 0; v < n; v++)
    for (int strip = 0; strip < 6; strip += 1 + strip) /* 0, 1, 3 */
      failures += check_variant(&e, ids[v], 1 + v * 2, strip);
  for (int v = 0; v < n; v++) failures += check_variant(&e, ids[v], 2, 1000); /* whole images */
  *variants += n;
  emulated_free(&e);
  return failures;
}

static void every_variant_is_right(void **state) {
  (void)state;
  conformance_table table = {0};
  few_t_cases(&table);
  int failures = 0, variants = 0;
  for (int i = 0; i < table.n; i++)
    if (table.cases[i].desc.precision != CS_PRECISION_F32)
      failures += run_case(&table.cases[i], &variants);
  assert_true(variants > table.n); /* one or three, in three precisions of four */
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
    if (c->desc.precision != CS_PRECISION_F16) continue;
    few_t_planar(&c->desc);
    c->output = (conformance_place){cs_tensor_span_bytes(&c->desc.output), 0};
    failures += run_case(c, &variants);
  }
  assert_true(variants > 20);
  assert_int_equal(failures, 0);
  free(table.cases);
}

/* Outputs of the first image that are finite where they should not be, or the other way round, with
 * an infinite input at `at`. */
static int infinite_elsewhere(emulated *e, const char *id, const int64_t at[2]) {
  const cs_op_desc *d = &e->c->desc;
  const int64_t *dims = d->inputs[0].shape.dims, *od = d->output.shape.dims;
  int64_t n = elements_of(&d->inputs[0].shape);
  unsigned char *tensor = e->input + e->c->inputs[0].offset;
  float *x = zeros(n * (int64_t)sizeof(float)), *out = zeros(e->elements * (int64_t)sizeof(float));
  few_t_faults faults = {0};
  cs_tensor_to_f32(&d->inputs[0], tensor, x);
  int64_t place = (5 * dims[2] + at[0]) * dims[3] + at[1]; /* channel 5 */
  float before = x[place];
  x[place] = INFINITY;
  cs_tensor_from_f32(&d->inputs[0], x, tensor);
  int failures = run_variant(e, id, 2, 4, &faults), wrong = 0;
  cs_tensor_to_f32(&d->output, e->output + e->c->output.offset, out);
  for (int64_t i = 0; i < e->elements; i++) {
    int64_t pixel[2] = {i / od[3] % od[2], i % od[3]};
    bool reached = i < od[1] * od[2] * od[3] && few_t_is_tap(&d->attrs.conv, pixel, at);
    wrong += reached == (bool)isfinite(out[i]);
  }
  if (wrong > 0) failures += complain(e, id, "an infinite input reaches other outputs");
  x[place] = before;
  cs_tensor_from_f32(&d->inputs[0], x, tensor);
  free(x);
  free(out);
  return failures;
}

static void infinities_stay_where_they_belong(void **state) {
  (void)state;
  conformance_table table = {0};
  few_t_infinite_cases(&table);
  int failures = 0, checked = 0;
  for (int i = 0; i < table.n; i++) {
    const char *ids[CS_CUDA_VARIANTS_MOST];
    if (table.cases[i].desc.precision == CS_PRECISION_F32) continue;
    int n = few_t_variants(&table.cases[i].desc, ids);
    emulated e = emulated_of(&table.cases[i]);
    for (int v = 0; v < n; v++, checked++) {
      failures += infinite_elsewhere(&e, ids[v], (const int64_t[]){0, 0});
      failures += infinite_elsewhere(&e, ids[v], (const int64_t[]){3, 16});
      failures += infinite_elsewhere(&e, ids[v], (const int64_t[]){6, 15});
    }
    emulated_free(&e);
  }
  assert_int_equal(checked, 3 * 5); /* three variants and one and one, in three precisions */
  assert_int_equal(failures, 0);
  free(table.cases);
}

static void tanh_is_right_everywhere(void **state) {
  (void)state;
  for (int i = 0; i < 75000; i++) {
    float x = (float)exp(-69 + 0.001 * i); /* 1e-30 to 400 */
    double wanted = tanh((double)x);
    assert_true(fabs((double)few_t_tanh(x) - wanted) <= 0x1p-18 * wanted);
    assert_true(fabs((double)few_t_tanh(-x) + wanted) <= 0x1p-18 * wanted);
  }
  assert_true(few_t_tanh(0) == 0 && few_t_tanh(INFINITY) == 1 && few_t_tanh(-INFINITY) == -1);
  assert_true(isnan(few_t_tanh(NAN)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_variant_is_right),
      cmocka_unit_test(planes_are_written_too),
      cmocka_unit_test(infinities_stay_where_they_belong),
      cmocka_unit_test(tanh_is_right_everywhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
