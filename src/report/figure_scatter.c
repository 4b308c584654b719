/* Every candidate: its time against what it takes. */
#include <math.h>
#include <stdio.h>

#include "report/view.h"

#define WIDTH 528
#define WHOLE_WIDTH 1076
#define HEIGHT 360
#define LEFT 76
#define TOP 56
#define BOTTOM 44
#define RIGHT 30

static const struct {
  const char *id, *label, *axis;
  cs_unit unit;
} kinds[CS_SCATTER_COUNT] = {
    {"scatter-workspace", "Time against workspace of every candidate", "workspace", CS_UNIT_BYTES},
    {"scatter-registers", "Time against registers of every candidate", "share of an SM's registers",
     CS_UNIT_PERCENT},
    {"scatter-shared", "Time against shared memory of every candidate",
     "share of an SM's shared memory", CS_UNIT_PERCENT}};

/* NaN: not known. */
static double value_of(const cs_view_candidate *candidate, cs_scatter which) {
  if (which == CS_SCATTER_WORKSPACE) return (double)candidate->record->candidate.workspace_bytes;
  if (!candidate->demand.known) return NAN;
  return 100 *
         candidate->demand
             .share[which == CS_SCATTER_REGISTERS ? CS_RESOURCE_REGISTERS : CS_RESOURCE_SHARED];
}

static void fit(const cs_view_candidates *all, cs_scatter which, cs_plot *plot) {
  for (int g = 0; g < all->n_groups; g++) {
    for (int i = 0; i < all->groups[g].n; i++) {
      const cs_view_candidate *candidate = &all->groups[g].candidates[i];
      double value = value_of(candidate, which);
      if (isnan(value)) continue;
      cs_axis_fit(&plot->across, value);
      cs_axis_fit(&plot->up, candidate->record->measured.cold_us);
    }
  }
  cs_axis_round(&plot->across);
  cs_axis_round(&plot->up);
}

/* A point is a line of no length with round ends. One that is not known is there too, so that
 * points and rows of data correspond, but shows nothing. */
static void draw_point(cs_strbuf *out, const cs_plot *plot, const cs_view_candidate *candidate,
                       double value) {
  cs_strbuf_printf(out, "<path class=\"d c%d\"",
                   cs_family_colour(candidate->record->candidate.family));
  if (!isnan(value)) {
    cs_markup_raw(out, " d=\"");
    cs_svg_path_to(out, 'M', cs_plot_x(plot, value),
                   cs_plot_y(plot, candidate->record->measured.cold_us));
    cs_markup_raw(out, "h0\"");
  }
  cs_markup_raw(out, "/>");
}

static void draw_group(cs_strbuf *out, const cs_plot *plot, const cs_view_group *group, int index,
                       cs_scatter which) {
  cs_strbuf_printf(out, "<g data-group=\"%d\">", index);
  for (int i = 0; i < group->n; i++) {
    draw_point(out, plot, &group->candidates[i], value_of(&group->candidates[i], which));
  }
  cs_markup_raw(out, "</g>");
  cs_strbuf_printf(out, "<g class=\"rings\" data-group=\"%d\">", index);
  for (int i = 0; i < group->n; i++) {
    const cs_view_candidate *candidate = &group->candidates[i];
    double value = value_of(candidate, which);
    if (!candidate->chosen || isnan(value)) continue;
    cs_svg_circle(out, "chosen", cs_plot_x(plot, value),
                  cs_plot_y(plot, candidate->record->measured.cold_us), 5);
  }
  cs_svg_end(out);
}

static void draw_legend(cs_strbuf *out, const cs_view_candidates *all) {
  static const char *const classes[] = {"c0", "c1", "c2", "c3", "c4", "c5"};
  bool seen[6] = {false};
  double x = 8;
  for (int g = 0; g < all->n_groups; g++) {
    for (int i = 0; i < all->groups[g].n; i++) {
      seen[cs_family_colour(all->groups[g].candidates[i].record->candidate.family)] = true;
    }
  }
  cs_svg_group(out, "legend");
  for (int c = 0; c < 6; c++) {
    if (!seen[c]) continue;
    cs_strbuf_printf(out, "<path class=\"d %s\" d=\"", classes[c]);
    cs_svg_path_to(out, 'M', x + 6, 14);
    cs_markup_raw(out, "h0\"/>");
    cs_svg_text(out, "tick", x + 16, 18, "%s", cs_family_name(c));
    x += 22 + cs_text_width(cs_family_name(c), 11);
  }
  cs_svg_circle(out, "chosen", x + 6, 14, 5);
  cs_svg_text(out, "tick", x + 16, 18, "in the plan");
  cs_svg_end(out);
}

cs_status cs_draw_scatter(const cs_view_candidates *candidates, cs_scatter which, const char *style,
                          cs_strbuf *out) {
  double width = which == CS_SCATTER_WORKSPACE ? WHOLE_WIDTH : WIDTH;
  cs_plot plot = {
      LEFT,
      TOP,
      width - LEFT - RIGHT,
      HEIGHT - TOP - BOTTOM,
      {.title = kinds[which].axis, .unit = kinds[which].unit, .log = which == CS_SCATTER_WORKSPACE},
      {.title = "time alone", .unit = CS_UNIT_US, .log = true}};
  cs_svg_head head = {.width = width,
                      .height = HEIGHT,
                      .id = kinds[which].id,
                      .label = kinds[which].label,
                      .style = style,
                      .frame = true};
  fit(candidates, which, &plot);
  if (!plot.up.any) {
    return cs_error(CS_CODE_NOT_FOUND, "no candidate whose kernels are recorded");
  }
  cs_svg_open(out, &head);
  cs_plot_axes(out, &plot);
  for (int g = 0; g < candidates->n_groups; g++) {
    draw_group(out, &plot, &candidates->groups[g], g, which);
  }
  draw_legend(out, candidates);
  cs_svg_close(out);
  return CS_OK;
}

/* ---- Data ---- */

enum {
  NODE,
  LAYOUT,
  CANDIDATE,
  COLD,
  WARM,
  WORKSPACE,
  KERNELS,
  REGISTERS,
  SHARED,
  THREADS,
  BLOCKS,
  CHOSEN,
  N_COLUMNS
};
static const cs_table_column columns[N_COLUMNS] = {
    [NODE] = {"node", "node", CS_COLUMN_TEXT, CS_COLUMN_ALL, true},
    [LAYOUT] = {"layout", "layout", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [CANDIDATE] = {"candidate", "candidate", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [COLD] = {"cold_us", "time us", 2, CS_COLUMN_ALL, false},
    [WARM] = {"warm_us", "warm us", 2, CS_COLUMN_ALL, false},
    [WORKSPACE] = {"workspace_bytes", "workspace B", 0, CS_COLUMN_ALL, false},
    [KERNELS] = {"kernels", "kernels", 0, CS_COLUMN_ALL, false},
    [REGISTERS] = {"registers_pct", "regs %", 1, CS_COLUMN_ALL, false},
    [SHARED] = {"shared_pct", "shared %", 1, CS_COLUMN_ALL, false},
    [THREADS] = {"threads_pct", "threads %", 1, CS_COLUMN_ALL, false},
    [BLOCKS] = {"blocks_pct", "blocks %", 1, CS_COLUMN_ALL, false},
    [CHOSEN] = {"chosen", "in the plan", 0, CS_COLUMN_ALL, false},
};

static void add_row(const cs_view_group *group, int i, cs_table *table) {
  const cs_view_candidate *candidate = &group->candidates[i];
  const cs_record *record = candidate->record;
  cs_table_row(table, i > 0);
  cs_table_text(table, NODE, "%s", group->nodes);
  cs_table_text(table, LAYOUT, "%s", cs_layout_name(candidate->op->layout));
  cs_table_text(table, CANDIDATE, "%s", record->candidate.id);
  cs_table_number(table, COLD, record->measured.cold_us);
  cs_table_number(table, WARM, record->measured.warm_us);
  cs_table_number(table, WORKSPACE, (double)record->candidate.workspace_bytes);
  if (record->n_kernels > 0) cs_table_number(table, KERNELS, record->n_kernels);
  for (int r = 0; candidate->demand.known && r < CS_RESOURCE_COUNT; r++) {
    cs_table_number(table, REGISTERS + r, 100 * candidate->demand.share[r]);
  }
  cs_table_number(table, CHOSEN, candidate->chosen);
}

cs_status cs_tabulate_scatter(const cs_view *view, cs_table *out) {
  cs_view_candidates candidates;
  cs_table_init(out, columns, N_COLUMNS);
  CS_RETURN_IF_ERROR(cs_view_candidates_of(view, &candidates));
  for (int g = 0; g < candidates.n_groups; g++) {
    for (int i = 0; i < candidates.groups[g].n; i++) add_row(&candidates.groups[g], i, out);
  }
  cs_view_candidates_free(&candidates);
  return CS_OK;
}
