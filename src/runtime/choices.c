#include <stdlib.h>
#include <string.h>

#include "runtime/planning.h"

int cs_threads_per_stream(const cs_device_info *info, int n_streams) {
  if (strcmp(info->backend, "cpu") != 0) return 0;
  int threads = info->units / (n_streams > 0 ? n_streams : 1);
  return threads > 0 ? threads : 1;
}

void cs_choices_free(cs_task_choices *choices, int n_tasks) {
  if (!choices) return;
  for (int t = 0; t < n_tasks; t++) free(choices[t].choices);
  free(choices);
}

/* The candidate id pinned for a task's node; NULL: none. "NODE=ID"; ids may contain '='. */
static const char *pin_of(const cs_settings *settings, const char *node) {
  size_t length = strlen(node);
  for (int i = 0; i < settings->options.n_pins; i++) {
    const char *pin = settings->pins[i];
    if (strncmp(pin, node, length) == 0 && pin[length] == '=') return pin + length + 1;
  }
  return NULL;
}

static bool is_banned(const cs_settings *settings, const char *id) {
  for (int i = 0; i < settings->options.n_bans; i++) {
    if (strcmp(settings->bans[i], id) == 0) return true;
  }
  return false;
}

static cs_status choices_of_task(const cs_op_profile *known, const cs_task *task,
                                 const char *signature, const cs_settings *settings, int threads,
                                 cs_task_choices *out) {
  const char *pin = pin_of(settings, task->name);
  int n_records = known ? known->n_records : 0;
  out->choices = cs_calloc((size_t)n_records, sizeof *out->choices);
  if (!out->choices) return cs_no_memory("choices", (size_t)n_records);
  int rejected = 0;
  for (int r = 0; r < n_records; r++) {
    const cs_record *record = &known->records[r];
    rejected += record->measured.rejected;
    if (!cs_record_admissible(record, settings->options.workspace_limit,
                              settings->options.deterministic, threads) ||
        is_banned(settings, record->candidate.id) ||
        (pin && strcmp(pin, record->candidate.id) != 0)) {
      continue;
    }
    out->choices[out->n++] = (cs_choice){.candidate = &record->candidate,
                                         .cold_us = record->measured.cold_us,
                                         .warm_us = record->measured.warm_us};
  }
  if (out->n > 0) return CS_OK;
  if (pin) {
    return cs_error(CS_CODE_NOT_FOUND,
                    "node %s: no admissible candidate \"%s\" (pinned); %d measured for %s",
                    task->name, pin, n_records, signature);
  }
  return cs_error(CS_CODE_NOT_FOUND,
                  "node %s: no admissible candidate under a workspace limit of %lld bytes%s: %d "
                  "measured, %d of them rejected, for %s",
                  task->name, (long long)settings->options.workspace_limit,
                  settings->options.deterministic ? ", deterministic" : "", n_records, rejected,
                  signature);
}

/* A pin that names no task would silently do nothing. */
static cs_status check_pins(const cs_program *program, const cs_settings *settings) {
  for (int i = 0; i < settings->options.n_pins; i++) {
    const char *pin = settings->pins[i];
    bool found = false;
    for (int t = 0; t < program->n_tasks && !found; t++) {
      size_t length = strlen(program->tasks[t].name);
      found = strncmp(pin, program->tasks[t].name, length) == 0 && pin[length] == '=';
    }
    if (!found) {
      return cs_error(CS_CODE_NOT_FOUND,
                      "pin \"%s\": no task of that name (a node fused into another has none)", pin);
    }
  }
  return CS_OK;
}

cs_status cs_choices_of_program(const cs_profile *profile, const cs_program *program,
                                const cs_settings *settings, int threads, cs_task_choices **out) {
  CS_RETURN_IF_ERROR(check_pins(program, settings));
  cs_status st = CS_OK;
  cs_task_choices *choices = cs_calloc((size_t)program->n_tasks, sizeof *choices);
  if (!choices) return cs_no_memory("choices", (size_t)program->n_tasks * sizeof *choices);
  for (int t = 0; t < program->n_tasks && st == CS_OK; t++) {
    char *signature = NULL;
    st = cs_op_signature(&program->tasks[t].desc, &signature);
    if (st == CS_OK) {
      st = choices_of_task(cs_profile_find(profile, signature), &program->tasks[t], signature,
                           settings, threads, &choices[t]);
    }
    free(signature);
  }
  if (st != CS_OK) {
    cs_choices_free(choices, program->n_tasks);
    return st;
  }
  *out = choices;
  return CS_OK;
}
