/* What a search left in the profile, for tests of sessions. */
#ifndef CONVSCHED_TESTS_CPU_SEARCH_FIXTURE_H_
#define CONVSCHED_TESTS_CPU_SEARCH_FIXTURE_H_

#include "session_fixture.h"

#include "scheduler/configuration.h"

/* Of the program on several streams, which is what is searched: on a CPU `coselect` may then run
 * another in its place, of one stream with all cores. */
static inline char *signature_of(const cs_session *session) {
  char *signature = NULL;
  cs_session *streams = NULL;
  cs_session_options options;
  cs_session_options_init(&options);
  options.policy = "streams";
  options.cache_dir = cache_folder;
  options.batch = session->settings.options.batch;
  assert_ok(cs_session_create(session->device, session->source, &options, &streams));
  assert_ok(cs_program_signature(streams->planned.program, true, &signature));
  cs_session_destroy(streams);
  return signature;
}

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
