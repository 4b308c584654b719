/* The measured half of `coselect`: configurations of a program timed as whole schedules, the best
 * interleaved with each new one. */
#ifndef CONVSCHED_RUNTIME_SEARCH_H_
#define CONVSCHED_RUNTIME_SEARCH_H_

#include "runtime/session.h"
#include "scheduler/coselect.h"

#define CS_SEARCH_SECONDS 20 /* unless an option says otherwise */

/* Searches for as long as the session's options say, unless a search of this program is complete in
 * the profile. Every measurement goes to the profile, under the program's cs_program_signature. The
 * session has parameters, inputs, program and choices; `input` is what its policy will get. */
cs_status cs_search_schedules(cs_session *session, const cs_policy_input *input) CS_MUST_USE;

/* ---- search_bench.c, search_prepared.c: two schedules of one program, timed in turn ---- */

typedef enum cs_bench_slot { CS_BENCH_BEST, CS_BENCH_TRIAL, CS_BENCH_SLOTS } cs_bench_slot;

typedef struct cs_bench cs_bench;
/* `in_flight` 1: by the latency of one request; more, on a backend that has requests in flight: by
 * the time from one end of a request to the next with so many in flight, inputs on the device. */
cs_status cs_bench_create(cs_session *session, const cs_policy_input *input, int in_flight,
                          cs_bench **out) CS_MUST_USE;
void cs_bench_destroy(cs_bench *bench);
/* Plans and realises a configuration; candidates and weights are kept for the next ones. NOT_FOUND,
 * NO_MEMORY: it does not hold the limits. */
cs_status cs_bench_set(cs_bench *bench, cs_bench_slot slot,
                       const cs_configuration *configuration) CS_MUST_USE;
/* A task's candidate and its weights on the device; both stay the bench's. NO_MEMORY: no room. */
cs_status cs_bench_prepared(cs_bench *bench, int task, int choice, const cs_exec **exec,
                            const void **weights) CS_MUST_USE;
void cs_bench_swap(cs_bench *bench); /* the trial becomes the best */
/* What the slot holds: what it was set to, but for candidates that the workspace limit exchanged.
 */
cs_status cs_bench_configuration(const cs_bench *bench, cs_bench_slot slot,
                                 cs_configuration *out) CS_MUST_USE;
/* Peak of workspaces of what the slot holds. */
int64_t cs_bench_workspace(const cs_bench *bench, cs_bench_slot slot);
/* Its plan, until the slot is set again. */
const cs_plan *cs_bench_plan(const cs_bench *bench, cs_bench_slot slot);
#define CS_BENCH_SAMPLES 50 /* of a comparison, at most */

/* Samples of both slots in turn, so that a drifting clock meets both. */
typedef struct cs_bench_pairs {
  double best[CS_BENCH_SAMPLES], trial[CS_BENCH_SAMPLES];
  double best_us, trial_us, ratio; /* medians; ratio: trial / best, pair by pair */
  double low, high;                /* of the ratio, with CS_SEARCH_CONFIDENCE */
  int n, wins;                     /* wins: pairs in which the trial was faster */
} cs_bench_pairs;
cs_status cs_bench_compare(cs_bench *bench, int n, cs_bench_pairs *out) CS_MUST_USE;
static inline cs_ratio cs_bench_ratio(const cs_bench_pairs *pairs) {
  return (cs_ratio){pairs->ratio, pairs->low, pairs->high, pairs->n};
}

/* ---- early_choice.c ---- */

/* The configuration, which is a policy's, with all launches early or none, whichever the profile
 * has as the faster; where it does not know and the session may measure, after timing both (with
 * `bench`, whose slots hold something else afterwards; NULL: one of its own). Early where it cannot
 * be known. */
cs_status cs_choose_early(cs_session *session, const cs_policy_input *input, cs_bench *bench,
                          cs_configuration *configuration) CS_MUST_USE;
/* The same for the launches of a plan whose policy does not choose what begins early. */
cs_status cs_plan_begin_early(cs_session *session, const cs_policy_input *input,
                              cs_plan *plan) CS_MUST_USE;

/* ---- search.c, a part of it ---- */

/* The best that a search of at most `seconds` finds with other candidates only: streams, order and
 * launches stay those of `base`; `other` is `base` with other candidates, tried first. Both slots
 * of the bench, which is of the model's input, hold something else afterwards. What it measures
 * goes to the profile, but confirms nothing. NOT_FOUND, NO_MEMORY: the base does not hold the
 * limits. */
cs_status cs_search_candidates_of(cs_session *session, cs_coselect *model, cs_bench *bench,
                                  const cs_configuration *base, const cs_configuration *other,
                                  double seconds, cs_configuration *out) CS_MUST_USE;

#endif
