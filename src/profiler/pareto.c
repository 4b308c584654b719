#include "profiler/pareto.h"

#include <math.h>
#include <string.h>

/* Candidates looked at: the fastest of an operation. */
#define MOST_POINTS 512

static bool dominates(const cs_pareto_point *a, const cs_pareto_point *b, bool first) {
  bool better = false;
  for (int c = 0; c < CS_COST_COUNT; c++) {
    if (a->cost[c] > b->cost[c]) return false;
    better = better || a->cost[c] < b->cost[c];
  }
  return better || first;
}

static bool is_dominated(const cs_pareto_point *points, int n, int at) {
  for (int i = 0; i < n; i++) {
    if (i != at && dominates(&points[i], &points[at], i < at)) return true;
  }
  return false;
}

static bool is_member(const int *members, int n, int index) {
  for (int i = 0; i < n; i++) {
    if (members[i] == index) return true;
  }
  return false;
}

/* By one cost, then time, then index. `cost` CS_COST_COUNT: the dominant share. */
static double cost_of(const cs_pareto_point *point, int cost) {
  if (cost < CS_COST_COUNT) return point->cost[cost];
  return fmax(fmax(point->cost[CS_COST_REGISTERS], point->cost[CS_COST_SHARED]),
              point->cost[CS_COST_RESIDENCY]);
}

static int least(const cs_pareto_point *points, const int *front, int n_front, const int *taken,
                 int n_taken, int cost) {
  int best = -1;
  for (int i = 0; i < n_front; i++) {
    int at = front[i];
    if (taken && is_member(taken, n_taken, at)) continue;
    if (best < 0) {
      best = at;
      continue;
    }
    double found = cost_of(&points[at], cost), known = cost_of(&points[best], cost);
    double time = points[at].cost[CS_COST_TIME], best_time = points[best].cost[CS_COST_TIME];
    if (found < known || (found == known && time < best_time)) best = at;
  }
  return best;
}

/* The front in the order in which members are kept. */
static int thin(const cs_pareto_point *points, const int *front, int n_front, int most, int *out) {
  static const int order[] = {CS_COST_COUNT,     CS_COST_REGISTERS, CS_COST_SHARED,
                              CS_COST_RESIDENCY, CS_COST_UNITS,     CS_COST_WORKSPACE};
  int n = 0;
  if (n_front > 0 && most > 0) out[n++] = least(points, front, n_front, NULL, 0, CS_COST_TIME);
  for (size_t i = 0; i < sizeof order / sizeof order[0] && n < most; i++) {
    int extreme = least(points, front, n_front, NULL, 0, order[i]);
    if (extreme >= 0 && !is_member(out, n, extreme)) out[n++] = extreme;
  }
  while (n < most) {
    int next = least(points, front, n_front, out, n, CS_COST_TIME);
    if (next < 0) break;
    out[n++] = next;
  }
  return n;
}

static void sort_by_time(const cs_pareto_point *points, int *members, int n) {
  for (int i = 1; i < n; i++) {
    for (int k = i; k > 0; k--) {
      double a = points[members[k - 1]].cost[CS_COST_TIME];
      double b = points[members[k]].cost[CS_COST_TIME];
      if (a < b || (a == b && members[k - 1] < members[k])) break;
      int other = members[k];
      members[k] = members[k - 1];
      members[k - 1] = other;
    }
  }
}

int cs_pareto_select(const cs_pareto_point *points, int n, double within, int most,
                     int out[CS_PARETO_MOST]) {
  int front[MOST_POINTS], n_front = 0;
  double fastest = INFINITY;
  for (int i = 0; i < n; i++) fastest = fmin(fastest, points[i].cost[CS_COST_TIME]);
  for (int i = 0; i < n && n_front < MOST_POINTS; i++) {
    if (points[i].cost[CS_COST_TIME] > within * fastest || is_dominated(points, n, i)) continue;
    front[n_front++] = i;
  }
  n_front = thin(points, front, n_front, most < CS_PARETO_MOST ? most : CS_PARETO_MOST, out);
  sort_by_time(points, out, n_front);
  return n_front;
}

/* ---- Of an operation ---- */

cs_pareto_point cs_pareto_point_of(const cs_device_info *device, const cs_candidate *candidate,
                                   double cold_us, const cs_kernel_profile *kernels,
                                   int n_kernels) {
  cs_demand demand = cs_kernels_demand(device, kernels, n_kernels);
  cs_pareto_point point = {{0}};
  point.cost[CS_COST_TIME] = cold_us;
  point.cost[CS_COST_REGISTERS] = demand.share[CS_RESOURCE_REGISTERS];
  point.cost[CS_COST_SHARED] = demand.share[CS_RESOURCE_SHARED];
  point.cost[CS_COST_RESIDENCY] =
      fmax(demand.share[CS_RESOURCE_THREADS], demand.share[CS_RESOURCE_BLOCKS]);
  point.cost[CS_COST_WORKSPACE] = (double)candidate->workspace_bytes;
  point.cost[CS_COST_UNITS] = demand.known ? demand.units : candidate->threads;
  return point;
}

static bool may_plan(const cs_record *record, const cs_measure_options *options) {
  return cs_record_admissible(record, options->workspace_limit, options->deterministic,
                              options->threads);
}

bool cs_record_lacks_kernels(const cs_op_profile *operation, const cs_record *record) {
  return !record->measured.rejected && !record->absent && !record->kernels &&
         record->measured.cold_us <= CS_PARETO_WITHIN * operation->records[0].measured.cold_us;
}

int cs_op_pareto(const cs_op_profile *operation, const cs_device_info *device,
                 const cs_measure_options *options, int most,
                 const cs_record *out[CS_PARETO_MOST]) {
  cs_pareto_point points[MOST_POINTS];
  const cs_record *records[MOST_POINTS];
  int members[CS_PARETO_MOST], n = 0;
  bool some_known = false;
  if (!operation) return 0;
  for (int r = 0; r < operation->n_records; r++) {
    const cs_record *record = &operation->records[r];
    some_known = some_known || (record->kernels && may_plan(record, options));
  }
  for (int r = 0; r < operation->n_records && n < MOST_POINTS; r++) {
    const cs_record *record = &operation->records[r];
    if (!may_plan(record, options) || (n > 0 && some_known && !record->kernels)) continue;
    points[n] = cs_pareto_point_of(device, &record->candidate, record->measured.cold_us,
                                   record->kernels, record->n_kernels);
    records[n++] = record;
  }
  if (n == 0) return 0;
  /* A fastest one of unknown demand would dominate with its zeros. */
  if (some_known && !records[0]->kernels) {
    for (int c = CS_COST_REGISTERS; c < CS_COST_COUNT; c++) points[0].cost[c] = INFINITY;
  }
  n = cs_pareto_select(points, n, CS_PARETO_WITHIN, most, members);
  for (int i = 0; i < n; i++) out[i] = records[members[i]];
  return n;
}
