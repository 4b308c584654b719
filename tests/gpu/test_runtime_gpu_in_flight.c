/* Planning for requests in flight on the first GPU. */
#define DEVICE_SPEC "cuda:0"
#include "runtime/pipeline.h"
#include "scheduler/configuration.h"
#include "session_fixture.h"

#define IN_FLIGHT 4
#define WINDOWS 15
#define REQUESTS 400

static cs_session *open_for(int in_flight) {
  cs_session *session = NULL;
  cs_session_options options = default_options("coselect");
  options.in_flight = in_flight;
  options.search_seconds = 4;
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  return session;
}

static double sample(cs_pipeline *pipeline) {
  cs_pipeline_rate rate;
  assert_ok(cs_pipeline_window(pipeline, IN_FLIGHT, REQUESTS, false, &rate));
  return rate.images_per_s;
}

/* A plan for requests in flight computes the right numbers, in a pipeline too, and has no fewer
 * images a second there than the plan for one request's latency, windows in turn. */
static void test_planned_for_throughput(void **state) {
  (void)state;
  cs_session *many = open_for(IN_FLIGHT), *one = open_for(1);
  cs_pipeline *of_many = NULL, *of_one = NULL;
  cs_pipeline_check check;
  double ratios[WINDOWS];
  cs_stats stats;
  assert_verified(many, CS_VERIFY_SAMPLE);
  assert_ok(cs_pipeline_create(many, IN_FLIGHT, &of_many));
  assert_ok(cs_pipeline_create(one, IN_FLIGHT, &of_one));
  assert_ok(cs_pipeline_verify(of_many, &check));
  if (!check.passed) fail_msg("%s", check.problem);
  sample(of_many), sample(of_one);
  for (int i = 0; i < WINDOWS; i++) ratios[i] = sample(of_many) / sample(of_one);
  assert_ok(cs_stats_of(ratios, WINDOWS, &stats));
  print_message("images a second, planned for %d in flight over planned for one: %.3f\n", IN_FLIGHT,
                stats.median);
  assert_true(stats.median >= 0.97);
  cs_pipeline_destroy(of_one);
  cs_pipeline_destroy(of_many);
  cs_session_destroy(one);
  cs_session_destroy(many);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_planned_for_throughput)};
  for (const cs_backend_entry *entry = cs_backend_entries; entry->name; entry++) {
    char reason[512];
    if (strcmp(entry->name, "cuda") != 0 || entry->count(reason, sizeof reason) == 0) continue;
    return cmocka_run_group_tests(tests, open_all, close_all);
  }
  return 77;
}
