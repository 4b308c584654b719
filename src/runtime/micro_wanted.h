/* Parts of batches that are to be measured: what micro_sizes.c gathers and measures. */
#ifndef CONVSCHED_RUNTIME_MICRO_WANTED_H_
#define CONVSCHED_RUNTIME_MICRO_WANTED_H_

#include "runtime/micro_batches.h"

typedef struct cs_wanted_parts {
  cs_session *session;
  const cs_undivided *of;
  cs_op_desc *descs;
  const char **names;
  size_t n, descs_capacity, names_capacity;
} cs_wanted_parts;

/* Of a task, parts of so many entries, and the part that is left. */
cs_status cs_want_parts(cs_wanted_parts *wanted, int task, int64_t entries) CS_MUST_USE;

/* micro_fitting.c: sizes at which candidates fit the workspace limit that do not fit it with the
 * whole batch. */
cs_status cs_want_fitting(cs_wanted_parts *wanted) CS_MUST_USE;
/* micro_resident.c: sizes at which the tensors of neighbours bound by memory fit the cache. */
cs_status cs_want_resident(cs_wanted_parts *wanted) CS_MUST_USE;

#endif
