/* What the CUDA backend says on this machine, with or without a driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>
#include <string.h>

#include "backend/backend.h"

static void count_tells_why_there_is_none(void **state) {
  (void)state;
  char reason[256] = "x";
  int count = cs_cuda_backend_count(reason, sizeof(reason));
  assert_true(count >= 0);
  assert_int_equal(count == 0, reason[0] != '\0');
  if (count == 0) assert_non_null(strstr(reason, "NVIDIA driver"));
  char small[8];
  assert_int_equal(cs_cuda_backend_count(small, sizeof(small)), count);
  assert_true(strlen(small) < sizeof(small));
  assert_int_equal(cs_cuda_backend_count(NULL, 0), count);
}

static void a_device_that_is_not_there_is_a_device_error(void **state) {
  (void)state;
  int count = cs_cuda_backend_count(NULL, 0);
  int indices[] = {count, 4096, -1};
  for (int i = 0; i < 3; i++) {
    cs_backend *backend = NULL;
    cs_status st = cs_cuda_backend_open(indices[i], NULL, &backend);
    assert_null(backend);
    assert_int_equal(cs_status_code(st), CS_CODE_DEVICE);
    assert_int_equal(cs_status_exit_code(st), 4);
    assert_non_null(strstr(cs_status_message(st), "cuda:"));
    cs_status_free(st);
  }
}

static void doctor_lists_versions_devices_and_problems(void **state) {
  (void)state;
  json_t *object = json_object();
  cs_status st = cs_cuda_backend_doctor(object);
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
  const char *versions[] = {"cuda_runtime", "cudnn", "cudnn_built", "cublaslt", "cupti"};
  for (int i = 0; i < 5; i++) {
    const char *version = json_string_value(json_object_get(object, versions[i]));
    if (!version || !version[0]) fail_msg("no version of %s", versions[i]);
  }
  size_t devices = json_array_size(json_object_get(object, "devices"));
  size_t problems = json_array_size(json_object_get(object, "problems"));
  assert_int_equal(devices, cs_cuda_backend_count(NULL, 0));
  if (devices == 0) assert_true(problems > 0);
  json_decref(object);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(count_tells_why_there_is_none),
      cmocka_unit_test(a_device_that_is_not_there_is_a_device_error),
      cmocka_unit_test(doctor_lists_versions_devices_and_problems),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
