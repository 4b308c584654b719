#include "scheduler/configuration.h"

#include <stdlib.h>
#include <string.h>

cs_status cs_configuration_make(int n, cs_configuration *out) {
  *out = (cs_configuration){.places = cs_calloc((size_t)n, sizeof *out->places), .n = n};
  return out->places ? CS_OK : cs_no_memory("a configuration", (size_t)n * sizeof *out->places);
}

cs_status cs_configuration_of_plan(const cs_plan *plan, const cs_task_choices *choices,
                                   cs_configuration *out) {
  CS_RETURN_IF_ERROR(cs_configuration_make(plan->n_tasks, out));
  for (int p = 0; p < plan->n_tasks; p++) {
    const cs_plan_task *task = &plan->tasks[p];
    int choice = cs_choice_find(&choices[task->task], task->candidate.id);
    if (choice < 0) {
      cs_configuration_free(out);
      return cs_error(CS_CODE_INTERNAL, "task %d has no measured candidate %s", task->task,
                      task->candidate.id);
    }
    out->places[p] = (cs_placement){.task = task->task,
                                    .stream = task->stream,
                                    .choice = choice,
                                    .joined = task->merged >= 0,
                                    .priority = task->priority,
                                    .late = task->late};
  }
  out->hints = plan->hints;
  if (plan->n_parts == 0) return CS_OK;
  out->n_parts = plan->n_parts;
  memcpy(out->parts, plan->parts, sizeof out->parts);
  for (int s = 0; s < CS_MAX_SPLIT_STREAMS; s++)
    out->part_of[s] = s < plan->n_streams ? plan->stream_part[s] : -1;
  return CS_OK;
}

cs_status cs_configuration_copy(const cs_configuration *from, cs_configuration *out) {
  cs_placement *places = cs_calloc((size_t)from->n, sizeof *places);
  if (!places) return cs_no_memory("a configuration", (size_t)from->n * sizeof *places);
  if (from->n > 0) memcpy(places, from->places, (size_t)from->n * sizeof *places);
  *out = *from;
  out->places = places;
  return CS_OK;
}

void cs_configuration_free(cs_configuration *configuration) {
  free(configuration->places);
  *configuration = (cs_configuration){0};
}

bool cs_placements_equal(const cs_placement *a, const cs_placement *b, int n) {
  for (int p = 0; p < n; p++) {
    if (a[p].task != b[p].task || a[p].stream != b[p].stream || a[p].choice != b[p].choice ||
        a[p].joined != b[p].joined || a[p].priority != b[p].priority || a[p].late != b[p].late) {
      return false;
    }
  }
  return true;
}

static bool same_split(const cs_configuration *a, const cs_configuration *b) {
  int n_streams = a->n_parts > 0 ? cs_configuration_streams(a) : 0;
  if (a->n_parts != b->n_parts) return false;
  for (int i = 0; i < a->n_parts; i++) {
    if (a->parts[i] != b->parts[i]) return false;
  }
  for (int s = 0; s < n_streams && s < CS_MAX_SPLIT_STREAMS; s++) {
    if (a->part_of[s] != b->part_of[s]) return false;
  }
  return true;
}

bool cs_configuration_equal(const cs_configuration *a, const cs_configuration *b) {
  return a->n == b->n && a->hints == b->hints && cs_placements_equal(a->places, b->places, a->n) &&
         same_split(a, b);
}

int cs_configuration_position(const cs_configuration *configuration, int task) {
  int p = 0;
  while (configuration->places[p].task != task) p++;
  return p;
}

int cs_configuration_streams(const cs_configuration *configuration) {
  int n = 0;
  for (int p = 0; p < configuration->n; p++) {
    if (configuration->places[p].stream >= n) n = configuration->places[p].stream + 1;
  }
  return n;
}

static void exchange_parts(cs_configuration *configuration, int a, int b) {
  if (configuration->n_parts == 0 || a >= CS_MAX_SPLIT_STREAMS || b >= CS_MAX_SPLIT_STREAMS) return;
  int part = configuration->part_of[a];
  configuration->part_of[a] = configuration->part_of[b];
  configuration->part_of[b] = part;
}

void cs_configuration_number_streams(cs_configuration *configuration) {
  int n = 0;
  for (int p = 0; p < configuration->n; p++) {
    int own = configuration->places[p].stream;
    if (own < n) continue; /* numbered already */
    if (own > n) {         /* exchange the two from here on */
      for (int q = p; q < configuration->n; q++) {
        int *stream = &configuration->places[q].stream;
        *stream = *stream == own ? n : *stream == n ? own : *stream;
      }
      exchange_parts(configuration, own, n);
    }
    n++;
  }
}

/* ---- Launches ---- */

int cs_launch_first(const cs_placement *places, int p) {
  while (p > 0 && places[p].joined) p--;
  return p;
}

int cs_launch_end(const cs_placement *places, int n, int p) {
  do {
    p++;
  } while (p < n && places[p].joined);
  return p;
}

void cs_launch_toggle_priority(cs_placement *places, int n, int p) {
  int first = cs_launch_first(places, p), end = cs_launch_end(places, n, first);
  for (int q = first; q < end; q++) places[q].priority = !places[q].priority;
}

void cs_launch_set_late(cs_placement *places, int n, int p, bool late) {
  int first = cs_launch_first(places, p), end = cs_launch_end(places, n, first);
  for (int q = first; q < end; q++) places[q].late = late;
}

void cs_configuration_begin_as(const cs_configuration *from, cs_configuration *into) {
  for (int p = 0; p < into->n; p = cs_launch_end(into->places, into->n, p)) {
    int at = cs_configuration_position(from, into->places[p].task);
    cs_launch_set_late(into->places, into->n, p, from->places[at].late);
  }
}

bool cs_configuration_can_begin_early(const cs_configuration *configuration,
                                      const cs_task_choices *choices, int p) {
  const cs_placement *place = &configuration->places[p];
  return configuration->n_parts == 0 && choices[place->task].choices[place->choice].early;
}

bool cs_placement_joins(const cs_placement *places, int p, const cs_policy_input *input) {
  const cs_placement *own = &places[p];
  const cs_candidate *candidate = input->choices[own->task].choices[own->choice].candidate;
  const cs_task *task = &input->program->tasks[own->task];
  int first = p > 0 ? cs_launch_first(places, p - 1) : 0;
  if (p == 0 || p - first >= CS_MERGE_MOST) return false;
  if (!candidate->merges || candidate->workspace_bytes > 0) return false;
  for (int q = first; q < p; q++) {
    const cs_placement *other = &places[q];
    const cs_candidate *its = input->choices[other->task].choices[other->choice].candidate;
    if (other->stream != own->stream || other->priority != own->priority ||
        other->late != own->late || !its->merges || its->workspace_bytes > 0 ||
        strcmp(its->id, candidate->id) != 0) {
      return false;
    }
    for (int i = 0; i < task->n_preds; i++) {
      if (task->preds[i] == other->task) return false;
    }
  }
  return true;
}

/* ---- Validity ---- */

static bool is_split_of(const cs_configuration *configuration, const cs_policy_input *input) {
  size_t bytes = (size_t)configuration->n_parts * sizeof *configuration->parts;
  for (int i = 0; i < input->n_splits; i++) {
    const cs_sm_parts *split = &input->splits[i];
    if (split->n == configuration->n_parts &&
        memcmp(split->units, configuration->parts, bytes) == 0) {
      return true;
    }
  }
  return false;
}

static bool valid_split(const cs_configuration *configuration, const cs_policy_input *input) {
  if (configuration->n_parts < 0 || configuration->n_parts > CS_MAX_PARTS) return false;
  if (configuration->n_parts == 0) return true;
  int n_streams = cs_configuration_streams(configuration);
  if (!is_split_of(configuration, input) || n_streams > CS_MAX_SPLIT_STREAMS) return false;
  for (int s = 0; s < n_streams; s++) {
    if (configuration->part_of[s] < -1 || configuration->part_of[s] >= configuration->n_parts) {
      return false;
    }
  }
  return true;
}

bool cs_configuration_valid(const cs_configuration *configuration, const cs_policy_input *input) {
  const cs_program *program = input->program;
  if (configuration->n != program->n_tasks || !valid_split(configuration, input)) return false;
  if (configuration->hints && (!input->hints || configuration->n_parts > 0)) return false;
  uint64_t *done = cs_calloc(cs_bit_words(program->n_tasks), sizeof *done);
  bool valid = done != NULL;
  for (int p = 0; valid && p < configuration->n; p++) {
    const cs_placement *place = &configuration->places[p];
    valid = place->task >= 0 && place->task < program->n_tasks && !cs_bit_get(done, place->task) &&
            place->stream >= 0 && place->stream < input->max_streams && place->choice >= 0 &&
            place->choice < input->choices[place->task].n && place->priority >= 0 &&
            place->priority <= (configuration->n_parts > 0 ? 0 : input->priorities) &&
            (!place->joined || cs_placement_joins(configuration->places, p, input));
    if (!valid) break;
    const cs_task *task = &program->tasks[place->task];
    for (int i = 0; valid && i < task->n_preds; i++) valid = cs_bit_get(done, task->preds[i]);
    cs_bit_set(done, place->task);
  }
  free(done);
  return valid;
}

static cs_status fill_split(const cs_configuration *configuration, cs_plan *out) {
  if (configuration->n_parts == 0) return CS_OK;
  out->stream_part = cs_calloc((size_t)out->n_streams, sizeof *out->stream_part);
  if (!out->stream_part) return cs_no_memory("streams", (size_t)out->n_streams * sizeof(int));
  out->n_parts = configuration->n_parts;
  memcpy(out->parts, configuration->parts, sizeof out->parts);
  for (int s = 0; s < out->n_streams; s++)
    out->stream_part[s] = s < CS_MAX_SPLIT_STREAMS ? configuration->part_of[s] : -1;
  return CS_OK;
}

cs_status cs_configuration_fill(const cs_configuration *configuration, const cs_policy_input *input,
                                cs_plan *out) {
  CS_RETURN_IF_ERROR(cs_plan_begin(input->program, out));
  out->n_streams = configuration->n > 0 ? cs_configuration_streams(configuration) : 1;
  for (int p = 0; p < configuration->n; p++) {
    const cs_placement *place = &configuration->places[p];
    const cs_choice *choice = &input->choices[place->task].choices[place->choice];
    CS_RETURN_IF_ERROR(cs_plan_place(out, p, place->task, place->stream, choice->candidate));
    out->tasks[p].priority = place->priority;
    out->tasks[p].late = place->late;
    if (place->joined && p > 0) out->tasks[p].merged = cs_plan_leader(out, p - 1);
  }
  out->hints = configuration->hints;
  CS_RETURN_IF_ERROR(fill_split(configuration, out));
  return cs_plan_fill_waits(out, input->program);
}

cs_status cs_configuration_plan(const cs_configuration *configuration, const char *policy,
                                const cs_policy_input *input, cs_plan **out) {
  *out = NULL;
  cs_plan *plan = cs_calloc(1, sizeof *plan);
  if (!plan) return cs_no_memory("a plan", sizeof *plan);
  cs_status st = cs_configuration_fill(configuration, input, plan);
  if (st == CS_OK) st = cs_plan_finish(plan, policy, input);
  if (st != CS_OK) {
    cs_plan_destroy(plan);
    return st;
  }
  *out = plan;
  return CS_OK;
}
