/* What a search left in the profile, for tests of sessions. */
#ifndef CONVSCHED_TESTS_CPU_SEARCH_FIXTURE_H_
#define CONVSCHED_TESTS_CPU_SEARCH_FIXTURE_H_

#include "session_fixture.h"

#include "scheduler/configuration.h"

static inline char *signature_of(const cs_session *session) {
  char *signature = NULL;
  assert_ok(cs_program_signature(session->planned.program, true, &signature));
  return signature;
}

/* Of the session's program, which `coselect` on a CPU may exchange for that of one stream. */
static inline const cs_op_profile *schedules_of(const cs_session *session) {
  char *signature = signature_of(session);
  const cs_op_profile *known = cs_profile_find(session->device->profile, signature);
  free(signature);
  return known;
}

static inline int confirmed(const cs_op_profile *known) {
  int n = 0;
  for (int r = 0; r < known->n_records; r++) {
    n += known->records[r].measured.samples >= CS_SCHEDULE_CONFIRMED;
  }
  return n;
}

#endif
