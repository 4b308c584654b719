#include "profiler/measure_session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/measure_data.h"

#define WARM_UP_SECONDS 0.1
#define MAX_SCRUB_BYTES ((int64_t)256 << 20)
/* What a processor's memory takes milliseconds for is overwritten in part only: last-level caches
 * that a whole socket shares are larger than what an operation's tensors compete for. */
#define SLOW_SCRUB_BYTES ((int64_t)64 << 20)
#define SLOW_SCRUB_US 2000.0
/* Time for samples: of a whole call, and the least and most of an operation. */
#define CALL_BUDGET_US 10e6
#define LEAST_BUDGET_US 0.1e6
#define MOST_BUDGET_US 0.3e6

static cs_status time_scrub(cs_measuring *m) {
  const cs_backend_vtable *vtable = m->backend->vtable;
  double start = cs_now_seconds();
  CS_RETURN_IF_ERROR(vtable->fill(m->backend, m->scrub, 0, m->scrub_bytes));
  m->scrub_us = 1e6 * (cs_now_seconds() - start);
  return CS_OK;
}

/* Memory twice as large as the cache, whose overwriting empties it, and what that takes. */
static cs_status create_scrub(cs_measuring *m) {
  const cs_backend_vtable *vtable = m->backend->vtable;
  const cs_device_info *info = vtable->info(m->backend);
  m->scrub_bytes = cs_min_i64(2 * info->cache_bytes, MAX_SCRUB_BYTES);
  if (m->scrub_bytes <= 0) return CS_OK;
  CS_RETURN_IF_ERROR(vtable->allocate(m->backend, m->scrub_bytes, &m->scrub));
  CS_RETURN_IF_ERROR(vtable->fill(m->backend, m->scrub, 0, m->scrub_bytes));
  CS_RETURN_IF_ERROR(time_scrub(m));
  if (m->scrub_us < SLOW_SCRUB_US || m->scrub_bytes <= SLOW_SCRUB_BYTES) return CS_OK;
  m->scrub_bytes = SLOW_SCRUB_BYTES;
  return time_scrub(m);
}

cs_status cs_measuring_open(const cs_wanted *wanted, int n, cs_measuring *out) {
  cs_status st = CS_OK;
  *out = (cs_measuring){.profile = wanted->profile,
                        .backend = wanted->backend,
                        .options = wanted->options,
                        .logger = wanted->logger,
                        .report = wanted->report};
  out->budget_us = fmin(fmax(CALL_BUDGET_US / fmax(n, 1), LEAST_BUDGET_US), MOST_BUDGET_US);
  CS_TRY(st, cs_measure_normals(&out->normals), done);
  CS_TRY(st, create_scrub(out), done);
  CS_TRY(st, cs_anchor_create(out, &out->anchor), done);
  CS_TRY(st, cs_anchor_warm_up(out->anchor, WARM_UP_SECONDS), done);
done:
  if (st != CS_OK) cs_measuring_close(out);
  return st;
}

void cs_measuring_close(cs_measuring *m) {
  cs_anchor_destroy(m->anchor);
  if (m->scrub) m->backend->vtable->release(m->backend, m->scrub);
  free(m->normals);
  memset(m, 0, sizeof *m);
}

cs_status cs_measure_session(const cs_wanted *wanted, cs_operation *operations, int n) {
  cs_measuring m;
  CS_RETURN_IF_ERROR(cs_measuring_open(wanted, n, &m));
  cs_status st = cs_measure_operations(&m, operations, n);
  cs_measuring_close(&m);
  return st;
}
