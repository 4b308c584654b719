/* The kernel of transposed convolutions whose weights stay in shared memory, emulated: its tables
 * of taps, its packed weights and where it finds and puts everything, against the plain C
 * reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>

#include "stationary_t_cases.h"
#include "unit/emulated_case.h"
#include "unit/stationary_t_emulated.h"
/* … and this one cs_cuda_kernel_variants(). */
#include "few_t_cases.h"

static int check(emulated *e, int variant, int *variants) {
  const cs_op_desc *d = &e->c->desc;
  const char *id = stationary_t_id(variant);
  stationary_t_faults faults = {0};
  memcpy(e->output, e->untouched, (size_t)e->c->output.bytes);
  cs_status st = stationary_t_emulate(d, variant, e->input + e->c->inputs[0].offset, e->weight,
                                      e->bias, e->output + e->c->output.offset, &faults);
  if (st != CS_OK) {
    bool too_large = cs_status_code(st) == CS_CODE_NOT_FOUND;
    cs_status_free(st);
    return too_large ? 0 : complain(e, id, "fails");
  }
  (*variants)++;
  int failures = judge(e, id);
  if (faults.outputs != e->elements)
    failures += complain(e, id, "stores outputs twice, or leaves some out");
  if (faults.misplaced > 0) failures += complain(e, id, "shared memory that wgmma cannot read");
  if (faults.overrun > 0) failures += complain(e, id, "reads past a stage, or past the weights");
  return failures;
}

static void every_way_of_sharing_out_is_right(void **state) {
  (void)state;
  conformance_table table = {0};
  stationary_t_cases(&table, 1);
  int failures = 0, variants = 0, cases = 0;
  for (int i = 0; i < table.n; i++) {
    if (table.cases[i].desc.precision == CS_PRECISION_F32) {
      assert_false(stationary_t_takes(&table.cases[i].desc));
      continue;
    }
    emulated e = emulated_of(&table.cases[i]);
    if (!stationary_t_takes(&table.cases[i].desc)) failures += complain(&e, "takes", "not taken");
    for (int v = 0; stationary_t_id(v); v++) failures += check(&e, v, &variants);
    emulated_free(&e);
    cases++;
  }
  assert_int_equal(failures, 0);
  assert_true(variants >= 3 * cases); /* of 4; some are too large for 64 filters in tf32 */
  free(table.cases);
}

/* Outputs of the first image that are finite where they should not be, or the other way round, with
 * an infinite input at `at`. */
static int infinite_elsewhere(emulated *e, int variant, const int64_t at[2]) {
  const cs_op_desc *d = &e->c->desc;
  const int64_t *dims = d->inputs[0].shape.dims, *od = d->output.shape.dims;
  float *x = zeros(elements_of(&d->inputs[0].shape) * (int64_t)sizeof(float));
  float *out = zeros(e->elements * (int64_t)sizeof(float));
  stationary_t_faults faults = {0};
  unsigned char *tensor = e->input + e->c->inputs[0].offset;
  cs_tensor_to_f32(&d->inputs[0], tensor, x);
  float *place = &x[(5 * dims[2] + at[0]) * dims[3] + at[1]], before = *place; /* channel 5 */
  *place = INFINITY;
  cs_tensor_from_f32(&d->inputs[0], x, tensor);
  assert_true(stationary_t_emulate(d, variant, tensor, e->weight, e->bias,
                                   e->output + e->c->output.offset, &faults) == CS_OK);
  cs_tensor_to_f32(&d->output, e->output + e->c->output.offset, out);
  int wrong = 0;
  for (int64_t i = 0; i < od[1] * od[2] * od[3]; i++) {
    int64_t pixel[2] = {i / od[3] % od[2], i % od[3]};
    wrong += few_t_is_tap(&d->attrs.conv, pixel, at) == (bool)isfinite(out[i]);
  }
  *place = before;
  cs_tensor_from_f32(&d->inputs[0], x, tensor);
  free(x);
  free(out);
  return wrong > 0 ? complain(e, stationary_t_id(variant), "an infinite input reaches others") : 0;
}

static void infinities_stay_where_they_belong(void **state) {
  (void)state;
  conformance_table table = {0};
  const cs_layout nhwc[] = {CS_LAYOUT_NHWC};
  cc_context x = {&table, nhwc, 1};
  cc_conv_transpose(&x, "infinite", CC4(2, 24, 9, 15), CC3(40, 4, 4), CC2(2, 2), CC4(1, 1, 1, 1),
                    CC2(1, 1), CC2(0, 0), 1, CC_BIAS, CS_ACT_NONE);
  int failures = 0;
  for (int i = 0; i < table.n; i++) {
    if (!stationary_t_takes(&table.cases[i].desc)) continue;
    emulated e = emulated_of(&table.cases[i]);
    for (int v = 0; stationary_t_id(v); v++) {
      failures += infinite_elsewhere(&e, v, (const int64_t[]){0, 0});
      failures += infinite_elsewhere(&e, v, (const int64_t[]){8, 14});
      failures += infinite_elsewhere(&e, v, (const int64_t[]){4, 7});
    }
    emulated_free(&e);
  }
  assert_int_equal(failures, 0);
  free(table.cases);
}

/* Columns of the two remainders that share no shift, other steps, pads out of reach, activations
 * and outputs that are not stored as vectors. */
static void others_are_left(void **state) {
  (void)state;
  conformance_table table = {0};
  const cs_layout nhwc[] = {CS_LAYOUT_NHWC};
  cc_context x = {&table, nhwc, 1};
  const int *one = CC2(1, 1), *two = CC2(2, 2), *zero = CC2(0, 0), *none = CC4(0, 0, 0, 0);
  const int *in = CC4(2, 64, 16, 16), *p1 = CC4(1, 1, 1, 1);
  cc_conv_transpose(&x, "no_shift_shared", in, CC3(64, 2, 2), two, CC4(0, 1, 0, 1), one, zero, 1,
                    CC_BIAS, CS_ACT_RELU);
  cc_conv_transpose(&x, "step_1", in, CC3(64, 4, 4), one, p1, one, zero, 1, CC_BIAS, CS_ACT_RELU);
  cc_conv_transpose(&x, "dilated", in, CC3(64, 2, 2), two, none, two, zero, 1, 0, CS_ACT_NONE);
  cc_conv_transpose(&x, "k5", in, CC3(64, 5, 5), two, p1, one, zero, 1, CC_BIAS, CS_ACT_RELU);
  cc_conv_transpose(&x, "groups", in, CC3(64, 4, 4), two, p1, one, zero, 2, CC_BIAS, CS_ACT_RELU);
  cc_conv_transpose(&x, "tanh", in, CC3(64, 4, 4), two, p1, one, zero, 1, CC_BIAS, CS_ACT_TANH);
  cc_conv_transpose(&x, "filters_63", in, CC3(63, 4, 4), two, p1, one, zero, 1, CC_BIAS,
                    CS_ACT_RELU);
  cc_conv_transpose(&x, "residual", in, CC3(64, 4, 4), two, p1, one, zero, 1, CC_BIAS | CC_RESIDUAL,
                    CS_ACT_RELU);
  const cs_layout nchw[] = {CS_LAYOUT_NCHW};
  cc_context planes = {&table, nchw, 1};
  cc_conv_transpose(&planes, "planes", in, CC3(64, 4, 4), two, p1, one, zero, 1, CC_BIAS,
                    CS_ACT_RELU);
  cc_conv_transpose(&x, "unaligned", in, CC3(64, 4, 4), two, p1, one, zero, 1, CC_BIAS,
                    CS_ACT_RELU);
  assert_int_equal(table.n, 10 * 4);
  for (int i = 9 * 4; i < table.n; i++) table.cases[i].desc.inputs[0].alignment = 8;
  for (int i = 0; i < table.n; i++)
    if (stationary_t_takes(&table.cases[i].desc)) fail_msg("%s is taken", table.cases[i].name);
  free(table.cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_way_of_sharing_out_is_right),
      cmocka_unit_test(infinities_stay_where_they_belong),
      cmocka_unit_test(others_are_left),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
