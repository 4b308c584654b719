/* Asks a profile for all there is in it. */
#ifndef CONVSCHED_TESTS_FUZZ_PROFILE_USE_H_
#define CONVSCHED_TESTS_FUZZ_PROFILE_USE_H_

#include "fuzz/fuzz.h"
#include "profiler/database.h"

static inline void fuzz_use_operation(void *user, const char *signature) {
  cs_profile *profile = user;
  const cs_op_profile *found = cs_profile_find(profile, signature);
  cs_completion wanted = {.workspace_limit = 1 << 20};
  if (!found) return;
  FUZZ_CHECK(strcmp(found->signature, signature) == 0, "%s for %s", found->signature, signature);
  for (int i = 0; i < found->n_records; i++) {
    const cs_record *record = &found->records[i];
    FUZZ_CHECK(cs_op_profile_record(found, record->candidate.id) == record,
               "two records of candidate %s", record->candidate.id);
    FUZZ_CHECK(record->measured.rejected || record->measured.cold_us > 0, "%s",
               record->candidate.id);
    FUZZ_CHECK(record->candidate.workspace_bytes >= 0, "%s", record->candidate.id);
    (void)cs_record_admissible(record, 1 << 20, true, 1);
  }
  (void)cs_op_profile_covers(found, &wanted);
  (void)cs_op_profile_covered_once(found, &wanted);
}

static inline void fuzz_use_profile(cs_profile *profile) {
  const cs_corun **coruns = NULL;
  int n = 0;
  cs_profile_signatures(profile, fuzz_use_operation, profile);
  fuzz_want_ok(cs_profile_coruns(profile, NULL, 0, &coruns, &n), "co-runs");
  for (int i = 0; i < n; i++) {
    FUZZ_CHECK(coruns[i]->n >= 2 && coruns[i]->concurrent_us >= 0, "a co-run of %d", coruns[i]->n);
  }
  free(coruns);
  const cs_device_info *device = cs_profile_device(profile);
  if (device) FUZZ_CHECK(device->units >= 0, "%d units", device->units);
}

#endif
