/* Inside of a bench. */
#ifndef CONVSCHED_RUNTIME_SEARCH_BENCH_H_
#define CONVSCHED_RUNTIME_SEARCH_BENCH_H_

#include "runtime/search.h"

/* A candidate of a task, prepared. Candidates of a node whose packed weights are the same bytes
 * share them on the device; parts of a node that are the same operation share a candidate. */
typedef struct cs_prepared {
  cs_exec *exec; /* NULL: not yet */
  void *weights; /* its own, or those of another candidate of the node */
  uint64_t packed_hash;
  int64_t packed_bytes;
  bool owns;     /* weights */
  bool borrowed; /* exec */
} cs_prepared;

/* A schedule with an arena of its own, which is kept for the next plan. */
typedef struct cs_timed_copy {
  cs_realised realised;
  int64_t arena_capacity;
  void **input_at; /* per graph input: where in the arena it lies; NULL: nowhere */
} cs_timed_copy;

typedef struct cs_timed_schedule {
  cs_plan *plan;
  cs_timed_copy *copies; /* as many as requests are in flight */
  cs_requests *requests; /* of all copies; NULL: there is one */
} cs_timed_schedule;

struct cs_bench {
  cs_session *session;
  const cs_policy_input *input;
  cs_prepared **prepared; /* [task][choice] */
  int in_flight;
  cs_request_times *times; /* room for those of a burst; NULL: one copy */
  cs_timed_schedule slots[CS_BENCH_SLOTS];
  void **inputs; /* per graph input: as it lies in the tensor */
};

/* ---- search_prepared.c ---- */
cs_status cs_bench_make_prepared(cs_bench *bench) CS_MUST_USE;
/* bench->prepared[task][choice] is there then. */
cs_status cs_bench_prepare(const cs_bench *bench, int task, int choice) CS_MUST_USE;
void cs_bench_free_prepared(cs_bench *bench);

#endif
