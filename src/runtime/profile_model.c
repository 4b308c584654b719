/* cs_profile_model: times for each policy, then kernels, co-runs and counters of the program that
 * they lead to. */
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/profiling.h"

void cs_profile_options_init(cs_profile_options *options) {
  *options = (cs_profile_options){.struct_size = sizeof *options};
}

cs_profiling cs_model_steps(const cs_model_profiling *p, const cs_program *program,
                            const bool *tasks) {
  return (cs_profiling){.profile = p->session->device->profile,
                        .backend = p->session->device->backend,
                        .program = program,
                        .tasks = tasks,
                        .options = &p->measure,
                        .logger = &p->session->device->logger};
}

static void add_measured(cs_measure_report *sum, const cs_measure_report *one) {
  sum->operations += one->operations;
  sum->operations_cached += one->operations_cached;
  sum->candidates += one->candidates;
  sum->candidates_rejected += one->candidates_rejected;
  sum->seconds += one->seconds;
}

/* ---- Named nodes only ---- */

static cs_status no_such_node(const cs_program *program, const char *name) {
  cs_near near = {.wanted = name};
  char text[1024];
  for (int t = 0; t < program->n_tasks; t++) cs_near_offer(&near, program->tasks[t].name);
  return cs_error(CS_CODE_NOT_FOUND,
                  "%s: no node \"%s\" is run (one that is fused into another, or whose output is a "
                  "view, is not)%s",
                  program->graph->name, name, cs_near_text(&near, text, sizeof text));
}

/* tasks[t]: the program's task is one of the nodes asked for, by name or by pattern. */
static cs_status select_tasks(const cs_model_profiling *p, const cs_program *program, bool *tasks) {
  for (int i = 0; i < p->options.n_nodes; i++) {
    bool found = false;
    for (int t = 0; t < program->n_tasks; t++) {
      const char *name = program->tasks[t].name, *wanted = p->options.nodes[i];
      if (strcmp(name, wanted) != 0 && fnmatch(wanted, name, 0) != 0) continue;
      tasks[t] = found = true;
    }
    if (!found) return no_such_node(program, p->options.nodes[i]);
  }
  return CS_OK;
}

/* Sum of the fastest times of the tasks asked for; INFINITY where one has none. */
static cs_status cost_of_tasks(const cs_model_profiling *p, const cs_program *program,
                               const bool *tasks, double *out) {
  const cs_device_info *device =
      p->session->device->backend->vtable->info(p->session->device->backend);
  *out = 0;
  for (int t = 0; t < program->n_tasks; t++) {
    const cs_record *fastest[CS_PARETO_MOST];
    char *signature = NULL;
    if (!tasks[t]) continue;
    CS_RETURN_IF_ERROR(cs_op_signature(&program->tasks[t].desc, &signature));
    int n = cs_op_pareto(cs_profile_find(p->session->device->profile, signature), device,
                         &p->measure, 1, fastest);
    *out += n > 0 ? fastest[0]->measured.cold_us : INFINITY;
    free(signature);
  }
  return CS_OK;
}

/* The named nodes in one layout; the program stays if it is the cheapest so far. */
static cs_status measure_layout(cs_model_profiling *p, const cs_layout *layouts, double *best_us) {
  cs_status st = CS_OK;
  cs_program *program = NULL;
  bool *tasks = NULL;
  cs_measure_report report = {0};
  double us = 0;
  CS_TRY(st,
         cs_program_lower_divided(p->session->planned.graph, p->session->settings.options.precision,
                                  layouts, p->session->planned.division, &program),
         done);
  tasks = cs_calloc((size_t)program->n_tasks, sizeof *tasks);
  if (!tasks) {
    st = cs_no_memory("tasks", (size_t)program->n_tasks);
    goto done;
  }
  CS_TRY(st, select_tasks(p, program, tasks), done);
  cs_profiling steps = cs_model_steps(p, program, tasks);
  CS_TRY(st, cs_profiling_measure(&steps, &report), done);
  add_measured(&p->measured, &report);
  CS_TRY(st, cost_of_tasks(p, program, tasks, &us), done);
  if (p->program && us >= *best_us) goto done;
  *best_us = us;
  cs_program_destroy(p->program);
  free(p->tasks);
  p->program = program;
  p->tasks = tasks;
  program = NULL;
  tasks = NULL;
done:
  cs_program_destroy(program);
  free(tasks);
  return st;
}

static cs_status measure_nodes(cs_model_profiling *p) {
  const cs_graph *graph = p->session->planned.graph;
  cs_backend *backend = p->session->device->backend;
  cs_layout available[CS_MAX_DEVICE_LAYOUTS];
  int n = backend->vtable->layouts(backend, p->session->settings.options.precision, available);
  cs_status st = CS_OK;
  double best_us = INFINITY;
  cs_layout *layouts = cs_calloc((size_t)graph->n_values, sizeof *layouts);
  if (!layouts) return cs_no_memory("layouts", (size_t)graph->n_values * sizeof *layouts);
  for (int a = 0; a < n && st == CS_OK; a++) {
    cs_graph_uniform_layouts(graph, available[a], layouts);
    st = measure_layout(p, layouts, &best_us);
  }
  free(layouts);
  return st;
}

/* ---- Whole networks ---- */

/* What planning under the policy would measure: all layouts, their mixture, the device's peaks. */
static cs_status measure_network(cs_model_profiling *p) {
  cs_session *session = p->session;
  double flops, bandwidth;
  cs_program_destroy(p->program);
  p->program = NULL;
  memset(&session->planned.measured, 0, sizeof session->planned.measured);
  CS_RETURN_IF_ERROR(cs_choose_program(session, &p->measure, &p->program));
  add_measured(&p->measured, &session->planned.measured);
  return cs_profile_peaks(session->device->profile, session->device->backend,
                          session->settings.options.precision, &p->measure, &flops, &bandwidth);
}

static cs_status measure_policy(cs_model_profiling *p, const cs_session_options *options,
                                const char *policy) {
  cs_session *session = p->session;
  cs_session_options own = *options;
  own.policy = policy;
  cs_settings_free(&session->settings);
  cs_planned_free(&session->planned);
  int threads = p->measure.threads;
  CS_RETURN_IF_ERROR(cs_settings_copy(&own, &session->settings));
  cs_profile *profile;
  CS_RETURN_IF_ERROR(cs_planning_begin(session, &p->measure));
  p->measure.reported = p->reported;
  CS_RETURN_IF_ERROR(cs_device_profile(session->device, session->settings.cache_dir, &profile));
  p->measure.full = p->options.full;
  /* Policies that give their streams the same threads share all measurements. */
  if (p->refreshed && p->measure.threads == threads) p->measure.refresh = false;
  p->refreshed = true;
  if (p->options.n_nodes > 0) return measure_nodes(p);
  return measure_network(p);
}

/* The program borrows the graph that planning made: it goes first. */
static void forget_program(cs_model_profiling *p) {
  cs_program_destroy(p->program);
  free(p->tasks);
  p->program = NULL;
  p->tasks = NULL;
}

static cs_status measure_times(cs_model_profiling *p, const cs_session_options *options) {
  int n;
  const char *const *names = cs_policy_names(&n);
  if (options->policy && strcmp(options->policy, "all") != 0) {
    return measure_policy(p, options, options->policy);
  }
  for (int i = 0; i < n; i++) {
    forget_program(p);
    CS_RETURN_IF_ERROR(measure_policy(p, options, names[i]));
  }
  return CS_OK;
}

/* ---- All steps ---- */

static cs_status read_state(const cs_model_profiling *p, cs_device_state *out, bool *known) {
  cs_backend *backend = p->session->device->backend;
  *known = backend->vtable->state != NULL;
  return *known ? backend->vtable->state(backend, out) : CS_OK;
}

/* Times come first, of single operations and of sets; nothing is timed once counters were on. */
static cs_status run_steps(cs_model_profiling *p, const cs_session_options *options) {
  cs_device *device = p->session->device;
  CS_RETURN_IF_ERROR(read_state(p, &p->before, &p->state_known));
  CS_RETURN_IF_ERROR(measure_times(p, options));
  p->measure.refresh = p->session->settings.options.refresh;
  CS_RETURN_IF_ERROR(
      cs_profile_set_device(device->profile, device->backend->vtable->info(device->backend)));
  cs_profiling steps = cs_model_steps(p, p->program, p->tasks);
  CS_RETURN_IF_ERROR(cs_profiling_kernels(&steps, false, &p->kernels));
  if (p->options.corun) CS_RETURN_IF_ERROR(cs_profiling_coruns(&steps, &p->coruns));
  CS_RETURN_IF_ERROR(read_state(p, &p->after, &p->state_known));
  if (!p->options.counters) return CS_OK;
  CS_RETURN_IF_ERROR(cs_profiling_kernels(&steps, true, &p->kernels));
  return p->options.corun ? cs_profiling_corun_counters(&steps, &p->coruns) : CS_OK;
}

static cs_status read_profile_options(const cs_profile_options *from, cs_profile_options *out) {
  cs_profile_options_init(out);
  if (!from) return CS_OK;
  if (from->struct_size < offsetof(cs_profile_options, nodes)) {
    return cs_error(CS_CODE_USAGE,
                    "profile options: struct_size %zu, wanted at least %zu (call "
                    "cs_profile_options_init first)",
                    from->struct_size, offsetof(cs_profile_options, nodes));
  }
  memcpy(out, from, from->struct_size < sizeof *out ? from->struct_size : sizeof *out);
  out->struct_size = sizeof *out;
  return CS_OK;
}

cs_status cs_profile_model(cs_device *device, const cs_graph *graph,
                           const cs_session_options *session_options,
                           const cs_profile_options *options, char **report_json) {
  cs_status st = CS_OK;
  cs_session session = {.device = device, .source = graph};
  cs_model_profiling p = {.session = &session};
  *report_json = NULL;
  CS_RETURN_IF_ERROR(cs_device_must_compute(device, "profile"));
  CS_RETURN_IF_ERROR(read_profile_options(options, &p.options));
  p.reported = json_object();
  if (!p.reported) return cs_no_memory("signatures", 0);
  CS_TRY(st, run_steps(&p, session_options), done);
  st = cs_model_report(&p, report_json);
done:
  json_decref(p.reported);
  forget_program(&p);
  cs_planned_free(&session.planned);
  cs_settings_free(&session.settings);
  return st;
}
