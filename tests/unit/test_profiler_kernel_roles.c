/* What kernels of a candidate are there for: told by names and families, else not clear. */
#include "profiler/kernel_roles.h"

#include <stdio.h>

#include "unit/graph_fixture.h"

#define MOST 6

static void assert_roles(const char *family, const char *const *names, int n,
                         const cs_kernel_role *wanted) {
  cs_kernel_profile kernels[MOST] = {{.counted = false}};
  cs_kernel_role found[MOST];
  char text[64];
  snprintf(text, sizeof text, "%s", family);
  cs_candidate candidate = {.family = text};
  for (int k = 0; k < n; k++)
    snprintf(kernels[k].info.name, sizeof kernels[k].info.name, "%s", names[k]);
  cs_kernel_roles(&candidate, kernels, n, found);
  for (int k = 0; k < n; k++) {
    if (found[k] != wanted[k]) print_error("%s: kernel %s\n", family, names[k]);
    assert_int_equal(found[k], wanted[k]);
  }
}
#define ROLES(...) ((const cs_kernel_role[]){__VA_ARGS__})
#define NAMES(...) ((const char *const[]){__VA_ARGS__})

static void test_one_kernel_computes(void **state) {
  (void)state;
  assert_roles("cuda.copy", NAMES("_Z14cs_copy_kernelI6__halfE"), 1, ROLES(CS_ROLE_COMPUTES));
  assert_roles("cudnn.graph", NAMES("nchwToNhwcKernel"), 1, ROLES(CS_ROLE_COMPUTES));
}

static void test_names(void **state) {
  (void)state;
  assert_roles("cudnn.graph",
               NAMES("winogradForwardData9x9_5x5", "winogradForwardFilter9x9_5x5", "sm80_xmma_gemm",
                     "winogradForwardOutput9x9_5x5"),
               4, ROLES(CS_ROLE_INPUT, CS_ROLE_FILTER, CS_ROLE_COMPUTES, CS_ROLE_OUTPUT));
  assert_roles("cudnn.graph", NAMES("cutlass_gemm", "_ZN8cublasLt19splitKreduce_kernel"), 2,
               ROLES(CS_ROLE_COMPUTES, CS_ROLE_SPLIT_K));
  assert_roles(
      "cudnn.graph",
      NAMES("nchwToNhwcKernel", "init_device_workspace_kernel", "xmma_fprop", "nhwcToNchwKernel"),
      4, ROLES(CS_ROLE_LAYOUT, CS_ROLE_PREPARE, CS_ROLE_COMPUTES, CS_ROLE_LAYOUT));
}

/* Two kernels that nothing tells apart are both unclear. */
static void test_unclear(void **state) {
  (void)state;
  assert_roles("cudnn.graph", NAMES("first", "second", "splitKreduce_kernel"), 3,
               ROLES(CS_ROLE_UNCLEAR, CS_ROLE_UNCLEAR, CS_ROLE_SPLIT_K));
  assert_string_not_equal(cs_kernel_role_text(CS_ROLE_UNCLEAR), "");
}

/* Ours behind cuDNN's, by the family; never where the family is another. */
static void test_last(void **state) {
  (void)state;
  assert_roles("cudnn.graph+epilogue", NAMES("xmma_fprop", "_Z21cs_elementwise_kernelIf"), 2,
               ROLES(CS_ROLE_COMPUTES, CS_ROLE_EPILOGUE));
  assert_roles("cudnn.legacy.dense", NAMES("xmma_fprop", "_Z21cs_elementwise_kernelIf"), 2,
               ROLES(CS_ROLE_COMPUTES, CS_ROLE_EPILOGUE));
  assert_roles("cudnn.graph.dense", NAMES("xmma_fprop", "_Z14cs_copy_kernelI6__half"), 2,
               ROLES(CS_ROLE_COMPUTES, CS_ROLE_SLICE));
  assert_roles("cudnn.graph", NAMES("xmma_fprop", "_Z14cs_copy_kernelI6__half"), 2,
               ROLES(CS_ROLE_UNCLEAR, CS_ROLE_UNCLEAR));
  assert_roles("cuda.conv", NAMES("first", "_Z14cs_copy_kernelI6__half"), 2,
               ROLES(CS_ROLE_UNCLEAR, CS_ROLE_UNCLEAR));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_kernel_computes),
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_unclear),
      cmocka_unit_test(test_last),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
