/* A plan from a file whose candidates are not there any more, as after an update of a library. */
#include <stdlib.h>
#include <string.h>

#include "profiler/identity.h"
#include "runtime/session.h"

static cs_status realise(cs_session *session) {
  return cs_realise(session->device->backend, session->planned.program, session->planned.plan,
                    session->shared->params, session->settings.options.no_graph,
                    &session->realised);
}

static const char *identity_of(const cs_session *session) {
  const cs_backend *backend = session->device->backend;
  return backend->vtable->info(backend)->identity;
}

/* Candidates that grew are the library's doing only where it is another one. */
static bool is_outdated(const cs_session *session) {
  const cs_missing *missing = &session->realised.missing;
  bool other = strcmp(session->planned.plan->device_identity, identity_of(session)) != 0;
  return missing->gone > 0 || (missing->grown > 0 && other);
}

/* Of a library whose version the device's identity does not tell. */
static bool is_of_another_library(const cs_session *session, const char *candidate) {
  cs_backend *backend = session->device->backend;
  if (!backend->vtable->presence) return false;
  cs_presence presence = backend->vtable->presence(backend, candidate);
  return presence == CS_PRESENCE_OTHER_VERSION || presence == CS_PRESENCE_NO_LIBRARY;
}

/* "plan.json: 2 of 9 tasks, the first of them conv1, have a candidate that is not there as planned
 * (ID); the plan is of cuDNN 9.19.0, installed is cuDNN 9.20.0". */
static void tell_missing(const cs_session *session, cs_strbuf *out) {
  const cs_plan *plan = session->planned.plan;
  const cs_missing *missing = &session->realised.missing;
  const cs_plan_task *first = &plan->tasks[missing->first];
  char then[64], now[64];
  int n = missing->gone + missing->grown;
  cs_identity_library(plan->device_identity, then, sizeof then);
  cs_identity_library(identity_of(session), now, sizeof now);
  cs_strbuf_printf(out,
                   "%s: %d of %d tasks, the first of them %s, %s a candidate that is not there "
                   "as planned (%s)",
                   session->settings.plan_path, n, plan->n_tasks,
                   session->planned.program->tasks[first->task].name, n == 1 ? "has" : "have",
                   first->candidate.id);
  if (is_of_another_library(session, first->candidate.id)) {
    cs_strbuf_printf(out, "; it is of a version of its library that is not installed");
  } else if (then[0]) {
    cs_strbuf_printf(out, "; the plan is of %s, installed is %s", then, now);
  }
}

/* The plan's own policy, and no file. */
static cs_status take_policy(cs_settings *settings, const cs_plan *plan) {
  char *policy = NULL;
  CS_RETURN_IF_ERROR(cs_strdup_to(plan->policy, &policy));
  free(settings->policy);
  free(settings->plan_path);
  settings->policy = policy;
  settings->plan_path = NULL;
  settings->options.policy = policy;
  settings->options.plan_path = NULL;
  return CS_OK;
}

static cs_status plan_anew(cs_session *session) {
  cs_strbuf text = {0};
  char *told = NULL;
  tell_missing(session, &text);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&text, &told));
  cs_status st = CS_OK;
  if (session->settings.options.frozen) {
    st = cs_error(CS_CODE_NOT_FOUND, "%s", told);
  } else {
    cs_log(&session->device->logger, CS_LOG_WARNING, "%s; planning anew by %s", told,
           session->planned.plan->policy);
    st = take_policy(&session->settings, session->planned.plan);
  }
  free(told);
  CS_RETURN_IF_ERROR(st);
  cs_planned_free(&session->planned);
  return cs_planning_run(session);
}

/* The same library wants more workspace than the file says: the file is damaged. */
static cs_status damaged(const cs_session *session, cs_status st) {
  if (session->realised.missing.grown == 0) return st;
  cs_status told =
      cs_error(CS_CODE_BAD_INPUT, "%s: %s", session->settings.plan_path, cs_status_message(st));
  cs_status_free(st);
  return told;
}

cs_status cs_session_realise(cs_session *session) {
  cs_status st = realise(session);
  if (st == CS_OK || !session->settings.plan_path) return st;
  if (!is_outdated(session)) return damaged(session, st);
  cs_status_free(st);
  CS_RETURN_IF_ERROR(plan_anew(session));
  return realise(session);
}
