/* `coselect` on a CPU: one stream with all cores in place of several with a part each, where that
 * is faster. */
#define DEVICE_SPEC "cpu"
#include "session_fixture.h"

#include "runtime/planning.h"
#include "scheduler/configuration.h"

/* Nothing in a chain can run beside anything: streams of one thread each only leave cores idle. */
static const char chain_json[] =
    "{\"schema\":\"convsched.graph/1\",\"name\":\"chain\","
    "\"inputs\":[{\"name\":\"x\",\"shape\":[\"N\",64,56,56],\"dtype\":\"f32\"}],\"nodes\":["
    MODULE_CONV("a", "x", "64", "3", "1")
    MODULE_CONV("b", "a.relu", "64", "3", "1")
    MODULE_CONV("c", "b.relu", "64", "3", "1")
    "{\"name\":\"gap\",\"op\":\"GlobalAveragePool\",\"inputs\":[\"c.relu\"]}],\"outputs\":[\"gap\"]}";

static cs_graph *chain;

static int open_chain(void **state) {
  int failed = open_all(state);
  if (!failed) assert_ok(cs_graph_parse(chain_json, strlen(chain_json), "chain.json", &chain));
  return failed;
}

static int close_chain(void **state) {
  cs_graph_destroy(chain);
  return close_all(state);
}

static cs_session *open_session(const cs_graph *graph, bool frozen, bool refresh, double seconds) {
  cs_session *session = NULL;
  cs_session_options options = default_options("coselect");
  options.frozen = frozen;
  options.refresh = refresh;
  options.search_seconds = seconds;
  options.search_steps = 3;
  assert_ok(cs_session_create(test_device, graph, &options, &session));
  return session;
}

static int cores(void) {
  const cs_device_info *info = test_device->backend->vtable->info(test_device->backend);
  return cs_threads_per_stream(info, 1);
}

static bool has_choice(void) {
  const cs_device_info *info = test_device->backend->vtable->info(test_device->backend);
  return cs_threads_per_stream(info, info->default_streams) < cores();
}

/* What the profile keeps of the pair of plans; named by the program whose streams were compared. */
static const cs_op_profile *pair_of(const char *program_signature) {
  char signature[256];
  snprintf(signature, sizeof signature, "%s beside one stream of %d threads", program_signature,
           cores());
  return cs_profile_find(test_device->profile, signature);
}

static void assert_threads(const cs_session *session, int threads) {
  const cs_plan *plan = session->planned.plan;
  assert_string_equal(plan->policy, "coselect");
  for (int p = 0; p < plan->n_tasks; p++) {
    int of_task = plan->tasks[p].candidate.threads;
    assert_true(of_task == 0 || of_task == threads);
  }
}

static void assert_one_stream(const cs_session *session) {
  assert_true(session->planned.one_stream);
  assert_int_equal(session->planned.plan->n_streams, 1);
  assert_threads(session, cores());
}

static void test_a_chain_gets_all_cores(void **state) {
  (void)state;
  if (!has_choice()) skip();
  cs_session *session = open_session(chain, false, false, 0.2);
  /* Other work on this machine can spoil one comparison. */
  for (int again = 0; again < 3 && !session->planned.one_stream; again++) {
    cs_session_destroy(session);
    session = open_session(chain, false, true, 0.2);
  }
  assert_one_stream(session);
  assert_verified(session, CS_VERIFY_FULL);
  cs_session *frozen = open_session(chain, true, false, 0.2);
  assert_one_stream(frozen);
  cs_session_destroy(frozen);
  cs_session_destroy(session);
}

/* Nothing is measured of whole schedules: times alone tell of a chain. */
static void test_a_chain_gets_all_cores_without_a_search(void **state) {
  (void)state;
  if (!has_choice()) skip();
  cs_session_options options = default_options("coselect");
  cs_session *session = NULL;
  options.batch = 3;
  options.search_seconds = 0;
  assert_ok(cs_session_create(test_device, chain, &options, &session));
  assert_one_stream(session);
  cs_session_destroy(session);
}

/* us[2]: what the profile is to say of streams and of one stream. */
static void record(const char *program_signature, const double us[2]) {
  const cs_op_profile *pair = pair_of(program_signature);
  char *signature, *ids[2] = {NULL, NULL};
  assert_non_null(pair);
  assert_ok(cs_strdup_to(pair->signature, &signature));
  for (int r = 0; r < pair->n_records; r++) {
    const char *id = pair->records[r].candidate.id;
    free(ids[id[0] == 'o']);
    assert_ok(cs_strdup_to(id, &ids[id[0] == 'o'])); /* "streams …", "one …" */
  }
  for (int side = 0; side < 2; side++) {
    assert_non_null(ids[side]);
    cs_candidate candidate = {.id = ids[side], .family = (char *)(uintptr_t) "schedule"};
    cs_measurement measured = {.cold_us = us[side], .warm_us = us[side], .samples = 15};
    assert_ok(cs_profile_add(test_device->profile, signature, &candidate, &measured));
    free(ids[side]);
  }
  free(signature);
}

/* The plan is what the profile says is faster, whichever that is. */
static void test_the_profile_decides(void **state) {
  (void)state;
  if (!has_choice()) skip();
  const double faster_streams[2] = {50, 100}, faster_one[2] = {100, 50};
  char *signature = NULL;
  cs_session *session = open_session(test_graph, false, false, 0.2);
  cs_session_destroy(session);
  cs_session_options options = default_options("streams"); /* its program is that of the streams */
  options.frozen = true;
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  assert_ok(cs_program_signature(session->planned.program, true, &signature));
  cs_session_destroy(session);

  record(signature, faster_one);
  session = open_session(test_graph, true, false, 0.2);
  assert_one_stream(session);
  assert_verified(session, CS_VERIFY_SAMPLE);
  char *told = NULL;
  assert_ok(cs_session_explain_json(session, &told));
  cs_string_free(told);
  cs_session_destroy(session);

  record(signature, faster_streams);
  session = open_session(test_graph, true, false, 0.2);
  assert_false(session->planned.one_stream);
  const cs_device_info *info = test_device->backend->vtable->info(test_device->backend);
  assert_threads(session, cs_threads_per_stream(info, info->default_streams));
  cs_session_destroy(session);
  free(signature);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_chain_gets_all_cores),
      cmocka_unit_test(test_a_chain_gets_all_cores_without_a_search),
      cmocka_unit_test(test_the_profile_decides),
  };
  return cmocka_run_group_tests(tests, open_chain, close_chain);
}
