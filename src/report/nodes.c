/* The nodes of a graph, their operations in every layout, and which of them a report is about. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "report/report.h"

void cs_report_nodes_free(cs_report_nodes *nodes) {
  for (int i = 0; i < nodes->n; i++) {
    for (int k = 0; k < nodes->items[i].n_ops; k++) free(nodes->items[i].ops[k].signature);
  }
  free(nodes->items);
  *nodes = (cs_report_nodes){0};
}

void cs_report_measure_command(const cs_report_input *input, const char *more, cs_strbuf *out) {
  cs_strbuf_printf(out, "`convsched profile %s --batch %lld --dtype %s%s`", input->graph->source,
                   (long long)input->graph->batch, cs_precision_name(input->precision), more);
}

const char *cs_report_device_name(const cs_report_input *input) {
  const cs_device_info *device = cs_profile_device(input->profile);
  return device ? device->name : cs_profile_identity(input->profile);
}

/* ---- Operations ---- */

/* Adds a task to its node, unless it is there in another layout with the same signature. */
static cs_status add_operation(const cs_report_input *input, const cs_task *task,
                               cs_report_node *node) {
  char *signature = NULL;
  CS_RETURN_IF_ERROR(cs_op_signature(&task->desc, &signature));
  for (int k = 0; k < node->n_ops; k++) {
    if (strcmp(node->ops[k].signature, signature) == 0) {
      free(signature);
      return CS_OK;
    }
  }
  if (node->n_ops == 0) node->desc = task->desc;
  node->ops[node->n_ops++] = (cs_report_op){.layout = task->desc.output.layout,
                                            .signature = signature,
                                            .known = cs_profile_find(input->profile, signature)};
  return CS_OK;
}

/* Lowers the graph with `wanted` wherever it is allowed and adds the operations of its nodes.
 * `items`: per graph node. */
static cs_status add_layout(const cs_report_input *input, cs_layout wanted, cs_layout *layouts,
                            cs_report_node *items) {
  const cs_graph *graph = input->graph;
  cs_graph_uniform_layouts(graph, wanted, layouts);
  cs_program *program = NULL;
  CS_RETURN_IF_ERROR(cs_program_lower(graph, input->precision, layouts, &program));
  cs_status st = CS_OK;
  for (int t = 0; t < program->n_tasks && st == CS_OK; t++) {
    const cs_task *task = &program->tasks[t];
    if (task->node >= 0) st = add_operation(input, task, &items[task->node]);
  }
  cs_program_destroy(program);
  return st;
}

static cs_status collect(const cs_report_input *input, cs_report_nodes *out) {
  const cs_graph *graph = input->graph;
  cs_layout *layouts = cs_calloc((size_t)graph->n_values, sizeof *layouts);
  out->items = cs_calloc((size_t)graph->n_nodes, sizeof *out->items);
  if (!layouts || !out->items) {
    free(layouts);
    return cs_no_memory("nodes", (size_t)graph->n_nodes * sizeof *out->items);
  }
  out->n = graph->n_nodes;
  for (int i = 0; i < out->n; i++) {
    out->items[i].node = &graph->nodes[i];
    out->items[i].name = graph->nodes[i].name;
  }
  cs_status st = CS_OK;
  for (int l = 0; l < CS_LAYOUT_COUNT && st == CS_OK; l++) {
    st = add_layout(input, (cs_layout)l, layouts, out->items);
  }
  free(layouts);
  return st;
}

/* ---- Choosing ---- */

static cs_status no_such_node(const cs_report_input *input, const cs_report_nodes *nodes,
                              const char *name) {
  int value = cs_graph_find_value(input->graph, name);
  int host = value >= 0 ? input->graph->values[value].producer : -1;
  if (host >= 0) {
    return cs_error(CS_CODE_NOT_FOUND,
                    "node \"%s\" is no operation of its own: it runs as a part of \"%s\"", name,
                    input->graph->nodes[host].name);
  }
  if (cs_graph_find_value(input->bound, name) >= 0) {
    return cs_error(CS_CODE_NOT_FOUND,
                    "\"%s\" is no operation of its own: it is an input, a view, or was folded or "
                    "fused into another node",
                    name);
  }
  cs_near near = {.wanted = name};
  char text[1024];
  for (int i = 0; i < nodes->n; i++) {
    if (nodes->items[i].n_ops > 0) cs_near_offer(&near, nodes->items[i].name);
  }
  return cs_error(CS_CODE_NOT_FOUND, "model %s has no node \"%s\"%s", input->graph->name, name,
                  cs_near_text(&near, text, sizeof text));
}

static bool is_measured(const cs_report_node *node) {
  for (int k = 0; k < node->n_ops; k++) {
    if (node->ops[k].known && node->ops[k].known->n_records > 0) return true;
  }
  return false;
}

static cs_status not_measured(const cs_report_input *input, const cs_report_node *node) {
  cs_strbuf command = {0};
  char *text = NULL;
  cs_report_measure_command(input, "", &command);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&command, &text));
  cs_status st = cs_error(
      CS_CODE_NOT_FOUND, "the profile of %s has no measurement of node \"%s\" (%s); %s measures it",
      cs_report_device_name(input), node->name, node->ops[0].signature, text);
  free(text);
  return st;
}

static cs_status choose_named(const cs_report_input *input, cs_report_nodes *nodes) {
  for (int p = 0; p < input->n_patterns; p++) {
    const char *pattern = input->patterns[p];
    bool found = false;
    for (int i = 0; i < nodes->n; i++) {
      cs_report_node *node = &nodes->items[i];
      bool fits = strcmp(pattern, node->name) == 0 || fnmatch(pattern, node->name, 0) == 0;
      if (!fits || node->n_ops == 0) continue;
      found = node->chosen = true;
      if (!is_measured(node)) return not_measured(input, node);
    }
    if (!found) return no_such_node(input, nodes, pattern);
  }
  return CS_OK;
}

/* Every measured convolution; of a graph without any, every measured node. */
static cs_status choose_convolutions(const cs_report_input *input, cs_report_nodes *nodes) {
  const cs_report_node *missing = NULL;
  bool any = false, chosen = false;
  for (int i = 0; i < nodes->n && !any; i++) {
    cs_op op = nodes->items[i].node->op;
    any = op == CS_OP_CONV || op == CS_OP_CONV_TRANSPOSE;
  }
  for (int i = 0; i < nodes->n; i++) {
    cs_report_node *node = &nodes->items[i];
    bool wanted = !any || node->node->op == CS_OP_CONV || node->node->op == CS_OP_CONV_TRANSPOSE;
    if (!wanted || node->n_ops == 0) continue;
    node->chosen = is_measured(node);
    chosen = chosen || node->chosen;
    if (!node->chosen && !missing) missing = node;
  }
  if (chosen) return CS_OK;
  if (missing) return not_measured(input, missing);
  return cs_error(CS_CODE_NOT_FOUND, "model %s has no operation to report on", input->graph->name);
}

cs_status cs_report_nodes_of(const cs_report_input *input, cs_report_nodes *out) {
  *out = (cs_report_nodes){0};
  cs_status st = collect(input, out);
  if (st == CS_OK) {
    st = input->n_patterns > 0 ? choose_named(input, out) : choose_convolutions(input, out);
  }
  if (st != CS_OK) cs_report_nodes_free(out);
  return st;
}
