#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "graph/op_family.h"
#include "profiler/candidate.h"
#include "runtime/planning.h"

/* Of the tensors that the backends run. */
#define MOST_RANK 4

int cs_threads_per_stream(const cs_device_info *info, int n_streams) {
  if (strcmp(info->backend, "cpu") != 0) return 0;
  int threads = info->units / (n_streams > 0 ? n_streams : 1);
  return threads > 0 ? threads : 1;
}

/* ---- A choice: a copy, since records move when the profile learns more of their operation ---- */

static void clear_choice(cs_choice *choice) {
  cs_candidate *candidate = (cs_candidate *)(uintptr_t)choice->candidate;
  if (candidate) cs_candidate_clear(candidate);
  free(candidate);
  free((void *)(uintptr_t)choice->kernels);
}

static cs_status copy_kernels(const cs_record *record, cs_choice *out) {
  size_t n = (size_t)record->n_kernels;
  if (!record->kernels) return CS_OK;
  cs_kernel_profile *kernels = cs_calloc(n, sizeof *kernels);
  if (!kernels) return cs_no_memory("kernels", n * sizeof *kernels);
  if (n > 0) memcpy(kernels, record->kernels, n * sizeof *kernels);
  out->kernels = kernels;
  out->n_kernels = record->n_kernels;
  return CS_OK;
}

static cs_status make_choice(const cs_record *record, cs_choice *out) {
  *out = (cs_choice){.cold_us = record->measured.cold_us, .warm_us = record->measured.warm_us};
  cs_candidate *candidate = cs_calloc(1, sizeof *candidate);
  if (!candidate) return cs_no_memory("a choice", sizeof *candidate);
  out->candidate = candidate;
  CS_RETURN_IF_ERROR(cs_candidate_copy(&record->candidate, candidate));
  return copy_kernels(record, out);
}

void cs_choices_clear(cs_task_choices *choices) {
  for (int i = 0; i < choices->n; i++) clear_choice(&choices->choices[i]);
  free(choices->choices);
  *choices = (cs_task_choices){0};
}

void cs_choices_free(cs_task_choices *choices, int n_tasks) {
  if (!choices) return;
  for (int t = 0; t < n_tasks; t++) cs_choices_clear(&choices[t]);
  free(choices);
}

/* ---- Bans and what alone is allowed: ids, * and ? stand for anything ---- */

static bool is_like(const char *pattern, const char *id) {
  return strcmp(pattern, id) == 0 || fnmatch(pattern, id, 0) == 0;
}

static bool is_banned(const cs_settings *settings, const char *id) {
  for (int i = 0; i < settings->options.n_bans; i++) {
    if (is_like(settings->bans[i], id)) return true;
  }
  return false;
}

static bool is_convolution(const cs_op_desc *desc) {
  return desc->op == CS_OP_CONV || desc->op == CS_OP_CONV_TRANSPOSE;
}

/* Of convolutions alone something may be asked. */
static bool is_allowed(const cs_settings *settings, const cs_op_desc *desc, const char *id) {
  if (settings->options.n_allows == 0 || !is_convolution(desc)) return true;
  for (int i = 0; i < settings->options.n_allows; i++) {
    if (is_like(settings->allows[i], id)) return true;
  }
  return false;
}

bool cs_choices_exclude(const cs_settings *settings, const cs_op_desc *desc, const char *id) {
  return is_banned(settings, id) || !is_allowed(settings, desc, id);
}

/* ---- Pins: "NODE=ID", where both may hold a '='; the longest task name is meant ---- */

/* A part of a node goes by its own name and by the node's; -1: the pin names neither. */
static int length_of_name(const cs_program *program, const char *pin, int t) {
  const cs_task *task = &program->tasks[t];
  int length = cs_name_before_equals(pin, task->name);
  if (task->part < 0 || task->node < 0) return length;
  int of_node = cs_name_before_equals(pin, program->graph->nodes[task->node].name);
  return of_node > length ? of_node : length;
}

/* ids[n_tasks]: the candidate pinned for each task, NULL where there is none. */
static cs_status resolve_pin(const cs_program *program, const char *pin, const char **ids) {
  int longest = -1;
  cs_near near = {.wanted = pin};
  char text[CS_TEXT_SIZE * 4];
  for (int t = 0; t < program->n_tasks; t++) {
    int length = length_of_name(program, pin, t);
    if (length > longest) longest = length;
  }
  if (longest < 0) {
    for (int t = 0; t < program->n_tasks; t++) cs_near_offer(&near, program->tasks[t].name);
    return cs_error(CS_CODE_NOT_FOUND,
                    "pin \"%s\": no task of that name (a node fused into another has none)%s", pin,
                    cs_near_text(&near, text, sizeof text));
  }
  for (int t = 0; t < program->n_tasks; t++) {
    if (length_of_name(program, pin, t) != longest) continue;
    if (ids[t] && strcmp(ids[t], pin + longest + 1) != 0) {
      return cs_error(CS_CODE_USAGE, "node %s: pinned to \"%s\" and to \"%s\"",
                      program->tasks[t].name, ids[t], pin + longest + 1);
    }
    ids[t] = pin + longest + 1;
  }
  return CS_OK;
}

/* Why a pinned candidate cannot be had. */
static cs_status refuse_pin(const cs_op_profile *known, const cs_task *task, const char *pin,
                            const cs_settings *settings, int threads, cs_near *near) {
  if (near->wanted != pin) *near = (cs_near){.wanted = pin};
  char text[CS_TEXT_SIZE * 4];
  for (int r = 0; known && r < known->n_records; r++) {
    const cs_record *record = &known->records[r];
    const cs_candidate *candidate = &record->candidate;
    cs_near_offer(near, candidate->id);
    if (strcmp(candidate->id, pin) != 0) continue;
    return cs_error(CS_CODE_BAD_INPUT,
                    "node %s: candidate \"%s\" (pinned) may not be used: %s%s%s%lld bytes of "
                    "workspace (limit %lld), for %d threads (a stream has %d), %sdeterministic%s",
                    task->name, pin, record->measured.rejected ? "rejected, " : "",
                    record->absent ? "of a version of its library that is not installed, " : "",
                    is_banned(settings, pin)                  ? "banned, "
                    : !is_allowed(settings, &task->desc, pin) ? "not among those allowed, "
                                                              : "",
                    (long long)candidate->workspace_bytes,
                    (long long)settings->options.workspace_limit, candidate->threads, threads,
                    candidate->deterministic ? "" : "not ",
                    settings->options.deterministic ? " (wanted)" : "");
  }
  return cs_error(CS_CODE_NOT_FOUND, "node %s: no candidate \"%s\" (pinned)%s", task->name, pin,
                  cs_near_text(near, text, sizeof text));
}

/* ---- Choices ---- */

typedef struct record_counts {
  int all, rejected, absent;
  int excluded; /* admissible but for bans and what alone is allowed */
} record_counts;

/* Says what a backend cannot do at all before it blames a limit. */
static cs_status nothing_admissible(const cs_task *task, const record_counts *n,
                                    const char *signature, const cs_settings *settings) {
  char absent[80] = "", excluded[80] = "";
  int rank = task->desc.output.shape.rank;
  for (int i = 0; i < task->desc.n_inputs; i++) {
    if (task->desc.inputs[i].shape.rank > rank) rank = task->desc.inputs[i].shape.rank;
  }
  if (n->all == 0 && rank > MOST_RANK) {
    return cs_error(CS_CODE_NOT_FOUND,
                    "node %s: a tensor of rank %d, and this device's backend runs ranks up to %d",
                    task->name, rank, MOST_RANK);
  }
  if (n->all == 0) {
    return cs_error(CS_CODE_NOT_FOUND,
                    "node %s: this device's backend has no candidate for it within %lld bytes of "
                    "workspace%s: %s",
                    task->name, (long long)settings->options.workspace_limit,
                    settings->options.deterministic ? ", deterministic" : "", signature);
  }
  if (n->absent > 0) {
    snprintf(absent, sizeof absent, ", %d of libraries' versions that are not installed",
             n->absent);
  }
  if (n->excluded > 0) {
    snprintf(excluded, sizeof excluded, ", %d admissible ones banned or not among those allowed",
             n->excluded);
  }
  return cs_error(CS_CODE_NOT_FOUND,
                  "node %s: no admissible candidate under a workspace limit of %lld bytes%s: %d "
                  "measured, %d of them rejected%s%s, for %s",
                  task->name, (long long)settings->options.workspace_limit,
                  settings->options.deterministic ? ", deterministic" : "", n->all, n->rejected,
                  absent, excluded, signature);
}

static cs_status choices_of_task(const cs_op_profile *known, const cs_task *task,
                                 const char *signature, const char *pin,
                                 const cs_settings *settings, int threads, cs_near *near,
                                 cs_task_choices *out) {
  record_counts n = {.all = known ? known->n_records : 0};
  out->choices = cs_calloc((size_t)n.all, sizeof *out->choices);
  if (!out->choices) return cs_no_memory("choices", (size_t)n.all);
  for (int r = 0; r < n.all; r++) {
    const cs_record *record = &known->records[r];
    n.rejected += record->measured.rejected;
    n.absent += !record->measured.rejected && record->absent;
    if (!cs_record_admissible(record, settings->options.workspace_limit,
                              settings->options.deterministic, threads) ||
        (pin && strcmp(pin, record->candidate.id) != 0) ||
        (!pin && cs_candidate_is_coarse(&task->desc, &record->candidate))) {
      continue;
    }
    if (cs_choices_exclude(settings, &task->desc, record->candidate.id)) {
      n.excluded++;
      continue;
    }
    CS_RETURN_IF_ERROR(make_choice(record, &out->choices[out->n++]));
  }
  if (out->n > 0) return CS_OK;
  if (pin) return refuse_pin(known, task, pin, settings, threads, near);
  return nothing_admissible(task, &n, signature, settings);
}

cs_status cs_choices_of_desc(const cs_profile *profile, const cs_op_desc *desc,
                             const cs_settings *settings, int threads, cs_task_choices *out) {
  char *signature = NULL;
  cs_task task = {.name = (char *)(uintptr_t) "", .desc = *desc};
  cs_near near = {0};
  *out = (cs_task_choices){0};
  CS_RETURN_IF_ERROR(cs_op_signature(desc, &signature));
  cs_status st = choices_of_task(cs_profile_find(profile, signature), &task, signature, NULL,
                                 settings, threads, &near, out);
  free(signature);
  if (cs_status_code(st) == CS_CODE_NOT_FOUND) {
    cs_status_free(st);
    st = CS_OK;
  }
  if (st != CS_OK) cs_choices_clear(out);
  return st;
}

cs_status cs_choices_of_program(const cs_profile *profile, const cs_program *program,
                                const cs_settings *settings, int threads, cs_near *near,
                                cs_task_choices **out) {
  cs_status st = CS_OK;
  cs_task_choices *choices = cs_calloc((size_t)program->n_tasks, sizeof *choices);
  const char **pins = cs_calloc((size_t)program->n_tasks, sizeof *pins);
  if (!choices || !pins) {
    st = cs_no_memory("choices", (size_t)program->n_tasks * sizeof *choices);
    goto done;
  }
  for (int i = 0; i < settings->options.n_pins; i++) {
    CS_TRY(st, resolve_pin(program, settings->pins[i], pins), done);
  }
  for (int t = 0; t < program->n_tasks && st == CS_OK; t++) {
    char *signature = NULL;
    st = cs_op_signature(&program->tasks[t].desc, &signature);
    if (st == CS_OK) {
      st = choices_of_task(cs_profile_find(profile, signature), &program->tasks[t], signature,
                           pins[t], settings, threads, near, &choices[t]);
    }
    free(signature);
  }
done:
  free(pins);
  if (st != CS_OK) {
    cs_choices_free(choices, program->n_tasks);
    return st;
  }
  *out = choices;
  return CS_OK;
}

void cs_choices_begin_early(const cs_backend *backend, cs_task_choices *choices, int n_tasks) {
  if (!backend->vtable->begins_early) return;
  for (int t = 0; t < n_tasks; t++) {
    for (int i = 0; i < choices[t].n; i++) {
      cs_choice *choice = &choices[t].choices[i];
      choice->early = backend->vtable->begins_early(backend, choice->candidate);
    }
  }
}

/* ---- Bans ---- */

typedef void (*each_candidate_fn)(void *user, const char *id);

static cs_status each_candidate(const cs_profile *profile, const cs_program *program,
                                each_candidate_fn use, void *user) {
  for (int t = 0; t < program->n_tasks; t++) {
    char *signature = NULL;
    CS_RETURN_IF_ERROR(cs_op_signature(&program->tasks[t].desc, &signature));
    const cs_op_profile *known = cs_profile_find(profile, signature);
    free(signature);
    for (int r = 0; known && r < known->n_records; r++) use(user, known->records[r].candidate.id);
  }
  return CS_OK;
}

typedef struct ban_marks {
  const cs_settings *settings;
  bool *seen;
} ban_marks;

static void mark_ban(void *user, const char *id) {
  const ban_marks *marks = user;
  for (int i = 0; i < marks->settings->options.n_bans; i++) {
    if (is_like(marks->settings->bans[i], id)) marks->seen[i] = true;
  }
}

cs_status cs_bans_seen(const cs_profile *profile, const cs_program *program,
                       const cs_settings *settings, bool *seen) {
  ban_marks marks = {settings, seen};
  if (settings->options.n_bans == 0) return CS_OK;
  return each_candidate(profile, program, mark_ban, &marks);
}

static void offer(void *user, const char *id) {
  cs_near_offer(user, id);
}

cs_status cs_bans_check(const cs_profile *profile, const cs_program *program,
                        const cs_settings *settings, const bool *seen) {
  for (int i = 0; i < settings->options.n_bans; i++) {
    if (seen[i]) continue;
    cs_near near = {.wanted = settings->bans[i]};
    char text[CS_TEXT_SIZE * 4];
    CS_RETURN_IF_ERROR(each_candidate(profile, program, offer, &near));
    return cs_error(CS_CODE_NOT_FOUND, "ban \"%s\": no operation has such a candidate%s",
                    settings->bans[i], cs_near_text(&near, text, sizeof text));
  }
  return CS_OK;
}
