/* Two ways to run one plan, timed in turn, as the profile keeps them: an operation with two
 * candidates. */
#ifndef CONVSCHED_RUNTIME_TIMED_PAIR_H_
#define CONVSCHED_RUNTIME_TIMED_PAIR_H_

#include "profiler/profile.h"

typedef struct cs_timed_pair {
  char *signature; /* of the operation; free() releases */
  char ids[2][40]; /* of the two ways */
} cs_timed_pair;
/* us[2]: microseconds of each way; *known false: not both are there. */
void cs_timed_pair_find(const cs_profile *profile, const cs_timed_pair *pair, double us[2],
                        bool *known);
/* n samples of way 0 or 1, times `scale`: the medians that are kept should stand in the ratio of
 * the pairs. */
cs_status cs_timed_pair_keep(cs_profile *profile, const cs_timed_pair *pair, int way,
                             const double *samples, int n, double scale) CS_MUST_USE;

#endif
