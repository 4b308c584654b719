/* Signatures: literal, and equal exactly when what matters is. */
#include "graph_fixture.h"

static char *signature_of(const char *shape, const char *nodes, const char *output,
                          cs_precision precision, cs_layout layout) {
  cs_graph *graph = graph_of(shape, nodes, output);
  cs_graph *out = passed(graph, CS_PASSES_ALL, NULL);
  cs_op_desc desc;
  char *text = NULL;
  assert_ok(cs_graph_node_desc(out, out->n_nodes - 1, precision, layout, &desc));
  assert_ok(cs_op_signature(&desc, &text));
  cs_graph_destroy(out);
  cs_graph_destroy(graph);
  return text;
}

typedef struct signature_case {
  const char *shape, *nodes, *output;
  cs_precision precision;
  cs_layout layout;
  const char *wanted;
} signature_case;

#define AS(op, attrs) "{'name':'a','op':'" op "','inputs':['x'],'attrs':{" attrs "}}"

static const signature_case cases[] = {
    {"32,192,28,28", CONV("a", "x", "64", "1") "," NODE("r", "Relu", "a"), "'r'", CS_PRECISION_F16,
     CS_LAYOUT_NHWC,
     "Conv f16 x=32x192x28x28/nhwc y=32x64x28x28/nhwc k=1x1 s=1x1 p=0,0,0,0 d=1x1 g=1 bias "
     "act=relu"},
    {"1,4,9,7",
     AS("Conv",
        "'out_channels':8,'kernel_shape':[3,2],'strides':[2,1],'pads':[1,0,2,3],"
        "'dilations':[1,2],'group':2,'bias':false"),
     "'a'", CS_PRECISION_TF32, CS_LAYOUT_NCHW,
     "Conv tf32 x=1x4x9x7/nchw y=1x8x5x8/nchw k=3x2 s=2x1 p=1,0,2,3 d=1x2 g=2"},
    {"1,4,9,7",
     CONV("c", "x", "4", "1") ",{'name':'s','op':'Add','inputs':['c','x']},"
                              "{'name':'k','op':'Clip','inputs':['s'],'attrs':{'min':0,'max':6}}",
     "'k'", CS_PRECISION_F32, CS_LAYOUT_NCHW16C,
     "Conv f32 x=1x4x9x7/nchw16c r=1x4x9x7/nchw16c y=1x4x9x7/nchw16c k=1x1 s=1x1 p=0,0,0,0 d=1x1 "
     "g=1 bias act=clip(0,6)"},
    {"1,4,4,4",
     AS("ConvTranspose",
        "'out_channels':2,'kernel_shape':[3,3],'strides':[2,2],"
        "'output_padding':[1,0],'bias':false"),
     "'a'", CS_PRECISION_BF16, CS_LAYOUT_NHWC,
     "ConvTranspose bf16 x=1x4x4x4/nhwc y=1x2x10x9/nhwc k=3x3 s=2x2 p=0,0,0,0 d=1x1 g=1 op=1x0"},
    {"8,1024", AS("Gemm", "'out_features':1000"), "'a'", CS_PRECISION_F16, CS_LAYOUT_NHWC,
     "Gemm f16 x=8x1024/row y=8x1000/row bias"},
    {"1,4,9,7", AS("AveragePool", "'kernel_shape':[3,3],'count_include_pad':true,'ceil_mode':true"),
     "'a'", CS_PRECISION_F32, CS_LAYOUT_NCHW,
     "AveragePool f32 x=1x4x9x7/nchw y=1x4x7x5/nchw k=3x3 s=1x1 p=0,0,0,0 d=1x1 ceil include_pad"},
    {"1,4,9,7", AS("LRN", "'size':5"), "'a'", CS_PRECISION_F32, CS_LAYOUT_NCHW,
     "LRN f32 x=1x4x9x7/nchw y=1x4x9x7/nchw size=5 alpha=0.0001 beta=0.75 bias=1"},
    {"1,4,9,7", AS("BatchNormalization", "'epsilon':0.5"), "'a'", CS_PRECISION_F32, CS_LAYOUT_NCHW,
     "BatchNormalization f32 x=1x4x9x7/nchw y=1x4x9x7/nchw bias"},
    {"1,4,9,7", AS("LeakyRelu", "'alpha':0.1"), "'a'", CS_PRECISION_F32, CS_LAYOUT_NCHW,
     "LeakyRelu f32 x=1x4x9x7/nchw y=1x4x9x7/nchw alpha=0.10000000000000001"},
    {"3,7", NODE("a", "Softmax", "x"), "'a'", CS_PRECISION_F32, CS_LAYOUT_NCHW,
     "Softmax f32 x=3x7/row y=3x7/row axis=1"},
    {"1,4,9,7", AS("Pad", "'pads':[0,0,1,2,0,0,3,4],'value':0.5"), "'a'", CS_PRECISION_F32,
     CS_LAYOUT_NCHW, "Pad f32 x=1x4x9x7/nchw y=1x4x13x13/nchw p=0,0,1,2,0,0,3,4 value=0.5"},
    {"1,4,9,7", "{'name':'a','op':'Mul','inputs':['x','x']}", "'a'", CS_PRECISION_F32,
     CS_LAYOUT_NHWC, "Mul f32 x=1x4x9x7/nhwc x=1x4x9x7/nhwc y=1x4x9x7/nhwc"},
};

static void test_literals(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *text = signature_of(cases[i].shape, cases[i].nodes, cases[i].output, cases[i].precision,
                              cases[i].layout);
    assert_string_equal(text, cases[i].wanted);
    free(text);
  }
}

static void assert_signature(const cs_op_desc *desc, const char *wanted) {
  char *text = NULL;
  assert_ok(cs_op_signature(desc, &text));
  assert_string_equal(text, wanted);
  free(text);
}

static void test_views_and_types(void **state) {
  (void)state;
  cs_shape shape = {4, {2, 8, 3, 3}};
  cs_op_desc copy = {.op = CS_OP_COPY, .n_inputs = 1, .precision = CS_PRECISION_F16};
  copy.inputs[0] = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  copy.output = cs_tensor_dense(&shape, CS_DTYPE_F16, CS_LAYOUT_NHWC);
  assert_signature(&copy, "Copy f16 x=2x8x3x3/nchw/f32 y=2x8x3x3/nhwc");
  copy.output.strides[0] = 9 * 24;
  copy.output.strides[2] = 3 * 24;
  copy.output.strides[3] = 24;
  copy.output.alignment = 8;
  assert_signature(&copy, "Copy f16 x=2x8x3x3/nchw/f32 y=2x8x3x3/nhwc/s216,1,72,24/a8");
  copy.output.alignment = 16;
  assert_signature(&copy, "Copy f16 x=2x8x3x3/nchw/f32 y=2x8x3x3/nhwc/s216,1,72,24");
  /* What belongs to other operators does not show. */
  memset(&copy.attrs, 0x5a, sizeof copy.attrs);
  copy.inputs[1].alignment = 3;
  assert_signature(&copy, "Copy f16 x=2x8x3x3/nchw/f32 y=2x8x3x3/nhwc/s216,1,72,24");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_literals),
      cmocka_unit_test(test_views_and_types),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
