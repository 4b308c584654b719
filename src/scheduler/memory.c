/* The memory planner. Items are the program's buffers and the plan's workspaces; two may share
 * bytes only if every use of one happens before every use of the other. Packing intervals under
 * such a relation is NP-hard; several orders are tried, each item into the tightest (or lowest)
 * gap among the placed items that it conflicts with; an item that does not fit below the best arena
 * so far is tried earlier; the smallest arena is kept. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/internal.h"

typedef struct item {
  int64_t bytes;   /* rounded up to the alignment; 0: takes no part */
  int first, last; /* launch positions of the uses */
  bool used, whole;
} item;

typedef struct packer {
  int n; /* items: buffers, then workspaces by position */
  item *items;
  size_t words;        /* of a set of items */
  uint64_t *conflicts; /* n sets of items */
  int *order;          /* items in the order of placing */
  int *placed;         /* placed items by offset */
  int64_t *offsets, *best_offsets;
  int64_t best_arena, least_arena;
} packer;

static void packer_free(packer *pack) {
  free(pack->items);
  free(pack->conflicts);
  free(pack->order);
  free(pack->placed);
  free(pack->offsets);
  free(pack->best_offsets);
}

static cs_status packer_allocate(packer *pack, int n) {
  size_t count = (size_t)n;
  pack->n = n;
  pack->words = cs_bit_words(n);
  pack->items = cs_calloc(count, sizeof *pack->items);
  pack->conflicts = cs_calloc(count * pack->words, sizeof *pack->conflicts);
  pack->order = cs_calloc(count, sizeof *pack->order);
  pack->placed = cs_calloc(count, sizeof *pack->placed);
  pack->offsets = cs_calloc(count, sizeof *pack->offsets);
  pack->best_offsets = cs_calloc(count, sizeof *pack->best_offsets);
  if (pack->items && pack->conflicts && pack->order && pack->placed && pack->offsets &&
      pack->best_offsets)
    return CS_OK;
  return cs_no_memory("the memory planner", count * pack->words * sizeof *pack->conflicts);
}

/* ---- Items and their uses ---- */

typedef struct use_sets {
  size_t words;     /* of a set of positions */
  uint64_t *uses;   /* per item: positions that use it */
  uint64_t *before; /* per item: positions that happen before all its uses */
  uint64_t *until;  /* per item: its uses and the positions that happen before one of them */
} use_sets;

static void add_use(packer *pack, const use_sets *sets, const cs_order *order, int i,
                    int position) {
  item *it = &pack->items[i];
  uint64_t *before = sets->before + (size_t)i * sets->words;
  const uint64_t *earlier = cs_order_set(order, position);
  if (!it->used) {
    memcpy(before, earlier, sets->words * sizeof *before);
    it->first = position;
  } else {
    for (size_t w = 0; w < sets->words; w++) before[w] &= earlier[w];
  }
  uint64_t *until = sets->until + (size_t)i * sets->words;
  cs_bits_or(until, earlier, sets->words);
  cs_bit_set(until, position);
  it->used = true;
  it->last = position;
  cs_bit_set(sets->uses + (size_t)i * sets->words, position);
}

static cs_status item_bytes(int64_t bytes, const char *what, int64_t *total, int64_t *out) {
  int64_t padded;
  if (bytes < 0 || !cs_add_i64(bytes, CS_ARENA_ALIGNMENT - 1, &padded) ||
      !cs_add_i64(*total, padded, total))
    return cs_error(CS_CODE_BAD_INPUT, "%s: %" PRId64 " bytes are out of range", what, bytes);
  *out = cs_round_up(bytes, CS_ARENA_ALIGNMENT);
  return CS_OK;
}

static cs_status collect_items(packer *pack, const use_sets *sets, const cs_order *order,
                               const cs_plan *plan, const cs_program *program, bool reuse) {
  int64_t total = 0;
  for (int b = 0; b < program->n_buffers; b++) {
    const cs_buffer *buffer = &program->buffers[b];
    CS_RETURN_IF_ERROR(item_bytes(buffer->bytes, buffer->name, &total, &pack->items[b].bytes));
    pack->items[b].whole = !reuse || buffer->kind != CS_BUFFER_INTERMEDIATE;
    if (pack->items[b].whole) pack->items[b].last = plan->n_tasks;
  }
  for (int p = 0; p < plan->n_tasks; p++) {
    const cs_task *task = &program->tasks[plan->tasks[p].task];
    int workspace = program->n_buffers + p;
    CS_RETURN_IF_ERROR(item_bytes(plan->tasks[p].workspace_bytes, task->name, &total,
                                  &pack->items[workspace].bytes));
    if (pack->items[workspace].bytes > 0) add_use(pack, sets, order, workspace, p);
    for (int i = 0; i < task->desc.n_inputs; i++)
      add_use(pack, sets, order, program->tensors[task->inputs[i]].buffer, p);
    add_use(pack, sets, order, program->tensors[task->output].buffer, p);
  }
  return CS_OK;
}

/* ---- Conflicts ---- */

static bool all_before(const use_sets *sets, int a, int b) {
  return cs_bits_subset(sets->uses + (size_t)a * sets->words,
                        sets->before + (size_t)b * sets->words, sets->words);
}

static bool in_conflict(const packer *pack, const use_sets *sets, int a, int b) {
  const item *x = &pack->items[a], *y = &pack->items[b];
  if (x->whole || y->whole) return true;
  if (!x->used || !y->used) return false;
  /* A use at a later launch position never happens before an earlier one. */
  if (x->last < y->first) return !all_before(sets, a, b);
  if (y->last < x->first) return !all_before(sets, b, a);
  return true;
}

static void find_conflicts(packer *pack, const use_sets *sets) {
  for (int a = 0; a < pack->n; a++) {
    if (pack->items[a].bytes == 0) continue;
    for (int b = a + 1; b < pack->n; b++) {
      if (pack->items[b].bytes == 0) continue;
      if (!in_conflict(pack, sets, a, b)) continue;
      cs_bit_set(pack->conflicts + (size_t)a * pack->words, b);
      cs_bit_set(pack->conflicts + (size_t)b * pack->words, a);
    }
  }
}

/* Is the item used at or before a position and at or after it? Any two that are, conflict. */
static bool lives_at(const packer *pack, const use_sets *sets, const cs_order *order, int i,
                     int position) {
  const uint64_t *uses = sets->uses + (size_t)i * sets->words;
  if (pack->items[i].whole) return true;
  if (!cs_bit_get(sets->until + (size_t)i * sets->words, position)) return false;
  if (cs_bit_get(uses, position)) return true;
  const uint64_t *earlier = cs_order_set(order, position);
  for (size_t w = 0; w < sets->words; w++)
    if (uses[w] & earlier[w]) return true;
  return false;
}

/* The most bytes that live at one position: no arena is smaller. */
static int64_t least_arena(const packer *pack, const use_sets *sets, const cs_order *order) {
  int64_t most = 0;
  for (int p = 0; p < order->n; p++) {
    int64_t sum = 0;
    for (int i = 0; i < pack->n; i++)
      if (pack->items[i].bytes > 0 && lives_at(pack, sets, order, i, p))
        sum += pack->items[i].bytes;
    most = cs_max_i64(most, sum);
  }
  return most;
}

/* ---- Placing ---- */

typedef enum fit_rule { BEST_FIT, FIRST_FIT } fit_rule;

/* The offset of the tightest or the lowest gap for item i, else behind everything it conflicts
 * with. */
static int64_t find_gap(const packer *pack, int n_placed, int i, fit_rule rule) {
  const uint64_t *conflicts = pack->conflicts + (size_t)i * pack->words;
  int64_t need = pack->items[i].bytes, end = 0, best = -1, best_gap = INT64_MAX;
  for (int k = 0; k < n_placed; k++) {
    int other = pack->placed[k];
    if (!cs_bit_get(conflicts, other)) continue;
    int64_t gap = pack->offsets[other] - end;
    if (gap >= need && gap < best_gap) {
      best = end;
      best_gap = gap;
      if (rule == FIRST_FIT) break;
    }
    end = cs_max_i64(end, pack->offsets[other] + pack->items[other].bytes);
  }
  return best >= 0 ? best : end;
}

/* Places the items in order; keeps the result if the arena is smaller than the best so far, else
 * stops at the first item that does not fit below it and returns its place in the order. */
static int place_all(packer *pack, int n_ordered, fit_rule rule) {
  int64_t arena = 0;
  for (int k = 0; k < n_ordered; k++) {
    int i = pack->order[k], at = k;
    int64_t offset = find_gap(pack, k, i, rule);
    arena = cs_max_i64(arena, offset + pack->items[i].bytes);
    if (arena >= pack->best_arena) return k;
    while (at > 0 && pack->offsets[pack->placed[at - 1]] > offset) {
      pack->placed[at] = pack->placed[at - 1];
      at--;
    }
    pack->placed[at] = i;
    pack->offsets[i] = offset;
  }
  pack->best_arena = arena;
  memcpy(pack->best_offsets, pack->offsets, (size_t)pack->n * sizeof *pack->offsets);
  return -1;
}

/* ---- Orders ---- */

typedef struct sort_key {
  double key;
  int64_t bytes;
  int item;
} sort_key;

/* Larger keys first, then larger items, then lower numbers. */
static int compare_keys(const void *a, const void *b) {
  const sort_key *x = a, *y = b;
  if (x->key != y->key) return x->key > y->key ? -1 : 1;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return (x->item > y->item) - (x->item < y->item);
}

static double key_of(const item *it, int rule) {
  double lifetime = (double)(it->last - it->first + 1);
  switch (rule) {
    case 0:
      return (double)it->bytes;
    case 1:
      return (double)it->bytes * lifetime;
    case 2:
      return -(double)it->first;
    default:
      return lifetime;
  }
}
#define N_KEYS 4

static int sort_items(packer *pack, sort_key *keys, int rule) {
  int n = 0;
  for (int i = 0; i < pack->n; i++)
    if (pack->items[i].bytes > 0)
      keys[n++] = (sort_key){key_of(&pack->items[i], rule), pack->items[i].bytes, i};
  qsort(keys, (size_t)n, sizeof *keys, compare_keys);
  for (int k = 0; k < n; k++) pack->order[k] = keys[k].item;
  return n;
}

/* Work that improving an order may take, in steps of find_gap, and in rounds. */
#define MOST_STEPS 8000000.0
#define MOST_ROUNDS 200

/* The item that did not fit below the best arena is placed earlier and the order tried again. */
static void improve_order(packer *pack, int n, fit_rule rule) {
  double steps = (double)n * n / 2 + 1;
  int rounds = steps * MOST_ROUNDS > MOST_STEPS ? (int)(MOST_STEPS / steps) : MOST_ROUNDS;
  for (int round = 0; round <= rounds && pack->best_arena > pack->least_arena; round++) {
    int misfit = place_all(pack, n, rule);
    if (misfit < 0) continue;
    if (misfit == 0) return;
    int item_moved = pack->order[misfit], to = round % 2 ? misfit / 2 : 0;
    memmove(pack->order + to + 1, pack->order + to, (size_t)(misfit - to) * sizeof *pack->order);
    pack->order[to] = item_moved;
  }
}

static cs_status try_orders(packer *pack) {
  sort_key *keys = cs_calloc((size_t)pack->n, sizeof *keys);
  if (!keys) return cs_no_memory("the memory planner", (size_t)pack->n * sizeof *keys);
  pack->best_arena = INT64_MAX;
  for (int rule = 0; rule < N_KEYS; rule++) {
    int n = sort_items(pack, keys, rule);
    improve_order(pack, n, BEST_FIT);
    sort_items(pack, keys, rule);
    improve_order(pack, n, FIRST_FIT);
  }
  free(keys);
  return CS_OK;
}

cs_status cs_plan_memory(cs_plan *plan, const cs_program *program, bool reuse,
                         int64_t memory_limit) {
  cs_status st = CS_OK;
  cs_order *order = NULL;
  packer pack = {0};
  use_sets sets = {.words = cs_bit_words(plan->n_tasks)};
  int n = program->n_buffers + plan->n_tasks;
  CS_TRY(st, cs_order_create(plan, &order), done);
  CS_TRY(st, packer_allocate(&pack, n), done);
  sets.uses = cs_calloc((size_t)n * sets.words, sizeof *sets.uses);
  sets.before = cs_calloc((size_t)n * sets.words, sizeof *sets.before);
  sets.until = cs_calloc((size_t)n * sets.words, sizeof *sets.until);
  if (!sets.uses || !sets.before || !sets.until)
    CS_FAIL(st, done, CS_CODE_NO_MEMORY, "out of memory for the uses of %d buffers", n);
  CS_TRY(st, collect_items(&pack, &sets, order, plan, program, reuse), done);
  find_conflicts(&pack, &sets);
  pack.least_arena = least_arena(&pack, &sets, order);
  CS_TRY(st, try_orders(&pack), done);
  CS_TRY(st, cs_plan_workspace_peak(plan, &plan->workspace_peak), done);
  plan->arena_bytes = pack.best_arena;
  for (int b = 0; b < program->n_buffers; b++) plan->buffer_offsets[b] = pack.best_offsets[b];
  for (int p = 0; p < plan->n_tasks; p++)
    plan->tasks[p].workspace_offset = pack.best_offsets[program->n_buffers + p];
  if (memory_limit > 0 && plan->arena_bytes > memory_limit)
    CS_FAIL(st, done, CS_CODE_NO_MEMORY,
            "the plan needs %" PRId64 " bytes of arena: wanted at most %" PRId64
            " (the memory limit)",
            plan->arena_bytes, memory_limit);
done:
  free(sets.uses);
  free(sets.before);
  free(sets.until);
  packer_free(&pack);
  cs_order_destroy(order);
  return st;
}
