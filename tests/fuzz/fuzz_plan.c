/* The plan reader, for plans of one small graph: what it accepts comes back from its own text, and
 * the checker has an answer for it. */
#include "fuzz/fuzz.h"
#include "fuzz/json_mutate.h"
#include "scheduler/plan.h"
#include "scheduler/plan_diff.h"

/* Two branches of a concat, one of them copied into it: several streams, layouts, buffers. */
static const char graph_text[] =
    "{\"schema\":\"convsched.graph/1\",\"name\":\"g\",\"inputs\":[{\"name\":\"x\",\"shape\":[1,8,6,"
    "6]}],\"nodes\":[{\"name\":\"a\",\"op\":\"Conv\",\"inputs\":[\"x\"],\"attrs\":{"
    "\"out_channels\":8,\"kernel_shape\":[1,1]}},{\"name\":\"b\",\"op\":\"Conv\",\"inputs\":["
    "\"x\"],\"attrs\":{\"out_channels\":8,\"kernel_shape\":[1,1]}},{\"name\":\"k\",\"op\":"
    "\"Concat\",\"inputs\":[\"a\",\"b\",\"x\"],\"attrs\":{\"axis\":1}},{\"name\":\"s\",\"op\":"
    "\"Sigmoid\",\"inputs\":[\"k\"]}],\"outputs\":[\"s\"]}";

static cs_graph *make_graph(void) {
  cs_graph *graph = NULL, *bound = NULL, *passed = NULL;
  cs_pass_report report;
  fuzz_want_ok(cs_graph_parse(graph_text, sizeof graph_text - 1, "g.json", &graph), "the graph");
  fuzz_want_ok(cs_graph_bind(graph, 1, &bound), "binding");
  fuzz_want_ok(cs_graph_apply_passes(bound, CS_PASSES_ALL, &report, &passed), "passes");
  cs_graph_destroy(graph);
  cs_graph_destroy(bound);
  return passed;
}

static void write_and_read_again(const cs_plan *plan, const cs_program *program) {
  char *text = NULL, *twice = NULL, *diff = NULL;
  cs_plan *again = NULL;
  fuzz_want_ok(cs_plan_to_json(plan, program, &text), "writing");
  fuzz_want_ok(cs_plan_from_json(text, strlen(text), "again", program->graph, &again), "reading");
  fuzz_want_ok(cs_plan_to_json(again, program, &twice), "writing again");
  FUZZ_CHECK(strcmp(text, twice) == 0, "another text:\n%s\n%s", text, twice);
  cs_plan_text a = {"a", text, strlen(text)}, b = {"b", twice, strlen(twice)};
  fuzz_want_ok(cs_plan_diff(&a, &b, &diff), "the difference");
  cs_plan_destroy(again);
  free(diff);
  free(twice);
  free(text);
}

/* What a checked plan is asked next. */
static void use_checked(cs_plan *plan, const cs_program *program) {
  cs_order *order = NULL;
  int64_t peak = -1;
  fuzz_want_ok(cs_order_create(plan, &order), "the order");
  cs_order_destroy(order);
  fuzz_want_ok(cs_plan_workspace_peak(plan, &peak), "the peak");
  FUZZ_CHECK(peak == plan->workspace_peak, "a peak of %lld, the checker took %lld", (long long)peak,
             (long long)plan->workspace_peak);
  (void)fuzz_taken(cs_plan_check_split(plan, 132), CS_CODE_BAD_INPUT);
  fuzz_want_ok(cs_plan_memory(plan, program, true, 0), "placing again");
  fuzz_want_ok(cs_plan_check(plan, program, 0, 0), "the plan placed again");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static cs_graph *graph; /* made once; reachable, hence no leak */
  cs_plan *plan = NULL;
  cs_program *program = NULL;
  char *diff = NULL;
  if (!graph) graph = make_graph();
  cs_plan_text text = {"a", (const char *)data, size};
  (void)fuzz_taken(cs_plan_diff(&text, &text, &diff), CS_CODE_BAD_INPUT);
  free(diff);
  cs_status st = cs_plan_from_json((const char *)data, size, "p.json", graph, &plan);
  if (!fuzz_taken(st, CS_CODE_BAD_INPUT)) return 0;
  st = cs_program_lower_divided(graph, plan->precision, plan->layouts, plan->division, &program);
  fuzz_want_ok(st, "lowering");
  write_and_read_again(plan, program);
  /* The checker takes a wrong plan for a planner's mistake. */
  if (fuzz_taken(cs_plan_check(plan, program, 0, 0), CS_CODE_INTERNAL)) use_checked(plan, program);
  cs_program_destroy(program);
  cs_plan_destroy(plan);
  return 0;
}

#ifdef CS_FUZZ
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  return fuzz_mutate_json(data, size, max_size, 0, seed);
}
#endif
