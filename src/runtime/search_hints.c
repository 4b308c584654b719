/* Hints of the launch order in a search: for the whole schedule, or none. */
#include "runtime/search_state.h"

/* Hints are for kernels that do not begin early, on streams beside others. */
static bool has_use(const cs_search *s) {
  bool any = false;
  for (int p = 0; p < s->best.n; p++) {
    any = any || !cs_configuration_can_begin_early(&s->best, s->input->choices, p);
  }
  return any && cs_configuration_streams(&s->best) > 1;
}

cs_status cs_search_hints(cs_search *s) {
  cs_configuration next = {0};
  if (!s->input->hints || s->best.n_parts > 0 || cs_search_is_over(s)) return CS_OK;
  if (!s->best.hints && !has_use(s)) return CS_OK;
  CS_RETURN_IF_ERROR(cs_configuration_copy(&s->best, &next));
  next.hints = !next.hints;
  cs_status st = cs_search_try(s, &next);
  cs_configuration_free(&next);
  return st;
}
