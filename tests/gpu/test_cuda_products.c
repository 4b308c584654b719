/* That cuBLASLt offers something for dense layers and products of images, that what it offers is
 * found again by its id alone, and that another version's candidate is refused. (The conformance
 * suite runs them all.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>
#include <string.h>

#include "backend/backend.h"
#include "gpu/open_device.h"

static cs_backend *device;

static cs_op_desc gemm(cs_precision precision) {
  cs_dtype dtype = cs_precision_storage(precision);
  cs_shape x = {.rank = 2, .dims = {64, 512}}, y = {.rank = 2, .dims = {64, 256}};
  cs_op_desc d = {.op = CS_OP_GEMM, .precision = precision, .has_bias = true, .n_inputs = 1};
  d.attrs.gemm = (cs_gemm_attrs){.out_features = 256, .bias = true};
  d.activation.kind = CS_ACT_RELU;
  d.inputs[0] = cs_tensor_dense(&x, dtype, CS_LAYOUT_NCHW);
  d.output = cs_tensor_dense(&y, dtype, CS_LAYOUT_NCHW);
  return d;
}

/* Six images. */
static cs_op_desc matmul(cs_precision precision) {
  cs_dtype dtype = cs_precision_storage(precision);
  cs_shape a = {4, {2, 3, 64, 48}}, b = {4, {2, 3, 48, 80}}, y = {4, {2, 3, 64, 80}};
  cs_op_desc d = {.op = CS_OP_MATMUL, .precision = precision, .n_inputs = 2};
  d.inputs[0] = cs_tensor_dense(&a, dtype, CS_LAYOUT_NCHW);
  d.inputs[1] = cs_tensor_dense(&b, dtype, CS_LAYOUT_NCHW);
  d.output = cs_tensor_dense(&y, dtype, CS_LAYOUT_NCHW);
  return d;
}

static void every_precision_has_some_that_are_found_again(void **state) {
  (void)state;
  static const cs_precision all[] = {CS_PRECISION_F32, CS_PRECISION_TF32, CS_PRECISION_F16,
                                     CS_PRECISION_BF16};
  for (int p = 0; p < 8; p++) {
    cs_op_desc desc = p < 4 ? gemm(all[p]) : matmul(all[p - 4]);
    cs_candidate_list list = {0};
    cs_enumerate_options options = {.workspace_limit = (int64_t)64 << 20, .deterministic = true};
    cs_status st = device->vtable->enumerate(device, &desc, &options, &list);
    if (st != CS_OK) fail_msg("%s", cs_status_message(st));
    int n = 0;
    for (size_t i = 0; i < list.n; i++) {
      const cs_candidate *c = &list.items[i];
      cs_exec *exec = NULL;
      if (strcmp(c->family, "cublaslt") != 0) continue;
      n++;
      assert_true(c->deterministic);
      st = device->vtable->prepare(device, &desc, c, &exec);
      if (st != CS_OK) fail_msg("%s", cs_status_message(st));
      assert_int_equal(device->vtable->exec_workspace(exec), c->workspace_bytes);
      device->vtable->exec_destroy(exec);
    }
    if (n < 1 || n > 8)
      fail_msg("%s in %s: %d candidates", cs_op_name(desc.op), cs_precision_name(desc.precision),
               n);
    cs_candidate_list_free(&list);
  }
}

static void another_version_is_refused(void **state) {
  (void)state;
  char id[] = "cublaslt.v1:algo66/20/36/1/0/0/3/0/2", family[] = "cublaslt";
  cs_op_desc desc = gemm(CS_PRECISION_F16);
  cs_candidate candidate = {.id = id, .family = family};
  cs_exec *exec = NULL;
  cs_status st = device->vtable->prepare(device, &desc, &candidate, &exec);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  assert_non_null(strstr(cs_status_message(st), "is of cuBLASLt 0.0.1, and this machine has "));
  cs_status_free(st);
}

int main(void) {
  device = open_or_skip(NULL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_precision_has_some_that_are_found_again),
      cmocka_unit_test(another_version_is_refused),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->vtable->close(device);
  return failed;
}
