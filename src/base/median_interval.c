/* A confidence interval of a median, without assumptions on the samples' distribution. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The largest k for which at most (1 − confidence) / 2 of the binomial distribution of n fair coins
 * is below k; 1 where there is none. *missed: that share, of one side. */
static int rank_of(int n, double confidence, double *missed) {
  double term = 1, below = 0; /* term: the probability of k heads, from k = 0 */
  for (int i = 0; i < n; i++) term /= 2;
  int k = 0;
  *missed = 0.5;
  for (; k < (n + 1) / 2; k++) {
    double next = below + term;
    if (k > 0 && next > (1 - confidence) / 2) break;
    below = *missed = next;
    term *= (double)(n - k) / (k + 1);
  }
  return k > 0 ? k : 1;
}

cs_status cs_median_interval_of(const double *samples, int n, double confidence,
                                cs_median_interval *out) {
  *out = (cs_median_interval){0};
  if (n <= 0) return CS_OK;
  double *sorted = cs_calloc((size_t)n, sizeof *sorted), missed;
  if (!sorted) return cs_no_memory("samples", (size_t)n * sizeof *sorted);
  memcpy(sorted, samples, (size_t)n * sizeof *sorted);
  qsort(sorted, (size_t)n, sizeof *sorted, compare_doubles);
  int k = rank_of(n, confidence, &missed);
  out->low = sorted[k - 1];
  out->high = sorted[n - k];
  out->confidence = 1 - 2 * missed;
  free(sorted);
  return CS_OK;
}
