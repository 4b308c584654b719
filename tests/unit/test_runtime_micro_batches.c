/* Micro-batches of sessions on a simulated device whose profile is made by hand, so that the best
 * division is known by calculation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* after the headers it needs */
#include <cmocka.h>

#include "base/file.h"
#include "runtime/micro_batches.h"
#include "unit/status_checks.h"

#define MIB ((int64_t)1 << 20)
#define IDENTITY "Handmade; driver 1"

/* Three convolutions, each as the one before. */
static const char chain[] =
    "{\"schema\":\"convsched.graph/1\",\"name\":\"chain\",\"inputs\":[{\"name\":\"x\",\"shape\":"
    "[\"N\",16,32,32],\"dtype\":\"f32\"}],\"nodes\":["
    "{\"name\":\"a\",\"op\":\"Conv\",\"inputs\":[\"x\"],\"attrs\":{\"out_channels\":16,"
    "\"kernel_shape\":[3,3],\"pads\":[1,1,1,1]}},"
    "{\"name\":\"b\",\"op\":\"Conv\",\"inputs\":[\"a\"],\"attrs\":{\"out_channels\":16,"
    "\"kernel_shape\":[3,3],\"pads\":[1,1,1,1]}},"
    "{\"name\":\"c\",\"op\":\"Conv\",\"inputs\":[\"b\"],\"attrs\":{\"out_channels\":16,"
    "\"kernel_shape\":[3,3],\"pads\":[1,1,1,1]}}],\"outputs\":[\"c\"]}";

/* A candidate of a convolution of so many entries. */
typedef struct timed {
  int64_t entries;
  const char *id;
  int64_t workspace_bytes;
  double cold_us, warm_us;
} timed;

typedef struct fixture {
  char folder[64], path[128];
  cs_graph *graph;
  cs_device *device;
} fixture;

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  strcpy(f->folder, "/tmp/convsched-micro-XXXXXX");
  if (!mkdtemp(f->folder)) return -1;
  snprintf(f->path, sizeof f->path, "%s/handmade.jsonl", f->folder);
  ok(cs_graph_parse(chain, strlen(chain), "chain.json", &f->graph));
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  char command[128];
  cs_graph_destroy(f->graph);
  cs_device_close(f->device);
  snprintf(command, sizeof command, "rm -rf %s", f->folder);
  free(f);
  return system(command);
}

static void record_operation(cs_profile *profile, const cs_op_desc *desc, const timed *times,
                             int n) {
  char *signature = NULL;
  ok(cs_op_signature(desc, &signature));
  for (int i = 0; i < n; i++) {
    if (times[i].entries != desc->output.shape.dims[0]) continue;
    cs_candidate candidate = {.id = (char *)(uintptr_t)times[i].id,
                              .family = (char *)(uintptr_t) "handmade",
                              .workspace_bytes = times[i].workspace_bytes,
                              .deterministic = true};
    cs_measurement measured = {.cold_us = times[i].cold_us,
                               .warm_us = times[i].warm_us,
                               .p10_us = times[i].cold_us,
                               .p90_us = times[i].cold_us,
                               .samples = 5};
    ok(cs_profile_add(profile, signature, &candidate, &measured));
    ok(cs_profile_mark_complete(profile, signature, 1024 * MIB));
  }
  free(signature);
}

/* A device with these times for each of the convolutions, in one layout. */
static void open_device(fixture *f, int64_t batch, int64_t cache_bytes, const timed *times, int n) {
  cs_profile *profile = NULL;
  cs_graph *bound = NULL;
  cs_program *program = NULL;
  cs_layout layouts[8] = {CS_LAYOUT_NCHW};
  cs_device_info info = {.backend = "cuda",
                         .name = "Handmade",
                         .identity = IDENTITY,
                         .units = 132,
                         .memory_bytes = (int64_t)64 << 30,
                         .cache_bytes = cache_bytes,
                         .compute_capability = 90,
                         .clock_mhz = 1500,
                         .unit = {65536, 2048, 32, 233472, 1024, 32}};
  ok(cs_profile_open(f->folder, IDENTITY, NULL, &profile));
  ok(cs_profile_set_device(profile, &info));
  ok(cs_graph_bind(f->graph, batch, &bound));
  ok(cs_program_lower(bound, CS_PRECISION_F32, layouts, &program));
  for (int t = 0; t < program->n_tasks; t++) {
    for (int i = 0; i < n; i++) {
      cs_op_desc part = cs_micro_desc(&program->tasks[t].desc, times[i].entries);
      record_operation(profile, &part, times, n);
    }
  }
  ok(cs_profile_export(profile, f->path));
  cs_program_destroy(program);
  cs_graph_destroy(bound);
  cs_profile_close(profile);
  char spec[160];
  snprintf(spec, sizeof spec, "sim:%s", f->path);
  ok(cs_device_open(spec, NULL, &f->device));
}

static cs_session_options options_of(const fixture *f, int64_t batch) {
  cs_session_options options;
  cs_session_options_init(&options);
  options.batch = batch;
  options.policy = "coselect";
  options.workspace_limit = 64 * MIB;
  options.cache_dir = f->folder;
  return options;
}

static cs_session *open_session(const fixture *f, const cs_session_options *options) {
  cs_session *session = NULL;
  ok(cs_session_create(f->device, f->graph, options, &session));
  return session;
}

/* Names of the plan's launches, in order. */
static void assert_order(const cs_session *session, const char *wanted) {
  char found[512] = "";
  const cs_plan *plan = session->planned.plan;
  for (int p = 0; p < plan->n_tasks; p++) {
    size_t at = strlen(found);
    snprintf(found + at, sizeof found - at, "%s%s", p ? " " : "",
             session->planned.program->tasks[plan->tasks[p].task].name);
  }
  assert_string_equal(found, wanted);
}

static void assert_near(double found, double wanted) {
  if (!(found > wanted - 1e-6 && found < wanted + 1e-6)) {
    fail_msg("found %.9g, wanted %.9g", found, wanted);
  }
}

/* ---- The workspace limit ---- */

/* In half the time with 1 MiB of workspace an entry; parts of 64 fit 64 MiB. */
static const timed by_workspace[] = {{128, "slow", 0, 100, 100},
                                     {128, "fast", 128 * MIB, 50, 50},
                                     {64, "slow", 0, 52, 52},
                                     {64, "fast", 64 * MIB, 26, 26}};

static void what_fits_is_taken(void **state) {
  fixture *f = *state;
  open_device(f, 128, 0, by_workspace, 4);
  cs_session_options options = options_of(f, 128);
  cs_session *session = open_session(f, &options);
  assert_near(session->planned.plan->predicted_us, 3 * 52);
  assert_int_equal(session->planned.plan->n_streams, 1);
  assert_int_equal(session->planned.plan->n_tasks, 6);
  assert_true(session->planned.plan->workspace_peak == 64 * MIB);
  assert_string_equal(session->planned.plan->policy, "coselect");
  for (int p = 0; p < 6; p++) {
    assert_string_equal(session->planned.plan->tasks[p].candidate.id, "fast");
  }
  const cs_micro_trial *trial = &session->micro.trials[0];
  assert_int_equal(session->micro.n_trials, 1); /* on two streams only half of that fits */
  assert_true(trial->taken && !trial->measured && !trial->known);
  assert_int_equal(trial->nodes, 3);
  assert_near(trial->whole_us, 300);
  assert_near(trial->divided_us, 156);
  assert_near(trial->cache_us, 0);
  double us;
  ok(cs_session_latency(session, &us));
  assert_near(us, 156);
  cs_session_destroy(session);
}

static void none_is_none(void **state) {
  fixture *f = *state;
  open_device(f, 128, 0, by_workspace, 4);
  cs_session_options options = options_of(f, 128);
  options.micro_batches = 1;
  cs_session *session = open_session(f, &options);
  assert_near(session->planned.plan->predicted_us, 300);
  assert_false(session->micro.considered);
  cs_session_destroy(session);
  options.micro_batches = 0;
  options.policy = "streams"; /* only coselect chooses */
  session = open_session(f, &options);
  assert_near(session->planned.plan->predicted_us, 300);
  cs_session_destroy(session);
}

/* Where the whole batch fits nothing is divided. */
static void nothing_to_gain(void **state) {
  fixture *f = *state;
  open_device(f, 128, 0, by_workspace, 4);
  cs_session_options options = options_of(f, 128);
  options.workspace_limit = 128 * MIB;
  cs_session *session = open_session(f, &options);
  assert_near(session->planned.plan->predicted_us, 150);
  assert_order(session, "a b c");
  assert_true(session->micro.considered);
  /* Two streams with half of the limit each may be faster; that can only be measured. */
  assert_int_equal(session->micro.n_trials, 1);
  assert_int_equal(session->micro.trials[0].streams, 2);
  assert_false(session->micro.trials[0].taken);
  assert_null(session->planned.plan->division);
  cs_session_destroy(session);
}

/* Undivided nothing fits half of the limit: the trial on two streams is still told in numbers. */
static void whole_fits_no_half(void **state) {
  fixture *f = *state;
  static const timed times[] = {{128, "fast", 60 * MIB, 50, 50}, {32, "fast", 10 * MIB, 10, 10}};
  open_device(f, 128, 0, times, 2);
  cs_session_options options = options_of(f, 128);
  cs_session *session = open_session(f, &options);
  char *text = NULL;
  assert_int_equal(session->micro.n_trials, 2);
  assert_int_equal(session->micro.trials[1].streams, 2);
  assert_near(session->micro.trials[1].whole_us, 150);
  assert_near(session->micro.trials[1].divided_us, 120);
  ok(cs_session_info_json(session, &text));
  free(text);
  cs_session_destroy(session);
}

/* What would have to be recorded are the parts that are asked for. */
static void parts_not_recorded(void **state) {
  fixture *f = *state;
  cs_session *session = NULL;
  open_device(f, 128, 0, by_workspace, 4);
  cs_session_options options = options_of(f, 128);
  options.micro_batches = 4;
  fails(cs_session_create(f->device, f->graph, &options, &session), CS_CODE_NOT_FOUND,
        "--batch 128 --dtype f32 --workspace-limit 67108864 --micro-batches 4 --export FILE");
}

/* Nine entries: five and four. */
static void odd_batches(void **state) {
  fixture *f = *state;
  static const timed times[] = {
      {9, "slow", 0, 100, 100}, {5, "fast", 60 * MIB, 30, 30}, {4, "fast", 48 * MIB, 25, 25}};
  open_device(f, 9, 0, times, 3);
  cs_session_options options = options_of(f, 9);
  cs_session *session = open_session(f, &options);
  assert_near(session->planned.plan->predicted_us, 165);
  assert_order(session, "a/0 b/0 c/0 a/1 b/1 c/1");
  cs_session_destroy(session);
}

/* Batches below 8 are left alone, and so are nodes that a pin names. */
static void what_is_not_divided(void **state) {
  fixture *f = *state;
  static const timed times[] = {{4, "slow", 0, 100, 100}, {2, "fast", 0, 10, 10}};
  open_device(f, 4, 0, times, 2);
  cs_session_options options = options_of(f, 4);
  cs_session *session = open_session(f, &options);
  assert_near(session->planned.plan->predicted_us, 300);
  cs_session_destroy(session);
  options.micro_batches = 2; /* but when it is asked for */
  options.policy = "sequential";
  session = open_session(f, &options);
  assert_near(session->planned.plan->predicted_us, 60);
  cs_session_destroy(session);
  static const char *const pins[] = {"b=fast"};
  options.pins = pins;
  options.n_pins = 1;
  session = open_session(f, &options);
  assert_near(session->planned.plan->predicted_us, 60);
  cs_session_destroy(session);
  static const char *const wrong[] = {"b=slow"};
  options.pins = wrong;
  cs_session *none = NULL;
  fails(cs_session_create(f->device, f->graph, &options, &none), CS_CODE_NOT_FOUND,
        "node b/0: no candidate \"slow\" (pinned)");
}

/* ---- The cache ---- */

/* 16·32·32 floats in and as many out are 128 KiB an entry: 16 MiB of 128 entries, 4 MiB of 32. What
 * is in the cache takes a third less. */
static void what_stays_in_the_cache(void **state) {
  fixture *f = *state;
  static const timed times[] = {{128, "c", 0, 100, 100}, {32, "c", 0, 27, 18}};
  open_device(f, 128, 5 * MIB, times, 2);
  cs_session_options options = options_of(f, 128);
  cs_session *session = open_session(f, &options);
  const cs_micro_trial *trial = &session->micro.trials[0];
  assert_int_equal(session->micro.n_trials, 1);
  assert_near(trial->divided_us, 4 * (27 + 18 + 18));
  assert_near(trial->cache_us, 4 * (9 + 9));
  /* The timeline knows of cold times alone: by these it is slower, and not taken. */
  assert_false(trial->taken);
  assert_order(session, "a b c");
  cs_session_destroy(session);
}

/* ---- Plans ---- */

static char *text_of(const cs_session *session) {
  char *text = NULL;
  ok(cs_session_plan_json(session, &text));
  return text;
}

static void write_plan(const fixture *f, const char *text, char *path, size_t size) {
  snprintf(path, size, "%s/plan.json", f->folder);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static void plan_files(void **state) {
  fixture *f = *state;
  char path[128], *text, *again;
  open_device(f, 128, 0, by_workspace, 4);
  cs_session_options options = options_of(f, 128);
  cs_session *session = open_session(f, &options);
  text = text_of(session);
  assert_non_null(strstr(text, "\"micro_batches\""));
  cs_session_destroy(session);
  write_plan(f, text, path, sizeof path);
  options.plan_path = path;
  options.policy = NULL;
  session = open_session(f, &options);
  assert_order(session, "a/0 b/0 c/0 a/1 b/1 c/1");
  again = text_of(session);
  assert_string_equal(text, again);
  cs_session_destroy(session);
  free(again);
  options.micro_batches = 2;
  fails(cs_session_create(f->device, f->graph, &options, &session), CS_CODE_USAGE,
        "plan_path goes without micro_batches");
  free(text);
}

/* Replaces what is there once. */
static char *with(const char *text, const char *from, const char *to) {
  size_t at = 0, length = strlen(text), size = length + strlen(to) + 1;
  while (at < length && strncmp(text + at, from, strlen(from)) != 0) at++;
  assert_true(at < length);
  char *out = malloc(size);
  snprintf(out, size, "%.*s%s%s", (int)at, text, to, text + at + strlen(from));
  return out;
}

static void damaged_plan_files(void **state) {
  fixture *f = *state;
  static const struct {
    const char *from, *to, *says;
  } damages[] = {
      {"\"parts\": [", "\"parts\": [1, ", "node a: "},
      {"\"parts\": [", "\"parts\": [0, ", "$.micro_batches[0].parts[0]: found 0, wanted batch"},
      {"\"parts\": [", "\"parts\": [\"64\", ", "$.micro_batches[0].parts[0]: found \"64\", "},
      {"\"parts\": [", "\"parts\": [64.5, ", "$.micro_batches[0].parts[0]: found 64.5, "},
      {"\"nodes\": [", "\"nodes\": [3, ", "$.micro_batches[0].nodes[0]: found 3, wanted a node"},
      {"\"parts\"", "\"sizes\"", "$.micro_batches[0]"},
      {"\"micro_batches\": [", "\"micro_batches\": [7, ", "$.micro_batches[0]"},
      {"\"nodes\": [", "\"nodes\": [\"nobody\", ", "wanted a node of the graph"},
      {"\"nodes\": [", "\"nodes\": [\"a\", ", "found \"a\" again"},
      {"\"micro_batches\"", "\"micro_battles\"", "micro_battles"},
  };
  char path[128];
  open_device(f, 128, 0, by_workspace, 4);
  cs_session_options options = options_of(f, 128);
  cs_session *session = open_session(f, &options);
  char *text = text_of(session);
  cs_session_destroy(session);
  options.policy = NULL;
  for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
    char *damaged = with(text, damages[i].from, damages[i].to);
    write_plan(f, damaged, path, sizeof path);
    options.plan_path = path;
    fails(cs_session_create(f->device, f->graph, &options, &session), CS_CODE_BAD_INPUT,
          damages[i].says);
    free(damaged);
  }
  free(text);
}

/* ---- As asked for ---- */

static void as_many_parts_as_asked_for(void **state) {
  fixture *f = *state;
  open_device(f, 128, 0, by_workspace, 4);
  cs_session_options options = options_of(f, 128);
  cs_session *sequential = NULL;
  options.micro_batches = 2;
  options.policy = "sequential";
  cs_session *session = open_session(f, &options);
  assert_order(session, "a/0 b/0 c/0 a/1 b/1 c/1");
  assert_near(session->planned.plan->predicted_us, 156);
  cs_session_destroy(session);
  options.policy = "streams";
  session = open_session(f, &options);
  assert_int_equal(session->planned.plan->n_streams, 2);
  /* What others are compared with is undivided. */
  ok(cs_session_fork(session, "sequential", &sequential));
  assert_order(sequential, "a b c");
  cs_session_destroy(sequential);
  cs_session_destroy(session);
  options.micro_batches = 1025;
  fails(cs_session_create(f->device, f->graph, &options, &session), CS_CODE_USAGE,
        "micro_batches 1025: wanted 0 to 1024");
  options.micro_batches = 4; /* parts of 32 were not recorded */
  fails(cs_session_create(f->device, f->graph, &options, &session), CS_CODE_NOT_FOUND,
        "not recorded");
}

static void sizes_of_parts(void **state) {
  (void)state;
  static const int64_t of_128[] = {64, 32, 16, 8, 4, 2, 1};
  static const int64_t of_1000[] = {500, 250, 125, 63, 55, 32, 16, 8, 4, 2, 1};
  static const int64_t of_7[] = {4, 3, 2, 1};
  int64_t sizes[CS_MICRO_SIZES];
  assert_int_equal(cs_micro_sizes(128, sizes), 7);
  assert_memory_equal(sizes, of_128, sizeof of_128);
  assert_int_equal(cs_micro_sizes(1000, sizes), 11);
  assert_memory_equal(sizes, of_1000, sizeof of_1000);
  assert_int_equal(cs_micro_sizes(7, sizes), 4);
  assert_memory_equal(sizes, of_7, sizeof of_7);
  assert_int_equal(cs_micro_sizes(1, sizes), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sizes_of_parts),
      TEST(what_fits_is_taken),
      TEST(none_is_none),
      TEST(nothing_to_gain),
      TEST(whole_fits_no_half),
      TEST(parts_not_recorded),
      TEST(odd_batches),
      TEST(what_is_not_divided),
      TEST(what_stays_in_the_cache),
      TEST(plan_files),
      TEST(damaged_plan_files),
      TEST(as_many_parts_as_asked_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
