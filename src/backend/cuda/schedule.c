#include "backend/cuda/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cuda/split.h"
#include "profiler/partition.h"

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
    s->urgent = s->urgent || l->priority != 0;
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
  for (int i = 0; i < s->n_streams; i++) {
    if (!s->stream_used[i] || s->streams[i] == s->origin) continue;
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
  if (s->split) CS_RETURN_IF_ERROR(cs_schedule_issue(s, NULL, NULL)); /* in the parts, too */
  return cs_schedule_synchronize(s);
}

/* ---- Streams ---- */

/* Whether the stream itself must have the priority: there are no nodes to have it without a graph.
 */
static cs_status stream_is_urgent(const cs_schedule *s, int stream, bool *out) {
  const cs_launch *first = NULL;
  *out = false;
  for (int i = 0; i < s->n_launches; i++) {
    const cs_launch *l = &s->launches[i].launch;
    if (l->stream != stream) continue;
    if (!first) first = l;
    if (l->priority != first->priority) {
      return cs_error(CS_CODE_BAD_INPUT,
                      "stream %d: %s has priority %d and %s %d; without a CUDA graph, wanted: one "
                      "priority for all launches of a stream",
                      stream, first->name, first->priority, l->name, l->priority);
    }
  }
  *out = first && first->priority != 0;
  return CS_OK;
}

static cs_status make_streams(cs_schedule *s, const cs_stream_set *streams, bool use_graph) {
  cs_cuda_split *split = NULL;
  if (streams->n_parts > 0) CS_RETURN_IF_ERROR(cs_cuda_split_find(s->backend, streams, &split));
  for (int i = 0; i < s->n_streams; i++) {
    int part = cs_stream_part(streams, i);
    bool urgent = false;
    if (!s->stream_used[i]) continue;
    if (!use_graph) CS_RETURN_IF_ERROR(stream_is_urgent(s, i, &urgent));
    if (part >= 0) {
      s->split = true;
      CS_RETURN_IF_ERROR(cs_cuda_split_stream(s->backend, split, part, i, urgent, &s->streams[i]));
    } else {
      CS_RETURN_IF_ERROR(cs_cuda_stream(s->backend, i, urgent, &s->streams[i]));
    }
  }
  return cs_cuda_stream(s->backend, 0, false, &s->origin);
}

/* ---- Create, destroy ---- */

cs_status cs_schedule_build(cs_schedule *schedule, cudaGraph_t *graph, int **node_launch,
                            int *n_nodes, cudaGraphExec_t *out) {
  CS_RETURN_IF_ERROR(cs_schedule_capture(schedule, graph, node_launch, n_nodes));
  if (schedule->early && !schedule->split) {
    CS_RETURN_IF_ERROR(cs_schedule_begin_early(schedule, *graph, *node_launch, *n_nodes));
  }
  if (schedule->hints && !schedule->split) {
    CS_RETURN_IF_ERROR(cs_schedule_add_hints(schedule, *graph, *node_launch, *n_nodes));
  }
  return cs_schedule_instantiate(schedule, *graph, *node_launch, *n_nodes, out);
}

static cs_status instantiate(cs_schedule *s) {
  CS_RETURN_IF_ERROR(cs_schedule_build(s, &s->graph, &s->node_launch, &s->n_nodes, &s->executable));
  CS_RETURN_IF_ERROR(
      cs_cuda_status(cudaGraphUpload(s->executable, s->origin), "uploading a CUDA graph"));
  return cs_schedule_synchronize(s);
}

cs_status cs_schedule_create(cs_backend *backend, const cs_launch *launches, int n,
                             const cs_stream_set *streams, bool use_graph, cs_schedule **out) {
  *out = NULL;
  cs_status st = CS_OK;
  if (n < 1 || streams->n > CS_CUDA_MAX_STREAMS) {
    return cs_error(CS_CODE_INTERNAL, "a schedule of %d launches on %d streams (1 to %d)", n,
                    streams->n, CS_CUDA_MAX_STREAMS);
  }
  CS_RETURN_IF_ERROR(cs_stream_set_check(streams, &cs_cuda(backend)->info));
  CS_RETURN_IF_ERROR(cs_cuda_enter(cs_cuda(backend)));
  cs_schedule *s = cs_calloc(1, sizeof(*s));
  if (!s) return cs_no_memory("a schedule", sizeof(*s));
  s->backend = cs_cuda(backend);
  s->n_streams = streams->n;
  s->early = streams->early && s->backend->info.compute_capability >= CS_CUDA_EARLY_CAPABILITY;
  s->hints = streams->hints && s->backend->info.hints;
  s->beside = streams->beside;
  CS_TRY(st, copy_launches(s, launches, n), done);
  if (use_graph && s->urgent && streams->n_parts > 0) {
    CS_FAIL(
        st, done, CS_CODE_BAD_INPUT,
        "launches with priority in a graph on a device that is split: CUDA gives kernel nodes on "
        "parts no priority; wanted one or the other");
  }
  CS_TRY(st, make_streams(s, streams, use_graph), done);
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
  if (s->origin) (void)cudaStreamSynchronize(s->origin);
  if (s->executable) (void)cudaGraphExecDestroy(s->executable);
  if (s->graph) (void)cudaGraphDestroy(s->graph);
  for (int i = 0; i < s->n_launches; i++) {
    cs_bound_clear(&s->launches[i]);
    if (s->done[i]) (void)cudaEventDestroy(s->done[i]);
  }
  for (int i = 0; i < s->n_streams; i++) {
    if (s->join[i]) (void)cudaEventDestroy(s->join[i]);
    cs_cudnn_release(&s->backend->pool, s->handles[i]);
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
  return cs_cuda_status(cudaGraphLaunch(schedule->executable, schedule->origin),
                        "launching a CUDA graph");
}

cs_status cs_schedule_synchronize(cs_schedule *schedule) {
  return cs_cuda_status(cudaStreamSynchronize(schedule->origin), "running %d launches",
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
  CS_RETURN_IF_ERROR(cs_cuda_status(cudaStreamWaitEvent(schedule->origin, event, 0),
                                    "waiting for the caller's stream"));
  CS_RETURN_IF_ERROR(cs_schedule_issue(schedule, NULL, NULL));
  CS_RETURN_IF_ERROR(
      cs_cuda_status(cudaEventRecord(event, schedule->origin), "recording an event"));
  return cs_cuda_status(cudaStreamWaitEvent(native, event, 0), "making the caller's stream wait");
}
