/* A device (DEVICE_SPEC, of the including file), a cache folder and a small graph with branches,
 * for tests of sessions; and verification whose failures say everything. */
#ifndef CONVSCHED_TESTS_SESSION_FIXTURE_H_
#define CONVSCHED_TESTS_SESSION_FIXTURE_H_

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "module_conv.h"
#include "runtime/session.h"

/* An inception module of four branches, pooled and classified. */
static const char module_json[] =
    "{\"schema\":\"convsched.graph/1\",\"name\":\"module\","
    "\"inputs\":[{\"name\":\"x\",\"shape\":[\"N\",32,14,14],\"dtype\":\"f32\"}],\"nodes\":["
    MODULE_CONV("b1", "x", "32", "1", "0")
    MODULE_CONV("r3", "x", "32", "1", "0")
    MODULE_CONV("b3", "r3.relu", "48", "3", "1")
    MODULE_CONV("r5", "x", "16", "1", "0")
    MODULE_CONV("b5", "r5.relu", "32", "5", "2")
    "{\"name\":\"pool\",\"op\":\"MaxPool\",\"inputs\":[\"x\"],\"attrs\":{\"kernel_shape\":[3,3],"
    "\"strides\":[1,1],\"pads\":[1,1,1,1]}},"
    MODULE_CONV("bp", "pool", "16", "1", "0")
    "{\"name\":\"cat\",\"op\":\"Concat\",\"inputs\":[\"b1.relu\",\"b3.relu\",\"b5.relu\",\"bp.relu\"],"
    "\"attrs\":{\"axis\":1}},"
    "{\"name\":\"gap\",\"op\":\"GlobalAveragePool\",\"inputs\":[\"cat\"]},"
    "{\"name\":\"flat\",\"op\":\"Flatten\",\"inputs\":[\"gap\"]},"
    "{\"name\":\"fc\",\"op\":\"Gemm\",\"inputs\":[\"flat\"],\"attrs\":{\"out_features\":10,"
    "\"bias\":true}}],\"outputs\":[\"fc\"]}";

static char cache_folder[64];
static cs_device *test_device;
static cs_graph *test_graph;

static void assert_status(cs_status st, cs_code code, const char *fragment) {
  if (cs_status_code(st) != code || (fragment && !strstr(cs_status_message(st), fragment))) {
    print_error("status %d: %s\n", (int)cs_status_code(st), cs_status_message(st));
    fail();
  }
  cs_status_free(st);
}
static void assert_ok(cs_status st) {
  assert_status(st, CS_CODE_OK, NULL);
}

/* What these tests measure need not be true. A sample empties a cache that is twice this small in
 * microseconds; one of a whole socket takes most of the time that profiling has. */
static void shrink_cache(const cs_backend *backend) {
  cs_device_info *info = (cs_device_info *)backend->vtable->info(backend);
  if (strcmp(DEVICE_SPEC, "cpu") == 0) info->cache_bytes = 1 << 20;
}

static int open_all(void **state) {
  (void)state;
  strcpy(cache_folder, "/tmp/convsched-session-XXXXXX");
  if (!mkdtemp(cache_folder)) return -1;
  assert_ok(cs_device_open(DEVICE_SPEC, NULL, &test_device));
  shrink_cache(test_device->backend);
  assert_ok(cs_graph_parse(module_json, strlen(module_json), "module.json", &test_graph));
  return 0;
}

static int close_all(void **state) {
  (void)state;
  char command[128];
  cs_graph_destroy(test_graph);
  cs_device_close(test_device);
  snprintf(command, sizeof command, "rm -rf %s", cache_folder);
  return system(command);
}

static cs_session_options default_options(const char *policy) {
  cs_session_options options;
  cs_session_options_init(&options);
  options.batch = 2;
  options.policy = policy;
  options.search_seconds = 0.2;
  options.cache_dir = cache_folder;
  options.deterministic = true;
  options.seed = 3;
  return options;
}

static __attribute__((unused)) cs_session *new_session(const char *policy) {
  cs_session *session = NULL;
  cs_session_options options = default_options(policy);
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  return session;
}

static __attribute__((unused)) void assert_same_plan(const cs_plan *a, const cs_plan *b) {
  assert_int_equal(a->n_tasks, b->n_tasks);
  for (int p = 0; p < a->n_tasks; p++) {
    assert_int_equal(a->tasks[p].task, b->tasks[p].task);
    assert_int_equal(a->tasks[p].stream, b->tasks[p].stream);
    assert_string_equal(a->tasks[p].candidate.id, b->tasks[p].candidate.id);
  }
}

/* A log is all that is seen of a run elsewhere, so it says everything. */
static void print_verification(const cs_verification *v) {
  print_error("%d nodes checked; worst %s at %g of its limit %g; rel_l2 %g, max_scaled %g\n",
              v->nodes_checked, v->worst_node, v->worst_ratio, v->tolerance, v->rel_l2,
              v->max_scaled);
  print_error("bit for bit: %s; end to end %g, limit %g; problem: %s\n",
              !v->bitwise_applies ? "does not apply"
              : v->bitwise_equal  ? "equal"
                                  : "different",
              v->end_to_end, v->end_to_end_limit, v->problem);
}

static cs_verification verify(cs_session *session, cs_verify_level level) {
  cs_verification result;
  assert_ok(cs_session_verify(session, level, &result));
  bool consistent = result.nodes_checked > 0 && result.passed == (result.problem[0] == '\0') &&
                    (result.worst_ratio <= 1 || !result.passed);
  if (!consistent) {
    print_verification(&result);
    fail_msg("passed is %d, which the rest contradicts", result.passed);
  }
  return result;
}

static __attribute__((unused)) void assert_verified(cs_session *session, cs_verify_level level) {
  cs_verification result = verify(session, level);
  if (result.passed) return;
  print_verification(&result);
  fail_msg("verification failed: %s", result.problem);
}

#endif
