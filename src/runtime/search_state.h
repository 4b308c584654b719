/* Inside of a search: the best configuration so far, and what is tried against it. */
#ifndef CONVSCHED_RUNTIME_SEARCH_STATE_H_
#define CONVSCHED_RUNTIME_SEARCH_STATE_H_

#include "runtime/search.h"

typedef struct cs_search {
  cs_session *session;
  const cs_policy_input *input;
  const char *signature;
  cs_profile *profile;
  cs_coselect *model;
  cs_bench *bench;
  cs_configuration best;
  double best_us, begun_us, sequential_us; /* of the best now, at first, and of `sequential` */
  double begun, seconds;
  int measured, accepted, round;
} cs_search;

/* Measures a configuration beside the best one and takes its place where it is faster on fresh
 * samples. One that was measured before, or does not hold the limits, is passed over. */
cs_status cs_search_try(cs_search *s, const cs_configuration *configuration) CS_MUST_USE;
/* The time or the steps are used up. */
bool cs_search_is_over(const cs_search *s);

/* ---- search_moves.c: one kind of change each, through the whole program ---- */

/* The variants of each block that the model likes best, from the best and one of the starts. */
cs_status cs_search_blocks(cs_search *s, const cs_configuration *starts, int n) CS_MUST_USE;
cs_status cs_search_candidates(cs_search *s) CS_MUST_USE;
/* Candidates of two tasks that may run beside each other, changed together. */
cs_status cs_search_pairs(cs_search *s) CS_MUST_USE;
cs_status cs_search_streams(cs_search *s) CS_MUST_USE;
/* Neighbours in the launch order that do not depend on each other change places. */
cs_status cs_search_order(cs_search *s) CS_MUST_USE;

#endif
