/* What runs takes, over time: of the SMs, and of the arena. */
#include <math.h>
#include <stdlib.h>

#include "profiler/resources.h"
#include "report/trace.h"

#define SERIES 3 /* of one set of counters, at most */

/* From `at` on there is so much more (or less) of each. */
typedef struct change {
  double at;
  double by[SERIES];
} change;

typedef struct changes {
  change *items;
  size_t n, capacity;
} changes;

static cs_status add_interval(changes *list, double start_us, double end_us,
                              const double by[SERIES]) {
  CS_RETURN_IF_ERROR(cs_grow(&list->items, &list->capacity, list->n + 2, sizeof *list->items));
  change *start = &list->items[list->n++], *end = &list->items[list->n++];
  start->at = cs_trace_us(start_us);
  end->at = cs_trace_us(end_us);
  for (int s = 0; s < SERIES; s++) {
    start->by[s] = by[s];
    end->by[s] = -by[s];
  }
  return CS_OK;
}

static int by_time(const void *a, const void *b) {
  const change *x = a, *y = b;
  return x->at < y->at ? -1 : x->at > y->at;
}

static cs_status add_event(json_t *events, int process, const char *name, double at, json_t *args) {
  json_t *event = json_pack("{s:s, s:s, s:i, s:i, s:f, s:o}", "ph", "C", "name", name, "pid",
                            process, "tid", 0, "ts", at, "args", args);
  if (event && json_array_append_new(events, event) == 0) return CS_OK;
  return cs_no_memory("a trace", json_array_size(events));
}

typedef cs_status (*emit_fn)(json_t *events, int process, double at, const double now[SERIES]);

/* Calls `emit` with the sums behind every time of a change. */
static cs_status emit_all(changes *list, int process, emit_fn emit, json_t *events) {
  double now[SERIES] = {0};
  if (list->n == 0) return CS_OK;
  qsort(list->items, list->n, sizeof *list->items, by_time);
  for (size_t i = 0; i < list->n; i++) {
    for (int s = 0; s < SERIES; s++) {
      now[s] += list->items[i].by[s];
      if (i + 1 == list->n || fabs(now[s]) < 1e-9) now[s] = 0; /* not what rounding left */
    }
    if (i + 1 < list->n && list->items[i + 1].at == list->items[i].at) continue;
    CS_RETURN_IF_ERROR(emit(events, process, list->items[i].at, now));
  }
  return CS_OK;
}

/* ---- The SMs ---- */

static const struct {
  cs_resource resource;
  const char *name;
} counted[SERIES] = {{CS_RESOURCE_REGISTERS, "SM registers in use (%)"},
                     {CS_RESOURCE_SHARED, "SM shared memory in use (%)"},
                     {CS_RESOURCE_THREADS, "SM threads in use (%)"}};

/* Of the device's: of as many blocks as the SMs that its stream keeps to hold at once, or of all
 * where they are fewer. */
static void shares_of(const cs_device_info *device, const cs_timeline_slice *slice,
                      double out[SERIES]) {
  const cs_kernel_info *kernel = &slice->kernel;
  int units = slice->part > 0 ? slice->part : device->units;
  cs_demand demand = cs_kernel_demand(&device->unit, units, kernel);
  double blocks = (double)kernel->grid[0] * kernel->grid[1] * kernel->grid[2];
  double resident = fmin(blocks, (double)demand.resident * units);
  for (int s = 0; s < SERIES; s++) {
    double of_block = demand.share[counted[s].resource] / fmax(1, demand.resident);
    out[s] = 100 * of_block * resident / device->units;
  }
}

static cs_status emit_shares(json_t *events, int process, double at, const double now[SERIES]) {
  for (int s = 0; s < SERIES; s++) {
    double percent = cs_trace_us(fmin(100, now[s]));
    CS_RETURN_IF_ERROR(
        add_event(events, process, counted[s].name, at, json_pack("{s:f}", "percent", percent)));
  }
  return CS_OK;
}

static cs_status count_units(const cs_trace_input *input, const cs_timeline *timeline, int process,
                             json_t *events) {
  changes list = {0};
  cs_status st = CS_OK;
  if (input->device->unit.registers <= 0 || input->device->units <= 0) return CS_OK;
  for (int i = 0; i < timeline->n_slices && st == CS_OK; i++) {
    const cs_timeline_slice *slice = &timeline->slices[i];
    double shares[SERIES];
    if (!slice->kernel_known || !slice->grid_known) continue;
    shares_of(input->device, slice, shares);
    st = add_interval(&list, slice->start_us, slice->end_us, shares);
  }
  if (st == CS_OK) st = emit_all(&list, process, emit_shares, events);
  free(list.items);
  return st;
}

/* ---- The arena ---- */

typedef struct lifetime {
  double from, to; /* NaN: nothing uses it */
} lifetime;

/* When each launch runs, per plan position that leads one. */
static void find_launches(const cs_timeline *timeline, lifetime *launches, int n) {
  for (int p = 0; p < n; p++) launches[p] = (lifetime){NAN, NAN};
  for (int i = 0; i < timeline->n_slices; i++) {
    const cs_timeline_slice *slice = &timeline->slices[i];
    lifetime *launch = &launches[slice->position];
    launch->from = fmin(launch->from, slice->start_us);
    launch->to = fmax(launch->to, slice->end_us);
  }
}

static void use(const cs_program *program, int tensor, const lifetime *launch, lifetime *buffers) {
  lifetime *buffer = &buffers[program->tensors[tensor].buffer];
  buffer->from = fmin(buffer->from, launch->from);
  buffer->to = fmax(buffer->to, launch->to);
}

/* Inputs and outputs are there all the time. */
static void find_buffers(const cs_trace_input *input, const cs_timeline *timeline,
                         const lifetime *launches, lifetime *buffers) {
  const cs_program *program = input->program;
  for (int b = 0; b < program->n_buffers; b++) {
    bool always = program->buffers[b].kind != CS_BUFFER_INTERMEDIATE;
    buffers[b] = always ? (lifetime){0, timeline->span_us} : (lifetime){NAN, NAN};
  }
  for (int p = 0; p < input->plan->n_tasks; p++) {
    const cs_task *task = &program->tasks[input->plan->tasks[p].task];
    const lifetime *launch = &launches[cs_plan_leader(input->plan, p)];
    if (isnan(launch->from)) continue;
    use(program, task->output, launch, buffers);
    for (int k = 0; k < task->desc.n_inputs; k++) use(program, task->inputs[k], launch, buffers);
  }
}

static cs_status emit_bytes(json_t *events, int process, double at, const double now[SERIES]) {
  return add_event(events, process, "arena in use (bytes)", at,
                   json_pack("{s:I, s:I}", "buffers", (json_int_t)llround(now[0]), "workspaces",
                             (json_int_t)llround(now[1])));
}

static cs_status add_lifetimes(const cs_trace_input *input, const lifetime *launches,
                               const lifetime *buffers, changes *list) {
  for (int b = 0; b < input->program->n_buffers; b++) {
    const double by[SERIES] = {(double)input->program->buffers[b].bytes};
    if (isnan(buffers[b].from)) continue;
    CS_RETURN_IF_ERROR(add_interval(list, buffers[b].from, buffers[b].to, by));
  }
  for (int p = 0; p < input->plan->n_tasks; p++) {
    const double by[SERIES] = {0, (double)input->plan->tasks[p].workspace_bytes};
    if (isnan(launches[p].from) || by[1] <= 0) continue;
    CS_RETURN_IF_ERROR(add_interval(list, launches[p].from, launches[p].to, by));
  }
  return CS_OK;
}

static cs_status count_arena(const cs_trace_input *input, const cs_timeline *timeline, int process,
                             json_t *events) {
  cs_status st = CS_OK;
  changes list = {0};
  size_t n = (size_t)input->plan->n_tasks, n_buffers = (size_t)input->program->n_buffers;
  lifetime *launches = cs_calloc(n + 1, sizeof *launches);
  lifetime *buffers = cs_calloc(n_buffers + 1, sizeof *buffers);
  if (!launches || !buffers) CS_TRY(st, cs_no_memory("lifetimes", n * sizeof *launches), done);
  find_launches(timeline, launches, input->plan->n_tasks);
  find_buffers(input, timeline, launches, buffers);
  CS_TRY(st, add_lifetimes(input, launches, buffers, &list), done);
  st = emit_all(&list, process, emit_bytes, events);
done:
  free(launches);
  free(buffers);
  free(list.items);
  return st;
}

cs_status cs_trace_counters(const cs_trace_input *input, const cs_timeline *timeline, int process,
                            json_t *events) {
  CS_RETURN_IF_ERROR(count_units(input, timeline, process, events));
  return count_arena(input, timeline, process, events);
}
