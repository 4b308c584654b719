/* Which operations of a program are worth running together: sets of convolutions between two cut
 * values of the graph, none of which depends on another. Pure and deterministic. */
#ifndef CONVSCHED_PROFILER_CORUN_SETS_H_
#define CONVSCHED_PROFILER_CORUN_SETS_H_

#include "graph/program.h"

#define CS_CORUN_MOST 8         /* members of a set */
#define CS_CORUN_BLOCK_SETS 8   /* larger sets of a block, and … */
#define CS_CORUN_BLOCK_PAIRS 16 /* … pairs of it */
#define CS_CORUN_SETS 256       /* of a program */

typedef struct cs_corun_set {
  int tasks[CS_CORUN_MOST]; /* ascending */
  int n;
  int block;
} cs_corun_set;

/* Of each block: its maximal sets of independent convolutions (ConvTranspose included), heaviest
 * first, and all pairs, those first whose lighter member is heaviest, each up to the counts above.
 * `wanted` (per task; NULL: all) restricts the tasks, `weights` (per task) are times alone, `most`
 * is the largest set: of larger antichains the heaviest members are taken. Sets of the same
 * signatures come once, blocks in order. free() releases *out. */
cs_status cs_corun_sets_of(const cs_program *program, const bool *wanted, const double *weights,
                           int most, cs_corun_set **out, int *n) CS_MUST_USE;

#endif
