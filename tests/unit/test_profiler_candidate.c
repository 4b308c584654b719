/* What a candidate's notes mean for planning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profiler/candidate.h"

static bool coarse(cs_op op, cs_precision precision, int64_t kernel, uint32_t notes) {
  cs_op_desc desc = {.op = op, .precision = precision};
  desc.attrs.conv.kernel[0] = 1;
  desc.attrs.conv.kernel[1] = kernel;
  cs_candidate candidate = {.notes = notes};
  return cs_candidate_is_coarse(&desc, &candidate);
}

static void test_large_winograd_is_no_f32(void **state) {
  (void)state;
  assert_true(coarse(CS_OP_CONV, CS_PRECISION_F32, 5, CS_NOTE_WINOGRAD));
  assert_true(
      coarse(CS_OP_CONV_TRANSPOSE, CS_PRECISION_F32, 5, CS_NOTE_WINOGRAD | CS_NOTE_STRICT_NAN));
  assert_false(coarse(CS_OP_CONV, CS_PRECISION_F32, 3, CS_NOTE_WINOGRAD));
  assert_false(coarse(CS_OP_CONV, CS_PRECISION_TF32, 5, CS_NOTE_WINOGRAD));
  assert_false(coarse(CS_OP_CONV, CS_PRECISION_F32, 5, CS_NOTE_FFT));
  assert_false(coarse(CS_OP_MAX_POOL, CS_PRECISION_F32, 5, CS_NOTE_WINOGRAD));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_large_winograd_is_no_f32)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
