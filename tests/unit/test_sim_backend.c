/* The sim backend on a profile recorded on an H100, and on files that are none. */
#include <math.h>
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

#include "backend/backend.h"
#include "graph/lower.h"
#include "graph/program.h"
#include "profiler/profile.h"
#include "unit/status_checks.h"

#define RECORDED CS_SOURCE_DIR "/tests/data/profiles/h100-f16-b1.jsonl.gz"
#define LIMIT (INT64_C(256) << 20)

/* ---- The device, and GoogLeNet in channels-last layout ---- */

typedef struct fixture {
  cs_backend *backend;
  const cs_backend_vtable *vtable;
  cs_graph *graph, *bound, *passed;
  cs_program *program;
} fixture;

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  cs_pass_report report;
  ok(cs_sim_backend_open_file(RECORDED, NULL, &f->backend));
  f->vtable = f->backend->vtable;
  ok(cs_graph_load(CS_SOURCE_DIR "/models/googlenet.json", &f->graph));
  ok(cs_graph_bind(f->graph, 1, &f->bound));
  ok(cs_graph_apply_passes(f->bound, CS_PASSES_ALL, &report, &f->passed));
  cs_layout *layouts = cs_calloc((size_t)f->passed->n_values, sizeof *layouts);
  for (int v = 0; v < f->passed->n_values; v++) {
    if (cs_graph_layout_allowed(f->passed, v, CS_LAYOUT_NHWC)) layouts[v] = CS_LAYOUT_NHWC;
  }
  ok(cs_program_lower(f->passed, CS_PRECISION_F16, layouts, &f->program));
  free(layouts);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  cs_program_destroy(f->program);
  cs_graph_destroy(f->passed);
  cs_graph_destroy(f->bound);
  cs_graph_destroy(f->graph);
  f->vtable->close(f->backend);
  free(f);
  return 0;
}

static const cs_op_desc *task_of(const fixture *f, const char *name) {
  for (int t = 0; t < f->program->n_tasks; t++) {
    if (strcmp(f->program->tasks[t].name, name) == 0) return &f->program->tasks[t].desc;
  }
  fail_msg("no task %s", name);
  return NULL;
}

/* What the profile says of an operation. */
static const cs_op_profile *known_of(const fixture *f, const cs_op_desc *desc) {
  char *signature = NULL;
  ok(cs_op_signature(desc, &signature));
  const cs_op_profile *known = cs_profile_find(f->vtable->recorded(f->backend), signature);
  free(signature);
  assert_non_null(known);
  return known;
}

static void it_is_the_recorded_device(void **state) {
  fixture *f = *state;
  const cs_device_info *info = f->vtable->info(f->backend);
  assert_string_equal(info->backend, "sim");
  assert_string_equal(info->name, "NVIDIA H100 80GB HBM3");
  assert_int_equal(info->units, 132);
  assert_int_equal(info->unit.shared_bytes, 233472);
  assert_string_equal(info->identity, cs_profile_identity(f->vtable->recorded(f->backend)));
  assert_non_null(strstr(info->identity, "cuda;name=NVIDIA H100"));
}

static void layouts_are_the_recorded_ones(void **state) {
  fixture *f = *state;
  cs_layout layouts[CS_MAX_DEVICE_LAYOUTS];
  int n = f->vtable->layouts(f->backend, CS_PRECISION_F16, layouts);
  assert_int_equal(n, 2);
  assert_true(layouts[0] != layouts[1]);
  for (int i = 0; i < n; i++) {
    assert_true(layouts[i] == CS_LAYOUT_NHWC || layouts[i] == CS_LAYOUT_NCHW);
  }
  assert_int_equal(f->vtable->layouts(f->backend, CS_PRECISION_BF16, layouts), 1);
}

/* ---- Candidates ---- */

static size_t enumerate(const fixture *f, const cs_op_desc *desc, int64_t limit, bool deterministic,
                        cs_candidate_list *out) {
  cs_enumerate_options options = {.workspace_limit = limit, .deterministic = deterministic};
  *out = (cs_candidate_list){0};
  ok(f->vtable->enumerate(f->backend, desc, &options, out));
  return out->n;
}

static void candidates_are_the_recorded_ones(void **state) {
  fixture *f = *state;
  const cs_op_desc *desc = task_of(f, "conv2/3x3");
  const cs_op_profile *known = known_of(f, desc);
  size_t usable = 0, small = 0;
  for (int r = 0; r < known->n_records; r++) {
    const cs_record *record = &known->records[r];
    usable += !record->measured.rejected;
    small += !record->measured.rejected && record->candidate.workspace_bytes == 0;
  }
  assert_true(usable > small && small > 0);
  cs_candidate_list list;
  assert_int_equal(enumerate(f, desc, LIMIT, false, &list), usable);
  assert_non_null(cs_candidate_find(&list, known->records[0].candidate.id));
  cs_candidate_list_free(&list);
  assert_int_equal(enumerate(f, desc, 0, false, &list), small);
  for (size_t i = 0; i < list.n; i++) assert_int_equal(list.items[i].workspace_bytes, 0);
  cs_candidate_list_free(&list);
  enumerate(f, desc, LIMIT, true, &list);
  for (size_t i = 0; i < list.n; i++) assert_true(list.items[i].deterministic);
  cs_candidate_list_free(&list);
}

static void what_was_not_recorded_has_no_candidates(void **state) {
  fixture *f = *state;
  cs_op_desc other = *task_of(f, "conv2/3x3");
  cs_candidate_list list;
  cs_exec *exec = NULL;
  other.precision = CS_PRECISION_BF16;
  assert_int_equal(enumerate(f, &other, LIMIT, false, &list), 0);
  cs_candidate_list_free(&list);
  cs_candidate unknown = {.id = (char[]){"cudnn.graph:eng999"}};
  fails(f->vtable->prepare(f->backend, task_of(f, "conv2/3x3"), &unknown, &exec), CS_CODE_BAD_INPUT,
        "eng999");
  assert_null(exec);
}

/* ---- Schedules ---- */

static const cs_record *fastest(const fixture *f, const char *task) {
  const cs_op_profile *known = known_of(f, task_of(f, task));
  assert_false(known->records[0].measured.rejected);
  return &known->records[0];
}

static cs_exec *prepare(const fixture *f, const char *task) {
  cs_exec *exec = NULL;
  ok(f->vtable->prepare(f->backend, task_of(f, task), &fastest(f, task)->candidate, &exec));
  return exec;
}

static double latency(const fixture *f, const cs_launch *launches, int n, int n_streams) {
  cs_schedule *schedule = NULL;
  double us[3], b2b;
  ok(f->vtable->schedule_create(f->backend, launches, n, &(cs_stream_set){.n = n_streams}, true,
                                &schedule));
  ok(f->vtable->schedule_latency(schedule, 3, us));
  assert_true(us[0] == us[1] && us[1] == us[2]);
  ok(f->vtable->schedule_b2b(schedule, 10, &b2b));
  assert_true(b2b == us[0]);
  fails(f->vtable->schedule_run(schedule), CS_CODE_USAGE, "simulated");
  f->vtable->schedule_destroy(schedule);
  return us[0];
}

/* Two branches of module 3a. */
static void latency_is_the_models(void **state) {
  fixture *f = *state;
  const char *names[] = {"inception_3a/3x3", "inception_3a/5x5"};
  cs_launch launches[2] = {{.name = names[0], .merged = -1}, {.name = names[1], .merged = -1}};
  double us[2];
  for (int i = 0; i < 2; i++) {
    launches[i].exec = prepare(f, names[i]);
    us[i] = fastest(f, names[i])->measured.cold_us;
    assert_true(fabs(latency(f, &launches[i], 1, 1) - us[i]) < 1e-6);
    assert_int_equal(f->vtable->exec_workspace(launches[i].exec),
                     fastest(f, names[i])->candidate.workspace_bytes);
  }
  double longest = us[0] > us[1] ? us[0] : us[1];
  assert_true(fabs(latency(f, launches, 2, 1) - us[0] - us[1]) < 1e-6);
  launches[1].stream = 1;
  double beside = latency(f, launches, 2, 2);
  assert_true(beside >= longest && beside < us[0] + us[1]);
  int first = 0;
  launches[1].waits = &first;
  launches[1].n_waits = 1;
  assert_true(latency(f, launches, 2, 2) >= us[0] + us[1]);
  for (int i = 0; i < 2; i++) f->vtable->exec_destroy((cs_exec *)(uintptr_t)launches[i].exec);
}

/* Two launches of one candidate as one kernel; the recorded profile has none that merges, so one is
 * made to. */
static void a_merged_launch_is_one_kernel(void **state) {
  fixture *f = *state;
  const cs_record *record = fastest(f, "inception_3a/3x3");
  cs_candidate *candidate = (cs_candidate *)(uintptr_t)&record->candidate;
  cs_launch launches[2] = {{.exec = prepare(f, "inception_3a/3x3"), .name = "a", .merged = -1}};
  cs_schedule *schedule = NULL;
  int count = 0;
  launches[1] = launches[0];
  launches[1].merged = 0;
  fails(f->vtable->schedule_create(f->backend, launches, 2, &cs_one_stream, true, &schedule),
        CS_CODE_BAD_INPUT, "launch 1 (a, ");
  candidate->merges = true;
  double one = record->measured.cold_us, both = latency(f, launches, 2, 1);
  assert_true(both >= one - 1e-6 && both < 2 * one - 1);
  ok(f->vtable->schedule_create(f->backend, launches, 2, &cs_one_stream, true, &schedule));
  ok(f->vtable->schedule_kernels(schedule, NULL, 0, &count));
  assert_int_equal(count, record->n_kernels);
  f->vtable->schedule_destroy(schedule);
  schedule = NULL;
  launches[1].stream = 1;
  fails(f->vtable->schedule_create(f->backend, launches, 2, &(cs_stream_set){.n = 2}, true,
                                   &schedule),
        CS_CODE_BAD_INPUT, "on one stream, without waits");
  launches[1].stream = 0;
  launches[1].merged = 1; /* with itself */
  fails(f->vtable->schedule_create(f->backend, launches, 2, &cs_one_stream, true, &schedule),
        CS_CODE_BAD_INPUT, "wanted the leader");
  candidate->merges = false;
  f->vtable->exec_destroy((cs_exec *)(uintptr_t)launches[0].exec);
}

static void kernels_are_the_recorded_ones(void **state) {
  fixture *f = *state;
  const cs_record *record = fastest(f, "inception_3a/3x3");
  cs_launch launches[2] = {{.exec = prepare(f, "inception_3a/3x3"), .name = "a", .merged = -1}};
  cs_kernel_info infos[8];
  cs_schedule *schedule = NULL;
  int count = 0;
  launches[1] = launches[0];
  assert_in_range(record->n_kernels, 1, 4);
  ok(f->vtable->schedule_create(f->backend, launches, 2, &cs_one_stream, true, &schedule));
  ok(f->vtable->schedule_kernels(schedule, NULL, 0, &count));
  assert_int_equal(count, 2 * record->n_kernels);
  ok(f->vtable->schedule_kernels(schedule, infos, 8, &count));
  for (int k = 0; k < count; k++) {
    assert_int_equal(infos[k].launch, k / record->n_kernels);
    assert_string_equal(infos[k].name, record->kernels[k % record->n_kernels].info.name);
  }
  f->vtable->schedule_destroy(schedule);
  f->vtable->exec_destroy((cs_exec *)(uintptr_t)launches[0].exec);
}

/* ---- Memory ---- */

static void memory_holds_nothing(void **state) {
  fixture *f = *state;
  int64_t all = f->vtable->info(f->backend)->memory_bytes;
  char byte, *a = NULL, *b = NULL;
  ok(f->vtable->allocate(f->backend, all / 2, (void **)&a));
  ok(f->vtable->allocate(f->backend, all / 2 - 4096, (void **)&b));
  assert_true(a + all / 2 <= b || b + all / 2 - 4096 <= a);
  assert_int_equal((uintptr_t)a % 256, 0);
  void *more = NULL;
  fails(f->vtable->allocate(f->backend, 1 << 20, &more), CS_CODE_NO_MEMORY, "1048576");
  ok(f->vtable->upload(f->backend, a, &all, sizeof all));
  ok(f->vtable->fill(f->backend, b, 0, all / 2 - 4096));
  fails(f->vtable->download(f->backend, &byte, a, 1), CS_CODE_USAGE, "simulated");
  f->vtable->release(f->backend, a);
  ok(f->vtable->allocate(f->backend, 1 << 20, &more));
  f->vtable->release(f->backend, more);
  f->vtable->release(f->backend, b);
}

/* ---- Files that are no device ---- */

#define LINE(op, rest)                                                                          \
  "{\"schema\":\"convsched.profile/1\",\"method\":1,\"device\":\"gpu\",\"op\":\"" op "\"," rest \
  "}\n"
#define RECORD                                                                                     \
  LINE(                                                                                            \
      "Relu f16 x=1x1x1x1/nchw y=1x1x1x1/nchw",                                                    \
      "\"candidate\":{\"id\":\"a\",\"family\":\"a\",\"workspace_bytes\":0,\"deterministic\":true," \
      "\"fused\":true,\"notes\":0,\"threads\":0},\"measured\":{\"cold_us\":1,\"warm_us\":1,"       \
      "\"p10_us\":1,\"p90_us\":1,\"variation\":0,\"samples\":5}")
#define DEVICE(capability, registers)                                                            \
  LINE("device",                                                                                 \
       "\"device_info\":{\"name\":\"Some GPU\",\"backend\":\"cuda\",\"units\":8,"                \
       "\"memory_bytes\":1000000,\"cache_bytes\":1000,\"compute_capability\":" capability        \
       ",\"clock_mhz\":1000,\"unit\":{\"registers\":" registers                                  \
       ",\"threads\":2048,\"blocks\":32,\"shared_bytes\":233472,\"reserved_shared_bytes\":1024," \
       "\"warp_size\":32}}")

static void count_warning(void *user, cs_log_level level, const char *message) {
  if (level == CS_LOG_WARNING && strstr(message, "Some GPU")) ++*(int *)user;
}

static cs_status open_text(const char *text, const cs_logger *logger, cs_backend **out) {
  char path[] = "/tmp/convsched-sim-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(write(file, text, strlen(text)), strlen(text));
  close(file);
  cs_status st = cs_sim_backend_open_file(path, logger, out);
  unlink(path);
  return st;
}

static void files_that_are_no_device(void **state) {
  (void)state;
  cs_backend *backend = NULL;
  fails(cs_sim_backend_open_file("/nowhere/p.jsonl", NULL, &backend), CS_CODE_IO, "/nowhere");
  fails(open_text("", NULL, &backend), CS_CODE_BAD_INPUT, "no line of convsched.profile/1");
  fails(open_text("{\"schema\":\"convsched.plan/1\"}\n", NULL, &backend), CS_CODE_BAD_INPUT,
        "no line of convsched.profile/1");
  fails(open_text(DEVICE("90", "65536"), NULL, &backend), CS_CODE_BAD_INPUT, "no operation");
  fails(open_text(RECORD, NULL, &backend), CS_CODE_BAD_INPUT, "device_info");
  fails(open_text(RECORD DEVICE("0", "0"), NULL, &backend), CS_CODE_BAD_INPUT, "only a GPU");
  assert_null(backend);
}

static void other_gpus_are_predicted_roughly(void **state) {
  (void)state;
  int warnings = 0;
  cs_logger logger = {count_warning, &warnings};
  cs_backend *backend = NULL;
  ok(open_text(RECORD DEVICE("90", "65536"), &logger, &backend));
  backend->vtable->close(backend);
  assert_int_equal(warnings, 0);
  ok(open_text(RECORD DEVICE("80", "65536"), &logger, &backend));
  assert_string_equal(backend->vtable->info(backend)->identity, "gpu");
  backend->vtable->close(backend);
  assert_int_equal(warnings, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(it_is_the_recorded_device, set_up, tear_down),
      cmocka_unit_test_setup_teardown(layouts_are_the_recorded_ones, set_up, tear_down),
      cmocka_unit_test_setup_teardown(candidates_are_the_recorded_ones, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_was_not_recorded_has_no_candidates, set_up, tear_down),
      cmocka_unit_test_setup_teardown(latency_is_the_models, set_up, tear_down),
      cmocka_unit_test_setup_teardown(kernels_are_the_recorded_ones, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_merged_launch_is_one_kernel, set_up, tear_down),
      cmocka_unit_test_setup_teardown(memory_holds_nothing, set_up, tear_down),
      cmocka_unit_test(files_that_are_no_device),
      cmocka_unit_test(other_gpus_are_predicted_roughly),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
