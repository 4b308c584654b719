/* The tables over a small graph and a profile made by hand. */
#include <math.h>
/* clang-format off: cmocka wants its headers first */
#include "graph_fixture.h"
/* clang-format on */

#include "report/report.h"

#define FOLDER CS_SOURCE_DIR "/tests/data/report/"

typedef struct fixture {
  cs_graph *source, *bound, *graph;
  cs_profile *profile;
  cs_report_input input;
} fixture;

static int set_up(void **state) {
  fixture *f = cs_calloc(1, sizeof *f);
  cs_pass_report passes;
  assert_ok(cs_graph_load(FOLDER "branches.json", &f->source));
  assert_ok(cs_graph_bind(f->source, 1, &f->bound));
  assert_ok(cs_graph_apply_passes(f->bound, CS_PASSES_ALL, &passes, &f->graph));
  assert_ok(cs_profile_open_file(FOLDER "branches.profile.jsonl", NULL, &f->profile));
  f->input = (cs_report_input){.bound = f->bound,
                               .graph = f->graph,
                               .profile = f->profile,
                               .device = cs_profile_device(f->profile),
                               .workspace_limit = 256 << 20};
  assert_non_null(f->input.device);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  cs_profile_close(f->profile);
  cs_graph_destroy(f->graph);
  cs_graph_destroy(f->bound);
  cs_graph_destroy(f->source);
  free(f);
  return 0;
}

static cs_table table_of(const cs_report_input *input, cs_report_kind kind) {
  cs_table table;
  assert_ok(cs_report_table_of(input, kind, &table));
  assert_false(table.failed);
  return table;
}

/* The cell of a data column. */
static const cs_cell *cell(const cs_table *table, size_t row, const char *key) {
  assert_true(row < table->n_rows);
  for (int c = 0; c < table->n_columns; c++) {
    if (strcmp(table->columns[c].key, key) != 0) continue;
    if (table->columns[c].use == CS_COLUMN_PERSON) continue;
    return &table->cells[row * (size_t)table->n_columns + (size_t)c];
  }
  fail_msg("no column %s", key);
  return NULL;
}

static void assert_text(const cs_table *table, size_t row, const char *key, const char *wanted) {
  const char *found = cell(table, row, key)->text;
  assert_non_null(found);
  assert_string_equal(found, wanted);
}

static void assert_number(const cs_table *table, size_t row, const char *key, double wanted) {
  double found = cell(table, row, key)->number;
  if (!(fabs(found - wanted) < 1e-6)) fail_msg("%s: %.9g, wanted %.9g", key, found, wanted);
}

static void assert_unknown(const cs_table *table, size_t row, const char *key) {
  const cs_cell *found = cell(table, row, key);
  assert_null(found->text);
  assert_true(isnan(found->number));
}

static bool noted(const cs_table *table, const char *part) {
  for (size_t i = 0; i < table->n_notes; i++) {
    if (strstr(table->notes[i], part)) return true;
  }
  return false;
}

/* ---- resources ---- */

static void test_the_fastest_of_each_convolution(void **state) {
  fixture *f = *state;
  cs_table table = table_of(&f->input, CS_REPORT_RESOURCES);
  assert_int_equal(table.n_rows, 2); /* reduce3 and reduce5 are not measured */
  assert_text(&table, 0, "node", "conv3");
  assert_text(&table, 0, "candidate", "cudnn.graph:eng10{2=5}");
  assert_number(&table, 0, "cold_us", 15);
  assert_text(&table, 1, "node", "conv5");
  assert_text(&table, 1, "candidate", "cudnn.legacy:IMPLICIT_GEMM/fma");
  assert_unknown(&table, 1, "registers_pct");
  assert_true(noted(&table, "not recorded"));
  assert_true(noted(&table, "--batch 1 --dtype f32 --counters"));
  cs_table_free(&table);
}

static void test_deterministic_and_the_workspace_limit_hold(void **state) {
  fixture *f = *state;
  f->input.deterministic = true;
  cs_table table = table_of(&f->input, CS_REPORT_RESOURCES);
  assert_text(&table, 0, "candidate", "cudnn.graph:eng10{2=6}");
  cs_table_free(&table);
  f->input.workspace_limit = 511; /* eng10{2=6} wants 512, the others more */
  table = table_of(&f->input, CS_REPORT_RESOURCES);
  assert_text(&table, 0, "node", "conv3");
  assert_unknown(&table, 0, "candidate");
  assert_true(noted(&table, "fits the workspace limit"));
  cs_table_free(&table);
}

/* 128 registers by 128 threads are 16384 of 65536 a block, 4 blocks fit; 16640 bytes and the
 * driver's 1024 are 17664 of 233472; 784 blocks on 132 · 4 places. */
static void test_shares_counters_and_kernels(void **state) {
  fixture *f = *state;
  f->input.candidates = CS_REPORT_ALL;
  f->input.patterns = (const char *const[]){"conv3"};
  f->input.n_patterns = 1;
  cs_table table = table_of(&f->input, CS_REPORT_RESOURCES);
  assert_int_equal(table.n_rows, 6); /* five candidates, one of two kernels */
  assert_text(&table, 2, "candidate", "cudnn.legacy:IMPLICIT_PRECOMP_GEMM/fma");
  assert_number(&table, 2, "registers_pct", 100);
  assert_number(&table, 2, "shared_pct", 100 * 4 * 17664 / 233472.0);
  assert_number(&table, 2, "threads_pct", 25);
  assert_number(&table, 2, "blocks_pct", 12.5);
  assert_number(&table, 2, "blocks_per_sm", 4);
  assert_number(&table, 2, "waves", 784 / 528.0);
  assert_number(&table, 2, "alu_pct", 70);
  assert_number(&table, 2, "memory_stall_ratio", 0.47);
  assert_unknown(&table, 2, "tensor_pct");
  assert_text(&table, 3, "candidate", "cudnn.legacy:FFT/fma");
  assert_text(&table, 4, "kernel", "_ZN5cudnn3gen11gemm_kernelEv");
  assert_true(table.continues[4]);
  assert_unknown(&table, 4, "alu_pct");
  assert_text(&table, 5, "layout", "nhwc");
  cs_table_free(&table);
}

static void test_the_papers_figures_stand_beside(void **state) {
  fixture *f = *state;
  f->input.paper = true;
  cs_table table = table_of(&f->input, CS_REPORT_RESOURCES);
  assert_int_equal(table.n_rows, 6);
  assert_text(&table, 2, "candidate", "paper: FFT_TILING");
  assert_number(&table, 2, "shared_pct", 75);
  assert_number(&table, 2, "paper_memory_stalls_pct", 15.2);
  assert_true(noted(&table, "Pourghassemi"));
  cs_table_free(&table);
}

static void test_a_device_that_tells_nothing(void **state) {
  fixture *f = *state;
  static const cs_device_info unknown;
  f->input.device = &unknown;
  cs_table table = table_of(&f->input, CS_REPORT_RESOURCES);
  assert_number(&table, 0, "registers_per_thread", 122);
  assert_unknown(&table, 0, "registers_pct");
  assert_unknown(&table, 0, "waves");
  assert_true(noted(&table, "Shares: unknown"));
  cs_table_free(&table);
}

/* ---- workspace ---- */

static void test_algorithms_legacy_first_rejected_last(void **state) {
  fixture *f = *state;
  static const char *const order[] = {
      "IMPLICIT_PRECOMP_GEMM", "FFT", "WINOGRAD_NONFUSED", "eng10", "eng20",
      "IMPLICIT_GEMM",         "eng3"};
  cs_table table = table_of(&f->input, CS_REPORT_WORKSPACE);
  assert_int_equal(table.n_rows, 7);
  for (size_t i = 0; i < 7; i++) assert_text(&table, i, "algorithm", order[i]);
  assert_number(&table, 1, "workspace_bytes", 3 << 20);
  assert_number(&table, 1, "cold_us", 30);
  assert_unknown(&table, 2, "cold_us");
  assert_text(&table, 2, "rejected", "wrong result: relative L2 error 0.3, limit 0.001");
  assert_text(&table, 3, "candidate", "cudnn.graph:eng10{2=5}"); /* the faster of two */
  assert_number(&table, 3, "configurations", 2);
  cs_table_free(&table);
}

/* ---- complementary ---- */

/* 26 with the fastest alone, 20 together; the 5 of a combination that was screened out is nothing.
 */
static void test_sets_won_by_slower_candidates(void **state) {
  fixture *f = *state;
  cs_table table = table_of(&f->input, CS_REPORT_COMPLEMENTARY);
  assert_int_equal(table.n_rows, 2);
  assert_number(&table, 0, "serial_us", 27);
  assert_number(&table, 0, "fastest_alone_us", 26);
  assert_number(&table, 0, "chosen_us", 20);
  assert_number(&table, 0, "gain", 1.3);
  assert_number(&table, 0, "fastest_alone_overlap", 0.1);
  assert_number(&table, 0, "chosen_overlap", 0.8);
  assert_text(&table, 0, "limiter", "registers");
  assert_text(&table, 0, "node", "conv5");
  assert_text(&table, 1, "node", "conv3");
  assert_text(&table, 1, "fastest_alone", "cudnn.graph:eng10{2=5}");
  assert_text(&table, 1, "chosen", "cudnn.legacy:IMPLICIT_PRECOMP_GEMM/fma");
  assert_number(&table, 1, "chosen_alone_us", 20);
  assert_int_equal(json_integer_value(json_object_get(table.summary, "wins")), 1);
  cs_table_free(&table);
}

/* Without eng10{2=5} the least sum alone is 20 + 12, a combination that was never run: what is left
 * is compared with the least that was. */
static void test_only_admissible_candidates_count(void **state) {
  fixture *f = *state;
  f->input.deterministic = true;
  cs_table table = table_of(&f->input, CS_REPORT_COMPLEMENTARY);
  assert_int_equal(table.n_rows, 0);
  assert_int_equal(json_integer_value(json_object_get(table.summary, "sets")), 1);
  cs_table_free(&table);
}

/* ---- Errors ---- */

static void assert_refused(fixture *f, cs_report_kind kind, const char *node, const char *part) {
  const char *const patterns[] = {node};
  cs_table table;
  f->input.patterns = patterns;
  f->input.n_patterns = node ? 1 : 0;
  assert_fails(cs_report_table_of(&f->input, kind, &table), CS_CODE_NOT_FOUND, part);
  cs_table_free(&table);
}

static void test_errors_name_what_is_missing(void **state) {
  fixture *f = *state;
  assert_refused(f, CS_REPORT_RESOURCES, "conf3", "near it: conv3");
  assert_refused(f, CS_REPORT_RESOURCES, "relu5", "part of \"conv5\"");
  assert_refused(f, CS_REPORT_WORKSPACE, "reduce3", "no measurement of node \"reduce3\"");
  assert_refused(f, CS_REPORT_WORKSPACE, "nothing*", "no node \"nothing*\"");
  f->input.precision = CS_PRECISION_F16;
  assert_refused(f, CS_REPORT_WORKSPACE, NULL, "--batch 1 --dtype f16` measures it");
  f->input.precision = CS_PRECISION_F32;
  f->input.workspace_limit = -1; /* no candidate is admissible, so no set is */
  assert_refused(f, CS_REPORT_COMPLEMENTARY, NULL, "--corun");
}

int main(void) {
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      CASE(test_the_fastest_of_each_convolution),
      CASE(test_deterministic_and_the_workspace_limit_hold),
      CASE(test_shares_counters_and_kernels),
      CASE(test_the_papers_figures_stand_beside),
      CASE(test_a_device_that_tells_nothing),
      CASE(test_algorithms_legacy_first_rejected_last),
      CASE(test_sets_won_by_slower_candidates),
      CASE(test_only_admissible_candidates_count),
      CASE(test_errors_name_what_is_missing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
