#include "profiler/profiling_operations.h"

#include <stdlib.h>
#include <string.h>

cs_wanted cs_profiling_wanted(const cs_profiling *profiling, cs_measure_report *report) {
  return (cs_wanted){.profile = profiling->profile,
                     .backend = profiling->backend,
                     .options = profiling->options,
                     .logger = profiling->logger,
                     .report = report};
}

cs_status cs_distinct_ops(const cs_profiling *profiling, cs_distinct_op **out, int *n) {
  cs_status st = CS_OK;
  const cs_program *program = profiling->program;
  json_t *seen = json_object();
  int count = 0;
  char *signature = NULL;
  cs_distinct_op *ops = cs_calloc((size_t)program->n_tasks, sizeof *ops);
  if (!ops || !seen) {
    st = cs_no_memory("operations", (size_t)program->n_tasks * sizeof *ops);
    goto done;
  }
  for (int t = 0; t < program->n_tasks; t++) {
    if (profiling->tasks && !profiling->tasks[t]) continue;
    CS_TRY(st, cs_op_signature(&program->tasks[t].desc, &signature), done);
    if (!json_object_get(seen, signature)) {
      if (json_object_set_new(seen, signature, json_true()) != 0) {
        st = cs_no_memory("signatures", strlen(signature));
        goto done;
      }
      ops[count++] = (cs_distinct_op){t, signature};
      signature = NULL;
    }
    free(signature);
    signature = NULL;
  }
  *out = ops;
  *n = count;
  ops = NULL;
done:
  free(signature);
  cs_distinct_ops_free(ops, count);
  json_decref(seen);
  return st;
}

void cs_distinct_ops_free(cs_distinct_op *operations, int n) {
  for (int i = 0; operations && i < n; i++) free(operations[i].signature);
  free(operations);
}

cs_status cs_operation_again(const cs_profiling *profiling, int task,
                             const cs_candidate *const *candidates, int n, cs_operation *out) {
  cs_status st = CS_OK;
  const cs_task *from = &profiling->program->tasks[task];
  *out = (cs_operation){.desc = &from->desc, .name = from->name};
  CS_TRY(st, cs_op_signature(&from->desc, &out->signature), done);
  out->trials = cs_calloc((size_t)n, sizeof *out->trials);
  if (!out->trials) {
    st = cs_no_memory("candidates", (size_t)n * sizeof *out->trials);
    goto done;
  }
  for (int i = 0; i < n; i++) {
    out->trials[i].pool = -1;
    out->n_trials = i + 1;
    CS_TRY(st, cs_candidate_copy(candidates[i], &out->trials[i].candidate), done);
  }
done:
  if (st != CS_OK) cs_operation_clear(profiling->backend, out);
  return st;
}

cs_status cs_operation_buffers(const cs_measuring *measuring, cs_operation *operation,
                               cs_op_buffers *out) {
  cs_status st = CS_OK;
  CS_RETURN_IF_ERROR(cs_op_buffers_create(measuring, operation, out));
  for (int i = 0; i < operation->n_trials; i++) {
    cs_trial *trial = &operation->trials[i];
    if (!trial->exec || trial->rejected) continue;
    CS_TRY(st, cs_op_buffers_pack(out, trial), done);
  }
done:
  if (st != CS_OK) cs_op_buffers_destroy(out);
  return cs_annotate(st, "%s: ", operation->name);
}
