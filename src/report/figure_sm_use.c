/* What the kernels that run at a time ask of the device's SMs, resource by resource. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/view.h"

bool cs_view_has_sm_use(const cs_view *view, const cs_timeline *timeline) {
  if (view->report->device->unit.registers <= 0 || view->report->device->units <= 0) return false;
  for (int i = 0; i < timeline->n_slices; i++) {
    if (timeline->slices[i].kernel_known) return true;
  }
  return false;
}

/* ---- Sums over time ---- */

typedef struct event {
  double us;
  const cs_timeline_slice *slice;
  int sign; /* 1: it begins, -1: it ends */
} event;

static int by_time(const void *a, const void *b) {
  const event *x = a, *y = b;
  if (x->us != y->us) return x->us < y->us ? -1 : 1;
  return x->sign - y->sign; /* what ends makes room for what begins */
}

/* Its resident blocks' share of the whole device: of a kernel of less than a wave what its blocks
 * take, else as many as fit. */
static void add_share(const cs_device_info *device, const event *e, double share[]) {
  const cs_timeline_slice *slice = e->slice;
  if (!slice->kernel_known) return;
  int units = slice->part > 0 ? slice->part : device->units;
  cs_demand demand = cs_kernel_demand(&device->unit, units, &slice->kernel);
  double of_device = fmin(demand.waves, 1) * units / device->units;
  for (int r = 0; r < CS_RESOURCE_COUNT; r++) share[r] += e->sign * demand.share[r] * of_device;
}

static int sum_up(const cs_device_info *device, const event *events, int n, cs_sm_use *out) {
  double share[CS_RESOURCE_COUNT] = {0};
  int count = 0;
  for (int i = 0; i < n; i++) {
    add_share(device, &events[i], share);
    if (i + 1 < n && events[i + 1].us <= events[i].us) continue;
    out[count].us = events[i].us;
    /* Sums of what came and went: their rounding is not told. */
    for (int r = 0; r < CS_RESOURCE_COUNT; r++)
      out[count].share[r] = share[r] < 1e-9 ? 0 : share[r];
    count++;
  }
  return count;
}

cs_status cs_sm_use_of(const cs_device_info *device, const cs_timeline *timeline, cs_sm_use **out,
                       int *n) {
  size_t count = 2 * (size_t)timeline->n_slices;
  event *events = cs_calloc(count + 1, sizeof *events);
  *out = cs_calloc(count + 1, sizeof **out);
  *n = 0;
  if (!events || !*out) {
    free(events);
    free(*out);
    *out = NULL;
    return cs_no_memory("the use of SMs", count * sizeof *events);
  }
  for (int i = 0; i < timeline->n_slices; i++) {
    const cs_timeline_slice *slice = &timeline->slices[i];
    events[2 * i] = (event){slice->start_us, slice, 1};
    events[2 * i + 1] = (event){slice->end_us, slice, -1};
  }
  if (count > 0) qsort(events, count, sizeof *events, by_time);
  *n = sum_up(device, events, (int)count, *out);
  free(events);
  return CS_OK;
}

/* ---- Drawing ---- */

static const char *const names[CS_RESOURCE_COUNT] = {"registers", "shared memory", "threads",
                                                     "block slots"};

static cs_status draw(const cs_policy_view *policy, const cs_timeline *timeline, double most_us,
                      const char *style, const cs_sm_use *use, int n, cs_line_point *points,
                      cs_strbuf *out) {
  char id[64], label[160];
  const char *source = cs_timeline_source_name(timeline->source);
  cs_series series[CS_RESOURCE_COUNT];
  for (int r = 0; r < CS_RESOURCE_COUNT; r++) {
    cs_line_point *of = points + (size_t)r * (size_t)n;
    for (int i = 0; i < n; i++) {
      of[i] = (cs_line_point){use[i].us, 100 * use[i].share[r], NAN, NAN, NULL};
    }
    series[r] = (cs_series){names[r], of, n, true};
  }
  snprintf(id, sizeof id, "sm-use-%s-%s", policy->name, source);
  snprintf(label, sizeof label, "SM resources over time, %s, %s", policy->name, source);
  cs_axis across = {.title = "time", .unit = CS_UNIT_US, .tight = true};
  cs_axis_fit(&across, most_us);
  cs_lines lines = {.id = id,
                    .label = label,
                    .style = style,
                    .across = across,
                    .up = {.title = "share of the device", .unit = CS_UNIT_PERCENT},
                    .width = 960,
                    .height = 250,
                    .line = 100,
                    .line_name = "all there is"};
  return cs_figure_lines(out, &lines, series, CS_RESOURCE_COUNT);
}

cs_status cs_draw_sm_use(const cs_view *view, const cs_policy_view *policy,
                         const cs_timeline *timeline, double most_us, const char *style,
                         cs_strbuf *out) {
  cs_sm_use *use = NULL;
  int n = 0;
  CS_RETURN_IF_ERROR(cs_sm_use_of(view->report->device, timeline, &use, &n));
  cs_line_point *points = cs_calloc((size_t)n * CS_RESOURCE_COUNT + 1, sizeof *points);
  cs_status st = points ? draw(policy, timeline, most_us, style, use, n, points, out)
                        : cs_no_memory("curves", (size_t)n * sizeof *points);
  free(points);
  free(use);
  return st;
}

/* ---- Data ---- */

enum { POLICY, SOURCE, US, REGISTERS, SHARED, THREADS, BLOCKS, N_COLUMNS };
static const cs_table_column columns[N_COLUMNS] = {
    [POLICY] = {"policy", "policy", CS_COLUMN_TEXT, CS_COLUMN_ALL, true},
    [SOURCE] = {"source", "source", CS_COLUMN_TEXT, CS_COLUMN_ALL, true},
    [US] = {"us", "from us", 2, CS_COLUMN_ALL, false},
    [REGISTERS] = {"registers_pct", "regs %", 1, CS_COLUMN_ALL, false},
    [SHARED] = {"shared_pct", "shared %", 1, CS_COLUMN_ALL, false},
    [THREADS] = {"threads_pct", "threads %", 1, CS_COLUMN_ALL, false},
    [BLOCKS] = {"blocks_pct", "blocks %", 1, CS_COLUMN_ALL, false},
};

static cs_status add_rows(const cs_view *view, const cs_policy_view *policy,
                          const cs_timeline *timeline, cs_table *out) {
  cs_sm_use *use = NULL;
  int n = 0;
  if (!timeline || !cs_view_has_sm_use(view, timeline)) return CS_OK;
  CS_RETURN_IF_ERROR(cs_sm_use_of(view->report->device, timeline, &use, &n));
  for (int i = 0; i < n; i++) {
    cs_table_row(out, i > 0);
    cs_table_text(out, POLICY, "%s", policy->name);
    cs_table_text(out, SOURCE, "%s", cs_timeline_source_name(timeline->source));
    cs_table_number(out, US, use[i].us);
    for (int r = 0; r < CS_RESOURCE_COUNT; r++)
      cs_table_number(out, REGISTERS + r, 100 * use[i].share[r]);
  }
  free(use);
  return CS_OK;
}

cs_status cs_tabulate_sm_use(const cs_view *view, cs_table *out) {
  cs_table_init(out, columns, N_COLUMNS);
  if (view->n_policies == 0) return cs_error(CS_CODE_NOT_FOUND, "%s", view->no_plans);
  for (int i = 0; i < view->n_policies; i++) {
    const cs_policy_view *policy = &view->policies[i];
    CS_RETURN_IF_ERROR(add_rows(view, policy, policy->planned, out));
    CS_RETURN_IF_ERROR(add_rows(view, policy, policy->measured, out));
  }
  if (out->n_rows > 0) return CS_OK;
  return cs_error(CS_CODE_NOT_FOUND,
                  "what kernels take of an SM is not known here: no kernels are recorded, or the "
                  "device has no SMs");
}
