/* How to divide the batches of operations into parts (micro-batches), from what was measured of
 * parts of several sizes. Pure and deterministic.
 *
 * µ-cuDNN (Oyama et al., IEEE CLUSTER 2018) divides each convolution by itself, so that faster
 * algorithms fit a workspace limit: by dynamic programming over part sizes where each has the limit
 * to itself ("workspace reuse"), and by an integer program over the layers' Pareto sets where they
 * share it ("workspace division"). Here are both, and segments of operations that run part by part,
 * whose tensors then stay in the cache between them. */
#ifndef CONVSCHED_SCHEDULER_MICRO_BATCH_H_
#define CONVSCHED_SCHEDULER_MICRO_BATCH_H_

#include "base/base.h"

/* One way to run some batch entries of an operation: a measured candidate. */
typedef struct cs_micro_way {
  int64_t entries, workspace_bytes;
  double cold_us, warm_us; /* warm: what it reads and writes is in the cache */
} cs_micro_way;

typedef struct cs_micro_op {
  const cs_micro_way *ways;
  int n_ways;
  int group;           /* which others it shares the workspace limit with; ascending */
  int64_t entry_bytes; /* of inputs and output, an entry */
  int64_t weight_bytes;
} cs_micro_op;

typedef struct cs_micro_problem {
  const cs_micro_op *ops; /* in the order they run; each reads what the one before wrote, or may */
  int n_ops;
  int64_t batch;
  int64_t workspace_limit;
  int64_t cache_bytes; /* 0: nothing stays in the cache */
} cs_micro_problem;

/* The parts of an operation, largest first. */
typedef struct cs_micro_parts {
  int64_t *sizes;
  int n;
} cs_micro_parts;

typedef struct cs_micro_result {
  cs_micro_parts *parts; /* per operation */
  int n_ops;
  double us;       /* expected, of all parts one after the other */
  double cache_us; /* how much of the gain is that of warm times over cold ones */
  double whole_us; /* expected of the same operations undivided; INFINITY: one cannot be */
} cs_micro_result;
void cs_micro_result_free(cs_micro_result *result);

#define CS_MICRO_SEGMENT 32 /* operations of one segment at most */

/* Operations one after the other, each with the whole limit. Segments of neighbours have the same
 * parts and run part by part; the least sum over segments of the least sum over parts of
 *   cold time of the first operation + times of the others,
 * warm where weights of the segment and a part's largest tensors (inputs and output of one of its
 * operations) fit the cache together, else cold; the fastest cold way within the limit each. Of
 * equal sums the one with fewer parts, and fewer operations in a segment. NOT_FOUND: an operation
 * has no way to run all entries within the limit. */
cs_status cs_micro_in_turn(const cs_micro_problem *problem, cs_micro_result *out) CS_MUST_USE;

/* Operations of a group may run at once: their workspaces together keep the limit, each with the
 * largest of its parts, and their sum of cold times is the least. Workspaces are counted in units
 * of 1/4096 of the limit, rounded up (exact where the limit is less than that many bytes). The
 * cache counts for nothing. In whole_us an operation that does not fit the limit undivided has its
 * fastest way. NOT_FOUND: a group has no ways within the limit. */
cs_status cs_micro_at_once(const cs_micro_problem *problem, cs_micro_result *out) CS_MUST_USE;

#endif
