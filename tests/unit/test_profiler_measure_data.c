/* Contents of measured inputs: the table's values in the order of elements, NaN between those of a
 * view, whether they are made in one part or image by image. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "profiler/measure_data.h"

#define TABLE 1048573 /* values until they come again */

static float *normals;

static int make_table(void **state) {
  (void)state;
  return cs_measure_normals(&normals) == CS_OK ? 0 : -1;
}

static int free_table(void **state) {
  (void)state;
  free(normals);
  return 0;
}

static void expect(const cs_tensor_desc *desc, int index, bool positive) {
  void *memory = NULL;
  int64_t span = cs_tensor_span_bytes(desc), found = 0, poisoned = 0;
  cs_status st = cs_measure_make_input(normals, desc, index, positive, &memory);
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
  const int64_t *d = desc->shape.dims;
  const float *values = memory;
  int64_t n = d[0] * d[1] * d[2] * d[3], k = 0;
  for (int64_t i = 0; i < d[0]; i++)
    for (int64_t c = 0; c < d[1]; c++)
      for (int64_t y = 0; y < d[2]; y++)
        for (int64_t x = 0; x < d[3]; x++, k++) {
          float wanted = normals[((int64_t)index * 350377 + k) % TABLE];
          if (positive) wanted = fabsf(wanted) + 0.5f;
          found += values[cs_tensor_offset4(desc, i, c, y, x)] == wanted;
        }
  for (int64_t i = 0; i < span / 4; i++) {
    uint32_t bits;
    memcpy(&bits, values + i, sizeof bits);
    poisoned += bits == 0xFFFFFFFF;
  }
  assert_int_equal(found, n);
  assert_int_equal(poisoned, span / 4 - n);
  free(memory);
}

static void values_are_the_tables(void **state) {
  (void)state;
  static const cs_layout layouts[] = {CS_LAYOUT_NCHW, CS_LAYOUT_NHWC};
  for (int layout = 0; layout < 2; layout++) {
    cs_shape small = {4, {3, 5, 4, 7}}, large = {4, {9, 32, 64, 65}}, one = {4, {1, 3, 2, 2}};
    const cs_shape *shapes[] = {&small, &large, &one};
    for (int s = 0; s < 3; s++) {
      cs_tensor_desc dense = cs_tensor_dense(shapes[s], CS_DTYPE_F32, layouts[layout]);
      expect(&dense, 0, false);
      expect(&dense, 2, true);
      /* Some channels of a tensor of more. */
      cs_tensor_desc view = dense;
      view.shape.dims[1] = shapes[s]->dims[1] - 2;
      expect(&view, 1, false);
    }
  }
}

/* Images that lie within one another are not made beside each other. */
static void images_may_lie_within_one_another(void **state) {
  (void)state;
  cs_shape shape = {4, {4, 3, 2, 2}};
  cs_tensor_desc desc = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  desc.strides[0] = 2, desc.strides[2] = 100, desc.strides[3] = 1, desc.strides[1] = 1000;
  expect(&desc, 1, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_are_the_tables),
      cmocka_unit_test(images_may_lie_within_one_another),
  };
  return cmocka_run_group_tests(tests, make_table, free_table);
}
