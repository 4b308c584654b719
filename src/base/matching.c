/* Maximum bipartite matching: Hopcroft and Karp, "An n^5/2 algorithm for maximum matchings in
 * bipartite graphs", SIAM J. Comput. 1973. Here phases start at unmatched right nodes, because the
 * edges are listed by right node. */
#include <stdlib.h>

#include "base/dag.h"

typedef struct matcher {
  const cs_dag *edges;
  int *next, *prev; /* partner of a left node, of a right node */
  int *level;       /* of a right node in the current phase, -1: not reached */
  int *cursor;      /* next edge of a right node to try */
  int *queue;       /* also the path of right nodes of the depth-first search */
} matcher;

/* Levels of alternating paths; true if one reaches an unmatched left node. */
static bool grow_levels(matcher *m) {
  int head = 0, tail = 0;
  bool found = false;
  for (int v = 0; v < m->edges->n; v++) {
    m->level[v] = m->prev[v] < 0 ? 0 : -1;
    m->cursor[v] = m->edges->first[v];
    if (m->level[v] == 0) m->queue[tail++] = v;
  }
  while (head < tail) {
    int v = m->queue[head++];
    for (int e = m->edges->first[v]; e < m->edges->first[v + 1]; e++) {
      int w = m->next[m->edges->from[e]];
      if (w < 0) {
        found = true;
      } else if (m->level[w] < 0) {
        m->level[w] = m->level[v] + 1;
        m->queue[tail++] = w;
      }
    }
  }
  return found;
}

/* Flips the edges of the path whose right nodes are path[0 … length − 1], each by its cursor. */
static void flip(matcher *m, const int *path, int length) {
  for (int i = length - 1; i >= 0; i--) {
    int v = path[i], u = m->edges->from[m->cursor[v]];
    m->next[u] = v;
    m->prev[v] = u;
  }
}

/* A depth-first search along the levels from right node `root`, without recursion. */
static bool augment(matcher *m, int root) {
  int *path = m->queue, length = 0;
  path[length++] = root;
  while (length > 0) {
    int v = path[length - 1];
    if (m->cursor[v] == m->edges->first[v + 1]) {
      length--;
      if (length > 0) m->cursor[path[length - 1]]++;
      continue;
    }
    int w = m->next[m->edges->from[m->cursor[v]]];
    if (w < 0) {
      flip(m, path, length);
      return true;
    }
    if (m->level[w] == m->level[v] + 1) {
      path[length++] = w;
    } else {
      m->cursor[v]++;
    }
  }
  return false;
}

cs_status cs_bipartite_match(const cs_dag *edges, int *next, int *prev, int *size) {
  cs_status st = CS_OK;
  size_t n = (size_t)edges->n;
  matcher m = {.edges = edges, .next = next, .prev = prev};
  m.level = cs_calloc(n, sizeof *m.level);
  m.cursor = cs_calloc(n, sizeof *m.cursor);
  m.queue = cs_calloc(n, sizeof *m.queue);
  if (!m.level || !m.cursor || !m.queue)
    CS_FAIL(st, done, CS_CODE_NO_MEMORY, "out of memory for a matching of %zu nodes", n);
  *size = 0;
  for (size_t i = 0; i < n; i++) next[i] = prev[i] = -1;
  while (grow_levels(&m)) {
    for (int v = 0; v < edges->n; v++)
      if (prev[v] < 0 && m.level[v] == 0 && augment(&m, v)) ++*size;
  }
done:
  free(m.level);
  free(m.cursor);
  free(m.queue);
  return st;
}
