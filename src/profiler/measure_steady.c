#include <math.h>
#include <string.h>

#include "profiler/measure.h"

#define DRIFT 0.02

static cs_status sample_anchor(cs_sweeps *sweeps, cs_anchor *anchor) {
  sweeps->anchors[sweeps->n] = 1;
  return anchor ? cs_anchor_sample(anchor, &sweeps->anchors[sweeps->n]) : CS_OK;
}

cs_status cs_sweeps_begin(cs_sweeps *sweeps, cs_anchor *anchor) {
  memset(sweeps, 0, sizeof *sweeps);
  return sample_anchor(sweeps, anchor);
}

cs_status cs_sweeps_end_one(cs_sweeps *sweeps, cs_anchor *anchor) {
  cs_stats stats;
  sweeps->n++;
  CS_RETURN_IF_ERROR(sample_anchor(sweeps, anchor));
  CS_RETURN_IF_ERROR(cs_stats_of(sweeps->anchors, sweeps->n + 1, &stats));
  const double within = DRIFT * stats.median;
  sweeps->n_steady = 0;
  for (int s = 0; s < sweeps->n; s++) {
    sweeps->steady[s] = fabs(sweeps->anchors[s] - stats.median) <= within &&
                        fabs(sweeps->anchors[s + 1] - stats.median) <= within;
    sweeps->n_steady += sweeps->steady[s];
  }
  return CS_OK;
}

bool cs_sweeps_done(const cs_sweeps *sweeps, int wanted) {
  if (sweeps->n < wanted) return false;
  return sweeps->n_steady >= wanted || sweeps->n >= wanted + wanted / 2;
}

int cs_sweeps_keep(const cs_sweeps *sweeps, int wanted, double *samples) {
  if (2 * sweeps->n_steady < wanted) return sweeps->n;
  int kept = 0;
  for (int s = 0; s < sweeps->n; s++) {
    if (sweeps->steady[s]) samples[kept++] = samples[s];
  }
  return kept;
}
