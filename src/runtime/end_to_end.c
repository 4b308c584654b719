/* The whole graph in double precision, and PyTorch's recorded error beside it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/reference/reference.h"
#include "base/file.h"
#include "base/json.h"
#include "base/progress.h"
#include "runtime/session.h"

typedef struct double_run {
  const cs_graph *graph;
  const cs_params *params;
  double **values; /* per graph value, row-major; NULL when not yet or no longer needed */
  int *readers_left;
} double_run;

static cs_status new_value(double_run *run, int value, int64_t *count) {
  CS_RETURN_IF_ERROR(cs_shape_elements(&run->graph->values[value].shape, count));
  run->values[value] = cs_calloc((size_t)*count, sizeof(double));
  return run->values[value] ? CS_OK : cs_no_memory("a value", (size_t)*count * sizeof(double));
}

/* Copies along the concat axis: outer × (inputs' own extents) × inner. */
static cs_status concat_values(double_run *run, const cs_node *node) {
  int64_t count, outer = 1, inner = 1, at = 0;
  CS_RETURN_IF_ERROR(new_value(run, node->output, &count));
  const cs_shape *shape = &run->graph->values[node->output].shape;
  int axis = (int)node->attrs.axis.axis;
  for (int d = 0; d < axis; d++) outer *= shape->dims[d];
  for (int d = axis + 1; d < shape->rank; d++) inner *= shape->dims[d];
  for (int i = 0; i < node->n_inputs; i++) {
    int64_t length = run->graph->values[node->inputs[i]].shape.dims[axis] * inner;
    for (int64_t o = 0; o < outer; o++) {
      memcpy(run->values[node->output] + o * shape->dims[axis] * inner + at,
             run->values[node->inputs[i]] + o * length, (size_t)length * sizeof(double));
    }
    at += length;
  }
  return CS_OK;
}

static cs_status compute_node(double_run *run, int index) {
  const cs_node *node = &run->graph->nodes[index];
  if (node->op == CS_OP_CONCAT) return concat_values(run, node);
  int64_t count;
  CS_RETURN_IF_ERROR(new_value(run, node->output, &count));
  if (cs_op_keeps_order(node->op)) {
    memcpy(run->values[node->output], run->values[node->inputs[0]], (size_t)count * sizeof(double));
    return CS_OK;
  }
  cs_op_desc desc;
  CS_RETURN_IF_ERROR(
      cs_graph_node_desc(run->graph, index, CS_PRECISION_F32, CS_LAYOUT_NCHW, &desc));
  const double *inputs[CS_MAX_OP_INPUTS] = {NULL};
  for (int i = 0; i < node->n_inputs; i++) inputs[i] = run->values[node->inputs[i]];
  cs_node_params its;
  CS_RETURN_IF_ERROR(cs_node_params_open(run->params, run->graph, index, &its));
  cs_status st =
      cs_reference_run(&desc, inputs, its.weight, its.bias, run->values[node->output], NULL, 0);
  cs_node_params_close(run->params, &its);
  return st;
}

static void count_readers(double_run *run) {
  const cs_graph *graph = run->graph;
  for (int n = 0; n < graph->n_nodes; n++) {
    for (int i = 0; i < graph->nodes[n].n_inputs; i++) {
      run->readers_left[graph->nodes[n].inputs[i]]++;
    }
  }
  for (int o = 0; o < graph->n_outputs; o++) run->readers_left[graph->outputs[o]]++;
}

static cs_status run_double(double_run *run, const float *const *inputs) {
  const cs_graph *graph = run->graph;
  count_readers(run);
  for (int i = 0; i < graph->n_inputs; i++) {
    int64_t count;
    CS_RETURN_IF_ERROR(new_value(run, graph->inputs[i], &count));
    for (int64_t e = 0; e < count; e++) run->values[graph->inputs[i]][e] = inputs[i][e];
  }
  for (int n = 0; n < graph->n_nodes; n++) {
    const cs_node *node = &graph->nodes[n];
    cs_progress_step("float64 reference", "nodes", n, graph->n_nodes, "%s", node->name);
    CS_RETURN_IF_ERROR(cs_annotate(compute_node(run, n), "%s in float64: ", node->name));
    for (int i = 0; i < node->n_inputs; i++) {
      if (--run->readers_left[node->inputs[i]] > 0) continue;
      free(run->values[node->inputs[i]]);
      run->values[node->inputs[i]] = NULL;
    }
  }
  return CS_OK;
}

/* ---- The outputs, kept for other policies' ---- */

void cs_known_outputs_clear(cs_known_outputs *known) {
  for (int o = 0; known->values && o < known->n; o++) free(known->values[o]);
  free(known->values);
  *known = (cs_known_outputs){0};
}

static cs_status hash_of(const cs_graph *graph, const float *const *inputs, uint64_t *out) {
  *out = cs_graph_hash(graph);
  for (int i = 0; i < graph->n_inputs; i++) {
    int64_t count;
    CS_RETURN_IF_ERROR(cs_shape_elements(&graph->values[graph->inputs[i]].shape, &count));
    *out = cs_hash_bytes(*out, inputs[i], (size_t)count * sizeof(float));
  }
  return CS_OK;
}

static cs_status copy_outputs(const double_run *run, cs_known_outputs *out) {
  const cs_graph *graph = run->graph;
  out->values = cs_calloc((size_t)graph->n_outputs, sizeof *out->values);
  if (!out->values) return cs_no_memory("outputs", (size_t)graph->n_outputs);
  out->n = graph->n_outputs;
  for (int o = 0; o < graph->n_outputs; o++) {
    int64_t count;
    CS_RETURN_IF_ERROR(cs_shape_elements(&graph->values[graph->outputs[o]].shape, &count));
    out->values[o] = cs_calloc((size_t)count, sizeof(double));
    if (!out->values[o]) return cs_no_memory("an output", (size_t)count * sizeof(double));
    memcpy(out->values[o], run->values[graph->outputs[o]], (size_t)count * sizeof(double));
  }
  return CS_OK;
}

static cs_status compute_outputs(const cs_graph *graph, const cs_params *params,
                                 const float *const *inputs, cs_known_outputs *out) {
  cs_status st = CS_OK;
  double_run run = {.graph = graph, .params = params};
  run.values = cs_calloc((size_t)graph->n_values, sizeof *run.values);
  run.readers_left = cs_calloc((size_t)graph->n_values, sizeof *run.readers_left);
  if (!run.values || !run.readers_left) {
    st = cs_no_memory("values", (size_t)graph->n_values);
    goto done;
  }
  CS_TRY(st, run_double(&run, inputs), done);
  st = copy_outputs(&run, out);
done:
  for (int v = 0; run.values && v < graph->n_values; v++) free(run.values[v]);
  free(run.values);
  free(run.readers_left);
  return st;
}

cs_status cs_known_outputs_make(const cs_graph *graph, const cs_params *params,
                                const float *const *inputs, cs_known_outputs *known) {
  uint64_t hash;
  CS_RETURN_IF_ERROR(hash_of(graph, inputs, &hash));
  if (known->values && known->hash == hash) return CS_OK;
  cs_known_outputs_clear(known);
  cs_status st = compute_outputs(graph, params, inputs, known);
  known->hash = hash;
  if (st != CS_OK) cs_known_outputs_clear(known);
  return st;
}

cs_status cs_end_to_end_error(const cs_graph *graph, const cs_known_outputs *wanted,
                              const float *const *outputs, double *rel_l2) {
  double error = 0, norm = 0;
  for (int o = 0; o < graph->n_outputs; o++) {
    int64_t count;
    const double *value = wanted->values[o];
    CS_RETURN_IF_ERROR(cs_shape_elements(&graph->values[graph->outputs[o]].shape, &count));
    for (int64_t e = 0; e < count; e++) {
      bool same = isnan(value[e]) ? isnan(outputs[o][e]) : outputs[o][e] == value[e];
      if (same && !isfinite(value[e])) continue;
      error += (outputs[o][e] - value[e]) * (outputs[o][e] - value[e]);
      norm += value[e] * value[e];
    }
  }
  *rel_l2 = norm > 0 ? sqrt(error / norm) : sqrt(error);
  return CS_OK;
}

/* ---- PyTorch's own error, from models/errors.json (`convsched.errors/1`) ---- */

#define ERROR_FACTOR 2.0
#define MAX_ERRORS_BYTES ((size_t)16 << 20)

cs_status cs_end_to_end_limit(const cs_graph *graph, cs_precision precision, int64_t batch,
                              uint64_t seed, double *limit) {
  *limit = NAN;
  char *path = NULL, *text = NULL;
  size_t length;
  CS_RETURN_IF_ERROR(cs_path_beside(graph->source, "errors.json", &path));
  cs_status st = cs_file_read(path, MAX_ERRORS_BYTES, &text, &length);
  if (st != CS_OK) {
    /* A graph with no record beside it has no limit. */
    cs_status_free(st);
    free(path);
    return CS_OK;
  }
  st = CS_OK;
  json_error_t problem;
  json_t *root = json_loadb(text, length, 0, &problem);
  if (!root) {
    st = cs_error(CS_CODE_BAD_INPUT, "%s:%d:%d: %s", path, problem.line, problem.column,
                  problem.text);
  }
  size_t i;
  json_t *entry;
  json_array_foreach(json_object_get(root, "entries"), i, entry) {
    const char *model = json_string_value(json_object_get(entry, "model"));
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!model || !dtype || strcmp(model, graph->name) != 0 ||
        strcmp(dtype, cs_precision_name(precision)) != 0 ||
        json_integer_value(json_object_get(entry, "batch")) != batch ||
        (uint64_t)json_integer_value(json_object_get(entry, "seed")) != seed) {
      continue;
    }
    double recorded = ERROR_FACTOR * json_number_value(json_object_get(entry, "rel_l2"));
    if (isnan(*limit) || recorded > *limit) *limit = recorded;
  }
  json_decref(root);
  free(text);
  free(path);
  return st;
}
