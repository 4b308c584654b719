/* Which pixel a number is. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>

#include "backend/reference/reference.h"
#include "graph/pixels.h"

static void check(const float *values, const uint8_t *wanted, int n) {
  cs_shape shape = {.rank = 4, .dims = {1, 1, 1, n}};
  cs_tensor_desc desc = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  uint8_t pixels[16];
  cs_status st = cs_tensor_to_pixels(&desc, values, pixels);
  assert_null(st);
  for (int i = 0; i < n; i++) {
    if (pixels[i] != wanted[i]) {
      fail_msg("%.9g is %d, wanted %d", (double)values[i], pixels[i], wanted[i]);
    }
  }
}

static void test_ends_and_beyond(void **state) {
  (void)state;
  const float values[] = {-1, 1, -1.5f, 1.5f, -INFINITY, INFINITY, NAN, -NAN, 3e38f, -3e38f};
  const uint8_t wanted[] = {0, 255, 0, 255, 0, 255, 0, 0, 255, 0};
  check(values, wanted, 10);
}

/* 127.5 is half way between two, and goes to the even one. */
static void test_between(void **state) {
  (void)state;
  const float values[] = {0, 1 / 127.5f, -1 / 127.5f, 0.5f, -0.5f, 0.996f, 0.997f, -0.998f};
  const uint8_t wanted[] = {128, 128, 126, 191, 64, 254, 255, 0};
  check(values, wanted, 8);
}

/* Channels become the last axis, from either layout; f16 is read as it is. */
static void test_channels_last(void **state) {
  (void)state;
  cs_shape shape = {.rank = 4, .dims = {2, 3, 2, 2}};
  for (int layout = 0; layout < 2; layout++) {
    cs_tensor_desc desc =
        cs_tensor_dense(&shape, CS_DTYPE_F16, layout ? CS_LAYOUT_NHWC : CS_LAYOUT_NCHW);
    uint16_t memory[24];
    uint8_t pixels[24];
    for (int n = 0; n < 2; n++)
      for (int c = 0; c < 3; c++)
        for (int h = 0; h < 2; h++)
          for (int w = 0; w < 2; w++)
            memory[cs_tensor_offset4(&desc, n, c, h, w)] =
                cs_f32_to_f16((float)(100 * n + 30 * c + 10 * h + w) / 127.5f - 1);
    cs_status st = cs_tensor_to_pixels(&desc, memory, pixels);
    assert_null(st);
    for (int i = 0; i < 24; i++) {
      int n = i / 12, h = i / 6 % 2, w = i / 3 % 2, c = i % 3;
      assert_int_equal(pixels[i], 100 * n + 30 * c + 10 * h + w);
    }
  }
  assert_int_equal(cs_pixels_bytes(&shape), 24);
}

static void test_what_pictures_are(void **state) {
  (void)state;
  const cs_shape grey = {.rank = 4, .dims = {1, 1, 8, 8}}, two = {.rank = 4, .dims = {1, 2, 8, 8}};
  const cs_shape flat = {.rank = 2, .dims = {1, 3}};
  assert_true(cs_pixels_shape(&grey));
  assert_false(cs_pixels_shape(&two));
  assert_false(cs_pixels_shape(&flat));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ends_and_beyond), cmocka_unit_test(test_between),
      cmocka_unit_test(test_channels_last), cmocka_unit_test(test_what_pictures_are)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
