/* Inside of a search: the best configuration so far, and what is tried against it. */
#ifndef CONVSCHED_RUNTIME_SEARCH_STATE_H_
#define CONVSCHED_RUNTIME_SEARCH_STATE_H_

#include "runtime/search.h"

typedef struct cs_in_flight_times cs_in_flight_times;

typedef struct cs_search {
  cs_session *session;
  const cs_policy_input *input;   /* without a model of timelines */
  const cs_policy_input *limited; /* as the policies get it */
  const char *signature;
  cs_profile *profile;
  cs_coselect *model;
  cs_bench *bench;
  cs_configuration best;
  cs_configuration made;                   /* by the model alone */
  cs_configuration champion;               /* of the descents before this one; none: no tasks */
  int restarts;                            /* schedules that a descent began from, or might have */
  double best_us, begun_us, sequential_us; /* of the best now, at first, and of `sequential` */
  double begun, seconds;                   /* of the rounds; those of falling back come behind */
  double held_back; /* share of the seconds and steps that is left to later descents */
  double fallback_seconds;
  const char *name; /* cs_search_name */
  int measured, accepted, round;
  int idle;                      /* rounds in a row that found nothing faster */
  bool anew;                     /* what was measured before is measured again */
  cs_in_flight_times *in_flight; /* NULL: it is one request's latency that counts */
} cs_search;

/* Measures a configuration beside the best one and takes its place where it is faster on fresh
 * samples. One that was measured before (unless `anew`), or does not hold the limits, is passed
 * over. */
cs_status cs_search_try(cs_search *s, const cs_configuration *configuration) CS_MUST_USE;
/* The trial: *fits false where it does not hold the limits, or the device has no room for it. */
cs_status cs_search_set_trial(cs_search *s, const cs_configuration *configuration,
                              bool *fits) CS_MUST_USE;
/* What the trial holds becomes the best. */
cs_status cs_search_accept(cs_search *s) CS_MUST_USE;
cs_status cs_search_check_cancelled(const cs_search *s) CS_MUST_USE;
/* The time or the steps are used up but for what is held back, or the search was interrupted. */
bool cs_search_is_over(const cs_search *s);

/* ---- search_record.c: what is in the profile ---- */

/* n samples of what the slot holds. Fewer than confirm it do not take the place of a confirmed
 * record. */
cs_status cs_search_record(cs_search *s, cs_bench_slot slot, const double *samples,
                           int n) CS_MUST_USE;
cs_status cs_search_is_known(const cs_search *s, const cs_configuration *configuration,
                             bool *out) CS_MUST_USE;
#define CS_SEARCH_EARLIER 5
/* The configurations that earlier searches left: the fastest confirmed one first where there is
 * one, then the fastest of those that were not confirmed, as by a search that was interrupted. */
cs_status cs_search_earlier(const cs_search *s, cs_configuration out[CS_SEARCH_EARLIER], int *n,
                            bool *confirmed) CS_MUST_USE;
/* The best that searches for one request's latency left; n is 0 where there is none. */
cs_status cs_search_of_latency(const cs_search *s, cs_configuration *out) CS_MUST_USE;
/* The fastest confirmed record of less than `us` that is a configuration of this input and not the
 * best, but for so many of them; n is 0 where there is none. */
cs_status cs_search_rival(const cs_search *s, double us, int skipped,
                          cs_configuration *out) CS_MUST_USE;
/* Under what its completion is kept: the program's signature, and where options narrow what may be
 * chosen (pins, bans, determinism, a memory limit, a partition), what is left of it: such a search
 * says nothing of one without them. */
cs_status cs_search_name(const cs_session *session, const cs_policy_input *input,
                         const char *signature, char **out) CS_MUST_USE;

/* ---- search_finals.c ---- */

/* Fresh samples of the best beside every start, and beside what the profile would have planned
 * before it: one that is faster (`sequential`: no slower) takes its place. */
cs_status cs_search_finals(cs_search *s, const cs_configuration *starts, int n) CS_MUST_USE;
void cs_search_log_comparisons(const cs_search *s);

/* ---- search_restarts.c ---- */

/* Begins again from the next schedule, with the best's candidates, and keeps the best as champion.
 * *begun false: none is left that is not the best, fits and is not far slower. */
cs_status cs_search_restart(cs_search *s, const cs_configuration *starts, int n,
                            bool *begun) CS_MUST_USE;
/* The faster of the best and the champion, on fresh samples, is the best; there is no champion
 * then. */
cs_status cs_search_settle(cs_search *s) CS_MUST_USE;

/* ---- search_fallback.c ---- */

/* How much of a search's time is for falling back. */
double cs_search_fallback_seconds(double search_seconds);
/* Tries every block of the best that uses several streams as `sequential` has it, which takes its
 * place where it is no slower; the session's report tells of each. What is tried under a number of
 * steps depends on no clock but the search's own end. */
cs_status cs_search_fall_back(cs_search *s, const cs_configuration *sequential) CS_MUST_USE;
/* Once another plan may have taken the best's place: whether each of these blocks is on one stream
 * in the end. */
void cs_search_settle_fallbacks(cs_search *s);

/* ---- search_moves.c: one kind of change each, through the whole program ---- */

/* Tries a changed configuration where the model does not expect the window to take more than
 * `worst` times what it takes in the best. */
cs_status cs_search_try_changed(cs_search *s, cs_configuration *changed, int window,
                                double worst) CS_MUST_USE;

/* The variants of each block that the model likes best, from the best and one of the starts. */
cs_status cs_search_blocks(cs_search *s, const cs_configuration *starts, int n) CS_MUST_USE;
cs_status cs_search_candidates(cs_search *s) CS_MUST_USE;
/* Candidates of two tasks that may run beside each other, changed together. */
cs_status cs_search_pairs(cs_search *s) CS_MUST_USE;
cs_status cs_search_streams(cs_search *s) CS_MUST_USE;
/* Neighbouring launches that do not depend on each other change places. */
cs_status cs_search_order(cs_search *s) CS_MUST_USE;

/* ---- search_in_flight.c: for many requests at a time ---- */

/* Measures the candidates of all operations with so many in flight, where the profile lacks it. */
cs_status cs_search_know_in_flight(cs_search *s, int in_flight) CS_MUST_USE;
void cs_search_forget_in_flight(cs_search *s);
/* The starts, and what is best for one request's latency, with the candidates that take least of
 * the device; the latter as it is, too. */
cs_status cs_search_in_flight_wholes(cs_search *s, const cs_configuration *starts,
                                     int n) CS_MUST_USE;
/* Other candidates of each operation, for all its tasks. */
cs_status cs_search_in_flight_candidates(cs_search *s) CS_MUST_USE;

/* ---- search_merges.c ---- */

/* Independent tasks of a block that have candidates in common as one launch: those of one input all
 * at once, then any two launches; and launches of several tasks split. */
cs_status cs_search_merges(cs_search *s) CS_MUST_USE;

/* ---- search_early.c ---- */

/* All launches begin early, and none does. */
cs_status cs_search_early_at_all(cs_search *s) CS_MUST_USE;
/* Some do: those of a candidate, halves of the launch order, halves of these, … single ones. */
cs_status cs_search_early(cs_search *s) CS_MUST_USE;

/* ---- search_hints.c ---- */

/* With hints of the launch order where the best has none, without them where it has. */
cs_status cs_search_hints(cs_search *s) CS_MUST_USE;

/* ---- search_parts.c ---- */

/* High priority for all of the critical path, then the other priority for single launches. */
cs_status cs_search_priorities(cs_search *s) CS_MUST_USE;
/* Pairs of a block's streams into parts of a split, blocks out of them, and another split. */
cs_status cs_search_partitions(cs_search *s) CS_MUST_USE;

#endif
