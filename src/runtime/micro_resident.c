/* Sizes of parts at which the tensors of neighbours that are bound by memory stay in the cache. */
#include "runtime/micro_wanted.h"

#define MEMORY_BOUND 0.4      /* of its time an operation takes to move its bytes */
#define LEAST_CACHE_GAIN 0.05 /* of all time that tensors between neighbours take to move */

/* Neighbours that take much of their time to move their tensors. */
static bool is_memory_bound(const cs_wanted_parts *wanted, int task, double bandwidth) {
  const cs_task *t = &wanted->of->program->tasks[task];
  double us = cs_op_bytes(&t->desc) / bandwidth * 1e6;
  return cs_micro_divides(wanted->of->program, task) &&
         us >= MEMORY_BOUND * wanted->of->choices[task].choices[0].cold_us;
}

static cs_status want_run(cs_wanted_parts *wanted, int first, int end, int64_t largest,
                          int64_t cache) {
  int64_t batch = wanted->of->program->graph->batch, sizes[CS_MICRO_SIZES];
  int n = cs_micro_sizes(batch, sizes), i = 0;
  if (largest * batch <= cache) return CS_OK; /* it stays there as it is */
  while (i < n && (sizes[i] > cache / largest || sizes[i] < batch % sizes[i])) i++;
  for (int t = first; i < n && t < end; t++) {
    CS_RETURN_IF_ERROR(cs_want_parts(wanted, t, sizes[i]));
  }
  return CS_OK;
}

/* Runs of two and more; *saved: what their tensors between them take to be written and read, where
 * `add` is false and nothing is wanted yet. */
static cs_status walk_runs(cs_wanted_parts *wanted, double bandwidth, int64_t cache, bool add,
                           double *saved) {
  const cs_program *program = wanted->of->program;
  for (int first = 0; first < program->n_tasks;) {
    int64_t largest = 0;
    int end = first;
    for (; end < program->n_tasks && is_memory_bound(wanted, end, bandwidth); end++) {
      const cs_op_desc *desc = &program->tasks[end].desc;
      largest =
          cs_max_i64(largest, cs_micro_bytes(desc) / cs_max_i64(1, desc->output.shape.dims[0]));
      if (end > first) {
        *saved += 2e6 * (double)cs_tensor_span_bytes(&desc->inputs[0]) / bandwidth;
      }
    }
    if (add && end - first > 1) CS_RETURN_IF_ERROR(want_run(wanted, first, end, largest, cache));
    first = end > first ? end : first + 1;
  }
  return CS_OK;
}

cs_status cs_want_resident(cs_wanted_parts *wanted) {
  cs_session *session = wanted->session;
  cs_backend *backend = session->device->backend;
  const cs_device_info *info = backend->vtable->info(backend);
  double flops, bandwidth = info->peak_bandwidth, saved = 0;
  if (!(bandwidth > 0)) {
    CS_RETURN_IF_ERROR(cs_profile_peaks(session->device->profile, backend,
                                        session->settings.options.precision, wanted->of->measure,
                                        &flops, &bandwidth));
  }
  if (!(bandwidth > 0) || info->cache_bytes <= 0) return CS_OK;
  double all = cs_program_cost(wanted->of->program, wanted->of->choices);
  CS_RETURN_IF_ERROR(walk_runs(wanted, bandwidth, info->cache_bytes, false, &saved));
  if (saved < LEAST_CACHE_GAIN * all) return CS_OK;
  return walk_runs(wanted, bandwidth, info->cache_bytes, true, &saved);
}
