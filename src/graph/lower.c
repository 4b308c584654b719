/* Lowering: a bound graph and a layout per value to buffers, tensors and tasks. */
#include <stdlib.h>
#include <string.h>

#include "graph/lower.h"

/* ---- Where values lie ---- */

/* A value may lie in its host if both are stored alike and, in blocked layouts, the slice begins at
 * a block and ends at one or at the host's end. */
static bool lies_in_host(const cs_graph *graph, const cs_layout *layouts, int index) {
  const cs_value *value = &graph->values[index];
  if (value->host < 0) return false;
  int64_t granule = cs_layout_granule(layouts[index]);
  int64_t end = value->host_offset + value->shape.dims[1];
  return layouts[index] == layouts[value->host] && value->host_offset % granule == 0 &&
         (end % granule == 0 || end == graph->values[value->host].shape.dims[1]);
}

static void locate(cs_lowering *lowering) {
  const cs_graph *graph = lowering->graph;
  const cs_layout *layouts = lowering->program->layouts;
  cs_location *location = lowering->location;
  int *way = lowering->buffer; /* scratch until buffers are made */
  for (int v = 0; v < graph->n_values; v++) location[v].root = -1;
  for (int v = 0; v < graph->n_values; v++) {
    int n = 0, at = v;
    while (location[at].root < 0 && lies_in_host(graph, layouts, at)) {
      way[n++] = at;
      at = graph->values[at].host;
    }
    if (location[at].root < 0) location[at] = (cs_location){at, 0};
    while (n-- > 0) {
      const cs_value *value = &graph->values[way[n]];
      location[way[n]] = (cs_location){location[value->host].root,
                                       location[value->host].offset + value->host_offset};
    }
  }
  for (int v = 0; v < graph->n_values; v++) lowering->buffer[v] = -1;
}

/* ---- The whole ---- */

/* A flattened or reshaped graph output lends its buffer to the value that is flattened, where that
 * is the same bytes and somebody really writes them: no copy is needed then. */
static void lend_outputs(cs_lowering *lowering) {
  const cs_graph *graph = lowering->graph;
  for (int v = 0; v < graph->n_values; v++) lowering->lender[v] = -1;
  for (int i = 0; i < graph->n_outputs; i++) {
    const cs_node *flatten = &graph->nodes[graph->values[graph->outputs[i]].producer];
    if (flatten->op != CS_OP_FLATTEN && flatten->op != CS_OP_RESHAPE) continue;
    if (lowering->program->layouts[flatten->output] != CS_LAYOUT_NCHW) continue;
    int value = flatten->inputs[0], producer = graph->values[value].producer;
    if (producer < 0 || lowering->lender[value] >= 0 || lowering->is_output[value]) continue;
    cs_op op = graph->nodes[producer].op;
    if (cs_op_keeps_order(op) || op == CS_OP_SLICE) continue;
    cs_tensor_desc desc = cs_tensor_dense(&graph->values[value].shape, lowering->storage,
                                          lowering->program->layouts[value]);
    if (lowering->location[value].root == value && cs_lower_is_row_major(&desc)) {
      lowering->lender[value] = graph->outputs[i];
    }
  }
}

static cs_status check_layouts(const cs_graph *graph, const cs_layout *layouts) {
  if (graph->batch == CS_DIM_N) {
    return cs_error(CS_CODE_USAGE, "%s: found a symbolic batch, wanted a bound graph",
                    graph->source);
  }
  for (int v = 0; v < graph->n_values; v++) {
    if (graph->values[v].shape.rank != 4) continue;
    bool rows = cs_graph_is_row_major(graph, v);
    if ((int)layouts[v] >= 0 && layouts[v] < CS_LAYOUT_COUNT &&
        cs_graph_layout_allowed(graph, v, layouts[v])) {
      continue;
    }
    return cs_error(CS_CODE_BAD_INPUT, "%s: value \"%s\": found layout %s, wanted %s",
                    graph->source, graph->values[v].name,
                    layouts[v] < CS_LAYOUT_COUNT ? cs_layout_name(layouts[v]) : "unknown",
                    rows ? "nchw, as its operator writes rows alone"
                         : "one whose channel blocks end where the concat's inputs do");
  }
  return CS_OK;
}

static cs_status allocate(cs_lowering *lowering, const cs_layout *layouts) {
  const cs_graph *graph = lowering->graph;
  cs_program *program = lowering->program;
  size_t n_values = (size_t)graph->n_values, n_nodes = (size_t)graph->n_nodes;
  CS_RETURN_IF_ERROR(cs_graph_output_flags(graph, &lowering->is_output));
  for (int i = 0; i < graph->n_nodes; i++) {
    if (graph->nodes[i].op == CS_OP_CONCAT) lowering->n_slots += (size_t)graph->nodes[i].n_inputs;
  }
  program->layouts = cs_calloc(n_values, sizeof *program->layouts);
  program->input_tensors = cs_calloc((size_t)graph->n_inputs, sizeof *program->input_tensors);
  program->output_tensors = cs_calloc((size_t)graph->n_outputs, sizeof *program->output_tensors);
  program->value_tensor = cs_calloc(n_values, sizeof *program->value_tensor);
  lowering->location = cs_calloc(n_values, sizeof *lowering->location);
  lowering->buffer = cs_calloc(n_values, sizeof *lowering->buffer);
  lowering->lender = cs_calloc(n_values, sizeof *lowering->lender);
  lowering->converted = cs_calloc(n_values * CS_LAYOUT_COUNT, sizeof *lowering->converted);
  lowering->first_slot = cs_calloc(n_nodes, sizeof *lowering->first_slot);
  lowering->slot_writers = cs_calloc(lowering->n_slots, sizeof *lowering->slot_writers);
  lowering->seen_node = cs_calloc(n_nodes, sizeof *lowering->seen_node);
  if (!program->layouts || !program->input_tensors || !program->output_tensors ||
      !program->value_tensor || !lowering->location || !lowering->buffer || !lowering->lender ||
      !lowering->converted || !lowering->first_slot || !lowering->slot_writers ||
      !lowering->seen_node) {
    return cs_no_memory("a program", n_values * sizeof *lowering->location);
  }
  for (int i = 0, slot = 0; i < graph->n_nodes; i++) {
    lowering->first_slot[i] = slot;
    if (graph->nodes[i].op == CS_OP_CONCAT) slot += graph->nodes[i].n_inputs;
  }
  for (int v = 0; v < graph->n_values; v++) {
    program->layouts[v] = graph->values[v].shape.rank == 4 ? layouts[v] : CS_LAYOUT_NCHW;
    program->value_tensor[v] = -1;
  }
  for (size_t i = 0; i < n_values * CS_LAYOUT_COUNT; i++) lowering->converted[i] = -1;
  return CS_OK;
}

static void release(cs_lowering *lowering) {
  free(lowering->is_output);
  free(lowering->location);
  free(lowering->buffer);
  free(lowering->lender);
  free(lowering->writer);
  free(lowering->converted);
  cs_pair_map_free(&lowering->slices);
  free(lowering->first_slot);
  free(lowering->slot_writers);
  free(lowering->seen_node);
  free(lowering->seen_task);
  free(lowering->stack);
  free(lowering->found);
  cs_lower_parts_release(lowering);
  cs_program_destroy(lowering->program);
}

/* Neighbours of one list are lowered together. */
static cs_status lower_nodes(cs_lowering *lowering) {
  const cs_graph *graph = lowering->graph;
  const cs_division *division = lowering->program->division;
  for (int i = 0; i < graph->n_nodes;) {
    int end = i + 1;
    if (!cs_division_parts(division, i)) {
      CS_RETURN_IF_ERROR(cs_lower_node(lowering, i));
    } else {
      while (end < graph->n_nodes && division->list_of[end] == division->list_of[i]) end++;
      CS_RETURN_IF_ERROR(cs_lower_divided(lowering, i, end));
    }
    i = end;
  }
  return CS_OK;
}

cs_status cs_program_lower(const cs_graph *graph, cs_precision precision, const cs_layout *layouts,
                           cs_program **out) {
  return cs_program_lower_divided(graph, precision, layouts, NULL, out);
}

cs_status cs_program_lower_divided(const cs_graph *graph, cs_precision precision,
                                   const cs_layout *layouts, const cs_division *division,
                                   cs_program **out) {
  cs_status st = CS_OK;
  *out = NULL;
  CS_RETURN_IF_ERROR(check_layouts(graph, layouts));
  cs_lowering lowering = {
      .graph = graph, .storage = cs_precision_storage(precision), .now = {.list = -1, .part = -1}};
  cs_program *program = lowering.program = cs_calloc(1, sizeof *program);
  if (!program) return cs_no_memory("a program", sizeof *program);
  program->graph = graph;
  program->precision = precision;
  CS_TRY(st, allocate(&lowering, layouts), done);
  if (cs_division_count(division) > 0) {
    CS_TRY(st, cs_division_copy(division, &program->division), done);
  }
  locate(&lowering);
  lend_outputs(&lowering);
  if (program->division) CS_TRY(st, cs_lower_parts_begin(&lowering), done);
  for (int i = 0; i < graph->n_inputs; i++) {
    CS_TRY(st,
           cs_lower_value(&lowering, graph->inputs[i], CS_WRITER_NONE, &program->input_tensors[i]),
           done);
  }
  CS_TRY(st, lower_nodes(&lowering), done);
  for (int i = 0; i < graph->n_outputs; i++) {
    program->output_tensors[i] = program->value_tensor[graph->outputs[i]];
  }
  *out = program;
  lowering.program = NULL;
done:
  release(&lowering);
  return st;
}
