/* The table of the database: entries by operation signature. */
#include <stdlib.h>
#include <string.h>

#include "profiler/database.h"

uint64_t cs_profile_hash(uint64_t seed, const char *text, size_t length) {
  const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
  uint64_t hash = seed ^ (length * odd);
  for (; length >= 8; text += 8, length -= 8) {
    uint64_t word;
    memcpy(&word, text, 8);
    hash = (hash ^ word) * odd;
    hash ^= hash >> 32;
  }
  uint64_t rest = 0;
  memcpy(&rest, text, length);
  hash = (hash ^ rest) * odd;
  return hash ^ (hash >> 29);
}

void cs_profile_forget(cs_profile *profile) {
  for (size_t i = 0; i < profile->n_entries; i++) cs_profile_entry_free(profile->entries[i]);
  profile->n_entries = profile->n_pending = profile->n_keys = 0;
  memset(&profile->damaged, 0, sizeof profile->damaged);
  memset(&profile->foreign, 0, sizeof profile->foreign);
  profile->has_device = false;
  if (profile->buckets) {
    memset(profile->buckets, 0, profile->n_buckets * sizeof *profile->buckets);
  }
  free(profile->text);
  profile->text = NULL;
}

static size_t *bucket_of(const cs_profile *profile, uint64_t hash, const char *signature,
                         size_t length) {
  size_t mask = profile->n_buckets - 1;
  for (size_t at = (size_t)hash & mask;; at = (at + 1) & mask) {
    size_t index = profile->buckets[at];
    if (index == 0) return &profile->buckets[at];
    const cs_profile_entry *found = profile->entries[index - 1];
    if (found->hash == hash && strncmp(found->op.signature, signature, length) == 0 &&
        found->op.signature[length] == '\0') {
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
    const cs_profile_entry *entry = profile->entries[i];
    *bucket_of(profile, entry->hash, entry->op.signature, strlen(entry->op.signature)) = i + 1;
  }
  return CS_OK;
}

cs_status cs_profile_entry_of(cs_profile *profile, const char *signature, size_t length,
                              bool create, cs_profile_entry **out) {
  *out = NULL;
  if (!create && profile->n_buckets == 0) return CS_OK;
  if (create) CS_RETURN_IF_ERROR(grow_buckets(profile));
  uint64_t hash = cs_profile_hash(0, signature, length);
  size_t *bucket = bucket_of(profile, hash, signature, length);
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
  entry->op.candidates_since = cs_candidates_since(profile->identity, entry->op.signature);
  entry->hash = hash;
  entry->first_pending = entry->last_pending = -1;
  profile->entries[profile->n_entries++] = entry;
  *bucket = profile->n_entries;
  *out = entry;
  return CS_OK;
}
