/* The kernel of pixels, bit for bit as the host makes them: layouts, types, views, NaN, borders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>

#include "gpu/open_device.h"
#include "kernel_check.h"

/* Numbers around every border between two pixels, and what is none. */
static float number(int64_t i) {
  const float odd[] = {NAN, INFINITY, -INFINITY, -1, 1, 0, -0.0f, 1e-30f};
  if (i % 11 == 0) return odd[i / 11 % 8];
  return ((float)(i % 257) - 0.5f) / 127.5f - 1;
}

static void check(const cs_shape *shape, cs_dtype dtype, cs_layout layout, bool view) {
  cs_tensor_desc desc = cs_tensor_dense(shape, dtype, layout);
  if (view) { /* of something with twice as many channels */
    cs_shape whole = *shape;
    whole.dims[1] *= 2;
    cs_tensor_desc parent = cs_tensor_dense(&whole, dtype, layout);
    memcpy(desc.strides, parent.strides, sizeof desc.strides);
  }
  int64_t bytes = cs_tensor_span_bytes(&desc);
  int64_t count = shape->dims[0] * shape->dims[1] * shape->dims[2] * shape->dims[3];
  float *values = kc_alloc((size_t)count * sizeof *values);
  uint8_t *wanted = kc_alloc((size_t)count);
  for (int64_t i = 0; i < count; i++) values[i] = number(i);
  kc_region from = kc_region_create(bytes), to = kc_region_create(count);
  cs_tensor_from_f32(&desc, values, from.host + KC_GUARD);
  kc_upload(&from);
  assert_null(cs_tensor_to_pixels(&desc, from.host + KC_GUARD, wanted));
  assert_null(cs_cuda_pixels_launch(&desc, from.base + KC_GUARD, to.base + KC_GUARD, NULL));
  unsigned char *found = kc_download(&to);
  assert_memory_equal(found + KC_GUARD, wanted, (size_t)count);
  for (int i = 0; i < KC_GUARD; i++) {
    assert_int_equal(found[i], 0xFF);
    assert_int_equal(found[KC_GUARD + count + i], 0xFF);
  }
  free(found);
  free(values);
  free(wanted);
  kc_region_free(&from);
  kc_region_free(&to);
}

static void test_as_the_host_makes_them(void **state) {
  (void)state;
  static const int64_t extents[][4] = {{1, 3, 4, 4}, {5, 3, 7, 9},    {3, 1, 5, 8},
                                       {2, 1, 3, 3}, {64, 3, 64, 64}, {1, 3, 1, 1}};
  const cs_dtype dtypes[] = {CS_DTYPE_F32, CS_DTYPE_F16, CS_DTYPE_BF16};
  for (size_t e = 0; e < sizeof extents / sizeof *extents; e++)
    for (int t = 0; t < 3; t++)
      for (int variant = 0; variant < 4; variant++) {
        cs_shape shape = {.rank = 4};
        memcpy(shape.dims, extents[e], sizeof extents[e]);
        check(&shape, dtypes[t], variant % 2 ? CS_LAYOUT_NHWC : CS_LAYOUT_NCHW, variant >= 2);
      }
}

int main(void) {
  cs_backend *device = open_or_skip(NULL);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_the_host_makes_them)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->vtable->close(device);
  return failed;
}
