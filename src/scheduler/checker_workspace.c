/* The plan checker's workspace peak: the heaviest set of pairwise unordered tasks. Over the closed
 * order, it weighs the sum of all workspaces less the most that can be paired off, each byte of a
 * task's workspace with a byte of one later task's (weighted Dilworth). Pairings grow along
 * shortest augmenting paths (Edmonds and Karp, 1972). */
#include <inttypes.h>
#include <stdlib.h>

#include "scheduler/checker.h"

typedef struct pairing { /* bytes of an earlier task paired with bytes of this later one */
  int earlier;
  int64_t bytes;
} pairing;
typedef struct later_side {
  pairing *pairs;
  size_t n, capacity;
  int64_t left; /* bytes not paired yet */
} later_side;

typedef struct matcher {
  int n; /* tasks with a workspace, in launch order */
  int *positions;
  uint64_t *after; /* n sets: the tasks that start after this one has finished */
  size_t words;
  int64_t *left; /* as the earlier one: bytes not paired yet */
  later_side *later;
  uint64_t *unseen;
  int *via_earlier; /* per later task: the earlier one that reached it */
  int *
      via_later; /* per earlier task: the later one whose pair is undone, −1: a start, −2: unseen */
  int *queue;
} matcher;

static void matcher_free(matcher *m) {
  for (int i = 0; m->later && i < m->n; i++) free(m->later[i].pairs);
  free(m->positions);
  free(m->after);
  free(m->left);
  free(m->later);
  free(m->unseen);
  free(m->via_earlier);
  free(m->via_later);
  free(m->queue);
}

static cs_status matcher_init(matcher *m, const cs_checker *check) {
  const cs_plan *plan = check->plan;
  size_t n = (size_t)plan->n_tasks;
  m->positions = cs_calloc(n, sizeof *m->positions);
  if (!m->positions) return cs_no_memory("the plan checker", n);
  for (int p = 0; p < plan->n_tasks; p++)
    if (plan->tasks[p].workspace_bytes > 0) m->positions[m->n++] = p;
  n = (size_t)m->n;
  m->words = (n + 63) / 64;
  m->after = cs_calloc(n * m->words, sizeof *m->after);
  m->left = cs_calloc(n, sizeof *m->left);
  m->later = cs_calloc(n, sizeof *m->later);
  m->unseen = cs_calloc(m->words, sizeof *m->unseen);
  m->via_earlier = cs_calloc(n, sizeof *m->via_earlier);
  m->via_later = cs_calloc(n, sizeof *m->via_later);
  m->queue = cs_calloc(n, sizeof *m->queue);
  if (!m->after || !m->left || !m->later || !m->unseen || !m->via_earlier || !m->via_later ||
      !m->queue)
    return cs_no_memory("the plan checker", n * m->words * sizeof *m->after);
  for (size_t i = 0; i < n; i++) {
    m->left[i] = m->later[i].left = plan->tasks[m->positions[i]].workspace_bytes;
    for (size_t j = i + 1; j < n; j++)
      if (cs_checker_before(check, m->positions[i], m->positions[j]))
        m->after[i * m->words + j / 64] |= UINT64_C(1) << (j % 64);
  }
  return CS_OK;
}

static pairing *find_pair(matcher *m, int earlier, int later) {
  later_side *side = &m->later[later];
  for (size_t k = 0; k < side->n; k++)
    if (side->pairs[k].earlier == earlier) return &side->pairs[k];
  return NULL;
}

static cs_status add_pair(matcher *m, int earlier, int later, int64_t bytes) {
  pairing *pair = find_pair(m, earlier, later);
  later_side *side = &m->later[later];
  if (!pair) {
    CS_RETURN_IF_ERROR(cs_grow(&side->pairs, &side->capacity, side->n + 1, sizeof *side->pairs));
    pair = &side->pairs[side->n++];
    *pair = (pairing){earlier, 0};
  }
  pair->bytes += bytes;
  return CS_OK;
}

/* Breadth-first search from every earlier side with bytes left to a later side with bytes left;
 * returns that later task, −1 if there is none. */
static int search(matcher *m) {
  int head = 0, tail = 0;
  for (size_t w = 0; w < m->words; w++) m->unseen[w] = UINT64_MAX;
  for (int i = 0; i < m->n; i++) {
    m->via_later[i] = m->left[i] > 0 ? -1 : -2;
    if (m->left[i] > 0) m->queue[tail++] = i;
  }
  while (head < tail) {
    int i = m->queue[head++];
    for (size_t w = 0; w < m->words; w++) {
      uint64_t reached = m->after[(size_t)i * m->words + w] & m->unseen[w];
      m->unseen[w] &= ~reached;
      for (; reached; reached &= reached - 1) {
        int j = (int)(w * 64) + __builtin_ctzll(reached);
        m->via_earlier[j] = i;
        if (m->later[j].left > 0) return j;
        for (size_t k = 0; k < m->later[j].n; k++) {
          const pairing *pair = &m->later[j].pairs[k];
          if (pair->bytes == 0 || m->via_later[pair->earlier] != -2) continue;
          m->via_later[pair->earlier] = j;
          m->queue[tail++] = pair->earlier;
        }
      }
    }
  }
  return -1;
}

/* Pairs along the path that ends at later task j; returns the bytes through *paired. */
static cs_status augment(matcher *m, int j, int64_t *paired) {
  int64_t bytes = m->later[j].left;
  int i = m->via_earlier[j];
  for (int undone = m->via_later[i]; undone >= 0; undone = m->via_later[i]) {
    bytes = cs_min_i64(bytes, find_pair(m, i, undone)->bytes);
    i = m->via_earlier[undone];
  }
  bytes = cs_min_i64(bytes, m->left[i]);
  m->left[i] -= bytes;
  m->later[j].left -= bytes;
  i = m->via_earlier[j];
  CS_RETURN_IF_ERROR(add_pair(m, i, j, bytes));
  for (int undone = m->via_later[i]; undone >= 0; undone = m->via_later[i]) {
    find_pair(m, i, undone)->bytes -= bytes;
    i = m->via_earlier[undone];
    CS_RETURN_IF_ERROR(add_pair(m, i, undone, bytes));
  }
  *paired += bytes;
  return CS_OK;
}

cs_status cs_checker_workspace(const cs_checker *check, int64_t workspace_limit) {
  const cs_plan *plan = check->plan;
  cs_status st = CS_OK;
  matcher m = {0};
  int64_t total = 0, paired = 0;
  CS_TRY(st, matcher_init(&m, check), done);
  for (int i = 0; i < m.n; i++)
    if (!cs_add_i64(total, m.left[i], &total))
      CS_FAIL(st, done, CS_CODE_INTERNAL, "the workspaces exceed 2^63 bytes");
  for (int j = search(&m); j >= 0; j = search(&m)) CS_TRY(st, augment(&m, j, &paired), done);
  int64_t peak = total - paired;
  if (plan->workspace_peak != peak)
    CS_FAIL(st, done, CS_CODE_INTERNAL,
            "the plan says that %" PRId64
            " bytes of workspace are in use at once at most, but %" PRId64 " can be",
            plan->workspace_peak, peak);
  if (workspace_limit > 0 && peak > workspace_limit)
    CS_FAIL(st, done, CS_CODE_INTERNAL,
            "%" PRId64 " bytes of workspace can be in use at once, wanted at most %" PRId64, peak,
            workspace_limit);
done:
  matcher_free(&m);
  return st;
}
