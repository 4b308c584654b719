#include <stdlib.h>
#include <string.h>

#include "runtime/upload.h"

/* ---- Prepared candidates: one for each distinct (operation, candidate) ---- */

typedef struct prepare_job {
  const cs_op_desc *desc;
  const cs_candidate *candidate;
  const char *task_name;
  uint64_t key;
} prepare_job;

typedef struct prepare_work {
  cs_backend *backend;
  prepare_job *jobs;
  cs_exec **execs;
  cs_status *refused; /* per job: BAD_INPUT, there is no such candidate */
} prepare_work;

static cs_status prepare_one(void *user, int64_t index, int worker) {
  (void)worker;
  prepare_work *work = user;
  prepare_job *job = &work->jobs[index];
  cs_status st = cs_annotate(
      work->backend->vtable->prepare(work->backend, job->desc, job->candidate, &work->execs[index]),
      "%s, candidate %s: ", job->task_name, job->candidate->id);
  if (cs_status_code(st) != CS_CODE_BAD_INPUT) return st;
  work->refused[index] = st;
  return CS_OK;
}

static cs_status workspace_grown(const cs_program *program, const cs_plan_task *planned,
                                 int64_t wanted) {
  return cs_error(CS_CODE_INTERNAL, "%s: candidate %s wants %lld bytes of workspace, planned %lld",
                  program->tasks[planned->task].name, planned->candidate.id, (long long)wanted,
                  (long long)planned->workspace_bytes);
}

/* Counts tasks without a candidate, or with one that wants more workspace; the error is of the
 * first one. */
static cs_status find_missing(const cs_program *program, const cs_plan *plan, cs_status *refused,
                              cs_realised *out) {
  const cs_backend_vtable *vtable = out->backend->vtable;
  cs_missing *missing = &out->missing;
  for (int p = 0; p < plan->n_tasks; p++) {
    const cs_plan_task *planned = &plan->tasks[p];
    const cs_exec *exec = out->execs[out->exec_of[p]];
    bool grown = exec && vtable->exec_workspace(exec) > planned->workspace_bytes;
    if (exec && !grown) continue;
    if (missing->gone + missing->grown == 0) missing->first = p;
    missing->gone += !exec;
    missing->grown += grown;
  }
  if (missing->gone + missing->grown == 0) return CS_OK;
  const cs_plan_task *first = &plan->tasks[missing->first];
  int e = out->exec_of[missing->first];
  if (!out->execs[e]) {
    cs_status st = refused[e];
    refused[e] = CS_OK;
    return st;
  }
  return workspace_grown(program, first, vtable->exec_workspace(out->execs[e]));
}

static cs_status job_key(const cs_op_desc *desc, const cs_candidate *candidate, uint64_t *key) {
  char *signature = NULL;
  CS_RETURN_IF_ERROR(cs_op_signature(desc, &signature));
  *key = cs_hash_string(cs_hash_string(CS_HASH_SEED, signature), candidate->id);
  free(signature);
  return CS_OK;
}

static cs_status prepare_all(const cs_program *program, const cs_plan *plan, cs_realised *out) {
  cs_status st = CS_OK;
  prepare_work work = {.backend = out->backend};
  work.jobs = cs_calloc((size_t)plan->n_tasks, sizeof *work.jobs);
  out->exec_of = cs_calloc((size_t)plan->n_tasks, sizeof *out->exec_of);
  out->execs = cs_calloc((size_t)plan->n_tasks, sizeof(cs_exec *));
  work.refused = cs_calloc((size_t)plan->n_tasks, sizeof *work.refused);
  if (!work.refused || !work.jobs || !out->exec_of || !out->execs) {
    st = cs_no_memory("prepared candidates", (size_t)plan->n_tasks);
    goto done;
  }
  for (int p = 0; p < plan->n_tasks; p++) {
    const cs_task *task = &program->tasks[plan->tasks[p].task];
    prepare_job job = {&task->desc, &plan->tasks[p].candidate, task->name, 0};
    CS_TRY(st, job_key(job.desc, job.candidate, &job.key), done);
    int e = 0;
    while (e < out->n_execs && work.jobs[e].key != job.key) e++;
    if (e == out->n_execs) work.jobs[out->n_execs++] = job;
    out->exec_of[p] = e;
  }
  work.execs = out->execs;
  st = cs_parallel_stage("preparing", "candidates", out->n_execs,
                         out->backend->vtable->info(out->backend)->prepare_threads, prepare_one,
                         &work);
  if (st == CS_OK) st = find_missing(program, plan, work.refused, out);
done:
  for (int e = 0; work.refused && e < out->n_execs; e++) cs_status_free(work.refused[e]);
  free(work.refused);
  free(work.jobs);
  return st;
}

/* ---- Arena, launches, schedule ---- */

void *cs_realised_tensor(const cs_realised *realised, const cs_program *program,
                         const cs_plan *plan, int tensor) {
  const cs_tensor *t = &program->tensors[tensor];
  return (char *)realised->arena + plan->buffer_offsets[t->buffer] + t->offset;
}

static cs_status count_kernels(cs_realised *realised) {
  const cs_backend_vtable *vtable = realised->backend->vtable;
  realised->kernels = realised->n_launches;
  if (!vtable->schedule_kernels) return CS_OK;
  return vtable->schedule_kernels(realised->schedule, NULL, 0, &realised->kernels);
}

cs_status cs_realised_reschedule(cs_realised *realised, const cs_plan *plan) {
  const cs_backend_vtable *vtable = realised->backend->vtable;
  if (realised->schedule) vtable->schedule_destroy(realised->schedule);
  realised->schedule = NULL;
  cs_stream_set streams = {.n = plan->n_streams,
                           .n_parts = plan->n_parts,
                           .part_of = plan->stream_part,
                           .early = true,
                           .hints = plan->hints,
                           .beside = realised->beside};
  memcpy(streams.parts, plan->parts, sizeof streams.parts);
  CS_RETURN_IF_ERROR(vtable->schedule_create(realised->backend, realised->launches,
                                             realised->n_launches, &streams, !realised->no_graph,
                                             &realised->schedule));
  return count_kernels(realised);
}

static void *weights_of(const cs_realised *realised, int position) {
  if (realised->weights_at) return realised->weights_at[position];
  return realised->weights ? (char *)realised->weights + realised->weight_offset[position] : NULL;
}

cs_status cs_realise_launches(const cs_program *program, const cs_plan *plan, cs_realised *out) {
  const cs_backend_vtable *vtable = out->backend->vtable;
  out->arena_bytes = plan->arena_bytes;
  out->launches = cs_calloc((size_t)plan->n_tasks, sizeof *out->launches);
  if (!out->launches) return cs_no_memory("launches", (size_t)plan->n_tasks);
  out->n_launches = plan->n_tasks;
  for (int p = 0; p < plan->n_tasks; p++) {
    const cs_plan_task *planned = &plan->tasks[p];
    const cs_task *task = &program->tasks[planned->task];
    cs_launch *launch = &out->launches[p];
    *launch = (cs_launch){.exec = out->execs[out->exec_of[p]],
                          .name = task->name,
                          .output = cs_realised_tensor(out, program, plan, task->output),
                          .weights = weights_of(out, p),
                          .workspace = planned->workspace_bytes
                                           ? (char *)out->arena + planned->workspace_offset
                                           : NULL,
                          .stream = planned->stream,
                          .n_waits = planned->n_waits,
                          .waits = planned->waits,
                          .merged = planned->merged,
                          .priority = planned->priority,
                          .late = planned->late};
    for (int i = 0; i < task->desc.n_inputs; i++) {
      launch->inputs[i] = cs_realised_tensor(out, program, plan, task->inputs[i]);
    }
    if (vtable->exec_workspace(launch->exec) > planned->workspace_bytes) {
      return workspace_grown(program, planned, vtable->exec_workspace(launch->exec));
    }
  }
  return cs_realised_reschedule(out, plan);
}

static cs_status build_schedule(const cs_program *program, const cs_plan *plan, cs_realised *out) {
  const cs_backend_vtable *vtable = out->backend->vtable;
  CS_RETURN_IF_ERROR(
      cs_annotate(vtable->allocate(out->backend, plan->arena_bytes, &out->arena), "arena: "));
  CS_RETURN_IF_ERROR(vtable->fill(out->backend, out->arena, 0, plan->arena_bytes));
  return cs_realise_launches(program, plan, out);
}

cs_status cs_realise(cs_backend *backend, const cs_program *program, const cs_plan *plan,
                     const cs_params *params, bool no_graph, cs_realised *out) {
  memset(out, 0, sizeof *out);
  out->backend = backend;
  out->no_graph = no_graph;
  cs_status st = prepare_all(program, plan, out);
  cs_log(&backend->logger, CS_LOG_DEBUG, "%d candidates prepared", out->n_execs);
  double started = cs_now_seconds();
  cs_weights weights = {.program = program, .plan = plan, .params = params};
  if (st == CS_OK) st = cs_upload_weights(&weights, out);
  out->uploading.all = cs_now_seconds() - started;
  cs_log(&backend->logger, CS_LOG_DEBUG, "%lld bytes of weights uploaded",
         (long long)out->weights_bytes);
  if (st == CS_OK) st = build_schedule(program, plan, out);
  cs_log(&backend->logger, CS_LOG_DEBUG, "schedule of %d launches realised", out->n_launches);
  if (st == CS_OK) return CS_OK;
  cs_missing missing = out->missing;
  cs_realised_free(out);
  out->missing = missing;
  return st;
}

static cs_status realise_again(const cs_realised *from, const cs_program *program,
                               const cs_plan *from_plan, const cs_plan *plan, bool beside,
                               cs_realised *out) {
  memset(out, 0, sizeof *out);
  out->backend = from->backend;
  out->borrowed = true;
  out->beside = beside;
  out->no_graph = from->no_graph;
  out->execs = from->execs;
  out->n_execs = from->n_execs;
  out->weights = from->weights;
  out->weights_bytes = from->weights_bytes;
  cs_status st = CS_OK;
  int *position_of = cs_calloc((size_t)plan->n_tasks, sizeof *position_of);
  out->exec_of = cs_calloc((size_t)plan->n_tasks, sizeof *out->exec_of);
  out->weight_offset = cs_calloc((size_t)plan->n_tasks, sizeof *out->weight_offset);
  if (!position_of || !out->exec_of || !out->weight_offset) {
    st = cs_no_memory("a second schedule", (size_t)plan->n_tasks);
    goto done;
  }
  for (int p = 0; p < from_plan->n_tasks; p++) position_of[from_plan->tasks[p].task] = p;
  for (int p = 0; p < plan->n_tasks; p++) {
    out->exec_of[p] = from->exec_of[position_of[plan->tasks[p].task]];
    out->weight_offset[p] = from->weight_offset[position_of[plan->tasks[p].task]];
  }
  st = build_schedule(program, plan, out);
done:
  free(position_of);
  if (st != CS_OK) cs_realised_free(out);
  return st;
}

cs_status cs_realise_again(const cs_realised *from, const cs_program *program,
                           const cs_plan *from_plan, const cs_plan *plan, cs_realised *out) {
  return realise_again(from, program, from_plan, plan, false, out);
}

cs_status cs_realise_beside(const cs_realised *from, const cs_program *program, const cs_plan *plan,
                            cs_realised *out) {
  return realise_again(from, program, plan, plan, true, out);
}

void cs_realised_free(cs_realised *realised) {
  if (!realised->backend) return;
  const cs_backend_vtable *vtable = realised->backend->vtable;
  if (realised->schedule) vtable->schedule_destroy(realised->schedule);
  if (!realised->borrowed) {
    for (int e = 0; e < realised->n_execs; e++) {
      if (realised->execs[e]) vtable->exec_destroy(realised->execs[e]);
    }
    free(realised->execs);
    if (realised->weights) vtable->release(realised->backend, realised->weights);
  }
  if (realised->arena) vtable->release(realised->backend, realised->arena);
  free(realised->exec_of);
  free(realised->weight_offset);
  free(realised->launches);
  memset(realised, 0, sizeof *realised);
}
