/* Sessions side by side on several threads, each on a device of its own, over one graph and one
 * profile database; made for ThreadSanitizer, which sees what they share. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "convsched/convsched.h"

#define N_THREADS 3
#define N_RUNS 20
#define N_INPUT (3 * 8 * 8)
#define N_OUTPUT (8 * 8 * 8)

#define CONV(name, kernel, pad)                                                     \
  "{\"name\":\"" name                                                               \
  "\",\"op\":\"Conv\",\"inputs\":[\"x\"],\"attrs\":{\"out_channels\":4,"            \
  "\"kernel_shape\":[" kernel "," kernel "],\"pads\":[" pad "," pad "," pad "," pad \
  "],\"bias\":true}},"

/* Two branches, so that the plan has two streams. */
static const char graph_json[] =
    "{\"schema\":\"convsched.graph/1\",\"name\":\"branches\","
    "\"inputs\":[{\"name\":\"x\",\"shape\":[\"N\",3,8,8],\"dtype\":\"f32\"}],\"nodes\":[" CONV(
        "a", "3", "1") CONV("b", "1", "0")
        "{\"name\":\"cat\",\"op\":\"Concat\",\"inputs\":[\"a\",\"b\"],\"attrs\":{\"axis\":1}}],"
        "\"outputs\":[\"cat\"]}";

typedef struct worker {
  const cs_graph *graph;
  const char *cache;
  bool frozen;
  float input[N_INPUT], output[N_OUTPUT];
  cs_status status;
  bool steady; /* every run gave the same bits */
} worker;

static cs_status run_session(worker *w, cs_session *session) {
  const float *inputs[] = {w->input};
  float again[N_OUTPUT], *first[] = {w->output}, *later[] = {again};
  const int64_t n_input = N_INPUT, n_output = N_OUTPUT;
  cs_status st = cs_session_run(session, inputs, &n_input, 1, first, &n_output, 1);
  w->steady = true;
  for (int i = 0; st == CS_OK && i < N_RUNS; i++) {
    st = cs_session_run(session, inputs, &n_input, 1, later, &n_output, 1);
    if (memcmp(again, w->output, sizeof again) != 0) w->steady = false;
  }
  return st;
}

static void *work(void *argument) {
  worker *w = argument;
  cs_device *device = NULL;
  cs_session *session = NULL;
  cs_session_options options;
  cs_session_options_init(&options);
  options.policy = "streams";
  options.cache_dir = w->cache;
  options.frozen = w->frozen;
  options.deterministic = true;
  w->status = cs_device_open("cpu", NULL, &device);
  if (w->status == CS_OK) w->status = cs_session_create(device, w->graph, &options, &session);
  if (w->status == CS_OK) w->status = run_session(w, session);
  cs_session_destroy(session);
  cs_device_close(device);
  return NULL;
}

static void assert_worked(worker *w) {
  if (w->status != CS_OK) fail_msg("%s", cs_status_message(w->status));
  assert_true(w->steady);
}

static void test_sessions_on_several_threads(void **state) {
  (void)state;
  char cache[] = "/tmp/convsched-threads-XXXXXX", command[64];
  assert_non_null(mkdtemp(cache));
  cs_graph *graph = NULL;
  assert_true(cs_graph_parse(graph_json, strlen(graph_json), "branches", &graph) == CS_OK);

  /* One alone measures; the others plan from what it stored. */
  static worker alone, beside[N_THREADS];
  alone = (worker){.graph = graph, .cache = cache};
  for (int i = 0; i < N_INPUT; i++) alone.input[i] = (float)(i % 13) - 6.0f;
  work(&alone);
  assert_worked(&alone);

  pthread_t threads[N_THREADS];
  for (int t = 0; t < N_THREADS; t++) {
    beside[t] = alone;
    beside[t].frozen = true;
    memset(beside[t].output, 0, sizeof beside[t].output);
    assert_int_equal(pthread_create(&threads[t], NULL, work, &beside[t]), 0);
  }
  for (int t = 0; t < N_THREADS; t++) {
    assert_int_equal(pthread_join(threads[t], NULL), 0);
    assert_worked(&beside[t]);
    assert_memory_equal(beside[t].output, alone.output, sizeof alone.output);
  }
  cs_graph_destroy(graph);
  snprintf(command, sizeof command, "rm -rf %s", cache);
  assert_int_equal(system(command), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sessions_on_several_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
