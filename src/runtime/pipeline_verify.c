/* Are requests right while others are in flight? Every slot against the session alone. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "runtime/pipeline.h"
#include "runtime/verify.h"

#define ROUNDS 3
/* Of a burst, for each slot: requests behind which others are. */
#define BURST 3

/* Inputs number k and what the session gives for them. */
typedef struct example {
  float **inputs, **outputs;
} example;

typedef struct checking {
  cs_pipeline *pipeline;
  cs_session *session;
  example *examples; /* as many as slots */
  int64_t *input_sizes, *output_sizes;
  int n_inputs, n_outputs;
  double limit;
  float *found; /* room for the largest output */
  cs_pipeline_check *out;
} checking;

/* ---- Examples ---- */

static cs_status make_arrays(const int64_t *sizes, int n, float ***out) {
  *out = cs_calloc((size_t)n, sizeof **out);
  if (!*out) return cs_no_memory("arrays", (size_t)n * sizeof **out);
  for (int i = 0; i < n; i++) {
    (*out)[i] = cs_calloc((size_t)sizes[i], sizeof(float));
    if (!(*out)[i]) return cs_no_memory("an array", (size_t)sizes[i] * sizeof(float));
  }
  return CS_OK;
}

static void free_arrays(float **arrays, int n) {
  for (int i = 0; arrays && i < n; i++) free(arrays[i]);
  free(arrays);
}

static cs_status read_sizes(checking *c) {
  const cs_graph *graph = c->session->planned.graph;
  int64_t largest = 1;
  c->n_inputs = graph->n_inputs;
  c->n_outputs = cs_graph_output_count(c->session->source);
  c->input_sizes = cs_calloc((size_t)c->n_inputs, sizeof *c->input_sizes);
  c->output_sizes = cs_calloc((size_t)c->n_outputs, sizeof *c->output_sizes);
  c->examples = cs_calloc((size_t)c->pipeline->n, sizeof *c->examples);
  if (!c->input_sizes || !c->output_sizes || !c->examples) return cs_no_memory("examples", 0);
  for (int i = 0; i < c->n_inputs; i++) {
    CS_RETURN_IF_ERROR(
        cs_shape_elements(&graph->values[graph->inputs[i]].shape, &c->input_sizes[i]));
  }
  for (int i = 0; i < c->n_outputs; i++) {
    CS_RETURN_IF_ERROR(
        cs_shape_elements(&graph->values[graph->outputs[i]].shape, &c->output_sizes[i]));
    largest = cs_max_i64(largest, c->output_sizes[i]);
  }
  c->found = cs_calloc((size_t)largest, sizeof *c->found);
  return c->found ? CS_OK : cs_no_memory("an output", (size_t)largest * sizeof *c->found);
}

static cs_status make_examples(checking *c) {
  const cs_graph *graph = c->session->planned.graph;
  uint64_t seed = c->session->settings.options.seed;
  for (int k = 0; k < c->pipeline->n; k++) {
    example *e = &c->examples[k];
    CS_RETURN_IF_ERROR(make_arrays(c->input_sizes, c->n_inputs, &e->inputs));
    CS_RETURN_IF_ERROR(make_arrays(c->output_sizes, c->n_outputs, &e->outputs));
    for (int i = 0; i < c->n_inputs; i++) {
      if (k == 0) {
        memcpy(e->inputs[i], c->session->inputs[i], (size_t)c->input_sizes[i] * sizeof(float));
      } else {
        cs_input_generate(graph->values[graph->inputs[i]].name, seed + (uint64_t)k, e->inputs[i],
                          c->input_sizes[i]);
      }
    }
  }
  return CS_OK;
}

static cs_status run_examples(const checking *c) {
  for (int k = 0; k < c->pipeline->n; k++) {
    example *e = &c->examples[k];
    CS_RETURN_IF_ERROR(cs_session_run(c->session, (const float *const *)e->inputs, c->input_sizes,
                                      c->n_inputs, e->outputs, c->output_sizes, c->n_outputs));
  }
  return CS_OK;
}

static void free_checking(checking *c) {
  for (int k = 0; c->examples && k < c->pipeline->n; k++) {
    free_arrays(c->examples[k].inputs, c->n_inputs);
    free_arrays(c->examples[k].outputs, c->n_outputs);
  }
  free(c->examples);
  free(c->input_sizes);
  free(c->output_sizes);
  free(c->found);
}

/* ---- Comparing ---- */

static void found_wrong(cs_pipeline_check *out, const char *format, ...) CS_PRINTF(2, 3);
static void found_wrong(cs_pipeline_check *out, const char *format, ...) {
  bool first = out->passed;
  out->passed = false;
  if (!first) return; /* one example says enough */
  va_list args;
  va_start(args, format);
  vsnprintf(out->problem, sizeof out->problem, format, args);
  va_end(args);
}

static void compare_slot(const checking *c, int slot, const example *wanted, const char *when) {
  cs_pipeline_check *out = c->out;
  out->requests++;
  for (int i = 0; i < c->n_outputs; i++) {
    cs_slot_output(c->pipeline, slot, i, c->found);
    size_t bytes = (size_t)c->output_sizes[i] * sizeof(float);
    if (memcmp(c->found, wanted->outputs[i], bytes) == 0) continue;
    double difference = cs_relative_difference(c->found, wanted->outputs[i], c->output_sizes[i]);
    out->bitwise_equal = false;
    if (!(difference <= out->rel_l2)) out->rel_l2 = difference;
    if (!out->bitwise_applies && difference <= c->limit) continue;
    found_wrong(out, "slot %d of %d, %s: output %d differs from the session's by %.1e (limit %.1e)",
                slot, c->pipeline->n, when, i, difference, c->limit);
  }
}

/* Other inputs in every slot than the round before; outputs that are not written show. */
static void begin_round(const checking *c, int round) {
  for (int s = 0; s < c->pipeline->n; s++) {
    const cs_slot *slot = &c->pipeline->slots[s];
    cs_slot_set_inputs(c->pipeline, s,
                       (const float *const *)c->examples[(s + round) % c->pipeline->n].inputs);
    for (int i = 0; i < c->n_outputs; i++) {
      memset(slot->outputs[i].host, 0xFF, (size_t)slot->outputs[i].bytes);
    }
  }
}

static void compare_round(const checking *c, int round, const char *when) {
  for (int s = 0; s < c->pipeline->n; s++) {
    compare_slot(c, s, &c->examples[(s + round) % c->pipeline->n], when);
  }
}

static cs_status check_round(const checking *c, int round, cs_request_times *times) {
  int n = c->pipeline->n;
  begin_round(c, 2 * round);
  for (int s = 0; s < n; s++) {
    CS_RETURN_IF_ERROR(cs_pipeline_submit(c->pipeline, s, NULL, NULL, 0));
  }
  for (int s = 0; s < n; s++) CS_RETURN_IF_ERROR(cs_pipeline_wait(c->pipeline, s, NULL, NULL, 0));
  compare_round(c, 2 * round, "one request");
  begin_round(c, 2 * round + 1);
  CS_RETURN_IF_ERROR(cs_pipeline_burst(c->pipeline, n, true, BURST * n, times));
  compare_round(c, 2 * round + 1, "back to back");
  return CS_OK;
}

cs_status cs_pipeline_verify(cs_pipeline *pipeline, cs_pipeline_check *out) {
  cs_status st = CS_OK, back = CS_OK;
  cs_session *session = pipeline->session;
  CS_RETURN_IF_ERROR(cs_pipeline_must_rest(pipeline, "verification"));
  CS_RETURN_IF_ERROR(cs_pipeline_must_give_tensors(pipeline, "verification"));
  CS_RETURN_IF_ERROR(cs_session_fetch_inputs(session));
  *out = (cs_pipeline_check){.passed = true,
                             .bitwise_applies = cs_plan_is_deterministic(session->planned.plan),
                             .bitwise_equal = true};
  checking c = {.pipeline = pipeline, .session = session, .out = out};
  cs_request_times times[BURST * CS_PIPELINE_MOST_SLOTS];
  c.limit = out->bitwise_applies ? 0 : cs_rounding_limit(session->settings.options.precision);
  CS_TRY(st, read_sizes(&c), done);
  CS_TRY(st, make_examples(&c), done);
  st = run_examples(&c);
  /* Whatever became of the examples, the session has its own inputs again. */
  back = cs_session_set_inputs(session, (const float *const *)c.examples[0].inputs, c.input_sizes,
                               c.n_inputs);
  if (st != CS_OK) goto done;
  for (int round = 0; round < ROUNDS; round++) {
    cs_progress_step("checking requests in flight", "rounds", round, ROUNDS, NULL);
    CS_TRY(st, check_round(&c, round, times), done);
  }
done:
  free_checking(&c);
  if (st != CS_OK) {
    cs_status_free(back);
    return st;
  }
  return back;
}
