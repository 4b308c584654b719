/* What a search leaves in the profile, and what it finds there of earlier ones. */
#include <inttypes.h>
#include <stdlib.h>

#include "runtime/search_state.h"

/* ---- Leaving ---- */

cs_status cs_search_record(cs_search *s, cs_bench_slot slot, const double *samples, int n) {
  cs_status st = CS_OK;
  cs_measurement measured;
  char *id = NULL;
  cs_configuration held = {0};
  CS_RETURN_IF_ERROR(cs_measurement_of(samples, n, 1, &measured));
  CS_TRY(st, cs_bench_configuration(s->bench, slot, &held), done);
  CS_TRY(st, cs_configuration_text(&held, s->input->choices, &id), done);
  const cs_record *known = cs_op_profile_record(cs_profile_find(s->profile, s->signature), id);
  if (known && n < CS_SCHEDULE_CONFIRMED && known->measured.samples >= CS_SCHEDULE_CONFIRMED) {
    goto done;
  }
  cs_candidate candidate = {.id = id,
                            .family = (char *)(uintptr_t) "schedule",
                            .workspace_bytes = cs_bench_workspace(s->bench, slot)};
  st = cs_profile_add(s->profile, s->signature, &candidate, &measured);
done:
  cs_configuration_free(&held);
  free(id);
  return st;
}

/* ---- Finding ---- */

cs_status cs_search_is_known(const cs_search *s, const cs_configuration *configuration, bool *out) {
  char *id = NULL;
  CS_RETURN_IF_ERROR(cs_configuration_text(configuration, s->input->choices, &id));
  *out = cs_op_profile_record(cs_profile_find(s->profile, s->signature), id) != NULL;
  free(id);
  return CS_OK;
}

/* The fastest records, confirmed or not, that are configurations of this input: most at most. */
static cs_status find_earlier(const cs_search *s, const char *signature, bool confirmed, int most,
                              cs_configuration *out, int *n) {
  const cs_op_profile *known = cs_profile_find(s->profile, signature);
  int first = *n;
  for (int r = 0; known && r < known->n_records && *n < first + most; r++) {
    const cs_measurement *measured = &known->records[r].measured;
    bool valid = false;
    if (measured->rejected || confirmed != (measured->samples >= CS_SCHEDULE_CONFIRMED)) continue;
    CS_RETURN_IF_ERROR(
        cs_configuration_parse(known->records[r].candidate.id, s->input, &out[*n], &valid));
    *n += valid;
  }
  return CS_OK;
}

cs_status cs_search_earlier(const cs_search *s, cs_configuration out[CS_SEARCH_EARLIER], int *n,
                            bool *confirmed) {
  *n = 0;
  CS_RETURN_IF_ERROR(find_earlier(s, s->signature, true, 1, out, n));
  *confirmed = *n > 0;
  return find_earlier(s, s->signature, false, CS_SEARCH_EARLIER - 1, out, n);
}

cs_status cs_search_of_latency(const cs_search *s, cs_configuration *out) {
  char *signature = NULL;
  int n = 0;
  *out = (cs_configuration){0};
  CS_RETURN_IF_ERROR(
      cs_program_signature(s->input->program, !s->session->settings.options.no_graph, &signature));
  cs_status st = find_earlier(s, signature, true, 1, out, &n);
  free(signature);
  return st;
}

cs_status cs_search_rival(const cs_search *s, double us, int skipped, cs_configuration *out) {
  const cs_op_profile *known = cs_profile_find(s->profile, s->signature);
  *out = (cs_configuration){0};
  for (int r = 0; known && r < known->n_records; r++) {
    const cs_measurement *measured = &known->records[r].measured;
    bool valid = false;
    if (measured->rejected || measured->samples < CS_SCHEDULE_CONFIRMED) continue;
    if (measured->cold_us >= us) return CS_OK; /* the fastest come first */
    CS_RETURN_IF_ERROR(
        cs_configuration_parse(known->records[r].candidate.id, s->input, out, &valid));
    if (!valid) continue;
    if (!cs_configuration_equal(out, &s->best) && skipped-- == 0) return CS_OK;
    cs_configuration_free(out);
  }
  return CS_OK;
}

/* ---- Completion ---- */

/* Of what may be chosen, whatever the order. */
static uint64_t hash_choices(const cs_policy_input *input) {
  uint64_t sum = 0;
  for (int t = 0; t < input->program->n_tasks; t++) {
    for (int i = 0; i < input->choices[t].n; i++) {
      uint64_t hash = cs_hash_bytes(CS_HASH_SEED, &t, sizeof t);
      sum += cs_hash_string(hash, input->choices[t].choices[i].candidate->id);
    }
  }
  return sum;
}

cs_status cs_search_name(const cs_session *session, const cs_policy_input *input,
                         const char *signature, char **out) {
  const cs_session_options *options = &session->settings.options;
  if (options->n_pins == 0 && options->n_bans == 0 && options->n_allows == 0 &&
      !options->deterministic && input->memory_limit == 0 && !options->partition) {
    return cs_strdup_to(signature, out);
  }
  cs_strbuf text = {0};
  cs_strbuf_printf(&text, "%s of %016" PRIx64 " within %" PRId64, signature, hash_choices(input),
                   input->memory_limit);
  if (options->partition) cs_strbuf_printf(&text, " parts %s", options->partition);
  return cs_strbuf_take(&text, out);
}
