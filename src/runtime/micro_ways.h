/* Ways to run the parts of a program's batch: what a division is chosen from. */
#ifndef CONVSCHED_RUNTIME_MICRO_WAYS_H_
#define CONVSCHED_RUNTIME_MICRO_WAYS_H_

#include "runtime/micro_batches.h"
#include "scheduler/micro_batch.h"

/* A program without division, in some layouts, and what is measured of its operations' parts. */
typedef struct cs_ways {
  cs_program *program;
  cs_task_choices *choices;
  cs_measure_options measure;
  cs_micro_op *ops; /* per task; NULL: not found yet */
  cs_micro_way **ways;
  cs_micro_result in_turn; /* the best division on one stream, where that was looked for */
} cs_ways;

/* ---- micro_ways.c ---- */

/* Lowers and measures what is not known. NOT_FOUND: some operation has no candidate in these
 * layouts. cs_ways_close releases what is there, of an error too. */
cs_status cs_ways_open(cs_session *session, const cs_layout *layouts,
                       const cs_measure_options *measure, cs_ways *out) CS_MUST_USE;
void cs_ways_close(cs_ways *u);
/* Fills ops from the profile. */
cs_status cs_ways_find(const cs_session *session, cs_ways *u) CS_MUST_USE;
/* The best division. On `streams` streams parts run at once, each with its share of the workspace
 * limit. */
cs_status cs_ways_solve(const cs_session *session, const cs_ways *u, int streams,
                        cs_micro_result *out) CS_MUST_USE;

/* ---- micro_layouts.c ---- */

/* Of the plan's layouts and of each that serves the whole graph alone, those whose division is
 * expected to take least; parts are measured where that was not done before. */
cs_status cs_ways_in_best_layouts(cs_session *session, const cs_measure_options *measure,
                                  cs_ways *out) CS_MUST_USE;
/* OK for NOT_FOUND and BAD_INPUT: what cannot be had in a layout, or divided so, is no choice. */
cs_status cs_micro_pass_over(cs_status st) CS_MUST_USE;

#endif
