/* Large graphs take time in proportion; every allocation of jansson may fail; the models load. */
#include "graph_fixture.h"

#include <time.h>

#include "sanitized.h"

enum { NODES = 20000 };

static void append(char **at, const char *format, int a, int b) {
  *at += sprintf(*at, format, a, b);
}

/* Parses, binds, passes, cuts into blocks and lowers; returns the tasks and the CPU time. */
static int whole_way(const char *text, double *seconds) {
  clock_t start = clock();
  cs_graph *graph = NULL, *bound = NULL;
  assert_ok(cs_graph_parse(text, strlen(text), "large.json", &graph));
  assert_ok(cs_graph_bind(graph, 2, &bound));
  cs_graph *out = passed(bound, CS_PASSES_ALL, NULL);
  int *block_of = calloc((size_t)out->n_nodes, sizeof *block_of), n_blocks = 0;
  assert_ok(cs_graph_blocks(out, block_of, &n_blocks));
  cs_layout *layouts = calloc((size_t)out->n_values, sizeof *layouts);
  cs_program *program = NULL;
  assert_ok(cs_program_lower(out, CS_PRECISION_F32, layouts, &program));
  int n_tasks = program->n_tasks;
  *seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  cs_program_destroy(program);
  free(layouts);
  free(block_of);
  cs_graph_destroy(out);
  cs_graph_destroy(bound);
  cs_graph_destroy(graph);
  return n_tasks;
}

static const char head[] =
    "{\"schema\":\"convsched.graph/1\",\"name\":\"large\",\"inputs\":[{\"name\":\"n-1\",\"shape\":"
    "[\"N\",8,4,4]}],\"nodes\":[";

static char *new_text(char **at) {
  char *text = malloc((size_t)NODES * 128 + 1024);
  *at = text + sprintf(text, "%s", head);
  return text;
}

static void finish(char *at, int last) {
  sprintf(at, "],\"outputs\":[\"n%d\"]}", last);
}

static void test_chain(void **state) {
  (void)state;
  char *at, *text = new_text(&at);
  /* Last node first: the order has to be found. */
  for (int i = NODES - 1; i >= 0; i--) {
    append(&at, "{\"name\":\"n%d\",\"op\":\"Sigmoid\",\"inputs\":[\"n%d\"]}", i, i - 1);
    if (i) *at++ = ',';
  }
  finish(at, NODES - 1);
  double seconds;
  assert_int_equal(whole_way(text, &seconds), NODES);
  print_message("chain of %d nodes: %.3f s\n", NODES, seconds);
#if !CS_TEST_SANITIZED
  assert_true(seconds < 1.0);
#endif
  free(text);
}

/* Concats inside concats, 10,000 deep: one concat in the end. */
static void test_nested_concats(void **state) {
  (void)state;
  char *at, *text = new_text(&at);
  for (int i = 0; i < NODES / 2; i++) {
    append(&at, "{\"name\":\"r%d\",\"op\":\"Relu\",\"inputs\":[\"n%d\"]},", i, -1);
    append(&at, "{\"name\":\"n%d\",\"op\":\"Concat\",\"inputs\":[\"n%d\",", i, i - 1);
    append(&at, "\"r%d\"],\"attrs\":{\"axis\":%d}}", i, 1);
    if (i < NODES / 2 - 1) *at++ = ',';
  }
  finish(at, NODES / 2 - 1);
  double seconds;
  assert_int_equal(whole_way(text, &seconds), NODES / 2 + 1);
  print_message("concats nested %d deep: %.3f s\n", NODES / 2, seconds);
  free(text);
}

/* c[k] = concat(c[k-1], c[k-1]): the parts double at every level, the work must not. */
static void test_doubling(void **state) {
  (void)state;
  char *at, *text = new_text(&at);
  for (int i = 0; i < 26; i++) {
    append(&at, "{\"name\":\"n%d\",\"op\":\"Concat\",\"inputs\":[\"n%d\",", i, i - 1);
    append(&at, "\"n%d\"],\"attrs\":{\"axis\":%d}},", i - 1, 1);
  }
  append(&at, "{\"name\":\"n%d\",\"op\":\"Relu\",\"inputs\":[\"n%d\"]}", 26, 25);
  finish(at, 26);
  double seconds;
  assert_in_range(whole_way(text, &seconds), 27, 60);
  free(text);
}

/* Jansson's n-th allocation fails, for every n until loading succeeds. Inside a token jansson calls
 * that an invalid token, which is BAD_INPUT. */
static int64_t allocations_left;

static void *failing_malloc(size_t size) {
  return allocations_left-- > 0 ? malloc(size) : NULL;
}

static void test_json_allocation_failures(void **state) {
  (void)state;
  const char text[] =
      "{\"schema\":\"convsched.graph/1\",\"name\":\"t\",\"inputs\":[{\"name\":\"x\",\"shape\":"
      "[\"N\",4,8,8]}],\"nodes\":[{\"name\":\"c\",\"op\":\"Conv\",\"inputs\":[\"x\"],\"attrs\":{"
      "\"out_channels\":4,\"kernel_shape\":[3,3]}}],\"outputs\":[\"c\"]}";
  bool done = false;
  json_set_alloc_funcs(failing_malloc, free);
  for (int64_t n = 0; !done; n++) {
    allocations_left = n;
    cs_graph *graph = NULL;
    char *json = NULL;
    cs_status status = cs_graph_parse(text, sizeof text - 1, "t.json", &graph);
    if (status == CS_OK) status = cs_graph_to_json(graph, &json);
    done = status == CS_OK;
    if (!done && cs_status_code(status) != CS_CODE_NO_MEMORY) {
      assert_int_equal(cs_status_code(status), CS_CODE_BAD_INPUT);
      assert_non_null(strstr(cs_status_message(status), "line 1, column"));
      assert_null(graph);
    }
    cs_status_free(status);
    free(json);
    cs_graph_destroy(graph);
    assert_true(n < 10000);
  }
  json_set_alloc_funcs(malloc, free);
}

/* Published parameter counts. */
static void test_models(void **state) {
  (void)state;
  const struct {
    const char *name;
    int64_t parameters;
  } models[] = {{"googlenet", 6998552},      {"googlenet_bn", 6624904},  {"inception_v3", 23834568},
                {"resnet50", 25557032},      {"squeezenet1_1", 1235496}, {"densenet121", 7978856},
                {"dcgan_generator", 3576704}};
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    char path[512];
    snprintf(path, sizeof path, "%s/models/%s.json", CS_SOURCE_DIR, models[i].name);
    cs_graph *graph = NULL, *again = NULL;
    char *json = NULL;
    assert_ok(cs_graph_load(path, &graph));
    assert_int_equal(cs_graph_parameter_count(graph), models[i].parameters);
    assert_ok(cs_graph_to_json(graph, &json));
    assert_ok(cs_graph_parse(json, strlen(json), path, &again));
    assert_true(cs_graph_hash(graph) == cs_graph_hash(again));
    double seconds;
    assert_true(whole_way(json, &seconds) > 0);
    free(json);
    cs_graph_destroy(graph);
    cs_graph_destroy(again);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_chain),    cmocka_unit_test(test_nested_concats),
      cmocka_unit_test(test_doubling), cmocka_unit_test(test_json_allocation_failures),
      cmocka_unit_test(test_models),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
