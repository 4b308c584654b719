#include "report/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph_internal.h"

#define STEP_US 0.001 /* the shortest that is drawn */

double cs_trace_us(double us) {
  return floor(us * 1000 + 0.5) / 1000;
}

/* Appends, and owns the event at once. */
static cs_status add(json_t *events, json_t *event) {
  if (event && json_array_append_new(events, event) == 0) return CS_OK;
  return cs_no_memory("a trace", json_array_size(events));
}

/* ---- Processes and their streams ---- */

static cs_status name_process(int process, const char *name, json_t *events) {
  CS_RETURN_IF_ERROR(add(events, json_pack("{s:s, s:s, s:i, s:{s:s}}", "ph", "M", "name",
                                           "process_name", "pid", process, "args", "name", name)));
  return add(events, json_pack("{s:s, s:s, s:i, s:{s:i}}", "ph", "M", "name", "process_sort_index",
                               "pid", process, "args", "sort_index", process));
}

/* Threads are numbered from 1 on: viewers take 0 for an idle one. */
static int thread_of(int stream) {
  return stream + 1;
}

static cs_status name_streams(const cs_plan *plan, int process, json_t *events) {
  for (int s = 0; s < plan->n_streams; s++) {
    char name[64];
    int part = plan->n_parts > 0 ? plan->stream_part[s] : -1;
    if (part >= 0) {
      snprintf(name, sizeof name, "stream %d (%d SMs)", s, plan->parts[part]);
    } else {
      snprintf(name, sizeof name, "stream %d", s);
    }
    CS_RETURN_IF_ERROR(
        add(events, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name", "thread_name",
                              "pid", process, "tid", thread_of(s), "args", "name", name)));
    CS_RETURN_IF_ERROR(add(
        events, json_pack("{s:s, s:s, s:i, s:i, s:{s:i}}", "ph", "M", "name", "thread_sort_index",
                          "pid", process, "tid", thread_of(s), "args", "sort_index", s)));
  }
  return CS_OK;
}

/* ---- Slices ---- */

static cs_status place_slices(const cs_timeline *timeline, cs_trace_place **out) {
  cs_trace_place *places = cs_calloc((size_t)timeline->n_slices + 1, sizeof *places);
  if (!places) return cs_no_memory("a trace", (size_t)timeline->n_slices * sizeof *places);
  for (int i = 0; i < timeline->n_slices; i++) {
    const cs_timeline_slice *slice = &timeline->slices[i];
    cs_trace_place *place = &places[i];
    *place = (cs_trace_place){cs_trace_us(slice->shown_us), cs_trace_us(slice->end_us)};
    place->end_us = fmax(place->end_us, place->start_us + STEP_US);
  }
  *out = places;
  return CS_OK;
}

static json_t *known_integer(bool known, json_int_t value) {
  return known ? json_integer(value) : json_null();
}

static json_t *extents(bool known, const int of[3]) {
  return known ? json_pack("[i, i, i]", of[0], of[1], of[2]) : json_null();
}

static json_int_t product(const int of[3]) {
  return (json_int_t)of[0] * of[1] * of[2];
}

/* Threads resident on an SM, of those that it has room for, percent. */
static json_t *occupancy(const cs_timeline_slice *slice, const cs_unit_limits *unit) {
  if (!slice->kernel_known || unit->threads <= 0) return json_null();
  double threads = (double)product(slice->kernel.block) * slice->kernel.blocks_per_unit;
  return json_real(cs_trace_us(100 * threads / unit->threads));
}

static int add_kernel(json_t *args, const cs_timeline_slice *slice, const cs_unit_limits *unit) {
  const cs_kernel_info *kernel = &slice->kernel;
  bool known = slice->kernel_known, grid = known && slice->grid_known;
  int failed = json_object_set_new(args, "kernel", known ? json_string(kernel->name) : json_null());
  failed |=
      json_object_set_new(args, "registers_per_thread", known_integer(known, kernel->registers));
  failed |= json_object_set_new(args, "static_shared_bytes_per_block",
                                known_integer(known, kernel->static_shared));
  failed |= json_object_set_new(args, "dynamic_shared_bytes_per_block",
                                known_integer(known, kernel->dynamic_shared));
  failed |= json_object_set_new(args, "local_bytes_per_thread",
                                known_integer(known, kernel->local_bytes));
  failed |=
      json_object_set_new(args, "threads_per_block", known_integer(known, product(kernel->block)));
  failed |= json_object_set_new(args, "blocks", known_integer(grid, product(kernel->grid)));
  failed |= json_object_set_new(args, "grid", extents(grid, kernel->grid));
  failed |= json_object_set_new(args, "block", extents(known, kernel->block));
  failed |=
      json_object_set_new(args, "blocks_per_sm", known_integer(known, kernel->blocks_per_unit));
  failed |= json_object_set_new(args, "occupancy_percent", occupancy(slice, unit));
  return failed;
}

static json_t *nodes_json(const cs_timeline_slice *slice) {
  json_t *nodes = json_array();
  for (int n = 0; n < slice->n_nodes; n++)
    json_array_append_new(nodes, json_string(slice->nodes[n]));
  return nodes;
}

static json_t *slice_args(const cs_timeline_slice *slice, const cs_unit_limits *unit) {
  json_t *args = json_pack(
      "{s:o, s:s, s:i, s:i, s:i, s:i, s:o, s:o, s:i, s:I, s:f, s:f, s:b}", "nodes",
      nodes_json(slice), "candidate", slice->candidate, "position", slice->position, "kernel_index",
      slice->index, "kernels_of_launch", slice->of, "stream", slice->stream, "device_stream",
      known_integer(slice->device_stream >= 0, slice->device_stream), "part_sms",
      slice->part > 0 ? json_integer(slice->part) : json_null(), "priority", slice->priority,
      "workspace_bytes", (json_int_t)slice->workspace_bytes, "start_us",
      cs_trace_us(slice->start_us), "end_us", cs_trace_us(slice->end_us), "early", slice->early);
  if (args && add_kernel(args, slice, unit) == 0) return args;
  json_decref(args);
  return NULL;
}

static cs_status add_slices(const cs_trace_input *input, const cs_timeline *timeline,
                            const cs_trace_place *places, int process, json_t *events) {
  for (int i = 0; i < timeline->n_slices; i++) {
    const cs_timeline_slice *slice = &timeline->slices[i];
    json_t *event = json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f}", "ph", "X", "name", slice->name,
                              "cat", slice->copy ? "copy" : "node", "pid", process, "tid",
                              thread_of(slice->stream), "ts", places[i].start_us, "dur",
                              cs_trace_us(places[i].end_us - places[i].start_us));
    if (json_object_set_new(event, "args", slice_args(slice, &input->device->unit)) != 0) {
      json_decref(event);
      event = NULL;
    }
    CS_RETURN_IF_ERROR(add(events, event));
  }
  return CS_OK;
}

/* ---- Dependencies ---- */

/* Both ends are inside of their slices, and no arrow points back. */
static cs_status add_flows(const cs_timeline *timeline, const cs_trace_place *places, int process,
                           int *next_id, json_t *events) {
  for (int e = 0; e < timeline->n_edges; e++) {
    const cs_timeline_edge *edge = &timeline->edges[e];
    const cs_trace_place *from = &places[edge->from], *to = &places[edge->to];
    double start = fmax(from->start_us, from->end_us - STEP_US);
    double end = fmin(fmax(to->start_us, start), fmax(to->start_us, to->end_us - STEP_US));
    int id = (*next_id)++;
    CS_RETURN_IF_ERROR(
        add(events,
            json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:f}", "ph", "s", "name", "dependency", "cat",
                      "dependency", "id", id, "pid", process, "tid",
                      thread_of(timeline->slices[edge->from].stream), "ts", cs_trace_us(start))));
    CS_RETURN_IF_ERROR(add(
        events, json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:f}", "ph", "f", "bp", "e", "name",
                          "dependency", "cat", "dependency", "id", id, "pid", process, "tid",
                          thread_of(timeline->slices[edge->to].stream), "ts", cs_trace_us(end))));
  }
  return CS_OK;
}

/* ---- Nodes without a kernel ---- */

static bool is_computed(const cs_timeline *timeline, const char *name) {
  for (int i = 0; i < timeline->n_slices; i++) {
    for (int n = 0; n < timeline->slices[i].n_nodes; n++) {
      if (strcmp(timeline->slices[i].nodes[n], name) == 0) return true;
    }
  }
  return false;
}

static const char *why_not_computed(const cs_node *node) {
  if (cs_node_is_identity(node)) return "it changes nothing and was dropped";
  switch (node->op) {
    case CS_OP_CONCAT:
      return "its inputs are written, or copied, into place";
    case CS_OP_FLATTEN:
    case CS_OP_RESHAPE:
      return "its output is its input's bytes";
    default:
      return "another node computes what it does";
  }
}

static json_t *nodes_without_kernel(const cs_trace_input *input) {
  json_t *list = json_array();
  for (int n = 0; n < input->bound->n_nodes; n++) {
    const cs_node *node = &input->bound->nodes[n];
    if (is_computed(input->planned, node->name)) continue;
    json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "node", node->name, "op",
                                          cs_op_name(node->op), "why", why_not_computed(node)));
  }
  return list;
}

/* ---- All of it ---- */

static cs_status add_timeline(const cs_trace_input *input, const cs_timeline *timeline, int process,
                              int *next_id, json_t *events) {
  cs_status st = CS_OK;
  cs_trace_place *places = NULL;
  CS_TRY(st, name_process(process, cs_timeline_source_name(timeline->source), events), done);
  CS_TRY(st, name_streams(input->plan, process, events), done);
  CS_TRY(st, place_slices(timeline, &places), done);
  CS_TRY(st, add_slices(input, timeline, places, process, events), done);
  CS_TRY(st, add_flows(timeline, places, process, next_id, events), done);
  st = cs_trace_counters(input, timeline, process, events);
done:
  free(places);
  return st;
}

cs_status cs_trace_make(const cs_trace_input *input, json_t *other, json_t **out) {
  cs_status st = CS_OK;
  json_t *events = json_array(), *told = json_copy(other);
  int next_id = 1;
  *out = NULL;
  if (!events || !told ||
      json_object_set_new(told, "nodes_without_kernel", nodes_without_kernel(input)) != 0) {
    CS_TRY(st, cs_no_memory("a trace", 0), done);
  }
  if (input->measured) {
    CS_TRY(st, add_timeline(input, input->measured, CS_TRACE_MEASURED, &next_id, events), done);
  }
  CS_TRY(st, add_timeline(input, input->planned, CS_TRACE_PLANNED, &next_id, events), done);
  *out = json_pack("{s:s, s:s, s:O, s:O}", "schema", "convsched.trace/1", "displayTimeUnit", "ns",
                   "otherData", told, "traceEvents", events);
  if (!*out) st = cs_no_memory("a trace", 0);
done:
  json_decref(events);
  json_decref(told);
  return st;
}
