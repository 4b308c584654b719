#include "report/members.h"

#include <stdlib.h>
#include <string.h>

/* Exactly, in one of its layouts, or but for layouts: a plan may mix them in ways that the node's
 * own operations, each of one layout throughout, do not. */
static bool is_operation_of(const cs_report_node *node, const char *signature, bool exactly) {
  if (!exactly) return node->n_ops > 0 && cs_signatures_alike(node->ops[0].signature, signature);
  for (int k = 0; k < node->n_ops; k++) {
    if (strcmp(node->ops[k].signature, signature) == 0) return true;
  }
  return false;
}

/* The first node of this operation from `first` on that is not among the n places; -1: none. */
static int next_place(const cs_report_nodes *nodes, const char *signature, int first, bool exactly,
                      const int *places, int n) {
  for (int i = first; i < nodes->n; i++) {
    bool used = false;
    for (int k = 0; k < n && !used; k++) used = places[k] == i;
    if (!used && is_operation_of(&nodes->items[i], signature, exactly)) return i;
  }
  return -1;
}

/* Places each member as early as can be from `first` on; how bad that is: the members whose node
 * only fits but for layouts (a slice of a concat is one) count most, then how far the last is from
 * `first`. -1 where some have no node. */
static int64_t place_from(const cs_report_nodes *nodes, const cs_corun *corun, int first,
                          int *places) {
  int last = first, loose = 0;
  for (int i = 0; i < corun->n; i++) {
    const char *signature = corun->members[i].signature;
    places[i] = next_place(nodes, signature, first, true, places, i);
    if (places[i] < 0) {
      places[i] = next_place(nodes, signature, first, false, places, i);
      loose++;
    }
    if (places[i] < 0) return -1;
    if (places[i] > last) last = places[i];
  }
  return (int64_t)loose * nodes->n + last - first;
}

cs_status cs_report_places(const cs_report_nodes *nodes, const cs_corun *corun, int **out) {
  size_t n = (size_t)corun->n;
  int *best = cs_calloc(n, sizeof *best), *places = cs_calloc(n, sizeof *places);
  int64_t least = -1;
  *out = NULL;
  if (!best || !places) {
    free(best);
    free(places);
    return cs_no_memory("places", n * sizeof *best);
  }
  for (int i = 0; i < nodes->n; i++) {
    int64_t badness = place_from(nodes, corun, i, places);
    if (badness < 0 || (least >= 0 && badness >= least)) continue;
    memcpy(best, places, n * sizeof *best);
    least = badness;
  }
  free(places);
  if (least >= 0) {
    *out = best;
  } else {
    free(best);
  }
  return CS_OK;
}
