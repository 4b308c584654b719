/* Reads `convsched.plan/1` strictly: every member there, none unknown, every name known. Names of
 * tasks and buffers are those of the program that the plan's layouts give. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/internal.h"
#include "scheduler/member.h"
#include "scheduler/plan_division.h"
#include "scheduler/task_labels.h"

static const char *const root_keys[] = {
    "schema", "policy",  "graph_hash",   "device",         "precision",    "batch",
    "seed",   "streams", "predicted_us", "workspace_peak", "arena_bytes",  "layouts",
    "tasks",  "buffers", "split",        "launch_hints",   "micro_batches"};
static const char *const task_keys[] = {"name",     "stream", "waits",     "workspace_offset",
                                        "start_us", "end_us", "candidate", "merged",
                                        "priority", "early"};
static const char *const candidate_keys[] = {
    "id",    "family", "payload", "workspace_bytes", "deterministic",
    "fused", "notes",  "threads", "merges"};
static const char *const split_keys[] = {"parts", "streams"};
static const char *const buffer_keys[] = {"name", "bytes", "offset"};

/* Of which the last `optional` may be missing. */
#define READ_KEYS(object, path, keys, optional) \
  cs_member_keys(object, path, keys, sizeof(keys) / sizeof *(keys), optional)

static cs_status read_precision(const char *text, cs_plan *plan) {
  cs_status st = cs_precision_parse(text, &plan->precision);
  if (st == CS_OK) return CS_OK;
  cs_status_free(st);
  return cs_error(CS_CODE_BAD_INPUT, "$.precision: found \"%s\", wanted f32, tf32, f16 or bf16",
                  text);
}

static cs_status read_head(json_t *root, cs_plan *plan) {
  const char *text;
  int64_t number;
  CS_RETURN_IF_ERROR(READ_KEYS(root, "$", root_keys, 3));
  if (json_object_get(root, "launch_hints"))
    CS_RETURN_IF_ERROR(cs_member_bool(root, "$", "launch_hints", &plan->hints));
  CS_RETURN_IF_ERROR(cs_member_text(root, "$", "schema", &text));
  if (strcmp(text, "convsched.plan/1") != 0)
    return cs_error(CS_CODE_BAD_INPUT, "$.schema: found \"%s\", wanted \"convsched.plan/1\"", text);
  CS_RETURN_IF_ERROR(cs_member_copy(root, "$", "policy", false, &plan->policy));
  CS_RETURN_IF_ERROR(cs_member_digits(root, "$", "graph_hash", 16, &plan->graph_hash));
  CS_RETURN_IF_ERROR(cs_member_copy(root, "$", "device", false, &plan->device_identity));
  CS_RETURN_IF_ERROR(cs_member_text(root, "$", "precision", &text));
  CS_RETURN_IF_ERROR(read_precision(text, plan));
  CS_RETURN_IF_ERROR(cs_member_integer(root, "$", "batch", 1, INT64_MAX, &plan->batch));
  CS_RETURN_IF_ERROR(cs_member_digits(root, "$", "seed", 10, &plan->seed));
  CS_RETURN_IF_ERROR(cs_member_integer(root, "$", "streams", 1, INT_MAX, &number));
  plan->n_streams = (int)number;
  CS_RETURN_IF_ERROR(cs_member_time(root, "$", "predicted_us", &plan->predicted_us));
  CS_RETURN_IF_ERROR(
      cs_member_integer(root, "$", "workspace_peak", 0, INT64_MAX, &plan->workspace_peak));
  return cs_member_integer(root, "$", "arena_bytes", 0, INT64_MAX, &plan->arena_bytes);
}

/* ---- The split of the device ---- */

static cs_status read_parts(json_t *split, cs_plan *plan) {
  json_t *parts = json_object_get(split, "parts"), *value;
  size_t i, n = json_array_size(parts);
  if (!json_is_array(parts)) return cs_member_wrong("$.split", "parts", parts, "an array");
  if (n < 1 || n > CS_MAX_PARTS)
    return cs_error(CS_CODE_BAD_INPUT, "$.split.parts: found %zu parts, wanted 1 to %d", n,
                    CS_MAX_PARTS);
  json_array_foreach(parts, i, value) {
    json_int_t units = json_integer_value(value);
    if (!json_is_integer(value) || units < 1 || units > INT_MAX)
      return cs_error(CS_CODE_BAD_INPUT, "$.split.parts[%zu]: found %s %lld, wanted SMs, 1 or more",
                      i, cs_member_type(value), (long long)units);
    plan->parts[i] = (int)units;
  }
  plan->n_parts = (int)n;
  return CS_OK;
}

static cs_status read_split(json_t *root, cs_plan *plan) {
  json_t *split = json_object_get(root, "split"), *streams, *value;
  size_t i, n = (size_t)plan->n_streams;
  if (!split) return CS_OK;
  CS_RETURN_IF_ERROR(READ_KEYS(split, "$.split", split_keys, 0));
  CS_RETURN_IF_ERROR(read_parts(split, plan));
  streams = json_object_get(split, "streams");
  if (!json_is_array(streams)) return cs_member_wrong("$.split", "streams", streams, "an array");
  if (json_array_size(streams) != n)
    return cs_error(CS_CODE_BAD_INPUT,
                    "$.split.streams: found %zu entries, wanted one a stream (%zu)",
                    json_array_size(streams), n);
  plan->stream_part = cs_calloc(n, sizeof *plan->stream_part);
  if (!plan->stream_part) return cs_no_memory("streams", n * sizeof *plan->stream_part);
  json_array_foreach(streams, i, value) {
    json_int_t part = json_is_null(value) ? -1 : json_integer_value(value);
    if (!json_is_null(value) && (!json_is_integer(value) || part < 0 || part >= plan->n_parts))
      return cs_error(CS_CODE_BAD_INPUT,
                      "$.split.streams[%zu]: found %s %lld, wanted null (the whole device) or a "
                      "part, 0 to %d",
                      i, cs_member_type(value), (long long)part, plan->n_parts - 1);
    plan->stream_part[i] = (int)part;
  }
  return CS_OK;
}

/* ---- Micro-batches, layouts, tasks, buffers ---- */

static cs_status read_division(json_t *root, const cs_graph *graph, cs_plan *plan) {
  json_t *lists = json_object_get(root, "micro_batches");
  return lists ? cs_division_from_json(lists, graph, &plan->division) : CS_OK;
}

static cs_status read_layouts(json_t *root, const cs_graph *graph, cs_plan *plan) {
  json_t *layouts = json_object_get(root, "layouts"), *value;
  if (!json_is_object(layouts)) return cs_member_wrong("$", "layouts", layouts, "an object");
  plan->layouts = cs_calloc((size_t)graph->n_values, sizeof *plan->layouts);
  if (!plan->layouts) return cs_no_memory("the layouts of a plan", (size_t)graph->n_values);
  plan->n_values = graph->n_values;
  const char *name;
  json_object_foreach(layouts, name, value) {
    if (cs_graph_find_value(graph, name) < 0)
      return cs_error(CS_CODE_BAD_INPUT,
                      "$.layouts: the graph has no value \"%s\"; is the plan for another graph?",
                      name);
  }
  for (int v = 0; v < graph->n_values; v++) {
    const char *layout;
    name = graph->values[v].name;
    CS_RETURN_IF_ERROR(cs_member_text(layouts, "$.layouts", name, &layout));
    if (!cs_layout_parse(layout, &plan->layouts[v]))
      return cs_error(CS_CODE_BAD_INPUT, "$.layouts.%s: unknown layout \"%s\"", name, layout);
    if (!cs_graph_layout_allowed(graph, v, plan->layouts[v]))
      return cs_error(CS_CODE_BAD_INPUT, "$.layouts.%s: the value cannot lie in layout %s", name,
                      layout);
  }
  return CS_OK;
}

static cs_status read_candidate(json_t *object, const char *path, cs_candidate *candidate) {
  int64_t number;
  CS_RETURN_IF_ERROR(READ_KEYS(object, path, candidate_keys, 1));
  CS_RETURN_IF_ERROR(cs_member_copy(object, path, "id", false, &candidate->id));
  CS_RETURN_IF_ERROR(cs_member_copy(object, path, "family", true, &candidate->family));
  CS_RETURN_IF_ERROR(cs_member_copy(object, path, "payload", true, &candidate->payload));
  CS_RETURN_IF_ERROR(cs_member_integer(object, path, "workspace_bytes", 0, INT64_MAX,
                                       &candidate->workspace_bytes));
  CS_RETURN_IF_ERROR(cs_member_bool(object, path, "deterministic", &candidate->deterministic));
  CS_RETURN_IF_ERROR(cs_member_bool(object, path, "fused", &candidate->fused));
  CS_RETURN_IF_ERROR(cs_member_integer(object, path, "notes", 0, UINT32_MAX, &number));
  candidate->notes = (uint32_t)number;
  CS_RETURN_IF_ERROR(cs_member_integer(object, path, "threads", 0, INT_MAX, &number));
  candidate->threads = (int)number;
  if (json_object_get(object, "merges"))
    CS_RETURN_IF_ERROR(cs_member_bool(object, path, "merges", &candidate->merges));
  return CS_OK;
}

static cs_status read_waits(const json_t *waits, const char *path, const json_t *names,
                            const int *position_of, cs_plan_task *placed) {
  if (!json_is_array(waits)) return cs_member_wrong(path, "waits", waits, "an array");
  placed->waits = cs_calloc(json_array_size(waits), sizeof *placed->waits);
  if (!placed->waits) return cs_no_memory("the waits of a task", json_array_size(waits));
  size_t i;
  json_t *value;
  json_array_foreach(waits, i, value) {
    if (!json_is_string(value))
      return cs_error(CS_CODE_BAD_INPUT, "%s.waits[%zu]: found %s, wanted a string", path, i,
                      cs_member_type(value));
    const json_t *task = json_object_get(names, json_string_value(value));
    int position = task ? position_of[json_integer_value(task)] : -1;
    if (position < 0)
      return cs_error(CS_CODE_BAD_INPUT,
                      "%s.waits[%zu]: found \"%s\", wanted a task launched earlier", path, i,
                      json_string_value(value));
    placed->waits[placed->n_waits++] = position;
  }
  return CS_OK;
}

/* How the task is launched: its priority, whether it may begin early. */
static cs_status read_launch(const json_t *object, const char *path, cs_plan_task *placed) {
  int64_t priority = 0;
  bool early = true;
  if (json_object_get(object, "priority"))
    CS_RETURN_IF_ERROR(cs_member_integer(object, path, "priority", 0, 1, &priority));
  if (json_object_get(object, "early"))
    CS_RETURN_IF_ERROR(cs_member_bool(object, path, "early", &early));
  placed->priority = (int)priority;
  placed->late = !early;
  return CS_OK;
}

/* The name of the task that leads its launch: one that the task may join. */
static cs_status read_merged(const json_t *object, const char *path, const json_t *names,
                             const int *position_of, int position, cs_plan *plan) {
  cs_plan_task *placed = &plan->tasks[position];
  const char *name;
  placed->merged = -1;
  if (!json_object_get(object, "merged")) return CS_OK;
  CS_RETURN_IF_ERROR(cs_member_text(object, path, "merged", &name));
  const json_t *task = json_object_get(names, name);
  int leader = task ? position_of[json_integer_value(task)] : -1;
  if (leader < 0)
    return cs_error(CS_CODE_BAD_INPUT, "%s.merged: found \"%s\", wanted a task launched earlier",
                    path, name);
  const cs_plan_task *first = &plan->tasks[leader];
  const char *wanted = NULL;
  if (first->merged >= 0 || cs_plan_leader(plan, position - 1) != leader)
    wanted = "the leader of the launch directly before";
  else if (first->stream != placed->stream)
    wanted = "a task of the same stream";
  else if (strcmp(first->candidate.id, placed->candidate.id) != 0 || !first->candidate.merges ||
           !placed->candidate.merges)
    wanted = "a task with the same candidate, one that merges";
  else if (first->candidate.workspace_bytes > 0 || placed->workspace_bytes > 0)
    wanted = "candidates without workspace";
  else if (first->priority != placed->priority)
    wanted = "a task of the same priority";
  else if (first->late != placed->late)
    wanted = "a task that begins as early";
  else if (placed->n_waits > 0)
    wanted = "a task that leaves its waits to the leader";
  else if (position - leader >= CS_MERGE_MOST)
    wanted = "a launch of at most 8 tasks";
  if (wanted)
    return cs_error(CS_CODE_BAD_INPUT, "%s.merged: found \"%s\", wanted %s", path, name, wanted);
  placed->merged = leader;
  return CS_OK;
}

static cs_status read_task(json_t *object, const char *path, const json_t *names, int *position_of,
                           int position, cs_plan *plan) {
  cs_plan_task *placed = &plan->tasks[position];
  const char *name;
  char candidate_path[64];
  int64_t stream;
  CS_RETURN_IF_ERROR(READ_KEYS(object, path, task_keys, 3));
  CS_RETURN_IF_ERROR(cs_member_text(object, path, "name", &name));
  const json_t *task = json_object_get(names, name);
  if (!task)
    return cs_error(CS_CODE_BAD_INPUT, "%s.name: the program has no task \"%s\"", path, name);
  placed->task = (int)json_integer_value(task);
  if (position_of[placed->task] >= 0)
    return cs_error(CS_CODE_BAD_INPUT, "%s.name: \"%s\" is there twice", path, name);
  CS_RETURN_IF_ERROR(cs_member_integer(object, path, "stream", 0, plan->n_streams - 1, &stream));
  placed->stream = (int)stream;
  CS_RETURN_IF_ERROR(
      read_waits(json_object_get(object, "waits"), path, names, position_of, placed));
  CS_RETURN_IF_ERROR(cs_member_offset(object, path, "workspace_offset", CS_ARENA_ALIGNMENT,
                                      &placed->workspace_offset));
  CS_RETURN_IF_ERROR(cs_member_time(object, path, "start_us", &placed->start_us));
  CS_RETURN_IF_ERROR(cs_member_time(object, path, "end_us", &placed->end_us));
  snprintf(candidate_path, sizeof candidate_path, "%s.candidate", path);
  CS_RETURN_IF_ERROR(
      read_candidate(json_object_get(object, "candidate"), candidate_path, &placed->candidate));
  placed->workspace_bytes = placed->candidate.workspace_bytes;
  CS_RETURN_IF_ERROR(read_launch(object, path, placed));
  CS_RETURN_IF_ERROR(read_merged(object, path, names, position_of, position, plan));
  position_of[placed->task] = position;
  return CS_OK;
}

static cs_status read_tasks(json_t *root, const cs_program *program, cs_plan *plan) {
  cs_status st = CS_OK;
  json_t *tasks = json_object_get(root, "tasks"), *names = NULL, *value;
  size_t i, n = (size_t)program->n_tasks;
  if (!json_is_array(tasks)) return cs_member_wrong("$", "tasks", tasks, "an array");
  if (json_array_size(tasks) != n)
    return cs_error(CS_CODE_BAD_INPUT, "$.tasks: found %zu tasks, wanted %zu",
                    json_array_size(tasks), n);
  if (plan->n_streams > 1 && (size_t)plan->n_streams > n)
    return cs_error(CS_CODE_BAD_INPUT, "$.streams: found %d, wanted at most one a task (%zu)",
                    plan->n_streams, n);
  plan->tasks = cs_calloc(n, sizeof *plan->tasks);
  int *position_of = cs_calloc(n, sizeof *position_of);
  if (!plan->tasks || !position_of) {
    st = cs_no_memory("the tasks of a plan", n * sizeof *plan->tasks);
    goto done;
  }
  plan->n_tasks = program->n_tasks;
  for (i = 0; i < n; i++) position_of[i] = -1;
  CS_TRY(st, cs_task_labels_index(program, &names), done);
  json_array_foreach(tasks, i, value) {
    char path[40];
    snprintf(path, sizeof path, "$.tasks[%zu]", i);
    CS_TRY(st, read_task(value, path, names, position_of, (int)i, plan), done);
  }
done:
  json_decref(names);
  free(position_of);
  return st;
}

static cs_status read_buffers(json_t *root, const cs_program *program, cs_plan *plan) {
  json_t *buffers = json_object_get(root, "buffers"), *value;
  size_t i, n = (size_t)program->n_buffers;
  if (!json_is_array(buffers)) return cs_member_wrong("$", "buffers", buffers, "an array");
  if (json_array_size(buffers) != n)
    return cs_error(CS_CODE_BAD_INPUT, "$.buffers: found %zu buffers, wanted %zu",
                    json_array_size(buffers), n);
  plan->buffer_offsets = cs_calloc(n, sizeof *plan->buffer_offsets);
  if (!plan->buffer_offsets) return cs_no_memory("the buffers of a plan", n);
  plan->n_buffers = program->n_buffers;
  json_array_foreach(buffers, i, value) {
    char path[40];
    const char *name;
    int64_t bytes;
    const cs_buffer *buffer = &program->buffers[i];
    snprintf(path, sizeof path, "$.buffers[%zu]", i);
    CS_RETURN_IF_ERROR(READ_KEYS(value, path, buffer_keys, 0));
    CS_RETURN_IF_ERROR(cs_member_text(value, path, "name", &name));
    if (strcmp(name, buffer->name) != 0)
      return cs_error(CS_CODE_BAD_INPUT, "%s.name: found \"%s\", wanted \"%s\"", path, name,
                      buffer->name);
    CS_RETURN_IF_ERROR(cs_member_integer(value, path, "bytes", 0, INT64_MAX, &bytes));
    if (bytes != buffer->bytes)
      return cs_error(CS_CODE_BAD_INPUT, "%s.bytes: found %" PRId64 ", wanted %" PRId64, path,
                      bytes, buffer->bytes);
    CS_RETURN_IF_ERROR(
        cs_member_offset(value, path, "offset", CS_ARENA_ALIGNMENT, &plan->buffer_offsets[i]));
  }
  return CS_OK;
}

static cs_status read_all(json_t *root, const cs_program *program, cs_plan *plan) {
  CS_RETURN_IF_ERROR(read_split(root, plan));
  CS_RETURN_IF_ERROR(read_tasks(root, program, plan));
  return read_buffers(root, program, plan);
}

cs_status cs_plan_from_json(const char *text, size_t length, const char *name,
                            const cs_graph *graph, cs_plan **out) {
  *out = NULL;
  cs_status st = CS_OK;
  json_error_t error;
  cs_program *program = NULL;
  cs_plan *plan = cs_calloc(1, sizeof *plan);
  if (!plan) return cs_no_memory("a plan", sizeof *plan);
  json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
  if (!root)
    CS_FAIL(st, done, CS_CODE_BAD_INPUT, "line %d, column %d: %s", error.line, error.column,
            error.text);
  CS_TRY(st, read_head(root, plan), done);
  if (plan->batch != graph->batch)
    CS_FAIL(st, done, CS_CODE_BAD_INPUT, "$.batch: found %" PRId64 ", wanted the graph's %" PRId64,
            plan->batch, graph->batch);
  CS_TRY(st, read_layouts(root, graph, plan), done);
  CS_TRY(st, read_division(root, graph, plan), done);
  CS_TRY(st,
         cs_program_lower_divided(graph, plan->precision, plan->layouts, plan->division, &program),
         done);
  CS_TRY(st, read_all(root, program, plan), done);
  *out = plan, plan = NULL;
done:
  json_decref(root);
  cs_program_destroy(program);
  cs_plan_destroy(plan);
  return cs_annotate(st, "%s: ", name);
}
