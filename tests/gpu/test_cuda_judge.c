/* Outputs judged where they are: what the device says of an output, whole or in three images of it,
 * is what the host says of the same bytes. Planted faults are seen where they are and only there:
 * an element that is wrong or was not written, and a byte between the elements of a view. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>

#include "gpu/judged.h"
#include "gpu/open_device.h"

#define IMAGES 5
#define GAPS_TRIED 40

static cs_backend *device;

/* ---- Faults ---- */

/* Of the last part. */
static cs_status plant_in_elements(judged *j, int *failures) {
  cs_compared found[CS_MAX_EXPECTED];
  const int last = j->n - 1;
  const int64_t places[] = {0, j->elements / 2, j->elements - 1};
  for (int p = 0; p < 3; p++) {
    jd_write_right(j);
    for (int64_t i = 0; i < j->elements; i++) j->out[i] = (float)j->value[last][i];
    j->out[places[p]] += (float)(2 * j->magnitude[last][places[p]] + 1);
    cs_tensor_from_f32(&j->desc.output, j->out, j->output.host + j->at[last]);
    CS_RETURN_IF_ERROR(jd_judge(j, "one wrong element", found, failures));
    jd_expect(j, "one wrong element", found, false, failures);
  }
  jd_write_right(j);
  memset(j->output.host + j->at[last] + j->span - cs_dtype_size(j->desc.output.dtype), POISON,
         (size_t)cs_dtype_size(j->desc.output.dtype));
  CS_RETURN_IF_ERROR(jd_judge(j, "an element that was not written", found, failures));
  jd_expect(j, "an element that was not written", found, false, failures);
  if (found[last].error.finite) jd_note(j, "an element that was not written", "finite", failures);
  jd_write_right(j);
  memset(j->output.host + j->at[last], POISON, (size_t)j->span);
  CS_RETURN_IF_ERROR(jd_judge(j, "nothing written", found, failures));
  jd_expect(j, "nothing written", found, false, failures);
  return CS_OK;
}

/* The first gap of the last part, the last one, and some of those that lie between. */
static cs_status plant_in_gaps(judged *j, int *failures) {
  cs_compared found[CS_MAX_EXPECTED];
  const int last = j->n - 1;
  int64_t n_gaps = 0, seen = 0;
  for (int64_t i = 0; i < j->span; i++) n_gaps += !j->owned[i];
  if (n_gaps == 0) return CS_OK;
  int64_t step = n_gaps / GAPS_TRIED + 1;
  for (int64_t i = 0; i < j->span; i++) {
    if (j->owned[i]) continue;
    seen++;
    if (seen != 1 && seen != n_gaps && seen % step != 0) continue;
    jd_write_right(j);
    j->output.host[j->at[last] + i] = 0x7F;
    CS_RETURN_IF_ERROR(jd_judge(j, "a byte between the elements", found, failures));
    jd_expect(j, "a byte between the elements", found, false, failures);
    if (found[last].gaps_kept || !found[last].error.finite) {
      jd_note(j, "a byte between the elements", "taken for something else", failures);
    }
  }
  return CS_OK;
}

static cs_status check_parts(const conformance_case *c, int n, int *failures) {
  judged j;
  cs_compared found[CS_MAX_EXPECTED];
  cs_status st = CS_OK;
  CS_TRY(st, judged_create(device, c, n, &j), done);
  jd_write_right(&j);
  CS_TRY(st, jd_judge(&j, "right", found, failures), done);
  jd_expect(&j, "right", found, true, failures);
  CS_TRY(st, plant_in_elements(&j, failures), done);
  CS_TRY(st, plant_in_gaps(&j, failures), done);
  /* Nothing is left of what was found before; what lies outside of the span is nobody's. */
  jd_write_right(&j);
  j.output.host[j.at[0] - 1] = 0;
  j.output.host[j.at[n - 1] + j.span] = 0;
  CS_TRY(st, jd_judge(&j, "right again", found, failures), done);
  jd_expect(&j, "right again", found, true, failures);
done:
  judged_destroy(&j);
  return st;
}

/* ---- Cases ---- */

static void check_all(conformance_table *table, bool images) {
  int failures = 0;
  for (int i = 0; i < table->n; i++) {
    for (int n = 1; n <= (images ? CS_MAX_EXPECTED : 1); n += CS_MAX_EXPECTED - 1) {
      cs_status st = check_parts(&table->cases[i], n, &failures);
      if (st == CS_OK) continue;
      fprintf(stderr, "FAIL %s in %d: %s\n", table->cases[i].name, n, cs_status_message(st));
      cs_status_free(st);
      failures++;
    }
  }
  free(table->cases);
  assert_int_equal(failures, 0);
}

static void emit_all(conformance_table *table, const conformance_spec *spec) {
  static const cs_precision precisions[] = {CS_PRECISION_F32, CS_PRECISION_F16, CS_PRECISION_BF16};
  for (int p = 0; p < 3; p++) {
    cc_emit(table, spec, precisions[p], CS_LAYOUT_NCHW);
    if (spec->output.rank == 4) cc_emit(table, spec, precisions[p], CS_LAYOUT_NHWC);
  }
}

static void convolutions_dense_and_into_a_slice(void **state) {
  (void)state;
  conformance_table table = {0};
  conformance_spec spec = {.name = "conv",
                           .op = CS_OP_CONV,
                           .n_inputs = 1,
                           .flags = CC_BIAS,
                           .activation = {.kind = CS_ACT_RELU},
                           .attrs.conv = {.out_channels = 13,
                                          .group = 1,
                                          .kernel = {3, 3},
                                          .strides = {1, 1},
                                          .pads = {1, 1, 1, 1},
                                          .dilations = {1, 1},
                                          .bias = true},
                           .input = cc_shape4(IMAGES, 8, 9, 11),
                           .output = cc_shape4(IMAGES, 13, 9, 11)};
  emit_all(&table, &spec);
  spec.name = "conv_slice";
  spec.flags |= CC_RESIDUAL | CC_VIEW_OUT | CC_VIEW_ODD;
  emit_all(&table, &spec);
  check_all(&table, true);
}

/* Axes of one element say nothing of their stride. */
static void slices_of_one_channel_or_pixel(void **state) {
  (void)state;
  conformance_table table = {0};
  conformance_spec spec = {.name = "relu_channel",
                           .op = CS_OP_RELU,
                           .n_inputs = 1,
                           .flags = CC_VIEW_OUT | CC_VIEW_ODD,
                           .input = cc_shape4(IMAGES, 1, 4, 3),
                           .output = cc_shape4(IMAGES, 1, 4, 3)};
  emit_all(&table, &spec);
  spec.name = "relu_pixel";
  spec.input = spec.output = cc_shape4(IMAGES, 7, 1, 1);
  emit_all(&table, &spec);
  check_all(&table, true);
}

/* Dense, and the left part of a wider matrix. */
static void matrices(void **state) {
  (void)state;
  conformance_table table = {0};
  conformance_spec spec = {.name = "gemm",
                           .op = CS_OP_GEMM,
                           .n_inputs = 1,
                           .flags = CC_BIAS,
                           .attrs.gemm = {.out_features = 19, .bias = true},
                           .input = cc_shape2(IMAGES, 33),
                           .output = cc_shape2(IMAGES, 19)};
  emit_all(&table, &spec);
  spec.name = "gemm_left";
  int dense = table.n;
  emit_all(&table, &spec);
  for (int i = dense; i < table.n; i++) {
    conformance_case *c = &table.cases[i];
    c->desc.output.strides[0] = 24;
    c->output.bytes = (int64_t)IMAGES * 24 * cs_dtype_size(c->desc.output.dtype);
  }
  check_all(&table, true);
}

/* More than the largest grid has threads. */
static void where_threads_take_several_elements(void **state) {
  (void)state;
  conformance_table table = {0};
  conformance_spec spec = {.name = "relu_large",
                           .op = CS_OP_RELU,
                           .n_inputs = 1,
                           .flags = CC_VIEW_IN | CC_VIEW_OUT,
                           .input = cc_shape4(3, 32, 71, 69),
                           .output = cc_shape4(3, 32, 71, 69)};
  cc_emit(&table, &spec, CS_PRECISION_F16, CS_LAYOUT_NHWC);
  cc_emit(&table, &spec, CS_PRECISION_F32, CS_LAYOUT_NCHW);
  check_all(&table, false);
}

/* ---- What is refused ---- */

static void assert_refused(const cs_op_desc *desc, int n) {
  const void *inputs[CS_MAX_OP_INPUTS * (CS_MAX_EXPECTED + 1)] = {NULL};
  cs_expected *expected = NULL;
  cs_status st = device->vtable->expected_create(device, desc, inputs, n, NULL, NULL, &expected);
  assert_null(expected);
  assert_int_equal(cs_status_code(st), CS_CODE_INTERNAL);
  cs_status_free(st);
}

static void misuse_is_refused(void **state) {
  (void)state;
  cs_shape shape = cc_shape4(1, 16, 4, 4);
  cs_op_desc desc = {.op = CS_OP_RELU, .n_inputs = 1};
  desc.inputs[0] = desc.output = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  assert_refused(&desc, 0);
  assert_refused(&desc, CS_MAX_EXPECTED + 1);
  desc.inputs[0] = desc.output = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW16C);
  assert_refused(&desc, 1);
}

int main(void) {
  device = open_or_skip(NULL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolutions_dense_and_into_a_slice),
      cmocka_unit_test(slices_of_one_channel_or_pixel),
      cmocka_unit_test(matrices),
      cmocka_unit_test(where_threads_take_several_elements),
      cmocka_unit_test(misuse_is_refused),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->vtable->close(device);
  return failed;
}
