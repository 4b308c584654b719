/* Transposed convolutions whose weights stay in shared memory: every variant, of as many images as
 * make several tiles a block, against the device's double reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>

#include "kernel_check.h"
#include "stationary_t_cases.h"

static int check(const conformance_case *c, int *variants) {
  const char *ids[CS_CUDA_VARIANTS_MOST];
  int n = cs_cuda_kernel_variants(&c->desc, ids, CS_CUDA_VARIANTS_MOST), failures = 0, offered = 0;
  kc_run run = kc_run_create_large(c);
  for (int i = 0; i < n; i++) {
    if (strncmp(ids[i], STATIONARY_T_FAMILY, strlen(STATIONARY_T_FAMILY)) != 0) continue;
    failures += kc_check_variant(&run, ids[i]);
    offered++;
  }
  if (offered == 0) failures += kc_complain(c->name, STATIONARY_T_FAMILY, "not offered");
  *variants += offered;
  kc_run_free(&run);
  return failures;
}

static void every_variant_is_right(void **state) {
  (void)state;
  conformance_table table = {0};
  stationary_t_cases(&table, 91); /* an odd number: tiles of two images end with one */
  int failures = 0, variants = 0, cases = 0;
  for (int i = 0; i < table.n; i++)
    if (table.cases[i].desc.precision != CS_PRECISION_F32)
      failures += check(&table.cases[i], &variants), cases++;
  fprintf(stderr, "%d variants, %d failures\n", variants, failures);
  assert_true(variants >= 2 * cases); /* of 4; 64 filters do not always fit */
  assert_int_equal(failures, 0);
  free(table.cases);
}

int main(void) {
  int count = 0, device = 0, major = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return 77;
  kc_cuda(cudaGetDevice(&device), "cudaGetDevice");
  kc_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "capability");
  if (major != 9) return 77; /* no wgmma */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_variant_is_right),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
