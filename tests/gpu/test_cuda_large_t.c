/* Transposed convolutions of many pixels: every variant of the tiles that conv_tma.cu has for them
 * alone, and of a pixel as a dense layer, against the device's double reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>

#include "kernel_check.h"

/* Every variant whose id begins so; returns failures and adds to *variants. */
static int check(const conformance_case *c, const char *family, int *variants) {
  const char *ids[CS_CUDA_VARIANTS_MOST];
  int n = cs_cuda_kernel_variants(&c->desc, ids, CS_CUDA_VARIANTS_MOST), failures = 0;
  assert_true(n <= CS_CUDA_VARIANTS_MOST);
  kc_run run = kc_run_create_large(c);
  for (int i = 0; i < n; i++) {
    if (strncmp(ids[i], family, strlen(family)) != 0) continue;
    failures += kc_check_variant(&run, ids[i]);
    (*variants)++;
  }
  kc_run_free(&run);
  return failures;
}

static int check_all(const conformance_table *table, const char *family, int *variants) {
  int failures = 0;
  for (int i = 0; i < table->n; i++)
    if (table->cases[i].desc.precision != CS_PRECISION_F32)
      failures += check(&table->cases[i], family, variants);
  return failures;
}

static void large_tiles_are_right(void **state) {
  (void)state;
  conformance_table table = {0};
  const cs_layout nhwc[] = {CS_LAYOUT_NHWC};
  cc_context x = {&table, nhwc, 1};
  const int *one = CC2(1, 1), *two = CC2(2, 2), *zero = CC2(0, 0), *p1 = CC4(1, 1, 1, 1);
  cc_conv_transpose(&x, "many_64", CC4(33, 40, 33, 33), CC3(64, 4, 4), two, p1, one, zero, 1,
                    CC_BIAS, CS_ACT_RELU);
  cc_conv_transpose(&x, "many_72", CC4(31, 64, 35, 33), CC3(72, 4, 4), two, p1, one, zero, 1,
                    CC_BIAS | CC_VIEW_OUT, CS_ACT_LEAKY_RELU);
  int large = 0;
  int failures = check_all(&table, "cuda.tma_t.v1-256x", &large);
  int device = 0, major = 0;
  kc_cuda(cudaGetDevice(&device), "cudaGetDevice");
  kc_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "capability");
  fprintf(stderr, "%d variants of large tiles, %d failures\n", large, failures);
  assert_int_equal(large, major == 9 ? 2 * 3 * 3 : 0);
  assert_int_equal(failures, 0);
  free(table.cases);
}

static void a_pixel_is_a_dense_layer(void **state) {
  (void)state;
  conformance_table table = {0};
  const cs_layout both[] = {CS_LAYOUT_NHWC, CS_LAYOUT_NCHW};
  cc_context x = {&table, both, 2};
  const int *one = CC2(1, 1), *zero = CC2(0, 0), *none = CC4(0, 0, 0, 0);
  cc_conv_transpose(&x, "latent", CC4(250, 104, 1, 1), CC3(512, 4, 4), one, none, one, zero, 1,
                    CC_BIAS, CS_ACT_RELU);
  cc_conv_transpose(&x, "latent_odd", CC4(33, 72, 1, 1), CC3(31, 2, 3), one, none, one, zero, 1,
                    CC_BIAS, CS_ACT_TANH);
  cc_conv_transpose(&x, "latent_plain", CC4(1, 128, 1, 1), CC3(64, 4, 4), CC2(2, 2), none, one,
                    zero, 1, 0, CS_ACT_NONE);
  int by_mma = 0, by_tma = 0;
  int failures = check_all(&table, "cuda.mma_pixel_t.", &by_mma);
  failures += check_all(&table, "cuda.tma_pixel_t.", &by_tma);
  fprintf(stderr, "%d + %d variants, %d failures\n", by_mma, by_tma, failures);
  assert_true(by_mma >= table.n / 2);
  assert_int_equal(failures, 0);
  free(table.cases);
}

int main(void) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return 77;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(large_tiles_are_right),
      cmocka_unit_test(a_pixel_is_a_dense_layer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
