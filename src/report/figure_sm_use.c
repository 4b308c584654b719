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
  int count = 0, unknown = 0;
  for (int i = 0; i < n; i++) {
    add_share(device, &events[i], share);
    if (!events[i].slice->kernel_known) unknown += events[i].sign;
    if (i + 1 < n && events[i + 1].us <= events[i].us) continue;
    out[count].us = events[i].us;
    out[count].unknown = unknown;
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

/* ---- Drawing: a strip for each resource, one above the other ---- */

#define WIDTH 1076
#define LEFT 108
#define RIGHT 54
#define STRIP 58.0
#define GAP 10.0
#define TOP 10.0
#define BOTTOM 40
#define MOST 2.0 /* of all there is: strips end there */

static const char *const strips[CS_RESOURCE_COUNT] = {"registers", "shared memory", "threads",
                                                      "block slots"};

static double strip_top(int r) {
  return TOP + r * (STRIP + GAP);
}

static double height_of(double share, double most) {
  return fmin(share, most) / most * STRIP;
}

static void draw_area(cs_strbuf *out, const cs_plot *plot, int r, const cs_sm_use *use, int n,
                      double most) {
  double bottom = strip_top(r) + STRIP, last = bottom;
  char class[32];
  snprintf(class, sizeof class, "area a%d", r);
  cs_svg_path_open(out, class);
  cs_svg_path_to(out, 'M', plot->x, bottom);
  for (int i = 0; i < n; i++) {
    double x = cs_plot_x(plot, use[i].us);
    cs_svg_path_to(out, 'L', x, last);
    last = bottom - height_of(use[i].share[r], most);
    cs_svg_path_to(out, 'L', x, last);
  }
  cs_svg_path_to(out, 'L', n > 0 ? cs_plot_x(plot, use[n - 1].us) : plot->x, bottom);
  cs_markup_raw(out, "Z");
  cs_svg_path_close(out);
}

static void draw_strip(cs_strbuf *out, const cs_plot *plot, int r, const cs_sm_use *use, int n,
                       double most) {
  double y = strip_top(r), all = y + STRIP - height_of(1, most);
  double mean = 0, span = n > 0 ? use[n - 1].us : 0;
  bool unknown = false;
  for (int i = 0; i + 1 < n; i++) {
    mean += use[i].share[r] * (use[i + 1].us - use[i].us);
    unknown |= use[i].unknown > 0;
  }
  cs_svg_rect(out, "lane", plot->x, y, plot->width, STRIP);
  draw_area(out, plot, r, use, n, most);
  cs_svg_line(out, "limit", plot->x, all, plot->x + plot->width, all);
  cs_svg_text(out, "name end", LEFT - 8, y + STRIP / 2 - 2, "%s", strips[r]);
  cs_svg_text(out, "tick end", LEFT - 8, y + STRIP / 2 + 13, "%s %.0f%%",
              unknown ? "mean ≥" : "mean", span > 0 ? 100 * mean / span : 0);
  cs_svg_text(out, "tick", WIDTH - RIGHT + 5, all + 4, "100%%");
  if (most >= MOST) cs_svg_text(out, "tick", WIDTH - RIGHT + 5, y + 8, "≥ %.0f%%", 100 * MOST);
}

/* Where kernels run of which it is not known, what is drawn is too little. */
static void draw_unknown(cs_strbuf *out, const cs_plot *plot, const cs_sm_use *use, int n) {
  bool any = false;
  for (int i = 0; i + 1 < n; i++) {
    int from = i;
    if (use[i].unknown == 0) continue;
    while (i + 2 < n && use[i + 1].unknown > 0) i++;
    double x = cs_plot_x(plot, use[from].us);
    cs_svg_rect(out, "unknown", x, plot->y, cs_plot_x(plot, use[i + 1].us) - x, plot->height);
    any = true;
  }
  if (!any) return;
  double y = plot->y + plot->height + 24;
  cs_svg_rect(out, "unknown", plot->x, y, 14, 10);
  cs_svg_text(out, "tick", plot->x + 20, y + 9,
              "kernels run that are not recorded; they count as nothing");
}

/* Between two events: what all four are. */
static void draw_moment(cs_strbuf *out, const cs_plot *plot, const cs_sm_use *use, double end) {
  char from[32], to[32];
  cs_unit_text(CS_UNIT_US, use->us, from);
  cs_unit_text(CS_UNIT_US, end, to);
  char unknown[48] = "";
  if (use->unknown > 0) {
    snprintf(unknown, sizeof unknown, "\nwithout %d that %s not recorded", use->unknown,
             use->unknown == 1 ? "is" : "are");
  }
  cs_svg_mark(
      out, "moment",
      "%s to %s\nregisters %.0f%%\nshared memory %.0f%%\nthreads %.0f%%\nblock slots %.0f%%%s",
      from, to, 100 * use->share[0], 100 * use->share[1], 100 * use->share[2], 100 * use->share[3],
      unknown);
  double x = cs_plot_x(plot, use->us);
  cs_svg_rect(out, NULL, x, plot->y, fmax(cs_plot_x(plot, end) - x, 0.5), plot->height);
  cs_svg_end(out);
}

/* Strips end at what is asked for at most, but at twice all there is. */
static double scale_of(const cs_sm_use *use, int n) {
  double most = 1.1;
  for (int i = 0; i < n; i++) {
    for (int r = 0; r < CS_RESOURCE_COUNT; r++) most = fmax(most, use[i].share[r]);
  }
  return fmin(most, MOST);
}

static void draw(const cs_view *view, const cs_policy_view *policy, const cs_timeline *timeline,
                 double most_us, const char *style, const cs_sm_use *use, int n, cs_strbuf *out) {
  char id[64], label[160];
  const char *source = cs_timeline_source_name(timeline->source);
  double inside = CS_RESOURCE_COUNT * (STRIP + GAP) - GAP, most = scale_of(use, n);
  cs_axis across = {.title = "time", .unit = CS_UNIT_US, .compared = cs_view_longest_us(view)};
  cs_plot plot = {LEFT, TOP, WIDTH - LEFT - RIGHT, inside, across, {0}};
  snprintf(id, sizeof id, "sm-use-%s-%s", policy->name, source);
  snprintf(label, sizeof label, "SM resources over time, %s, %s", policy->name, source);
  cs_svg_head head = {.width = WIDTH,
                      .height = TOP + inside + BOTTOM,
                      .id = id,
                      .label = label,
                      .style = style,
                      .frame = true};
  plot.across.most = fmax(fmax(most_us, timeline->span_us), 1e-3);
  cs_svg_open(out, &head);
  for (int r = 0; r < CS_RESOURCE_COUNT; r++) draw_strip(out, &plot, r, use, n, most);
  draw_unknown(out, &plot, use, n);
  cs_plot_across(out, &plot);
  cs_svg_group(out, "boxes");
  for (int i = 0; i + 1 < n; i++) draw_moment(out, &plot, &use[i], use[i + 1].us);
  cs_svg_end(out);
  cs_svg_close(out);
}

cs_status cs_draw_sm_use(const cs_view *view, const cs_policy_view *policy,
                         const cs_timeline *timeline, double most_us, const char *style,
                         cs_strbuf *out) {
  cs_sm_use *use = NULL;
  int n = 0;
  CS_RETURN_IF_ERROR(cs_sm_use_of(view->report->device, timeline, &use, &n));
  draw(view, policy, timeline, most_us, style, use, n, out);
  free(use);
  return CS_OK;
}

/* ---- Data ---- */

enum { POLICY, SOURCE, US, REGISTERS, SHARED, THREADS, BLOCKS, UNKNOWN, N_COLUMNS };
static const cs_table_column columns[N_COLUMNS] = {
    [POLICY] = {"policy", "policy", CS_COLUMN_TEXT, CS_COLUMN_ALL, true},
    [SOURCE] = {"source", "source", CS_COLUMN_TEXT, CS_COLUMN_ALL, true},
    [US] = {"us", "from us", 2, CS_COLUMN_ALL, false},
    [REGISTERS] = {"registers_pct", "regs %", 1, CS_COLUMN_ALL, false},
    [SHARED] = {"shared_pct", "shared %", 1, CS_COLUMN_ALL, false},
    [THREADS] = {"threads_pct", "threads %", 1, CS_COLUMN_ALL, false},
    [BLOCKS] = {"blocks_pct", "blocks %", 1, CS_COLUMN_ALL, false},
    [UNKNOWN] = {"unknown_kernels", "not known", 0, CS_COLUMN_ALL, false},
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
    cs_table_number(out, UNKNOWN, use[i].unknown);
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
