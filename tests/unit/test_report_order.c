/* The order of complementary sets, and the paper's workspaces: tables over profiles that the tests
 * fill. */
#include <math.h>
#include <unistd.h>
/* clang-format off: cmocka wants its headers first */
#include "graph_fixture.h"
/* clang-format on */

#include "base/file.h"
#include "report/report.h"

typedef struct fixture {
  char directory[64];
  cs_graph *bound, *graph;
  cs_profile *profile;
  cs_report_input input;
} fixture;

static int set_up(void **state) {
  fixture *f = cs_calloc(1, sizeof *f);
  strcpy(f->directory, "/tmp/cs-report-XXXXXX");
  if (!mkdtemp(f->directory)) return -1;
  assert_ok(cs_profile_open(f->directory, "made up", NULL, &f->profile));
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  char lock[256];
  snprintf(lock, sizeof lock, "%s.lock", cs_profile_path(f->profile));
  assert_ok(cs_file_remove(lock));
  assert_ok(cs_file_remove(cs_profile_path(f->profile)));
  assert_int_equal(rmdir(f->directory), 0);
  cs_profile_close(f->profile);
  cs_graph_destroy(f->graph);
  cs_graph_destroy(f->bound);
  free(f);
  return 0;
}

static void use_graph(fixture *f, const char *shape, const char *nodes, const char *outputs) {
  static const cs_device_info unknown;
  cs_pass_report passes;
  cs_graph *source = graph_of(shape, nodes, outputs);
  assert_ok(cs_graph_bind(source, 1, &f->bound));
  cs_graph_destroy(source);
  assert_ok(cs_graph_apply_passes(f->bound, CS_PASSES_ALL, &passes, &f->graph));
  f->input = (cs_report_input){.bound = f->bound,
                               .graph = f->graph,
                               .profile = f->profile,
                               .device = &unknown,
                               .workspace_limit = 256 << 20};
}

static void add(fixture *f, const char *signature, const char *id, double us) {
  cs_candidate candidate = {
      .id = (char *)id, .family = "cudnn.legacy", .deterministic = true, .fused = true};
  cs_measurement measured = {
      .cold_us = us, .warm_us = us, .p10_us = us, .p90_us = us, .samples = 9};
  assert_ok(cs_profile_add(f->profile, signature, &candidate, &measured));
}

/* ---- Complementary sets ---- */

/* By name: a to d have 5 to 2 channels, so that signatures come in the order d, c, b, a. */
static const char four[] = CONV("a", "x", "5", "1") "," CONV("b", "x", "4", "1") "," CONV(
    "c", "x", "3", "1") "," CONV("d", "x", "2", "1");

static char *signature_of(int channels) {
  static char texts[6][128];
  snprintf(texts[channels], sizeof texts[0],
           "Conv f32 x=1x3x5x5/nchw y=1x%dx5x5/nchw k=1x1 s=1x1 p=0,0,0,0 d=1x1 g=1 bias",
           channels);
  return texts[channels];
}

/* Two operations with the candidates that are fastest alone, and with lean ones. */
static void add_pair(fixture *f, int first, int second, double fastest_us, double lean_us) {
  char *ids[] = {"fast", "lean"};
  for (int i = 0; i < 2; i++) {
    cs_corun_member members[] = {{signature_of(first), ids[i]}, {signature_of(second), ids[i]}};
    cs_corun corun = {.members = members,
                      .n = 2,
                      .serial_us = 30,
                      .concurrent_us = i == 0 ? fastest_us : lean_us,
                      .samples = 9,
                      .serial_warm_us = NAN,
                      .concurrent_warm_us = NAN,
                      .overlap = NAN};
    assert_ok(cs_profile_add_corun(f->profile, &corun));
  }
}

static const cs_cell *cell(const cs_table *table, size_t row, const char *key) {
  assert_true(row < table->n_rows);
  for (int c = 0; c < table->n_columns; c++) {
    if (strcmp(table->columns[c].key, key) != 0) continue;
    return &table->cells[row * (size_t)table->n_columns + (size_t)c];
  }
  fail_msg("no column %s", key);
  return NULL;
}

static void assert_set(const cs_table *table, int set, double gain, const char *first,
                       const char *second) {
  size_t row = 2 * ((size_t)set - 1);
  assert_true(cell(table, row, "set")->number == set);
  assert_true(fabs(cell(table, row, "gain")->number - gain) < 1e-9);
  assert_false(table->continues[row]);
  assert_string_equal(cell(table, row, "node")->text, first);
  assert_true(cell(table, row + 1, "set")->number == set);
  assert_true(table->continues[row + 1]);
  assert_string_equal(cell(table, row + 1, "node")->text, second);
}

static void test_largest_gain_first_then_names(void **state) {
  fixture *f = *state;
  cs_table table;
  use_graph(f, "'N',3,5,5", four, "'a','b','c','d'");
  for (int channels = 2; channels <= 5; channels++) {
    add(f, signature_of(channels), "fast", 10);
    add(f, signature_of(channels), "lean", 12);
  }
  add_pair(f, 2, 3, 20, 16);   /* d and c: 1.25 */
  add_pair(f, 2, 5, 20, 16);   /* d and a: the same */
  add_pair(f, 3, 4, 20, 19.8); /* c and b: no win */
  add_pair(f, 4, 5, 20, 10);   /* b and a: 2 */
  add_pair(f, 3, 5, 20, 16);   /* c and a: 1.25 */
  assert_ok(cs_report_table_of(&f->input, CS_REPORT_COMPLEMENTARY, &table));
  assert_int_equal(table.n_rows, 2 * 4);
  assert_set(&table, 1, 2, "b", "a");
  assert_set(&table, 2, 1.25, "c", "a");
  assert_set(&table, 3, 1.25, "d", "a");
  assert_set(&table, 4, 1.25, "d", "c");
  assert_int_equal(json_integer_value(json_object_get(table.summary, "wins")), 4);
  assert_int_equal(json_integer_value(json_object_get(table.summary, "sets")), 5);
  cs_table_free(&table);
}

/* ---- The paper's workspaces ---- */

/* The 5x5 of GoogLeNet's third module: 4.8 GB and 48 KB in the paper. */
static void test_paper_workspaces(void **state) {
  fixture *f = *state;
  static const char conv[] =
      "{'name':'c','op':'Conv','inputs':['x'],'attrs':{'out_channels':48,'kernel_shape':[5,5],"
      "'pads':[2,2,2,2]}}";
  cs_table table;
  char *text = NULL;
  use_graph(f, "'N',16,14,14", conv, "'c'");
  f->input.paper = true;
  add(f, "Conv f32 x=1x16x14x14/nchw y=1x48x14x14/nchw k=5x5 s=1x1 p=2,2,2,2 d=1x1 g=1 bias",
      "cudnn.legacy:IMPLICIT_PRECOMP_GEMM/fma", 40);
  assert_ok(cs_report_table_of(&f->input, CS_REPORT_WORKSPACE, &table));
  assert_ok(cs_table_to_markdown(&table, &text));
  assert_non_null(strstr(text, "| paper workspace | paper ms |"));
  assert_non_null(strstr(text,
                         "| IMPLICIT_PRECOMP_GEMM | cudnn.legacy | nchw | 0 B | 40.00 | 1 | "
                         "4.8 GiB | 126 |"));
  assert_non_null(strstr(text, "| IMPLICIT_GEMM | paper | – | – | – | – | 48.0 KiB | 59 |"));
  free(text);
  assert_ok(cs_table_to_csv(&table, &text));
  assert_non_null(strstr(text, "workspace_bytes,cold_us,configurations,paper_workspace_bytes,"));
  assert_non_null(strstr(text, ",0,40,1,5153960755,126,"));
  assert_non_null(strstr(text, ",49152,59,"));
  assert_null(strstr(text, "KiB"));
  free(text);
  assert_ok(cs_table_to_json(&table, &text));
  assert_non_null(strstr(text, "\"paper_workspace_bytes\": 49152"));
  assert_null(strstr(text, "KiB"));
  free(text);
  cs_table_free(&table);
}

int main(void) {
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      CASE(test_largest_gain_first_then_names),
      CASE(test_paper_workspaces),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
