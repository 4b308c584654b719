#include "runtime/timed_pair.h"

void cs_timed_pair_find(const cs_profile *profile, const cs_timed_pair *pair, double us[2],
                        bool *known) {
  const cs_op_profile *both = cs_profile_find(profile, pair->signature);
  *known = true;
  for (int way = 0; way < 2; way++) {
    const cs_record *record = cs_op_profile_record(both, pair->ids[way]);
    *known = *known && record && !record->measured.rejected;
    if (*known) us[way] = record->measured.cold_us;
  }
}

cs_status cs_timed_pair_keep(cs_profile *profile, const cs_timed_pair *pair, int way,
                             const double *samples, int n, double scale) {
  cs_measurement measured;
  CS_RETURN_IF_ERROR(cs_measurement_of(samples, n, scale, &measured));
  cs_candidate candidate = {.id = (char *)(uintptr_t)pair->ids[way],
                            .family = (char *)(uintptr_t) "schedule"};
  return cs_profile_add(profile, pair->signature, &candidate, &measured);
}
