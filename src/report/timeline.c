#include "report/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/told.h"
#include "report/report.h"
#include "scheduler/task_labels.h"

const char *cs_timeline_source_name(cs_timeline_source source) {
  static const char *const names[] = {"planned", "simulated", "measured"};
  return names[source];
}

typedef struct maker {
  const cs_kernel_list_input *input;
  const cs_kernel_list *list;
  const cs_timeline_times *times;
  cs_timeline *out;
  json_t *index; /* what `labels` points into */
  const char **labels;
  int *nodes;                    /* scratch of cs_graph_nodes_of */
  int *first_slice, *last_slice; /* per plan position that leads a launch */
  int *position_of;              /* per task */
  size_t edges_capacity;
} maker;

/* ---- One slice ---- */

static cs_status name_slice(const maker *m, int position, cs_timeline_slice *out) {
  const cs_plan *plan = m->input->plan;
  cs_strbuf name = {0};
  for (int p = position; p < cs_plan_launch_end(plan, position); p++) {
    cs_strbuf_printf(&name, "%s%s", p > position ? " + " : "", m->labels[plan->tasks[p].task]);
  }
  return cs_strbuf_take(&name, &out->name);
}

/* A merged launch may compute several parts of one node. */
static cs_status add_node(cs_timeline_slice *slice, const char *name) {
  for (int i = 0; i < slice->n_nodes; i++) {
    if (strcmp(slice->nodes[i], name) == 0) return CS_OK;
  }
  CS_RETURN_IF_ERROR(cs_strdup_to(name, &slice->nodes[slice->n_nodes]));
  slice->n_nodes++;
  return CS_OK;
}

/* Room for all of the graph's nodes: a launch computes few, and none twice. */
static cs_status list_nodes(const maker *m, int position, cs_timeline_slice *out) {
  const cs_kernel_list_input *input = m->input;
  out->nodes = cs_calloc((size_t)input->bound->n_nodes + 1, sizeof *out->nodes);
  if (!out->nodes) return cs_no_memory("the nodes of a kernel", (size_t)input->bound->n_nodes);
  for (int p = position; p < cs_plan_launch_end(input->plan, position); p++) {
    const cs_task *task = &input->program->tasks[input->plan->tasks[p].task];
    if (task->node < 0) continue;
    int n = cs_graph_nodes_of(input->bound, input->program->graph, task->node, m->nodes);
    for (int i = 0; i < n; i++) {
      CS_RETURN_IF_ERROR(add_node(out, input->bound->nodes[m->nodes[i]].name));
    }
    if (n == 0) CS_RETURN_IF_ERROR(add_node(out, task->name));
  }
  return CS_OK;
}

static void fill_slice(const maker *m, const cs_listed_kernel *item, cs_timeline_slice *out) {
  const cs_plan *plan = m->input->plan;
  const cs_plan_task *placed = &plan->tasks[item->position];
  int part = plan->n_parts > 0 ? plan->stream_part[placed->stream] : -1;
  out->position = item->position;
  out->index = item->index;
  out->of = item->of;
  out->stream = placed->stream;
  out->part = part < 0 ? 0 : plan->parts[part];
  out->priority = placed->priority;
  out->workspace_bytes = placed->workspace_bytes;
  out->copy = m->input->program->tasks[placed->task].node < 0;
  out->kernel_known = item->info != NULL;
  out->grid_known = item->grid_known;
  if (!item->info) return;
  out->kernel = *item->info;
  cs_report_kernel_name(item->info->name, out->short_kernel);
}

static cs_status make_slice(const maker *m, size_t i, cs_timeline_slice *out) {
  const cs_listed_kernel *item = &m->list->items[i];
  CS_RETURN_IF_ERROR(name_slice(m, item->position, out));
  CS_RETURN_IF_ERROR(list_nodes(m, item->position, out));
  CS_RETURN_IF_ERROR(
      cs_strdup_to(m->input->plan->tasks[item->position].candidate.id, &out->candidate));
  fill_slice(m, item, out);
  out->start_us = m->times ? m->times[i].start_us : item->start_us;
  out->device_stream = m->times ? m->times[i].device_stream : -1;
  out->end_us = m->times ? m->times[i].end_us : item->start_us + item->us;
  return CS_OK;
}

static cs_status make_slices(const maker *m) {
  cs_timeline *out = m->out;
  out->slices = cs_calloc(m->list->n + 1, sizeof *out->slices);
  if (!out->slices) return cs_no_memory("a timeline", m->list->n * sizeof *out->slices);
  for (size_t i = 0; i < m->list->n; i++) {
    if (m->list->items[i].of == 0) continue; /* part of another launch */
    if (m->times && isnan(m->times[i].start_us)) continue;
    CS_RETURN_IF_ERROR(make_slice(m, i, &out->slices[out->n_slices++]));
  }
  return CS_OK;
}

/* ---- All of them ---- */

static int by_start(const void *a, const void *b) {
  const cs_timeline_slice *x = a, *y = b;
  if (x->start_us != y->start_us) return x->start_us < y->start_us ? -1 : 1;
  if (x->position != y->position) return x->position - y->position;
  return x->index - y->index;
}

/* From the first start on. */
static void shift(cs_timeline *out) {
  double first = out->n_slices > 0 ? out->slices[0].start_us : 0;
  for (int i = 0; i < out->n_slices; i++) {
    cs_timeline_slice *slice = &out->slices[i];
    slice->start_us -= first;
    slice->end_us -= first;
    out->span_us = fmax(out->span_us, slice->end_us);
  }
}

/* ---- Dependencies ---- */

static cs_status add_edge(maker *m, int from, int to) {
  cs_timeline *out = m->out;
  CS_RETURN_IF_ERROR(
      cs_grow(&out->edges, &m->edges_capacity, (size_t)out->n_edges + 1, sizeof *out->edges));
  out->edges[out->n_edges++] = (cs_timeline_edge){from, to};
  return CS_OK;
}

static int by_ends(const void *a, const void *b) {
  const cs_timeline_edge *x = a, *y = b;
  return x->to != y->to ? x->to - y->to : x->from - y->from;
}

/* Those of all tasks of the launch that `leader` begins; some of them twice. */
static cs_status add_edges_to(maker *m, int leader) {
  const cs_plan *plan = m->input->plan;
  for (int p = leader; p < cs_plan_launch_end(plan, leader); p++) {
    const cs_task *task = &m->input->program->tasks[plan->tasks[p].task];
    for (int k = 0; k < task->n_preds; k++) {
      int from = cs_plan_leader(plan, m->position_of[task->preds[k]]);
      int a = m->last_slice[from], b = m->first_slice[leader];
      if (from != leader && a >= 0 && b >= 0) CS_RETURN_IF_ERROR(add_edge(m, a, b));
    }
  }
  return CS_OK;
}

static cs_status make_edges(maker *m) {
  const cs_plan *plan = m->input->plan;
  cs_timeline *out = m->out;
  for (int p = 0; p < plan->n_tasks; p++) {
    m->position_of[plan->tasks[p].task] = p;
    m->first_slice[p] = m->last_slice[p] = -1;
  }
  for (int i = 0; i < out->n_slices; i++) {
    const cs_timeline_slice *slice = &out->slices[i];
    if (slice->index == 0) m->first_slice[slice->position] = i;
    if (slice->index == slice->of - 1) m->last_slice[slice->position] = i;
  }
  for (int p = 0; p < plan->n_tasks; p++) {
    if (plan->tasks[p].merged < 0) CS_RETURN_IF_ERROR(add_edges_to(m, p));
  }
  if (out->n_edges == 0) return CS_OK;
  qsort(out->edges, (size_t)out->n_edges, sizeof *out->edges, by_ends);
  int n = 1;
  for (int e = 1; e < out->n_edges; e++) {
    if (by_ends(&out->edges[e], &out->edges[n - 1]) != 0) out->edges[n++] = out->edges[e];
  }
  out->n_edges = n;
  return CS_OK;
}

/* ---- What began before what it waits for had ended ---- */

/* `ends` is when what slice i waits for had ended. */
static void place(cs_timeline *out, int i, double ends) {
  cs_timeline_slice *slice = &out->slices[i];
  double before = ends - slice->start_us;
  slice->shown_us = fmax(slice->start_us, ends);
  if (before <= 0) return;
  slice->early = slice->kernel_known && slice->kernel.early;
  if (!slice->early) out->slack_us = fmax(out->slack_us, before);
}

/* When the launches that the plan lets it wait for had ended (those of buffers that are used again
 * are no dependencies); of a launch's later kernels, which wait for its first, -INFINITY. */
static double waits_end(const maker *m, const cs_timeline_slice *slice) {
  const cs_plan *plan = m->input->plan;
  const cs_plan_task *leader = &plan->tasks[slice->position];
  double end = -INFINITY;
  for (int w = 0; slice->index == 0 && w < leader->n_waits; w++) {
    int last = m->last_slice[cs_plan_leader(plan, leader->waits[w])];
    if (last >= 0) end = fmax(end, m->out->slices[last].end_us);
  }
  return end;
}

static cs_status place_all(const maker *m) {
  cs_timeline *out = m->out;
  double *ends = cs_calloc((size_t)out->n_streams + 1, sizeof *ends);
  if (!ends) return cs_no_memory("streams", (size_t)out->n_streams * sizeof *ends);
  for (int i = 0; i < out->n_slices; i++) {
    cs_timeline_slice *slice = &out->slices[i];
    double waits_until = fmax(ends[slice->stream], waits_end(m, slice));
    for (int e = 0; e < out->n_edges; e++) {
      if (out->edges[e].to != i) continue;
      waits_until = fmax(waits_until, out->slices[out->edges[e].from].end_us);
    }
    place(out, i, waits_until);
    ends[slice->stream] = fmax(ends[slice->stream], slice->end_us);
  }
  free(ends);
  return CS_OK;
}

/* ---- Making ---- */

static cs_status begin(maker *m) {
  const cs_kernel_list_input *input = m->input;
  size_t n = (size_t)input->plan->n_tasks + 1;
  m->nodes = cs_calloc((size_t)input->bound->n_nodes + 1, sizeof *m->nodes);
  m->first_slice = cs_calloc(n, sizeof *m->first_slice);
  m->last_slice = cs_calloc(n, sizeof *m->last_slice);
  m->position_of = cs_calloc(n, sizeof *m->position_of);
  if (!m->nodes || !m->first_slice || !m->last_slice || !m->position_of) {
    return cs_no_memory("a timeline", n * sizeof *m->first_slice);
  }
  CS_RETURN_IF_ERROR(cs_task_labels_index(input->program, &m->index));
  return cs_task_labels_list(input->program, m->index, &m->labels);
}

static void maker_clear(maker *m) {
  free(m->labels);
  json_decref(m->index);
  free(m->nodes);
  free(m->first_slice);
  free(m->last_slice);
  free(m->position_of);
}

cs_status cs_timeline_make(const cs_kernel_list_input *input, const cs_kernel_list *list,
                           const cs_timeline_times *times, cs_timeline_source source,
                           cs_timeline *out) {
  cs_status st = CS_OK;
  maker m = {.input = input, .list = list, .times = times, .out = out};
  *out = (cs_timeline){.source = source, .n_streams = input->plan->n_streams};
  CS_TRY(st, begin(&m), done);
  CS_TRY(st, make_slices(&m), done);
  qsort(out->slices, (size_t)out->n_slices, sizeof *out->slices, by_start);
  shift(out);
  CS_TRY(st, make_edges(&m), done);
  CS_TRY(st, place_all(&m), done);
done:
  maker_clear(&m);
  if (st != CS_OK) cs_timeline_free(out);
  return st;
}

void cs_timeline_free(cs_timeline *timeline) {
  for (int i = 0; i < timeline->n_slices; i++) {
    cs_timeline_slice *slice = &timeline->slices[i];
    for (int k = 0; k < slice->n_nodes; k++) free(slice->nodes[k]);
    free(slice->nodes);
    free(slice->name);
    free(slice->candidate);
  }
  free(timeline->slices);
  free(timeline->edges);
  *timeline = (cs_timeline){0};
}
