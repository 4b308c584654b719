#include "runtime/timed_programs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/progress.h"
#include "runtime/planning.h"
#include "scheduler/configuration.h"

/* ---- Alternatives ---- */

void cs_alternative_free(cs_alternative *a) {
  if (a->program) cs_choices_free(a->choices, a->program->n_tasks);
  cs_plan_destroy(a->plan);
  cs_program_destroy(a->program);
  *a = (cs_alternative){0};
}

cs_status cs_alternative_plan(const cs_policy *policy, const cs_policy_input *input,
                              cs_alternative *a) {
  CS_RETURN_IF_ERROR(cs_plan_make(policy, input, &a->plan));
  free(a->plan->policy);
  a->plan->policy = NULL;
  CS_RETURN_IF_ERROR(cs_strdup_to(cs_policy_coselect.name, &a->plan->policy));
  return cs_sequential_memory(input, &a->sequential);
}

void cs_alternative_take(cs_session *session, cs_alternative *a) {
  cs_planned *planned = &session->planned;
  cs_alternative old = {planned->program, planned->choices, planned->plan, planned->sequential};
  planned->program = a->program;
  planned->choices = a->choices;
  planned->plan = a->plan;
  planned->sequential = a->sequential;
  *a = old;
}

/* ---- Timed in turn ---- */

bool cs_may_time_programs(const cs_session *session) {
  const cs_session_options *options = &session->settings.options;
  return session->shared && !cs_device_is_simulated(session->device) && !options->frozen &&
         options->search_seconds != 0;
}

/* ---- Names ---- */

static cs_status hash_plan(const cs_timed_program *of, uint64_t *hash) {
  cs_status st = CS_OK;
  cs_configuration configuration = {0};
  char *text = NULL, *signature = NULL;
  CS_TRY(st, cs_program_signature(of->program, true, &signature), done);
  CS_TRY(st, cs_configuration_of_plan(of->plan, of->choices, &configuration), done);
  CS_TRY(st, cs_configuration_text(&configuration, of->choices, &text), done);
  *hash = cs_hash_string(cs_hash_string(*hash, signature), text);
done:
  cs_configuration_free(&configuration);
  free(signature);
  free(text);
  return st;
}

cs_status cs_timed_programs_name(const cs_session *session, const cs_timed_program programs[2],
                                 const char *const names[2], const char *beside,
                                 cs_timed_pair *out) {
  cs_status st = CS_OK;
  cs_strbuf text = {0};
  char *signature = NULL;
  uint64_t hash = CS_HASH_SEED;
  CS_RETURN_IF_ERROR(
      cs_program_signature(programs[0].program, !session->settings.options.no_graph, &signature));
  for (int i = 0; i < 2; i++) CS_TRY(st, hash_plan(&programs[i], &hash), done);
  for (int i = 0; i < 2; i++) {
    snprintf(out->ids[i], sizeof out->ids[i], "%s %016" PRIx64, names[i], hash);
  }
  cs_strbuf_printf(&text, "%s beside %s", signature, beside);
  st = cs_strbuf_take(&text, &out->signature);
done:
  free(signature);
  return st;
}

/* ---- Timing ---- */

static cs_status realise(cs_session *session, const cs_timed_program *of, cs_realised *out) {
  const cs_program *program = of->program;
  CS_RETURN_IF_ERROR(cs_realise(session->device->backend, program, of->plan,
                                session->shared->params, session->settings.options.no_graph, out));
  for (int i = 0; i < program->graph->n_inputs; i++) {
    CS_RETURN_IF_ERROR(
        cs_tensor_write(out, program, of->plan, program->input_tensors[i], session->inputs[i]));
  }
  return CS_OK;
}

/* A discarded run before each sample: going from one to the other wakes other threads. */
static cs_status sample(const cs_session *session, const cs_realised realised[2], const char *what,
                        int least, int most, double seconds, cs_timed_samples *out) {
  const cs_backend_vtable *vtable = session->device->backend->vtable;
  double begun = cs_now_seconds(), discarded;
  out->n = 0;
  while (out->n < most && (out->n < least || cs_now_seconds() - begun < seconds)) {
    CS_RETURN_IF_ERROR(cs_session_check_cancelled(session, what));
    cs_progress_step(what, "samples", out->n, most, "%s", session->settings.policy);
    for (int s = 0; s < 2; s++) {
      CS_RETURN_IF_ERROR(vtable->schedule_latency(realised[s].schedule, 1, &discarded));
      CS_RETURN_IF_ERROR(vtable->schedule_latency(realised[s].schedule, 1, &out->us[s][out->n]));
    }
    out->n++;
  }
  return CS_OK;
}

cs_status cs_timed_programs_sample(cs_session *session, const cs_timed_program programs[2],
                                   const char *what, int least, int most, double seconds,
                                   cs_timed_samples *out) {
  cs_status st = CS_OK;
  cs_realised realised[2] = {{0}};
  CS_TRY(st, cs_session_generate_inputs(session), done);
  for (int i = 0; i < 2; i++) CS_TRY(st, realise(session, &programs[i], &realised[i]), done);
  st = sample(session, realised, what, least, most, seconds, out);
done:
  for (int i = 0; i < 2; i++) cs_realised_free(&realised[i]);
  return st;
}
