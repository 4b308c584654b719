/* The nodes of a document: attributes, names of inputs, order, shapes. */
#include "graph/document.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static cs_status read_attrs(const cs_loader *load, int index, cs_node *node, const json_t *attrs) {
  cs_place place = {load->source, index, node->name};
  if (attrs && !json_is_object(attrs)) {
    char text[CS_TEXT_SIZE];
    return cs_place_error(&place, "attrs", "found %s, wanted an object",
                          cs_json_found(attrs, text));
  }
  cs_attr_reader reader = {.place = &place, .object = attrs};
  const cs_op_family *family = cs_op_family_of(node->op);
  if (family->parse) CS_RETURN_IF_ERROR(family->parse(&reader, node->op, &node->attrs));
  return cs_attr_finish(&reader);
}

static cs_status read_node(cs_loader *load, int index, const json_t *json) {
  static const char *const keys[] = {"name", "op", "inputs", "attrs", NULL};
  cs_node *node = &load->drafts[index];
  cs_path_text path = cs_path_of("nodes[%d]", index);
  if (!json_is_object(json)) return cs_load_error(load, path.text, json, "an object");
  path = cs_path_of("nodes[%d].name", index);
  const json_t *name = json_object_get(json, "name");
  CS_RETURN_IF_ERROR(cs_load_name(load, path.text, name, load->graph->n_inputs + index));
  CS_RETURN_IF_ERROR(cs_strdup_to(json_string_value(name), &node->name));
  cs_strbuf place = {0};
  cs_strbuf_printf(&place, "nodes[%d] (node \"%s\")", index, node->name);
  char *text = NULL;
  CS_RETURN_IF_ERROR(cs_strbuf_take(&place, &text));
  cs_status st = cs_load_keys(load, text, json, keys);
  free(text);
  CS_RETURN_IF_ERROR(st);
  const json_t *op = json_object_get(json, "op");
  if (!json_is_string(op) || !cs_op_parse(json_string_value(op), &node->op)) {
    cs_place at = {load->source, index, node->name};
    char found[CS_TEXT_SIZE];
    return cs_place_error(&at, "op", "found %s, wanted the name of an operator%s",
                          cs_json_found(op, found),
                          json_is_string(op) ? " of convsched.graph/1" : "");
  }
  return read_attrs(load, index, node, json_object_get(json, "attrs"));
}

static cs_status count_error(const cs_place *place, const cs_op_family *family, cs_op op,
                             size_t found) {
  return cs_place_error(place, "inputs", "found %zu inputs, wanted %s%d for %s", found,
                        family->max_inputs < 0 ? "at least " : "", family->min_inputs,
                        cs_op_name(op));
}

/* Names of inputs to value numbers; every name is in the map by now. */
static cs_status resolve_inputs(cs_loader *load, int index) {
  cs_node *node = &load->drafts[index];
  const cs_op_family *family = cs_op_family_of(node->op);
  cs_place place = {load->source, index, node->name};
  const json_t *list = json_object_get(json_array_get(load->nodes, (size_t)index), "inputs");
  char text[CS_TEXT_SIZE];
  if (!json_is_array(list)) {
    return cs_place_error(&place, "inputs", "found %s, wanted an array of names",
                          cs_json_found(list, text));
  }
  size_t n = json_array_size(list);
  if (n < (size_t)family->min_inputs || n > INT_MAX / 2 ||
      (family->max_inputs >= 0 && n > (size_t)family->max_inputs)) {
    return count_error(&place, family, node->op, n);
  }
  node->inputs = cs_calloc(n, sizeof *node->inputs);
  if (!node->inputs) return cs_no_memory("inputs", n * sizeof *node->inputs);
  node->n_inputs = (int)n;
  for (size_t i = 0; i < n; i++) {
    const json_t *entry = json_array_get(list, i);
    const char *name = json_string_value(entry);
    node->inputs[i] = name ? cs_name_map_get(&load->names, name) : -1;
    if (node->inputs[i] >= 0) continue;
    cs_path_text key = cs_path_of("inputs[%zu]", i);
    return cs_place_error(&place, key.text,
                          "found %s, wanted the name of a graph input or of another node",
                          cs_json_found(entry, text));
  }
  return CS_OK;
}

static cs_status read_nodes(cs_loader *load) {
  load->drafts = cs_calloc((size_t)load->n_nodes, sizeof *load->drafts);
  if (!load->drafts) {
    return cs_no_memory("nodes", (size_t)load->n_nodes * sizeof *load->drafts);
  }
  for (int i = 0; i < load->n_nodes; i++) {
    CS_RETURN_IF_ERROR(read_node(load, i, json_array_get(load->nodes, (size_t)i)));
  }
  for (int i = 0; i < load->n_nodes; i++) CS_RETURN_IF_ERROR(resolve_inputs(load, i));
  return CS_OK;
}

/* ---- Order ---- */

typedef struct frame {
  int node, next_input;
} frame;

enum { UNSEEN, OPEN, FINISHED };

/* Depth first from every node in file order, on a stack of our own: a file that is in order already
 * keeps its order. A node met while it is open lies on a cycle. */
static cs_status visit(cs_loader *load, int start, frame *stack, char *state, int *n_ordered) {
  int depth = 0;
  stack[depth++] = (frame){start, 0};
  state[start] = OPEN;
  while (depth > 0) {
    frame *top = &stack[depth - 1];
    const cs_node *node = &load->drafts[top->node];
    if (top->next_input == node->n_inputs) {
      state[top->node] = FINISHED;
      load->order[(*n_ordered)++] = top->node;
      depth--;
      continue;
    }
    int producer = node->inputs[top->next_input++] - load->graph->n_inputs;
    if (producer < 0 || state[producer] == FINISHED) continue;
    if (state[producer] == OPEN) {
      cs_place place = {load->source, producer, load->drafts[producer].name};
      return cs_place_error(&place, "inputs",
                            "found a cycle through this node, wanted an acyclic graph");
    }
    state[producer] = OPEN;
    stack[depth++] = (frame){producer, 0};
  }
  return CS_OK;
}

static cs_status sort_nodes(cs_loader *load) {
  cs_status st = CS_OK;
  size_t n = (size_t)load->n_nodes;
  frame *stack = cs_calloc(n, sizeof *stack);
  char *state = cs_calloc(n, 1);
  load->order = cs_calloc(n, sizeof *load->order);
  if (!stack || !state || !load->order) {
    st = cs_no_memory("the order of nodes", n * (sizeof *stack + sizeof *load->order + 1));
    goto done;
  }
  int n_ordered = 0;
  for (int i = 0; i < load->n_nodes; i++) {
    if (state[i] == UNSEEN) CS_TRY(st, visit(load, i, stack, state, &n_ordered), done);
  }
done:
  free(stack);
  free(state);
  return st;
}

/* Moves the drafts into the graph in order and renumbers values: inputs, then nodes' outputs. */
static cs_status place_nodes(cs_loader *load) {
  cs_graph *graph = load->graph;
  size_t n = (size_t)load->n_nodes;
  int *position = cs_calloc(n, sizeof *position);
  graph->nodes = cs_calloc(n, sizeof *graph->nodes);
  if (!position || !graph->nodes) {
    free(position);
    return cs_no_memory("nodes", n * (sizeof *position + sizeof *graph->nodes));
  }
  for (int i = 0; i < load->n_nodes; i++) position[load->order[i]] = i;
  cs_status st = CS_OK;
  for (int i = 0; i < load->n_nodes; i++) {
    cs_node *node = &graph->nodes[graph->n_nodes++];
    *node = load->drafts[load->order[i]];
    load->drafts[load->order[i]] = (cs_node){0};
    for (int k = 0; k < node->n_inputs; k++) {
      int producer = node->inputs[k] - graph->n_inputs;
      if (producer >= 0) node->inputs[k] = graph->n_inputs + position[producer];
    }
    node->output = graph->n_inputs + i;
    graph->values[node->output].producer = i;
    CS_TRY(st, cs_strdup_to(node->name, &graph->values[node->output].name), done);
    cs_place place = {load->source, load->order[i], node->name};
    CS_TRY(st, cs_graph_infer_node(graph, i, &place), done);
  }
done:
  free(position);
  return st;
}

cs_status cs_load_nodes(cs_loader *load) {
  CS_RETURN_IF_ERROR(read_nodes(load));
  CS_RETURN_IF_ERROR(sort_nodes(load));
  return place_nodes(load);
}
