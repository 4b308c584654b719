/* What was recorded of an operation: its layouts, its candidates, their kernels. */
#include <stdlib.h>
#include <string.h>

#include "backend/sim/sim.h"

struct cs_exec {
  int64_t workspace_bytes;
  cs_sm_operation operation;
  const cs_candidate *candidate; /* this and the kernels are the profile's */
  const cs_kernel_profile *kernels;
};

/* ---- Layouts ---- */

typedef struct layout_counts {
  const char *precision;
  int n[CS_LAYOUT_COUNT]; /* operations whose first input lies so */
} layout_counts;

/* "Conv f16 x=32x64x56x56/nhwc y=…": of the first tensor. */
static void count_layout(void *user, const char *signature) {
  layout_counts *counts = user;
  const char *word = strchr(signature, ' ');
  size_t length = strlen(counts->precision);
  if (!word || strncmp(word + 1, counts->precision, length) != 0 || word[1 + length] != ' ') return;
  const char *layout = strchr(word, '/');
  if (!layout || strncmp(signature, "Copy ", 5) == 0) return;
  size_t named = strcspn(++layout, " /");
  for (int l = 0; l < CS_LAYOUT_COUNT; l++) {
    const char *name = cs_layout_name((cs_layout)l);
    if (strlen(name) == named && strncmp(name, layout, named) == 0) counts->n[l]++;
  }
}

/* Those that were recorded, that of most operations first; where there is none, the graph's own,
 * so that planning finds out which operation is missing. */
int sim_layouts(const cs_backend *backend, cs_precision precision,
                cs_layout out[CS_MAX_DEVICE_LAYOUTS]) {
  layout_counts counts = {.precision = cs_precision_name(precision)};
  int n = 0;
  cs_profile_signatures(((const sim_backend *)backend)->profile, count_layout, &counts);
  while (n < CS_MAX_DEVICE_LAYOUTS) {
    int most = 0;
    for (int l = 1; l < CS_LAYOUT_COUNT; l++) {
      if (counts.n[l] > counts.n[most]) most = l;
    }
    if (counts.n[most] == 0) break;
    counts.n[most] = 0;
    out[n++] = (cs_layout)most;
  }
  if (n == 0) out[n++] = CS_LAYOUT_NCHW;
  return n;
}

/* As the device did when it was recorded. */
bool sim_takes_prologue(cs_backend *backend, const cs_op_desc *desc) {
  return cs_profile_has_prologue(((const sim_backend *)backend)->profile, desc);
}

/* ---- Candidates ---- */

static cs_status find(sim_backend *sim, const cs_op_desc *desc, char **signature,
                      const cs_op_profile **out) {
  CS_RETURN_IF_ERROR(cs_op_signature(desc, signature));
  pthread_mutex_lock(&sim->profile_lock);
  *out = cs_profile_find(sim->profile, *signature);
  pthread_mutex_unlock(&sim->profile_lock);
  return CS_OK;
}

cs_status sim_enumerate(cs_backend *backend, const cs_op_desc *desc,
                        const cs_enumerate_options *options, cs_candidate_list *out) {
  char *signature = NULL;
  const cs_op_profile *known = NULL;
  cs_status st = find((sim_backend *)backend, desc, &signature, &known);
  for (int r = 0; st == CS_OK && known && r < known->n_records; r++) {
    const cs_record *record = &known->records[r];
    if (!cs_record_admissible(record, options->workspace_limit, options->deterministic,
                              options->threads)) {
      continue;
    }
    st = cs_candidate_list_add_copy(out, &record->candidate);
  }
  free(signature);
  return st;
}

static cs_status prepare_record(const sim_backend *sim, const cs_record *record, cs_exec **out) {
  cs_exec *exec = cs_calloc(1, sizeof *exec);
  if (!exec) return cs_no_memory("a prepared candidate", sizeof *exec);
  exec->workspace_bytes = record->candidate.workspace_bytes;
  exec->candidate = &record->candidate;
  exec->kernels = record->kernels;
  cs_status st =
      cs_sm_operation_prepare(sim->model, record->candidate.id, record->kernels, record->n_kernels,
                              record->measured.cold_us, &exec->operation);
  if (st != CS_OK) {
    free(exec);
    return st;
  }
  *out = exec;
  return CS_OK;
}

cs_status sim_prepare(cs_backend *backend, const cs_op_desc *desc, const cs_candidate *candidate,
                      cs_exec **out) {
  sim_backend *sim = (sim_backend *)backend;
  char *signature = NULL;
  const cs_op_profile *known = NULL;
  *out = NULL;
  cs_status st = find(sim, desc, &signature, &known);
  if (st == CS_OK) {
    const cs_record *record = cs_op_profile_record(known, candidate->id);
    if (record && !record->measured.rejected) {
      st = prepare_record(sim, record, out);
    } else {
      st = cs_error(CS_CODE_BAD_INPUT, "candidate %s of %s is %s in the profile", candidate->id,
                    signature, record ? "recorded as rejected" : "not");
    }
  }
  free(signature);
  return st;
}

void sim_exec_destroy(cs_exec *exec) {
  if (!exec) return;
  cs_sm_operation_clear(&exec->operation);
  free(exec);
}

int64_t sim_exec_workspace(const cs_exec *exec) {
  return exec->workspace_bytes;
}

/* ---- Weights: nothing is computed with them ---- */

int64_t sim_exec_weight_bytes(const cs_exec *exec) {
  (void)exec;
  return 0;
}

cs_status sim_pack_weights(const cs_exec *exec, const float *weight, const float *bias,
                           void *host_out) {
  (void)exec, (void)weight, (void)bias, (void)host_out;
  return CS_OK;
}

/* ---- For schedules ---- */

const cs_sm_operation *sim_exec_operation(const cs_exec *exec) {
  return &exec->operation;
}

const cs_candidate *sim_exec_candidate(const cs_exec *exec) {
  return exec->candidate;
}

const cs_kernel_profile *sim_exec_kernels(const cs_exec *exec) {
  return exec->kernels;
}
