/* Concurrency achieved on a real GPU: two convolutions beside each other, and the same on one
 * stream. */
#define DEVICE_SPEC "cuda:0"
#include <jansson.h>

#include "session_fixture.h"

/* Small grids that take their time: two of them have room beside each other on any GPU. */
static const char pair_json[] =
    "{\"schema\":\"convsched.graph/1\",\"name\":\"pair\","
    "\"inputs\":[{\"name\":\"x\",\"shape\":[\"N\",256,14,14],\"dtype\":\"f32\"}],\"nodes\":["
    MODULE_CONV("stem", "x", "256", "1", "0")
    MODULE_CONV("a", "stem.relu", "256", "3", "1")
    MODULE_CONV("b", "stem.relu", "256", "3", "1")
    "{\"name\":\"cat\",\"op\":\"Concat\",\"inputs\":[\"a.relu\",\"b.relu\"],"
    "\"attrs\":{\"axis\":1}}],\"outputs\":[\"cat\"]}";

static double number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_number(value)) fail_msg("no number %s", key);
  return json_number_value(value);
}

static bool has_task(const json_t *block, const char *name) {
  size_t i;
  json_t *task;
  json_array_foreach(json_object_get(block, "tasks"), i, task) {
    if (strcmp(json_string_value(task), name) == 0) return true;
  }
  return false;
}

/* The block of both convolutions; NULL: the tracer is not permitted here. */
static json_t *pair_block(const char *policy, json_t **root) {
  cs_session *session = NULL;
  cs_session_options options = default_options(policy);
  char *text = NULL;
  json_t *found = NULL, *block;
  size_t i;
  options.batch = 1;
  *root = NULL;
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  cs_status st = cs_session_overlap_json(session, &text);
  cs_session_destroy(session);
  if (cs_status_code(st) == CS_CODE_NOT_FOUND && strstr(cs_status_message(st), "unavailable (")) {
    print_message("not permitted here: %s\n", cs_status_message(st));
    cs_status_free(st);
    return NULL;
  }
  assert_ok(st);
  print_message("%s: %s\n", policy, text);
  *root = json_loads(text, 0, NULL);
  cs_string_free(text);
  assert_non_null(*root);
  json_array_foreach(json_object_get(*root, "blocks"), i, block) {
    if (has_task(block, "a") && has_task(block, "b")) found = block;
  }
  assert_non_null(found);
  return json_object_get(found, "achieved");
}

static void test_two_streams_overlap(void **state) {
  (void)state;
  json_t *root = NULL;
  const json_t *achieved = pair_block("streams", &root);
  if (!root) skip();
  if (!(number(achieved, "concurrency") > 1.02) || !(number(achieved, "overlapped_us") > 0)) {
    fail_msg("concurrency %g, overlapped %g us", number(achieved, "concurrency"),
             number(achieved, "overlapped_us"));
  }
  assert_true(number(achieved, "span_us") <= number(achieved, "busy_us"));
  json_decref(root);
}

static void test_one_stream_does_not(void **state) {
  (void)state;
  json_t *root = NULL;
  const json_t *achieved = pair_block("sequential", &root);
  if (!root) skip();
  double concurrency = number(achieved, "concurrency");
  if (!(concurrency >= 1) || !(concurrency <= 1.02)) fail_msg("concurrency %g", concurrency);
  json_decref(root);
}

static int open_pair(void **state) {
  int failed = open_all(state);
  cs_graph_destroy(test_graph);
  test_graph = NULL;
  assert_ok(cs_graph_parse(pair_json, strlen(pair_json), "pair.json", &test_graph));
  return failed;
}

int main(void) {
  for (const cs_backend_entry *entry = cs_backend_entries; entry->name; entry++) {
    char reason[512];
    if (strcmp(entry->name, "cuda") != 0 || entry->count(reason, sizeof reason) == 0) continue;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_streams_overlap),
        cmocka_unit_test(test_one_stream_does_not),
    };
    return cmocka_run_group_tests(tests, open_pair, close_all);
  }
  return 77;
}
