/* Which own kernels an operation has, where offsets would not hold in 32 bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>

#include "backend/cuda/kernels.h"

/* A convolution, 1 × 64 × 8 × 8 in NHWC, with padding above and below, and one step and one
 * dilation as far as the padding reaches. */
static cs_op_desc padded_by(int64_t pad) {
  cs_op_desc d = {.op = CS_OP_CONV, .precision = CS_PRECISION_F16, .n_inputs = 1};
  int64_t far = pad > 1 ? pad : 1;
  int64_t height = (8 + 2 * pad - (far + 1)) / far + 1;
  cs_shape in = {.rank = 4, .dims = {1, 64, 8, 8}}, out = {.rank = 4, .dims = {1, 64, height, 8}};
  d.attrs.conv = (cs_conv_attrs){.out_channels = 64,
                                 .group = 1,
                                 .kernel = {2, 1},
                                 .strides = {far, 1},
                                 .pads = {pad, 0, pad, 0},
                                 .dilations = {far, 1}};
  d.inputs[0] = cs_tensor_dense(&in, CS_DTYPE_F16, CS_LAYOUT_NHWC);
  d.output = cs_tensor_dense(&out, CS_DTYPE_F16, CS_LAYOUT_NHWC);
  return d;
}

static int count(const cs_op_desc *desc, const char *family) {
  const char *ids[CS_CUDA_VARIANTS_MOST];
  int n = cs_cuda_kernel_variants(desc, ids, CS_CUDA_VARIANTS_MOST), found = 0;
  for (int i = 0; i < n; i++) found += strncmp(ids[i], family, strlen(family)) == 0;
  return found;
}

/* A row is 512 elements: above 2^31 / 512 rows of padding offsets of taps outside wrap around. */
static void tensor_cores_take_no_padding_past_32_bits(void **state) {
  (void)state;
  const int64_t near[] = {0, 1, 1000000}, far[] = {2200000, 10000000, INT32_MAX};
  for (int i = 0; i < 3; i++) {
    cs_op_desc taken = padded_by(near[i]), left = padded_by(far[i]);
    assert_true(count(&taken, "cuda.mma.") > 0);
    assert_int_equal(count(&left, "cuda.mma."), 0);
    assert_true(count(&left, "cuda.conv.") > 0);
  }
}

/* A first convolution over `channels`, 7 × 7 by steps of 2. */
static cs_op_desc first_over(int64_t channels, cs_precision precision) {
  cs_op_desc d = {.op = CS_OP_CONV, .precision = precision, .n_inputs = 1};
  cs_shape in = {.rank = 4, .dims = {2, channels, 224, 224}},
           out = {.rank = 4, .dims = {2, 64, 112, 112}};
  d.attrs.conv = (cs_conv_attrs){.out_channels = 64,
                                 .group = 1,
                                 .kernel = {7, 7},
                                 .strides = {2, 2},
                                 .pads = {3, 3, 3, 3},
                                 .dilations = {1, 1}};
  cs_dtype dtype = cs_precision_storage(precision);
  d.inputs[0] = cs_tensor_dense(&in, dtype, CS_LAYOUT_NHWC);
  d.output = cs_tensor_dense(&out, dtype, CS_LAYOUT_NHWC);
  return d;
}

static void few_channels_have_a_kernel_of_their_own(void **state) {
  (void)state;
  const cs_precision precisions[] = {CS_PRECISION_TF32, CS_PRECISION_F16, CS_PRECISION_BF16};
  for (int i = 0; i < 3; i++) {
    cs_op_desc three = first_over(3, precisions[i]), many = first_over(64, precisions[i]);
    assert_int_equal(count(&three, "cuda.mma_few."), 3);
    assert_int_equal(count(&many, "cuda.mma_few."), 0);
    assert_int_equal(count(&three, "cuda.mma."), 0);
    assert_true(count(&many, "cuda.mma.") > 0);
    three.inputs[0].shape.dims[1] = 0;
    assert_int_equal(count(&three, "cuda.mma_few."), 0);
  }
  cs_op_desc plain = first_over(3, CS_PRECISION_F32); /* tf32 would be less than was asked for */
  assert_int_equal(count(&plain, "cuda.mma_few."), 0);
}

/* DenseNet's: 256 channels behind a BatchNormalization, 1 × 1. */
static cs_op_desc behind_a_prologue(cs_precision precision, cs_layout layout, cs_act_kind kind) {
  cs_op_desc d = {.op = CS_OP_CONV,
                  .precision = precision,
                  .n_inputs = 1,
                  .has_bias = true,
                  .has_prologue = true,
                  .prologue = {.kind = kind}};
  cs_shape in = {.rank = 4, .dims = {8, 256, 28, 28}}, out = {.rank = 4, .dims = {8, 128, 28, 28}};
  d.attrs.conv = (cs_conv_attrs){.out_channels = 128,
                                 .group = 1,
                                 .kernel = {1, 1},
                                 .strides = {1, 1},
                                 .dilations = {1, 1},
                                 .bias = true};
  cs_dtype dtype = cs_precision_storage(precision);
  d.inputs[0] = cs_tensor_dense(&in, dtype, layout);
  d.output = cs_tensor_dense(&out, dtype, layout);
  return d;
}

/* Of the kernels for convolutions, only those that apply it are offered. */
static void prologues_have_kernels_that_apply_them(void **state) {
  (void)state;
  const cs_precision precisions[] = {CS_PRECISION_TF32, CS_PRECISION_F16, CS_PRECISION_BF16};
  for (int i = 0; i < 3; i++) {
    for (int kind = CS_ACT_NONE; kind <= CS_ACT_RELU; kind++) {
      cs_op_desc d = behind_a_prologue(precisions[i], CS_LAYOUT_NHWC, (cs_act_kind)kind);
      assert_true(cs_cuda_kernel_takes_prologue(&d));
      assert_int_equal(count(&d, "cuda.mma_pre.v1-128x128"), 1); /* copy engine or not */
      assert_int_equal(count(&d, "cuda.mma_pre."), 8);
      assert_int_equal(count(&d, "cuda.conv.v1"), 1);
      assert_int_equal(cs_cuda_kernel_variants(&d, NULL, 0), 9);
    }
  }
  assert_true(cs_cuda_kernel_merges("cuda.mma_pre.v1-64x64"));
  cs_op_desc without = behind_a_prologue(CS_PRECISION_F16, CS_LAYOUT_NHWC, CS_ACT_NONE);
  without.has_prologue = false;
  assert_int_equal(count(&without, "cuda.mma_pre."), 0);
  assert_false(cs_cuda_kernel_takes_prologue(&without));
}

static void prologues_are_taken_by_tensor_cores_alone(void **state) {
  (void)state;
  cs_op_desc left[] = {
      behind_a_prologue(CS_PRECISION_F32, CS_LAYOUT_NHWC, CS_ACT_RELU),
      behind_a_prologue(CS_PRECISION_F16, CS_LAYOUT_NCHW, CS_ACT_RELU),
      behind_a_prologue(CS_PRECISION_F16, CS_LAYOUT_NHWC, CS_ACT_SIGMOID),
      behind_a_prologue(CS_PRECISION_F16, CS_LAYOUT_NHWC, CS_ACT_RELU),
      behind_a_prologue(CS_PRECISION_F16, CS_LAYOUT_NHWC, CS_ACT_RELU),
  };
  left[3].attrs.conv.kernel[1] = 3; /* a tap whose zeros lie behind the prologue */
  left[3].attrs.conv.pads[1] = left[3].attrs.conv.pads[3] = 1;
  cs_shape many = {.rank = 4, .dims = {1, 8192, 2, 2}}; /* scales that fill no shared memory */
  left[4].inputs[0] = cs_tensor_dense(&many, CS_DTYPE_F16, CS_LAYOUT_NHWC);
  for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
    assert_false(cs_cuda_kernel_takes_prologue(&left[i]));
    assert_int_equal(count(&left[i], "cuda.conv.v1"), 1); /* so every layout has a candidate */
    assert_int_equal(cs_cuda_kernel_variants(&left[i], NULL, 0), 1);
  }
}

/* Behind filters and bias, pairs of scale and shift; zeros where the last stage has no channel. */
static void packed_scales_and_shifts_end_in_zeros(void **state) {
  (void)state;
  enum { IN = 40, OUT = 16, STAGES = 128 };
  cs_op_desc d = behind_a_prologue(CS_PRECISION_F16, CS_LAYOUT_NHWC, CS_ACT_RELU);
  cs_shape in = {.rank = 4, .dims = {1, IN, 4, 4}}, out = {.rank = 4, .dims = {1, OUT, 4, 4}};
  d.inputs[0] = cs_tensor_dense(&in, CS_DTYPE_F16, CS_LAYOUT_NHWC);
  d.output = cs_tensor_dense(&out, CS_DTYPE_F16, CS_LAYOUT_NHWC);
  d.attrs.conv.out_channels = OUT;
  static float weight[IN * OUT], bias[OUT + 2 * IN];
  for (int i = 0; i < OUT + 2 * IN; i++) bias[i] = (float)(1 + i);
  static float packed[8192];
  cs_cuda_kernel kernel;
  cs_status st = cs_cuda_kernel_find(&d, "cuda.mma_pre.v1-16x32", &kernel);
  assert_true(st == CS_OK);
  int64_t bytes = cs_cuda_kernel_weight_bytes(&kernel, &d);
  assert_true(bytes > 0 && bytes <= (int64_t)sizeof packed);
  st = cs_cuda_kernel_pack_weights(&kernel, &d, weight, bias, packed);
  assert_true(st == CS_OK);
  const float *affine = packed + bytes / 4 - 2 * STAGES;
  for (int c = 0; c < STAGES; c++) {
    assert_true(affine[2 * c] == (c < IN ? bias[OUT + c] : 0));
    assert_true(affine[2 * c + 1] == (c < IN ? bias[OUT + IN + c] : 0));
  }
}

/* A variant is found once, by its own text; of another operation it is none. */
static void variants_are_found_by_id(void **state) {
  (void)state;
  cs_shape shape = {.rank = 4, .dims = {1, 16, 2, 2}};
  cs_op_desc d = {.op = CS_OP_RELU, .n_inputs = 1};
  d.inputs[0] = d.output = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  cs_cuda_kernel kernel;
  char id[] = "cuda.relu.v1";
  cs_status st = cs_cuda_kernel_find(&d, id, &kernel);
  assert_true(st == CS_OK && kernel.family);
  assert_string_equal(kernel.id, id);
  assert_ptr_not_equal(kernel.id, id);
  assert_int_equal(cs_cuda_kernel_weight_bytes(&kernel, &d), 0);
  static const char *const wrong[] = {"cuda.tanh.v1", "cuda.relu", "", "cuda.mma.v1-16x32"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    st = cs_cuda_kernel_find(&d, wrong[i], &kernel);
    assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
    assert_non_null(strstr(cs_status_message(st), wrong[i]));
    assert_null(kernel.id);
    cs_status_free(st);
  }
  /* A blocked layout has no kernels. */
  d.inputs[0] = d.output = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW16C);
  st = cs_cuda_kernel_find(&d, id, &kernel);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  cs_status_free(st);
}

/* Transposed, kernel × kernel, padded by `pad`. */
static cs_op_desc transposed(cs_shape in, int64_t filters, int64_t kernel, int64_t stride,
                             int64_t pad, cs_precision precision) {
  cs_op_desc d = {.op = CS_OP_CONV_TRANSPOSE, .precision = precision, .n_inputs = 1};
  cs_shape out = {.rank = 4, .dims = {in.dims[0], filters}};
  d.attrs.conv = (cs_conv_attrs){.out_channels = filters,
                                 .group = 1,
                                 .kernel = {kernel, kernel},
                                 .strides = {stride, stride},
                                 .pads = {pad, pad, pad, pad},
                                 .dilations = {1, 1}};
  for (int axis = 2; axis < 4; axis++)
    out.dims[axis] = (in.dims[axis] - 1) * stride - 2 * pad + kernel;
  cs_dtype dtype = cs_precision_storage(precision);
  d.inputs[0] = cs_tensor_dense(&in, dtype, CS_LAYOUT_NHWC);
  d.output = cs_tensor_dense(&out, dtype, CS_LAYOUT_NHWC);
  return d;
}

static void generators_last_layers_have_a_kernel_of_their_own(void **state) {
  (void)state;
  static const char family[] = "cuda.mma_few_t.";
  const cs_precision precisions[] = {CS_PRECISION_TF32, CS_PRECISION_F16, CS_PRECISION_BF16};
  const cs_shape in = {4, {7, 64, 32, 32}}, odd = {4, {7, 63, 32, 32}}, deep = {4, {1, 2048, 4, 4}};
  for (int i = 0; i < 3; i++) {
    cs_precision precision = precisions[i];
    cs_op_desc d = transposed(in, 3, 4, 2, 1, precision);
    assert_int_equal(count(&d, family), 3);
    d.output.strides[0] += 5, d.output.strides[2] += 5; /* any view */
    assert_int_equal(count(&d, family), 3);
    d = transposed(in, 8, 4, 2, 1, precision);
    assert_int_equal(count(&d, family), 1);
    d = transposed(in, 1, 5, 2, 2, precision);
    assert_int_equal(count(&d, family), 1);
    cs_op_desc left[] = {
        transposed(in, 9, 4, 2, 1, precision),  transposed(in, 3, 4, 1, 1, precision),
        transposed(in, 3, 2, 2, 0, precision),  transposed(in, 3, 6, 2, 2, precision),
        transposed(odd, 3, 4, 2, 1, precision), transposed(deep, 3, 4, 2, 1, precision),
        transposed(in, 3, 4, 2, 1, precision),
    };
    left[6].inputs[0].alignment = 8;
    for (size_t l = 0; l < sizeof left / sizeof *left; l++)
      assert_int_equal(count(&left[l], family), 0);
  }
  cs_op_desc plain = transposed(in, 3, 4, 2, 1, CS_PRECISION_F32);
  assert_int_equal(count(&plain, family), 0);
}

/* A generator's first: as a convolution nearly all products would be with padding. */
static void a_pixel_is_taken_as_a_dense_layer(void **state) {
  (void)state;
  const cs_shape in = {4, {250, 100, 1, 1}}, vectors = {4, {250, 128, 1, 1}};
  cs_op_desc tf32 = transposed(in, 512, 4, 1, 0, CS_PRECISION_TF32);
  cs_op_desc f16 = transposed(vectors, 512, 4, 1, 0, CS_PRECISION_F16);
  cs_op_desc halves = transposed(in, 512, 4, 1, 0, CS_PRECISION_F16); /* no 16-byte vectors */
  assert_true(count(&tf32, "cuda.mma_pixel_t.v1-") > 0);
  assert_true(count(&f16, "cuda.mma_pixel_t.v1-") > 0);
  assert_int_equal(count(&halves, "cuda.mma_pixel_t."), 0);
  cs_op_desc *all[] = {&tf32, &f16, &halves};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(count(all[i], "cuda.mma_t."), 0);
    assert_true(count(all[i], "cuda.gemm_t.") > 0);
  }
  cs_op_desc two = transposed((cs_shape){4, {250, 128, 1, 2}}, 64, 4, 2, 1, CS_PRECISION_F16);
  assert_int_equal(count(&two, "cuda.mma_pixel_t."), 0);
  assert_true(count(&two, "cuda.mma_t.") > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensor_cores_take_no_padding_past_32_bits),
      cmocka_unit_test(few_channels_have_a_kernel_of_their_own),
      cmocka_unit_test(prologues_have_kernels_that_apply_them),
      cmocka_unit_test(prologues_are_taken_by_tensor_cores_alone),
      cmocka_unit_test(variants_are_found_by_id),
      cmocka_unit_test(packed_scales_and_shifts_end_in_zeros),
      cmocka_unit_test(generators_last_layers_have_a_kernel_of_their_own),
      cmocka_unit_test(a_pixel_is_taken_as_a_dense_layer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
