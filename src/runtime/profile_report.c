/* `convsched.profile-report/1`, and the warnings that go with it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "runtime/profiling.h"

#define NOISY 0.025 /* variation of samples that is worth a warning */

typedef struct report {
  const cs_model_profiling *p;
  const cs_device_info *device;
  json_t *root, *warnings;
  int noisy; /* best candidates whose samples vary by more than NOISY */
  double worst;
  const char *worst_task;
} report;

/* ---- Operations ---- */

static void add_demand(json_t *json, const report *r, const cs_record *record) {
  cs_demand demand = cs_kernels_demand(r->device, record->kernels, record->n_kernels);
  if (!demand.known) return;
  json_object_set_new(json, "kernels", json_integer(record->n_kernels));
  for (int i = 0; i < CS_RESOURCE_COUNT; i++) {
    char name[32];
    snprintf(name, sizeof name, "%s_share", cs_resource_name((cs_resource)i));
    json_object_set_new(json, name, json_real(demand.share[i]));
  }
  json_object_set_new(json, "blocks_per_unit", json_integer(demand.resident));
  json_object_set_new(json, "units", json_integer(demand.units));
  json_object_set_new(json, "waves", json_real(demand.waves));
}

static json_t *record_json(const report *r, const cs_record *record) {
  const cs_measurement *m = &record->measured;
  json_t *json = json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:i, s:I}", "id", record->candidate.id,
                           "cold_us", m->cold_us, "warm_us", m->warm_us, "p10_us", m->p10_us,
                           "p90_us", m->p90_us, "variation", m->variation, "samples", m->samples,
                           "workspace_bytes", (json_int_t)record->candidate.workspace_bytes);
  if (!json) return NULL;
  if (record->candidate.threads > 0) {
    json_object_set_new(json, "threads", json_integer(record->candidate.threads));
  }
  add_demand(json, r, record);
  return json;
}

static void note_variation(report *r, const char *task, double variation) {
  if (variation <= NOISY) return;
  r->noisy++;
  if (variation <= r->worst) return;
  r->worst = variation;
  r->worst_task = task;
}

static int count_tasks(const report *r, const char *signature, cs_status *st) {
  const cs_program *program = r->p->program;
  int n = 0;
  for (int t = 0; t < program->n_tasks && *st == CS_OK; t++) {
    char *own = NULL;
    if (r->p->tasks && !r->p->tasks[t]) continue;
    *st = cs_op_signature(&program->tasks[t].desc, &own);
    n += *st == CS_OK && strcmp(own, signature) == 0;
    free(own);
  }
  return n;
}

static cs_status add_operation(report *r, const cs_distinct_op *op, json_t *list) {
  const cs_task *task = &r->p->program->tasks[op->task];
  const cs_op_profile *known = cs_profile_find(r->p->session->device->profile, op->signature);
  const cs_record *set[CS_PARETO_MOST];
  int n = cs_op_pareto(known, r->device, &r->p->measure, CS_PARETO_MOST, set), rejected = 0;
  cs_status st = CS_OK;
  for (int i = 0; known && i < known->n_records; i++) {
    rejected += known->records[i].measured.rejected;
  }
  int tasks = count_tasks(r, op->signature, &st);
  CS_RETURN_IF_ERROR(st);
  json_t *json = json_pack(
      "{s:s, s:s, s:s, s:i, s:s, s:i, s:i}", "task", task->name, "op", cs_op_name(task->desc.op),
      "layout", cs_layout_name(task->desc.output.layout), "tasks", tasks, "signature",
      op->signature, "candidates", known ? known->n_records : 0, "rejected", rejected);
  if (!json) return cs_no_memory("a report", 0);
  json_t *pareto = json_array();
  for (int i = 0; i < n; i++) json_array_append_new(pareto, record_json(r, set[i]));
  json_object_set_new(json, "best", n > 0 ? record_json(r, set[0]) : json_null());
  json_object_set_new(json, "pareto", pareto);
  json_array_append_new(list, json);
  if (n > 0) note_variation(r, task->name, set[0]->measured.variation);
  return CS_OK;
}

static cs_status add_operations(report *r) {
  cs_distinct_op *ops = NULL;
  int n = 0;
  cs_profiling steps = cs_model_steps(r->p, r->p->program, r->p->tasks);
  CS_RETURN_IF_ERROR(cs_distinct_ops(&steps, &ops, &n));
  cs_status st = CS_OK;
  json_t *list = json_array();
  for (int i = 0; i < n && st == CS_OK; i++) st = add_operation(r, &ops[i], list);
  json_object_set_new(r->root, "operations", list);
  cs_distinct_ops_free(ops, n);
  return st;
}

/* ---- Co-runs ---- */

static json_t *corun_json(const cs_corun *corun) {
  json_t *members = json_array();
  for (int i = 0; i < corun->n; i++) {
    json_array_append_new(members, json_pack("{s:s, s:s}", "op", corun->members[i].signature,
                                             "candidate", corun->members[i].candidate));
  }
  json_t *json =
      json_pack("{s:o, s:o, s:f, s:f, s:f, s:f, s:i, s:s}", "members", members, "serial_us",
                cs_json_number(corun->serial_us), "concurrent_us", corun->concurrent_us, "p10_us",
                corun->p10_us, "p90_us", corun->p90_us, "variation", corun->variation, "samples",
                corun->samples, "limiter", corun->limiter);
  if (json) {
    json_object_set_new(json, "overlap", cs_json_number(corun->overlap));
    json_object_set_new(json, "serial_warm_us", cs_json_number(corun->serial_warm_us));
    json_object_set_new(json, "concurrent_warm_us", cs_json_number(corun->concurrent_warm_us));
  }
  return json;
}

/* What choosing together gains where tensors and weights are in the cache. */
static bool add_warm(const cs_corun_outcome *outcome, json_t *json) {
  if (!outcome->best_warm || isnan(outcome->fastest_alone->concurrent_warm_us)) return false;
  double alone = outcome->fastest_alone->concurrent_warm_us;
  double best = outcome->best_warm->concurrent_warm_us;
  bool win = best <= CS_CORUN_WIN * alone;
  json_object_set_new(json, "gain_warm", json_real(best > 0 ? alone / best : 1.0));
  json_object_set_new(json, "win_warm", json_boolean(win));
  json_object_set_new(json, "best_warm", corun_json(outcome->best_warm));
  return win;
}

typedef struct corun_wins {
  int cold, warm;
} corun_wins;

static cs_status add_set(const report *r, const cs_corun_set *set, json_t *list, corun_wins *wins) {
  cs_corun_outcome outcome;
  cs_profiling steps = cs_model_steps(r->p, r->p->program, r->p->tasks);
  CS_RETURN_IF_ERROR(cs_profiling_corun_outcome(&steps, set, &outcome));
  if (!outcome.fastest_alone) return CS_OK;
  json_t *tasks = json_array();
  for (int i = 0; i < set->n; i++) {
    json_array_append_new(tasks, json_string(r->p->program->tasks[set->tasks[i]].name));
  }
  double alone = outcome.fastest_alone->concurrent_us, best = outcome.best->concurrent_us;
  bool win = best <= CS_CORUN_WIN * alone;
  wins->cold += win;
  json_t *json =
      json_pack("{s:o, s:o, s:f, s:f, s:f, s:b, s:o, s:o}", "tasks", tasks, "serial_us",
                cs_json_number(outcome.fastest_alone->serial_us), "fastest_alone_us", alone,
                "best_us", best, "gain", best > 0 ? alone / best : 1.0, "win", win, "fastest_alone",
                corun_json(outcome.fastest_alone), "best", corun_json(outcome.best));
  if (!json) return cs_no_memory("a report", 0);
  wins->warm += add_warm(&outcome, json);
  json_array_append_new(list, json);
  return CS_OK;
}

static cs_status add_coruns(report *r) {
  const cs_corun_report *c = &r->p->coruns;
  cs_corun_set *sets = NULL;
  int n = 0;
  corun_wins wins = {0};
  if (!r->p->options.corun) return CS_OK;
  cs_profiling steps = cs_model_steps(r->p, r->p->program, r->p->tasks);
  CS_RETURN_IF_ERROR(cs_profiling_corun_sets(&steps, &sets, &n));
  cs_status st = CS_OK;
  json_t *list = json_array();
  for (int i = 0; i < n && st == CS_OK; i++) st = add_set(r, &sets[i], list, &wins);
  free(sets);
  json_t *json =
      json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:s, s:o}", "sets", c->sets,
                "sets_cached", c->sets_cached, "sets_skipped", c->sets_skipped, "combinations",
                c->combinations, "traced", c->traced, "counted", c->counted, "limiter_differences",
                c->limiter_differences, "wins", wins.cold, "wins_warm", wins.warm, "seconds",
                c->seconds, "unavailable", c->unavailable, "list", list);
  if (!json) return st != CS_OK ? st : cs_no_memory("a report", 0);
  json_object_set_new(r->root, "coruns", json);
  return st;
}

/* ---- The device's state, warnings ---- */

static json_t *state_json(const cs_device_state *s) {
  json_t *json = json_pack("{s:o, s:o, s:o, s:o, s:s, s:i, s:i, s:s}", "clock_mhz",
                           cs_json_number(s->clock_mhz), "memory_clock_mhz",
                           cs_json_number(s->memory_clock_mhz), "temperature_c",
                           cs_json_number(s->temperature_c), "power_w", cs_json_number(s->power_w),
                           "throttle", s->throttle, "other_processes", s->other_processes,
                           "partitioned", s->partitioned, "unavailable", s->unavailable);
  return json ? json : json_null();
}

static void warn(report *r, const char *format, ...) CS_PRINTF(2, 3);
static void warn(report *r, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  json_array_append_new(r->warnings, json_string(text));
  cs_log(&r->p->session->device->logger, CS_LOG_WARNING, "%s", text);
}

static void warn_of_state(report *r) {
  const cs_device_state *before = &r->p->before, *after = &r->p->after;
  if (!r->p->state_known) return;
  int others = before->other_processes > after->other_processes ? before->other_processes
                                                                : after->other_processes;
  if (others > 0) {
    warn(r, "%d other process%s on the device: times may be longer than they should be", others,
         others == 1 ? " computes" : "es compute");
  }
  if (after->partitioned == 1) {
    warn(r, "the device is a partition (MIG): what was measured holds for partitions of its size");
  }
  if (before->throttle[0]) warn(r, "the device was slowed before measuring: %s", before->throttle);
  if (after->throttle[0]) warn(r, "the device is slowed after measuring: %s", after->throttle);
}

static void add_warnings(report *r) {
  const cs_model_profiling *p = r->p;
  warn_of_state(r);
  if (r->noisy > 0) {
    warn(r, "%d operations vary by more than %.1f%%, the worst by %.1f%% (%s)", r->noisy,
         100 * NOISY, 100 * r->worst, r->worst_task);
  }
  if (p->options.counters && p->kernels.unavailable[0] &&
      p->session->device->backend->vtable->schedule_counters) {
    warn(r, "counters: unavailable: %s", p->kernels.unavailable);
  } else if (p->coruns.unavailable[0]) {
    warn(r, "counters of co-runs: unavailable: %s", p->coruns.unavailable);
  }
  if (p->coruns.untraced[0]) warn(r, "overlap of co-runs: unknown: %s", p->coruns.untraced);
  if (p->coruns.limiter_differences > 0) {
    warn(r, "in %d co-runs counters name another limiter than static resources do",
         p->coruns.limiter_differences);
  }
}

/* Known of tracers, so no warning: cs_kernel_comparison. */
static void tell_untold_local(const report *r) {
  int n = r->p->kernels.untold_local;
  if (n == 0) return;
  cs_log(&r->p->session->device->logger, CS_LOG_INFO,
         "local memory of %d of the kernels traced: told by the driver, not by the tracer", n);
}

/* ---- The whole ---- */

static json_t *head_json(const report *r) {
  const cs_model_profiling *p = r->p;
  const cs_session_options *options = &p->session->settings.options;
  return json_pack(
      "{s:s, s:s, s:I, s:s, s:{s:s, s:s, s:s}, s:{s:i, s:i, s:i, s:i, s:f}, s:{s:i, s:i, s:i, "
      "s:i, s:s}}",
      "schema", "convsched.profile-report/1", "model", p->session->source->name, "batch",
      (json_int_t)options->batch, "dtype", cs_precision_name(options->precision), "device", "name",
      r->device->name, "backend", r->device->backend, "identity", r->device->identity, "measured",
      "operations", p->measured.operations, "operations_cached", p->measured.operations_cached,
      "candidates", p->measured.candidates, "candidates_rejected", p->measured.candidates_rejected,
      "seconds", p->measured.seconds, "kernels", "recorded", p->kernels.recorded, "counted",
      p->kernels.counted, "differences", p->kernels.differences, "untold_local",
      p->kernels.untold_local, "unavailable", p->kernels.unavailable);
}

cs_status cs_model_report(const cs_model_profiling *p, char **out) {
  cs_status st = CS_OK;
  cs_backend *backend = p->session->device->backend;
  report r = {.p = p, .device = backend->vtable->info(backend), .worst_task = ""};
  r.root = head_json(&r);
  r.warnings = json_array();
  if (!r.root || !r.warnings) {
    st = cs_no_memory("a report", 0);
    goto done;
  }
  CS_TRY(st, add_operations(&r), done);
  CS_TRY(st, add_coruns(&r), done);
  if (p->state_known) {
    json_object_set_new(
        r.root, "state",
        json_pack("{s:o, s:o}", "before", state_json(&p->before), "after", state_json(&p->after)));
  }
  add_warnings(&r);
  tell_untold_local(&r);
  json_object_set(r.root, "warnings", r.warnings);
  st = cs_json_take_text(json_incref(r.root), out);
done:
  json_decref(r.warnings);
  json_decref(r.root);
  return st;
}
