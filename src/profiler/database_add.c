/* Adding to the profile: into the table, and as a line to the file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/database.h"
#include "profiler/record_json.h"

static void append_line(cs_profile *profile, const char *line) {
  if (!profile->path || !profile->writable) return;
  cs_status st = cs_database_append(profile->path, line, strlen(line));
  if (st != CS_OK) cs_profile_keep_in_memory(profile, st);
}

cs_status cs_profile_ready_entry(cs_profile *profile, const char *signature,
                                 cs_profile_entry **out) {
  CS_RETURN_IF_ERROR(cs_profile_entry_of(profile, signature, strlen(signature), true, out));
  return cs_profile_materialise(profile, *out);
}

static cs_status check_measurement(const char *signature, const cs_candidate *candidate,
                                   const cs_measurement *m) {
  const double values[] = {m->cold_us, m->warm_us, m->p10_us, m->p90_us, m->variation};
  if (!candidate->id || candidate->id[0] == '\0' || !candidate->family) {
    return cs_error(CS_CODE_INTERNAL, "profile: a candidate of %s has no id or no family",
                    signature);
  }
  for (int i = 0; i < 5; i++) {
    if (!isfinite(values[i]) || values[i] < 0) {
      return cs_error(CS_CODE_INTERNAL,
                      "profile: a time of %s for %s is %g, wanted a finite one >= 0", candidate->id,
                      signature, values[i]);
    }
  }
  if (!cs_measurement_is_possible(m)) {
    return cs_error(CS_CODE_INTERNAL, "profile: a time of %s for %s is 0, wanted one above",
                    candidate->id, signature);
  }
  return CS_OK;
}

cs_status cs_profile_add(cs_profile *profile, const char *signature, const cs_candidate *candidate,
                         const cs_measurement *measured) {
  cs_status st = CS_OK;
  cs_profile_entry *entry = NULL;
  cs_record record = {0};
  char *line = NULL;
  CS_TRY(st, check_measurement(signature, candidate, measured), done);
  CS_TRY(st, cs_line_of_record(profile->prefix, signature, candidate, measured, &line), done);
  CS_TRY(st, cs_profile_ready_entry(profile, signature, &entry), done);
  CS_TRY(st, cs_candidate_copy(candidate, &record.candidate), done);
  record.measured = *measured;
  record.measured.reason = NULL;
  if (measured->rejected) {
    memset(&record.measured, 0, sizeof record.measured);
    record.measured.rejected = true;
    CS_TRY(st, cs_strdup_to(measured->reason ? measured->reason : "", &record.measured.reason),
           done);
  }
  record.measured.cold_us = cs_six_digits(record.measured.cold_us);
  record.measured.warm_us = cs_six_digits(record.measured.warm_us);
  record.measured.p10_us = cs_six_digits(record.measured.p10_us);
  record.measured.p90_us = cs_six_digits(record.measured.p90_us);
  record.measured.variation = cs_six_digits(record.measured.variation);
  CS_TRY(st, cs_profile_put_record(entry, &record), done);
  cs_profile_sort(entry);
  append_line(profile, line);
done:
  cs_record_clear(&record);
  free(line);
  return st;
}

cs_status cs_profile_mark_absent(cs_profile *profile, const char *signature, const char *candidate,
                                 bool *first) {
  cs_profile_entry *entry = NULL;
  CS_RETURN_IF_ERROR(cs_profile_ready_entry(profile, signature, &entry));
  cs_record *record = cs_profile_record_in(entry, candidate);
  if (!record) {
    return cs_error(CS_CODE_NOT_FOUND, "profile: %s has no record of candidate %s", signature,
                    candidate);
  }
  record->absent = true;
  *first = !profile->has_absent;
  profile->has_absent = true;
  return CS_OK;
}

cs_status cs_profile_mark_completion(cs_profile *profile, const char *signature,
                                     const cs_completion *completion) {
  cs_status st = CS_OK;
  cs_profile_entry *entry = NULL;
  char *line = NULL;
  cs_completion marked = *completion;
  marked.candidates = CS_CANDIDATES_VERSION;
  CS_TRY(st, cs_profile_ready_entry(profile, signature, &entry), done);
  marked.records = cs_op_profile_count(&entry->op, &marked);
  CS_TRY(st, cs_line_of_completion(profile->prefix, signature, &marked, &line), done);
  CS_TRY(st, cs_profile_put_completion(entry, &marked), done);
  append_line(profile, line);
done:
  free(line);
  return st;
}

cs_status cs_profile_mark_complete(cs_profile *profile, const char *signature,
                                   int64_t workspace_limit) {
  cs_completion completion = {.workspace_limit = workspace_limit};
  return cs_profile_mark_completion(profile, signature, &completion);
}

/* ---- Kernels, co-runs, the device ---- */

/* *same: the record's kernels would read the same. */
static cs_status is_known(const cs_profile *profile, const char *signature, const cs_record *record,
                          const char *line, bool *same) {
  char *known = NULL;
  *same = false;
  if (record->n_kernels == 0) return CS_OK;
  CS_RETURN_IF_ERROR(cs_line_of_kernels(profile->prefix, signature, record->candidate.id,
                                        record->kernels, record->n_kernels, &known));
  *same = strcmp(known, line) == 0;
  free(known);
  return CS_OK;
}

static cs_status normalised_kernels(const cs_record *record, const cs_kernel_profile *kernels,
                                    int n, cs_kernel_profile **out) {
  cs_kernel_profile *copy = cs_calloc((size_t)n, sizeof *copy);
  if (!copy) return cs_no_memory("kernels", (size_t)n * sizeof *copy);
  memcpy(copy, kernels, (size_t)n * sizeof *copy);
  for (int i = 0; i < n; i++) cs_kernel_normalise(&copy[i]);
  cs_kernels_take_counters(record->kernels, record->n_kernels, copy, n);
  *out = copy;
  return CS_OK;
}

cs_status cs_profile_add_kernels(cs_profile *profile, const char *signature, const char *candidate,
                                 const cs_kernel_profile *kernels, int n) {
  cs_status st = CS_OK;
  cs_profile_entry *entry = NULL;
  cs_kernel_profile *copy = NULL;
  char *line = NULL;
  bool same = false;
  if (n < 1) {
    return cs_error(CS_CODE_INTERNAL, "profile: %d kernels for %s of %s, wanted at least one", n,
                    candidate, signature);
  }
  CS_TRY(st, cs_profile_ready_entry(profile, signature, &entry), done);
  const cs_record *record = cs_op_profile_record(&entry->op, candidate);
  if (!record) {
    CS_FAIL(st, done, CS_CODE_NOT_FOUND, "profile: %s has no record of candidate %s", signature,
            candidate);
  }
  CS_TRY(st, normalised_kernels(record, kernels, n, &copy), done);
  CS_TRY(st, cs_line_of_kernels(profile->prefix, signature, candidate, copy, n, &line), done);
  CS_TRY(st, is_known(profile, signature, record, line, &same), done);
  if (same) goto done;
  CS_TRY(st, cs_profile_put_kernels(entry, candidate, &copy, n), done);
  append_line(profile, line);
done:
  free(copy);
  free(line);
  return st;
}

static cs_status copy_corun(const cs_corun *from, cs_corun *to) {
  *to = *from;
  to->n = 0;
  to->members = cs_calloc((size_t)cs_max_i64(from->n, 1), sizeof *to->members);
  if (!to->members) return cs_no_memory("a co-run", (size_t)from->n * sizeof *to->members);
  to->n = from->n;
  for (int i = 0; i < from->n; i++) {
    CS_RETURN_IF_ERROR(cs_strdup_to(from->members[i].signature, &to->members[i].signature));
    CS_RETURN_IF_ERROR(cs_strdup_to(from->members[i].candidate, &to->members[i].candidate));
  }
  return CS_OK;
}

static cs_status check_corun(const cs_corun *corun) {
  const double values[] = {corun->concurrent_us, corun->p10_us, corun->p90_us, corun->variation};
  if (corun->n < 2) {
    return cs_error(CS_CODE_INTERNAL, "profile: a co-run of %d operations, wanted at least 2",
                    corun->n);
  }
  for (int i = 0; i < 4; i++) {
    if (!isfinite(values[i]) || values[i] < 0) {
      return cs_error(CS_CODE_INTERNAL,
                      "profile: a time of a co-run is %g, wanted a finite one >= 0", values[i]);
    }
  }
  for (int i = 1; i < corun->n; i++) {
    if (cs_corun_compare_members(&corun->members[i - 1], &corun->members[i]) > 0) {
      return cs_error(CS_CODE_INTERNAL, "profile: the members of a co-run are not sorted");
    }
  }
  return CS_OK;
}

cs_status cs_profile_add_corun(cs_profile *profile, const cs_corun *corun) {
  cs_status st = CS_OK;
  cs_profile_entry *entry = NULL;
  cs_corun copy = {0};
  char *signature = NULL, *line = NULL;
  CS_TRY(st, check_corun(corun), done);
  CS_TRY(st, copy_corun(corun, &copy), done);
  cs_corun_normalise(&copy);
  CS_TRY(st, cs_signature_of_corun(&copy, &signature), done);
  CS_TRY(st, cs_line_of_corun(profile->prefix, signature, &copy, &line), done);
  CS_TRY(st, cs_profile_ready_entry(profile, signature, &entry), done);
  CS_TRY(st, cs_profile_put_corun(entry, &copy), done);
  append_line(profile, line);
done:
  cs_corun_clear(&copy);
  free(signature);
  free(line);
  return st;
}

static bool same_device(const cs_device_info *a, const cs_device_info *b) {
  return strcmp(a->name, b->name) == 0 && strcmp(a->backend, b->backend) == 0 &&
         a->units == b->units && a->memory_bytes == b->memory_bytes &&
         a->cache_bytes == b->cache_bytes && a->compute_capability == b->compute_capability &&
         a->clock_mhz == b->clock_mhz && memcmp(&a->unit, &b->unit, sizeof a->unit) == 0;
}

cs_status cs_profile_set_device(cs_profile *profile, const cs_device_info *info) {
  cs_status st = CS_OK;
  char *line = NULL;
  cs_profile_entry *entry = NULL;
  const cs_device_info *known = cs_profile_device(profile);
  if (known && same_device(known, info)) return CS_OK;
  CS_TRY(st, cs_line_of_device(profile->prefix, info, &line), done);
  CS_TRY(st, cs_profile_ready_entry(profile, CS_DEVICE_OP, &entry), done);
  profile->device = *info;
  profile->has_device = true;
  append_line(profile, line);
done:
  free(line);
  return st;
}
