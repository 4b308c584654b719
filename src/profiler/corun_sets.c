#include "profiler/corun_sets.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MOST_IN_BLOCK 64  /* convolutions of a block that are looked at: the heaviest */
#define MOST_CLIQUES 4096 /* maximal sets of a block that are looked at */

typedef struct collection {
  const cs_program *program;
  const double *weights;
  int most;
  size_t words;
  uint64_t *ancestors; /* per task */
  int *block_of;       /* per task; -1: not considered */
  int n_blocks;
  char **signatures; /* per task considered */
  json_t *seen;
  cs_corun_set *sets;
  int n;
  size_t capacity;
} collection;

/* One block: its convolutions, who may run beside whom, the sets found. */
typedef struct block_sets {
  const collection *all;
  int tasks[MOST_IN_BLOCK], n;
  uint64_t beside[MOST_IN_BLOCK];
  uint64_t *cliques;
  int n_cliques;
} block_sets;

/* ---- Who depends on whom ---- */

static bool depends(const collection *c, int task, int on) {
  return (c->ancestors[(size_t)task * c->words + (size_t)on / 64] >> (on % 64)) & 1;
}

static cs_status find_ancestors(collection *c) {
  int n = c->program->n_tasks;
  c->words = ((size_t)n + 63) / 64;
  c->ancestors = cs_calloc((size_t)n * c->words, sizeof *c->ancestors);
  if (!c->ancestors) return cs_no_memory("ancestors", (size_t)n * c->words * sizeof(uint64_t));
  for (int t = 0; t < n; t++) {
    const cs_task *task = &c->program->tasks[t];
    uint64_t *set = &c->ancestors[(size_t)t * c->words];
    for (int p = 0; p < task->n_preds; p++) {
      int pred = task->preds[p];
      const uint64_t *from = &c->ancestors[(size_t)pred * c->words];
      for (size_t w = 0; w < c->words; w++) set[w] |= from[w];
      set[pred / 64] |= UINT64_C(1) << (pred % 64);
    }
  }
  return CS_OK;
}

static cs_status find_blocks(collection *c, const bool *wanted) {
  cs_status st = CS_OK;
  const cs_program *program = c->program;
  int *node_block = cs_calloc((size_t)program->graph->n_nodes, sizeof *node_block);
  c->block_of = cs_calloc((size_t)program->n_tasks, sizeof *c->block_of);
  c->signatures = cs_calloc((size_t)program->n_tasks, sizeof *c->signatures);
  if (!node_block || !c->block_of || !c->signatures) {
    st = cs_no_memory("blocks", (size_t)program->n_tasks * sizeof *c->block_of);
    goto done;
  }
  CS_TRY(st, cs_graph_blocks(program->graph, node_block, &c->n_blocks), done);
  for (int t = 0; t < program->n_tasks; t++) {
    const cs_task *task = &program->tasks[t];
    bool convolution = task->desc.op == CS_OP_CONV || task->desc.op == CS_OP_CONV_TRANSPOSE;
    c->block_of[t] = -1;
    if (task->node < 0 || !convolution || (wanted && !wanted[t])) continue;
    c->block_of[t] = node_block[task->node];
    CS_TRY(st, cs_op_signature(&task->desc, &c->signatures[t]), done);
  }
done:
  free(node_block);
  return st;
}

/* ---- Sets of one block ---- */

/* Bron and Kerbosch (1973) with a pivot, over bit sets: `grown` is a set that may be extended by
 * any of `candidates`; those in `excluded` have had their turn. */
static void grow_clique(block_sets *b, uint64_t grown, uint64_t candidates, uint64_t excluded) {
  if (b->n_cliques == MOST_CLIQUES) return;
  if (!candidates && !excluded) {
    b->cliques[b->n_cliques++] = grown;
    return;
  }
  int pivot = __builtin_ctzll(candidates | excluded);
  for (uint64_t left = candidates & ~b->beside[pivot]; left; left &= left - 1) {
    int i = __builtin_ctzll(left);
    uint64_t bit = UINT64_C(1) << i;
    grow_clique(b, grown | bit, candidates & b->beside[i], excluded & b->beside[i]);
    candidates &= ~bit;
    excluded |= bit;
  }
}

static double weight_of(const block_sets *b, int i) {
  return b->all->weights[b->tasks[i]];
}

/* The heaviest `most` members. */
static uint64_t heaviest(const block_sets *b, uint64_t set) {
  while (__builtin_popcountll(set) > b->all->most) {
    int lightest = __builtin_ctzll(set);
    for (uint64_t left = set; left; left &= left - 1) {
      int i = __builtin_ctzll(left);
      if (weight_of(b, i) < weight_of(b, lightest)) lightest = i;
    }
    set &= ~(UINT64_C(1) << lightest);
  }
  return set;
}

/* Of pairs the lighter member's weight bounds the gain; larger sets go by their sum. */
static double rank_of(const block_sets *b, uint64_t set) {
  double sum = 0, least = 0;
  for (uint64_t left = set; left; left &= left - 1) {
    double weight = weight_of(b, __builtin_ctzll(left));
    if (left == set || weight < least) least = weight;
    sum += weight;
  }
  return __builtin_popcountll(set) == 2 ? least : sum;
}

static int compare_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* False if a set of the same signatures is there already. */
static cs_status note_signatures(collection *c, const cs_corun_set *set, bool *is_new) {
  const char *names[CS_CORUN_MOST];
  cs_strbuf key = {0};
  char *text = NULL;
  for (int i = 0; i < set->n; i++) names[i] = c->signatures[set->tasks[i]];
  qsort(names, (size_t)set->n, sizeof *names, compare_text);
  for (int i = 0; i < set->n; i++) cs_strbuf_printf(&key, "%s&", names[i]);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&key, &text));
  *is_new = !json_object_get(c->seen, text);
  int failed = json_object_set_new(c->seen, text, json_true());
  free(text);
  return failed ? cs_no_memory("signatures", 0) : CS_OK;
}

static cs_status add_set(collection *c, const block_sets *b, uint64_t members, int block,
                         bool *added) {
  cs_corun_set set = {.block = block};
  for (uint64_t left = members; left; left &= left - 1) {
    set.tasks[set.n++] = b->tasks[__builtin_ctzll(left)];
  }
  CS_RETURN_IF_ERROR(note_signatures(c, &set, added));
  if (!*added) return CS_OK;
  CS_RETURN_IF_ERROR(cs_grow(&c->sets, &c->capacity, (size_t)c->n + 1, sizeof *c->sets));
  c->sets[c->n++] = set;
  return CS_OK;
}

/* Takes the best ranked of `sets`, up to `most` new ones. */
static cs_status take_best(collection *c, const block_sets *b, uint64_t *sets, int n, int most,
                           int block) {
  for (int taken = 0; taken < most && c->n < CS_CORUN_SETS;) {
    int best = -1;
    for (int i = 0; i < n; i++) {
      if (sets[i] && (best < 0 || rank_of(b, sets[i]) > rank_of(b, sets[best]))) best = i;
    }
    if (best < 0) break;
    bool added = false;
    CS_RETURN_IF_ERROR(add_set(c, b, sets[best], block, &added));
    sets[best] = 0;
    taken += added;
  }
  return CS_OK;
}

/* Larger sets to the front of `sets`; returns how many. */
static int larger_sets(const block_sets *b, uint64_t *sets) {
  int n = 0;
  for (int i = 0; i < b->n_cliques; i++) {
    uint64_t set = heaviest(b, b->cliques[i]);
    if (__builtin_popcountll(set) > 2) sets[n++] = set;
  }
  return n;
}

static int pairs_of(const block_sets *b, uint64_t *sets) {
  int n = 0;
  for (int i = 0; i < b->n; i++) {
    for (int k = i + 1; k < b->n; k++) {
      if ((b->beside[i] >> k) & 1) sets[n++] = UINT64_C(1) << i | UINT64_C(1) << k;
    }
  }
  return n;
}

/* The block's convolutions: all, or the heaviest, in the program's order. */
static void gather_tasks(const collection *c, int block, block_sets *b) {
  b->n = 0;
  for (int t = 0; t < c->program->n_tasks; t++) {
    if (c->block_of[t] != block) continue;
    if (b->n == MOST_IN_BLOCK) {
      int lightest = 0;
      for (int i = 1; i < b->n; i++) {
        if (weight_of(b, i) < weight_of(b, lightest)) lightest = i;
      }
      if (c->weights[b->tasks[lightest]] >= c->weights[t]) continue;
      memmove(&b->tasks[lightest], &b->tasks[lightest + 1],
              (size_t)(b->n - lightest - 1) * sizeof *b->tasks);
      b->n--;
    }
    b->tasks[b->n++] = t;
  }
  for (int i = 0; i < b->n; i++) {
    b->beside[i] = 0;
    for (int k = 0; k < b->n; k++) {
      int x = b->tasks[i], y = b->tasks[k];
      if (i != k && !depends(c, x, y) && !depends(c, y, x)) b->beside[i] |= UINT64_C(1) << k;
    }
  }
}

static cs_status sets_of_block(collection *c, int block, uint64_t *cliques, uint64_t *sets) {
  block_sets b = {.all = c, .cliques = cliques};
  gather_tasks(c, block, &b);
  if (b.n < 2 || c->most < 2) return CS_OK;
  grow_clique(&b, 0, b.n == 64 ? UINT64_MAX : (UINT64_C(1) << b.n) - 1, 0);
  int n = larger_sets(&b, sets);
  CS_RETURN_IF_ERROR(take_best(c, &b, sets, n, CS_CORUN_BLOCK_SETS, block));
  n = pairs_of(&b, sets);
  return take_best(c, &b, sets, n, CS_CORUN_BLOCK_PAIRS, block);
}

static void collection_free(collection *c) {
  for (int t = 0; c->signatures && t < c->program->n_tasks; t++) free(c->signatures[t]);
  free(c->signatures);
  free(c->block_of);
  free(c->ancestors);
  free(c->sets);
  json_decref(c->seen);
}

cs_status cs_corun_sets_of(const cs_program *program, const bool *wanted, const double *weights,
                           int most, cs_corun_set **out, int *n) {
  cs_status st = CS_OK;
  collection c = {.program = program, .weights = weights, .seen = json_object()};
  uint64_t *cliques = cs_calloc(MOST_CLIQUES, sizeof *cliques);
  uint64_t *sets = cs_calloc(MOST_CLIQUES, sizeof *sets);
  *out = NULL;
  *n = 0;
  c.most = most < CS_CORUN_MOST ? most : CS_CORUN_MOST;
  if (!cliques || !sets || !c.seen) {
    st = cs_no_memory("sets of operations", 2 * MOST_CLIQUES * sizeof *sets);
    goto done;
  }
  CS_TRY(st, find_ancestors(&c), done);
  CS_TRY(st, find_blocks(&c, wanted), done);
  for (int block = 0; block < c.n_blocks; block++) {
    CS_TRY(st, sets_of_block(&c, block, cliques, sets), done);
  }
  *out = c.sets;
  *n = c.n;
  c.sets = NULL;
done:
  collection_free(&c);
  free(cliques);
  free(sets);
  return st;
}
