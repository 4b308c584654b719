/* Kernels, counters and co-runs on a made-up GPU: which sets, which combinations, who wins, and
 * what is not done again. */
#include <math.h>
#include <unistd.h>

#include "profiler/corun.h"
#include "unit/graph_fixture.h"
#include "unit/profiler_fake.h"

/* Two branches of two convolutions each and one of one, between two single ones. */
static const char module[] =
    "{'name':'stem','op':'Conv','inputs':['x'],'attrs':{'out_channels':4,'kernel_shape':[1,1]}},"
    "{'name':'a','op':'Conv','inputs':['stem'],'attrs':{'out_channels':2,'kernel_shape':[1,1]}},"
    "{'name':'b1','op':'Conv','inputs':['stem'],'attrs':{'out_channels':3,'kernel_shape':[1,1]}},"
    "{'name':'b2','op':'Conv','inputs':['b1'],'attrs':{'out_channels':2,'kernel_shape':[3,3],"
    "'pads':[1,1,1,1]}},"
    "{'name':'c1','op':'Conv','inputs':['stem'],'attrs':{'out_channels':5,'kernel_shape':[1,1]}},"
    "{'name':'c2','op':'Conv','inputs':['c1'],'attrs':{'out_channels':2,'kernel_shape':[3,3],"
    "'pads':[1,1,1,1]}},"
    "{'name':'cat','op':'Concat','inputs':['a','b2','c2'],'attrs':{'axis':1}},"
    "{'name':'last','op':'Conv','inputs':['cat'],'attrs':{'out_channels':2,'kernel_shape':[1,1]}}";

typedef struct fixture {
  char directory[64];
  cs_profile *profile;
  cs_graph *bound, *graph;
  cs_program *program;
  cs_layout layouts[64];
  cs_measure_options options;
  cs_profiling steps;
  fake_backend fake;
  char warning[512]; /* the latest */
  int warnings;
  cs_logger logger;
} fixture;

/* The fast one fills a unit's registers; the lean one is a little slower alone. */
static const fake_candidate complementary[] = {{"fast", FAKE_HOGS, 10, 0, 0},
                                               {"lean", FAKE_RIGHT, 12, 0, 0}};

static void note_warning(void *user, cs_log_level level, const char *message) {
  fixture *f = user;
  if (level != CS_LOG_WARNING) return;
  snprintf(f->warning, sizeof f->warning, "%s", message);
  f->warnings++;
}

static int set_up(void **state) {
  fixture *f = cs_calloc(1, sizeof *f);
  cs_pass_report report;
  snprintf(f->directory, sizeof f->directory, "/tmp/cs-corun-XXXXXX");
  if (!mkdtemp(f->directory)) return -1;
  f->logger = (cs_logger){note_warning, f};
  cs_graph *graph = graph_of("'N',3,5,5", module, "'last'");
  assert_ok(cs_graph_bind(graph, 2, &f->bound));
  cs_graph_destroy(graph);
  assert_ok(cs_graph_apply_passes(f->bound, CS_PASSES_ALL, &report, &f->graph));
  assert_ok(cs_program_lower(f->graph, CS_PRECISION_F32, f->layouts, &f->program));
  assert_ok(cs_profile_open(f->directory, f->directory, NULL, &f->profile));
  f->options = (cs_measure_options){.workspace_limit = 1 << 20};
  f->fake = fake_create(complementary, 2);
  f->fake.base.vtable = &fake_gpu_vtable;
  f->fake.info.max_streams = 8;
  f->fake.info.unit = (cs_unit_limits){.registers = 65536,
                                       .threads = 2048,
                                       .blocks = 32,
                                       .shared_bytes = 233472,
                                       .reserved_shared_bytes = 1024,
                                       .warp_size = 32};
  f->steps = (cs_profiling){.profile = f->profile,
                            .backend = &f->fake.base,
                            .program = f->program,
                            .options = &f->options,
                            .logger = &f->logger};
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  char command[128];
  cs_profile_close(f->profile);
  cs_program_destroy(f->program);
  cs_graph_destroy(f->graph);
  cs_graph_destroy(f->bound);
  snprintf(command, sizeof command, "rm -rf %s", f->directory);
  int rc = system(command);
  int leaked = f->fake.allocated;
  free(f);
  return rc ? rc : leaked;
}

static int task(const fixture *f, const char *name) {
  for (int t = 0; t < f->program->n_tasks; t++) {
    if (strcmp(f->program->tasks[t].name, name) == 0) return t;
  }
  fail_msg("no task %s", name);
  return -1;
}

static const cs_op_profile *known(const fixture *f, const char *name) {
  char *signature = NULL;
  assert_ok(cs_op_signature(&f->program->tasks[task(f, name)].desc, &signature));
  const cs_op_profile *found = cs_profile_find(f->profile, signature);
  free(signature);
  assert_non_null(found);
  return found;
}

static void measure(fixture *f) {
  cs_measure_report report;
  assert_ok(cs_profiling_measure(&f->steps, &report));
}

/* ---- Sets ---- */

static bool has_set(const fixture *f, const cs_corun_set *sets, int n, int n_members,
                    const char *const *names) {
  for (int s = 0; s < n; s++) {
    bool same = sets[s].n == n_members;
    for (int i = 0; same && i < n_members; i++) {
      bool found = false;
      for (int k = 0; k < n_members; k++) found = found || sets[s].tasks[k] == task(f, names[i]);
      same = found;
    }
    if (same) return true;
  }
  return false;
}
#define HAS(n_members, ...) has_set(f, sets, n, n_members, (const char *const[]){__VA_ARGS__})

/* Of three branches: every choice of one convolution from each, and all pairs across branches. */
static void test_sets(void **state) {
  fixture *f = *state;
  cs_corun_set *sets = NULL;
  int n = 0;
  double weights[64];
  for (int t = 0; t < 64; t++) weights[t] = 1 + t;
  assert_ok(cs_corun_sets_of(f->program, NULL, weights, 8, &sets, &n));
  assert_int_equal(n, 4 + 8);
  assert_true(HAS(3, "a", "b1", "c1") && HAS(3, "a", "b1", "c2"));
  assert_true(HAS(3, "a", "b2", "c1") && HAS(3, "a", "b2", "c2"));
  assert_true(HAS(2, "a", "b1") && HAS(2, "a", "c2") && HAS(2, "b2", "c1") && HAS(2, "b1", "c2"));
  assert_false(HAS(2, "b1", "b2"));
  assert_false(HAS(2, "stem", "a"));
  /* The heaviest comes first. */
  assert_int_equal(sets[0].tasks[2], task(f, "c2"));
  free(sets);
  assert_ok(cs_corun_sets_of(f->program, NULL, weights, 2, &sets, &n));
  assert_int_equal(n, 8);
  free(sets);
}

/* Only what is asked for; sets of the same signatures come once. */
static void test_wanted_and_repeated(void **state) {
  fixture *f = *state;
  cs_corun_set *sets = NULL;
  int n = 0;
  double weights[64] = {0};
  bool wanted[64] = {false};
  wanted[task(f, "a")] = wanted[task(f, "b1")] = wanted[task(f, "c1")] = true;
  assert_ok(cs_corun_sets_of(f->program, wanted, weights, 8, &sets, &n));
  assert_int_equal(n, 1 + 3);
  free(sets);
  f->program->tasks[task(f, "c1")].desc = f->program->tasks[task(f, "b1")].desc;
  assert_ok(cs_corun_sets_of(f->program, wanted, weights, 8, &sets, &n));
  assert_int_equal(n, 1 + 2); /* a + b1 is a + c1 */
  free(sets);
}

/* ---- Kernels and counters ---- */

static void test_kernels_with_times(void **state) {
  fixture *f = *state;
  measure(f);
  const cs_op_profile *operation = known(f, "a");
  assert_int_equal(operation->n_records, 2);
  for (int r = 0; r < 2; r++) {
    assert_int_equal(operation->records[r].n_kernels, 1);
    assert_false(operation->records[r].kernels[0].counted);
  }
  assert_int_equal(operation->records[0].kernels[0].info.registers, 168);
  assert_string_equal(operation->records[1].kernels[0].info.name, "kernel of lean");
}

/* A profile of times alone gets its kernels without a sample being taken. */
static void test_kernels_added_later(void **state) {
  fixture *f = *state;
  cs_kernels_report report = {0};
  f->fake.base.vtable = &fake_vtable;
  measure(f);
  assert_null(known(f, "a")->records[0].kernels);
  double before = known(f, "a")->records[0].measured.cold_us;
  f->fake.base.vtable = &fake_gpu_vtable;
  assert_ok(cs_profiling_kernels(&f->steps, false, &report));
  assert_int_equal(report.recorded, 2 * 7);
  assert_int_equal(f->fake.counted, 0);
  assert_non_null(known(f, "a")->records[1].kernels);
  assert_true(known(f, "a")->records[0].measured.cold_us == before);
  int schedules = f->fake.schedules;
  assert_ok(cs_profiling_kernels(&f->steps, false, &report));
  assert_int_equal(f->fake.schedules, schedules);
}

static void test_counters(void **state) {
  fixture *f = *state;
  cs_kernels_report report = {0};
  measure(f);
  assert_ok(cs_profiling_kernels(&f->steps, true, &report));
  assert_int_equal(report.counted, 2 * 7);
  assert_int_equal(report.differences, 0);
  assert_string_equal(report.unavailable, "");
  const cs_kernel_profile *kernel = &known(f, "b2")->records[0].kernels[0];
  assert_true(kernel->counted);
  assert_true(kernel->counters.value[CS_COUNTER_stall_registers] == 7);
  int counted = f->fake.counted;
  assert_ok(cs_profiling_kernels(&f->steps, true, &report));
  assert_int_equal(f->fake.counted, counted);
}

/* No permission: asked once, said, and the rest goes on. */
static void test_counters_unavailable(void **state) {
  fixture *f = *state;
  cs_kernels_report report = {0};
  measure(f);
  f->fake.uncounted = true;
  assert_ok(cs_profiling_kernels(&f->steps, true, &report));
  assert_int_equal(report.counted, 0);
  assert_int_equal(f->fake.counted, 1);
  assert_non_null(strstr(report.unavailable, "ask the administrator"));
}

/* Eight candidates are traced: what runs otherwise is one warning a candidate, and local memory
 * that a tracer leaves out is none, only counted. */
static void test_traced_against_told(void **state) {
  fixture *f = *state;
  cs_kernels_report report = {0};
  f->fake.spills = true;
  measure(f);
  assert_ok(cs_profiling_kernels(&f->steps, true, &report));
  assert_int_equal(report.differences, 0);
  assert_int_equal(report.untold_local, 8);
  assert_int_equal(f->warnings, 0);
}

static void test_traced_otherwise_than_told(void **state) {
  fixture *f = *state;
  cs_kernels_report report = {0};
  f->fake.runs_wide = true;
  measure(f);
  assert_ok(cs_profiling_kernels(&f->steps, true, &report));
  assert_int_equal(report.differences, 8);
  assert_int_equal(report.untold_local, 0);
  assert_int_equal(f->warnings, 8);
  assert_non_null(strstr(f->warning, "kernel of lean: registers 40 by the driver, 48 as traced\n"));
  assert_non_null(
      strstr(f->warning, "dynamic shared bytes 40000 by the driver, 40512 as traced\n"));
}

/* ---- Co-runs ---- */

/* Alone the fast one wins, together the lean one does: one hogging candidate after the other takes
 * 10 µs each, lean ones overlap at 12. */
static void test_joint_choice_wins(void **state) {
  fixture *f = *state;
  cs_corun_report report = {0};
  cs_corun_set *sets = NULL;
  cs_corun_outcome outcome;
  int n = 0;
  measure(f);
  assert_ok(cs_profiling_coruns(&f->steps, &report));
  assert_int_equal(report.sets, 12);
  assert_int_equal(report.sets_skipped, 0);
  assert_int_equal(report.combinations, 8 * 4 + 4 * 8);
  assert_ok(cs_profiling_corun_sets(&f->steps, &sets, &n));
  for (int s = 0; s < n; s++) {
    assert_ok(cs_profiling_corun_outcome(&f->steps, &sets[s], &outcome));
    assert_non_null(outcome.fastest_alone);
    assert_true(fabs(outcome.fastest_alone->concurrent_us - 10 * sets[s].n) < 1);
    assert_true(fabs(outcome.fastest_alone->serial_us - 10 * sets[s].n) < 1);
    assert_true(fabs(outcome.best->concurrent_us - 12) < 1);
    assert_true(fabs(outcome.best->serial_us - 12 * sets[s].n) < 1);
    assert_true(outcome.best->samples >= CS_CORUN_CONFIRMED);
    assert_string_equal(outcome.best->members[0].candidate, "lean");
    assert_string_equal(outcome.fastest_alone->limiter, "registers");
    assert_true(isnan(outcome.best->overlap));
  }
  free(sets);
}

/* A second run measures nothing; frozen is content with what is there. */
static void test_second_run(void **state) {
  fixture *f = *state;
  cs_corun_report report = {0}, again = {0};
  measure(f);
  assert_ok(cs_profiling_coruns(&f->steps, &report));
  assert_ok(cs_profiling_corun_counters(&f->steps, &report));
  int schedules = f->fake.schedules, counted = f->fake.counted;
  f->options.frozen = true;
  assert_ok(cs_profiling_coruns(&f->steps, &again));
  f->options.frozen = false;
  assert_ok(cs_profiling_corun_counters(&f->steps, &again));
  assert_int_equal(f->fake.schedules, schedules);
  assert_int_equal(f->fake.counted, counted);
  assert_int_equal(again.sets_cached, 12);
  assert_int_equal(again.combinations, 0);
}

static void test_frozen(void **state) {
  fixture *f = *state;
  cs_corun_report report = {0};
  measure(f);
  f->options.frozen = true;
  assert_fails(cs_profiling_coruns(&f->steps, &report), CS_CODE_NOT_FOUND,
               "a + b1 + c1: not measured together");
}

/* Overlap comes from the trace and counters of the whole: of the fastest alone and of the best. */
static void test_inspected(void **state) {
  fixture *f = *state;
  cs_corun_report report = {0};
  cs_corun_set *sets = NULL;
  cs_corun_outcome outcome;
  int n = 0;
  measure(f);
  assert_ok(cs_profiling_coruns(&f->steps, &report));
  assert_int_equal(f->fake.counted, 0);
  assert_ok(cs_profiling_corun_counters(&f->steps, &report));
  assert_int_equal(report.traced, 2 * 12);
  assert_int_equal(report.counted, 2 * 12);
  assert_ok(cs_profiling_corun_sets(&f->steps, &sets, &n));
  assert_ok(cs_profiling_corun_outcome(&f->steps, &sets[n - 1], &outcome));
  assert_true(fabs(outcome.best->overlap - 0.5) < 1e-12);
  assert_true(outcome.best->counted);
  assert_true(outcome.best->counters.value[CS_COUNTER_stall_registers] == 9);
  assert_true(fabs(outcome.best->concurrent_us - 12) < 1);
  free(sets);
}

/* Counters are refused, once; traces go on. */
static void test_traced_without_counters(void **state) {
  fixture *f = *state;
  cs_corun_report report = {0};
  measure(f);
  assert_ok(cs_profiling_coruns(&f->steps, &report));
  f->fake.uncounted = true;
  assert_ok(cs_profiling_corun_counters(&f->steps, &report));
  assert_int_equal(report.traced, 2 * 12);
  assert_int_equal(report.counted, 0);
  assert_int_equal(f->fake.counted, 1);
  assert_non_null(strstr(report.unavailable, "ask the administrator"));
  assert_string_equal(report.untraced, "");
}

/* Two workspaces at once exceed the limit: the larger is given up for a candidate with less. */
static void test_workspace_limit(void **state) {
  fixture *f = *state;
  static const fake_candidate hungry[] = {{"hungry", FAKE_RIGHT, 10, 700, 0},
                                          {"modest", FAKE_RIGHT, 12, 0, 0}};
  cs_corun_report report = {0};
  cs_corun_set *sets = NULL;
  cs_corun_outcome outcome;
  int n = 0;
  f->fake.candidates = hungry;
  f->options.workspace_limit = 1024;
  measure(f);
  assert_ok(cs_profiling_coruns(&f->steps, &report));
  assert_int_equal(report.sets_skipped, 0);
  assert_ok(cs_profiling_corun_sets(&f->steps, &sets, &n));
  for (int s = 0; s < n; s++) {
    int hungry_ones = 0;
    assert_ok(cs_profiling_corun_outcome(&f->steps, &sets[s], &outcome));
    const cs_corun *base = outcome.fastest_alone;
    for (int i = 0; i < base->n; i++) {
      hungry_ones += strcmp(base->members[i].candidate, "hungry") == 0;
    }
    assert_int_equal(hungry_ones, 1);
  }
  free(sets);
}

/* Nothing fits together: the set is passed over, now and when frozen. */
static void test_nothing_fits(void **state) {
  fixture *f = *state;
  static const fake_candidate hungry[] = {{"hungry", FAKE_RIGHT, 10, 700, 0}};
  cs_corun_report report = {0};
  f->fake.candidates = hungry;
  f->fake.n_candidates = 1;
  f->options.workspace_limit = 1024;
  measure(f);
  assert_ok(cs_profiling_coruns(&f->steps, &report));
  assert_int_equal(report.sets_skipped, 12);
  assert_int_equal(report.combinations, 0);
  f->options.frozen = true;
  assert_ok(cs_profiling_coruns(&f->steps, &report));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(test_sets),
      TEST(test_wanted_and_repeated),
      TEST(test_kernels_with_times),
      TEST(test_kernels_added_later),
      TEST(test_counters),
      TEST(test_counters_unavailable),
      TEST(test_traced_against_told),
      TEST(test_traced_otherwise_than_told),
      TEST(test_joint_choice_wins),
      TEST(test_second_run),
      TEST(test_frozen),
      TEST(test_inspected),
      TEST(test_traced_without_counters),
      TEST(test_workspace_limit),
      TEST(test_nothing_fits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
