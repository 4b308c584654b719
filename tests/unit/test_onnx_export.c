/* Graphs written as ONNX and imported again: the same graph, every operator, the same elements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "onnx/export.h"
#include "onnx/import.h"

#define PATH "test_onnx_export.onnx"

static void assert_ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

static void assert_refused(cs_status st, cs_code code, const char *fragment) {
  if (cs_status_code(st) != code || !strstr(cs_status_message(st), fragment)) {
    fail_msg("status %d: %s", (int)cs_status_code(st), cs_status_message(st));
  }
  cs_status_free(st);
}

/* ---- Elements that tell their parameter and place ---- */

static float element(const char *name, int64_t i) {
  return (float)((cs_hash_string(CS_HASH_SEED, name) + (uint64_t)i) % 1021) / 64.0f - 7.0f;
}

static cs_status open_elements(void *user, const char *name, int64_t count, const float **out) {
  float **data = user;
  *data = malloc((size_t)count * sizeof **data);
  for (int64_t i = 0; i < count; i++) (*data)[i] = element(name, i);
  *out = *data;
  return CS_OK;
}

static void close_elements(void *user) {
  float **data = user;
  free(*data);
  *data = NULL;
}

static void write_graph(const cs_graph *graph, int64_t *opset) {
  cs_onnx_export model = {0};
  float *data = NULL;
  const cs_onnx_elements elements = {open_elements, close_elements, &data};
  assert_ok(cs_onnx_export_encode(graph, "made for a test", &model));
  if (opset) *opset = model.opset;
  assert_ok(cs_onnx_export_write(&model, &elements, PATH));
  assert_null(data);
  cs_onnx_export_clear(&model);
}

static void assert_elements(const cs_graph *original, const cs_graph *again) {
  cs_param *params = NULL;
  int count = 0;
  float read[64];
  assert_ok(cs_graph_params(original, &params, &count));
  for (int k = 0; k < count; k++) {
    int64_t n;
    assert_ok(cs_shape_elements(&params[k].shape, &n));
    for (int64_t first = 0; first < n; first += 64) {
      int64_t piece = cs_min_i64(64, n - first);
      assert_ok(again->param_source->read(again->param_source, params[k].name, first, piece, read));
      for (int64_t i = 0; i < piece; i++) {
        assert_true(read[i] == element(params[k].name, first + i));
      }
    }
  }
  cs_params_free(params, count);
}

/* Imports what the graph is written as; the opset it was written in. */
static int64_t assert_same(const cs_graph *graph) {
  cs_graph *again = NULL;
  char *wanted = NULL, *found = NULL;
  int64_t opset;
  write_graph(graph, &opset);
  assert_ok(cs_graph_import(PATH, &again));
  assert_ok(cs_graph_to_json(graph, &wanted));
  assert_ok(cs_graph_to_json(again, &found));
  assert_string_equal(wanted, found);
  assert_elements(graph, again);
  free(wanted);
  free(found);
  cs_graph_destroy(again);
  return opset;
}

static cs_graph *parse(const char *json) {
  cs_graph *graph = NULL;
  assert_ok(cs_graph_parse(json, strlen(json), "test.json", &graph));
  return graph;
}

/* ---- Every operator ---- */

/* A node of one operator over inputs x [N, 4, 6, 6] (4 axes) or v [N, 5]; the least opset. */
typedef struct op_case {
  const char *op, *inputs, *attrs;
  int64_t opset;
} op_case;

static const op_case op_cases[] = {
    {"Conv", "\"x\"",
     "\"out_channels\":6,\"kernel_shape\":[3,2],\"strides\":[2,1],\"pads\":[1,0,2,1],"
     "\"dilations\":[1,2],\"group\":2",
     18},
    {"Conv", "\"x\"", "\"out_channels\":3,\"kernel_shape\":[1,1],\"bias\":false", 18},
    {"ConvTranspose", "\"x\"",
     "\"out_channels\":6,\"kernel_shape\":[3,3],\"strides\":[2,2],\"output_padding\":[1,0],"
     "\"group\":2",
     18},
    {"Gemm", "\"v\"", "\"out_features\":3", 18},
    {"Gemm", "\"v\"", "\"out_features\":3,\"bias\":false", 18},
    {"BatchNormalization", "\"x\"", "", 18},
    {"BatchNormalization", "\"v\"", "\"epsilon\":0.001", 18}, /* which f32 rounds */
    {"Relu", "\"x\"", "", 18},
    {"LeakyRelu", "\"x\"", "", 18},
    {"LeakyRelu", "\"x\"", "\"alpha\":0.25", 18},
    {"Clip", "\"x\"", "", 18},
    {"Clip", "\"x\"", "\"min\":-0.1", 18},
    {"Clip", "\"x\"", "\"max\":6.0", 18},
    {"Clip", "\"x\"", "\"min\":0.0,\"max\":6.0", 18},
    {"Sigmoid", "\"x\"", "", 18},
    {"Tanh", "\"x\"", "", 18},
    {"Add", "\"x\",\"x\"", "", 18},
    {"Add", "\"x\"", "\"operand\":[4,1,1]", 18}, /* elsewhere a BatchNormalization */
    {"Sub", "\"x\"", "\"operand\":[1],\"operand_first\":true", 18},
    {"Mul", "\"x\"", "\"operand\":[1,4,1,1]", 18},
    {"Mul", "\"v\"", "\"operand\":[5],\"operand_first\":true", 18},
    {"Div", "\"x\"", "\"operand\":[1]", 18},
    {"Max", "\"x\"", "\"operand\":[6],\"operand_first\":true", 18},
    {"Max", "\"x\",\"x\"", "", 18},
    {"Min", "\"x\"", "\"operand\":[1]", 18},
    {"Pow", "\"x\"", "\"operand\":[1]", 18},
    {"PRelu", "\"x\"", "\"operand\":[4,1,1]", 18},
    {"Elu", "\"x\"", "\"alpha\":0.5", 18},
    {"Selu", "\"x\"", "", 18},
    {"HardSigmoid", "\"x\"", "\"alpha\":0.16666666666666666", 18},
    {"HardSwish", "\"x\"", "", 18},
    {"Swish", "\"x\"", "", 24},
    {"Sqrt", "\"x\"", "", 18},
    {"Abs", "\"x\"", "", 18},
    {"Neg", "\"x\"", "", 18},
    {"Exp", "\"x\"", "", 18},
    {"Softplus", "\"x\"", "", 18},
    {"Erf", "\"x\"", "", 18},
    {"Gelu", "\"x\"", "", 20},
    {"MaxPool", "\"x\"",
     "\"kernel_shape\":[3,3],\"strides\":[2,2],\"pads\":[1,1,1,1],\"dilations\":[1,2],"
     "\"ceil_mode\":true",
     18},
    {"AveragePool", "\"x\"", "\"kernel_shape\":[3,3],\"pads\":[1,1,0,0],\"count_include_pad\":true",
     18},
    {"AveragePool", "\"x\"", "\"kernel_shape\":[2,2],\"dilations\":[2,2]", 19},
    {"MaxPool", "\"x\"",
     "\"kernel_shape\":[2,2],\"strides\":[3,3],\"pads\":[1,1,1,1],\"ceil_mode\":true", 18},
    {"MaxPool", "\"x\"",
     "\"kernel_shape\":[3,3],\"strides\":[4,4],\"pads\":[2,2,2,2],\"ceil_mode\":true", 22},
    {"AveragePool", "\"x\"",
     "\"kernel_shape\":[3,3],\"strides\":[4,4],\"pads\":[2,2,2,2],\"ceil_mode\":true", 22},
    {"GlobalAveragePool", "\"x\"", "", 18},
    {"GlobalMaxPool", "\"x\"", "", 18},
    {"ReduceMean", "\"x\"", "\"axes\":[2,3]", 18}, /* elsewhere a GlobalAveragePool */
    {"ReduceSum", "\"x\"", "\"axes\":[1],\"keepdims\":false", 18},
    {"ReduceMax", "\"x\"", "\"axes\":[2,3],\"keepdims\":false", 18},
    {"ReduceMin", "\"x\"", "\"axes\":[-1]", 18},
    {"InstanceNormalization", "\"x\"", "\"epsilon\":0.25", 18},
    {"LRN", "\"x\"", "\"size\":5", 18},
    {"LRN", "\"x\"", "\"size\":3,\"alpha\":0.5,\"beta\":0.25,\"bias\":2.0", 18},
    {"Softmax", "\"x\"", "\"axis\":1", 18},
    {"Concat", "\"x\",\"x\"", "\"axis\":2", 18},
    {"Concat", "\"x\"", "\"axis\":1", 18},
    {"Flatten", "\"x\"", "", 18},
    {"Pad", "\"x\"", "\"pads\":[0,1,2,3,0,0,1,0],\"value\":-2.7", 18},
    {"Pad", "\"x\"", "\"pads\":[0,0,0,0,0,0,0,0]", 18}, /* elsewhere an Identity */
    {"Pad", "\"x\"", "\"pads\":[0,0,2,1,0,0,-1,2],\"mode\":\"reflect\"", 18},
    {"Pad", "\"v\"", "\"pads\":[0,1,0,2],\"mode\":\"wrap\"", 19},
    {"Reshape", "\"x\"", "\"shape\":[\"N\",2,2,36]", 18},
    {"Reshape", "\"x\"", "\"shape\":[\"N\",144]", 18}, /* elsewhere a Flatten */
    {"Transpose", "\"x\"", "\"perm\":[0,2,3,1]", 18},
    {"Transpose", "\"x\"", "\"perm\":[0,1,2,3]", 18}, /* elsewhere an Identity */
    {"Slice", "\"x\"", "\"starts\":[1,-1],\"ends\":[3,-7],\"axes\":[1,3],\"steps\":[1,-2]", 18},
    {"Slice", "\"v\"", "\"starts\":[0],\"ends\":[5],\"axes\":[1]", 18}, /* elsewhere an Identity */
    {"Resize", "\"x\"", "\"sizes\":[12,9]", 18},
    {"Resize", "\"x\"", "\"sizes\":[6,6]", 18}, /* elsewhere an Identity */
    {"Resize", "\"x\"",
     "\"sizes\":[10,4],\"scales\":[1.7,0.7],\"mode\":\"linear\","
     "\"coordinate_transformation_mode\":\"align_corners\"",
     18},
    {"Resize", "\"x\"",
     "\"sizes\":[7,9],\"mode\":\"cubic\",\"cubic_coeff_a\":-0.6,\"exclude_outside\":true,"
     "\"coordinate_transformation_mode\":\"half_pixel_symmetric\"",
     19},
    {"Resize", "\"x\"",
     "\"sizes\":[3,5],\"mode\":\"linear\",\"coordinate_transformation_mode\":"
     "\"tf_crop_and_resize\",\"roi\":[0.1,0.0,0.9,1.5],\"extrapolation_value\":3.3",
     18},
    {"Resize", "\"x\"", "\"sizes\":[3,7],\"mode\":\"linear\",\"antialias\":true", 18},
    {"Resize", "\"x\"", "\"sizes\":[7,9],\"mode\":\"cubic\",\"antialias\":true", 18},
    {"Identity", "\"x\"", "", 18},
    {"Dropout", "\"x\"", "", 18},
};
#define N_OP_CASES (sizeof op_cases / sizeof op_cases[0])

static cs_graph *graph_of(const op_case *row, const char *batch) {
  char json[1024];
  snprintf(json, sizeof json,
           "{\"schema\":\"convsched.graph/1\",\"name\":\"every operator\",\"inputs\":["
           "{\"name\":\"x\",\"shape\":[%s,4,6,6]},{\"name\":\"v\",\"shape\":[%s,5]}],\"nodes\":["
           "{\"name\":\"unread\",\"op\":\"Relu\",\"inputs\":[\"v\"]},"
           "{\"name\":\"it\",\"op\":\"%s\",\"inputs\":[%s],\"attrs\":{%s}}],\"outputs\":[\"it\"]}",
           batch, batch, row->op, row->inputs, row->attrs);
  return parse(json);
}

static void test_every_operator(void **state) {
  (void)state;
  bool seen[CS_OP_COUNT] = {false};
  for (size_t i = 0; i < N_OP_CASES; i++) {
    cs_op op;
    assert_true(cs_op_parse(op_cases[i].op, &op));
    seen[op] = true;
    for (int fixed = 0; fixed < 2; fixed++) {
      cs_graph *graph = graph_of(&op_cases[i], fixed ? "3" : "\"N\"");
      int64_t opset = assert_same(graph);
      if (opset != op_cases[i].opset) fail_msg("%s: opset %d", op_cases[i].op, (int)opset);
      cs_graph_destroy(graph);
    }
  }
  for (int op = 0; op < CS_OP_COUNT; op++) {
    if (op == CS_OP_COPY) continue;
    if (!seen[op]) fail_msg("no case of operator %s", cs_op_name((cs_op)op));
    assert_true(cs_onnx_exports((cs_op)op));
  }
}

/* A Transpose that reads and writes other shapes is three nodes, and comes back as three. */
static void test_transpose_of_other_shapes(void **state) {
  (void)state;
  static const op_case shuffle = {"Transpose", "\"x\"",
                                  "\"perm\":[0,2,1,3,4],\"input_shape\":[\"N\",2,2,6,6],"
                                  "\"output_shape\":[\"N\",4,6,6]",
                                  18};
  cs_graph *graph = graph_of(&shuffle, "\"N\""), *again = NULL;
  write_graph(graph, NULL);
  assert_ok(cs_graph_import(PATH, &again));
  assert_int_equal(again->n_nodes, graph->n_nodes + 2);
  int value = cs_graph_find_value(again, "it");
  assert_true(cs_shape_equal(&again->values[value].shape,
                             &graph->values[cs_graph_find_value(graph, "it")].shape));
  for (int i = 2; i >= 0; i--) {
    const cs_node *node = &again->nodes[again->values[value].producer];
    assert_int_equal(node->op, i == 1 ? CS_OP_TRANSPOSE : CS_OP_RESHAPE);
    value = node->inputs[0];
  }
  assert_same(again); /* and from then on it is the same */
  cs_graph_destroy(again);
  cs_graph_destroy(graph);
}

/* tf_half_pixel_for_nn, which opset 18 has not: told in another way, or refused. */
static void test_tf_half_pixel(void **state) {
  (void)state;
#define TF "\"coordinate_transformation_mode\":\"tf_half_pixel_for_nn\",\"sizes\":[5,4]"
  static const op_case floors = {"Resize", "\"x\"", TF ",\"nearest_mode\":\"floor\"", 18};
  static const op_case rounds = {"Resize", "\"x\"", TF, 18};
  static const op_case refused[] = {
      {"Resize", "\"x\"", TF ",\"nearest_mode\":\"ceil\"", 18},
      {"Resize", "\"x\"", TF ",\"nearest_mode\":\"round_prefer_ceil\"", 18},
      {"Resize", "\"x\"", TF ",\"mode\":\"linear\"", 18}};
  for (int i = 0; i < 2; i++) {
    cs_graph *graph = graph_of(i ? &rounds : &floors, "\"N\""), *again = NULL;
    write_graph(graph, NULL);
    assert_ok(cs_graph_import(PATH, &again));
    int node = again->values[cs_graph_find_value(again, "it")].producer;
    const cs_resize_attrs *resize = &again->nodes[node].attrs.resize;
    assert_int_equal(resize->coordinates, CS_RESIZE_HALF_PIXEL);
    assert_int_equal(resize->nearest, i ? CS_RESIZE_CEIL : CS_RESIZE_ROUND_PREFER_CEIL);
    assert_same(again);
    cs_graph_destroy(again);
    cs_graph_destroy(graph);
  }
  for (int i = 0; i < 3; i++) {
    cs_onnx_export model = {0};
    cs_graph *graph = graph_of(&refused[i], "1");
    assert_refused(cs_onnx_export_encode(graph, "", &model), CS_CODE_BAD_INPUT,
                   "node \"it\": attribute coordinate_transformation_mode: found tf_half_pixel");
    cs_graph_destroy(graph);
  }
}

/* ---- Names, limits ---- */

/* Values that are called as initializers would be, dots, and a name of 256 bytes. */
static void test_names(void **state) {
  (void)state;
  char name[257], json[2048];
  memset(name, 'n', 256);
  name[256] = '\0';
  snprintf(
      json, sizeof json,
      "{\"schema\":\"convsched.graph/1\",\"name\":\"a/b: c\",\"inputs\":["
      "{\"name\":\"c.weight\",\"shape\":[2,4,6,6]}],\"nodes\":["
      "{\"name\":\"c\",\"op\":\"Conv\",\"inputs\":[\"c.weight\"],\"attrs\":{\"out_channels\":2,"
      "\"kernel_shape\":[1,1]}},"
      "{\"name\":\"c.bias\",\"op\":\"BatchNormalization\",\"inputs\":[\"c\"]},"
      "{\"name\":\"c.bias_2\",\"op\":\"Clip\",\"inputs\":[\"c.bias\"],\"attrs\":{\"min\":0.0}},"
      "{\"name\":\"r\",\"op\":\"Relu\",\"inputs\":[\"c.bias_2\"]},"
      "{\"name\":\"r.s\",\"op\":\"Gemm\",\"inputs\":[\"f\"],\"attrs\":{\"out_features\":2}},"
      "{\"name\":\"f\",\"op\":\"Flatten\",\"inputs\":[\"r\"]},"
      "{\"name\":\"%s\",\"op\":\"Tanh\",\"inputs\":[\"r.s\"]}],\"outputs\":[\"%s\",\"r\"]}",
      name, name);
  cs_graph *graph = parse(json);
  assert_same(graph);
  cs_graph_destroy(graph);
}

static cs_status encode(const char *node) {
  char json[1024];
  cs_onnx_export model = {0};
  snprintf(json, sizeof json,
           "{\"schema\":\"convsched.graph/1\",\"name\":\"g\",\"inputs\":[{\"name\":\"x\","
           "\"shape\":[1,65536]}],\"nodes\":[%s],\"outputs\":[\"it\"]}",
           node);
  cs_graph *graph = parse(json);
  cs_status st = cs_onnx_export_encode(graph, "", &model);
  cs_onnx_export_clear(&model);
  cs_graph_destroy(graph);
  return st;
}

static void test_limits(void **state) {
  (void)state;
  assert_ok(
      encode("{\"name\":\"it\",\"op\":\"Gemm\",\"inputs\":[\"x\"],\"attrs\":"
             "{\"out_features\":8191,\"bias\":false}}")); /* 2147 MB, 2 MB below the limit */
  assert_refused(encode("{\"name\":\"it\",\"op\":\"Gemm\",\"inputs\":[\"x\"],\"attrs\":"
                        "{\"out_features\":8192,\"bias\":false}}"),
                 CS_CODE_BAD_INPUT,
                 "test.json: its parameters and nodes take more than 2147483647");
  static const op_case resize = {"Resize", "\"x\"", "\"sizes\":[12,12],\"scales\":[2.0,2.5]", 18};
  cs_onnx_export model = {0};
  cs_graph *graph = graph_of(&resize, "1");
  assert_refused(cs_onnx_export_encode(graph, "", &model), CS_CODE_BAD_INPUT,
                 "node \"it\": attribute sizes: found 12 beside a scale of 2.5");
  cs_graph_destroy(graph);
  assert_refused(encode("{\"name\":\"it\",\"op\":\"Elu\",\"inputs\":[\"x\"],\"attrs\":"
                        "{\"alpha\":1e39}}"),
                 CS_CODE_BAD_INPUT, "node \"it\": attribute alpha: found 1e+39");
}

/* What passes fused has no words in a file of either kind. */
static void test_passes_are_refused(void **state) {
  (void)state;
  static const op_case conv = {"Conv", "\"x\"", "\"out_channels\":2,\"kernel_shape\":[1,1]", 18};
  cs_graph *graph = graph_of(&conv, "1");
  cs_onnx_export model = {0};
  graph->nodes[0].activation.kind = CS_ACT_RELU;
  assert_refused(cs_onnx_export_encode(graph, "", &model), CS_CODE_USAGE, "changed by a pass");
  cs_graph_destroy(graph);
}

/* Without the mark, or with another's, constants are told as the importer tells them. */
static void test_mark(void **state) {
  (void)state;
  static const op_case add = {"Mul", "\"x\"", "\"operand\":[4,1,1]", 18};
  cs_graph *graph = graph_of(&add, "\"N\""), *again = NULL;
  write_graph(graph, NULL);
  FILE *file = fopen(PATH, "r+b");
  char data[8192];
  size_t size = fread(data, 1, sizeof data, file);
  char *mark = memmem(data, size, CS_ONNX_MARK_VALUE "\x3a", strlen(CS_ONNX_MARK_VALUE) + 1);
  assert_non_null(mark); /* the last field before the graph's tag, 7 << 3 | 2 */
  assert_int_equal(fseek(file, mark - data + (long)strlen(CS_ONNX_MARK_VALUE) - 1, SEEK_SET), 0);
  fputc('2', file);
  fclose(file);
  assert_ok(cs_graph_import(PATH, &again));
  assert_string_equal(again->name, "test_onnx_export");
  int node = again->values[cs_graph_find_value(again, "it")].producer;
  assert_int_equal(again->nodes[node].op, CS_OP_BATCH_NORM);
  cs_graph_destroy(again);
  cs_graph_destroy(graph);
}

static int clean(void **state) {
  (void)state;
  unlink(PATH);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_operator),
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_mark),
      cmocka_unit_test(test_passes_are_refused),
      cmocka_unit_test(test_transpose_of_other_shapes),
      cmocka_unit_test(test_tf_half_pixel),
  };
  return cmocka_run_group_tests(tests, NULL, clean);
}
