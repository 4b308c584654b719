/* Conversions between device tensors and row-major arrays, against offsets written out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backend/reference/reference.h"

static const cs_shape shape = {4, {2, 3, 1, 2}};
static const float counted[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static void round_trip(const cs_tensor_desc *desc, const void *memory) {
  float f32[12];
  double f64[12];
  cs_tensor_to_f32(desc, memory, f32);
  cs_tensor_to_f64(desc, memory, f64);
  for (int i = 0; i < 12; i++) {
    assert_true(f32[i] == counted[i]);
    assert_true(f64[i] == (double)counted[i]);
  }
}

static void channels_last(void **state) {
  (void)state;
  cs_tensor_desc desc = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NHWC);
  const float wanted[] = {1, 3, 5, 2, 4, 6, 7, 9, 11, 8, 10, 12};
  float memory[12];
  cs_tensor_from_f32(&desc, counted, memory);
  assert_memory_equal(memory, wanted, sizeof wanted);
  round_trip(&desc, memory);
}

static void blocks_are_padded_with_zeros(void **state) {
  (void)state;
  cs_tensor_desc desc = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW8C);
  float memory[32];
  memset(memory, 0xFF, sizeof memory);
  cs_tensor_from_f32(&desc, counted, memory);
  const float first_two[] = {1, 3, 5, 0, 0, 0, 0, 0, 2, 4, 6, 0, 0, 0, 0, 0};
  assert_memory_equal(memory, first_two, sizeof first_two);
  round_trip(&desc, memory);
}

static void a_view_leaves_its_parent_alone(void **state) {
  (void)state;
  cs_shape wide = {4, {2, 5, 1, 2}};
  cs_tensor_desc desc = cs_tensor_dense(&wide, CS_DTYPE_F16, CS_LAYOUT_NCHW);
  desc.shape = shape;
  uint16_t memory[20];
  memset(memory, 0xFF, sizeof memory);
  cs_tensor_from_f32(&desc, counted, memory + 2); /* channels 1 to 3 of 5 */
  for (int i = 0; i < 20; i++) {
    bool inside = i % 10 >= 2 && i % 10 < 8;
    assert_true((memory[i] != 0xFFFF) == inside);
  }
  assert_int_equal(memory[2], 0x3C00); /* 1.0 */
  round_trip(&desc, memory + 2);
}

static void rounds_to_what_storage_keeps(void **state) {
  (void)state;
  float f16[] = {1.0f, 1.00048828125f, 1.0005f, 65504.0f}, bf16[] = {1.0f, 1.00390625f, 1.004f};
  cs_round_to_dtype(CS_DTYPE_F16, f16, 4);
  assert_true(f16[0] == 1.0f && f16[1] == 1.0f && f16[2] == 1.0009765625f && f16[3] == 65504.0f);
  cs_round_to_dtype(CS_DTYPE_BF16, bf16, 3);
  assert_true(bf16[0] == 1.0f && bf16[1] == 1.0f && bf16[2] == 1.0078125f);
  float same[] = {1.00000012f};
  cs_round_to_dtype(CS_DTYPE_F32, same, 1);
  assert_true(same[0] == 1.00000012f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(channels_last),
      cmocka_unit_test(blocks_are_padded_with_zeros),
      cmocka_unit_test(a_view_leaves_its_parent_alone),
      cmocka_unit_test(rounds_to_what_storage_keeps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
