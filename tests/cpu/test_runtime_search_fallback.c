/* Blocks that gain nothing from their streams fall back to one: a CPU whose clock is made up, on
 * which one of two modules gains and the other loses by concurrency. */
#define DEVICE_SPEC "cpu"
#include <jansson.h>
#include <time.h>

#include "session_fixture.h"

/* Sums, not concats, which may want copies as layouts are measured; each is a block of its own. */
#define MODULE(name, input)                    \
  MODULE_CONV(name ".a", input, "8", "1", "0") \
  MODULE_CONV(name ".b", input, "8", "3", "1") \
  "{\"name\":\"" name "\",\"op\":\"Add\",\"inputs\":[\"" name ".a.relu\",\"" name ".b.relu\"]}"

static const char modules_json[] =
    "{\"schema\":\"convsched.graph/1\",\"name\":\"modules\","
    "\"inputs\":[{\"name\":\"x\",\"shape\":[\"N\",8,6,6],\"dtype\":\"f32\"}],\"nodes\":[" MODULE(
        "m1", "x") "," MODULE("m2", "m1") "],\"outputs\":[\"m2\"]}";

/* ---- The clock ---- */

#define MOST_SCHEDULES 4096
static struct made {
  const cs_schedule *schedule;
  bool concurrent[2]; /* per module */
} made[MOST_SCHEDULES];
static int n_made;
static const cs_backend_vtable *real;
static double gain_us, loss_us; /* of concurrency in the first module, in the second */
static long sleep_ns;

static bool is_concurrent(const cs_launch *launches, int n, const char *module) {
  int stream = -1;
  for (int l = 0; l < n; l++) {
    if (strncmp(launches[l].name, module, strlen(module)) != 0) continue;
    if (stream >= 0 && launches[l].stream != stream) return true;
    stream = launches[l].stream;
  }
  return false;
}

static void note(const cs_schedule *schedule, const cs_launch *launches, int n) {
  assert_true(n_made < MOST_SCHEDULES);
  made[n_made++] = (struct made){
      schedule, {is_concurrent(launches, n, "m1."), is_concurrent(launches, n, "m2.")}};
}

static cs_status create(cs_backend *backend, const cs_launch *launches, int n,
                        const cs_stream_set *streams, bool use_graph, cs_schedule **out) {
  cs_status st = real->schedule_create(backend, launches, n, streams, use_graph, out);
  if (st == CS_OK) note(*out, launches, n);
  return st;
}

static cs_status latency(cs_schedule *schedule, int count, double *us) {
  int at = n_made - 1;
  while (made[at].schedule != schedule) at--;
  const struct timespec pause = {0, sleep_ns};
  if (sleep_ns > 0) nanosleep(&pause, NULL);
  for (int i = 0; i < count; i++) {
    us[i] = 100 - gain_us * made[at].concurrent[0] + loss_us * made[at].concurrent[1];
  }
  return CS_OK;
}

/* A session whose search sees that clock; batches tell the tests' searches apart. */
static cs_session *search(int64_t batch, double seconds, int steps) {
  cs_session *session = NULL;
  cs_session_options options = default_options("coselect");
  cs_backend_vtable clocked;
  options.batch = batch;
  options.max_streams = 2;
  options.search_seconds = 0;
  assert_ok(cs_session_create(test_device, test_graph, &options, &session)); /* measures times */
  cs_session_destroy(session);
  options.search_seconds = seconds;
  options.search_steps = steps;
  real = test_device->backend->vtable;
  clocked = *real;
  clocked.schedule_create = create;
  clocked.schedule_latency = latency;
  n_made = 0;
  test_device->backend->vtable = &clocked;
  cs_status st = cs_session_create(test_device, test_graph, &options, &session);
  test_device->backend->vtable = real;
  assert_ok(st);
  return session;
}

static bool plan_is_concurrent(const cs_session *session, const char *module) {
  return is_concurrent(session->realised.launches, session->realised.n_launches, module);
}

static const cs_fallback *fallback_of(const cs_session *session, const char *last) {
  for (int i = 0; i < session->search.n_fallbacks; i++) {
    if (strcmp(session->search.fallbacks[i].last, last) == 0) {
      return &session->search.fallbacks[i];
    }
  }
  return NULL;
}

static void assert_ratio(const cs_ratio *ratio, double wanted) {
  if (ratio->samples < 7 || fabs(ratio->median - wanted) > 1e-9 || ratio->low > ratio->median ||
      ratio->high < ratio->median) {
    fail_msg("%g (%g to %g) of %d, wanted %g", ratio->median, ratio->low, ratio->high,
             ratio->samples, wanted);
  }
}

/* ---- Tests ---- */

/* Only whole plans are compared before the end: the second module's loss hides in the first's gain
 * until blocks are looked at one by one. */
static void test_a_block_that_loses_falls_back(void **state) {
  (void)state;
  gain_us = 20;
  loss_us = 5;
  cs_session *session = search(1, 5, 1);
  assert_true(plan_is_concurrent(session, "m1."));
  assert_false(plan_is_concurrent(session, "m2."));
  assert_int_equal(session->search.n_fallbacks, 2);
  assert_int_equal(session->search.untried, 0);
  const cs_fallback *first = fallback_of(session, "m1.b"), *second = fallback_of(session, "m2.b");
  assert_non_null(first);
  assert_non_null(second);
  assert_false(first->fell_back);
  assert_ratio(&first->gain, 105.0 / 85);
  assert_true(second->fell_back);
  assert_ratio(&second->gain, 80.0 / 85);
  assert_int_equal(second->gain.samples, 21); /* fresh ones */
  assert_int_equal(second->streams, 2);
  assert_non_null(second->pair[0]);
  assert_true(second->limiter[0] != '\0');
  assert_verified(session, CS_VERIFY_FULL);
  cs_session_destroy(session);
}

/* Less than what the search takes for a gain. */
static void test_a_small_loss_is_one(void **state) {
  (void)state;
  gain_us = 20;
  loss_us = 0.01;
  cs_session *session = search(2, 5, 1);
  assert_true(plan_is_concurrent(session, "m1."));
  assert_false(plan_is_concurrent(session, "m2."));
  assert_true(fallback_of(session, "m2.b")->fell_back);
  cs_session_destroy(session);
}

static const json_t *comparison_with(const json_t *info, const char *name) {
  size_t i;
  json_t *one;
  json_array_foreach(json_object_get(info, "comparisons"), i, one) {
    if (strcmp(json_string_value(json_object_get(one, "with")), name) == 0) return one;
  }
  fail_msg("no comparison with %s", name);
  return NULL;
}

static double number(const json_t *object, const char *key) {
  return json_number_value(json_object_get(object, key));
}

static void test_it_is_told(void **state) {
  (void)state;
  gain_us = 20;
  loss_us = 5;
  char *text = NULL;
  cs_session *session = search(3, 5, 1), *again = NULL;
  assert_ok(cs_session_info_json(session, &text));
  json_t *info = json_loads(text, 0, NULL);
  cs_string_free(text);
  const json_t *fallbacks = json_object_get(info, "fallbacks");
  const json_t *blocks = json_object_get(fallbacks, "blocks");
  assert_int_equal(json_array_size(blocks), 2);
  assert_true(json_is_false(json_object_get(json_array_get(blocks, 0), "fell_back")));
  assert_true(json_is_true(json_object_get(json_array_get(blocks, 1), "fell_back")));
  assert_true(fabs(number(fallbacks, "confidence") - 0.95) < 1e-9);
  const char *others[] = {"sequential", "streams", "opara", "ios"};
  for (int i = 0; i < 4; i++) {
    const json_t *one = comparison_with(info, others[i]);
    const json_t *ratio = json_object_get(one, "ratio");
    if (json_is_true(json_object_get(one, "same"))) continue;
    assert_true(number(ratio, "median") >= 1);
    assert_int_equal(number(ratio, "samples"), 40);
    assert_true(number(ratio, "low") <= number(ratio, "median"));
    assert_true(number(ratio, "high") >= number(ratio, "median"));
  }
  assert_true(fabs(number(json_object_get(comparison_with(info, "sequential"), "ratio"), "median") -
                   100.0 / 80) < 1e-9);
  json_decref(info);

  /* A session that finds its plan in the profile has searched nothing, and says nothing. */
  cs_session_options options = session->settings.options;
  options.search_seconds = -1;
  assert_ok(cs_session_create(test_device, test_graph, &options, &again));
  assert_false(plan_is_concurrent(again, "m2."));
  assert_ok(cs_session_info_json(again, &text));
  assert_null(strstr(text, "fallbacks"));
  cs_string_free(text);
  cs_session_destroy(again);
  cs_session_destroy(session);
}

/* Without steps the time for it is a tenth of the search's: the first block takes more of it than
 * there is. With steps the clock does not decide. */
static void test_the_time_for_it(void **state) {
  (void)state;
  gain_us = 20;
  loss_us = -1; /* concurrency in both is best, whatever else was tried */
  sleep_ns = 4000000;
  cs_session *session = search(4, 0.2, 0);
  assert_int_equal(session->search.n_fallbacks, 1);
  assert_int_equal(session->search.untried, 1);
  cs_session_destroy(session);
  session = search(5, 60, 1);
  sleep_ns = 0;
  assert_int_equal(session->search.n_fallbacks, 2);
  assert_int_equal(session->search.untried, 0);
  assert_true(plan_is_concurrent(session, "m1.") && plan_is_concurrent(session, "m2."));
  cs_session_destroy(session);
}

static int open_modules(void **state) {
  int failed = open_all(state);
  cs_graph_destroy(test_graph);
  test_graph = NULL;
  assert_ok(cs_graph_parse(modules_json, strlen(modules_json), "modules.json", &test_graph));
  return failed;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_block_that_loses_falls_back),
      cmocka_unit_test(test_a_small_loss_is_one),
      cmocka_unit_test(test_it_is_told),
      cmocka_unit_test(test_the_time_for_it),
  };
  return cmocka_run_group_tests(tests, open_modules, close_all);
}
