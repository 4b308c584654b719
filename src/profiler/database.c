#include "profiler/database.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "profiler/cache.h"
#include "profiler/record_json.h"

/* ---- Opening ---- */

cs_status cs_default_cache_directory(char **out) {
  cs_strbuf path = {0};
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (cache && cache[0] == '/') {
    cs_strbuf_printf(&path, "%s/convsched/v1", cache);
  } else if (home && home[0] == '/') {
    cs_strbuf_printf(&path, "%s/.cache/convsched/v1", home);
  } else {
    return cs_error(
        CS_CODE_IO,
        "no cache directory: found XDG_CACHE_HOME \"%s\" and HOME \"%s\", wanted one of them to be "
        "an absolute path",
        cache ? cache : "", home ? home : "");
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
void cs_profile_keep_in_memory(cs_profile *profile, cs_status why) {
  cs_log(&profile->logger, CS_LOG_WARNING, "measurements are kept in memory only, for this run: %s",
         cs_status_message(why));
  cs_status_free(why);
  profile->writable = false;
}

static cs_status load_and_compact(cs_profile *profile, int64_t cap) {
  bool wanted = false;
  cs_cache_touch(profile->path);
  CS_RETURN_IF_ERROR(cs_cache_trim(profile->path, cap, &profile->logger));
  CS_RETURN_IF_ERROR(cs_profile_load(profile));
  CS_RETURN_IF_ERROR(cs_profile_wants_compaction(profile, &wanted));
  if (!wanted) return CS_OK;
  cs_status compacted = cs_database_compact(profile->path, profile->identity);
  if (compacted != CS_OK) {
    cs_profile_keep_in_memory(profile, compacted);
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
  int64_t cap = 0;
  *out = NULL;
  CS_RETURN_IF_ERROR(cs_cache_cap(&cap));
  cs_profile *profile = cs_calloc(1, sizeof *profile);
  if (!profile) return cs_no_memory("a profile", sizeof *profile);
  if (logger) profile->logger = *logger;
  profile->writable = true;
  profile->method = CS_MEASURE_VERSION;
  CS_TRY(st, cs_strdup_to(device_identity, &profile->identity), done);
  CS_TRY(st, cs_line_prefix(device_identity, &profile->prefix), done);
  profile->prefix_length = strlen(profile->prefix);
  st = make_path(directory, device_identity, &profile->path);
  if (st == CS_OK) st = load_and_compact(profile, cap);
  if (cs_status_code(st) == CS_CODE_IO || cs_status_code(st) == CS_CODE_BAD_INPUT) {
    cs_profile_keep_in_memory(profile, st);
    st = CS_OK;
    cs_profile_forget(profile);
    free(profile->path);
    profile->path = NULL;
  }
  if (st != CS_OK) goto done;
  cs_report_skipped(&profile->logger, profile->path, &profile->damaged, &profile->foreign);
  *out = profile;
  profile = NULL;
done:
  cs_profile_close(profile);
  return st;
}

/* Device and method of the first line that tells one. */
static cs_status first_identity(const char *path, const char *text, size_t length, char **out,
                                int *method) {
  const char *end_of_text = text + length;
  for (const char *line = text; line < end_of_text;) {
    const char *end = memchr(line, '\n', (size_t)(end_of_text - line));
    if (!end) break;
    json_t *root = json_loadb(line, (size_t)(end - line), 0, NULL);
    const char *schema = json_string_value(json_object_get(root, "schema"));
    const char *device = json_string_value(json_object_get(root, "device"));
    bool ours = schema && device && strcmp(schema, "convsched.profile/1") == 0;
    cs_status st = ours ? cs_strdup_to(device, out) : CS_OK;
    *method = (int)json_integer_value(json_object_get(root, "method"));
    json_decref(root);
    if (ours) return st;
    line = end + 1;
  }
  return cs_error(CS_CODE_BAD_INPUT, "%s: no line of convsched.profile/1 in it", path);
}

cs_status cs_profile_open_file(const char *path, const cs_logger *logger, cs_profile **out) {
  cs_status st = CS_OK;
  size_t length = 0;
  *out = NULL;
  cs_profile *profile = cs_calloc(1, sizeof *profile);
  if (!profile) return cs_no_memory("a profile", sizeof *profile);
  if (logger) profile->logger = *logger;
  profile->read_only = true;
  CS_TRY(st, cs_strdup_to(path, &profile->path), done);
  CS_TRY(st, cs_read_maybe_gzip(path, &profile->text, &length), done);
  CS_TRY(st, first_identity(path, profile->text, length, &profile->identity, &profile->method),
         done);
  CS_TRY(st, cs_line_prefix(profile->identity, &profile->prefix), done);
  profile->prefix_length = strlen(profile->prefix);
  CS_TRY(st, cs_profile_index(profile, length), done);
  cs_report_skipped(&profile->logger, profile->path, &profile->damaged, &profile->foreign);
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

const char *cs_profile_identity(const cs_profile *profile) {
  return profile->identity;
}

/* ---- Finding ---- */

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

void cs_profile_signatures(const cs_profile *profile,
                           void (*use)(void *user, const char *signature), void *user) {
  for (size_t e = 0; e < profile->n_entries; e++) {
    const char *signature = profile->entries[e]->op.signature;
    bool single = strncmp(signature, CS_CORUN_PREFIX, strlen(CS_CORUN_PREFIX)) != 0 &&
                  strcmp(signature, CS_DEVICE_OP) != 0;
    if (single) use(user, signature);
  }
}

/* Appends an entry's co-runs to a growing array. */
static cs_status collect_coruns(cs_profile *profile, cs_profile_entry *entry, const cs_corun ***out,
                                size_t *capacity, int *count) {
  CS_RETURN_IF_ERROR(cs_profile_materialise(profile, entry));
  CS_RETURN_IF_ERROR(
      cs_grow(out, capacity, (size_t)*count + entry->n_coruns + 1, sizeof(const cs_corun *)));
  for (size_t i = 0; i < entry->n_coruns; i++) (*out)[(*count)++] = &entry->coruns[i];
  return CS_OK;
}

static cs_status collect_all(cs_profile *profile, const cs_corun ***out, int *count) {
  size_t capacity = 0;
  for (size_t e = 0; e < profile->n_entries; e++) {
    cs_profile_entry *entry = profile->entries[e];
    if (strncmp(entry->op.signature, CS_CORUN_PREFIX, strlen(CS_CORUN_PREFIX)) != 0) continue;
    CS_RETURN_IF_ERROR(collect_coruns(profile, entry, out, &capacity, count));
  }
  return CS_OK;
}

static cs_status collect_some(cs_profile *profile, const char *const *signatures, int n,
                              const cs_corun ***out, int *count) {
  size_t capacity = 0;
  char *wanted = NULL;
  cs_profile_entry *entry = NULL;
  CS_RETURN_IF_ERROR(cs_corun_signature(signatures, n, &wanted));
  cs_status st = cs_profile_entry_of(profile, wanted, strlen(wanted), false, &entry);
  if (st == CS_OK && entry) st = collect_coruns(profile, entry, out, &capacity, count);
  free(wanted);
  return st;
}

cs_status cs_profile_coruns(const cs_profile *profile, const char *const *signatures, int n,
                            const cs_corun ***out, int *count) {
  cs_profile *cache = (cs_profile *)(uintptr_t)profile; /* as in cs_profile_find */
  *out = NULL;
  *count = 0;
  cs_status st =
      signatures ? collect_some(cache, signatures, n, out, count) : collect_all(cache, out, count);
  if (st == CS_OK) return CS_OK;
  free(*out);
  *out = NULL;
  *count = 0;
  return st;
}

const cs_device_info *cs_profile_device(const cs_profile *profile) {
  cs_profile *cache = (cs_profile *)(uintptr_t)profile;
  cs_profile_entry *entry = NULL;
  cs_status st = cs_profile_entry_of(cache, CS_DEVICE_OP, strlen(CS_DEVICE_OP), false, &entry);
  if (st == CS_OK && entry) st = cs_profile_materialise(cache, entry);
  if (st != CS_OK) {
    cs_log(&profile->logger, CS_LOG_WARNING, "the device of %s is not known: %s", profile->path,
           cs_status_message(st));
    cs_status_free(st);
  }
  return profile->has_device ? &profile->device : NULL;
}

/* ---- What may be used ---- */

bool cs_op_profile_covers_since(const cs_op_profile *operation, const cs_completion *wanted,
                                int candidates) {
  if (!operation) return false;
  bool has_threads = false;
  for (int i = 0; i < operation->n_records; i++) {
    has_threads = has_threads || operation->records[i].candidate.threads == wanted->threads;
  }
  for (int i = 0; i < operation->n_completions; i++) {
    const cs_completion *done = &operation->completions[i];
    if (done->candidates < candidates) continue;
    if (done->workspace_limit < wanted->workspace_limit || (wanted->full && !done->full)) continue;
    if (cs_op_profile_count(operation, done) < done->records) continue;
    if (done->threads == wanted->threads || (done->threads == 0 && has_threads)) return true;
  }
  return false;
}

bool cs_op_profile_covers(const cs_op_profile *operation, const cs_completion *wanted) {
  return operation && cs_op_profile_covers_since(operation, wanted, operation->candidates_since);
}

bool cs_op_profile_covered_once(const cs_op_profile *operation, const cs_completion *wanted) {
  return cs_op_profile_covers_since(operation, wanted, 0);
}

cs_status cs_program_candidates_since(const cs_profile *profile, const cs_program *program,
                                      int *out) {
  *out = 0;
  for (int t = 0; t < program->n_tasks; t++) {
    char *signature = NULL;
    CS_RETURN_IF_ERROR(cs_op_signature(&program->tasks[t].desc, &signature));
    int since = cs_candidates_since(profile->identity, signature);
    if (since > *out) *out = since;
    free(signature);
  }
  return CS_OK;
}

bool cs_record_admissible(const cs_record *record, int64_t workspace_limit, bool deterministic,
                          int threads) {
  const cs_candidate *candidate = &record->candidate;
  return !record->measured.rejected && !record->absent &&
         candidate->workspace_bytes <= workspace_limit &&
         (candidate->deterministic || !deterministic) &&
         (threads == 0 || candidate->threads == 0 || candidate->threads == threads);
}
