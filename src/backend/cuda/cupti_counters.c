#include "backend/cuda/cupti_counters.h"

#include <stdio.h>
#include <stdlib.h>

#include "backend/cuda/cupti_range.h"
#include "backend/cuda/kernels.h"

/* ---- Kernels by launch ---- */

static int by_launch(const void *a, const void *b) {
  const cs_kernel_info *const *x = a, *const *y = b;
  if ((*x)->launch != (*y)->launch) return (*x)->launch < (*y)->launch ? -1 : 1;
  return *x < *y ? -1 : *x > *y;
}

/* A graph need not list its nodes in the order they were captured in. */
static cs_status sort_by_launch(cs_kernel_info *kernels, int n) {
  size_t count = (size_t)n;
  const cs_kernel_info **order = cs_calloc(count, sizeof(const cs_kernel_info *));
  cs_kernel_info *sorted = cs_calloc(count, sizeof(*sorted));
  if (order && sorted) {
    for (int i = 0; i < n; i++) order[i] = &kernels[i];
    qsort(order, count, sizeof(const cs_kernel_info *), by_launch);
    for (int i = 0; i < n; i++) sorted[i] = *order[i];
    for (int i = 0; i < n; i++) kernels[i] = sorted[i];
  }
  bool failed = !order || !sorted;
  free(order);
  free(sorted);
  return failed ? cs_no_memory("a schedule's kernels", count * sizeof(*sorted)) : CS_OK;
}

cs_status cs_schedule_kernel_list(cs_schedule *schedule, cs_kernel_info **out, int *count) {
  *out = NULL;
  int n = 0;
  CS_RETURN_IF_ERROR(cs_schedule_kernels(schedule, NULL, 0, &n));
  *count = 0;
  if (n == 0) return CS_OK;
  cs_kernel_info *kernels = cs_calloc((size_t)n, sizeof(*kernels));
  if (!kernels) return cs_no_memory("a schedule's kernels", (size_t)n * sizeof(*kernels));
  cs_status st = CS_OK;
  CS_TRY(st, cs_schedule_kernels(schedule, kernels, n, count), done);
  if (*count != n) CS_FAIL(st, done, CS_CODE_INTERNAL, "%d kernels, then %d", n, *count);
  CS_TRY(st, sort_by_launch(kernels, n), done);
  *out = kernels;
  kernels = NULL;
done:
  free(kernels);
  return st;
}

/* ---- Counting ---- */

cs_status cs_cuda_context(const cs_cuda_driver *driver, CUcontext *out) {
  *out = NULL;
  CS_RETURN_IF_ERROR(
      cs_driver_status((int)driver->ctx_get_current(out), "asking for the current context"));
  return *out ? CS_OK : cs_error(CS_CODE_DEVICE, "no CUDA context is current");
}

static cs_status count(const cs_range_request *request, cs_counters *out, int *n) {
  const cs_cupti *cupti = NULL;
  *n = 0;
  CS_RETURN_IF_ERROR(cs_cupti_get(&cupti));
  cs_cupti_lock();
  cs_status st = cs_cupti_count(cupti, request, out, n);
  cs_cupti_unlock();
  return st;
}

/* The metrics are chosen once for each open device; those that the chip lacks are told of then. */
static cs_status count_schedule(cs_schedule *s, cs_range_request *request, cs_counters *out,
                                int *n) {
  cs_cuda_backend *backend = s->backend;
  request->device = backend->device;
  request->user = s;
  request->logger = &backend->base.logger;
  request->metrics = &backend->metrics;
  CS_RETURN_IF_ERROR(cs_cuda_context(&backend->driver, &request->context));
  return count(request, out, n);
}

static cs_status run_serially(void *user) {
  cs_schedule *s = user;
  CS_RETURN_IF_ERROR(cs_schedule_issue_serial(s));
  return cs_schedule_synchronize(s);
}

static cs_status run_as_it_is(void *user) {
  cs_schedule *s = user;
  CS_RETURN_IF_ERROR(cs_schedule_enqueue(s));
  return cs_schedule_synchronize(s);
}

cs_status cs_schedule_counters(cs_schedule *schedule, cs_kernel_counts *out, int capacity,
                               int *count_out) {
  *count_out = 0;
  CS_RETURN_IF_ERROR(cs_cuda_enter(schedule->backend));
  cs_status st = CS_OK;
  cs_kernel_info *kernels = NULL;
  cs_counters *counters = NULL;
  int n = 0, counted = 0;
  CS_TRY(st, cs_schedule_kernel_list(schedule, &kernels, &n), done);
  if (n == 0) goto done;
  /* One more than there should be, so that a surplus shows. */
  cs_range_request request = {.per_kernel = true, .max_ranges = n + 1, .work = run_serially};
  counters = cs_calloc((size_t)n + 1, sizeof(*counters));
  if (!counters) CS_TRY(st, cs_no_memory("counters", (size_t)n * sizeof(*counters)), done);
  CS_TRY(st, count_schedule(schedule, &request, counters, &counted), done);
  if (counted != n) {
    CS_FAIL(st, done, CS_CODE_DEVICE, "counters: %d kernels counted; the schedule has %d", counted,
            n);
  }
  for (int i = 0; i < n && i < capacity; i++) {
    snprintf(out[i].name, sizeof(out[i].name), "%s", kernels[i].name);
    out[i].counters = counters[i];
  }
  *count_out = n;
done:
  free(kernels);
  free(counters);
  return st;
}

cs_status cs_schedule_counters_whole(cs_schedule *schedule, cs_counters *out) {
  CS_RETURN_IF_ERROR(cs_cuda_enter(schedule->backend));
  cs_range_request request = {.max_ranges = 1, .work = run_as_it_is};
  int n = 0;
  CS_RETURN_IF_ERROR(count_schedule(schedule, &request, out, &n));
  if (n == 1) return CS_OK;
  return cs_error(CS_CODE_DEVICE, "counters: %d ranges for one run", n);
}

/* ---- Permission ---- */

static cs_status spin_a_little(void *user) {
  (void)user;
  CS_RETURN_IF_ERROR(cs_cuda_spin_launch(5.0, NULL));
  return cs_cuda_status(cudaStreamSynchronize(NULL), "running a kernel");
}

cs_status cs_cuda_counters_permitted(int index) {
  cs_cuda_driver driver;
  cs_counters counters;
  int n = 0;
  cs_metric_set metrics = {0};
  cs_range_request request = {
      .device = index, .max_ranges = 1, .work = spin_a_little, .metrics = &metrics};
  CS_RETURN_IF_ERROR(cs_cuda_status(cudaSetDevice(index), "selecting CUDA device %d", index));
  CS_RETURN_IF_ERROR(cs_cuda_driver_load(&driver));
  CS_RETURN_IF_ERROR(cs_cuda_context(&driver, &request.context));
  cs_status st = count(&request, &counters, &n);
  cs_metric_set_clear(&metrics);
  return st;
}
