/* Tests of cs_profile_model that every device must pass. The including file defines DEVICE_SPEC,
 * PROFILE_PRECISION and PROFILE_BATCH, includes this, and runs run_profile_tests. */
#ifndef CONVSCHED_TESTS_PROFILE_TESTS_H_
#define CONVSCHED_TESTS_PROFILE_TESTS_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "convsched/convsched.h"
#include "module_conv.h"

/* An inception module of three branches. */
static const char profile_module[] =
    "{\"schema\":\"convsched.graph/1\",\"name\":\"module\","
    "\"inputs\":[{\"name\":\"x\",\"shape\":[\"N\",64,14,14],\"dtype\":\"f32\"}],\"nodes\":["
    MODULE_CONV("b1", "x", "32", "1", "0")
    MODULE_CONV("r3", "x", "48", "1", "0")
    MODULE_CONV("b3", "r3.relu", "48", "3", "1")
    MODULE_CONV("b5", "x", "16", "5", "2")
    "{\"name\":\"cat\",\"op\":\"Concat\",\"inputs\":[\"b1.relu\",\"b3.relu\",\"b5.relu\"],"
    "\"attrs\":{\"axis\":1}}],\"outputs\":[\"cat\"]}";

typedef struct profile_fixture {
  char directory[64];
  cs_device *device;
  cs_graph *graph;
  cs_session_options session;
  cs_profile_options options;
} profile_fixture;

static int profile_set_up(void **state) {
  profile_fixture *f = calloc(1, sizeof *f);
  snprintf(f->directory, sizeof f->directory, "/tmp/cs-profile-XXXXXX");
  if (!f || !mkdtemp(f->directory)) return -1;
  if (cs_device_open(DEVICE_SPEC, NULL, &f->device) != CS_OK) return -1;
  if (cs_graph_parse(profile_module, strlen(profile_module), "module", &f->graph) != CS_OK) {
    return -1;
  }
  cs_session_options_init(&f->session);
  f->session.policy = "streams";
  f->session.batch = PROFILE_BATCH;
  f->session.precision = PROFILE_PRECISION;
  f->session.cache_dir = f->directory;
  cs_profile_options_init(&f->options);
  *state = f;
  return 0;
}

static int profile_tear_down(void **state) {
  profile_fixture *f = *state;
  char command[128];
  cs_device_close(f->device);
  cs_graph_destroy(f->graph);
  snprintf(command, sizeof command, "rm -rf %s", f->directory);
  free(f);
  return system(command);
}

static json_t *profile(profile_fixture *f) {
  char *text = NULL;
  cs_status st = cs_profile_model(f->device, f->graph, &f->session, &f->options, &text);
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
  json_t *report = json_loads(text, 0, NULL);
  cs_string_free(text);
  assert_non_null(report);
  assert_string_equal(json_string_value(json_object_get(report, "schema")),
                      "convsched.profile-report/1");
  return report;
}

static void refused(profile_fixture *f, cs_code code, const char *part) {
  char *text = NULL;
  cs_status st = cs_profile_model(f->device, f->graph, &f->session, &f->options, &text);
  assert_null(text);
  assert_int_equal(cs_status_code(st), code);
  if (!strstr(cs_status_message(st), part)) {
    fail_msg("\"%s\" lacks \"%s\"", cs_status_message(st), part);
  }
  cs_status_free(st);
}

static json_int_t integer(const json_t *report, const char *part, const char *key) {
  const json_t *value = json_object_get(json_object_get(report, part), key);
  assert_true(json_is_integer(value));
  return json_integer_value(value);
}

static double number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  assert_true(json_is_number(value));
  return json_number_value(value);
}

/* Every operation has a fastest candidate, which leads its Pareto set. */
static void check_operations(const json_t *report) {
  size_t i;
  json_t *operation;
  const json_t *operations = json_object_get(report, "operations");
  assert_true(json_array_size(operations) >= 4);
  json_array_foreach(operations, i, operation) {
    const json_t *best = json_object_get(operation, "best");
    assert_true(number(best, "cold_us") > 0);
    assert_true(number(operation, "candidates") > number(operation, "rejected"));
    json_t *first = json_array_get(json_object_get(operation, "pareto"), 0);
    assert_true(json_equal(first, (json_t *)(uintptr_t)best));
  }
}

/* Three branches, of one, two and one convolutions: two sets of three, five pairs. Each is timed,
 * and what was chosen jointly is no slower than the fastest alone. */
static void check_coruns(const json_t *report, json_int_t most, json_int_t least) {
  size_t i;
  json_t *set;
  const json_t *list = json_object_get(json_object_get(report, "coruns"), "list");
  assert_in_range(json_array_size(list), least, most);
  json_array_foreach(list, i, set) {
    assert_true(number(set, "serial_us") > 0);
    assert_true(number(set, "best_us") > 0);
    assert_true(number(set, "best_us") <= number(set, "fastest_alone_us"));
    assert_true(number(json_object_get(set, "fastest_alone"), "samples") >= 3);
    assert_int_equal(json_array_size(json_object_get(set, "tasks")),
                     json_array_size(json_object_get(json_object_get(set, "best"), "members")));
  }
}

/* Times, then sets; a second call measures nothing and says the same of the operations. */
static void test_profile_twice(void **state) {
  profile_fixture *f = *state;
  f->options.corun = true;
  json_t *first = profile(f), *second;
  check_operations(first);
  check_coruns(first, 7, 5);
  assert_int_equal(integer(first, "coruns", "sets_cached"), 0);
  assert_true(integer(first, "coruns", "combinations") >= integer(first, "coruns", "sets"));
  f->session.frozen = true;
  second = profile(f);
  assert_int_equal(integer(second, "measured", "candidates"), 0);
  assert_int_equal(integer(second, "measured", "operations_cached"),
                   integer(second, "measured", "operations"));
  assert_int_equal(integer(second, "coruns", "sets_cached"), integer(first, "coruns", "sets"));
  assert_int_equal(integer(second, "coruns", "combinations"), 0);
  assert_true(
      json_equal(json_object_get(first, "operations"), json_object_get(second, "operations")));
  json_decref(first);
  json_decref(second);
}

static void test_profile_nodes(void **state) {
  profile_fixture *f = *state;
  const char *nodes[] = {"b1", "b3"};
  f->options.nodes = nodes;
  f->options.n_nodes = 2;
  f->options.corun = true;
  json_t *report = profile(f);
  assert_int_equal(json_array_size(json_object_get(report, "operations")), 2);
  check_coruns(report, 1, 1);
  json_decref(report);
  nodes[1] = "b4";
  refused(f, CS_CODE_NOT_FOUND, "\"b4\"");
}

/* Frozen: what is missing is named; without --corun nothing of sets is asked for. */
static void test_profile_frozen(void **state) {
  profile_fixture *f = *state;
  const char *nodes[] = {"b1", "r3"};
  f->options.nodes = nodes;
  f->options.n_nodes = 2;
  f->session.frozen = true;
  refused(f, CS_CODE_NOT_FOUND, "b1");
  f->session.frozen = false;
  json_decref(profile(f));
  f->session.frozen = true;
  json_decref(profile(f));
  f->options.corun = true;
  refused(f, CS_CODE_NOT_FOUND, "b1 + r3");
}

static int run_profile_tests(void) {
#define PROFILE_TEST(name) cmocka_unit_test_setup_teardown(name, profile_set_up, profile_tear_down)
  const struct CMUnitTest tests[] = {
      PROFILE_TEST(test_profile_twice),
      PROFILE_TEST(test_profile_nodes),
      PROFILE_TEST(test_profile_frozen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
