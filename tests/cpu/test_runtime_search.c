/* The search of `coselect`: whole schedules are measured, kept, and used again. */
#define DEVICE_SPEC "cpu"
#include "cpu/search_fixture.h"

#include "base/file.h"
#include "runtime/planning.h"

static cs_session_options coselect_options(void) {
  cs_session_options options;
  cs_session_options_init(&options);
  options.policy = "coselect";
  options.cache_dir = cache_folder;
  options.batch = 2;
  options.search_seconds = 5;
  options.search_steps = 6;
  return options;
}

/* Whether it has all cores for one stream, which is found faster when the machine is busy. */
static bool has_one_stream(const cs_session *session) {
  const cs_device_info *info = session->device->backend->vtable->info(session->device->backend);
  const cs_plan *plan = session->planned.plan;
  int most = 0;
  for (int p = 0; p < plan->n_tasks; p++) {
    int threads = plan->tasks[p].candidate.threads;
    if (threads > most) most = threads;
  }
  return most > cs_threads_per_stream(info, info->default_streams);
}

static void assert_is_planned(const cs_session *session, const char *wanted) {
  cs_configuration configuration;
  char *text = NULL;
  assert_ok(
      cs_configuration_of_plan(session->planned.plan, session->planned.choices, &configuration));
  assert_ok(cs_configuration_text(&configuration, session->planned.choices, &text));
  assert_string_equal(text, wanted);
  cs_configuration_free(&configuration);
  free(text);
}

/* Every measured schedule is in the profile; the plan is the best of the confirmed ones (or one
 * stream), is right, and comes again without measuring, frozen too. */
static void test_what_is_measured_is_kept_and_used(void **state) {
  (void)state;
  cs_session *first = NULL, *again = NULL, *streams = NULL;
  cs_session_options options = coselect_options();
  assert_ok(cs_session_create(test_device, test_graph, &options, &first));
  assert_verified(first, CS_VERIFY_FULL);
  options.policy = "streams";
  assert_ok(cs_session_create(test_device, test_graph, &options, &streams));
  options.policy = "coselect";
  const cs_op_profile *known = schedules_of(streams);
  assert_non_null(known);
  assert_true(known->complete);
  assert_in_range(confirmed(known), 2, 6); /* the best and the other policies' */
  int measured = known->n_records;
  assert_in_range(measured, 2, 6 + 5);
  const cs_record *best = NULL;
  for (int r = 0; r < known->n_records && !best; r++) {
    if (known->records[r].measured.samples >= CS_SCHEDULE_CONFIRMED) best = &known->records[r];
  }
  if (!has_one_stream(first)) assert_is_planned(first, best->candidate.id);

  options.search_seconds = -1; /* as by default: it was searched before */
  options.search_steps = 0;
  double started = cs_now_seconds();
  assert_ok(cs_session_create(test_device, test_graph, &options, &again));
  assert_true(cs_now_seconds() - started < 5); /* far from the default of 20 s */
  assert_int_equal(schedules_of(streams)->n_records, measured);
  assert_same_plan(first->planned.plan, again->planned.plan);
  cs_session_destroy(again);

  options.frozen = true;
  assert_ok(cs_session_create(test_device, test_graph, &options, &again));
  assert_same_plan(first->planned.plan, again->planned.plan);
  cs_session_destroy(again);
  cs_session_destroy(first);
  cs_session_destroy(streams);
}

/* No measuring: the model's choice, or the times alone where there is no model. */
static void test_no_time_no_search(void **state) {
  (void)state;
  cs_session *session = NULL;
  cs_session_options options = coselect_options();
  options.batch = 3;
  options.search_seconds = 0;
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  assert_null(schedules_of(session));
  assert_verified(session, CS_VERIFY_FULL);
  cs_session_destroy(session);
}

/* An ablation has a search of candidates of its own, which confirms nothing: the plan stays. */
static void test_an_ablation_searches_candidates(void **state) {
  (void)state;
  cs_session *session = NULL, *again = NULL;
  char *json = NULL;
  cs_session_options options = coselect_options();
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  assert_ok(cs_session_ablate(session, "streams", &json));
  assert_non_null(strstr(json, "\"candidates_alone\""));
  cs_string_free(json);
  options.search_seconds = -1;
  options.search_steps = 0;
  assert_ok(cs_session_create(test_device, test_graph, &options, &again));
  assert_same_plan(session->planned.plan, again->planned.plan);
  cs_session_destroy(session);
  cs_session_destroy(again);
}

/* The measurements in a folder of their own, in which the search's end is that of a program with
 * candidates of this version. */
static void write_older(const char *folder, int version) {
  char *text = NULL, *path = NULL, mark[32];
  cs_strbuf name = {0};
  size_t length = 0;
  int marks = 0;
  const char *from = cs_profile_path(test_device->profile);
  cs_strbuf_printf(&name, "%s/%s", folder, strrchr(from, '/') + 1);
  assert_ok(cs_strbuf_take(&name, &path));
  snprintf(mark, sizeof mark, "\"candidates\":%d", CS_CANDIDATES_VERSION);
  assert_ok(cs_make_directories(folder));
  assert_ok(cs_file_read(from, 1 << 24, &text, &length));
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    char *at = strstr(line, "\"op\":\"Schedule ") ? strstr(line, mark) : NULL;
    marks += at != NULL;
    if (!at) fprintf(file, "%s\n", line);
    if (at)
      fprintf(file, "%.*s\"candidates\":%d%s\n", (int)(at - line), line, version,
              at + strlen(mark));
  }
  assert_int_equal(fclose(file), 0);
  assert_true(marks > 0);
  free(text);
  free(path);
}

static const char transposed_json[] =
    "{\"schema\":\"convsched.graph/1\",\"name\":\"transposed\",\"inputs\":[{\"name\":\"x\",\"shape\":"
    "[\"N\",8,6,6],\"dtype\":\"f32\"}],\"nodes\":[{\"name\":\"t\",\"op\":\"ConvTranspose\",\"inputs\":"
    "[\"x\"],\"attrs\":{\"out_channels\":8,\"kernel_shape\":[3,3],\"pads\":[1,1,1,1],\"bias\":true}},"
    MODULE_CONV("b", "x", "8", "3", "1")
    "{\"name\":\"cat\",\"op\":\"Concat\",\"inputs\":[\"t\",\"b.relu\"],\"attrs\":{\"axis\":1}}],"
    "\"outputs\":[\"cat\"]}";

/* What was searched before some operation had other candidates is searched again. */
static void test_other_candidates_are_searched(void **state) {
  (void)state;
  cs_session *session = NULL;
  cs_graph *graph = NULL;
  cs_session_options options = coselect_options();
  char folders[2][256];
  int since = 0;
  assert_ok(cs_graph_parse(transposed_json, strlen(transposed_json), "transposed.json", &graph));
  assert_ok(cs_session_create(test_device, graph, &options, &session));
  assert_ok(cs_program_candidates_since(test_device->profile, session->planned.program, &since));
  assert_true(since > cs_candidates_since("", "Schedule"));
  cs_session_destroy(session);
  for (int older = 0; older < 2; older++) {
    snprintf(folders[older], sizeof folders[older], "%s/since%d", cache_folder, since - older);
    write_older(folders[older], since - older);
  }
  options.search_seconds = -1;
  for (int older = 0; older < 2; older++) {
    options.cache_dir = folders[older];
    assert_ok(cs_session_create(test_device, graph, &options, &session));
    assert_int_equal(session->search.searched, older);
    cs_session_destroy(session);
  }
  cs_graph_destroy(graph);
}

static bool now(void *user) {
  return --*(int *)user < 0;
}

static void test_interrupted(void **state) {
  (void)state;
  cs_session *session = NULL;
  cs_session_options options = coselect_options();
  int calls = 0;
  options.cancelled = now;
  options.cancelled_user = &calls;
  assert_status(cs_session_create(test_device, test_graph, &options, &session), CS_CODE_CANCELLED,
                "interrupted");
  assert_null(session);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_is_measured_is_kept_and_used),
      cmocka_unit_test(test_an_ablation_searches_candidates),
      cmocka_unit_test(test_other_candidates_are_searched),
      cmocka_unit_test(test_no_time_no_search),
      cmocka_unit_test(test_interrupted),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
