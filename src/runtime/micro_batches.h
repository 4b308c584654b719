/* Micro-batches: which sizes of parts are worth measuring, which divisions are worth trying, and
 * whether one is faster than the plan there is. */
#ifndef CONVSCHED_RUNTIME_MICRO_BATCHES_H_
#define CONVSCHED_RUNTIME_MICRO_BATCHES_H_

#include "runtime/planning.h"

#define CS_MICRO_LEAST_BATCH 8 /* less is not divided unless it is asked for */

/* A program that may be divided, with the choices of its tasks. */
typedef struct cs_undivided {
  const cs_program *program;
  const cs_task_choices *choices;
  const cs_measure_options *measure;
} cs_undivided;

/* ---- micro_sizes.c ---- */

#define CS_MICRO_SIZES 64
#define CS_MICRO_ALL_SIZES                                              \
  4096 /* of larger batches only those of cs_micro_sizes are looked for \
        */
/* Half of the batch, half of that and so on, rounded up, each with what is left behind as many
 * parts of it; distinct, largest first, the batch itself left out. Returns how many. */
int cs_micro_sizes(int64_t batch, int64_t out[CS_MICRO_SIZES]);
/* The operation on so many of its batch entries. */
cs_op_desc cs_micro_desc(const cs_op_desc *desc, int64_t entries);
/* Of all its tensors. */
int64_t cs_micro_bytes(const cs_op_desc *desc);
/* Whether a task's operation may be divided. */
bool cs_micro_divides(const cs_program *program, int task);
/* Whether the profile has all that there is of the operation on so many entries, under the limits
 * that `measure` says. */
cs_status cs_micro_is_known(const cs_session *session, const cs_measure_options *measure,
                            const cs_op_desc *desc, int64_t entries, bool *known) CS_MUST_USE;
/* Measures parts of such sizes as may gain: of an operation some of whose candidates do not fit the
 * workspace limit, about the largest at which they do (up to four such sizes); of neighbours bound
 * by memory whose tensors do not fit the cache, the largest of cs_micro_sizes at which they do.
 * Each with the part that is left. Begins none after as many seconds as a search has: then complete
 * is false. */
typedef struct cs_micro_measured {
  int operations; /* grows by those measured now */
  bool complete;
} cs_micro_measured;
cs_status cs_micro_measure(cs_session *session, const cs_undivided *of,
                           cs_micro_measured *out) CS_MUST_USE;

/* ---- micro_batches.c ---- */

/* `coselect` where options.micro_batches is 0: puts the plan of a divided program in the place of
 * the session's where it was measured to be faster, or, where nothing may be measured, the profile
 * says so or, without that, the predicted times do. */
cs_status cs_consider_micro_batches(cs_session *session,
                                    const cs_measure_options *measure) CS_MUST_USE;

/* ---- micro_report.c ---- */

/* Sets "micro_batches" of an object where they were considered or the plan has some. */
struct json_t;
cs_status cs_micro_report_json(const cs_session *session, struct json_t *into) CS_MUST_USE;

#endif
