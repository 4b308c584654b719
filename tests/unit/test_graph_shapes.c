/* Shape inference, work and tensors against numbers worked out by hand or published with ONNX and
 * PyTorch. */
#include "graph_fixture.h"

/* in, kernel, stride, dilation, pad begin, pad end, ceil, out */
static const int64_t windows[][8] = {
    {224, 7, 2, 1, 3, 3, 0, 112}, /* ResNet's first convolution */
    {112, 3, 2, 1, 1, 1, 0, 56},
    {112, 3, 2, 1, 0, 0, 1, 56}, /* GoogLeNet in Caffe: rounded up */
    {112, 3, 2, 1, 0, 0, 0, 55},
    {4, 3, 2, 1, 0, 0, 1, 2}, /* ONNX test_maxpool_2d_ceil */
    {4, 3, 2, 1, 0, 0, 0, 1},
    {4, 2, 2, 2, 0, 0, 0, 1},
    {4, 2, 1, 2, 0, 0, 0, 2}, /* ONNX test_maxpool_2d_dilations */
    {2, 1, 2, 1, 0, 0, 1, 1}, /* ONNX: a last window that starts in the end padding is dropped */
    {3, 2, 2, 1, 0, 1, 1, 2},
    {1, 2, 2, 1, 1, 1, 1, 1}, /* begins: -1, 1; 1 lies in the end padding */
    {6, 3, 2, 1, 1, 1, 1, 4}, /* begins: -1, 1, 3, 5; 5 is still inside */
    {5, 3, 3, 1, 1, 1, 1, 2}, /* begins: -1, 2, 5; 5 lies in the end padding */
    {2, 3, 2, 1, 0, 0, 1, 1},
    {2, 3, 1, 1, 0, 0, 0, 0},  /* does not fit */
    {1, 5, 1, 1, 0, 0, 0, -3}, /* nor does this */
    {32, 3, 1, 4, 4, 4, 0, 32},
};

static void test_window_extents(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
    const int64_t *w = windows[i];
    int64_t out = cs_window_extent(w[0], w[1], w[2], w[3], w[4], w[5], w[6] != 0);
    if (out != w[7]) print_error("window %zu: %lld\n", i, (long long)out);
    assert_int_equal(out, w[7]);
  }
}

typedef struct shape_case {
  const char *input, *node;
  int rank;
  int64_t dims[8];
} shape_case;

#define AS(op, attrs) "{'name':'a','op':'" op "','inputs':['x'],'attrs':{" attrs "}}"

static const shape_case shapes[] = {
    {"'N',3,224,224",
     AS("Conv",
        "'out_channels':64,'kernel_shape':[7,7],'strides':[2,2],"
        "'pads':[3,3,3,3]"),
     4,
     {-1, 64, 112, 112}},
    {"2,4,9,7",
     AS("Conv",
        "'out_channels':6,'kernel_shape':[3,2],'pads':[1,0,2,1],"
        "'dilations':[2,1],'strides':[1,3],'group':2"),
     4,
     {2, 6, 8, 3}},
    {"1,2,1,1",
     AS("Conv", "'out_channels':1,'kernel_shape':[1,1],'strides':[5,5]"),
     4,
     {1, 1, 1, 1}},
    /* DCGAN's first and second layer. */
    {"'N',100,1,1",
     AS("ConvTranspose", "'out_channels':512,'kernel_shape':[4,4]"),
     4,
     {-1, 512, 4, 4}},
    {"'N',512,4,4",
     AS("ConvTranspose",
        "'out_channels':256,'kernel_shape':[4,4],'strides':[2,2],"
        "'pads':[1,1,1,1]"),
     4,
     {-1, 256, 8, 8}},
    /* ONNX test_convtranspose_output_shape family: stride 3, 2 and output padding 1. */
    {"1,1,3,3",
     AS("ConvTranspose",
        "'out_channels':2,'kernel_shape':[3,3],'strides':[3,2],"
        "'output_padding':[1,1]"),
     4,
     {1, 2, 10, 8}},
    /* ONNX test_convtranspose_pads and test_convtranspose_dilations. */
    {"1,1,3,3",
     AS("ConvTranspose",
        "'out_channels':2,'kernel_shape':[3,3],'strides':[3,2],"
        "'pads':[1,2,1,2]"),
     4,
     {1, 2, 7, 3}},
    {"1,1,3,3",
     AS("ConvTranspose", "'out_channels':1,'kernel_shape':[2,2],'dilations':[2,2]"),
     4,
     {1, 1, 5, 5}},
    {"1,3,32,32", AS("AveragePool", "'kernel_shape':[3,3],'pads':[2,2,2,2]"), 4, {1, 3, 34, 34}},
    {"1,3,28,28",
     AS("MaxPool", "'kernel_shape':[3,3],'strides':[2,2],'ceil_mode':true"),
     4,
     {1, 3, 14, 14}},
    {"1,3,28,30", "{'name':'a','op':'GlobalAveragePool','inputs':['x']}", 4, {1, 3, 1, 1}},
    {"'N',3,2,5", "{'name':'a','op':'Flatten','inputs':['x']}", 2, {-1, 30}},
    {"2,3,4,5", AS("Flatten", "'axis':0"), 2, {1, 120}},
    {"2,3,4,5", AS("Flatten", "'axis':4"), 2, {120, 1}},
    {"2,3,4,5", AS("Flatten", "'axis':-1"), 2, {24, 5}},
    {"2,3,4,5", AS("Pad", "'pads':[0,1,0,2,1,0,3,4]"), 4, {3, 4, 7, 11}},
    {"'N',7", AS("Gemm", "'out_features':5"), 2, {-1, 5}},
    {"2,3", "{'name':'a','op':'BatchNormalization','inputs':['x']}", 2, {2, 3}},
    {"2,3,4,5",
     "{'name':'a','op':'Concat','inputs':['x','x','x'],'attrs':{'axis':-2}}",
     4,
     {2, 3, 12, 5}},
    {"'N',3,4,5", "{'name':'a','op':'Mul','inputs':['x','x']}", 4, {-1, 3, 4, 5}},
    {"'N',3,4,5",
     "{'name':'p','op':'GlobalAveragePool','inputs':['x']},"
     "{'name':'a','op':'Mul','inputs':['p','x']}",
     4,
     {-1, 3, 4, 5}},
    {"'N',3,4,5", AS("ReduceMean", "'axes':[-1,1]"), 4, {-1, 1, 4, 1}},
    {"'N',3,4,5", AS("ReduceSum", "'axes':[1,3],'keepdims':false"), 2, {-1, 4}},
    {"2,3,4", "{'name':'a','op':'ReduceMin','inputs':['x']}", 3, {1, 1, 1}},
    {"1,3,28,30", "{'name':'a','op':'GlobalMaxPool','inputs':['x']}", 4, {1, 3, 1, 1}},
    {"'N',3,1,5", AS("Sub", "'operand':[1,4,1]"), 4, {-1, 3, 4, 5}},
    {"1,3", AS("Div", "'operand':[2,1,1,1,1,4,3]"), 7, {2, 1, 1, 1, 1, 4, 3}},
    {"5", AS("Max", "'operand':[2,3,1]"), 3, {2, 3, 5}},
    {"'N',3", AS("Pow", "'operand':[1,1]"), 2, {-1, 3}},
    {"'N',3", AS("MatMul", "'operand':[3,5]"), 2, {-1, 5}},
    {"'N',3,4,5", AS("MatMul", "'operand':[5,2]"), 4, {-1, 3, 4, 2}},
    {"'N',1,4,5", AS("MatMul", "'operand':[1,3,5,2]"), 4, {-1, 3, 4, 2}},
    {"'N',4,5", AS("MatMul", "'operand':[6,4],'operand_first':true"), 3, {-1, 6, 5}},
    {"4,5", AS("MatMul", "'operand':[3,1,6,4],'operand_first':true"), 4, {3, 1, 6, 5}},
    {"'N',3,5,5", "{'name':'a','op':'MatMul','inputs':['x','x']}", 4, {-1, 3, 5, 5}},
};

static void test_shapes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    cs_graph *graph = graph_of(shapes[i].input, shapes[i].node, "'a'");
    assert_shape(graph, "a", shapes[i].rank, shapes[i].dims);
    cs_graph_destroy(graph);
  }
}

static void test_defaults(void **state) {
  (void)state;
  cs_graph *graph = graph_of("1,4,8,8",
                             "{'name':'l','op':'LeakyRelu','inputs':['x']},"
                             "{'name':'n','op':'LRN','inputs':['l'],'attrs':{'size':3}},"
                             "{'name':'b','op':'BatchNormalization','inputs':['n']},"
                             "{'name':'s','op':'Softmax','inputs':['b']}",
                             "'s'");
  assert_true(graph->nodes[0].attrs.leaky_relu.alpha == 0.01);
  assert_true(graph->nodes[1].attrs.lrn.alpha == 1e-4);
  assert_true(graph->nodes[1].attrs.lrn.beta == 0.75);
  assert_true(graph->nodes[1].attrs.lrn.bias == 1.0);
  assert_true(graph->nodes[2].attrs.batch_norm.epsilon == 1e-5);
  assert_int_equal(graph->nodes[3].attrs.axis.axis, 3);
  cs_graph_destroy(graph);
}

static cs_op_desc desc_of(const char *input, const char *node, cs_precision precision) {
  cs_graph *graph = graph_of(input, node, "'a'");
  cs_op_desc desc;
  assert_ok(cs_graph_node_desc(graph, 0, precision, CS_LAYOUT_NHWC, &desc));
  cs_graph_destroy(graph);
  return desc;
}

static void test_work(void **state) {
  (void)state;
  cs_op_desc conv = desc_of(
      "2,4,9,7", AS("Conv", "'out_channels':6,'kernel_shape':[3,2],'group':2"), CS_PRECISION_F16);
  /* Output 2×6×7×6; each element sums 2·3·2 products. */
  assert_true(cs_op_flops(&conv) == 2.0 * (2 * 6 * 7 * 6) * (2 * 3 * 2));
  assert_int_equal(cs_op_reduction(&conv), 12);
  assert_int_equal(cs_op_weight_elements(&conv), 72);
  assert_int_equal(cs_op_bias_elements(&conv), 6);
  assert_true(cs_op_bytes(&conv) == 2.0 * (2 * 4 * 9 * 7 + 72 + 6 + 2 * 6 * 7 * 6));
  cs_op_desc deconv = desc_of("1,8,4,4",
                              AS("ConvTranspose",
                                 "'out_channels':6,'kernel_shape':[4,4],"
                                 "'strides':[2,2],'pads':[1,1,1,1],'group':2"),
                              CS_PRECISION_F32);
  /* Each of the 16 input pixels meets 8 channels × 3 outputs × 16 taps. */
  assert_true(cs_op_flops(&deconv) == 2.0 * 16 * 8 * 3 * 16);
  assert_int_equal(cs_op_reduction(&deconv), 4 * 2 * 2);
  cs_op_desc product = desc_of("2,3,9,7", AS("MatMul", "'operand':[3,7,4]"), CS_PRECISION_F16);
  assert_true(cs_op_flops(&product) == 2.0 * (2 * 3 * 9 * 4) * 7);
  assert_int_equal(cs_op_reduction(&product), 7);
  assert_true(cs_op_bytes(&product) == 2.0 * (2 * 3 * 9 * 7 + 3 * 7 * 4 + 2 * 3 * 9 * 4));
  assert_int_equal(product.output.layout, CS_LAYOUT_NCHW); /* whatever is asked for */
  cs_op_desc first =
      desc_of("2,3,9,7", AS("MatMul", "'operand':[4,9],'operand_first':true"), CS_PRECISION_F32);
  assert_true(cs_op_flops(&first) == 2.0 * (2 * 3 * 4 * 7) * 9);
  assert_int_equal(cs_op_reduction(&first), 9);
  cs_op_desc dilated = desc_of("1,1,4,4",
                               AS("ConvTranspose",
                                  "'out_channels':1,'kernel_shape':[3,3],"
                                  "'strides':[2,3],'dilations':[2,2]"),
                               CS_PRECISION_F32);
  assert_int_equal(cs_op_reduction(&dilated), 3 * 1);
  cs_op_desc gemm = desc_of("5,7", AS("Gemm", "'out_features':3"), CS_PRECISION_TF32);
  assert_true(cs_op_flops(&gemm) == 2.0 * 5 * 7 * 3);
  assert_int_equal(cs_op_reduction(&gemm), 7);
  cs_op_desc pool = desc_of("1,2,8,8", AS("AveragePool", "'kernel_shape':[2,3]"), CS_PRECISION_F32);
  assert_int_equal(cs_op_reduction(&pool), 6);
  cs_op_desc norm = desc_of("1,2,8,8", NODE("a", "BatchNormalization", "x"), CS_PRECISION_F32);
  assert_int_equal(cs_op_weight_elements(&norm), 2);
  assert_int_equal(cs_op_bias_elements(&norm), 2);
}

static void test_dense_tensors(void **state) {
  (void)state;
  cs_shape shape = {4, {2, 20, 3, 5}};
  cs_tensor_desc nchw = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  cs_tensor_desc nhwc = cs_tensor_dense(&shape, CS_DTYPE_F16, CS_LAYOUT_NHWC);
  cs_tensor_desc blocked = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW16C);
  assert_memory_equal(nchw.strides, ((int64_t[]){300, 15, 5, 1}), 32);
  assert_memory_equal(nhwc.strides, ((int64_t[]){300, 1, 100, 20}), 32);
  assert_memory_equal(blocked.strides, ((int64_t[]){480, 240, 80, 16}), 32);
  assert_int_equal(cs_tensor_span_bytes(&nchw), 600 * 4);
  assert_int_equal(cs_tensor_span_bytes(&nhwc), 600 * 2);
  assert_int_equal(cs_tensor_span_bytes(&blocked), 2 * 2 * 240 * 4);
  assert_int_equal(cs_tensor_offset4(&nchw, 1, 2, 1, 3), 300 + 30 + 5 + 3);
  assert_int_equal(cs_tensor_offset4(&nhwc, 1, 2, 1, 3), 300 + 2 + 100 + 60);
  assert_int_equal(cs_tensor_offset4(&blocked, 1, 18, 1, 3), 480 + 240 + 2 + 80 + 48);
  assert_true(cs_tensor_is_dense(&nhwc));
  nhwc.strides[3] = 32;
  assert_false(cs_tensor_is_dense(&nhwc));
  cs_shape matrix = {2, {4, 6}};
  cs_tensor_desc row = cs_tensor_dense(&matrix, CS_DTYPE_BF16, CS_LAYOUT_NHWC);
  assert_int_equal(row.layout, CS_LAYOUT_NCHW);
  assert_memory_equal(row.strides, ((int64_t[]){6, 1}), 16);
}

static void test_overflow(void **state) {
  (void)state;
  cs_shape shape = {3, {INT64_C(1) << 31, INT64_C(1) << 31, 4}};
  int64_t elements;
  assert_fails(cs_shape_elements(&shape, &elements), CS_CODE_BAD_INPUT, "2^63");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_window_extents), cmocka_unit_test(test_shapes),
      cmocka_unit_test(test_defaults),       cmocka_unit_test(test_work),
      cmocka_unit_test(test_dense_tensors),  cmocka_unit_test(test_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
