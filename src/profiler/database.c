#include "profiler/database.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "profiler/record_json.h"

/* ---- The table ---- */

static void entry_free(cs_profile_entry *entry) {
  if (!entry) return;
  for (int i = 0; i < entry->op.n_records; i++) cs_record_clear(&entry->op.records[i]);
  free(entry->op.records);
  free(entry->op.completions);
  free(entry->op.signature);
  free(entry);
}

void cs_profile_forget(cs_profile *profile) {
  for (size_t i = 0; i < profile->n_entries; i++) entry_free(profile->entries[i]);
  profile->n_entries = profile->n_pending = profile->n_keys = 0;
  memset(&profile->damaged, 0, sizeof profile->damaged);
  memset(&profile->foreign, 0, sizeof profile->foreign);
  if (profile->buckets) {
    memset(profile->buckets, 0, profile->n_buckets * sizeof *profile->buckets);
  }
  free(profile->text);
  profile->text = NULL;
}

static size_t *bucket_of(const cs_profile *profile, const char *signature, size_t length) {
  size_t mask = profile->n_buckets - 1;
  size_t at = (size_t)cs_hash_bytes(CS_HASH_SEED, signature, length) & mask;
  for (;; at = (at + 1) & mask) {
    size_t index = profile->buckets[at];
    if (index == 0) return &profile->buckets[at];
    const char *found = profile->entries[index - 1]->op.signature;
    if (strncmp(found, signature, length) == 0 && found[length] == '\0') {
      return &profile->buckets[at];
    }
  }
}

static cs_status grow_buckets(cs_profile *profile) {
  if (profile->n_buckets > 2 * (profile->n_entries + 1)) return CS_OK;
  size_t n = profile->n_buckets ? 2 * profile->n_buckets : 256;
  size_t *buckets = cs_calloc(n, sizeof *buckets);
  if (!buckets) return cs_no_memory("the profile's table", n * sizeof *buckets);
  free(profile->buckets);
  profile->buckets = buckets;
  profile->n_buckets = n;
  for (size_t i = 0; i < profile->n_entries; i++) {
    const char *signature = profile->entries[i]->op.signature;
    *bucket_of(profile, signature, strlen(signature)) = i + 1;
  }
  return CS_OK;
}

cs_status cs_profile_entry_of(cs_profile *profile, const char *signature, size_t length,
                              bool create, cs_profile_entry **out) {
  *out = NULL;
  if (!create && profile->n_buckets == 0) return CS_OK;
  if (create) CS_RETURN_IF_ERROR(grow_buckets(profile));
  size_t *bucket = bucket_of(profile, signature, length);
  if (*bucket != 0) {
    *out = profile->entries[*bucket - 1];
    return CS_OK;
  }
  if (!create) return CS_OK;
  CS_RETURN_IF_ERROR(cs_grow(&profile->entries, &profile->entries_capacity, profile->n_entries + 1,
                             sizeof(cs_profile_entry *)));
  cs_profile_entry *entry = cs_calloc(1, sizeof *entry);
  if (entry) entry->op.signature = strndup(signature, length);
  if (!entry || !entry->op.signature) {
    free(entry);
    return cs_no_memory("a profile entry", sizeof *entry + length);
  }
  entry->first_pending = entry->last_pending = -1;
  profile->entries[profile->n_entries++] = entry;
  *bucket = profile->n_entries;
  *out = entry;
  return CS_OK;
}

/* ---- Contents of an entry ---- */

cs_status cs_profile_put_record(cs_profile_entry *entry, cs_record *record) {
  cs_op_profile *op = &entry->op;
  int at = 0;
  while (at < op->n_records && strcmp(op->records[at].candidate.id, record->candidate.id) != 0)
    at++;
  if (at == op->n_records) {
    CS_RETURN_IF_ERROR(
        cs_grow(&op->records, &op->capacity, (size_t)op->n_records + 1, sizeof *op->records));
    op->n_records++;
  } else {
    cs_record_clear(&op->records[at]);
  }
  op->records[at] = *record;
  memset(record, 0, sizeof *record);
  return CS_OK;
}

cs_status cs_profile_put_completion(cs_profile_entry *entry, const cs_completion *completion) {
  cs_op_profile *op = &entry->op;
  int at = 0;
  while (at < op->n_completions && (op->completions[at].threads != completion->threads ||
                                    op->completions[at].full != completion->full)) {
    at++;
  }
  if (at == op->n_completions) {
    CS_RETURN_IF_ERROR(cs_grow(&op->completions, &op->completions_capacity,
                               (size_t)op->n_completions + 1, sizeof *op->completions));
    op->completions[op->n_completions++] = *completion;
  } else if (op->completions[at].workspace_limit < completion->workspace_limit) {
    op->completions[at] = *completion;
  }
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

/* ---- Opening ---- */

cs_status cs_default_cache_directory(char **out) {
  cs_strbuf path = {0};
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (cache && cache[0] == '/') {
    cs_strbuf_printf(&path, "%s/convsched/v1", cache);
  } else if (home && home[0] == '/') {
    cs_strbuf_printf(&path, "%s/.cache/convsched/v1", home);
  } else {
    return cs_error(CS_CODE_IO, "no cache directory: neither XDG_CACHE_HOME nor HOME is set");
  }
  return cs_strbuf_take(&path, out);
}

static cs_status make_path(const char *directory, const char *identity, char **out) {
  cs_status st = CS_OK;
  char *chosen = NULL;
  cs_strbuf path = {0};
  if (directory) {
    CS_TRY(st, cs_strdup_to(directory, &chosen), done);
  } else {
    CS_TRY(st, cs_default_cache_directory(&chosen), done);
  }
  CS_TRY(st, cs_make_directories(chosen), done);
  cs_strbuf_printf(&path, "%s/profile-%016llx.jsonl", chosen,
                   (unsigned long long)cs_hash_string(CS_HASH_SEED, identity));
  st = cs_strbuf_take(&path, out);
done:
  free(chosen);
  return st;
}

/* From here on nothing is written; said once. Consumes `why`. */
static void keep_in_memory(cs_profile *profile, cs_status why) {
  cs_log(&profile->logger, CS_LOG_WARNING, "measurements are kept in memory only, for this run: %s",
         cs_status_message(why));
  cs_status_free(why);
  profile->writable = false;
}

static cs_status load_and_compact(cs_profile *profile) {
  CS_RETURN_IF_ERROR(cs_profile_load(profile));
  if (!cs_profile_wants_compaction(profile)) return CS_OK;
  cs_status compacted = cs_database_compact(profile->path, profile->identity);
  if (compacted != CS_OK) {
    keep_in_memory(profile, compacted);
    return CS_OK;
  }
  cs_skipped_lines moved = profile->damaged;
  cs_profile_forget(profile);
  CS_RETURN_IF_ERROR(cs_profile_load(profile));
  if (profile->damaged.n == 0) profile->damaged = moved;
  return CS_OK;
}

cs_status cs_profile_open(const char *directory, const char *device_identity,
                          const cs_logger *logger, cs_profile **out) {
  cs_status st = CS_OK;
  *out = NULL;
  cs_profile *profile = cs_calloc(1, sizeof *profile);
  if (!profile) return cs_no_memory("a profile", sizeof *profile);
  if (logger) profile->logger = *logger;
  profile->writable = true;
  CS_TRY(st, cs_strdup_to(device_identity, &profile->identity), done);
  CS_TRY(st, cs_line_prefix(device_identity, &profile->prefix), done);
  profile->prefix_length = strlen(profile->prefix);
  st = make_path(directory, device_identity, &profile->path);
  if (st == CS_OK) st = load_and_compact(profile);
  if (cs_status_code(st) == CS_CODE_IO || cs_status_code(st) == CS_CODE_BAD_INPUT) {
    keep_in_memory(profile, st);
    st = CS_OK;
    cs_profile_forget(profile);
    free(profile->path);
    profile->path = NULL;
  }
  if (st != CS_OK) goto done;
  cs_profile_report_skipped(profile, &profile->damaged, &profile->foreign);
  *out = profile;
  profile = NULL;
done:
  cs_profile_close(profile);
  return st;
}

void cs_profile_close(cs_profile *profile) {
  if (!profile) return;
  cs_profile_forget(profile);
  free(profile->entries);
  free(profile->buckets);
  free(profile->pending);
  free(profile->keys);
  free(profile->prefix);
  free(profile->identity);
  free(profile->path);
  free(profile);
}

const char *cs_profile_path(const cs_profile *profile) {
  return profile->writable ? profile->path : NULL;
}

/* ---- Finding and adding ---- */

const cs_op_profile *cs_profile_find(const cs_profile *profile, const char *signature) {
  /* Parsing what is pending changes how the contents are held, not what they are. */
  cs_profile *cache = (cs_profile *)(uintptr_t)profile;
  cs_profile_entry *entry = NULL;
  cs_status st = cs_profile_entry_of(cache, signature, strlen(signature), false, &entry);
  if (st == CS_OK && entry) st = cs_profile_materialise(cache, entry);
  if (st != CS_OK) {
    cs_log(&profile->logger, CS_LOG_WARNING, "measurements of %s are not used: %s", signature,
           cs_status_message(st));
    cs_status_free(st);
    return NULL;
  }
  if (!entry || (entry->op.n_records == 0 && !entry->op.complete)) return NULL;
  return &entry->op;
}

static void append_line(cs_profile *profile, const char *line) {
  if (!profile->path || !profile->writable) return;
  cs_status st = cs_database_append(profile->path, line, strlen(line));
  if (st != CS_OK) keep_in_memory(profile, st);
}

static cs_status materialised_entry(cs_profile *profile, const char *signature,
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
  CS_TRY(st, materialised_entry(profile, signature, &entry), done);
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

cs_status cs_profile_mark_completion(cs_profile *profile, const char *signature,
                                     const cs_completion *completion) {
  cs_status st = CS_OK;
  cs_profile_entry *entry = NULL;
  char *line = NULL;
  CS_TRY(st, cs_line_of_completion(profile->prefix, signature, completion, &line), done);
  CS_TRY(st, materialised_entry(profile, signature, &entry), done);
  CS_TRY(st, cs_profile_put_completion(entry, completion), done);
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

/* ---- What may be used ---- */

bool cs_op_profile_covers(const cs_op_profile *operation, const cs_completion *wanted) {
  if (!operation) return false;
  bool has_threads = false;
  for (int i = 0; i < operation->n_records; i++) {
    has_threads = has_threads || operation->records[i].candidate.threads == wanted->threads;
  }
  for (int i = 0; i < operation->n_completions; i++) {
    const cs_completion *done = &operation->completions[i];
    if (done->workspace_limit < wanted->workspace_limit || (wanted->full && !done->full)) continue;
    if (done->threads == wanted->threads || (done->threads == 0 && has_threads)) return true;
  }
  return false;
}

bool cs_record_admissible(const cs_record *record, int64_t workspace_limit, bool deterministic,
                          int threads) {
  const cs_candidate *candidate = &record->candidate;
  return !record->measured.rejected && candidate->workspace_bytes <= workspace_limit &&
         (candidate->deterministic || !deterministic) &&
         (threads == 0 || candidate->threads == 0 || candidate->threads == threads);
}
