#include "backend/cuda/schedule.h"
#include "base/ranges.h"

static void release_slots(cs_schedule *s, cs_cudnn_slot **slots) {
  if (s->beside) return; /* cs_schedule_destroy does */
  for (int i = 0; i < s->n_streams; i++) cs_cudnn_release(&s->backend->pool, slots[i]);
}

/* A cuDNN handle for every stream that runs cuDNN: scratch memory that a handle owns is never
 * shared by two streams, nor by two schedules where they run at the same time. */
static cs_status acquire_slots(cs_schedule *s, cs_cudnn_slot **slots) {
  for (int i = 0; i < s->n_streams; i++) {
    if (!s->stream_cudnn[i]) continue;
    slots[i] = s->handles[i];
    if (!slots[i]) CS_RETURN_IF_ERROR(cs_cudnn_acquire(&s->backend->pool, &slots[i]));
    if (s->beside) s->handles[i] = slots[i];
  }
  return CS_OK;
}

cs_status cs_cuda_wait_for(cudaStream_t stream, cudaEvent_t event) {
  return cs_cuda_status(cudaStreamWaitEvent(stream, event, 0), "making a stream wait");
}

cs_status cs_cuda_record(cudaEvent_t event, cudaStream_t stream) {
  return cs_cuda_status(cudaEventRecord(event, stream), "recording an event");
}

static cs_status fork_streams(cs_schedule *s) {
  if (!s->fork) return CS_OK;
  CS_RETURN_IF_ERROR(cs_cuda_record(s->fork, s->origin));
  for (int i = 0; i < s->n_streams; i++) {
    if (s->join[i]) CS_RETURN_IF_ERROR(cs_cuda_wait_for(s->streams[i], s->fork));
  }
  return CS_OK;
}

static cs_status join_streams(cs_schedule *s) {
  for (int i = 0; i < s->n_streams; i++) {
    if (!s->join[i]) continue;
    CS_RETURN_IF_ERROR(cs_cuda_record(s->join[i], s->streams[i]));
    CS_RETURN_IF_ERROR(cs_cuda_wait_for(s->origin, s->join[i]));
  }
  return CS_OK;
}

static cs_status issue_one(cs_schedule *s, int index, cs_cudnn_slot *slot) {
  const cs_bound *bound = &s->launches[index];
  const cs_launch *l = &bound->launch;
  cudaStream_t stream = s->streams[l->stream];
  for (int w = 0; w < l->n_waits; w++) {
    cudaEvent_t event = s->done[l->waits[w]];
    if (s->launches[l->waits[w]].launch.stream == l->stream) continue;
    CS_RETURN_IF_ERROR(cs_cuda_wait_for(stream, event));
  }
  if (l->merged < 0) cs_range_push(l->name);
  cs_status st = cs_bound_launch(bound, slot, stream);
  if (l->merged < 0) cs_range_pop();
  if (st != CS_OK) return st;
  return s->done[index] ? cs_cuda_record(s->done[index], stream) : CS_OK;
}

cs_status cs_schedule_issue(cs_schedule *schedule, cs_issued_fn issued, void *user) {
  cs_schedule *s = schedule;
  cs_status st = CS_OK;
  cs_cudnn_slot *slots[CS_CUDA_MAX_STREAMS] = {NULL};
  CS_TRY(st, acquire_slots(s, slots), done);
  CS_TRY(st, fork_streams(s), done);
  for (int i = 0; i < s->n_launches; i++) {
    int stream = s->launches[i].launch.stream;
    CS_TRY(st, issue_one(s, i, slots[stream]), done);
    if (issued) CS_TRY(st, issued(user, i, s->streams[stream]), done);
  }
  CS_TRY(st, join_streams(s), done);
done:
  release_slots(s, slots);
  return st;
}

cs_status cs_schedule_issue_serial(cs_schedule *schedule) {
  cs_schedule *s = schedule;
  cs_status st = CS_OK;
  cs_cudnn_slot *slots[CS_CUDA_MAX_STREAMS] = {NULL};
  CS_TRY(st, acquire_slots(s, slots), done);
  for (int i = 0; i < s->n_launches; i++) {
    int stream = s->launches[i].launch.stream;
    CS_TRY(st, cs_bound_launch(&s->launches[i], slots[stream], s->origin), done);
  }
done:
  release_slots(s, slots);
  return st;
}
