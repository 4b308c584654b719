/* Blocks of tasks: the program is cut wherever every task behind depends on every task before. */
#include "scheduler/internal.h"

/* How many of the first tasks are in a set of ancestors, without a gap. */
static int leading_ancestors(const uint64_t *set, int n) {
  for (size_t w = 0; w < cs_bit_words(n); w++)
    if (~set[w]) return (int)(w * 64) + __builtin_ctzll(~set[w]);
  return n;
}

void cs_dag_blocks(const uint64_t *ancestors, int n, bool *closes) {
  int shared = n; /* first tasks that all later ones depend on */
  for (int t = n - 1; t >= 0; t--) {
    closes[t] = shared > t;
    int leading = leading_ancestors(ancestors + (size_t)t * cs_bit_words(n), n);
    if (leading < shared) shared = leading;
  }
}
