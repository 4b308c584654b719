/* Writes `convsched.plan/1` (docs/scheduling.md describes it). The same plan gives the same bytes.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "scheduler/internal.h"
#include "scheduler/plan_division.h"
#include "scheduler/plan_split.h"
#include "scheduler/task_labels.h"

/* Adds a member; a NULL value is text that is not UTF-8, a number that is not finite, or no memory.
 */
static cs_status put(json_t *object, const char *key, json_t *value) {
  if (value && json_object_set_new(object, key, value) == 0) return CS_OK;
  return cs_error(CS_CODE_INTERNAL, "the plan's %s cannot be written as JSON", key);
}

/* Owns the new value at once; frees it when it cannot be added. */
static cs_status put_new(json_t *object, const char *key, json_t *value, json_t **out) {
  *out = value;
  return put(object, key, value);
}

static cs_status append(json_t *array, const char *what, json_t *value) {
  if (value && json_array_append_new(array, value) == 0) return CS_OK;
  return cs_error(CS_CODE_INTERNAL, "the plan's %s cannot be written as JSON", what);
}

static json_t *text_of(const char *format, uint64_t value) {
  char text[32];
  snprintf(text, sizeof text, format, value);
  return json_string(text);
}

static cs_status write_head(json_t *root, const cs_plan *plan) {
  CS_RETURN_IF_ERROR(put(root, "schema", json_string("convsched.plan/1")));
  CS_RETURN_IF_ERROR(put(root, "policy", json_string(plan->policy)));
  CS_RETURN_IF_ERROR(put(root, "graph_hash", text_of("%016" PRIx64, plan->graph_hash)));
  CS_RETURN_IF_ERROR(put(root, "device", json_string(plan->device_identity)));
  CS_RETURN_IF_ERROR(put(root, "precision", json_string(cs_precision_name(plan->precision))));
  CS_RETURN_IF_ERROR(put(root, "batch", json_integer(plan->batch)));
  CS_RETURN_IF_ERROR(put(root, "seed", text_of("%" PRIu64, plan->seed)));
  CS_RETURN_IF_ERROR(put(root, "streams", json_integer(plan->n_streams)));
  CS_RETURN_IF_ERROR(put(root, "predicted_us", json_real(plan->predicted_us)));
  CS_RETURN_IF_ERROR(put(root, "workspace_peak", json_integer(plan->workspace_peak)));
  return put(root, "arena_bytes", json_integer(plan->arena_bytes));
}

json_t *cs_plan_split_json(const cs_plan *plan) {
  if (plan->n_parts == 0) return json_null();
  json_t *parts = json_array(), *streams = json_array();
  int failed = 0;
  for (int i = 0; i < plan->n_parts; i++) {
    failed = json_array_append_new(parts, json_integer(plan->parts[i])) || failed;
  }
  for (int s = 0; s < plan->n_streams; s++) {
    int part = plan->stream_part[s];
    json_t *value = part < 0 ? json_null() : json_integer(part);
    failed = json_array_append_new(streams, value) || failed;
  }
  json_t *split = json_pack("{s:o, s:o}", "parts", parts, "streams", streams);
  if (!failed) return split;
  json_decref(split);
  return NULL;
}

/* Only where the device is split. */
static cs_status write_split(json_t *root, const cs_plan *plan) {
  return plan->n_parts == 0 ? CS_OK : put(root, "split", cs_plan_split_json(plan));
}

static cs_status write_hints(json_t *root, const cs_plan *plan) {
  return plan->hints ? put(root, "launch_hints", json_true()) : CS_OK;
}

/* Only where some node's batch is divided. */
static cs_status write_division(json_t *root, const cs_plan *plan, const cs_graph *graph) {
  if (!plan->division) return CS_OK;
  return put(root, "micro_batches", cs_division_json(plan->division, graph));
}

static cs_status write_layouts(json_t *root, const cs_plan *plan, const cs_graph *graph) {
  json_t *layouts;
  CS_RETURN_IF_ERROR(put_new(root, "layouts", json_object(), &layouts));
  for (int v = 0; v < plan->n_values; v++)
    CS_RETURN_IF_ERROR(
        put(layouts, graph->values[v].name, json_string(cs_layout_name(plan->layouts[v]))));
  return CS_OK;
}

static cs_status write_candidate(json_t *task, const cs_candidate *candidate) {
  json_t *object;
  CS_RETURN_IF_ERROR(put_new(task, "candidate", json_object(), &object));
  CS_RETURN_IF_ERROR(put(object, "id", json_string(candidate->id)));
  CS_RETURN_IF_ERROR(
      put(object, "family", candidate->family ? json_string(candidate->family) : json_null()));
  CS_RETURN_IF_ERROR(
      put(object, "payload", candidate->payload ? json_string(candidate->payload) : json_null()));
  CS_RETURN_IF_ERROR(put(object, "workspace_bytes", json_integer(candidate->workspace_bytes)));
  CS_RETURN_IF_ERROR(put(object, "deterministic", json_boolean(candidate->deterministic)));
  CS_RETURN_IF_ERROR(put(object, "fused", json_boolean(candidate->fused)));
  CS_RETURN_IF_ERROR(put(object, "notes", json_integer(candidate->notes)));
  if (candidate->merges) CS_RETURN_IF_ERROR(put(object, "merges", json_true()));
  return put(object, "threads", json_integer(candidate->threads));
}

static cs_status write_task(json_t *tasks, const cs_plan *plan, const char *const *labels, int p) {
  const cs_plan_task *placed = &plan->tasks[p];
  json_t *task = json_object(), *waits;
  CS_RETURN_IF_ERROR(append(tasks, "tasks", task));
  CS_RETURN_IF_ERROR(put(task, "name", json_string(labels[placed->task])));
  CS_RETURN_IF_ERROR(put(task, "stream", json_integer(placed->stream)));
  CS_RETURN_IF_ERROR(put_new(task, "waits", json_array(), &waits));
  for (int w = 0; w < placed->n_waits; w++)
    CS_RETURN_IF_ERROR(
        append(waits, "waits", json_string(labels[plan->tasks[placed->waits[w]].task])));
  if (placed->merged >= 0)
    CS_RETURN_IF_ERROR(put(task, "merged", json_string(labels[plan->tasks[placed->merged].task])));
  if (placed->priority > 0)
    CS_RETURN_IF_ERROR(put(task, "priority", json_integer(placed->priority)));
  if (placed->late) CS_RETURN_IF_ERROR(put(task, "early", json_false()));
  CS_RETURN_IF_ERROR(put(task, "workspace_offset", json_integer(placed->workspace_offset)));
  CS_RETURN_IF_ERROR(put(task, "start_us", json_real(placed->start_us)));
  CS_RETURN_IF_ERROR(put(task, "end_us", json_real(placed->end_us)));
  return write_candidate(task, &placed->candidate);
}

static cs_status write_tasks(json_t *root, const cs_plan *plan, const cs_program *program) {
  cs_status st = CS_OK;
  json_t *index = NULL, *tasks;
  const char **labels = NULL;
  CS_TRY(st, cs_task_labels_index(program, &index), done);
  CS_TRY(st, cs_task_labels_list(program, index, &labels), done);
  CS_TRY(st, put_new(root, "tasks", json_array(), &tasks), done);
  for (int p = 0; p < plan->n_tasks; p++) CS_TRY(st, write_task(tasks, plan, labels, p), done);
done:
  free(labels);
  json_decref(index);
  return st;
}

static cs_status write_buffers(json_t *root, const cs_plan *plan, const cs_program *program) {
  json_t *buffers;
  CS_RETURN_IF_ERROR(put_new(root, "buffers", json_array(), &buffers));
  for (int b = 0; b < program->n_buffers; b++) {
    json_t *buffer = json_object();
    CS_RETURN_IF_ERROR(append(buffers, "buffers", buffer));
    CS_RETURN_IF_ERROR(put(buffer, "name", json_string(program->buffers[b].name)));
    CS_RETURN_IF_ERROR(put(buffer, "bytes", json_integer(program->buffers[b].bytes)));
    CS_RETURN_IF_ERROR(put(buffer, "offset", json_integer(plan->buffer_offsets[b])));
  }
  return CS_OK;
}

cs_status cs_plan_to_json(const cs_plan *plan, const cs_program *program, char **out) {
  *out = NULL;
  cs_status st = CS_OK;
  json_t *root = json_object();
  if (!root) return cs_no_memory("a plan as JSON", 0);
  CS_TRY(st, write_head(root, plan), done);
  CS_TRY(st, write_split(root, plan), done);
  CS_TRY(st, write_hints(root, plan), done);
  CS_TRY(st, write_division(root, plan, program->graph), done);
  CS_TRY(st, write_layouts(root, plan, program->graph), done);
  CS_TRY(st, write_tasks(root, plan, program), done);
  CS_TRY(st, write_buffers(root, plan, program), done);
  CS_TRY(st, cs_json_take_text(json_incref(root), out), done);
done:
  json_decref(root);
  return st;
}
