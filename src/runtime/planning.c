#include "runtime/planning.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/progress.h"
#include "profiler/partition.h"
#include "profiler/profiling.h"
#include "profiler/profiling_in_flight.h"
#include "runtime/least_memory.h"
#include "runtime/micro_batches.h"
#include "runtime/passes.h"
#include "runtime/search.h"
#include "runtime/search_ios.h"

void cs_planned_free(cs_planned *planned) {
  if (planned->program) cs_choices_free(planned->choices, planned->program->n_tasks);
  cs_plan_destroy(planned->plan);
  cs_program_destroy(planned->program);
  cs_division_destroy(planned->division);
  cs_graph_destroy(planned->graph);
  cs_graph_destroy(planned->bound);
  memset(planned, 0, sizeof *planned);
}

static int streams_of(const cs_session *session, const cs_device_info *info) {
  if (strcmp(session->settings.policy, cs_policy_sequential.name) == 0) return 1;
  if (session->planned.one_stream) return 1;
  int wanted = session->settings.options.max_streams;
  if (wanted <= 0) wanted = info->default_streams;
  return wanted < info->max_streams ? wanted : info->max_streams;
}

/* The program and plan of a plan file. */
static cs_status load_plan(cs_session *session, const cs_device_info *info) {
  cs_planned *planned = &session->planned;
  const char *path = session->settings.plan_path;
  char *text = NULL;
  size_t length;
  CS_RETURN_IF_ERROR(cs_file_read(path, CS_PLAN_FILE_BYTES, &text, &length));
  cs_status st = cs_plan_from_json(text, length, path, planned->graph, &planned->plan);
  free(text);
  if (st == CS_OK) {
    st = cs_annotate(cs_plan_check_identity(planned->plan, planned->graph_hash,
                                            session->settings.options.precision, info->identity),
                     "%s: ", path);
  }
  if (st == CS_OK && planned->plan->n_parts > 0) {
    st = cs_annotate(cs_parts_check(info, planned->plan->parts, planned->plan->n_parts),
                     "%s: $.split.parts: ", path);
  }
  if (st == CS_OK) {
    st = cs_program_lower_divided(planned->graph, session->settings.options.precision,
                                  planned->plan->layouts, planned->plan->division,
                                  &planned->program);
  }
  if (st == CS_OK) {
    st = cs_plan_check(planned->plan, planned->program, session->settings.options.workspace_limit,
                       session->settings.options.memory_limit);
  }
  if (cs_status_code(st) == CS_CODE_INTERNAL) { /* what the file says is wrong, not what we made */
    cs_status bad = cs_error(CS_CODE_BAD_INPUT, "%s: %s", path, cs_status_message(st));
    cs_status_free(st);
    st = bad;
  }
  return st;
}

/* The model that timelines are predicted by; NULL where the device has no SMs. */
static cs_status open_model(const cs_device_info *info, cs_sm_model **out) {
  *out = NULL;
  return info->unit.threads > 0 ? cs_sm_model_create(info, NULL, out) : CS_OK;
}

int cs_session_in_flight(const cs_session *session) {
  return session->settings.options.in_flight > 1 ? session->settings.options.in_flight : 1;
}

cs_status cs_session_schedules_signature(const cs_session *session, const cs_program *program,
                                         char **out) {
  char *of_program = NULL;
  int in_flight = cs_session_in_flight(session);
  CS_RETURN_IF_ERROR(
      cs_program_signature(program, !session->settings.options.no_graph, &of_program));
  if (in_flight == 1) {
    *out = of_program;
    return CS_OK;
  }
  cs_status st = cs_in_flight_signature(of_program, in_flight, out);
  free(of_program);
  return st;
}

/* Each request in flight has an arena of its own. 0: no limit. */
static int64_t memory_limit_of(const cs_session *session) {
  int64_t limit = session->settings.options.memory_limit;
  return limit > 0 ? cs_max_i64(1, limit / cs_session_in_flight(session)) : 0;
}

cs_policy_input cs_planning_input(const cs_session *session) {
  const cs_session_options *options = &session->settings.options;
  const cs_device_info *info = session->device->backend->vtable->info(session->device->backend);
  cs_policy_input input = {.program = session->planned.program,
                           .choices = session->planned.choices,
                           .max_streams = streams_of(session, info),
                           .workspace_limit = options->workspace_limit,
                           .memory_limit = memory_limit_of(session),
                           .seed = options->seed,
                           .device_identity = info->identity,
                           .device = info,
                           .graph_hash = session->planned.graph_hash,
                           .n_splits = session->n_splits,
                           /* Without a graph a stream has a priority, and no launch. */
                           .priorities = info->priorities && !options->no_graph,
                           .hints = info->hints && !options->no_graph,
                           .search_steps = options->search_steps};
  memcpy(input.splits, session->splits, sizeof input.splits);
  return input;
}

/* What was measured of stages counts for `ios`, also as one of those that `coselect` begins with.
 */
static cs_status use_known_stages(const cs_session *session, cs_stage_report *report,
                                  cs_policy_input *input) {
  cs_stage_costs *costs = NULL;
  CS_RETURN_IF_ERROR(cs_stage_costs_create(input, session->device->profile,
                                           !session->settings.options.no_graph, report, &costs));
  input->stage_cost = cs_stage_costs_price;
  input->stage_user = costs;
  return CS_OK;
}

/* What was measured of whole schedules of the input's program, as the profile has it now. */
static cs_status find_schedules(const cs_session *session, cs_policy_input *input) {
  char *signature = NULL;
  CS_RETURN_IF_ERROR(cs_session_schedules_signature(session, input->program, &signature));
  input->schedules = cs_profile_find(session->device->profile, signature);
  free(signature);
  return CS_OK;
}

cs_status cs_planning_input_open(const cs_session *session, cs_policy_input *out) {
  *out = cs_planning_input(session);
  CS_RETURN_IF_ERROR(find_schedules(session, out));
  CS_RETURN_IF_ERROR(use_known_stages(session, NULL, out));
  cs_status st = open_model(out->device, &out->model);
  if (st != CS_OK) cs_planning_input_close(out);
  return st;
}

void cs_planning_input_close(cs_policy_input *input) {
  cs_sm_model_destroy(input->model);
  cs_stage_costs_destroy(input->stage_user);
  input->model = NULL;
  input->stage_cost = NULL;
  input->stage_user = NULL;
}

/* What is measured of whole schedules counts for the policy as it is in the profile. */
static cs_status search_and_plan(cs_session *session, cs_policy_input *input) {
  if (session->shared && !cs_device_is_simulated(session->device)) {
    CS_RETURN_IF_ERROR(cs_search_schedules(session, input));
  }
  CS_RETURN_IF_ERROR(find_schedules(session, input));
  cs_progress_step("planning", NULL, 0, 0, "%s", session->settings.policy);
  return cs_plan_make(&cs_policy_coselect, input, &session->planned.plan);
}

static cs_status price_and_plan(cs_session *session, const cs_policy_input *input) {
  cs_progress_step("planning", NULL, 0, 0, "%s", session->settings.policy);
  CS_RETURN_IF_ERROR(cs_plan_make(&cs_policy_ios, input, &session->planned.plan));
  const cs_stage_report *stages = &session->stages;
  /* News where something was measured, or where there is a device that it could be on. */
  bool news =
      stages->measured > 0 || (stages->estimated > 0 && !cs_device_is_simulated(session->device));
  cs_log(&session->device->logger, news ? CS_LOG_INFO : CS_LOG_DEBUG,
         "ios: of %d stages priced %d were measured (%d now, in %.1f s), %d estimated",
         stages->known + stages->estimated, stages->known, stages->measured, stages->seconds,
         stages->estimated);
  return CS_OK;
}

static cs_status plan_by(cs_session *session, const cs_policy *policy, cs_policy_input *input) {
  bool is_ios = policy == &cs_policy_ios;
  if (is_ios) CS_RETURN_IF_ERROR(cs_search_stages(session, input));
  CS_RETURN_IF_ERROR(use_known_stages(session, is_ios ? &session->stages : NULL, input));
  if (policy == &cs_policy_coselect) return search_and_plan(session, input);
  if (is_ios) CS_RETURN_IF_ERROR(price_and_plan(session, input));
  if (!is_ios) CS_RETURN_IF_ERROR(cs_plan_make(policy, input, &session->planned.plan));
  return cs_plan_begin_early(session, input, session->planned.plan);
}

/* What the SM model knows candidates by; `coselect` and `opara` choose by it. */
static cs_status record_kernels(cs_session *session, const cs_policy *policy, cs_profile *profile,
                                const cs_measure_options *measure) {
  cs_backend *backend = session->device->backend;
  bool wanted = policy == &cs_policy_coselect || policy == &cs_policy_opara;
  if (!wanted || measure->frozen || cs_device_is_simulated(session->device) ||
      backend->vtable->info(backend)->unit.threads == 0) {
    return CS_OK;
  }
  cs_profiling steps = {.profile = profile,
                        .backend = backend,
                        .program = session->planned.program,
                        .options = measure,
                        .logger = &session->device->logger};
  cs_kernels_report report = {0};
  return cs_profiling_kernels(&steps, false, &report);
}

static cs_status make_plan(cs_session *session, const cs_policy *policy, const cs_device_info *info,
                           const cs_measure_options *measure) {
  cs_planned *planned = &session->planned;
  cs_profile *profile;
  cs_near near = {0};
  CS_RETURN_IF_ERROR(cs_device_profile(session->device, session->settings.cache_dir, &profile));
  CS_RETURN_IF_ERROR(cs_choose_program(session, measure, &planned->program));
  CS_RETURN_IF_ERROR(record_kernels(session, policy, profile, measure));
  CS_RETURN_IF_ERROR(cs_choices_of_program(profile, planned->program, &session->settings,
                                           measure->threads, &near, &planned->choices));
  if (!session->settings.options.no_graph) {
    cs_choices_begin_early(session->device->backend, planned->choices, planned->program->n_tasks);
  }
  cs_policy_input input = cs_planning_input(session);
  CS_RETURN_IF_ERROR(open_model(info, &input.model));
  cs_status st = plan_by(session, policy, &input);
  if (st == CS_OK) st = cs_sequential_memory(&input, &planned->sequential);
  cs_planning_input_close(&input);
  if (policy == &cs_policy_coselect && cs_session_in_flight(session) == 1) {
    st = cs_consider_one_stream(session, measure, st);
    if (st == CS_OK) st = cs_consider_micro_batches(session, measure);
  }
  if (st == CS_OK && input.memory_limit > 0) {
    cs_log(&session->device->logger, CS_LOG_INFO,
           "memory limit %lld: %s on %d streams takes %lld bytes, %lld of them workspace",
           (long long)input.memory_limit, policy->name, planned->plan->n_streams,
           (long long)planned->plan->arena_bytes, (long long)planned->plan->workspace_peak);
  }
  return st;
}

/* Values to be kept become outputs of the bound graph, behind its own. */
static cs_status add_kept_outputs(const cs_settings *settings, cs_graph *graph) {
  for (int k = 0; k < settings->options.n_keep; k++) {
    int value = cs_graph_find_value(graph, settings->keep[k]);
    if (value < 0) {
      return cs_error(CS_CODE_NOT_FOUND, "graph %s has no value \"%s\" to keep", graph->name,
                      settings->keep[k]);
    }
    if (graph->values[value].producer < 0 || cs_graph_is_output(graph, value)) continue;
    int *outputs = realloc(graph->outputs, ((size_t)graph->n_outputs + 1) * sizeof *outputs);
    if (!outputs) return cs_no_memory("outputs", (size_t)graph->n_outputs * sizeof *outputs);
    graph->outputs = outputs;
    graph->outputs[graph->n_outputs++] = value;
  }
  return CS_OK;
}

static cs_status find_policy(const char *name, const cs_policy **out) {
  *out = cs_policy_find(name);
  if (*out) return CS_OK;
  cs_strbuf names = {0};
  int count;
  const cs_policy *const *all = cs_policy_all(&count);
  for (int i = 0; i < count; i++) {
    cs_strbuf_printf(&names, "%s%s", i == 0 ? "" : i == count - 1 ? " or " : ", ", all[i]->name);
  }
  cs_status st = cs_error(CS_CODE_USAGE, "unknown policy \"%s\": wanted %s", name,
                          names.data ? names.data : "");
  cs_strbuf_free(&names);
  return st;
}

static cs_status check_in_flight(const cs_session *session) {
  const cs_backend_vtable *vtable = session->device->backend->vtable;
  int in_flight = cs_session_in_flight(session);
  if (in_flight == 1 || vtable->requests_create) return CS_OK;
  return cs_error(CS_CODE_USAGE,
                  "in_flight %d: this device (%s) has no requests in flight to plan for", in_flight,
                  vtable->name);
}

int cs_session_threads(const cs_session *session) {
  const cs_device_info *info = session->device->backend->vtable->info(session->device->backend);
  return cs_threads_per_stream(info, streams_of(session, info));
}

cs_status cs_planning_begin(cs_session *session, cs_measure_options *measure) {
  const cs_session_options *options = &session->settings.options;
  CS_RETURN_IF_ERROR(check_in_flight(session));
  if (options->refresh) CS_RETURN_IF_ERROR(cs_device_must_compute(session->device, "refresh"));
  cs_planned *planned = &session->planned;
  const cs_device_info *info = session->device->backend->vtable->info(session->device->backend);
  CS_RETURN_IF_ERROR(
      cs_partition_splits(options->partition, info, session->splits, &session->n_splits));
  CS_RETURN_IF_ERROR(cs_graph_bind(session->source, options->batch, &planned->bound));
  CS_RETURN_IF_ERROR(add_kept_outputs(&session->settings, planned->bound));
  planned->graph_hash = cs_graph_hash(planned->bound);
  double started = cs_now_seconds();
  CS_RETURN_IF_ERROR(cs_passes_for_backend(session->device->backend, planned->bound,
                                           options->precision, &planned->passes, &planned->graph));
  session->timings.passes = cs_now_seconds() - started;
  CS_RETURN_IF_ERROR(cs_divide_as_asked(session));
  *measure = (cs_measure_options){
      .workspace_limit = options->workspace_limit,
      .deterministic = options->deterministic,
      .frozen = options->frozen,
      .refresh = options->refresh,
      .threads = cs_session_threads(session),
      .cancelled = options->cancelled,
      .user = options->cancelled_user,
      .allows = options->allows,
      .n_allows = options->n_allows,
  };
  return CS_OK;
}

/* Before anything is measured. Where nothing will be, planning finds out how much is needed. */
static cs_status check_memory(const cs_session *session, const cs_policy *policy) {
  const cs_session_options *options = &session->settings.options;
  if (session->settings.plan_path || options->frozen || cs_device_is_simulated(session->device)) {
    return CS_OK;
  }
  return cs_annotate(
      cs_check_least_memory(session->planned.graph, options->precision, memory_limit_of(session)),
      "policy %s: ", policy->name);
}

cs_status cs_planning_run(cs_session *session) {
  cs_planned *planned = &session->planned;
  const cs_device_info *info = session->device->backend->vtable->info(session->device->backend);
  const cs_policy *policy;
  cs_measure_options measure;
  CS_RETURN_IF_ERROR(find_policy(session->settings.policy, &policy));
  double started = cs_now_seconds();
  CS_RETURN_IF_ERROR(cs_planning_begin(session, &measure));
  CS_RETURN_IF_ERROR(check_memory(session, policy));
  CS_RETURN_IF_ERROR(session->settings.plan_path ? load_plan(session, info)
                                                 : make_plan(session, policy, info, &measure));
  if (planned->choices) CS_RETURN_IF_ERROR(cs_compute_bounds(session, info, &measure));
  const cs_timings *parts = &session->timings;
  session->timings.plan = cs_now_seconds() - started - parts->passes - parts->profile;
  return CS_OK;
}
