/* Identities of devices: hardware apart from software. */
#include "profiler/identity.h"

#include "unit/graph_fixture.h"

#define CUDA(name, driver, cudnn)                              \
  "cuda;name=" name ";cc=90;sms=132;clock=1980;driver=" driver \
  ";driver_cuda=13.0;cuda=13.0;cudnn=" cudnn ";cudnn_built=9.19.0;measure=1"

static void test_same_hardware(void **state) {
  (void)state;
  const char *h100 = CUDA("NVIDIA H100", "580.1", "9.19.0");
  assert_true(cs_identity_same_hardware(h100, h100));
  assert_true(cs_identity_same_hardware(h100, CUDA("NVIDIA H100", "590.2", "9.20.1")));
  assert_false(cs_identity_same_hardware(h100, CUDA("NVIDIA H200", "580.1", "9.19.0")));
  assert_false(cs_identity_same_hardware(h100, "cuda;name=NVIDIA H100;cc=90"));
  assert_true(
      cs_identity_same_hardware("cpu|a|b|cores 2|onednn 2.6.3|x", "cpu|a|b|cores 2|onednn 2|x"));
  assert_false(
      cs_identity_same_hardware("cpu|a|b|cores 2|onednn 2.6.3", "cpu|a|b|cores 4|onednn 2.6.3"));
  assert_false(cs_identity_same_hardware("cpu|a", "cpu"));
  assert_false(cs_identity_same_hardware("", "cpu"));
  assert_true(cs_identity_same_hardware("", "cudnn=9"));
}

static void test_library(void **state) {
  (void)state;
  char text[64];
  cs_identity_library(CUDA("NVIDIA H100", "580.1", "9.19.0"), text, sizeof text);
  assert_string_equal(text, "cuDNN 9.19.0");
  cs_identity_library("cpu|a|onednn 2.6.3|f16", text, sizeof text);
  assert_string_equal(text, "oneDNN 2.6.3");
  cs_identity_library("something else", text, sizeof text);
  assert_string_equal(text, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same_hardware),
      cmocka_unit_test(test_library),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
