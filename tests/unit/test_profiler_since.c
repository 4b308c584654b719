/* Since which version of the candidates an enumeration, or a search among them, is all there is. */
#include "database_fixture.h"

#define CONV_3X3(precision, x, y, of_y, rest) \
  "Conv " precision " x=1x32x8x8/" x y "=1x32x8x8/" of_y " k=3x3 " rest

#define TRANSPOSED(precision, layout, rest) \
  "ConvTranspose " precision " x=1x32x4x4/" layout " y=1x16x8x8/" layout " " rest

/* A later version that brought other operations candidates, or other devices, leaves what covers
 * this one. */
static void test_candidates_since(void **state) {
  (void)state;
  static const struct {
    const char *signature;
    int on_cuda, on_cpu;
  } cases[] = {
      {CONV_3X3("f16", "nhwc", " y", "nhwc", "s=1x1 p=1,1,1,1 d=1x1 g=1 bias"), 6, 6},
      {CONV_3X3("f16", "nhwc", " y", "nhwc", "s=1x1 p=1,1,1,1 d=1x1 g=32"), 8, 6},
      {CONV_3X3("f32", "nchw", " y", "nchw", "s=1x1 p=1,1,1,1 d=1x1 g=1"), 11, 6},
      {CONV_3X3("f32", "nchw", " y", "nchw/s512,64,8,1/a4", "s=1x1 p=1,1,1,1 d=1x1 g=1"), 11, 6},
      {CONV_3X3("f32", "nchw", " r=1x32x8x8/nhwc y", "nchw", "s=1x1 p=1,1,1,1 d=1x1 g=1"), 11, 6},
      {CONV_3X3("f32", "nchw", " y", "nhwc", "s=1x1 p=1,1,1,1 d=1x1 g=1"), 6, 6},
      {CONV_3X3("f32", "nhwc", " r=1x32x8x8/nchw y", "nhwc", "s=1x1 p=1,1,1,1 d=1x1 g=1"), 6, 6},
      {CONV_3X3("f32", "nchw16c", " y", "nchw16c", "s=1x1 p=1,1,1,1 d=1x1 g=1"), 6, 6},
      {CONV_3X3("f32", "nchw", " y", "nchw", "s=1x1 p=2,2,2,2 d=2x2 g=1"), 6, 6},
      {CONV_3X3("f32", "nchw", " y", "nchw", "s=1x1 p=1,1,1,1 d=1x1 g=8"), 8, 6},
      {CONV_3X3("tf32", "nchw", " y", "nchw", "s=1x1 p=1,1,1,1 d=1x1 g=1"), 6, 6},
      {TRANSPOSED("f32", "nhwc", "k=4x4 s=2x2 p=1,1,1,1 d=1x1 g=1"), 10, 9},
      {TRANSPOSED("f16", "nhwc", "k=4x4 s=2x2 p=1,1,1,1 d=1x1 g=1 bias"), 12, 9},
      {TRANSPOSED("tf32", "nhwc", "k=4x4 s=2x2 p=1,1,1,1 d=1x1 g=1"), 12, 9},
      {TRANSPOSED("f16", "nchw", "k=4x4 s=2x2 p=1,1,1,1 d=1x1 g=1"), 10, 9},
      {TRANSPOSED("f16", "nhwc", "k=4x4 s=1x1 p=1,1,1,1 d=1x1 g=1"), 10, 9},
      {TRANSPOSED("f16", "nhwc", "k=4x4 s=2x2 p=1,1,1,1 d=1x1 g=2"), 10, 9},
      {"Gemm f32 x=1x32/row y=1x16/row k=16", 10, 6},
      {"MaxPool f16 x=1x32x8x8/nhwc y=1x32x4x4/nhwc", 6, 6},
      {"Schedule f16 n=56 6ab1554c5b397a42", 6, 6},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *signature = cases[i].signature;
    int on_cuda = cs_candidates_since("cuda;name=NVIDIA H200;cc=90", signature);
    int on_cpu = cs_candidates_since(DEVICE, signature);
    if (on_cuda != cases[i].on_cuda || on_cpu != cases[i].on_cpu)
      fail_msg("%s: since %d on CUDA and %d on a CPU", signature, on_cuda, on_cpu);
  }
}

/* What was looked for among the candidates of a program's operations, as a search's end says. */
static void test_candidates_of_a_program_since(void **state) {
  fixture *f = *state;
  cs_shape shape = {4, {1, 32, 8, 8}};
  cs_task tasks[2] = {{.desc = {.op = CS_OP_RELU, .precision = CS_PRECISION_F32, .n_inputs = 1}}};
  tasks[0].desc.inputs[0] = tasks[0].desc.output =
      cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  tasks[1].desc = tasks[0].desc;
  tasks[1].desc.op = CS_OP_CONV;
  tasks[1].desc.attrs.conv = (cs_conv_attrs){.out_channels = 32,
                                             .group = 1,
                                             .kernel = {3, 3},
                                             .strides = {1, 1},
                                             .pads = {1, 1, 1, 1},
                                             .dilations = {1, 1}};
  cs_program program = {.precision = CS_PRECISION_F32, .tasks = tasks};
  cs_completion done = {.workspace_limit = 50};
  static const struct {
    const char *device;
    int n_tasks, since;
  } cases[] = {{DEVICE, 2, 6},
               {"cuda;name=NVIDIA H200;cc=90", 1, 6},
               {"cuda;name=NVIDIA H200;cc=90", 2, 11}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int since = 0;
    cs_profile *profile = open_profile(f, cases[i].device);
    program.n_tasks = cases[i].n_tasks;
    ok(cs_program_candidates_since(profile, &program, &since));
    assert_int_equal(since, cases[i].since);
    ok(cs_profile_mark_completion(profile, "Schedule", &done));
    const cs_op_profile *known = cs_profile_find(profile, "Schedule");
    assert_true(cs_op_profile_covers_since(known, &done, since));
    assert_false(cs_op_profile_covers_since(known, &done, CS_CANDIDATES_VERSION + 1));
    cs_profile_close(profile);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_candidates_since),
      cmocka_unit_test_setup_teardown(test_candidates_of_a_program_since, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
