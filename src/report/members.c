#include "report/members.h"

#include <stdlib.h>
#include <string.h>

/* Equal but for how tensors lie in memory (what follows a '/'): a plan may mix layouts in ways that
 * the node's own operations, each of one layout throughout, do not. */
static bool same_but_for_layouts(const char *a, const char *b) {
  for (;; a++, b++) {
    if (*a == '/') a += strcspn(a, " ");
    if (*b == '/') b += strcspn(b, " ");
    if (*a != *b) return false;
    if (!*a) return true;
  }
}

static bool is_operation_of(const cs_report_node *node, const char *signature) {
  return node->n_ops > 0 && same_but_for_layouts(node->ops[0].signature, signature);
}

/* The first node of this operation from `first` on that is not among the n places; -1: none. */
static int next_place(const cs_report_nodes *nodes, const char *signature, int first,
                      const int *places, int n) {
  for (int i = first; i < nodes->n; i++) {
    bool used = false;
    for (int k = 0; k < n && !used; k++) used = places[k] == i;
    if (!used && is_operation_of(&nodes->items[i], signature)) return i;
  }
  return -1;
}

/* Places each member as early as can be from `first` on; how far the last is from there, -1 where
 * some have no node. */
static int place_from(const cs_report_nodes *nodes, const cs_corun *corun, int first, int *places) {
  int last = first;
  for (int i = 0; i < corun->n; i++) {
    places[i] = next_place(nodes, corun->members[i].signature, first, places, i);
    if (places[i] < 0) return -1;
    if (places[i] > last) last = places[i];
  }
  return last - first;
}

cs_status cs_report_places(const cs_report_nodes *nodes, const cs_corun *corun, int **out) {
  size_t n = (size_t)corun->n;
  int *best = cs_calloc(n, sizeof *best), *places = cs_calloc(n, sizeof *places);
  int least = -1;
  *out = NULL;
  if (!best || !places) {
    free(best);
    free(places);
    return cs_no_memory("places", n * sizeof *best);
  }
  for (int i = 0; i < nodes->n; i++) {
    int spread = place_from(nodes, corun, i, places);
    if (spread < 0 || (least >= 0 && spread >= least)) continue;
    memcpy(best, places, n * sizeof *best);
    least = spread;
  }
  free(places);
  if (least >= 0) {
    *out = best;
  } else {
    free(best);
  }
  return CS_OK;
}
