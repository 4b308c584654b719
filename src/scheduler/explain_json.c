/* An explanation as JSON. */
#include <stdlib.h>

#include "scheduler/explain.h"
#include "scheduler/task_labels.h"

static json_t *text_or_null(const char *text) {
  return text[0] ? json_string(text) : json_null();
}

static json_t *demand_json(const cs_demand *demand) {
  if (!demand->known) return json_null();
  json_t *object = json_object();
  for (int r = 0; r < CS_RESOURCE_COUNT; r++)
    json_object_set_new(object, cs_resource_name((cs_resource)r), json_real(demand->share[r]));
  json_object_set_new(object, "units", json_integer(demand->units));
  json_object_set_new(object, "waves", json_real(demand->waves));
  return object;
}

static json_t *merged_json(const cs_plan *plan, const cs_plan_task *placed,
                           const char *const *labels) {
  return placed->merged < 0 ? json_null() : json_string(labels[plan->tasks[placed->merged].task]);
}

/* SMs of the part that a stream runs on; null: the whole device. */
static json_t *part_json(const cs_plan *plan, int stream) {
  int part = plan->n_parts > 0 ? plan->stream_part[stream] : -1;
  return part < 0 ? json_null() : json_integer(plan->parts[part]);
}

static json_t *task_json(const cs_explained_task *task, const cs_plan *plan,
                         const char *const *labels) {
  const cs_plan_task *placed = &plan->tasks[task->position];
  return json_pack("{s:s, s:s, s:i, s:i, s:o, s:i, s:b, s:o, s:f, s:f, s:f, s:I, s:o}", "name",
                   labels[task->task], "candidate", placed->candidate.id, "stream", placed->stream,
                   "position", task->position, "merged", merged_json(plan, placed, labels),
                   "priority", placed->priority, "early", !placed->late, "part",
                   part_json(plan, placed->stream), "start_us", placed->start_us, "end_us",
                   placed->end_us, "alone_us", task->choice->cold_us, "workspace_bytes",
                   (json_int_t)placed->workspace_bytes, "demand", demand_json(&task->demand));
}

static json_t *pair_json(const cs_explained_pair *pair, const char *const *labels) {
  json_t *alternatives = json_array();
  for (int i = 0; i < pair->n_alternatives; i++) {
    const cs_alternative *other = &pair->alternatives[i];
    json_array_append_new(
        alternatives, json_pack("{s:s, s:s, s:o, s:f}", "task", labels[other->task], "candidate",
                                other->choice->candidate->id, "limiter",
                                text_or_null(other->limiter), "cost_us", other->cost_us));
  }
  return json_pack("{s:[s, s], s:o, s:f, s:o}", "tasks", labels[pair->a], labels[pair->b],
                   "limiter", text_or_null(pair->limiter), "most_us", pair->most_us, "alternatives",
                   alternatives);
}

static json_t *block_json(const cs_explained_block *block, const cs_plan *plan,
                          const char *const *labels) {
  json_t *tasks = json_array(), *pairs = json_array();
  for (int i = 0; i < block->n_tasks; i++)
    json_array_append_new(tasks, task_json(&block->tasks[i], plan, labels));
  for (int i = 0; i < block->n_pairs; i++)
    json_array_append_new(pairs, pair_json(&block->pairs[i], labels));
  return json_pack("{s:i, s:f, s:f, s:f, s:o, s:o, s:i}", "streams", block->n_streams, "start_us",
                   block->start_us, "end_us", block->end_us, "serial_us", block->serial_us, "tasks",
                   tasks, "pairs", pairs, "more_pairs", block->n_more_pairs);
}

cs_status cs_explanation_json(const cs_explanation *explanation, const cs_plan *plan,
                              const cs_program *program, json_t **out) {
  cs_status st = CS_OK;
  json_t *index = NULL, *blocks = json_array();
  const char **labels = NULL;
  *out = NULL;
  CS_TRY(st, cs_task_labels_index(program, &index), done);
  CS_TRY(st, cs_task_labels_list(program, index, &labels), done);
  for (int b = 0; b < explanation->n_blocks; b++) {
    json_t *block = block_json(&explanation->blocks[b], plan, labels);
    if (!block || json_array_append_new(blocks, block) != 0) {
      st = cs_no_memory("an explanation", 0);
      goto done;
    }
  }
  *out = json_pack("{s:O}", "blocks", blocks);
  if (!*out) st = cs_no_memory("an explanation", 0);
done:
  free(labels);
  json_decref(index);
  json_decref(blocks);
  return st;
}
