/* Divided programs compute what undivided ones do, bit for bit, in any order that their
 * dependencies allow: graphs of all operators, run by the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/reference/reference.h"
#include "graph/program.h"
#include "runtime/params.h"

#define GOLDENS CS_SOURCE_DIR "/tests/data/goldens/"
#define BATCH 7

static void assert_ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

typedef struct sample {
  cs_graph *graph, *bound, *passed;
  cs_params *params;
} sample;

static sample sample_open(const char *family, int64_t batch) {
  char path[256];
  sample s = {0};
  snprintf(path, sizeof path, GOLDENS "%s/graph.json", family);
  assert_ok(cs_graph_load(path, &s.graph));
  assert_ok(cs_graph_bind(s.graph, batch, &s.bound));
  assert_ok(cs_graph_apply_passes(s.bound, CS_PASSES_ALL, NULL, &s.passed));
  snprintf(path, sizeof path, GOLDENS "%s/weights.safetensors", family);
  assert_ok(cs_params_load(s.graph, path, NULL, &s.params));
  return s;
}

static void sample_close(sample *s) {
  cs_params_destroy(s->params);
  cs_graph_destroy(s->passed);
  cs_graph_destroy(s->bound);
  cs_graph_destroy(s->graph);
}

/* ---- Running a program ---- */

static unsigned next_random(unsigned *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static int64_t elements_of(const cs_shape *shape) {
  int64_t n = 0;
  assert_ok(cs_shape_elements(shape, &n));
  return n;
}

static void run_task(const cs_program *program, const cs_params *params, const cs_task *task,
                     char *const *buffers) {
  double *inputs[CS_MAX_OP_INPUTS] = {NULL};
  cs_node_params its = {0};
  if (task->node >= 0) assert_ok(cs_node_params_open(params, program->graph, task->node, &its));
  for (int k = 0; k < task->desc.n_inputs; k++) {
    const cs_tensor *tensor = &program->tensors[task->inputs[k]];
    inputs[k] = cs_calloc((size_t)elements_of(&tensor->desc.shape), sizeof(double));
    cs_tensor_to_f64(&tensor->desc, buffers[tensor->buffer] + tensor->offset, inputs[k]);
  }
  const cs_tensor *to = &program->tensors[task->output];
  size_t n = (size_t)elements_of(&to->desc.shape);
  double *value = cs_calloc(n, sizeof *value);
  float *narrow = cs_calloc(n, sizeof *narrow);
  assert_ok(cs_reference_run(&task->desc, (const double *const *)inputs, its.weight, its.bias,
                             value, NULL, 1));
  for (size_t i = 0; i < n; i++) narrow[i] = (float)value[i];
  cs_tensor_from_f32(&to->desc, narrow, buffers[to->buffer] + to->offset);
  for (int k = 0; k < CS_MAX_OP_INPUTS; k++) free(inputs[k]);
  free(value);
  free(narrow);
  if (task->node >= 0) cs_node_params_close(params, &its);
}

static bool is_ready(const cs_task *task, const bool *done) {
  for (int k = 0; k < task->n_preds; k++) {
    if (!done[task->preds[k]]) return false;
  }
  return true;
}

/* Any task that is ready; every byte that is read too early is NaN. */
static float *run(const cs_program *program, const cs_params *params, unsigned seed) {
  char **buffers = cs_calloc((size_t)program->n_buffers, sizeof *buffers);
  bool *done = cs_calloc((size_t)program->n_tasks, sizeof *done);
  for (int b = 0; b < program->n_buffers; b++) {
    buffers[b] = malloc((size_t)program->buffers[b].bytes);
    memset(buffers[b], 0xff, (size_t)program->buffers[b].bytes);
  }
  for (int i = 0; i < program->graph->n_inputs; i++) {
    const cs_tensor *tensor = &program->tensors[program->input_tensors[i]];
    int64_t n = elements_of(&tensor->desc.shape);
    float *input = cs_calloc((size_t)n, sizeof *input);
    cs_input_generate(program->graph->values[tensor->value].name, 1, input, n);
    cs_tensor_from_f32(&tensor->desc, input, buffers[tensor->buffer] + tensor->offset);
    free(input);
  }
  for (int left = program->n_tasks; left > 0; left--) {
    int at = (int)(next_random(&seed) % (unsigned)program->n_tasks);
    while (done[at] || !is_ready(&program->tasks[at], done)) at = (at + 1) % program->n_tasks;
    run_task(program, params, &program->tasks[at], buffers);
    done[at] = true;
  }
  const cs_tensor *out = &program->tensors[program->output_tensors[0]];
  float *result = cs_calloc((size_t)elements_of(&out->desc.shape), sizeof *result);
  cs_tensor_to_f32(&out->desc, buffers[out->buffer] + out->offset, result);
  for (int b = 0; b < program->n_buffers; b++) free(buffers[b]);
  free(buffers);
  free(done);
  return result;
}

static cs_program *lower(const cs_graph *graph, cs_layout layout, const cs_division *division) {
  cs_program *program = NULL;
  cs_layout *layouts = cs_calloc((size_t)graph->n_values, sizeof *layouts);
  for (int v = 0; v < graph->n_values; v++) {
    layouts[v] = cs_graph_layout_allowed(graph, v, layout) ? layout : CS_LAYOUT_NCHW;
  }
  assert_ok(cs_program_lower_divided(graph, CS_PRECISION_F32, layouts, division, &program));
  free(layouts);
  return program;
}

static void compare(const sample *s, cs_layout layout, const cs_division *division,
                    const char *what) {
  cs_program *whole = lower(s->passed, layout, NULL);
  cs_program *divided = lower(s->passed, layout, division);
  float *wanted = run(whole, s->params, 0);
  int64_t n = elements_of(&whole->tensors[whole->output_tensors[0]].desc.shape);
  assert_true(divided->n_tasks > whole->n_tasks);
  for (unsigned seed = 0; seed < 3; seed++) {
    float *found = run(divided, s->params, seed);
    for (int64_t i = 0; i < n; i++) {
      if (wanted[i] == found[i]) continue;
      fail_msg("%s, %s, %s, order %u: element %lld: found %g, wanted %g", s->graph->name,
               cs_layout_name(layout), what, seed, (long long)i, (double)found[i],
               (double)wanted[i]);
    }
    free(found);
  }
  free(wanted);
  cs_program_destroy(divided);
  cs_program_destroy(whole);
}

/* ---- Divisions ---- */

static const int64_t odd[] = {3, 3, 1};
static const int64_t twos[] = {2, 2, 2, 1};
static const int64_t ones[] = {1, 1, 1, 1, 1, 1, 1};

/* Each node by one of the lists, or whole; neighbours often by the same one. */
static cs_division *random_division(const cs_graph *graph, unsigned seed) {
  cs_division *division = NULL;
  unsigned pick = 0;
  assert_ok(cs_division_create(graph, &division));
  for (int i = 0; i < graph->n_nodes; i++) {
    if (next_random(&seed) % 3 == 0) pick = next_random(&seed) % 4;
    if (!cs_node_divides(graph, i)) continue;
    if (pick == 0) assert_ok(cs_division_set(division, graph, i, odd, 3));
    if (pick == 1) assert_ok(cs_division_set(division, graph, i, twos, 4));
    if (pick == 2) assert_ok(cs_division_set(division, graph, i, ones, 7));
  }
  return division;
}

static void compare_divisions(const char *family) {
  sample s = sample_open(family, BATCH);
  static const cs_layout layouts[] = {CS_LAYOUT_NCHW, CS_LAYOUT_NHWC, CS_LAYOUT_NCHW16C};
  for (int l = 0; l < 3; l++) {
    cs_division *evenly = NULL;
    assert_ok(cs_division_create(s.passed, &evenly));
    assert_ok(cs_division_evenly(evenly, s.passed, 3));
    compare(&s, layouts[l], evenly, "three parts");
    cs_division_destroy(evenly);
    for (unsigned seed = 1; seed <= 3; seed++) {
      char what[32];
      cs_division *mixed = random_division(s.passed, seed * 7919u + (unsigned)l);
      snprintf(what, sizeof what, "mixed %u", seed);
      if (cs_division_count(mixed) > 0) compare(&s, layouts[l], mixed, what);
      cs_division_destroy(mixed);
    }
  }
  sample_close(&s);
}

#define FAMILY_TEST(family)          \
  static void family(void **state) { \
    (void)state;                     \
    compare_divisions(#family);      \
  }
FAMILY_TEST(inception_lrn)
FAMILY_TEST(inception_factorised)
FAMILY_TEST(residual_bottleneck)
FAMILY_TEST(dense_block)
FAMILY_TEST(dcgan_head)
FAMILY_TEST(conv_variants)
FAMILY_TEST(transposed_variants)
FAMILY_TEST(pools)
FAMILY_TEST(normalisations)
FAMILY_TEST(elementwise)
FAMILY_TEST(movements)
FAMILY_TEST(attention)

/* ---- What becomes of a chain ---- */

static const char chain[] =
    "{\"schema\":\"convsched.graph/1\",\"name\":\"t\",\"inputs\":[{\"name\":\"x\",\"shape\":"
    "[\"N\",3,8,8],\"dtype\":\"f32\"}],\"nodes\":["
    "{\"name\":\"a\",\"op\":\"Conv\",\"inputs\":[\"x\"],\"attrs\":{\"out_channels\":4,"
    "\"kernel_shape\":[3,3]}},"
    "{\"name\":\"b\",\"op\":\"Conv\",\"inputs\":[\"a\"],\"attrs\":{\"out_channels\":4,"
    "\"kernel_shape\":[3,3]}},"
    "{\"name\":\"f\",\"op\":\"Flatten\",\"inputs\":[\"b\"],\"attrs\":{\"axis\":1}},"
    "{\"name\":\"g\",\"op\":\"Gemm\",\"inputs\":[\"f\"],\"attrs\":{\"out_features\":5}}],"
    "\"outputs\":[\"g\"]}";

static cs_graph *chain_of(int64_t batch) {
  cs_graph *graph = NULL, *bound = NULL;
  assert_ok(cs_graph_parse(chain, strlen(chain), "t.json", &graph));
  assert_ok(cs_graph_bind(graph, batch, &bound));
  cs_graph_destroy(graph);
  return bound;
}

static const cs_task *task_named(const cs_program *program, const char *name) {
  for (int i = 0; i < program->n_tasks; i++) {
    if (strcmp(program->tasks[i].name, name) == 0) return &program->tasks[i];
  }
  fail_msg("no task %s", name);
  return NULL;
}

/* Parts of neighbours depend on each other alone, lie in buffers of their own between them, run one
 * behind the other, and what reads all entries waits for all parts. */
static void parts_of_a_chain(void **state) {
  (void)state;
  cs_graph *graph = chain_of(BATCH);
  cs_division *division = NULL;
  assert_ok(cs_division_create(graph, &division));
  for (int i = 0; i < 2; i++) assert_ok(cs_division_set(division, graph, i, odd, 3));
  cs_program *program = lower(graph, CS_LAYOUT_NHWC, division);
  static const char *const order[] = {"a/0", "b/0", "a/1", "b/1", "a/2", "b/2", "g"};
  int i = 0;
  for (int t = 0; t < program->n_tasks; t++) {
    if (program->tasks[t].desc.op == CS_OP_COPY) continue;
    assert_string_equal(program->tasks[t].name, order[i++]);
  }
  assert_int_equal(i, 7);
  const cs_task *last = task_named(program, "b/2");
  assert_int_equal(last->n_preds, 1);
  assert_string_equal(program->tasks[last->preds[0]].name, "a/2");
  assert_int_equal(last->desc.output.shape.dims[0], 1);
  assert_int_equal(last->part, 2);
  const cs_tensor *between = &program->tensors[task_named(program, "a/1")->output];
  assert_int_equal(between->offset, 0);
  assert_string_equal(program->buffers[between->buffer].name, "a/1");
  const cs_tensor *behind = &program->tensors[task_named(program, "b/1")->output];
  assert_string_equal(program->buffers[behind->buffer].name, "b");
  assert_int_equal(behind->offset, (int64_t)3 * 4 * 4 * 4 * (int64_t)sizeof(float));
  cs_program_destroy(program);
  cs_division_destroy(division);
  cs_graph_destroy(graph);
}

/* Of one entry nothing can be divided; more parts than entries are one an entry. */
static void few_entries(void **state) {
  (void)state;
  cs_graph *one = chain_of(1), *two = chain_of(2);
  cs_division *division = NULL;
  assert_ok(cs_division_create(one, &division));
  assert_ok(cs_division_evenly(division, one, 8));
  assert_int_equal(cs_division_count(division), 0);
  cs_division_destroy(division);
  assert_ok(cs_division_create(two, &division));
  assert_ok(cs_division_evenly(division, two, 8));
  assert_int_equal(cs_division_count(division), 3);
  assert_int_equal(cs_division_parts(division, 0)->n, 2);
  cs_division_destroy(division);
  cs_graph_destroy(two);
  cs_graph_destroy(one);
}

static void assert_refused(cs_status st, const char *part) {
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  if (!strstr(cs_status_message(st), part)) fail_msg("%s", cs_status_message(st));
  cs_status_free(st);
}

static void bad_divisions(void **state) {
  (void)state;
  cs_graph *graph = chain_of(BATCH);
  cs_division *division = NULL;
  static const int64_t less[] = {3, 3}, more[] = {4, 4}, none[] = {7, 0};
  assert_ok(cs_division_create(graph, &division));
  assert_refused(cs_division_set(division, graph, 0, less, 2),
                 "node a: found parts of 6 batch entries together, wanted 7");
  assert_refused(cs_division_set(division, graph, 0, more, 2), "part 1: found 4 batch entries");
  assert_refused(cs_division_set(division, graph, 0, none, 2), "part 1: found 0 batch entries");
  assert_refused(cs_division_set(division, graph, 2, odd, 3), "node f: a Flatten");
  assert_refused(cs_division_evenly(division, graph, 0), "found 0 parts");
  assert_int_equal(cs_division_count(division), 0);
  cs_division_destroy(division);
  cs_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_of_a_chain),
      cmocka_unit_test(few_entries),
      cmocka_unit_test(bad_divisions),
      cmocka_unit_test(inception_lrn),
      cmocka_unit_test(inception_factorised),
      cmocka_unit_test(residual_bottleneck),
      cmocka_unit_test(dense_block),
      cmocka_unit_test(dcgan_head),
      cmocka_unit_test(conv_variants),
      cmocka_unit_test(transposed_variants),
      cmocka_unit_test(pools),
      cmocka_unit_test(normalisations),
      cmocka_unit_test(elementwise),
      cmocka_unit_test(movements),
      cmocka_unit_test(attention),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
