/* The simulation: events are launches that become ready and cohorts of blocks that end. */
#include "scheduler/sm_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/sm_units.h"

#define READY_US 1e-9 /* a launch this close is ready */

const cs_sm_constants cs_sm_h100 = {.gap_us = 0.4,
                                    .launch_us = 0.75,
                                    .edge_warm_us = 0.4,
                                    .edge_cold_us = 1.2,
                                    .pipe_capacity = 0.44,
                                    .l2_capacity = 0.32,
                                    .dram_capacity = 0.84,
                                    .cache_share = 0.6};

/* One launch in a simulation. */
typedef struct sm_run {
  int waits;       /* launches that it still waits for */
  bool follows;    /* it waited for some */
  double ready_us; /* when its first block may start */
  int64_t placed;  /* blocks */
  int first_next;  /* in sm_model.next: those that wait for it */
  double start_us, end_us;
} sm_run;

struct cs_sm_model {
  cs_device_info device;
  cs_sm_constants constants;
  sm_units units;
  /* Workspace for `capacity` launches and `next_capacity` waits. */
  sm_run *runs;
  int64_t *finished; /* blocks, per launch */
  int *pending;      /* launched, not yet ready */
  int *queue;        /* ready, with blocks to place; in order */
  int *running;      /* with blocks placed, in the order of their starts */
  int *on_stream;    /* per stream: launches that run on it; while setting up: its last launch */
  int *next;
  size_t runs_capacity, finished_capacity, pending_capacity, queue_capacity, running_capacity,
      stream_capacity, next_capacity;
};

/* The state of one call. */
typedef struct simulation {
  cs_sm_model *model;
  const cs_sm_launch *launches;
  const cs_sm_parts *parts;
  int n, n_pending, n_queue, n_running, n_finished, streams_running;
  bool several; /* streams */
  double now_us, front_end_us, edge_us;
  double together_us; /* with two streams or more running */
  cs_sm_timeline *timeline;
} simulation;

/* ---- The model ---- */

/* The memory of a model follows the block slots of all units: no device comes near these. */
#define MOST_UNITS 4096
#define MOST_BLOCKS 256
#define MOST_THREADS 65536
#define MOST_REGISTERS (1 << 24)
#define MOST_SHARED (1 << 28)

static bool in_range(int value, int most) {
  return value >= 1 && value <= most;
}

cs_status cs_sm_model_create(const cs_device_info *device, const cs_sm_constants *constants,
                             cs_sm_model **out) {
  *out = NULL;
  const cs_unit_limits *unit = &device->unit;
  if (!in_range(device->units, MOST_UNITS) || !in_range(unit->registers, MOST_REGISTERS) ||
      !in_range(unit->shared_bytes, MOST_SHARED) || !in_range(unit->threads, MOST_THREADS) ||
      !in_range(unit->blocks, MOST_BLOCKS)) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "device %s: %d units of %d registers, %d bytes of shared memory, %d threads "
                    "and %d blocks; wanted: at least one of each, at most %d units of %d, %d, %d "
                    "and %d",
                    device->name, device->units, unit->registers, unit->shared_bytes, unit->threads,
                    unit->blocks, MOST_UNITS, MOST_REGISTERS, MOST_SHARED, MOST_THREADS,
                    MOST_BLOCKS);
  }
  cs_sm_model *model = cs_calloc(1, sizeof *model);
  if (!model) return cs_no_memory("an SM model", sizeof *model);
  model->device = *device;
  model->constants = constants ? *constants : cs_sm_h100;
  cs_status st = cs_sm_units_create(device, &model->units);
  if (st != CS_OK) {
    free(model);
    return st;
  }
  *out = model;
  return CS_OK;
}

void cs_sm_model_destroy(cs_sm_model *model) {
  if (!model) return;
  cs_sm_units_free(&model->units);
  free(model->runs);
  free(model->finished);
  free(model->pending);
  free(model->queue);
  free(model->running);
  free(model->on_stream);
  free(model->next);
  free(model);
}

const cs_device_info *cs_sm_model_device(const cs_sm_model *model) {
  return &model->device;
}

const cs_sm_constants *cs_sm_model_constants(const cs_sm_model *model) {
  return &model->constants;
}

/* ---- Setting up ---- */

static cs_status check_parts(const cs_sm_model *model, const cs_sm_parts *parts) {
  int units = 0;
  bool good = parts->n >= 0 && parts->n <= CS_MAX_PARTS;
  for (int p = 0; good && p < parts->n; p++) {
    good = parts->units[p] > 0;
    units += parts->units[p];
  }
  if (good && units <= model->device.units) return CS_OK;
  return cs_error(CS_CODE_BAD_INPUT, "%d parts of %d SMs together; wanted: at most %d of %d",
                  parts->n, units, CS_MAX_PARTS, model->device.units);
}

static cs_status check_launches(const cs_sm_launch *launches, int n, int n_parts, size_t *n_waits) {
  *n_waits = 0;
  for (int i = 0; i < n; i++) {
    const cs_sm_launch *launch = &launches[i];
    if (launch->stream < 0 || launch->stream >= n) {
      return cs_error(CS_CODE_BAD_INPUT, "launch %d: stream %d; wanted: 0 to %d", i, launch->stream,
                      n - 1);
    }
    if (n_parts > 0 && (launch->part < -1 || launch->part >= n_parts)) {
      return cs_error(CS_CODE_BAD_INPUT, "launch %d: part %d; wanted: -1 to %d", i, launch->part,
                      n_parts - 1);
    }
    for (int w = 0; w < launch->n_waits; w++) {
      if (launch->waits[w] >= 0 && launch->waits[w] < i) continue;
      return cs_error(CS_CODE_BAD_INPUT, "launch %d waits for launch %d; wanted: an earlier one", i,
                      launch->waits[w]);
    }
    *n_waits += (size_t)launch->n_waits + 1; /* and the one before on its stream */
  }
  return CS_OK;
}

static cs_status make_room(cs_sm_model *m, size_t n, size_t n_waits) {
  CS_RETURN_IF_ERROR(cs_grow(&m->runs, &m->runs_capacity, n + 1, sizeof *m->runs));
  CS_RETURN_IF_ERROR(cs_grow(&m->finished, &m->finished_capacity, n, sizeof *m->finished));
  CS_RETURN_IF_ERROR(cs_grow(&m->pending, &m->pending_capacity, n, sizeof *m->pending));
  CS_RETURN_IF_ERROR(cs_grow(&m->queue, &m->queue_capacity, n, sizeof *m->queue));
  CS_RETURN_IF_ERROR(cs_grow(&m->running, &m->running_capacity, n, sizeof *m->running));
  CS_RETURN_IF_ERROR(cs_grow(&m->on_stream, &m->stream_capacity, n, sizeof *m->on_stream));
  return cs_grow(&m->next, &m->next_capacity, n_waits, sizeof *m->next);
}

/* Adds the edge from → to: counts it, or, when places are known, writes it. */
static void add_edge(cs_sm_model *m, int from, int to, bool write) {
  if (!write) {
    m->runs[from].first_next++;
    m->runs[to].waits++;
    m->runs[to].follows = true;
  } else {
    m->next[--m->runs[from].first_next] = to;
  }
}

static void add_edges(simulation *s, bool write) {
  cs_sm_model *m = s->model;
  for (int i = 0; i < s->n; i++) m->on_stream[i] = -1;
  for (int i = 0; i < s->n; i++) {
    const cs_sm_launch *launch = &s->launches[i];
    int before = m->on_stream[launch->stream];
    if (before >= 0) add_edge(m, before, i, write);
    m->on_stream[launch->stream] = i;
    for (int w = 0; w < launch->n_waits; w++) {
      if (launch->waits[w] != before) add_edge(m, launch->waits[w], i, write);
    }
    s->several = s->several || launch->stream != s->launches[0].stream;
  }
}

static void set_up(simulation *s) {
  cs_sm_model *m = s->model;
  memset(m->runs, 0, ((size_t)s->n + 1) * sizeof *m->runs);
  memset(m->finished, 0, (size_t)s->n * sizeof *m->finished);
  add_edges(s, false);
  int sum = 0;
  for (int i = 0; i <= s->n; i++) {
    sum += m->runs[i].first_next; /* the end of its edges; writing them moves it to their start */
    m->runs[i].first_next = sum;
  }
  add_edges(s, true);
  memset(m->on_stream, 0, (size_t)s->n * sizeof *m->on_stream);
  cs_sm_units_clear(&m->units, s->parts);
}

/* ---- Launches ---- */

/* All that launch i waits for has ended: one front end launches for all streams. */
static void launch(simulation *s, int i) {
  sm_run *run = &s->model->runs[i];
  double at = s->now_us;
  if (s->several) {
    at = fmax(at, s->front_end_us);
    s->front_end_us = at + s->model->constants.launch_us;
    if (run->follows) at += s->edge_us;
  }
  run->ready_us = at + s->launches[i].kernel->gap_us;
  s->model->pending[s->n_pending++] = i;
}

static double next_ready(const simulation *s) {
  double next = INFINITY;
  for (int i = 0; i < s->n_pending; i++) {
    next = fmin(next, s->model->runs[s->model->pending[i]].ready_us);
  }
  return next;
}

/* Moves what is ready to the queue: by time, then in launch order. */
static void enqueue_ready(simulation *s) {
  cs_sm_model *m = s->model;
  for (;;) {
    int best = -1;
    for (int i = 0; i < s->n_pending; i++) {
      const sm_run *run = &m->runs[m->pending[i]];
      if (run->ready_us > s->now_us + READY_US) continue;
      double least = best < 0 ? INFINITY : m->runs[m->pending[best]].ready_us;
      if (run->ready_us < least || (run->ready_us == least && m->pending[i] < m->pending[best])) {
        best = i;
      }
    }
    if (best < 0) return;
    m->queue[s->n_queue++] = m->pending[best];
    m->pending[best] = m->pending[--s->n_pending];
  }
}

/* Places what there is room for of one launch; whether all of it is placed. */
static bool place_one(simulation *s, int i) {
  cs_sm_model *m = s->model;
  const cs_sm_launch *one = &s->launches[i];
  sm_run *run = &m->runs[i];
  int64_t placed = cs_sm_units_place(&m->units, i, one, one->kernel->blocks - run->placed);
  if (placed > 0 && run->placed == 0) {
    run->start_us = s->now_us;
    m->running[s->n_running++] = i;
    if (m->on_stream[one->stream]++ == 0) s->streams_running++;
  }
  run->placed += placed;
  return run->placed == one->kernel->blocks;
}

/* Places blocks of the queue: of each part (and of the whole device) those of its first launch, and
 * of the next once all of that one's blocks are placed; high priority before all others. */
static void place(simulation *s) {
  int *queue = s->model->queue;
  bool held[CS_MAX_PARTS + 1] = {false};
  for (int priority = 1; priority >= 0; priority--) {
    int kept = 0;
    for (int q = 0; q < s->n_queue; q++) {
      const cs_sm_launch *one = &s->launches[queue[q]];
      bool *waits = &held[s->parts->n > 0 ? one->part + 1 : 0];
      bool its_turn = (one->priority > 0) == priority && !*waits;
      if (its_turn && place_one(s, queue[q])) continue;
      *waits = *waits || its_turn;
      queue[kept++] = queue[q];
    }
    s->n_queue = kept;
  }
}

static void finish(simulation *s, int i) {
  cs_sm_model *m = s->model;
  m->runs[i].end_us = s->now_us;
  s->n_finished++;
  if (--m->on_stream[s->launches[i].stream] == 0) s->streams_running--;
  /* Edges were written from the last to the first. */
  for (int e = m->runs[i + 1].first_next - 1; e >= m->runs[i].first_next; e--) {
    if (--m->runs[m->next[e]].waits == 0) launch(s, m->next[e]);
  }
}

/* ---- Events ---- */

static cs_status step(simulation *s) {
  cs_sm_model *m = s->model;
  enqueue_ready(s);
  place(s);
  cs_sm_units_merge(&m->units);
  cs_sm_units_share(&m->units, &m->constants);
  double us = fmin(cs_sm_units_next(&m->units), fmax(next_ready(s) - s->now_us, 0));
  if (!isfinite(us) && s->n_queue > 0) {
    const cs_sm_launch *stuck = &s->launches[m->queue[0]];
    return cs_error(CS_CODE_BAD_INPUT,
                    "launch %d: the SMs of part %d hold no cluster of %d of its blocks",
                    m->queue[0], stuck->part, stuck->kernel->cluster);
  }
  if (!isfinite(us)) {
    return cs_error(CS_CODE_INTERNAL, "SM model: nothing runs with %d of %d launches finished",
                    s->n_finished, s->n);
  }
  cs_sm_units_account(&m->units, us, s->n_queue > 0 ? &s->launches[m->queue[0]] : NULL,
                      s->timeline);
  if (s->streams_running > 1) s->together_us += us;
  s->now_us += us;
  cs_sm_units_advance(&m->units, us, m->finished);
  return CS_OK;
}

/* Launches that have ended with this event, in the order of their starts. */
static void finish_ended(simulation *s) {
  cs_sm_model *m = s->model;
  int kept = 0;
  for (int r = 0; r < s->n_running; r++) {
    int i = m->running[r];
    if (m->finished[i] < s->launches[i].kernel->blocks) {
      m->running[kept++] = i;
    } else {
      finish(s, i);
    }
  }
  s->n_running = kept;
}

static cs_status run_all(simulation *s) {
  for (int i = 0; i < s->n; i++) {
    if (s->model->runs[i].waits == 0) launch(s, i);
  }
  while (s->n_finished < s->n) {
    CS_RETURN_IF_ERROR(step(s));
    finish_ended(s);
  }
  return CS_OK;
}

static void report(const simulation *s, cs_sm_span *spans) {
  double begin = INFINITY;
  for (int i = 0; i < s->n; i++) {
    const sm_run *run = &s->model->runs[i];
    begin = fmin(begin, run->start_us);
    if (spans) spans[i] = (cs_sm_span){.start_us = run->start_us, .end_us = run->end_us};
  }
  s->timeline->total_us = s->now_us;
  s->timeline->overlap = s->now_us > begin ? s->together_us / (s->now_us - begin) : 0;
}

cs_status cs_sm_simulate_parts(cs_sm_model *model, const cs_sm_parts *parts,
                               const cs_sm_launch *launches, int n, double cold, cs_sm_span *spans,
                               cs_sm_timeline *out) {
  const cs_sm_constants *constants = &model->constants;
  simulation s = {.model = model, .launches = launches, .parts = parts, .n = n, .timeline = out};
  size_t n_waits = 0;
  *out = (cs_sm_timeline){0};
  if (n < 1) return cs_error(CS_CODE_BAD_INPUT, "SM model: %d launches; wanted: at least 1", n);
  CS_RETURN_IF_ERROR(check_parts(model, parts));
  CS_RETURN_IF_ERROR(check_launches(launches, n, parts->n, &n_waits));
  CS_RETURN_IF_ERROR(make_room(model, (size_t)n, n_waits));
  set_up(&s);
  s.edge_us = constants->edge_warm_us + cold * (constants->edge_cold_us - constants->edge_warm_us);
  CS_RETURN_IF_ERROR(run_all(&s));
  report(&s, spans);
  return CS_OK;
}

cs_status cs_sm_simulate(cs_sm_model *model, const cs_sm_launch *launches, int n, double cold,
                         cs_sm_span *spans, cs_sm_timeline *out) {
  return cs_sm_simulate_parts(model, &(cs_sm_parts){0}, launches, n, cold, spans, out);
}

const char *cs_sm_timeline_limiter(const cs_sm_timeline *timeline) {
  int most = -1;
  for (int r = 0; r < CS_RESOURCE_COUNT; r++) {
    if (timeline->held[r] > (most < 0 ? 0 : timeline->held[most])) most = r;
  }
  return most < 0 ? "none" : cs_resource_name((cs_resource)most);
}
