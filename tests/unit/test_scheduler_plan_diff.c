/* What two plan files differ in: by hand. */
#include "scheduler/plan_diff.h"

#include <jansson.h>

#include "scheduler_fixture.h"

static json_t *task(const char *name, int stream, const char *candidate, json_int_t offset) {
  return json_pack("{s:s, s:i, s:[], s:I, s:f, s:f, s:{s:s, s:I}}", "name", name, "stream", stream,
                   "waits", "workspace_offset", offset, "start_us", 1.0, "end_us", 2.0, "candidate",
                   "id", candidate, "workspace_bytes", (json_int_t)64);
}

/* Tasks p, q, r and s, one after the other on stream 0, and two buffers. */
static json_t *plan(void) {
  return json_pack(
      "{s:s, s:s, s:f, s:I, s:I, s:{s:s, s:s}, s:[o, o, o, o], s:[{s:s, s:i, s:i}, {s:s, s:i, "
      "s:i}]}",
      "schema", "convsched.plan/1", "policy", "streams", "predicted_us", 10.5, "arena_bytes",
      (json_int_t)1024, "workspace_peak", (json_int_t)64, "layouts", "x", "nchw", "y", "nhwc",
      "tasks", task("p", 0, "one", 0), task("q", 0, "one", 256), task("r", 0, "one", 0),
      task("s", 0, "two", 0), "buffers", "name", "x", "bytes", 512, "offset", 0, "name", "y",
      "bytes", 256, "offset", 512);
}

static cs_status diff_of(json_t *a, json_t *b, char **out) {
  char *text_a = json_dumps(a, 0), *text_b = json_dumps(b, 0);
  cs_plan_text first = {"a.json", text_a, strlen(text_a)},
               second = {"b.json", text_b, strlen(text_b)};
  cs_status st = cs_plan_diff(&first, &second, out);
  free(text_a);
  free(text_b);
  return st;
}

/* Compares and releases `b` with the plan. */
static json_t *diff_with(json_t *b) {
  json_t *a = plan();
  char *text = NULL;
  assert_ok(diff_of(a, b, &text));
  json_t *diff = json_loads(text, 0, NULL);
  free(text);
  json_decref(a);
  json_decref(b);
  assert_non_null(diff);
  return diff;
}

/* `member` of the comparison is `wanted` (JSON). */
static void assert_member(const json_t *diff, const char *member, const char *wanted) {
  json_t *value = json_loads(wanted, JSON_DECODE_ANY, NULL);
  assert_non_null(value);
  if (!json_equal(json_object_get(diff, member), value)) {
    char *found = json_dumps(json_object_get(diff, member), JSON_ENCODE_ANY);
    fail_msg("%s: found %s, wanted %s", member, found, wanted);
  }
  json_decref(value);
}

static void assert_total(const json_t *diff, const char *total, int wanted) {
  const json_t *value = json_object_get(json_object_get(diff, "totals"), total);
  assert_true(json_is_integer(value));
  assert_int_equal(json_integer_value(value), wanted);
}

static json_t *task_of(json_t *b, int i) {
  return json_array_get(json_object_get(b, "tasks"), (size_t)i);
}

static void the_same_plan_differs_in_nothing(void **state) {
  (void)state;
  json_t *diff = diff_with(plan());
  const char *key;
  json_t *total;
  assert_member(diff, "same", "true");
  assert_member(diff, "a", "\"a.json\"");
  assert_member(diff, "b", "\"b.json\"");
  static const char *const lists[] = {"head", "layouts", "tasks", "only_a", "only_b"};
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) assert_member(diff, lists[i], "[]");
  json_object_foreach(json_object_get(diff, "totals"), key, total) {
    assert_int_equal(json_integer_value(total), 0);
  }
  json_decref(diff);
}

static void head_and_layouts_are_told_by_name(void **state) {
  (void)state;
  json_t *b = plan();
  json_object_set_new(b, "arena_bytes", json_integer(2048));
  json_object_set_new(b, "search_steps", json_integer(7)); /* that the other does not have */
  json_object_set_new(json_object_get(b, "layouts"), "y", json_string("nchw"));
  json_object_del(json_object_get(b, "layouts"), "x");
  json_t *diff = diff_with(b);
  assert_member(diff, "same", "false");
  assert_member(diff, "head",
                "[{\"member\":\"arena_bytes\",\"a\":1024,\"b\":2048},"
                "{\"member\":\"search_steps\",\"a\":null,\"b\":7}]");
  assert_member(diff, "layouts",
                "[{\"value\":\"x\",\"a\":\"nchw\",\"b\":null},"
                "{\"value\":\"y\",\"a\":\"nhwc\",\"b\":\"nchw\"}]");
  assert_member(diff, "tasks", "[]");
  json_decref(diff);
}

static void candidates_streams_and_waits_are_told_by_task(void **state) {
  (void)state;
  json_t *b = plan();
  json_object_set_new(json_object_get(task_of(b, 1), "candidate"), "id", json_string("three"));
  json_object_set_new(task_of(b, 2), "stream", json_integer(1));
  json_object_set_new(task_of(b, 2), "waits", json_pack("[s]", "p"));
  json_object_set_new(task_of(b, 2), "end_us", json_real(3));
  json_object_set_new(json_object_get(task_of(b, 3), "candidate"), "workspace_bytes",
                      json_integer(65));
  json_t *diff = diff_with(b);
  assert_member(
      diff, "tasks",
      "[{\"name\":\"q\",\"candidate\":{\"a\":\"one\",\"b\":\"three\"}},"
      "{\"name\":\"r\",\"stream\":{\"a\":0,\"b\":1},\"waits\":{\"a\":[],\"b\":[\"p\"]}}]");
  assert_total(diff, "candidates", 1);
  assert_total(diff, "candidate_details", 1); /* s: the same candidate, another workspace */
  assert_total(diff, "streams", 1);
  assert_total(diff, "waits", 1);
  assert_total(diff, "times", 1);
  assert_total(diff, "moved", 0);
  json_decref(diff);
}

static void merges_priorities_and_splits_are_told(void **state) {
  (void)state;
  json_t *b = plan();
  json_object_set_new(task_of(b, 1), "merged", json_string("p"));
  json_object_set_new(task_of(b, 2), "priority", json_integer(1));
  json_object_set_new(task_of(b, 2), "early", json_false());
  json_object_set_new(task_of(b, 3), "early", json_true()); /* as where it does not say */
  json_object_set_new(b, "split", json_pack("{s:[i], s:[n]}", "parts", 64, "streams"));
  json_t *diff = diff_with(b);
  assert_member(diff, "head",
                "[{\"member\":\"split\",\"a\":null,\"b\":{\"parts\":[64],\"streams\":[null]}}]");
  assert_member(diff, "tasks",
                "[{\"name\":\"q\",\"merged\":{\"a\":null,\"b\":\"p\"}},"
                "{\"name\":\"r\",\"priority\":{\"a\":null,\"b\":1},"
                "\"early\":{\"a\":true,\"b\":false}}]");
  assert_total(diff, "merged", 1);
  assert_total(diff, "priorities", 1);
  assert_total(diff, "early", 1);
  json_decref(diff);
}

/* The fewest tasks that have to move: one that is first instead of last, not all the others. */
static void order_is_told_of_what_moved(void **state) {
  (void)state;
  json_t *b = plan(), *tasks = json_object_get(b, "tasks");
  json_t *last = json_incref(json_array_get(tasks, 3));
  json_array_remove(tasks, 3);
  json_array_insert_new(tasks, 0, last);
  json_t *diff = diff_with(b);
  assert_member(diff, "tasks", "[{\"name\":\"s\",\"position\":{\"a\":3,\"b\":0}}]");
  assert_total(diff, "moved", 1);
  json_decref(diff);
}

static void tasks_of_one_plan_are_named(void **state) {
  (void)state;
  json_t *b = plan();
  json_object_set_new(task_of(b, 1), "name", json_string("copy:x"));
  json_t *diff = diff_with(b);
  assert_member(diff, "only_a", "[\"q\"]");
  assert_member(diff, "only_b", "[\"copy:x\"]");
  assert_member(diff, "tasks", "[]"); /* the others are where they were */
  json_decref(diff);
}

static void offsets_are_counted(void **state) {
  (void)state;
  json_t *b = plan(), *buffers = json_object_get(b, "buffers");
  json_object_set_new(task_of(b, 0), "workspace_offset", json_integer(512));
  json_object_set_new(json_array_get(buffers, 1), "offset", json_integer(768));
  json_object_set_new(json_array_get(buffers, 0), "bytes", json_integer(511));
  json_t *diff = diff_with(b);
  assert_member(diff, "same", "false");
  assert_member(diff, "tasks", "[]");
  assert_total(diff, "workspace_offsets", 1);
  assert_total(diff, "buffer_offsets", 1);
  assert_total(diff, "buffers", 1);
  json_decref(diff);
}

static void refuse(json_t *b, const char *message) {
  json_t *a = plan();
  char *text = NULL;
  assert_fails(diff_of(a, b, &text), CS_CODE_BAD_INPUT, message);
  assert_null(text);
  json_decref(a);
  json_decref(b);
}

static json_t *changed(const char *key, json_t *value) {
  json_t *b = plan();
  json_object_set_new(b, key, value);
  return b;
}
static json_t *changed_task(const char *key, json_t *value) {
  json_t *b = plan();
  json_object_set_new(task_of(b, 1), key, value);
  return b;
}

static void what_is_no_plan_is_refused(void **state) {
  (void)state;
  refuse(json_array(), "b.json: $: found an array, wanted an object");
  refuse(changed("schema", json_string("convsched.graph/1")),
         "b.json: $.schema: found \"convsched.graph/1\", wanted \"convsched.plan/1\"");
  refuse(changed("arena_bytes", json_string("big")), "$.arena_bytes: found a string");
  refuse(changed("layouts", json_null()), "$.layouts: found null, wanted an object");
  refuse(changed("tasks", json_object()), "$.tasks: found an object, wanted an array");
  refuse(changed("buffers", json_pack("[i]", 1)), "$.buffers[0]: found an integer");
  refuse(changed_task("stream", json_integer(-1)), "$.tasks[1].stream: found -1");
  refuse(changed_task("candidate", json_object()), "$.tasks[1].candidate.id: found nothing");
  refuse(changed_task("waits", json_pack("[i]", 3)),
         "$.tasks[1].waits: found an integer, wanted an array of strings");
  refuse(changed_task("name", json_string("p")), "$.tasks[1].name: \"p\" is there twice");
  cs_plan_text torn = {"torn.json", "{\"schema\":", 10};
  char *text = NULL;
  assert_fails(cs_plan_diff(&torn, &torn, &text), CS_CODE_BAD_INPUT, "torn.json: line 1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_same_plan_differs_in_nothing),
      cmocka_unit_test(head_and_layouts_are_told_by_name),
      cmocka_unit_test(candidates_streams_and_waits_are_told_by_task),
      cmocka_unit_test(merges_priorities_and_splits_are_told),
      cmocka_unit_test(order_is_told_of_what_moved),
      cmocka_unit_test(tasks_of_one_plan_are_named),
      cmocka_unit_test(offsets_are_counted),
      cmocka_unit_test(what_is_no_plan_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
