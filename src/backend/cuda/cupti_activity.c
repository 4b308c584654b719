#include "backend/cuda/cupti_activity.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES ((size_t)1 << 20)
#define FORCED 1u /* flush buffers with unfinished records too */

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
#else
typedef CUpti_ActivityKernel9 kernel_record;
#endif

typedef struct timed_kernel {
  cs_kernel_trace kernel;
  uint64_t start_ns, end_ns;
} timed_kernel;

/* CUPTI's callbacks get no pointer of ours and may come from its own thread, so that what they fill
 * belongs to the process. `cupti` is NULL while nobody traces. */
static struct {
  pthread_mutex_t lock;
  const cs_cupti *cupti;
  uint32_t context;
  bool any_context;
  timed_kernel *items;
  size_t n, capacity;
  int untimed;
  cs_status failure; /* the first */
} sink = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Buffers ---- */

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *size, size_t *max_records) {
  *buffer = aligned_alloc(ACTIVITY_RECORD_ALIGNMENT, BUFFER_BYTES);
  *size = *buffer ? BUFFER_BYTES : 0;
  *max_records = 0;
}

static void describe(const kernel_record *record, cs_kernel_trace *out) {
  memset(out, 0, sizeof(*out));
  snprintf(out->name, sizeof(out->name), "%s", record->name ? record->name : "");
  out->launch = -1;
  const int grid[3] = {record->gridX, record->gridY, record->gridZ};
  const int block[3] = {record->blockX, record->blockY, record->blockZ};
  memcpy(out->grid, grid, sizeof(grid));
  memcpy(out->block, block, sizeof(block));
  out->stream = (int)(record->streamId & 0xffff);
  if (record->contextId != sink.context) {
    out->stream |= (int)((record->contextId & 0x7fff) << 16); /* contexts number theirs alike */
  }
  out->registers = record->registersPerThread;
  out->static_shared = record->staticSharedMemory;
  out->dynamic_shared = record->dynamicSharedMemory;
  out->local_bytes = (int)record->localMemoryPerThread;
}

static cs_status keep(const kernel_record *record) {
  if (record->contextId != sink.context && !sink.any_context) return CS_OK;
  if (record->start == 0 || record->end <= record->start) {
    sink.untimed++;
    return CS_OK;
  }
  CS_RETURN_IF_ERROR(cs_grow(&sink.items, &sink.capacity, sink.n + 1, sizeof(*sink.items)));
  timed_kernel *item = &sink.items[sink.n++];
  describe(record, &item->kernel);
  item->start_ns = record->start;
  item->end_ns = record->end;
  return CS_OK;
}

static cs_status read_buffer(uint8_t *buffer, size_t bytes) {
  CUpti_Activity *record = NULL;
  for (;;) {
    CUptiResult result = sink.cupti->activity_get_next_record(buffer, bytes, &record);
    /* The end, or a record that was never finished: nothing follows it. */
    if (result == CUPTI_ERROR_MAX_LIMIT_REACHED || result == CUPTI_ERROR_INVALID_KIND) {
      return CS_OK;
    }
    CS_RETURN_IF_ERROR(cs_cupti_status(result, "trace", "reading activity records"));
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      CS_RETURN_IF_ERROR(keep((const kernel_record *)(const void *)record));
    }
  }
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer,
                                      size_t size, size_t valid) {
  (void)context;
  (void)stream;
  (void)size;
  pthread_mutex_lock(&sink.lock);
  if (sink.cupti && buffer && valid > 0 && !sink.failure) sink.failure = read_buffer(buffer, valid);
  pthread_mutex_unlock(&sink.lock);
  free(buffer);
}

/* ---- One trace ---- */

static void empty_sink(const cs_cupti *cupti, uint32_t context, bool any_context) {
  pthread_mutex_lock(&sink.lock);
  sink.cupti = cupti;
  sink.context = context;
  sink.any_context = any_context;
  sink.n = 0;
  sink.untimed = 0;
  pthread_mutex_unlock(&sink.lock);
}

static void close_sink(void) {
  pthread_mutex_lock(&sink.lock);
  free(sink.items);
  cs_status_free(sink.failure);
  sink.cupti = NULL;
  sink.items = NULL;
  sink.n = sink.capacity = 0;
  sink.failure = CS_OK;
  pthread_mutex_unlock(&sink.lock);
}

static int by_start(const void *a, const void *b) {
  const timed_kernel *x = a, *y = b;
  if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
  return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

static cs_status take(cs_activity_result *out) {
  cs_status st = CS_OK;
  pthread_mutex_lock(&sink.lock);
  if (sink.failure) {
    st = sink.failure;
    sink.failure = CS_OK;
    goto done;
  }
  out->untimed = sink.untimed;
  if (sink.n == 0) goto done;
  qsort(sink.items, sink.n, sizeof(*sink.items), by_start);
  out->kernels = cs_calloc(sink.n, sizeof(*out->kernels));
  if (!out->kernels) CS_TRY(st, cs_no_memory("a trace", sink.n * sizeof(*out->kernels)), done);
  uint64_t origin = sink.items[0].start_ns;
  for (size_t i = 0; i < sink.n; i++) {
    out->kernels[i] = sink.items[i].kernel;
    out->kernels[i].start_us = (double)(sink.items[i].start_ns - origin) * 1e-3;
    out->kernels[i].end_us = (double)(sink.items[i].end_ns - origin) * 1e-3;
  }
  out->n = (int)sink.n;
done:
  pthread_mutex_unlock(&sink.lock);
  return st;
}

static cs_status run_and_flush(const cs_cupti *cupti, const cs_activity_request *request) {
  CS_RETURN_IF_ERROR(request->work(request->user));
  return cs_cupti_status(cupti->activity_flush_all(FORCED), "trace", "flushing activity records");
}

cs_status cs_cupti_trace(const cs_cupti *cupti, const cs_activity_request *request,
                         cs_activity_result *out) {
  memset(out, 0, sizeof(*out));
  cs_status st = CS_OK;
  uint32_t context = 0;
  bool enabled = false;
  CS_TRY(st,
         cs_cupti_status(cupti->activity_register_callbacks(buffer_requested, buffer_completed),
                         "trace", "registering for activity records"),
         done);
  CS_TRY(st,
         cs_cupti_status(cupti->activity_enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "trace",
                         "enabling activity records"),
         done);
  enabled = true;
  CS_TRY(st,
         cs_cupti_status(cupti->get_context_id(request->context, &context), "trace",
                         "asking for a context's number"),
         done);
  for (int run = 0; run < 2; run++) {
    empty_sink(cupti, context, request->any_context);
    CS_TRY(st, run_and_flush(cupti, request), done);
  }
  CS_TRY(st, take(out), done);
done:
  if (enabled) {
    (void)cupti->activity_disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    (void)cupti->activity_flush_all(FORCED); /* gives buffers back that hold nothing of ours */
  }
  close_sink();
  return st;
}
