/* `coselect` on a CPU: one stream with all cores in place of several with a part each, where that
 * is faster. */
#define DEVICE_SPEC "cpu"
#include "session_fixture.h"

#include "profiler/candidate.h"
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

#include "chain_fixture.h"

static cs_session *open_session(const cs_graph *graph, bool frozen) {
  cs_session *session = NULL;
  cs_session_options options = default_options("coselect");
  options.frozen = frozen;
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

static const cs_record *side_of(const cs_op_profile *pair, const char *name) {
  for (int r = 0; pair && r < pair->n_records; r++) {
    if (strncmp(pair->records[r].candidate.id, name, strlen(name)) == 0) return &pair->records[r];
  }
  fail_msg("no samples of %s", name);
  return NULL;
}

/* The signature of the program that several streams run. */
static char *signature_of(const cs_graph *graph) {
  char *signature = NULL;
  cs_session *session = NULL;
  cs_session_options options = default_options("streams");
  assert_ok(cs_session_create(test_device, graph, &options, &session));
  assert_ok(cs_program_signature(session->planned.program, true, &signature));
  cs_session_destroy(session);
  return signature;
}

/* Which one is faster here is the machine's to say; what is planned is what was measured so. */
static void test_a_chain_is_measured_both_ways(void **state) {
  (void)state;
  if (!has_choice()) skip();
  char *signature = signature_of(chain);
  cs_session *session = open_session(chain, false);
  const cs_op_profile *pair = pair_of(signature);
  const cs_measurement *streams = &side_of(pair, "streams ")->measured;
  const cs_measurement *one = &side_of(pair, "one ")->measured;
  assert_in_range(streams->samples, 5, 15);
  assert_int_equal(session->planned.one_stream, one->cold_us <= streams->cold_us);
  assert_int_equal(session->planned.plan->n_streams, 1); /* of a chain */
  assert_verified(session, CS_VERIFY_FULL);
  cs_session *frozen = open_session(chain, true);
  assert_int_equal(frozen->planned.one_stream, session->planned.one_stream);
  cs_session_destroy(frozen);
  cs_session_destroy(session);
  free(signature);
}

/* Every operation of the policy's program takes `one_us` with one thread, `all_us` with more. */
static void set_times(const cs_session_options *of, const char *policy, double one_us,
                      double all_us) {
  cs_session *session = NULL;
  cs_session_options options = *of;
  options.policy = policy;
  assert_ok(cs_session_create(test_device, chain, &options, &session));
  const cs_program *program = session->planned.program;
  for (int t = 0; t < program->n_tasks; t++) {
    char *signature = NULL;
    assert_ok(cs_op_signature(&program->tasks[t].desc, &signature));
    const cs_op_profile *known = cs_profile_find(test_device->profile, signature);
    assert_non_null(known);
    int n = known->n_records;
    cs_record *records = calloc((size_t)n, sizeof *records); /* those of the profile move */
    for (int r = 0; r < n; r++) {
      records[r].measured = known->records[r].measured;
      assert_ok(cs_candidate_copy(&known->records[r].candidate, &records[r].candidate));
    }
    for (int r = 0; r < n; r++) {
      cs_measurement *measured = &records[r].measured;
      measured->cold_us = measured->warm_us = records[r].candidate.threads > 1 ? all_us : one_us;
      if (!measured->rejected) {
        assert_ok(cs_profile_add(test_device->profile, signature, &records[r].candidate, measured));
      }
      cs_candidate_clear(&records[r].candidate);
    }
    free(records);
    free(signature);
  }
  cs_session_destroy(session);
}

/* Nothing is measured of whole schedules: the operations' times tell of a chain, in which one
 * thread a stream must lose where operations gain from threads. */
static void test_a_chain_without_a_search(void **state) {
  (void)state;
  if (!has_choice()) skip();
  cs_session_options options = default_options("coselect");
  options.batch = 3;
  options.search_seconds = 0;
  for (int gains = 0; gains < 2; gains++) {
    cs_session *session = NULL;
    set_times(&options, "streams", 80, gains ? 50 : 100);
    set_times(&options, "sequential", 80, gains ? 50 : 100);
    assert_ok(cs_session_create(test_device, chain, &options, &session));
    assert_int_equal(session->planned.one_stream, gains);
    if (gains) assert_one_stream(session);
    cs_session_destroy(session);
  }
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
  char *signature = signature_of(test_graph);
  cs_session *session = open_session(test_graph, false);
  cs_session_destroy(session);

  record(signature, faster_one);
  session = open_session(test_graph, true);
  assert_one_stream(session);
  assert_verified(session, CS_VERIFY_SAMPLE);
  char *told = NULL;
  assert_ok(cs_session_explain_json(session, &told));
  cs_string_free(told);
  cs_session_destroy(session);

  record(signature, faster_streams);
  session = open_session(test_graph, true);
  assert_false(session->planned.one_stream);
  const cs_device_info *info = test_device->backend->vtable->info(test_device->backend);
  assert_threads(session, cs_threads_per_stream(info, info->default_streams));
  cs_session_destroy(session);
  free(signature);
}

/* What several streams need may be more than a memory limit allows where one stream holds it. */
static void test_streams_that_hold_no_limit(void **state) {
  (void)state;
  if (!has_choice()) skip();
  cs_session *session = open_session(test_graph, false);
  const int64_t limits[] = {0, 1, INT64_C(1) << 40}; /* none, too low, high enough */
  const cs_device_info *info = test_device->backend->vtable->info(test_device->backend);
  const cs_measure_options measure = {
      .workspace_limit = session->settings.options.workspace_limit,
      .threads = cs_threads_per_stream(info, info->default_streams)};
  for (int i = 0; i < 3; i++) {
    session->settings.options.memory_limit = limits[i];
    cs_plan_destroy(session->planned.plan);
    session->planned.plan = NULL;
    session->planned.one_stream = false;
    cs_status st = cs_consider_one_stream(session, &measure, cs_error(CS_CODE_NOT_FOUND, "none"));
    if (i == 2) {
      assert_ok(st);
      assert_one_stream(session);
      continue;
    }
    assert_int_equal(cs_status_code(st), CS_CODE_NOT_FOUND);
    assert_string_equal(cs_status_message(st), "none");
    cs_status_free(st);
    assert_null(session->planned.plan);
  }
  cs_session_destroy(session);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_chain_is_measured_both_ways),
      cmocka_unit_test(test_a_chain_without_a_search),
      cmocka_unit_test(test_the_profile_decides),
      cmocka_unit_test(test_streams_that_hold_no_limit),
  };
  return cmocka_run_group_tests(tests, open_chain, close_chain);
}
