/* Candidates that the profile has and the backend does not have (any more), or not as they were
 * recorded: their operations are measured anew, whereupon what is gone is rejected. */
#include <stdlib.h>
#include <string.h>

#include "profiler/measure_session.h"
#include "runtime/planning.h"

/* Distinct operations of a program, one of whose choices is gone. */
typedef struct gone_operations {
  const cs_op_desc **descs;
  const char **names; /* of a task that has it */
  uint64_t *seen;     /* operations looked at */
  int n, n_seen;
  const char *candidate; /* the first one that is gone */
} gone_operations;

static cs_status create(int n_tasks, gone_operations *out) {
  size_t n = (size_t)n_tasks;
  *out = (gone_operations){.descs = cs_calloc(n, sizeof *out->descs),
                           .names = cs_calloc(n, sizeof *out->names),
                           .seen = cs_calloc(n, sizeof *out->seen)};
  return out->descs && out->names && out->seen ? CS_OK
                                               : cs_no_memory("operations", n * sizeof *out->descs);
}

static void release(gone_operations *gone) {
  free(gone->descs);
  free(gone->names);
  free(gone->seen);
}

/* Refused as unknown, or with more workspace than was recorded. */
static cs_status is_gone(cs_backend *backend, const cs_op_desc *desc, const cs_candidate *candidate,
                         bool *gone) {
  cs_exec *exec = NULL;
  cs_status st = backend->vtable->prepare(backend, desc, candidate, &exec);
  *gone = cs_status_code(st) == CS_CODE_BAD_INPUT;
  if (exec) {
    *gone = backend->vtable->exec_workspace(exec) > candidate->workspace_bytes;
    backend->vtable->exec_destroy(exec);
  }
  if (cs_status_code(st) == CS_CODE_NO_MEMORY) return st;
  cs_status_free(st);
  return CS_OK;
}

static cs_status look_at(cs_backend *backend, const cs_task *task, const cs_task_choices *choices,
                         gone_operations *gone) {
  char *signature = NULL;
  bool is = false;
  CS_RETURN_IF_ERROR(cs_op_signature(&task->desc, &signature));
  uint64_t key = cs_hash_string(CS_HASH_SEED, signature);
  free(signature);
  for (int i = 0; i < gone->n_seen; i++) {
    if (gone->seen[i] == key) return CS_OK;
  }
  gone->seen[gone->n_seen++] = key;
  for (int i = 0; i < choices->n && !is; i++) {
    const cs_candidate *candidate = choices->choices[i].candidate;
    CS_RETURN_IF_ERROR(is_gone(backend, &task->desc, candidate, &is));
    if (is && gone->n == 0) gone->candidate = candidate->id;
  }
  if (!is) return CS_OK;
  gone->descs[gone->n] = &task->desc;
  gone->names[gone->n++] = task->name;
  return CS_OK;
}

/* "2 operations, the first of them conv1's, have a recorded candidate that is not there as recorded
 * (ID)". */
static cs_status tell(const gone_operations *gone, char **out) {
  cs_strbuf text = {0};
  cs_strbuf_printf(&text,
                   "%d operation%s, the first of them %s's, %s a recorded candidate that is not "
                   "there as recorded (%s)",
                   gone->n, gone->n == 1 ? "" : "s", gone->names[0], gone->n == 1 ? "has" : "have",
                   gone->candidate);
  return cs_strbuf_take(&text, out);
}

static cs_status measure(cs_session *session, const gone_operations *gone, int threads) {
  const cs_session_options *options = &session->settings.options;
  const cs_logger *logger = &session->device->logger;
  cs_measure_options measure = {.workspace_limit = options->workspace_limit,
                                .deterministic = options->deterministic,
                                .refresh = true,
                                .threads = threads,
                                .cancelled = options->cancelled,
                                .user = options->cancelled_user};
  cs_measure_report report = {0};
  cs_wanted wanted = {.profile = session->device->profile,
                      .backend = session->device->backend,
                      .options = &measure,
                      .logger = logger,
                      .report = &report};
  char *told = NULL;
  CS_RETURN_IF_ERROR(tell(gone, &told));
  cs_status st = CS_OK;
  if (options->frozen) {
    st = cs_error(CS_CODE_NOT_FOUND, "%s, and measuring is forbidden (frozen)", told);
  } else {
    bool first = session->remeasured.operations == 0; /* then come those of other layouts */
    cs_log(logger, first ? CS_LOG_WARNING : CS_LOG_INFO, "%s; measuring anew", told);
    st = cs_measure_wanted(&wanted, gone->descs, gone->names, gone->n);
  }
  free(told);
  CS_RETURN_IF_ERROR(st);
  cs_measure_report_add(&report, &session->remeasured);
  return CS_OK;
}

cs_status cs_remeasure_gone(cs_session *session, cs_status failure, const cs_program *program,
                            const cs_task_choices *choices, int threads) {
  cs_code code = cs_status_code(failure);
  gone_operations gone = {0};
  if ((code != CS_CODE_BAD_INPUT && code != CS_CODE_INTERNAL) || !choices ||
      cs_device_is_simulated(session->device)) {
    return failure;
  }
  cs_status st = create(program->n_tasks, &gone);
  for (int t = 0; t < program->n_tasks && st == CS_OK; t++) {
    st = look_at(session->device->backend, &program->tasks[t], &choices[t], &gone);
  }
  if (st == CS_OK && gone.n > 0) st = measure(session, &gone, threads);
  release(&gone);
  if (st == CS_OK) return failure;
  cs_status_free(failure);
  return st;
}
