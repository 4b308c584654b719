#include "scheduler/configuration.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static cs_status make(int n, cs_configuration *out) {
  *out = (cs_configuration){.places = cs_calloc((size_t)n, sizeof *out->places), .n = n};
  return out->places ? CS_OK : cs_no_memory("a configuration", (size_t)n * sizeof *out->places);
}

cs_status cs_configuration_of_plan(const cs_plan *plan, const cs_task_choices *choices,
                                   cs_configuration *out) {
  CS_RETURN_IF_ERROR(make(plan->n_tasks, out));
  for (int p = 0; p < plan->n_tasks; p++) {
    const cs_plan_task *task = &plan->tasks[p];
    int choice = cs_choice_find(&choices[task->task], task->candidate.id);
    if (choice < 0) {
      cs_configuration_free(out);
      return cs_error(CS_CODE_INTERNAL, "task %d has no measured candidate %s", task->task,
                      task->candidate.id);
    }
    out->places[p] = (cs_placement){task->task, task->stream, choice};
  }
  return CS_OK;
}

cs_status cs_configuration_copy(const cs_configuration *from, cs_configuration *out) {
  CS_RETURN_IF_ERROR(make(from->n, out));
  if (from->n > 0) memcpy(out->places, from->places, (size_t)from->n * sizeof *out->places);
  return CS_OK;
}

void cs_configuration_free(cs_configuration *configuration) {
  free(configuration->places);
  *configuration = (cs_configuration){0};
}

bool cs_configuration_equal(const cs_configuration *a, const cs_configuration *b) {
  for (int p = 0; p < a->n && a->n == b->n; p++) {
    const cs_placement *x = &a->places[p], *y = &b->places[p];
    if (x->task != y->task || x->stream != y->stream || x->choice != y->choice) return false;
  }
  return a->n == b->n;
}

int cs_configuration_streams(const cs_configuration *configuration) {
  int n = 0;
  for (int p = 0; p < configuration->n; p++) {
    if (configuration->places[p].stream >= n) n = configuration->places[p].stream + 1;
  }
  return n;
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
    }
    n++;
  }
}

bool cs_configuration_valid(const cs_configuration *configuration, const cs_policy_input *input) {
  const cs_program *program = input->program;
  if (configuration->n != program->n_tasks) return false;
  uint64_t *done = cs_calloc(cs_bit_words(program->n_tasks), sizeof *done);
  bool valid = done != NULL;
  for (int p = 0; valid && p < configuration->n; p++) {
    const cs_placement *place = &configuration->places[p];
    valid = place->task >= 0 && place->task < program->n_tasks && !cs_bit_get(done, place->task) &&
            place->stream >= 0 && place->stream < input->max_streams && place->choice >= 0 &&
            place->choice < input->choices[place->task].n;
    if (!valid) break;
    const cs_task *task = &program->tasks[place->task];
    for (int i = 0; valid && i < task->n_preds; i++) valid = cs_bit_get(done, task->preds[i]);
    cs_bit_set(done, place->task);
  }
  free(done);
  return valid;
}

cs_status cs_configuration_fill(const cs_configuration *configuration, const cs_policy_input *input,
                                cs_plan *out) {
  CS_RETURN_IF_ERROR(cs_plan_begin(input->program, out));
  out->n_streams = configuration->n > 0 ? cs_configuration_streams(configuration) : 1;
  for (int p = 0; p < configuration->n; p++) {
    const cs_placement *place = &configuration->places[p];
    const cs_choice *choice = &input->choices[place->task].choices[place->choice];
    CS_RETURN_IF_ERROR(cs_plan_place(out, p, place->task, place->stream, choice->candidate));
  }
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

/* ---- Text ---- */

static uint32_t candidate_hash(const cs_choice *choice) {
  uint64_t hash = cs_hash_string(CS_HASH_SEED, choice->candidate->id);
  return (uint32_t)(hash ^ hash >> 32);
}

cs_status cs_configuration_text(const cs_configuration *configuration,
                                const cs_task_choices *choices, char **out) {
  cs_strbuf text = {0};
  for (int p = 0; p < configuration->n; p++) {
    const cs_placement *place = &configuration->places[p];
    cs_strbuf_printf(&text, "%s%d.%d.%08" PRIx32, p > 0 ? " " : "", place->task, place->stream,
                     candidate_hash(&choices[place->task].choices[place->choice]));
  }
  return cs_strbuf_take(&text, out);
}

/* The choice with this hash; -1: none, or two of them. */
static int choice_of_hash(const cs_task_choices *choices, uint32_t hash) {
  int found = -1;
  for (int i = 0; i < choices->n; i++) {
    if (candidate_hash(&choices->choices[i]) != hash) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

static bool parse_place(const char **at, const cs_policy_input *input, cs_placement *out) {
  char *end = NULL;
  long task = strtol(*at, &end, 10);
  if (end == *at || *end != '.' || task < 0 || task >= input->program->n_tasks) return false;
  const char *begin = end + 1;
  long stream = strtol(begin, &end, 10);
  if (end == begin || *end != '.' || stream < 0 || stream >= input->max_streams) return false;
  begin = end + 1;
  unsigned long hash = strtoul(begin, &end, 16);
  if (end != begin + 8) return false;
  *out =
      (cs_placement){(int)task, (int)stream, choice_of_hash(&input->choices[task], (uint32_t)hash)};
  *at = *end == ' ' ? end + 1 : end;
  return out->choice >= 0;
}

cs_status cs_configuration_parse(const char *text, const cs_policy_input *input,
                                 cs_configuration *out, bool *valid) {
  CS_RETURN_IF_ERROR(make(input->program->n_tasks, out));
  *valid = true;
  for (int p = 0; *valid && p < out->n; p++) {
    *valid = parse_place(&text, input, &out->places[p]);
  }
  *valid = *valid && *text == '\0' && cs_configuration_valid(out, input);
  if (!*valid) cs_configuration_free(out);
  return CS_OK;
}

/* ---- The program's signature ---- */

static uint64_t hash_ints(uint64_t hash, const int *values, int n) {
  hash = cs_hash_bytes(hash, &n, sizeof n);
  return n > 0 ? cs_hash_bytes(hash, values, (size_t)n * sizeof *values) : hash;
}

cs_status cs_program_signature(const cs_program *program, bool graph, char **out) {
  uint64_t hash = CS_HASH_SEED;
  *out = NULL;
  for (int t = 0; t < program->n_tasks; t++) {
    const cs_task *task = &program->tasks[t];
    char *signature = NULL;
    CS_RETURN_IF_ERROR(cs_op_signature(&task->desc, &signature));
    hash = cs_hash_string(hash, signature);
    free(signature);
    hash = hash_ints(hash, task->preds, task->n_preds);
    hash = hash_ints(hash, task->inputs, task->desc.n_inputs);
    hash = hash_ints(hash, &task->output, 1);
  }
  cs_strbuf text = {0};
  cs_strbuf_printf(&text, "Schedule %s n=%d %016" PRIx64 "%s",
                   cs_precision_name(program->precision), program->n_tasks, hash,
                   graph ? "" : " calls");
  return cs_strbuf_take(&text, out);
}
