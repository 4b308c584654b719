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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensor_cores_take_no_padding_past_32_bits),
      cmocka_unit_test(few_channels_have_a_kernel_of_their_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
