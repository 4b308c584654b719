#include "backend/cuda/schedule.h"

#include <stdlib.h>
#include <string.h>

/* Launch i into that of its leader, directly before it on the same stream. */
static cs_status join_launch(cs_schedule *s, int i) {
  const cs_launch *l = &s->launches[i].launch;
  const cs_launch *before = i > 0 ? &s->launches[i - 1].launch : NULL;
  if (!before || l->merged != (before->merged >= 0 ? before->merged : i - 1) ||
      l->stream != before->stream || l->n_waits > 0 || l->workspace) {
    return cs_error(CS_CODE_INTERNAL,
                    "%s: launch %d is merged with launch %d, wanted that of the launch before it, "
                    "on its stream, without waits or workspace",
                    l->name, i, l->merged);
  }
  return cs_bound_join(&s->launches[l->merged], &s->launches[i]);
}

static cs_status copy_launches(cs_schedule *s, const cs_launch *launches, int n) {
  int64_t n_waits = 0;
  for (int i = 0; i < n; i++) n_waits += launches[i].n_waits;
  s->launches = cs_calloc((size_t)cs_max_i64(n, 1), sizeof(*s->launches));
  s->waits = cs_calloc((size_t)cs_max_i64(n_waits, 1), sizeof(*s->waits));
  s->done = cs_calloc((size_t)cs_max_i64(n, 1), sizeof(cudaEvent_t));
  if (!s->launches || !s->waits || !s->done) return cs_no_memory("a schedule", (size_t)n);
  int *waits = s->waits;
  for (int i = 0; i < n; i++) {
    const cs_launch *l = &launches[i];
    if (l->stream < 0 || l->stream >= s->n_streams) {
      return cs_error(CS_CODE_INTERNAL, "%s: stream %d of %d", l->name, l->stream, s->n_streams);
    }
    for (int w = 0; w < l->n_waits; w++) {
      if (l->waits[w] < 0 || l->waits[w] >= i) {
        return cs_error(CS_CODE_INTERNAL, "%s: launch %d waits for launch %d", l->name, i,
                        l->waits[w]);
      }
    }
    CS_RETURN_IF_ERROR(cs_bound_create(l, &s->launches[i]));
    s->n_launches = i + 1;
    if (l->merged >= 0) CS_RETURN_IF_ERROR(join_launch(s, i));
    if (l->n_waits) memcpy(waits, l->waits, (size_t)l->n_waits * sizeof(*waits));
    s->launches[i].launch.waits = waits;
    waits += l->n_waits;
    s->stream_used[l->stream] = true;
    if (cs_bound_needs_cudnn(&s->launches[i])) s->stream_cudnn[l->stream] = true;
  }
  return CS_OK;
}

static cs_status create_event(cudaEvent_t *event) {
  if (*event) return CS_OK;
  return cs_cuda_status(cudaEventCreateWithFlags(event, cudaEventDisableTiming),
                        "creating an event");
}

static cs_status create_events(cs_schedule *s) {
  bool several = false;
  for (int i = 1; i < s->n_streams; i++) {
    if (!s->stream_used[i]) continue;
    several = true;
    CS_RETURN_IF_ERROR(create_event(&s->join[i]));
  }
  if (several) CS_RETURN_IF_ERROR(create_event(&s->fork));
  for (int i = 0; i < s->n_launches; i++) {
    const cs_launch *l = &s->launches[i].launch;
    for (int w = 0; w < l->n_waits; w++) {
      if (s->launches[l->waits[w]].launch.stream == l->stream) continue;
      CS_RETURN_IF_ERROR(create_event(&s->done[l->waits[w]]));
    }
  }
  return CS_OK;
}

/* Runs every launch once outside a capture: kernels are loaded, and handles allocate what they own,
 * when they are first used; and an error then names its launch. */
static cs_status warm_run(cs_schedule *s) {
  CS_RETURN_IF_ERROR(cs_schedule_issue_serial(s));
  return cs_schedule_synchronize(s);
}

static cs_status instantiate(cs_schedule *s) {
  CS_RETURN_IF_ERROR(cs_schedule_capture(s, &s->graph, &s->node_launch, &s->n_nodes));
  CS_RETURN_IF_ERROR(cs_cuda_status(cudaGraphInstantiate(&s->executable, s->graph, 0),
                                    "instantiating a CUDA graph of %d nodes", s->n_nodes));
  CS_RETURN_IF_ERROR(
      cs_cuda_status(cudaGraphUpload(s->executable, s->streams[0]), "uploading a CUDA graph"));
  return cs_schedule_synchronize(s);
}

cs_status cs_schedule_create(cs_backend *backend, const cs_launch *launches, int n, int n_streams,
                             bool use_graph, cs_schedule **out) {
  *out = NULL;
  cs_status st = CS_OK;
  if (n < 1 || n_streams < 1 || n_streams > CS_CUDA_MAX_STREAMS) {
    return cs_error(CS_CODE_INTERNAL, "a schedule of %d launches on %d streams (1 to %d)", n,
                    n_streams, CS_CUDA_MAX_STREAMS);
  }
  CS_RETURN_IF_ERROR(cs_cuda_enter(cs_cuda(backend)));
  cs_schedule *s = cs_calloc(1, sizeof(*s));
  if (!s) return cs_no_memory("a schedule", sizeof(*s));
  s->backend = cs_cuda(backend);
  s->n_streams = n_streams;
  CS_TRY(st, copy_launches(s, launches, n), done);
  s->stream_used[0] = true;
  for (int i = 0; i < n_streams; i++) {
    if (s->stream_used[i]) CS_TRY(st, cs_cuda_stream(s->backend, i, &s->streams[i]), done);
  }
  CS_TRY(st, create_events(s), done);
  CS_TRY(st, warm_run(s), done);
  if (use_graph) CS_TRY(st, instantiate(s), done);
  *out = s;
  s = NULL;
done:
  cs_schedule_destroy(s);
  return st;
}

void cs_schedule_destroy(cs_schedule *schedule) {
  if (!schedule) return;
  cs_schedule *s = schedule;
  cs_status_free(cs_cuda_enter(s->backend));
  if (s->streams[0]) (void)cudaStreamSynchronize(s->streams[0]);
  if (s->executable) (void)cudaGraphExecDestroy(s->executable);
  if (s->graph) (void)cudaGraphDestroy(s->graph);
  for (int i = 0; i < s->n_launches; i++) {
    cs_bound_clear(&s->launches[i]);
    if (s->done[i]) (void)cudaEventDestroy(s->done[i]);
  }
  for (int i = 0; i < s->n_streams; i++) {
    if (s->join[i]) (void)cudaEventDestroy(s->join[i]);
  }
  if (s->fork) (void)cudaEventDestroy(s->fork);
  free(s->launches);
  free(s->waits);
  free(s->done);
  free(s->node_launch);
  free(s);
}

cs_status cs_schedule_enqueue(cs_schedule *schedule) {
  if (!schedule->executable) return cs_schedule_issue(schedule, NULL, NULL);
  return cs_cuda_status(cudaGraphLaunch(schedule->executable, schedule->streams[0]),
                        "launching a CUDA graph");
}

cs_status cs_schedule_synchronize(cs_schedule *schedule) {
  return cs_cuda_status(cudaStreamSynchronize(schedule->streams[0]), "running %d launches",
                        schedule->n_launches);
}

cs_status cs_schedule_run(cs_schedule *schedule) {
  CS_RETURN_IF_ERROR(cs_cuda_enter(schedule->backend));
  CS_RETURN_IF_ERROR(cs_schedule_enqueue(schedule));
  return cs_schedule_synchronize(schedule);
}

cs_status cs_schedule_run_on(cs_schedule *schedule, void *native_stream) {
  cudaStream_t native = native_stream;
  CS_RETURN_IF_ERROR(cs_cuda_enter(schedule->backend));
  if (schedule->executable) {
    return cs_cuda_status(cudaGraphLaunch(schedule->executable, native), "launching a CUDA graph");
  }
  cudaEvent_t event = schedule->backend->stop;
  CS_RETURN_IF_ERROR(cs_cuda_status(cudaEventRecord(event, native), "recording an event"));
  CS_RETURN_IF_ERROR(cs_cuda_status(cudaStreamWaitEvent(schedule->streams[0], event, 0),
                                    "waiting for the caller's stream"));
  CS_RETURN_IF_ERROR(cs_schedule_issue(schedule, NULL, NULL));
  CS_RETURN_IF_ERROR(
      cs_cuda_status(cudaEventRecord(event, schedule->streams[0]), "recording an event"));
  return cs_cuda_status(cudaStreamWaitEvent(native, event, 0), "making the caller's stream wait");
}
