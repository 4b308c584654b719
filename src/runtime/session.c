#include "runtime/session.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/planning.h"

cs_status cs_session_check_cancelled(const cs_session *session, const char *what) {
  const cs_session_options *options = &session->settings.options;
  if (!options->cancelled || !options->cancelled(options->cancelled_user)) return CS_OK;
  return cs_error(CS_CODE_CANCELLED, "%s was interrupted", what);
}

/* ---- Parameters and inputs ---- */

static cs_status load_params(cs_session *session) {
  double started = cs_now_seconds();
  session->shared = cs_calloc(1, sizeof *session->shared);
  if (!session->shared) return cs_no_memory("parameters", sizeof *session->shared);
  session->shared->references = 1;
  const char *path = session->settings.weights_path;
  if (path) CS_RETURN_IF_ERROR(cs_device_must_compute(session->device, path));
  if (cs_device_is_simulated(session->device)) return CS_OK;
  if (!path) path = session->source->weights_path;
  int n_extra = 0;
  cs_params **params = &session->shared->params;
  cs_status st;
  if (path) {
    st = cs_params_load(session->source, path, &n_extra, params);
  } else if (session->source->param_source) {
    st = cs_params_from_source(session->source, params);
  } else {
    st = cs_params_generate(session->source, session->settings.options.seed, params);
  }
  if (n_extra > 0) {
    cs_log(&session->device->logger, CS_LOG_INFO, "%s: %d tensors that the graph does not use",
           path, n_extra);
  }
  session->timings.load = cs_now_seconds() - started;
  cs_log(&session->device->logger, CS_LOG_DEBUG, "parameters ready");
  return st;
}

static void release_params(cs_shared_params *shared) {
  if (!shared || --shared->references > 0) return;
  cs_params_destroy(shared->params);
  cs_known_outputs_clear(&shared->known);
  free(shared);
}

static void free_inputs(cs_session *session) {
  if (!session->inputs) return;
  for (int i = 0; i < session->source->n_inputs; i++) free(session->inputs[i]);
  free(session->inputs);
  session->inputs = NULL;
}

/* Standard normal, from the seed and the input's name. */
cs_status cs_session_generate_inputs(cs_session *session) {
  const cs_graph *graph = session->planned.bound;
  if (session->inputs) return CS_OK;
  session->inputs = cs_calloc((size_t)graph->n_inputs, sizeof *session->inputs);
  if (!session->inputs) return cs_no_memory("inputs", (size_t)graph->n_inputs);
  for (int i = 0; i < graph->n_inputs; i++) {
    const cs_value *value = &graph->values[graph->inputs[i]];
    int64_t count;
    CS_RETURN_IF_ERROR(cs_shape_elements(&value->shape, &count));
    session->inputs[i] = cs_calloc((size_t)count, sizeof(float));
    if (!session->inputs[i]) return cs_no_memory("an input", (size_t)count * sizeof(float));
    cs_input_generate(value->name, session->settings.options.seed, session->inputs[i], count);
  }
  return CS_OK;
}

/* ---- Create, fork, destroy ---- */

static cs_status plan_once(cs_session *session) {
  CS_RETURN_IF_ERROR(cs_planning_run(session));
  cs_log(&session->device->logger, CS_LOG_DEBUG, "planned");
  double started = cs_now_seconds();
  CS_RETURN_IF_ERROR(cs_session_realise(session));
  session->timings.upload = session->realised.uploading;
  session->timings.prepare = cs_now_seconds() - started - session->timings.upload.all;
  return CS_OK;
}

/* As many times as there are programs, one a layout or so, to meet a candidate that is gone in. */
#define MOST_PLANS (2 * (CS_MAX_DEVICE_LAYOUTS + 1))

/* What is recorded may be of another program: candidates that turn out not to be there are measured
 * anew, and planned without. The time that took counts as profiling. */
static cs_status plan_with_what_is_there(cs_session *session) {
  double started = cs_now_seconds(), lost = 0;
  for (int plans = 1;; plans++) {
    int before = session->remeasured.operations;
    cs_status st = plan_once(session);
    if (st != CS_OK && plans < MOST_PLANS) {
      st = cs_remeasure_gone(session, st, session->planned.program, session->planned.choices,
                             cs_session_threads(session));
    }
    if (st == CS_OK || session->remeasured.operations == before || plans == MOST_PLANS) {
      session->timings.profile += lost;
      cs_measure_report_add(&session->remeasured, &session->planned.measured);
      return st;
    }
    cs_status_free(st);
    cs_planned_free(&session->planned);
    cs_search_report_free(&session->search);
    session->stages = (cs_stage_report){0};
    session->micro = (cs_micro_report){0};
    session->timings.profile = 0;
    lost = cs_now_seconds() - started;
  }
}

/* `keep` names: plans do not let other buffers overwrite these. Kept values become graph outputs.
 */
static cs_status plan_and_realise(cs_session *session) {
  CS_RETURN_IF_ERROR(plan_with_what_is_there(session));
  if (cs_device_is_simulated(session->device)) return CS_OK;
  CS_RETURN_IF_ERROR(cs_session_generate_inputs(session));
  return cs_session_upload_inputs(session, &session->realised, session->planned.plan);
}

static cs_status create_session(cs_device *device, const cs_graph *graph,
                                const cs_session_options *options, cs_shared_params *shared,
                                float *const *inputs, cs_session **out);

cs_status cs_session_create(cs_device *device, const cs_graph *graph,
                            const cs_session_options *options, cs_session **out) {
  return create_session(device, graph, options, NULL, NULL, out);
}

cs_status cs_session_fork(const cs_session *session, const char *policy, cs_session **out) {
  *out = NULL;
  CS_RETURN_IF_ERROR(cs_session_fetch_inputs(session));
  cs_session_options options = session->settings.options;
  options.policy = policy;
  options.plan_path = NULL;
  options.refresh = false;
  /* What others are compared with is undivided. */
  if (strcmp(policy, cs_policy_sequential.name) == 0) options.micro_batches = 1;
  return create_session(session->device, session->source, &options, session->shared,
                        session->inputs, out);
}

static cs_status copy_inputs(cs_session *session, float *const *inputs) {
  const cs_graph *graph = session->planned.bound;
  session->inputs = cs_calloc((size_t)graph->n_inputs, sizeof *session->inputs);
  if (!session->inputs) return cs_no_memory("inputs", (size_t)graph->n_inputs);
  for (int i = 0; i < graph->n_inputs; i++) {
    int64_t count;
    CS_RETURN_IF_ERROR(cs_shape_elements(&graph->values[graph->inputs[i]].shape, &count));
    session->inputs[i] = cs_calloc((size_t)count, sizeof(float));
    if (!session->inputs[i]) return cs_no_memory("an input", (size_t)count * sizeof(float));
    memcpy(session->inputs[i], inputs[i], (size_t)count * sizeof(float));
  }
  return CS_OK;
}

static cs_status create_session(cs_device *device, const cs_graph *graph,
                                const cs_session_options *options, cs_shared_params *shared,
                                float *const *inputs, cs_session **out) {
  *out = NULL;
  cs_status st = CS_OK;
  cs_session *session = cs_calloc(1, sizeof *session);
  if (!session) return cs_no_memory("a session", sizeof *session);
  session->device = device;
  session->source = graph;
  CS_TRY(st, cs_settings_copy(options, &session->settings), done);
  if (shared) {
    session->shared = shared;
    shared->references++;
  } else {
    CS_TRY(st, load_params(session), done);
  }
  CS_TRY(st, plan_and_realise(session), done);
  if (inputs) {
    free_inputs(session);
    CS_TRY(st, copy_inputs(session, inputs), done);
    CS_TRY(st, cs_session_upload_inputs(session, &session->realised, session->planned.plan), done);
  }
  *out = session;
  session = NULL;
done:
  cs_session_destroy(session);
  return st;
}

void cs_session_destroy(cs_session *session) {
  if (!session) return;
  cs_realised_free(&session->realised);
  cs_search_report_free(&session->search);
  cs_planned_free(&session->planned);
  free_inputs(session);
  release_params(session->shared);
  cs_settings_free(&session->settings);
  free(session);
}

cs_status cs_session_set_batch(cs_session *session, int64_t batch) {
  if (batch < 1) {
    return cs_error(CS_CODE_BAD_INPUT, "batch %lld: wanted at least 1", (long long)batch);
  }
  cs_session *fresh = NULL;
  cs_session_options options = session->settings.options;
  options.batch = batch;
  options.plan_path = NULL;
  options.refresh = false;
  CS_RETURN_IF_ERROR(
      create_session(session->device, session->source, &options, session->shared, NULL, &fresh));
  cs_session old = *session;
  *session = *fresh;
  *fresh = old;
  cs_session_destroy(fresh);
  return CS_OK;
}
