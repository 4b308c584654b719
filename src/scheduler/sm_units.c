#include "scheduler/sm_units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAME_US 0.02 /* ends closer than this are one event: fewer events, and classes stay few */

void cs_sm_unit_totals(const cs_unit_limits *unit, int total[CS_RESOURCE_COUNT]) {
  total[CS_RESOURCE_REGISTERS] = unit->registers;
  total[CS_RESOURCE_SHARED] = unit->shared_bytes;
  total[CS_RESOURCE_THREADS] = unit->threads;
  total[CS_RESOURCE_BLOCKS] = unit->blocks;
}

cs_status cs_sm_units_create(const cs_device_info *device, sm_units *out) {
  *out = (sm_units){.units = device->units, .slots = device->unit.blocks};
  cs_sm_unit_totals(&device->unit, out->total);
  for (int r = 0; r < CS_RESOURCE_COUNT; r++) out->share_of_one[r] = 1.0 / out->total[r];
  out->classes = cs_calloc((size_t)out->units + 1, sizeof *out->classes);
  out->cohorts = cs_calloc(((size_t)out->units + 1) * (size_t)out->slots, sizeof *out->cohorts);
  if (!out->classes || !out->cohorts) {
    cs_sm_units_free(out);
    return cs_no_memory("the units of an SM model", (size_t)device->units);
  }
  cs_sm_units_clear(out, &(cs_sm_parts){0});
  return CS_OK;
}

void cs_sm_units_free(sm_units *units) {
  free(units->classes);
  free(units->cohorts);
  *units = (sm_units){0};
}

static void add_class(sm_units *units, int n, int part) {
  sm_class *class = &units->classes[units->n];
  if (n < 1) return;
  *class = (sm_class){.units = n, .part = part};
  memcpy(class->free, units->total, sizeof units->total);
  units->n++;
}

void cs_sm_units_clear(sm_units *units, const cs_sm_parts *parts) {
  int left = units->units;
  units->n = 0;
  for (int p = 0; p < parts->n; p++) {
    add_class(units, parts->units[p], p);
    left -= parts->units[p];
  }
  add_class(units, left, parts->n > 0 ? SM_NO_PART : SM_NOT_SPLIT);
}

/* ---- Handing out blocks ---- */

static bool is_its(const sm_class *class, int part) {
  return part < 0 || class->part == part || class->part == SM_NOT_SPLIT;
}

static bool has_room(const sm_class *class, const cs_sm_kernel *kernel, int part) {
  bool room = is_its(class, part);
  for (int r = 0; r < CS_RESOURCE_COUNT; r++) room = room && class->free[r] >= kernel->take[r];
  return room;
}

/* How many blocks fit. */
static int fits(const sm_class *class, const cs_sm_kernel *kernel, int part) {
  int most = class->free[CS_RESOURCE_BLOCKS];
  if (!has_room(class, kernel, part)) return 0;
  for (int r = 0; r < CS_RESOURCE_COUNT; r++) {
    if (kernel->take[r] <= 0) continue;
    int n = class->free[r] / kernel->take[r];
    if (n < most) most = n;
  }
  return most;
}

/* Takes `blocks` of a kernel's resources, or gives them back where negative. */
static void take(const sm_units *units, sm_class *class, const cs_sm_kernel *kernel, int blocks) {
  class->load = 0;
  for (int r = 0; r < CS_RESOURCE_COUNT; r++) {
    class->free[r] -= blocks * kernel->take[r];
    class->load = fmax(class->load, (units->total[r] - class->free[r]) * units->share_of_one[r]);
  }
}

/* The emptiest class that a block fits, -1: none; *others: whether it fits further ones. */
static int emptiest(const sm_units *units, const cs_sm_kernel *kernel, int part, bool *others) {
  int best = -1;
  *others = false;
  for (int c = 0; c < units->n; c++) {
    if (!has_room(&units->classes[c], kernel, part)) continue;
    *others = best >= 0;
    if (best < 0 || units->classes[c].load < units->classes[best].load) best = c;
  }
  return best;
}

/* Of `wanted` blocks those that can be placed now: all, as far as there is room, or whole clusters.
 */
static int64_t placeable(const sm_units *units, const cs_sm_kernel *kernel, int part,
                         int64_t wanted) {
  int64_t sum = 0;
  if (kernel->cluster == 1) return wanted;
  for (int c = 0; c < units->n; c++) {
    sum += (int64_t)units->classes[c].units * fits(&units->classes[c], kernel, part);
  }
  return cs_min_i64(wanted, sum / kernel->cluster * kernel->cluster);
}

static void put(sm_units *units, int c, const sm_cohort *blocks) {
  sm_class *class = &units->classes[c];
  sm_cohort *cohorts = sm_cohorts_of(units, c);
  take(units, class, blocks->kernel, blocks->blocks);
  for (int i = 0; i < class->n_cohorts; i++) {
    if (cohorts[i].launch != blocks->launch || cohorts[i].left_us < blocks->left_us) continue;
    cohorts[i].blocks += blocks->blocks;
    return;
  }
  cohorts[class->n_cohorts++] = *blocks;
}

/* Leaves `keep` SMs in class c and makes a new class of the others. */
static void split(sm_units *units, int c, int keep) {
  int rest = units->n++;
  units->classes[rest] = units->classes[c];
  units->classes[rest].units = units->classes[c].units - keep;
  units->classes[c].units = keep;
  memcpy(sm_cohorts_of(units, rest), sm_cohorts_of(units, c),
         (size_t)units->classes[c].n_cohorts * sizeof(sm_cohort));
}

int64_t cs_sm_units_place(sm_units *units, int index, const cs_sm_launch *launch, int64_t wanted) {
  const cs_sm_kernel *kernel = launch->kernel;
  int part = launch->part;
  int64_t placed = 0, most = placeable(units, kernel, part, wanted);
  sm_cohort blocks = {.launch = index,
                      .stream = launch->stream,
                      .left_us = kernel->block_us,
                      .rate = 1,
                      .kernel = kernel};
  while (placed < most) {
    bool others = false;
    int c = emptiest(units, kernel, part, &others);
    if (c < 0) break;
    int64_t remaining = most - placed, on = units->classes[c].units;
    blocks.blocks = 1;
    if (remaining < on) {
      split(units, c, (int)remaining);
      on = remaining;
    } else if (!others) {
      blocks.blocks = (int)cs_min_i64(remaining / on, fits(&units->classes[c], kernel, part));
    }
    put(units, c, &blocks);
    placed += on * blocks.blocks;
  }
  return placed;
}

/* ---- Classes that have become the same ---- */

static bool comes_after(const sm_cohort *a, const sm_cohort *b) {
  if (a->launch != b->launch) return a->launch > b->launch;
  return a->left_us > b->left_us;
}

/* Sorts the cohorts of a class and makes its key. */
static void sort_cohorts(sm_class *class, sm_cohort *cohorts) {
  class->key = 0;
  for (int i = 0; i < class->n_cohorts; i++) {
    int at = i;
    class->key += (uint32_t)cohorts[i].launch * 2654435761u + (uint32_t)cohorts[i].blocks * 40503u;
    if (i == 0 || !comes_after(&cohorts[i - 1], &cohorts[i])) continue;
    sm_cohort moved = cohorts[i];
    for (; at > 0 && comes_after(&cohorts[at - 1], &moved); at--) cohorts[at] = cohorts[at - 1];
    cohorts[at] = moved;
  }
}

static bool same(const sm_units *units, int a, int b) {
  int n = units->classes[a].n_cohorts;
  if (units->classes[a].part != units->classes[b].part) return false;
  if (units->classes[a].key != units->classes[b].key || n != units->classes[b].n_cohorts) {
    return false;
  }
  const sm_cohort *x = sm_cohorts_of(units, a), *y = sm_cohorts_of(units, b);
  for (int i = 0; i < n; i++) {
    if (x[i].launch != y[i].launch || x[i].blocks != y[i].blocks ||
        fabs(x[i].left_us - y[i].left_us) > SAME_US) {
      return false;
    }
  }
  return true;
}

/* Moves the last class to the place of class c. */
static void drop(sm_units *units, int c) {
  int last = --units->n;
  if (c == last) return;
  units->classes[c] = units->classes[last];
  memcpy(sm_cohorts_of(units, c), sm_cohorts_of(units, last),
         (size_t)units->classes[c].n_cohorts * sizeof(sm_cohort));
}

void cs_sm_units_merge(sm_units *units) {
  for (int c = 0; c < units->n; c++) {
    sort_cohorts(&units->classes[c], sm_cohorts_of(units, c));
  }
  for (int a = 0; a < units->n; a++) {
    for (int b = units->n - 1; b > a; b--) {
      if (!same(units, a, b)) continue;
      units->classes[a].units += units->classes[b].units;
      drop(units, b);
    }
  }
}

/* ---- Sharing by rate ---- */

static double capacity(const cs_sm_constants *constants, int rate) {
  if (rate == CS_SM_L2) return constants->l2_capacity;
  return rate == CS_SM_DRAM ? constants->dram_capacity : constants->pipe_capacity;
}

/* A cohort follows the scarcest that it uses of the rates from `first` up to `end`. */
static void follow(sm_cohort *cohort, const double *used, int first, int end,
                   const cs_sm_constants *constants) {
  double factor = 1;
  for (int r = first; r < end; r++) {
    double most = capacity(constants, r);
    if (!(cohort->kernel->demand[r] > 0) || used[r] * factor <= most) continue;
    factor = most / used[r];
    cohort->slowed_by = (cs_sm_rate)r;
  }
  cohort->rate *= factor;
}

/* The pipes of the SMs of one class; adds what it takes of L2 and DRAM to `used`. */
static void share_class(const sm_units *units, int c, const cs_sm_constants *constants,
                        double *used) {
  double pipes[CS_SM_UNIT_RATES] = {0};
  sm_cohort *cohorts = sm_cohorts_of(units, c);
  int n = units->classes[c].n_cohorts;
  for (int i = 0; i < n; i++) {
    for (int p = 0; p < CS_SM_UNIT_RATES; p++) {
      pipes[p] += cohorts[i].blocks * cohorts[i].kernel->demand[p];
    }
  }
  for (int i = 0; i < n; i++) {
    cohorts[i].rate = 1;
    follow(&cohorts[i], pipes, 0, CS_SM_UNIT_RATES, constants);
    double pace = units->classes[c].units * cohorts[i].blocks * cohorts[i].rate;
    for (int r = CS_SM_UNIT_RATES; r < CS_SM_RATES; r++) {
      used[r] += pace * cohorts[i].kernel->demand[r];
    }
  }
}

void cs_sm_units_share(sm_units *units, const cs_sm_constants *constants) {
  double used[CS_SM_RATES] = {0};
  for (int c = 0; c < units->n; c++) share_class(units, c, constants, used);
  for (int c = 0; c < units->n; c++) {
    sm_cohort *cohorts = sm_cohorts_of(units, c);
    for (int i = 0; i < units->classes[c].n_cohorts; i++) {
      follow(&cohorts[i], used, CS_SM_UNIT_RATES, CS_SM_RATES, constants);
    }
  }
}

/* ---- Time ---- */

double cs_sm_units_next(const sm_units *units) {
  double next = INFINITY;
  for (int c = 0; c < units->n; c++) {
    const sm_cohort *cohorts = sm_cohorts_of(units, c);
    for (int i = 0; i < units->classes[c].n_cohorts; i++) {
      next = fmin(next, cohorts[i].left_us / cohorts[i].rate);
    }
  }
  return next;
}

void cs_sm_units_advance(sm_units *units, double us, int64_t *finished) {
  for (int c = 0; c < units->n; c++) {
    sm_class *class = &units->classes[c];
    sm_cohort *cohorts = sm_cohorts_of(units, c);
    int kept = 0;
    for (int i = 0; i < class->n_cohorts; i++) {
      sm_cohort cohort = cohorts[i];
      cohort.left_us -= us * cohort.rate;
      if (cohort.left_us > SAME_US) {
        cohorts[kept++] = cohort;
        continue;
      }
      finished[cohort.launch] += (int64_t) class->units * cohort.blocks;
      take(units, class, cohort.kernel, -cohort.blocks);
    }
    class->n_cohorts = kept;
  }
}

void cs_sm_units_account(const sm_units *units, double us, const cs_sm_launch *waiting,
                         cs_sm_timeline *timeline) {
  for (int c = 0; c < units->n; c++) {
    const sm_class *class = &units->classes[c];
    const sm_cohort *cohorts = sm_cohorts_of(units, c);
    bool foreign = false;
    for (int i = 0; i < class->n_cohorts; i++) {
      double lost = us * (1 - cohorts[i].rate) * class->units * cohorts[i].blocks;
      if (lost > 0) timeline->slowed[cohorts[i].slowed_by] += lost;
      foreign = foreign || (waiting && cohorts[i].stream != waiting->stream);
    }
    foreign = foreign && is_its(class, waiting->part);
    for (int r = 0; foreign && r < CS_RESOURCE_COUNT; r++) {
      if (waiting->kernel->take[r] > class->free[r]) timeline->held[r] += us * class->units;
    }
  }
}
