/* cuBLASLt without a GPU: identities, the products that operations are, packed weights, a library
 * that is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/cublaslt_algorithm.h"
#include "backend/cuda/exec.h"

static void ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

static void fails(cs_status st, cs_code code, const char *text) {
  assert_int_equal(cs_status_code(st), code);
  if (!strstr(cs_status_message(st), text)) fail_msg("%s", cs_status_message(st));
  cs_status_free(st);
}

static void a_missing_library_is_said_with_what_to_do(void **state) {
  (void)state;
  cs_cublaslt_api api;
  const char *nowhere[] = {"libcublasLt.so.does-not-exist", "/nowhere/libcublasLt.so"};
  fails(cs_cublaslt_load(nowhere, 2, &api), CS_CODE_NOT_FOUND, "is in none of 2 places; install");
  const char *another[] = {"libm.so.6"};
  fails(cs_cublaslt_load(another, 1, &api), CS_CODE_NOT_FOUND, "libm.so.6 lacks cublasLt");
}

static void identities_are_read_as_they_are_written(void **state) {
  (void)state;
  static const char *const right[] = {
      "cublaslt.v130100:algo66/20/36/1/0/0/3/0/2",
      "cublaslt.v120805:algo0/0/0/12/2/1/4294967295/0/0",
      "cublaslt.v130100:algo66/20/36/1/0/0/3/0/2+0=1f,3=0,7=ffffffffffffffff",
  };
  static const char *const wrong[] = {
      "cublaslt.v130100:algo66/20/36/1/0/0/3/0",    "cublaslt.v130100:algo66/20/36/1/0/0/3/0/2/1",
      "cublaslt.v130100:algo066/20/36/1/0/0/3/0/2", "cublaslt.v130100:algo66/20/36/-1/0/0/3/0/2",
      "cublaslt.v130100:algo66/20/36/1/0/0/3/0/2+", "cublaslt.v130100:algo66/20/36/1/0/0/3/0/2+8=1",
      "cublaslt.v:algo66/20/36/1/0/0/3/0/2",        "cublaslt.v130100:66/20/36/1/0/0/3/0/2",
      "cublaslt.v130100:algo66/20/36/1/0/0/3/0/2 ", "cudnn.graph:eng1{}",
      "cublaslt.v1:algo6/2/3/1/0/0/3/0/2+3=1,3=2",  "cublaslt.v1:algo6/2/3/1/0/0/3/0/2+3=1F",
      "cublaslt.v1:algo6/4294967296/3/1/0/0/3/0/2",
  };
  cs_cublaslt_id id;
  for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
    char *text = NULL;
    assert_true(cs_cublaslt_id_parse(right[i], &id));
    ok(cs_cublaslt_id_format(&id, &text));
    assert_string_equal(text, right[i]);
    free(text);
  }
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    if (cs_cublaslt_id_parse(wrong[i], &id)) fail_msg("taken: %s", wrong[i]);
  }
}

/* What was recorded is there only with the version that is in its id. */
static void a_recorded_candidate_is_of_one_version(void **state) {
  (void)state;
  static const char id[] = "cublaslt.v130100:algo66/20/36/1/0/0/3/0/2";
  cs_cublaslt_api api = {.version = 130100};
  assert_int_equal(cs_cublaslt_presence(&api, id), CS_PRESENCE_THERE);
  api.version = 130101;
  assert_int_equal(cs_cublaslt_presence(&api, id), CS_PRESENCE_OTHER_VERSION);
  assert_int_equal(cs_cublaslt_presence(NULL, id), CS_PRESENCE_NO_LIBRARY);
  assert_int_equal(cs_cublaslt_presence(&api, "cuda.mma.v1"), CS_PRESENCE_UNTOLD);
  assert_int_equal(cs_cublaslt_presence(&api, "cublaslt.v130100:algo66"), CS_PRESENCE_UNTOLD);
}

/* The CUDA backend asks its own library: version 1 is no one's. */
static void the_installed_version_is_the_librarys(void **state) {
  (void)state;
  const cs_cublaslt_api *api = NULL;
  char id[80];
  cs_status missing = cs_cublaslt_get(&api);
  cs_status_free(missing);
  cs_presence other = api ? CS_PRESENCE_OTHER_VERSION : CS_PRESENCE_NO_LIBRARY;
  assert_int_equal(cs_cuda_presence(NULL, "cublaslt.v1:algo6/2/3/1/0/0/3/0/2"), other);
  assert_int_equal(cs_cuda_presence(NULL, "cudnn.graph:eng1{}"), CS_PRESENCE_UNTOLD);
  if (!api) return;
  snprintf(id, sizeof id, "cublaslt.v%lld:algo6/2/3/1/0/0/3/0/2", (long long)api->version);
  assert_int_equal(cs_cuda_presence(NULL, id), CS_PRESENCE_THERE);
}

static cs_op_desc gemm(int64_t n, int64_t in, int64_t out, cs_precision precision) {
  cs_dtype dtype = cs_precision_storage(precision);
  cs_shape x = {.rank = 2, .dims = {n, in}}, y = {.rank = 2, .dims = {n, out}};
  cs_op_desc d = {.op = CS_OP_GEMM, .precision = precision, .has_bias = true, .n_inputs = 1};
  d.attrs.gemm = (cs_gemm_attrs){.out_features = out, .bias = true};
  d.inputs[0] = cs_tensor_dense(&x, dtype, CS_LAYOUT_NCHW);
  d.output = cs_tensor_dense(&y, dtype, CS_LAYOUT_NCHW);
  return d;
}

static cs_op_desc conv(cs_layout layout, int64_t slice) {
  cs_shape x = {.rank = 4, .dims = {2, 24, 5, 7}}, y = {.rank = 4, .dims = {2, 40, 5, 7}}, wide = y;
  cs_op_desc d = {.op = CS_OP_CONV, .precision = CS_PRECISION_F16, .n_inputs = 2};
  d.attrs.conv = (cs_conv_attrs){
      .out_channels = 40, .group = 1, .kernel = {1, 1}, .strides = {1, 1}, .dilations = {1, 1}};
  d.activation.kind = CS_ACT_RELU;
  d.has_residual = true;
  d.inputs[0] = cs_tensor_dense(&x, CS_DTYPE_F16, layout);
  d.inputs[1] = d.output = cs_tensor_dense(&y, CS_DTYPE_F16, layout);
  wide.dims[1] += slice;
  cs_tensor_desc parent = cs_tensor_dense(&wide, CS_DTYPE_F16, layout);
  memcpy(d.output.strides, parent.strides, sizeof parent.strides);
  if (slice) d.output.alignment = 8;
  return d;
}

static void a_gemm_is_a_product_of_transposed_weights(void **state) {
  (void)state;
  cs_cublaslt_problem p;
  cs_op_desc d = gemm(3, 33, 17, CS_PRECISION_F16);
  assert_null(cs_cublaslt_problem_make(&d, &p));
  assert_true(p.m == 17 && p.n == 3 && p.k == 33 && !p.convolution);
  assert_true(p.a.rows == 33 && p.a.columns == 17 && p.a.pitch == 40);
  assert_true(p.b.rows == 33 && p.b.columns == 3 && p.b.pitch == 33 && p.b.alignment == 16);
  assert_true(p.d.rows == 17 && p.d.columns == 3 && p.d.pitch == 17);
  assert_int_equal(p.type, CUDA_R_16F);
  assert_int_equal(p.compute, CUBLAS_COMPUTE_32F);
  assert_int_equal(p.epilogue, CUBLASLT_EPILOGUE_BIAS);
  /* One row: its pitch says nothing, so an aligned one. */
  d = gemm(1, 33, 17, CS_PRECISION_TF32);
  assert_null(cs_cublaslt_problem_make(&d, &p));
  assert_true(p.b.pitch == 36 && p.d.pitch == 20);
  assert_int_equal(p.compute, CUBLAS_COMPUTE_32F_FAST_TF32);
  d = gemm(2, 32, 16, CS_PRECISION_F32);
  assert_null(cs_cublaslt_problem_make(&d, &p));
  assert_int_equal(p.compute, CUBLAS_COMPUTE_32F);
}

static void pixels_are_rows_also_of_a_slice(void **state) {
  (void)state;
  cs_cublaslt_problem p;
  cs_op_desc d = conv(CS_LAYOUT_NHWC, 12);
  assert_null(cs_cublaslt_problem_make(&d, &p));
  assert_true(p.convolution && p.m == 40 && p.n == 70 && p.k == 24);
  assert_true(p.d.pitch == 52 && p.d.alignment == 8);
  assert_true(p.residual && p.c.pitch == 40 && p.c.alignment == 16);
  assert_int_equal(p.epilogue, CUBLASLT_EPILOGUE_RELU);
  assert_int_equal(cs_cublaslt_bias_offset(&p), -1);
}

static cs_op_desc matmul(cs_shape a, cs_shape b, cs_shape y) {
  cs_op_desc d = {.op = CS_OP_MATMUL, .precision = CS_PRECISION_F16, .n_inputs = 2};
  d.inputs[0] = cs_tensor_dense(&a, CS_DTYPE_F16, CS_LAYOUT_NCHW);
  d.inputs[1] = cs_tensor_dense(&b, CS_DTYPE_F16, CS_LAYOUT_NCHW);
  d.output = cs_tensor_dense(&y, CS_DTYPE_F16, CS_LAYOUT_NCHW);
  return d;
}

/* y = a · b by rows is yᵀ = bᵀ · aᵀ by columns. */
static void a_matmul_is_a_product_of_each_image(void **state) {
  (void)state;
  cs_cublaslt_problem p;
  const cs_shape a = {4, {2, 3, 16, 24}}, b = {4, {2, 3, 24, 40}}, y = {4, {2, 3, 16, 40}};
  cs_op_desc d = matmul(a, b, y);
  assert_null(cs_cublaslt_problem_make(&d, &p));
  assert_true(p.matmul && !p.convolution && p.images == 6 && p.constant == 0);
  assert_true(p.m == 40 && p.n == 16 && p.k == 24);
  assert_true(p.a.rows == 40 && p.a.columns == 24 && p.a.pitch == 40 && p.a.image == 24 * 40);
  assert_true(p.b.rows == 24 && p.b.columns == 16 && p.b.pitch == 24 && p.b.image == 16 * 24);
  assert_true(p.d.rows == 40 && p.d.columns == 16 && p.d.pitch == 40 && p.d.image == 16 * 40);
  assert_int_equal(cs_cublaslt_weight_bytes(&p), 0);
  /* One matrix for all images; images at odd places. */
  d = matmul(a, (cs_shape){2, {24, 7}}, (cs_shape){4, {2, 3, 16, 7}});
  assert_null(cs_cublaslt_problem_make(&d, &p));
  assert_true(p.images == 6 && p.a.image == 0 && p.a.pitch == 7 && p.d.image == 16 * 7);
  d = matmul((cs_shape){3, {3, 5, 24}}, (cs_shape){3, {3, 24, 7}}, (cs_shape){3, {3, 5, 7}});
  assert_null(cs_cublaslt_problem_make(&d, &p));
  assert_true(p.images == 3 && p.b.alignment == 16 && p.d.image == 35 && p.d.alignment == 2);
  /* A constant in front is packed as it is. */
  d = matmul((cs_shape){3, {3, 24, 7}}, a, (cs_shape){3, {3, 5, 7}});
  d.n_inputs = 1, d.attrs.binary = (cs_binary_attrs){{2, {5, 24}}, true};
  assert_null(cs_cublaslt_problem_make(&d, &p));
  assert_true(p.constant == 120 && p.b.rows == 24 && p.b.columns == 5 && p.b.image == 0);
  assert_true(p.a.image == 24 * 7 && cs_cublaslt_weight_bytes(&p) == 240);
  assert_int_equal(cs_cublaslt_bias_offset(&p), -1);
}

/* A generator's first: 10 channels of one pixel, 6 filters of 2 × 3. */
static cs_op_desc of_one_pixel(cs_layout layout) {
  cs_shape x = {.rank = 4, .dims = {5, 10, 1, 1}}, y = {.rank = 4, .dims = {5, 6, 2, 3}};
  cs_op_desc d = {.op = CS_OP_CONV_TRANSPOSE, .precision = CS_PRECISION_F16, .has_bias = true};
  d.n_inputs = 1;
  d.activation.kind = CS_ACT_RELU;
  d.attrs.conv = (cs_conv_attrs){.out_channels = 6,
                                 .group = 1,
                                 .kernel = {2, 3},
                                 .strides = {1, 1},
                                 .dilations = {1, 1},
                                 .bias = true};
  d.inputs[0] = cs_tensor_dense(&x, CS_DTYPE_F16, layout);
  d.output = cs_tensor_dense(&y, CS_DTYPE_F16, layout);
  return d;
}

/* Every output is one of the product, in the order in which they lie in memory. */
static void a_transposed_convolution_of_a_pixel_is_a_product(void **state) {
  (void)state;
  float weight[10 * 6 * 6], bias[6]; /* [channel][filter][tap] */
  for (int i = 0; i < 10 * 6 * 6; i++) weight[i] = (float)i;
  for (int i = 0; i < 6; i++) bias[i] = -1.0f - (float)i;
  for (int layout = CS_LAYOUT_NCHW; layout <= CS_LAYOUT_NHWC; layout++) {
    cs_exec e = {.kind = CS_EXEC_CUBLASLT, .desc = of_one_pixel((cs_layout)layout)};
    assert_null(cs_cublaslt_problem_make(&e.desc, &e.product));
    assert_true(e.product.m == 36 && e.product.n == 5 && e.product.k == 10);
    assert_true(e.product.b.pitch == 10 && e.product.d.pitch == 36 && !e.product.convolution);
    assert_int_equal(e.product.epilogue, CUBLASLT_EPILOGUE_RELU_BIAS);
    cs_exec_plan_weights(&e);
    uint16_t *packed = malloc((size_t)e.weight_bytes);
    memset(packed, 0xFF, (size_t)e.weight_bytes);
    ok(cs_exec_pack_weights(&e, weight, bias, packed));
    for (int o = 0; o < 36; o++) {
      int filter = layout == CS_LAYOUT_NHWC ? o % 6 : o / 6;
      int tap = layout == CS_LAYOUT_NHWC ? o / 6 : o % 6;
      for (int c = 0; c < 16; c++) {
        float wanted = c < 10 ? weight[(c * 6 + filter) * 6 + tap] : 0;
        assert_int_equal(packed[o * 16 + c], cs_f32_to_f16(wanted));
      }
      assert_int_equal(packed[e.bias_offset / 2 + o], cs_f32_to_f16(bias[filter]));
    }
    free(packed);
  }
}

static void refused(cs_op_desc d, const char *why) {
  cs_cublaslt_problem p;
  const char *found = cs_cublaslt_problem_make(&d, &p);
  if (!found || !strstr(found, why)) fail_msg("%s, wanted %s", found ? found : "taken", why);
}

static void what_is_no_product_is_refused_with_a_reason(void **state) {
  (void)state;
  refused(conv(CS_LAYOUT_NCHW, 0), "input pixels");
  cs_op_desc d = conv(CS_LAYOUT_NHWC, 0);
  d.attrs.conv.group = 2;
  refused(d, "groups");
  d = conv(CS_LAYOUT_NHWC, 0);
  d.attrs.conv.kernel[1] = 3;
  refused(d, "kernel");
  d = conv(CS_LAYOUT_NHWC, 0);
  d.attrs.conv.strides[0] = 2;
  refused(d, "stride");
  d = conv(CS_LAYOUT_NHWC, 0);
  d.attrs.conv.pads[3] = 1;
  refused(d, "padding");
  d = conv(CS_LAYOUT_NHWC, 0);
  d.activation.kind = CS_ACT_TANH;
  refused(d, "activation");
  d = conv(CS_LAYOUT_NHWC, 0);
  d.output.strides[2] += 8; /* rows of the image further apart than their pixels */
  refused(d, "output pixels");
  d = of_one_pixel(CS_LAYOUT_NHWC);
  d.output.strides[3] += 2; /* outputs of a pixel that are a slice */
  refused(d, "neither");
  d = of_one_pixel(CS_LAYOUT_NHWC);
  d.inputs[0].shape.dims[3] = 2;
  refused(d, "neither");
  const cs_shape a = {4, {2, 3, 16, 24}}, y = {4, {2, 3, 16, 40}};
  refused(matmul(a, (cs_shape){4, {2, 1, 24, 40}}, y), "second factor");
  refused(matmul((cs_shape){3, {3, 16, 24}}, (cs_shape){4, {2, 3, 24, 40}}, y), "first factor");
  d = matmul(a, (cs_shape){2, {24, 40}}, y);
  d.output.strides[0] += 8; /* a slice */
  refused(d, "output images");
  d = conv(CS_LAYOUT_NHWC, 0);
  d.op = CS_OP_RELU;
  refused(d, "neither");
}

static void weights_are_padded_rows_and_the_bias(void **state) {
  (void)state;
  float weight[17 * 33], bias[17];
  for (int i = 0; i < 17 * 33; i++) weight[i] = (float)i;
  for (int i = 0; i < 17; i++) bias[i] = -1.0f - (float)i;
  cs_exec e = {.kind = CS_EXEC_CUBLASLT, .desc = gemm(3, 33, 17, CS_PRECISION_F16)};
  assert_null(cs_cublaslt_problem_make(&e.desc, &e.product));
  cs_exec_plan_weights(&e);
  assert_int_equal(e.bias_offset, 1536); /* 17 rows of 40 halves, to the next 256 */
  assert_int_equal(e.weight_bytes, 1536 + 17 * 2);
  uint16_t *packed = malloc((size_t)e.weight_bytes);
  memset(packed, 0xFF, (size_t)e.weight_bytes);
  ok(cs_exec_pack_weights(&e, weight, bias, packed));
  for (int row = 0; row < 17; row++) {
    for (int i = 0; i < 40; i++) {
      float wanted = i < 33 ? weight[row * 33 + i] : 0;
      assert_int_equal(packed[row * 40 + i], cs_f32_to_f16(wanted));
    }
    assert_int_equal(packed[768 + row], cs_f32_to_f16(bias[row]));
  }
  free(packed);
}

static void a_constant_factor_is_packed_as_it_is(void **state) {
  (void)state;
  float weight[3 * 24 * 7];
  for (int i = 0; i < 3 * 24 * 7; i++) weight[i] = (float)i;
  cs_exec e = {.kind = CS_EXEC_CUBLASLT};
  e.desc = matmul((cs_shape){3, {3, 5, 24}}, (cs_shape){3, {3, 24, 7}}, (cs_shape){3, {3, 5, 7}});
  e.desc.n_inputs = 1, e.desc.attrs.binary.operand = (cs_shape){3, {3, 24, 7}};
  assert_null(cs_cublaslt_problem_make(&e.desc, &e.product));
  cs_exec_plan_weights(&e);
  assert_int_equal(e.weight_bytes, sizeof weight / 2);
  uint16_t packed[3 * 24 * 7];
  ok(cs_exec_pack_weights(&e, weight, NULL, packed));
  for (int i = 0; i < 3 * 24 * 7; i++) assert_int_equal(packed[i], cs_f32_to_f16(weight[i]));
}

static void narrower_arithmetic_is_not_offered(void **state) {
  (void)state;
  const uint64_t fma = CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA, hmma = CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA,
                 tf32 = CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32,
                 half = CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF,
                 narrow = CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F;
  assert_true(cs_cublaslt_precise(CS_PRECISION_F32, fma));
  assert_false(cs_cublaslt_precise(CS_PRECISION_F32, hmma | tf32));
  assert_true(cs_cublaslt_precise(CS_PRECISION_TF32, hmma | tf32));
  assert_false(cs_cublaslt_precise(CS_PRECISION_TF32, hmma | half));
  assert_true(cs_cublaslt_precise(CS_PRECISION_BF16, hmma | half));
  assert_false(cs_cublaslt_precise(CS_PRECISION_F16, hmma | narrow));
  cs_cublaslt_problem p = {.storage = CS_DTYPE_F32};
  assert_int_equal(cs_cublaslt_reductions(&p, false),
                   CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_INPLACE);
  assert_int_equal(cs_cublaslt_reductions(&p, true), CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  p.storage = CS_DTYPE_F16;
  assert_int_equal(cs_cublaslt_reductions(&p, false), CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_missing_library_is_said_with_what_to_do),
      cmocka_unit_test(identities_are_read_as_they_are_written),
      cmocka_unit_test(a_recorded_candidate_is_of_one_version),
      cmocka_unit_test(the_installed_version_is_the_librarys),
      cmocka_unit_test(a_gemm_is_a_product_of_transposed_weights),
      cmocka_unit_test(pixels_are_rows_also_of_a_slice),
      cmocka_unit_test(a_matmul_is_a_product_of_each_image),
      cmocka_unit_test(a_transposed_convolution_of_a_pixel_is_a_product),
      cmocka_unit_test(a_constant_factor_is_packed_as_it_is),
      cmocka_unit_test(what_is_no_product_is_refused_with_a_reason),
      cmocka_unit_test(weights_are_padded_rows_and_the_bias),
      cmocka_unit_test(narrower_arithmetic_is_not_offered),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
