/* Packing of weights for cuDNN: order of the filter, storage type, place and type of the bias. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>
#include <string.h>

#include "backend/cuda/exec.h"

enum { K = 4, C = 3, R = 2, S = 5, WEIGHTS = K * C * R * S };

static void ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

/* A prepared convolution without its plan; `epilogue`: an own kernel adds the bias. */
static cs_exec conv_exec(cs_layout layout, cs_dtype dtype, bool bias, bool relu, bool epilogue) {
  cs_exec e = {.kind = CS_EXEC_GRAPH};
  cs_shape in = {.rank = 4, .dims = {1, C, 9, 9}}, out = {.rank = 4, .dims = {1, K, 8, 5}};
  e.desc = (cs_op_desc){.op = CS_OP_CONV,
                        .attrs.conv = {.out_channels = K,
                                       .group = 1,
                                       .kernel = {R, S},
                                       .strides = {1, 1},
                                       .dilations = {1, 1},
                                       .bias = bias},
                        .has_bias = bias,
                        .n_inputs = 1};
  if (relu) e.desc.activation.kind = CS_ACT_RELU;
  e.desc.inputs[0] = cs_tensor_dense(&in, dtype, layout);
  e.desc.output = cs_tensor_dense(&out, dtype, layout);
  assert_true(cs_cudnn_problem_make(&e.desc, &e.problem));
  e.epilogue = epilogue;
  if (epilogue) e.problem = cs_cudnn_problem_bare(&e.problem);
  cs_exec_plan_weights(&e);
  return e;
}

static void fill(float *weight, float *bias) {
  for (int i = 0; i < WEIGHTS; i++) weight[i] = (float)i;
  for (int i = 0; i < K; i++) bias[i] = -1.5f - (float)i;
}

static void nhwc_f16_is_krsc_with_a_bias_of_its_type(void **state) {
  (void)state;
  float weight[WEIGHTS], bias[K];
  fill(weight, bias);
  cs_exec e = conv_exec(CS_LAYOUT_NHWC, CS_DTYPE_F16, true, true, false);
  assert_int_equal(e.bias_offset, 256);
  assert_int_equal(e.weight_bytes, 256 + K * 2);
  uint16_t *packed = calloc(1, (size_t)e.weight_bytes);
  ok(cs_exec_pack_weights(&e, weight, bias, packed));
  for (int k = 0; k < K; k++) {
    for (int c = 0; c < C; c++) {
      for (int y = 0; y < R; y++) {
        for (int x = 0; x < S; x++) {
          float wanted = weight[((k * C + c) * R + y) * S + x];
          assert_int_equal(packed[((k * R + y) * S + x) * C + c], cs_f32_to_f16(wanted));
        }
      }
    }
    assert_int_equal(packed[128 + k], cs_f32_to_f16(bias[k]));
  }
  free(packed);
}

static void nchw_f32_keeps_the_order(void **state) {
  (void)state;
  float weight[WEIGHTS], bias[K];
  fill(weight, bias);
  cs_exec e = conv_exec(CS_LAYOUT_NCHW, CS_DTYPE_F32, true, false, false);
  float *packed = calloc(1, (size_t)e.weight_bytes);
  ok(cs_exec_pack_weights(&e, weight, bias, packed));
  assert_memory_equal(packed, weight, sizeof(weight));
  assert_memory_equal((char *)packed + e.bias_offset, bias, sizeof(bias));
  free(packed);
}

/* The engines want a bias where anything is fused: zeros where the operation has none. */
static void a_missing_bias_is_zeros_in_a_fused_graph(void **state) {
  (void)state;
  float weight[WEIGHTS], bias[K];
  fill(weight, bias);
  cs_exec e = conv_exec(CS_LAYOUT_NHWC, CS_DTYPE_BF16, false, true, false);
  assert_true(e.bias_offset > 0);
  uint16_t *packed = malloc((size_t)e.weight_bytes);
  memset(packed, 0xFF, (size_t)e.weight_bytes);
  ok(cs_exec_pack_weights(&e, weight, NULL, packed));
  for (int k = 0; k < K; k++) assert_int_equal(packed[e.bias_offset / 2 + k], 0);
  free(packed);
  cs_exec bare = conv_exec(CS_LAYOUT_NHWC, CS_DTYPE_BF16, false, false, false);
  assert_int_equal(bare.bias_offset, -1);
  assert_int_equal(bare.weight_bytes, WEIGHTS * 2);
}

static void the_epilogue_kernel_gets_an_f32_bias(void **state) {
  (void)state;
  float weight[WEIGHTS], bias[K];
  fill(weight, bias);
  cs_exec e = conv_exec(CS_LAYOUT_NHWC, CS_DTYPE_F16, true, true, true);
  char *packed = calloc(1, (size_t)e.weight_bytes);
  assert_int_equal(e.bias_offset % 256, 0);
  ok(cs_exec_pack_weights(&e, weight, bias, packed));
  assert_memory_equal(packed + e.bias_offset, bias, sizeof(bias));
  free(packed);
  cs_exec none = conv_exec(CS_LAYOUT_NHWC, CS_DTYPE_F16, false, true, true);
  assert_int_equal(none.bias_offset, -1);
}

static void missing_weights_are_an_error(void **state) {
  (void)state;
  float weight[WEIGHTS] = {0};
  cs_exec e = conv_exec(CS_LAYOUT_NCHW, CS_DTYPE_F32, true, false, false);
  e.id = "test";
  char *packed = calloc(1, (size_t)e.weight_bytes);
  cs_status st = cs_exec_pack_weights(&e, weight, NULL, packed);
  assert_int_equal(cs_status_code(st), CS_CODE_INTERNAL);
  cs_status_free(st);
  free(packed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nhwc_f16_is_krsc_with_a_bias_of_its_type),
      cmocka_unit_test(nchw_f32_keeps_the_order),
      cmocka_unit_test(a_missing_bias_is_zeros_in_a_fused_graph),
      cmocka_unit_test(the_epilogue_kernel_gets_an_f32_bias),
      cmocka_unit_test(missing_weights_are_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
