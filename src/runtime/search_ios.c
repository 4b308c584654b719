#include "runtime/search_ios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "runtime/search.h"
#include "runtime/stage_costs.h"

#define SAMPLES 5

/* ---- The place where stages run: every buffer of the program with bytes of its own ---- */

typedef struct stages {
  cs_session *session;
  const cs_policy_input *input;
  cs_profile *profile;
  cs_bench *bench;  /* prepared candidates */
  cs_plan *plan;    /* of the bytes */
  cs_realised home; /* the arena */
  void *workspace;
  int64_t workspace_bytes;
  double begun, ends; /* by the clock */
  bool full;          /* the device has no room (any more) */
} stages;

static const cs_backend_vtable *vtable_of(const stages *s) {
  return s->session->device->backend->vtable;
}

/* Workspaces of a group's tasks lie in the same bytes, those of groups beside each other. */
static cs_status make_workspace(stages *s, int64_t bytes) {
  cs_backend *backend = s->session->device->backend;
  if (bytes <= s->workspace_bytes) return CS_OK;
  if (s->workspace) vtable_of(s)->release(backend, s->workspace);
  s->workspace = NULL;
  s->workspace_bytes = 0;
  CS_RETURN_IF_ERROR(
      cs_annotate(vtable_of(s)->allocate(backend, bytes, &s->workspace), "workspaces: "));
  s->workspace_bytes = bytes;
  return CS_OK;
}

/* *offset[group] and the bytes of all. */
static cs_status place_workspaces(stages *s, const cs_stage *stage, int64_t *offset) {
  int64_t total = 0;
  for (int group = 0; group < stage->n_groups; group++) {
    int64_t most = 0;
    for (int i = 0; i < stage->n && !stage->merged; i++) {
      const cs_choice *choice = &s->input->choices[stage->tasks[i]].choices[0];
      if (stage->group_of[i] == group) most = cs_max_i64(most, choice->candidate->workspace_bytes);
    }
    offset[group] = total;
    total += cs_round_up(most, 256);
  }
  return make_workspace(s, total);
}

static cs_status fill_launch(stages *s, const cs_stage *stage, int i, const int64_t *offset,
                             cs_launch *out) {
  const cs_program *program = s->input->program;
  const cs_task *task = &program->tasks[stage->tasks[i]];
  const cs_task_choices *choices = &s->input->choices[stage->tasks[i]];
  int choice = 0;
  while (stage->merged && strcmp(choices->choices[choice].candidate->id, stage->merged) != 0) {
    choice++;
  }
  *out = (cs_launch){.name = task->name,
                     .output = cs_realised_tensor(&s->home, program, s->plan, task->output),
                     .stream = stage->merged ? 0 : stage->group_of[i],
                     .merged = -1};
  for (int k = 0; k < task->desc.n_inputs; k++) {
    out->inputs[k] = cs_realised_tensor(&s->home, program, s->plan, task->inputs[k]);
  }
  if (!stage->merged && choices->choices[0].candidate->workspace_bytes > 0) {
    out->workspace = (char *)s->workspace + offset[stage->group_of[i]];
  }
  return cs_bench_prepared(s->bench, stage->tasks[i], choice, &out->exec, &out->weights);
}

/* In turn the first tasks of all groups, the second ones, and so on, as the policy launches them.
 * A merged stage is one launch. */
static cs_status fill_launches(stages *s, const cs_stage *stage, const int64_t *offset,
                               cs_launch *launches) {
  int n = 0;
  for (int round = 0; n < stage->n; round++) {
    for (int group = 0; group < stage->n_groups; group++) {
      for (int i = 0, seen = 0; i < stage->n; i++) {
        if (stage->group_of[i] != group || seen++ != round) continue;
        CS_RETURN_IF_ERROR(fill_launch(s, stage, i, offset, &launches[n]));
        if (stage->merged && n > 0) launches[n].merged = 0;
        n++;
      }
    }
  }
  return CS_OK;
}

static cs_status make_schedule(stages *s, const cs_stage *stage, cs_schedule **out) {
  cs_status st = CS_OK;
  cs_launch *launches = cs_calloc((size_t)stage->n, sizeof *launches);
  int64_t *offset = cs_calloc((size_t)stage->n_groups, sizeof *offset);
  const cs_stream_set streams = {.n = stage->merged ? 1 : stage->n_groups};
  if (!launches || !offset) {
    st = cs_no_memory("a stage", (size_t)stage->n * sizeof *launches);
    goto done;
  }
  CS_TRY(st, place_workspaces(s, stage, offset), done);
  CS_TRY(st, fill_launches(s, stage, offset, launches), done);
  st = vtable_of(s)->schedule_create(s->session->device->backend, launches, stage->n, &streams,
                                     !s->session->settings.options.no_graph, out);
done:
  free(launches);
  free(offset);
  return st;
}

/* Runs the whole program once, as one group, so that every stage finds what it would in the
 * network: on a GPU numbers decide the power, and so the clock. */
static cs_status run_once(stages *s) {
  cs_status st = CS_OK;
  cs_schedule *schedule = NULL;
  size_t n = (size_t)s->input->program->n_tasks;
  int *tasks = cs_calloc(n, sizeof *tasks), *group_of = cs_calloc(n, sizeof *group_of);
  const cs_stage all = {.tasks = tasks, .group_of = group_of, .n = (int)n, .n_groups = 1};
  if (!tasks || !group_of) {
    st = cs_no_memory("a stage", n * sizeof *tasks);
    goto done;
  }
  for (size_t t = 0; t < n; t++) tasks[t] = (int)t;
  CS_TRY(st, make_schedule(s, &all, &schedule), done);
  st = vtable_of(s)->schedule_run(schedule);
done:
  if (schedule) vtable_of(s)->schedule_destroy(schedule);
  free(tasks);
  free(group_of);
  return st;
}

static cs_status open_stages(stages *s) {
  cs_backend *backend = s->session->device->backend;
  cs_policy_input plain = *s->input;
  plain.memory_limit = plain.workspace_limit = 0;
  plain.model = NULL;
  CS_RETURN_IF_ERROR(cs_session_generate_inputs(s->session));
  CS_RETURN_IF_ERROR(cs_bench_create(s->session, s->input, 1, &s->bench));
  CS_RETURN_IF_ERROR(cs_plan_make(&cs_policy_sequential, &plain, &s->plan));
  CS_RETURN_IF_ERROR(cs_plan_memory(s->plan, s->input->program, false, 0));
  s->home.backend = backend;
  CS_RETURN_IF_ERROR(cs_annotate(
      vtable_of(s)->allocate(backend, s->plan->arena_bytes, &s->home.arena), "arena: "));
  s->home.arena_bytes = s->plan->arena_bytes;
  CS_RETURN_IF_ERROR(vtable_of(s)->fill(backend, s->home.arena, 0, s->home.arena_bytes));
  CS_RETURN_IF_ERROR(cs_session_upload_inputs(s->session, &s->home, s->plan));
  return run_once(s);
}

static void close_stages(stages *s) {
  cs_backend *backend = s->session->device->backend;
  if (s->workspace) vtable_of(s)->release(backend, s->workspace);
  if (s->home.arena) vtable_of(s)->release(backend, s->home.arena);
  cs_bench_destroy(s->bench);
  cs_plan_destroy(s->plan);
}

/* ---- One stage ---- */

/* What a profile's file keeps of a time, so that the next session finds the very same. */
static double as_kept(double us) {
  char text[32];
  snprintf(text, sizeof text, "%.6g", us);
  return strtod(text, NULL);
}

static cs_status sample(stages *s, const cs_stage *stage, cs_stats *out) {
  double us[SAMPLES], warm_up;
  cs_schedule *schedule = NULL;
  CS_RETURN_IF_ERROR(make_schedule(s, stage, &schedule));
  cs_status st = vtable_of(s)->schedule_latency(schedule, 1, &warm_up);
  if (st == CS_OK) st = vtable_of(s)->schedule_latency(schedule, SAMPLES, us);
  vtable_of(s)->schedule_destroy(schedule);
  return st == CS_OK ? cs_stats_of(us, SAMPLES, out) : st;
}

static cs_status keep(stages *s, const char *signature, const cs_stats *stats, double us) {
  cs_candidate candidate = {.id = (char *)(uintptr_t)CS_STAGE_CANDIDATE,
                            .family = (char *)(uintptr_t)CS_STAGE_CANDIDATE};
  cs_measurement measured = {.cold_us = us,
                             .warm_us = us,
                             .p10_us = stats->p10,
                             .p90_us = stats->p90,
                             .variation = stats->variation,
                             .samples = SAMPLES};
  return cs_profile_add(s->profile, signature, &candidate, &measured);
}

static cs_status measure_stage(void *user, const cs_stage *stage, const char *signature,
                               double *us) {
  stages *s = user;
  cs_stats stats;
  const cs_session_options *options = &s->session->settings.options;
  if (options->cancelled && options->cancelled(options->cancelled_user)) {
    return cs_error(CS_CODE_CANCELLED,
                    "measuring stages was interrupted; what was measured is kept");
  }
  if (s->full || cs_now_seconds() > s->ends) return CS_OK;
  cs_progress_timed("search (ios)", "stages", s->session->stages.measured, 0,
                    cs_now_seconds() - s->begun, s->ends - s->begun, NULL);
  cs_status st = sample(s, stage, &stats);
  if (cs_status_code(st) == CS_CODE_NO_MEMORY) {
    cs_log(&s->session->device->logger, CS_LOG_WARNING,
           "ios: no room for stages (%s); the others are estimated", cs_status_message(st));
    cs_status_free(st);
    s->full = true;
    return CS_OK;
  }
  CS_RETURN_IF_ERROR(st);
  *us = as_kept(stats.median);
  return keep(s, signature, &stats, *us);
}

/* ---- All that the policy asks for ---- */

static cs_status price_all(stages *s) {
  cs_policy_input asked = *s->input;
  cs_stage_costs *costs = NULL;
  cs_plan *plan = NULL;
  CS_RETURN_IF_ERROR(cs_stage_costs_create(
      &asked, s->profile, !s->session->settings.options.no_graph, &s->session->stages, &costs));
  costs->measure = measure_stage;
  costs->user = s;
  costs->again = s->session->settings.options.refresh;
  asked.stage_cost = cs_stage_costs_price;
  asked.stage_user = costs;
  cs_status st = cs_plan_make(&cs_policy_ios, &asked, &plan);
  cs_plan_destroy(plan);
  cs_stage_costs_destroy(costs);
  return st;
}

/* Under what it is kept that the stages of a program were measured. */
static cs_status completion_name(const cs_session *session, const cs_policy_input *input,
                                 char **out) {
  char *signature = NULL;
  cs_strbuf text = {0};
  CS_RETURN_IF_ERROR(
      cs_program_signature(input->program, !session->settings.options.no_graph, &signature));
  uint64_t fastest = CS_HASH_SEED;
  for (int t = 0; t < input->program->n_tasks; t++) {
    fastest = cs_hash_string(fastest, input->choices[t].choices[0].candidate->id);
  }
  cs_strbuf_printf(&text, "Stages of %s with %016llx", signature, (unsigned long long)fastest);
  free(signature);
  return cs_strbuf_take(&text, out);
}

static cs_status measure_all(stages *s) {
  const cs_logger *logger = &s->session->device->logger;
  cs_status st = open_stages(s);
  if (cs_status_code(st) == CS_CODE_NO_MEMORY) {
    cs_log(logger, CS_LOG_WARNING, "ios: no room for stages (%s); all are estimated",
           cs_status_message(st));
    cs_status_free(st);
    s->full = true;
    return CS_OK;
  }
  if (st == CS_OK) st = price_all(s);
  return st;
}

cs_status cs_search_stages(cs_session *session, const cs_policy_input *input) {
  cs_status st = CS_OK;
  char *name = NULL;
  const cs_session_options *options = &session->settings.options;
  stages s = {.session = session, .input = input};
  cs_completion completion = {.workspace_limit = input->workspace_limit,
                              .threads = input->max_streams};
  if (options->frozen || options->search_seconds == 0 || !session->shared ||
      cs_device_is_simulated(session->device)) {
    return CS_OK;
  }
  CS_TRY(st, cs_device_profile(session->device, session->settings.cache_dir, &s.profile), done);
  CS_TRY(st, completion_name(session, input, &name), done);
  if (!options->refresh && options->search_seconds < 0 &&
      cs_op_profile_covers(cs_profile_find(s.profile, name), &completion)) {
    goto done;
  }
  s.begun = cs_now_seconds();
  s.ends = s.begun + (options->search_seconds > 0 ? options->search_seconds : CS_SEARCH_SECONDS);
  CS_TRY(st, measure_all(&s), done);
  session->stages.seconds = cs_now_seconds() - s.begun;
  if (!s.full) st = cs_profile_mark_completion(s.profile, name, &completion);
done:
  if (s.bench || s.plan) close_stages(&s);
  free(name);
  return st;
}
