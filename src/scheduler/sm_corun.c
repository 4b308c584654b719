#include "scheduler/sm_corun.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What an operation touches ---- */

/* Elements of the tensor " <label>=AxBx…/"; *channels its second extent. 0: no such tensor. */
static int64_t elements(const char *signature, const char *label, int64_t *channels) {
  const char *at = strstr(signature, label);
  int64_t n = 1;
  if (!at) return 0;
  at += strlen(label);
  for (int i = 0; i < 8; i++) {
    char *end = NULL;
    int64_t extent = strtoll(at, &end, 10);
    if (end == at || extent < 1 || !cs_mul_i64(n, extent, &n)) return 0;
    if (i == 1) *channels = extent;
    if (*end != 'x') return n;
    at = end + 1;
  }
  return 0;
}

/* Elements of a convolution's weights; 0 for other operators. */
static int64_t weight_elements(const char *signature, int64_t in, int64_t out) {
  const char *kernel = strstr(signature, " k="), *groups = strstr(signature, " g=");
  int height, width, group;
  if (strncmp(signature, "Conv", 4) != 0 || !kernel || !groups) return 0;
  if (sscanf(kernel, " k=%dx%d", &height, &width) != 2) return 0;
  if (sscanf(groups, " g=%d", &group) != 1 || group < 1) return 0;
  return in * out * height * width / group;
}

cs_status cs_sm_signature_bytes(const char *signature, int64_t *out) {
  char name[16];
  cs_precision precision;
  int64_t in = 0, made = 0, other = 0;
  int words = sscanf(signature, "%*s %15s", name);
  cs_status st = words == 1 ? cs_precision_parse(name, &precision) : CS_OK;
  if (words != 1 || st != CS_OK) {
    cs_status_free(st);
    return cs_error(CS_CODE_BAD_INPUT, "signature \"%s\": %s%s; wanted: a precision", signature,
                    words == 1 ? name : "nothing", " after the operator");
  }
  int64_t x = elements(signature, " x=", &in), y = elements(signature, " y=", &made);
  if (x < 1 || y < 1) {
    return cs_error(CS_CODE_BAD_INPUT, "signature \"%s\": no extents of %s", signature,
                    x < 1 ? "the input x" : "the output y");
  }
  int64_t n = x + y + elements(signature, " r=", &other) + weight_elements(signature, in, made);
  *out = n * cs_dtype_size(cs_precision_storage(precision));
  return CS_OK;
}

double cs_sm_coldness(const cs_sm_model *model, int64_t bytes) {
  double cache = (double)cs_sm_model_device(model)->cache_bytes;
  double kept = cs_sm_model_constants(model)->cache_share;
  if (!(cache > 0)) return 1;
  return fmin(1, fmax(0, ((double)bytes / cache - kept) / (1 - kept)));
}

/* ---- A co-run ---- */

typedef struct members {
  const cs_record **records; /* longest first */
  int n, n_kernels;
  int64_t bytes; /* that they touch, workspaces included */
  cs_sm_kernel *kernels;
  cs_sm_launch *launches;
} members;

static void members_free(members *m) {
  free(m->records);
  free(m->kernels);
  free(m->launches);
}

static void insert_by_time(members *m, const cs_record *record) {
  int at = m->n++;
  for (; at > 0 && m->records[at - 1]->measured.cold_us < record->measured.cold_us; at--) {
    m->records[at] = m->records[at - 1];
  }
  m->records[at] = record;
}

static cs_status find_members(const cs_profile *profile, const cs_corun *corun, members *out) {
  for (int i = 0; i < corun->n; i++) {
    const cs_corun_member *member = &corun->members[i];
    int64_t bytes = 0;
    const cs_record *record =
        cs_op_profile_record(cs_profile_find(profile, member->signature), member->candidate);
    if (!record || record->measured.rejected || record->n_kernels < 1) {
      return cs_error(CS_CODE_NOT_FOUND, "co-run of %s: candidate %s has no %s in the profile",
                      member->signature, member->candidate,
                      record && !record->measured.rejected ? "kernels" : "time");
    }
    CS_RETURN_IF_ERROR(cs_sm_signature_bytes(member->signature, &bytes));
    out->bytes += bytes + record->candidate.workspace_bytes;
    out->n_kernels += record->n_kernels;
    insert_by_time(out, record);
  }
  return CS_OK;
}

static double time_of(const cs_measurement *measured, double cold) {
  return measured->warm_us + cold * (measured->cold_us - measured->warm_us);
}

/* `alone` and `together`: coldness of the times compared with, and of those simulated. */
static cs_status simulate(cs_sm_model *model, const members *m, double alone, double together,
                          cs_sm_times *out) {
  int n = 0;
  *out = (cs_sm_times){0};
  for (int i = 0; i < m->n; i++) {
    const cs_record *record = m->records[i];
    double us = time_of(&record->measured, alone);
    CS_RETURN_IF_ERROR(
        cs_sm_kernels_prepare(model, record, time_of(&record->measured, together), &m->kernels[n]));
    for (int k = 0; k < record->n_kernels; k++, n++) {
      m->launches[n] = (cs_sm_launch){.kernel = &m->kernels[n], .stream = i};
    }
    out->serial_us += us;
    out->longest_us = fmax(out->longest_us, us);
  }
  CS_RETURN_IF_ERROR(cs_sm_simulate(model, m->launches, n, alone, NULL, &out->timeline));
  out->together_us = out->timeline.total_us;
  return CS_OK;
}

cs_status cs_sm_predict_corun(cs_sm_model *model, const cs_profile *profile, const cs_corun *corun,
                              cs_sm_prediction *out) {
  cs_status st = CS_OK;
  members m = {0};
  m.records = cs_calloc((size_t)corun->n, sizeof(cs_record *));
  if (!m.records) return cs_no_memory("members of a co-run", (size_t)corun->n);
  CS_TRY(st, find_members(profile, corun, &m), done);
  m.kernels = cs_calloc((size_t)m.n_kernels, sizeof *m.kernels);
  m.launches = cs_calloc((size_t)m.n_kernels, sizeof *m.launches);
  if (!m.kernels || !m.launches) {
    st = cs_no_memory("kernels of a co-run", (size_t)m.n_kernels * sizeof *m.kernels);
    goto done;
  }
  CS_TRY(st, simulate(model, &m, 1, 1, &out->cold), done);
  CS_TRY(st, simulate(model, &m, 0, cs_sm_coldness(model, m.bytes), &out->warm), done);
done:
  members_free(&m);
  return st;
}
