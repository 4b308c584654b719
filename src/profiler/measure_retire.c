/* Candidates that an older program recorded and this one's backend no longer has: plans must not
 * choose them. */
#include <stdlib.h>
#include <string.h>

#include "profiler/measure.h"

static bool is_enumerated(const cs_operation *operation, const char *id) {
  for (int i = 0; i < operation->n_trials; i++) {
    if (strcmp(operation->trials[i].candidate.id, id) == 0) return true;
  }
  return false;
}

static bool offers_family(const cs_operation *operation, const char *family) {
  for (int i = 0; i < operation->n_trials; i++) {
    if (strcmp(operation->trials[i].candidate.family, family) == 0) return true;
  }
  return false;
}

/* A record of another version of its library, or of one that is not installed, may be right where
 * that is. */
static bool may_return(const cs_measuring *m, const cs_operation *operation,
                       const cs_candidate *candidate) {
  const cs_backend_vtable *vtable = m->backend->vtable;
  if (!vtable->presence) return false;
  cs_presence presence = vtable->presence(m->backend, candidate->id);
  return presence == CS_PRESENCE_NO_LIBRARY ||
         (presence == CS_PRESENCE_OTHER_VERSION && offers_family(operation, candidate->family));
}

/* What other numbers of threads had enumerated stays until these are asked for: with nothing in its
 * place their enumeration would count as one that found nothing. */
static bool is_of_other_threads(const cs_measuring *m, const cs_candidate *candidate) {
  int threads = m->options->threads;
  return threads != 0 && candidate->threads != 0 && candidate->threads != threads;
}

/* Copies of what is known, not rejected and not enumerated: adding to the profile moves records. */
static cs_status find_others(const cs_measuring *m, const cs_operation *operation,
                             cs_candidate_list *out) {
  const cs_op_profile *known = cs_profile_find(m->profile, operation->signature);
  for (int i = 0; known && i < known->n_records; i++) {
    const cs_record *record = &known->records[i];
    if (record->measured.rejected || is_of_other_threads(m, &record->candidate) ||
        is_enumerated(operation, record->candidate.id) ||
        may_return(m, operation, &record->candidate)) {
      continue;
    }
    CS_RETURN_IF_ERROR(cs_candidate_list_add_copy(out, &record->candidate));
  }
  return CS_OK;
}

/* Not enumerated, but there: under other limits, for other threads, or of a full enumeration. */
static cs_status still_prepares(const cs_measuring *m, const cs_operation *operation,
                                const cs_candidate *candidate, bool *there) {
  cs_exec *exec = NULL;
  cs_status st = m->backend->vtable->prepare(m->backend, operation->desc, candidate, &exec);
  *there = cs_status_code(st) != CS_CODE_BAD_INPUT;
  if (exec) m->backend->vtable->exec_destroy(exec);
  if (cs_status_code(st) == CS_CODE_NO_MEMORY) return st;
  cs_status_free(st);
  return CS_OK;
}

cs_status cs_retire_candidates(const cs_measuring *m, const cs_operation *operation) {
  cs_candidate_list others = {0};
  char reason[] = "this program has no such candidate any more";
  const cs_measurement gone = {.rejected = true, .reason = reason};
  cs_status st = find_others(m, operation, &others);
  for (size_t i = 0; i < others.n && st == CS_OK; i++) {
    bool there = true;
    st = still_prepares(m, operation, &others.items[i], &there);
    if (st != CS_OK || there) continue;
    st = cs_profile_add(m->profile, operation->signature, &others.items[i], &gone);
  }
  cs_candidate_list_free(&others);
  return cs_annotate(st, "%s: ", operation->name);
}
