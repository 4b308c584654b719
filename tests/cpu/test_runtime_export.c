/* Graphs exported as ONNX and imported again: the same graph, and on the CPU the same bits. */
#define DEVICE_SPEC "cpu"
#include <dirent.h>

#include "base/file.h"
#include "session_fixture.h"

#define PATH "test_runtime_export.onnx"
#define SECOND "test_runtime_export_2.onnx"
#define WEIGHTS "test_runtime_export.safetensors"

/* Its text without the file of weights, which an imported graph has in it. */
static char *text_of(const cs_graph *graph) {
  char *text = NULL;
  assert_ok(cs_graph_to_json(graph, &text));
  json_t *root = json_loads(text, 0, NULL);
  cs_string_free(text);
  json_object_del(root, "weights");
  char *plain = json_dumps(root, JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
  json_decref(root);
  return plain;
}

static void assert_same_graph(const cs_graph *a, const cs_graph *b) {
  char *wanted = text_of(a), *found = text_of(b);
  assert_string_equal(wanted, found);
  free(wanted);
  free(found);
}

/* Outputs of one run, of the inputs that the seed gives. */
static float *run(const cs_graph *graph, const char *weights, int64_t count) {
  cs_session_options options = default_options("sequential");
  cs_session *session = NULL;
  options.batch = 2;
  options.weights_path = weights;
  options.seed = 5;
  options.deterministic = true;
  assert_ok(cs_session_create(test_device, graph, &options, &session));
  float *inputs = malloc(2 * 32 * 14 * 14 * sizeof *inputs);
  for (int i = 0; i < 2 * 32 * 14 * 14; i++) inputs[i] = (float)((i * 37) % 101 - 50) / 32.0f;
  float *out = calloc((size_t)count, sizeof *out);
  const float *const in[] = {inputs};
  float *const outputs[] = {out};
  assert_ok(cs_session_run(session, in, (int64_t[]){2 * 32 * 14 * 14}, 1, outputs, &count, 1));
  cs_session_destroy(session);
  free(inputs);
  return out;
}

static void assert_round_trip(const cs_graph *graph, const char *weights, int64_t count) {
  cs_graph *again = NULL;
  assert_ok(cs_graph_export_onnx(graph, weights, 5, PATH));
  assert_ok(cs_graph_import(PATH, &again));
  assert_same_graph(graph, again);
  float *wanted = run(graph, weights, count), *found = run(again, NULL, count);
  assert_memory_equal(wanted, found, (size_t)count * sizeof *wanted);
  float sum = 0;
  for (int64_t i = 0; i < count; i++) sum += fabsf(wanted[i]);
  assert_true(sum > 0 && isfinite(sum));
  free(wanted);
  free(found);
  cs_graph_destroy(again);
}

static void test_module(void **state) {
  (void)state;
  assert_round_trip(test_graph, NULL, 20);
}

/* But for what the documentation says of the parameters, names of equal length. */
static void assert_same_files(const char *a, const char *b) {
  char *x = NULL, *y = NULL;
  size_t n = 0, m = 0;
  assert_ok(cs_file_read(a, 1 << 24, &x, &n));
  assert_ok(cs_file_read(b, 1 << 24, &y, &m));
  char *told = memmem(x, n, WEIGHTS, strlen(WEIGHTS));
  assert_non_null(told);
  size_t before = (size_t)(told - x), after = n - before - strlen(WEIGHTS);
  assert_int_equal(n - strlen(WEIGHTS), m - strlen(PATH));
  assert_memory_equal(x + n - after, y + m - after, after);
  free(x);
  free(y);
}

/* Given weights count, and another seed's are other ones. */
static void test_weights(void **state) {
  (void)state;
  assert_ok(cs_graph_write_generated_weights(test_graph, 11, WEIGHTS));
  assert_round_trip(test_graph, WEIGHTS, 20);
  cs_graph *again = NULL;
  assert_ok(cs_graph_export_onnx(test_graph, WEIGHTS, 5, PATH));
  assert_ok(cs_graph_import(PATH, &again));
  float *of_file = run(again, NULL, 20), *of_seed = run(test_graph, NULL, 20);
  assert_memory_not_equal(of_file, of_seed, 20 * sizeof(float));
  free(of_file);
  free(of_seed);
  /* Again from what was imported. */
  assert_ok(cs_graph_export_onnx(again, NULL, 5, SECOND));
  assert_same_files(PATH, SECOND);
  cs_graph_destroy(again);
}

/* Constants that the importer else makes affine maps or biases of, and attributes as inputs. */
static const char mixed_json[] =
    "{\"schema\":\"convsched.graph/1\",\"name\":\"mixed\",\"inputs\":[{\"name\":\"x\",\"shape\":"
    "[\"N\",32,14,14]}],\"nodes\":["
    "{\"name\":\"c\",\"op\":\"Conv\",\"inputs\":[\"x\"],\"attrs\":{\"out_channels\":16,"
    "\"kernel_shape\":[3,3],\"bias\":false}},"
    "{\"name\":\"a\",\"op\":\"Add\",\"inputs\":[\"c\"],\"attrs\":{\"operand\":[16,1,1]}},"
    "{\"name\":\"m\",\"op\":\"Mul\",\"inputs\":[\"a\"],\"attrs\":{\"operand\":[1]}},"
    "{\"name\":\"s\",\"op\":\"Sub\",\"inputs\":[\"m\"],\"attrs\":{\"operand\":[12],"
    "\"operand_first\":true}},"
    "{\"name\":\"l\",\"op\":\"LeakyRelu\",\"inputs\":[\"s\"]},"
    "{\"name\":\"i\",\"op\":\"InstanceNormalization\",\"inputs\":[\"l\"]},"
    "{\"name\":\"k\",\"op\":\"Clip\",\"inputs\":[\"i\"],\"attrs\":{\"min\":-1.5,\"max\":6.0}},"
    "{\"name\":\"p\",\"op\":\"Pad\",\"inputs\":[\"k\"],\"attrs\":{\"pads\":[0,0,1,2,0,0,0,1],"
    "\"value\":0.5}},"
    "{\"name\":\"n\",\"op\":\"LRN\",\"inputs\":[\"p\"],\"attrs\":{\"size\":5}},"
    "{\"name\":\"r\",\"op\":\"ReduceMean\",\"inputs\":[\"n\"],\"attrs\":{\"axes\":[2,3],"
    "\"keepdims\":false}},"
    "{\"name\":\"g\",\"op\":\"Gemm\",\"inputs\":[\"r\"],\"attrs\":{\"out_features\":6}},"
    "{\"name\":\"y\",\"op\":\"Softmax\",\"inputs\":[\"g\"]}],\"outputs\":[\"y\"]}";

static void test_mixed(void **state) {
  (void)state;
  cs_graph *graph = NULL;
  assert_ok(cs_graph_parse(mixed_json, strlen(mixed_json), "mixed.json", &graph));
  assert_round_trip(graph, NULL, 12);
  cs_graph_destroy(graph);
}

/* The models that come with the project, without running them. */
static void test_models(void **state) {
  (void)state;
  DIR *folder = opendir(CS_SOURCE_DIR "/models");
  int n = 0;
  assert_non_null(folder);
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    const char *dot = strrchr(entry->d_name, '.');
    char path[512];
    cs_graph *graph = NULL, *again = NULL;
    if (!dot || strcmp(dot, ".json") != 0 || strcmp(entry->d_name, "errors.json") == 0) continue;
    snprintf(path, sizeof path, "%s/models/%s", CS_SOURCE_DIR, entry->d_name);
    assert_ok(cs_graph_load(path, &graph));
    assert_ok(cs_graph_export_onnx(graph, NULL, 1, PATH));
    assert_ok(cs_graph_import(PATH, &again));
    assert_same_graph(graph, again);
    cs_graph_destroy(again);
    cs_graph_destroy(graph);
    n++;
  }
  closedir(folder);
  assert_true(n >= 7);
}

static void test_files(void **state) {
  (void)state;
  assert_ok(cs_graph_write_generated_weights(test_graph, 11, WEIGHTS));
  assert_status(cs_graph_export_onnx(test_graph, WEIGHTS, 5, WEIGHTS), CS_CODE_USAGE,
                "would replace " WEIGHTS);
  assert_status(cs_graph_export_onnx(test_graph, NULL, 5, "nowhere/a.onnx"), CS_CODE_IO, "nowhere");
  assert_status(cs_graph_export_onnx(test_graph, "nothing.safetensors", 5, PATH), CS_CODE_IO,
                "nothing.safetensors");
  cs_graph *again = NULL;
  assert_ok(cs_graph_export_onnx(test_graph, WEIGHTS, 5, PATH));
  assert_ok(cs_graph_import(PATH, &again));
  assert_status(cs_graph_export_onnx(again, NULL, 5, PATH), CS_CODE_USAGE, "would replace " PATH);
  cs_graph_destroy(again);
}

static int close_and_clean(void **state) {
  unlink(PATH);
  unlink(SECOND);
  unlink(WEIGHTS);
  return close_all(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_module), cmocka_unit_test(test_weights), cmocka_unit_test(test_mixed),
      cmocka_unit_test(test_models), cmocka_unit_test(test_files),
  };
  if (!cs_import_is_built()) {
    print_message("this build has no ONNX\n");
    return 77;
  }
  return cmocka_run_group_tests(tests, open_all, close_and_clean);
}
