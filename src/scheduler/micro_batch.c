#include "scheduler/micro_batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHARES 4096 /* of the workspace limit, that workspaces are counted in */

void cs_micro_result_free(cs_micro_result *result) {
  for (int i = 0; result->parts && i < result->n_ops; i++) free(result->parts[i].sizes);
  free(result->parts);
  memset(result, 0, sizeof *result);
}

/* ---- Sizes ---- */

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int unique(int64_t *values, int n) {
  int kept = 0;
  qsort(values, (size_t)n, sizeof *values, by_value);
  for (int i = 0; i < n; i++) {
    if (kept == 0 || values[i] != values[kept - 1]) values[kept++] = values[i];
  }
  return kept;
}

/* The fastest way to run so many entries within a workspace limit; NULL: none. */
static const cs_micro_way *fastest(const cs_micro_op *op, int64_t entries, int64_t limit) {
  const cs_micro_way *best = NULL;
  for (int i = 0; i < op->n_ways; i++) {
    const cs_micro_way *way = &op->ways[i];
    if (way->entries != entries || way->workspace_bytes > limit) continue;
    if (!best || way->cold_us < best->cold_us) best = way;
  }
  return best;
}

/* ---- The least sum of parts: which sizes add up to the batch ---- */

/* A size and what a part of it costs; INFINITY: it cannot be. */
typedef struct priced_size {
  int64_t entries;
  double us;
} priced_size;

typedef struct sum_table {
  double *us; /* per number of entries */
  int *parts; /* the fewest parts of that cost */
  int *last;  /* the size of one of them */
} sum_table;

static cs_status make_table(int64_t batch, sum_table *table) {
  size_t n = (size_t)batch + 1;
  table->us = cs_calloc(n, sizeof *table->us);
  table->parts = cs_calloc(n, sizeof *table->parts);
  table->last = cs_calloc(n, sizeof *table->last);
  if (table->us && table->parts && table->last) return CS_OK;
  return cs_no_memory("parts of a batch", n * sizeof *table->us);
}

static void free_table(sum_table *table) {
  free(table->us);
  free(table->parts);
  free(table->last);
}

/* µ-cuDNN's dynamic program: the least cost of m entries is that of a part and of the others. */
static double sum_up(const priced_size *sizes, int n, int64_t batch, sum_table *table) {
  table->us[0] = 0;
  table->parts[0] = 0;
  for (int64_t m = 1; m <= batch; m++) {
    table->us[m] = INFINITY;
    table->parts[m] = 0;
    for (int i = 0; i < n; i++) {
      if (sizes[i].entries > m) continue;
      double us = sizes[i].us + table->us[m - sizes[i].entries];
      int parts = 1 + table->parts[m - sizes[i].entries];
      if (us < table->us[m] || (us == table->us[m] && parts < table->parts[m])) {
        table->us[m] = us;
        table->parts[m] = parts;
        table->last[m] = i;
      }
    }
  }
  return table->us[batch];
}

/* The parts of the table's last sum, largest first. */
static cs_status take_parts(const priced_size *sizes, int64_t batch, const sum_table *table,
                            cs_micro_parts *out) {
  int n = table->parts[batch];
  out->sizes = cs_calloc((size_t)n, sizeof *out->sizes);
  if (!out->sizes) return cs_no_memory("parts", (size_t)n * sizeof *out->sizes);
  for (int64_t m = batch; m > 0; m -= sizes[table->last[m]].entries) {
    out->sizes[out->n++] = sizes[table->last[m]].entries;
  }
  qsort(out->sizes, (size_t)out->n, sizeof *out->sizes, by_value);
  for (int i = 0; i < out->n / 2; i++) {
    int64_t swapped = out->sizes[i];
    out->sizes[i] = out->sizes[out->n - 1 - i];
    out->sizes[out->n - 1 - i] = swapped;
  }
  return CS_OK;
}

/* ---- What both need ---- */

typedef struct solver {
  const cs_micro_problem *problem;
  int64_t *sizes; /* all there are, ascending, none larger than the batch */
  int n_sizes;
  priced_size *priced;
  sum_table table;
} solver;

static void solver_free(solver *s) {
  free(s->sizes);
  free(s->priced);
  free_table(&s->table);
}

static cs_status solver_create(const cs_micro_problem *problem, solver *out) {
  size_t n = 0;
  *out = (solver){.problem = problem};
  for (int i = 0; i < problem->n_ops; i++) n += (size_t)problem->ops[i].n_ways;
  out->sizes = cs_calloc(n, sizeof *out->sizes);
  out->priced = cs_calloc(n, sizeof *out->priced);
  if (!out->sizes || !out->priced) return cs_no_memory("sizes", n * sizeof *out->sizes);
  for (int i = 0; i < problem->n_ops; i++) {
    for (int w = 0; w < problem->ops[i].n_ways; w++) {
      int64_t entries = problem->ops[i].ways[w].entries;
      if (entries > 0 && entries <= problem->batch) out->sizes[out->n_sizes++] = entries;
    }
  }
  out->n_sizes = unique(out->sizes, out->n_sizes);
  return make_table(problem->batch, &out->table);
}

static cs_status begin_result(const cs_micro_problem *problem, cs_micro_result *out) {
  *out = (cs_micro_result){.n_ops = problem->n_ops};
  out->parts = cs_calloc((size_t)problem->n_ops, sizeof *out->parts);
  if (!out->parts) return cs_no_memory("parts", (size_t)problem->n_ops * sizeof *out->parts);
  return CS_OK;
}

static cs_status nothing_fits(const cs_micro_problem *problem, const char *what, int index) {
  return cs_error(CS_CODE_NOT_FOUND,
                  "%s %d: no ways to run %lld batch entries within %lld bytes of workspace", what,
                  index, (long long)problem->batch, (long long)problem->workspace_limit);
}

/* ---- One after the other: segments of neighbours ---- */

static bool stays_in_cache(const cs_micro_problem *problem, int first, int end, int64_t entries) {
  int64_t largest = 0, weights = 0;
  for (int i = first; i < end; i++) {
    largest = cs_max_i64(largest, problem->ops[i].entry_bytes);
    weights += problem->ops[i].weight_bytes;
  }
  return largest <= problem->cache_bytes / entries &&
         largest * entries <= problem->cache_bytes - weights;
}

/* A part of the segment first … end − 1. */
static double price_part(const cs_micro_problem *problem, int first, int end, int64_t entries) {
  bool resident = end - first > 1 && stays_in_cache(problem, first, end, entries);
  double us = 0;
  for (int i = first; i < end; i++) {
    const cs_micro_way *way = fastest(&problem->ops[i], entries, problem->workspace_limit);
    if (!way) return INFINITY;
    us += resident && i > first ? way->warm_us : way->cold_us;
  }
  return us;
}

/* `whole`: of parts of all entries alone. */
static double price_segment(solver *s, int first, int end, bool whole) {
  const cs_micro_problem *problem = s->problem;
  for (int k = 0; k < s->n_sizes; k++) {
    bool wanted = !whole || s->sizes[k] == problem->batch;
    s->priced[k] = (priced_size){s->sizes[k],
                                 wanted ? price_part(problem, first, end, s->sizes[k]) : INFINITY};
  }
  return sum_up(s->priced, s->n_sizes, problem->batch, &s->table);
}

/* from[j]: where the last segment of the least sum of the first j operations begins. */
static double find_segments(solver *s, bool whole, double *least, int *from) {
  int n = s->problem->n_ops;
  least[0] = 0;
  for (int j = 1; j <= n; j++) {
    least[j] = INFINITY;
    from[j] = j - 1;
    for (int i = j - 1; i >= 0 && j - i <= CS_MICRO_SEGMENT; i--) {
      if (isinf(least[i])) continue;
      double us = least[i] + price_segment(s, i, j, whole);
      if (us < least[j]) {
        least[j] = us;
        from[j] = i;
      }
    }
  }
  return least[n];
}

/* What a part of the segment would take more if all were cold. */
static double gain_of_cache(const cs_micro_problem *problem, int first, int end, int64_t entries) {
  double us = -price_part(problem, first, end, entries);
  for (int i = first; i < end; i++) {
    us += fastest(&problem->ops[i], entries, problem->workspace_limit)->cold_us;
  }
  return us;
}

static cs_status take_segments(solver *s, const int *from, cs_micro_result *out) {
  const cs_micro_problem *problem = s->problem;
  for (int end = problem->n_ops; end > 0; end = from[end]) {
    int first = from[end];
    (void)price_segment(s, first, end, false);
    for (int i = first; i < end; i++) {
      CS_RETURN_IF_ERROR(take_parts(s->priced, problem->batch, &s->table, &out->parts[i]));
    }
    for (int k = 0; k < out->parts[first].n; k++) {
      out->cache_us += gain_of_cache(problem, first, end, out->parts[first].sizes[k]);
    }
  }
  return CS_OK;
}

cs_status cs_micro_in_turn(const cs_micro_problem *problem, cs_micro_result *out) {
  cs_status st = CS_OK;
  size_t n = (size_t)problem->n_ops + 1;
  solver s = {0};
  double *least = cs_calloc(n, sizeof *least);
  int *from = cs_calloc(n, sizeof *from);
  *out = (cs_micro_result){0};
  if (!least || !from) {
    st = cs_no_memory("segments", n * sizeof *least);
    goto done;
  }
  CS_TRY(st, solver_create(problem, &s), done);
  CS_TRY(st, begin_result(problem, out), done);
  out->whole_us = find_segments(&s, true, least, from);
  out->us = find_segments(&s, false, least, from);
  for (int i = 0; i < problem->n_ops; i++) {
    if (!isinf(least[i + 1])) continue;
    st = nothing_fits(problem, "operation", i);
    goto done;
  }
  st = take_segments(&s, from, out);
done:
  solver_free(&s);
  free(least);
  free(from);
  if (st != CS_OK) cs_micro_result_free(out);
  return st;
}

/* ---- At once: groups share the limit ---- */

/* A division of one operation, by the workspace it needs. */
typedef struct division_point {
  int64_t workspace_bytes;
  double us;
} division_point;

static double price_alone(solver *s, int op, int64_t limit) {
  for (int k = 0; k < s->n_sizes; k++) {
    const cs_micro_way *way = fastest(&s->problem->ops[op], s->sizes[k], limit);
    s->priced[k] = (priced_size){s->sizes[k], way ? way->cold_us : INFINITY};
  }
  return sum_up(s->priced, s->n_sizes, s->problem->batch, &s->table);
}

/* The Pareto set of an operation's divisions over workspace and time; *n of them. */
static cs_status divisions_of(solver *s, int op, division_point **out, int *n) {
  const cs_micro_op *o = &s->problem->ops[op];
  int64_t *limits = cs_calloc((size_t)o->n_ways, sizeof *limits);
  division_point *points = cs_calloc((size_t)o->n_ways, sizeof *points);
  int n_limits = 0;
  *out = points;
  *n = 0;
  if (!limits || !points) {
    free(limits);
    return cs_no_memory("divisions", (size_t)o->n_ways * sizeof *points);
  }
  for (int w = 0; w < o->n_ways; w++) {
    if (o->ways[w].workspace_bytes <= s->problem->workspace_limit) {
      limits[n_limits++] = o->ways[w].workspace_bytes;
    }
  }
  n_limits = unique(limits, n_limits);
  for (int i = 0; i < n_limits; i++) {
    double us = price_alone(s, op, limits[i]);
    if (isinf(us) || (*n > 0 && us >= points[*n - 1].us)) continue;
    points[(*n)++] = (division_point){limits[i], us};
  }
  free(limits);
  return CS_OK;
}

/* A knapsack with one point of each operation: least[i][u] is the least sum of the first i
 * operations of the group within u shares of the limit, taken[i][u] the point of the last one. */
typedef struct knapsack {
  int n_ops, n_units;
  int64_t unit;
  double *least;
  int *taken;
  division_point **points;
  int *n_points;
} knapsack;

static void knapsack_free(knapsack *k) {
  for (int i = 0; k->points && i < k->n_ops; i++) free(k->points[i]);
  free(k->points);
  free(k->n_points);
  free(k->least);
  free(k->taken);
}

static cs_status knapsack_create(int64_t limit, int n_ops, knapsack *out) {
  *out = (knapsack){.n_ops = n_ops, .unit = cs_max_i64(1, limit / SHARES + (limit % SHARES > 0))};
  out->n_units = (int)(limit / out->unit) + 1;
  size_t n = (size_t)(n_ops + 1) * (size_t)out->n_units;
  out->least = cs_calloc(n, sizeof *out->least);
  out->taken = cs_calloc(n, sizeof *out->taken);
  out->points = cs_calloc((size_t)n_ops, sizeof *out->points);
  out->n_points = cs_calloc((size_t)n_ops, sizeof *out->n_points);
  if (out->least && out->taken && out->points && out->n_points) return CS_OK;
  return cs_no_memory("a workspace budget", n * sizeof *out->least);
}

static int64_t units_of(const knapsack *k, const division_point *point) {
  return point->workspace_bytes / k->unit + (point->workspace_bytes % k->unit > 0);
}

static double fill_knapsack(knapsack *k) {
  size_t row = (size_t)k->n_units;
  for (int i = 0; i < k->n_ops; i++) {
    const double *before = &k->least[(size_t)i * row];
    for (int u = 0; u < k->n_units; u++) {
      double *least = &k->least[(size_t)(i + 1) * row + (size_t)u];
      *least = INFINITY;
      for (int p = 0; p < k->n_points[i]; p++) {
        int64_t left = u - units_of(k, &k->points[i][p]);
        if (left < 0 || k->points[i][p].us + before[left] >= *least) continue;
        *least = k->points[i][p].us + before[left];
        k->taken[(size_t)(i + 1) * row + (size_t)u] = p;
      }
    }
  }
  return k->least[(size_t)(k->n_ops + 1) * row - 1];
}

/* Operations first … end − 1. */
static cs_status solve_group(solver *s, int first, int end, cs_micro_result *out) {
  cs_status st = CS_OK;
  knapsack k = {0};
  CS_TRY(st, knapsack_create(s->problem->workspace_limit, end - first, &k), done);
  for (int i = 0; i < k.n_ops; i++) {
    CS_TRY(st, divisions_of(s, first + i, &k.points[i], &k.n_points[i]), done);
  }
  double us = fill_knapsack(&k);
  if (isinf(us)) {
    st = nothing_fits(s->problem, "group", s->problem->ops[first].group);
    goto done;
  }
  out->us += us;
  int64_t units = k.n_units - 1;
  for (int i = k.n_ops - 1; i >= 0; i--) {
    int p = k.taken[(size_t)(i + 1) * (size_t)k.n_units + (size_t)units];
    const division_point *point = &k.points[i][p];
    (void)price_alone(s, first + i, point->workspace_bytes);
    CS_TRY(st, take_parts(s->priced, s->problem->batch, &s->table, &out->parts[first + i]), done);
    units -= units_of(&k, point);
  }
done:
  knapsack_free(&k);
  return st;
}

/* One operation after the other. What only fits a larger limit than a share of it has that one. */
static double undivided_us(const cs_micro_problem *problem) {
  double us = 0;
  for (int i = 0; i < problem->n_ops; i++) {
    const cs_micro_op *op = &problem->ops[i];
    const cs_micro_way *whole = fastest(op, problem->batch, problem->workspace_limit);
    if (!whole) whole = fastest(op, problem->batch, INT64_MAX);
    us += whole ? whole->cold_us : INFINITY;
  }
  return us;
}

cs_status cs_micro_at_once(const cs_micro_problem *problem, cs_micro_result *out) {
  cs_status st = CS_OK;
  solver s = {0};
  *out = (cs_micro_result){0};
  CS_TRY(st, solver_create(problem, &s), done);
  CS_TRY(st, begin_result(problem, out), done);
  for (int first = 0; first < problem->n_ops;) {
    int end = first + 1;
    while (end < problem->n_ops && problem->ops[end].group == problem->ops[first].group) end++;
    CS_TRY(st, solve_group(&s, first, end, out), done);
    first = end;
  }
  out->whole_us = undivided_us(problem);
done:
  solver_free(&s);
  if (st != CS_OK) cs_micro_result_free(out);
  return st;
}
