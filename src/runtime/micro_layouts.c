#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/micro_ways.h"
#include "runtime/search.h"
#include "runtime/timed_programs.h"

#define LAYOUT_WITHIN 1.5 /* times the cheapest layouts, that others are looked at */

/* Parts are measured where that was not done before. */
static cs_status know_parts(cs_session *session, cs_ways *u) {
  cs_status st = CS_OK;
  char *signature = NULL, *name = NULL;
  int since = 0;
  cs_strbuf text = {0};
  cs_profile *profile = session->device->profile;
  cs_completion wanted = {.workspace_limit = u->measure.workspace_limit,
                          .threads = u->measure.threads};
  cs_micro_measured measured = {0};
  CS_RETURN_IF_ERROR(cs_program_signature(u->program, true, &signature));
  cs_strbuf_printf(&text, "%s: parts under %lld bytes%s", signature,
                   (long long)u->measure.workspace_limit,
                   session->settings.options.deterministic ? ", deterministic" : "");
  free(signature);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&text, &name));
  CS_TRY(st, cs_program_candidates_since(profile, u->program, &since), done);
  bool known = cs_op_profile_covers_since(cs_profile_find(profile, name), &wanted, since);
  if (cs_may_time_programs(session) && (!known || session->settings.options.refresh)) {
    cs_undivided of = {u->program, u->choices, &u->measure};
    CS_TRY(st, cs_micro_measure(session, &of, &measured), done);
    session->micro.operations += measured.operations;
    if (measured.complete) CS_TRY(st, cs_profile_mark_completion(profile, name, &wanted), done);
  }
  st = cs_ways_find(session, u);
done:
  free(name);
  return st;
}

/* The program in these layouts takes the place of `best` where its division is expected to take
 * less. `most_us`: what it may take undivided, to be looked at. */
static cs_status try_layouts(cs_session *session, const cs_layout *layouts,
                             const cs_measure_options *measure, double most_us, cs_ways *best) {
  cs_ways u = {0};
  cs_status st = CS_OK;
  CS_TRY(st, cs_ways_open(session, layouts, measure, &u), done);
  if (cs_program_cost(u.program, u.choices) > most_us) goto done;
  CS_TRY(st, know_parts(session, &u), done);
  CS_TRY(st, cs_ways_solve(session, &u, 1, &u.in_turn), done);
  cs_log(&session->device->logger, CS_LOG_DEBUG,
         "micro-batches: layouts in which the operations take %.1f us: %.1f us expected",
         u.in_turn.whole_us, u.in_turn.us);
  if (!best->program || u.in_turn.us < best->in_turn.us) {
    cs_ways worse = *best;
    *best = u;
    u = worse;
  }
done:
  cs_ways_close(&u);
  return st;
}

cs_status cs_micro_pass_over(cs_status st) {
  cs_code code = cs_status_code(st);
  if (code != CS_CODE_NOT_FOUND && code != CS_CODE_BAD_INPUT) return st;
  cs_status_free(st);
  return CS_OK;
}

cs_status cs_ways_in_best_layouts(cs_session *session, const cs_measure_options *measure,
                                  cs_ways *out) {
  const cs_graph *graph = session->planned.graph;
  cs_backend *backend = session->device->backend;
  cs_layout available[CS_MAX_DEVICE_LAYOUTS];
  int n = backend->vtable->layouts(backend, session->settings.options.precision, available);
  const cs_layout *planned = session->planned.program->layouts;
  CS_RETURN_IF_ERROR(try_layouts(session, planned, measure, INFINITY, out));
  double most_us = LAYOUT_WITHIN * cs_program_cost(out->program, out->choices);
  const size_t bytes = (size_t)graph->n_values * sizeof(cs_layout);
  cs_layout *layouts = cs_calloc(1, bytes);
  if (!layouts) return cs_no_memory("layouts", bytes);
  cs_status st = CS_OK;
  for (int a = 0; a < n && st == CS_OK; a++) {
    cs_graph_uniform_layouts(graph, available[a], layouts);
    if (memcmp(layouts, planned, bytes) == 0) continue; /* looked at already */
    st = cs_micro_pass_over(try_layouts(session, layouts, measure, most_us, out));
  }
  free(layouts);
  return st;
}
