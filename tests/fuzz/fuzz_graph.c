/* The graph loader: what it accepts can be saved and loaded again, bound, passed and lowered. */
#include "fuzz/fuzz.h"
#include "fuzz/json_mutate.h"
#include "graph/division.h"
#include "graph/program.h"

#define SOURCE "models/fuzz.json"

/* The text of a graph is that of the graph it is loaded as. */
static void save_and_load_again(const cs_graph *graph) {
  char *text = NULL, *twice = NULL;
  cs_graph *again = NULL;
  fuzz_want_ok(cs_graph_to_json(graph, &text), "saving");
  fuzz_want_ok(cs_graph_parse(text, strlen(text), SOURCE, &again), "loading what was saved");
  FUZZ_CHECK(cs_graph_hash(again) == cs_graph_hash(graph), "another hash:\n%s", text);
  fuzz_want_ok(cs_graph_to_json(again, &twice), "saving again");
  FUZZ_CHECK(strcmp(text, twice) == 0, "another text:\n%s\n%s", text, twice);
  free(text);
  free(twice);
  cs_graph_destroy(again);
}

static void use_task(const cs_task *task) {
  char *signature = NULL;
  fuzz_want_ok(cs_op_signature(&task->desc, &signature), "a signature");
  FUZZ_CHECK(cs_op_flops(&task->desc) >= 0 && cs_op_bytes(&task->desc) > 0, "%s", signature);
  FUZZ_CHECK(cs_op_reduction(&task->desc) > 0, "%s", signature);
  free(signature);
}

/* What lowers, lowers divided, too. */
static void lower_divided(const cs_graph *graph, cs_precision precision, const cs_layout *layouts) {
  cs_program *program = NULL;
  cs_division *division = NULL;
  fuzz_want_ok(cs_division_create(graph, &division), "a division");
  fuzz_want_ok(cs_division_evenly(division, graph, 2), "dividing");
  fuzz_want_ok(cs_program_lower_divided(graph, precision, layouts, division, &program),
               "lowering in parts");
  for (int t = 0; t < program->n_tasks; t++) use_task(&program->tasks[t]);
  cs_program_destroy(program);
  cs_division_destroy(division);
}

static void lower(const cs_graph *graph, cs_precision precision, cs_layout layout) {
  cs_program *program = NULL;
  cs_layout *layouts = cs_calloc((size_t)graph->n_values, sizeof *layouts);
  for (int v = 0; v < graph->n_values; v++) {
    layouts[v] = cs_graph_layout_allowed(graph, v, layout) ? layout : CS_LAYOUT_NCHW;
  }
  if (fuzz_taken(cs_program_lower(graph, precision, layouts, &program), CS_CODE_BAD_INPUT)) {
    for (int t = 0; t < program->n_tasks; t++) use_task(&program->tasks[t]);
    lower_divided(graph, precision, layouts);
  }
  cs_program_destroy(program);
  free(layouts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  cs_graph *graph = NULL, *bound = NULL, *passed = NULL;
  cs_pass_report report;
  cs_param *params = NULL;
  int n_params = 0;
  cs_status st = cs_graph_parse((const char *)data, size, SOURCE, &graph);
  if (!fuzz_taken(st, CS_CODE_BAD_INPUT)) return 0;
  save_and_load_again(graph);
  fuzz_want_ok(cs_graph_params(graph, &params, &n_params), "parameters");
  st = cs_graph_bind(graph, graph->batch == CS_DIM_N ? 2 : graph->batch, &bound);
  if (fuzz_taken(st, CS_CODE_BAD_INPUT)) {
    fuzz_want_ok(cs_graph_apply_passes(bound, CS_PASSES_ALL, &report, &passed), "passes");
    lower(passed, CS_PRECISION_F32, CS_LAYOUT_NCHW);
    lower(passed, CS_PRECISION_F16, CS_LAYOUT_NCHW16C);
  }
  cs_params_free(params, n_params);
  cs_graph_destroy(passed);
  cs_graph_destroy(bound);
  cs_graph_destroy(graph);
  return 0;
}

#ifdef CS_FUZZ
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  return fuzz_mutate_json(data, size, max_size, 0, seed);
}
#endif
