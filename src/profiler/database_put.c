/* The contents of an entry of the database. */
#include <stdlib.h>
#include <string.h>

#include "profiler/database.h"
#include "profiler/record_json.h"

void cs_profile_entry_free(cs_profile_entry *entry) {
  if (!entry) return;
  for (int i = 0; i < entry->op.n_records; i++) cs_record_clear(&entry->op.records[i]);
  for (size_t i = 0; i < entry->n_loose; i++) {
    free(entry->loose[i].candidate);
    free(entry->loose[i].kernels);
  }
  for (size_t i = 0; i < entry->n_coruns; i++) cs_corun_clear(&entry->coruns[i]);
  free(entry->loose);
  free(entry->coruns);
  free(entry->op.records);
  free(entry->op.completions);
  free(entry->op.signature);
  free(entry);
}

/* ---- Records and completions ---- */

const cs_record *cs_op_profile_record(const cs_op_profile *operation, const char *candidate) {
  for (int i = 0; operation && i < operation->n_records; i++) {
    if (strcmp(operation->records[i].candidate.id, candidate) == 0) return &operation->records[i];
  }
  return NULL;
}

cs_record *cs_profile_record_in(cs_profile_entry *entry, const char *candidate) {
  return (cs_record *)(uintptr_t)cs_op_profile_record(&entry->op, candidate);
}

/* Moves the kernels that came before the record to it. */
static void adopt_loose(cs_profile_entry *entry, cs_record *record) {
  for (size_t i = 0; i < entry->n_loose; i++) {
    cs_loose_kernels *loose = &entry->loose[i];
    if (strcmp(loose->candidate, record->candidate.id) != 0) continue;
    record->kernels = loose->kernels;
    record->n_kernels = loose->n;
    free(loose->candidate);
    *loose = entry->loose[--entry->n_loose];
    return;
  }
}

cs_status cs_profile_put_record(cs_profile_entry *entry, cs_record *record) {
  cs_op_profile *op = &entry->op;
  cs_record *old = cs_profile_record_in(entry, record->candidate.id);
  if (old) {
    record->kernels = old->kernels;
    record->n_kernels = old->n_kernels;
    old->kernels = NULL;
    cs_record_clear(old);
  } else {
    CS_RETURN_IF_ERROR(
        cs_grow(&op->records, &op->capacity, (size_t)op->n_records + 1, sizeof *op->records));
    old = &op->records[op->n_records++];
    adopt_loose(entry, record);
  }
  *old = *record;
  memset(record, 0, sizeof *record);
  return CS_OK;
}

int cs_op_profile_count(const cs_op_profile *operation, const cs_completion *of) {
  int n = 0;
  for (int i = 0; i < operation->n_records; i++) {
    const cs_candidate *candidate = &operation->records[i].candidate;
    n += candidate->workspace_bytes <= of->workspace_limit &&
         (of->threads == 0 || candidate->threads == 0 || candidate->threads == of->threads);
  }
  return n;
}

static bool same_enumeration(const cs_completion *a, const cs_completion *b) {
  return a->workspace_limit == b->workspace_limit && a->threads == b->threads &&
         a->full == b->full && a->candidates == b->candidates;
}

cs_status cs_profile_put_completion(cs_profile_entry *entry, const cs_completion *completion) {
  cs_op_profile *op = &entry->op;
  int at = 0;
  while (at < op->n_completions && !same_enumeration(&op->completions[at], completion)) at++;
  if (at == op->n_completions) {
    CS_RETURN_IF_ERROR(cs_grow(&op->completions, &op->completions_capacity,
                               (size_t)op->n_completions + 1, sizeof *op->completions));
    op->completions[op->n_completions++] = *completion;
  } else {
    op->completions[at].records = completion->records;
  }
  if (completion->candidates < op->candidates_since) return CS_OK;
  op->complete = true;
  op->complete_limit = cs_max_i64(op->complete_limit, completion->workspace_limit);
  return CS_OK;
}

static int compare_records(const void *a, const void *b) {
  const cs_record *x = a, *y = b;
  if (x->measured.rejected != y->measured.rejected) return x->measured.rejected ? 1 : -1;
  if (x->measured.cold_us != y->measured.cold_us) {
    return x->measured.cold_us < y->measured.cold_us ? -1 : 1;
  }
  return strcmp(x->candidate.id, y->candidate.id);
}

void cs_profile_sort(cs_profile_entry *entry) {
  if (entry->op.n_records > 1) {
    qsort(entry->op.records, (size_t)entry->op.n_records, sizeof *entry->op.records,
          compare_records);
  }
}

/* ---- Kernels ---- */

void cs_kernels_take_counters(const cs_kernel_profile *old, int n_old, cs_kernel_profile *kernels,
                              int n) {
  if (n != n_old) return;
  for (int i = 0; i < n; i++) {
    if (strcmp(old[i].info.name, kernels[i].info.name) != 0) return;
  }
  for (int i = 0; i < n; i++) {
    if (kernels[i].counted || !old[i].counted) continue;
    kernels[i].counted = true;
    kernels[i].counters = old[i].counters;
  }
}

static void replace_kernels(cs_kernel_profile **place, int *n_place, cs_kernel_profile **kernels,
                            int n) {
  cs_kernels_take_counters(*place, *n_place, *kernels, n);
  free(*place);
  *place = *kernels;
  *n_place = n;
  *kernels = NULL;
}

cs_status cs_profile_put_kernels(cs_profile_entry *entry, const char *candidate,
                                 cs_kernel_profile **kernels, int n) {
  cs_record *record = cs_profile_record_in(entry, candidate);
  if (record) {
    replace_kernels(&record->kernels, &record->n_kernels, kernels, n);
    return CS_OK;
  }
  for (size_t i = 0; i < entry->n_loose; i++) {
    if (strcmp(entry->loose[i].candidate, candidate) != 0) continue;
    replace_kernels(&entry->loose[i].kernels, &entry->loose[i].n, kernels, n);
    return CS_OK;
  }
  CS_RETURN_IF_ERROR(
      cs_grow(&entry->loose, &entry->loose_capacity, entry->n_loose + 1, sizeof *entry->loose));
  cs_loose_kernels *loose = &entry->loose[entry->n_loose];
  CS_RETURN_IF_ERROR(cs_strdup_to(candidate, &loose->candidate));
  loose->kernels = *kernels;
  loose->n = n;
  entry->n_loose++;
  *kernels = NULL;
  return CS_OK;
}

/* ---- Co-runs ---- */

static bool same_members(const cs_corun *a, const cs_corun *b) {
  if (a->n != b->n) return false;
  for (int i = 0; i < a->n; i++) {
    if (cs_corun_compare_members(&a->members[i], &b->members[i]) != 0) return false;
  }
  return true;
}

cs_corun *cs_profile_corun_of(const cs_profile_entry *entry, const cs_corun *corun) {
  for (size_t i = 0; i < entry->n_coruns; i++) {
    if (same_members(&entry->coruns[i], corun)) return &entry->coruns[i];
  }
  return NULL;
}

cs_status cs_profile_put_corun(cs_profile_entry *entry, cs_corun *corun) {
  cs_corun *old = cs_profile_corun_of(entry, corun);
  if (old) {
    cs_corun_clear(old);
  } else {
    CS_RETURN_IF_ERROR(cs_grow(&entry->coruns, &entry->coruns_capacity, entry->n_coruns + 1,
                               sizeof *entry->coruns));
    old = &entry->coruns[entry->n_coruns++];
  }
  *old = *corun;
  memset(corun, 0, sizeof *corun);
  return CS_OK;
}
