/* A plan's kernels on its streams, as predicted or as traced. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/view.h"

/* ---- Colours by what a task does ---- */

static const cs_legend_entry legend[] = {{"b b0", "convolution", false},
                                         {"b b2", "pooling", false},
                                         {"b b3", "dense layer", false},
                                         {"b b6", "elementwise and other", false},
                                         {"b b1", "copy or layout change", false}};
#define N_LEGEND ((int)(sizeof legend / sizeof legend[0]))

static const char *class_of(cs_op op) {
  switch (op) {
    case CS_OP_CONV:
    case CS_OP_CONV_TRANSPOSE:
      return "b b0";
    case CS_OP_MAX_POOL:
    case CS_OP_AVERAGE_POOL:
    case CS_OP_GLOBAL_AVERAGE_POOL:
    case CS_OP_GLOBAL_MAX_POOL:
      return "b b2";
    case CS_OP_GEMM:
    case CS_OP_MATMUL:
      return "b b3";
    case CS_OP_COPY:
      return "b b1";
    default:
      return "b b6";
  }
}

static cs_op op_of(const cs_policy_view *policy, const cs_timeline_slice *slice) {
  return policy->program->tasks[policy->plan->tasks[slice->position].task].desc.op;
}

/* ---- Boxes ---- */

static void describe(const cs_policy_view *policy, const cs_timeline_slice *slice, cs_strbuf *out) {
  char start[32], took[32], workspace[32];
  cs_unit_text(CS_UNIT_US, slice->start_us, start);
  cs_unit_text(CS_UNIT_US, slice->end_us - slice->start_us, took);
  cs_unit_text(CS_UNIT_BYTES, (double)slice->workspace_bytes, workspace);
  cs_strbuf_printf(out, "%s\n%s · stream %d\nat %s for %s\n%s", slice->name,
                   cs_op_name(op_of(policy, slice)), slice->stream, start, took, slice->candidate);
  if (slice->kernel_known) {
    const cs_kernel_info *kernel = &slice->kernel;
    cs_strbuf_printf(out, "\nkernel %s", slice->short_kernel);
    if (slice->of > 1) cs_strbuf_printf(out, " (%d of %d)", slice->index + 1, slice->of);
    if (slice->grid_known && kernel->grid[0] > 0) {
      cs_strbuf_printf(out, "\ngrid %d×%d×%d, block %d×%d×%d, %d registers a thread",
                       kernel->grid[0], kernel->grid[1], kernel->grid[2], kernel->block[0],
                       kernel->block[1], kernel->block[2], kernel->registers);
    }
  }
  if (slice->workspace_bytes > 0) cs_strbuf_printf(out, "\nworkspace %s", workspace);
  if (slice->part > 0) cs_strbuf_printf(out, "\nkeeps to %d SMs", slice->part);
  if (slice->early)
    cs_strbuf_printf(out, "\nbegan before what it waits for had ended; drawn from there");
}

static cs_status make_boxes(const cs_policy_view *policy, const cs_timeline *timeline,
                            cs_box *boxes, char **tips, char (*names)[64]) {
  for (int i = 0; i < timeline->n_slices; i++) {
    const cs_timeline_slice *slice = &timeline->slices[i];
    cs_strbuf tip = {0};
    describe(policy, slice, &tip);
    cs_view_short_name(slice->name, names[i]);
    CS_RETURN_IF_ERROR(cs_strbuf_take(&tip, &tips[i]));
    boxes[i] = (cs_box){.start = slice->shown_us,
                        .end = slice->end_us,
                        .low = slice->stream,
                        .high = slice->stream + 1,
                        .name = names[i],
                        .tip = tips[i],
                        .class = class_of(op_of(policy, slice))};
  }
  return CS_OK;
}

/* Where blocks of several tasks begin, of predicted times, from the first start on. */
static cs_status block_rules(const cs_policy_view *policy, double *rules, int *n) {
  const cs_plan *plan = policy->plan;
  int n_blocks = 0, last = -1;
  double first = cs_policy_view_begin_us(policy);
  int *block_of = cs_calloc((size_t)plan->n_tasks + 1, sizeof *block_of);
  if (!block_of) return cs_no_memory("blocks", 0);
  cs_status st = cs_program_blocks(policy->program, block_of, &n_blocks);
  for (int p = 0; st == CS_OK && p < plan->n_tasks; p++) {
    int block = block_of[plan->tasks[p].task], tasks = 0;
    for (int q = 0; q < plan->n_tasks; q++) tasks += block_of[plan->tasks[q].task] == block;
    if (block > last && tasks > 1) rules[(*n)++] = plan->tasks[p].start_us - first;
    if (block > last) last = block;
  }
  free(block_of);
  return st;
}

static void draw(const cs_view *view, const cs_policy_view *policy, const cs_timeline *timeline,
                 double most_us, const char *style, const cs_box *items, const double *rules,
                 int n_rules, cs_strbuf *out) {
  char id[64], label[160], description[256], names[CS_MAX_SPLIT_STREAMS][24];
  const char *lanes[CS_MAX_SPLIT_STREAMS];
  const char *source = cs_timeline_source_name(timeline->source);
  int n_lanes =
      timeline->n_streams < CS_MAX_SPLIT_STREAMS ? timeline->n_streams : CS_MAX_SPLIT_STREAMS;
  for (int i = 0; i < n_lanes; i++) {
    snprintf(names[i], sizeof names[i], "stream %d", i);
    lanes[i] = names[i];
  }
  snprintf(id, sizeof id, "gantt-%s-%s", policy->name, source);
  snprintf(label, sizeof label, "Gantt chart of %s, %s", policy->name, source);
  snprintf(description, sizeof description, "kernels: %d, streams: %d, microseconds: %.1f",
           timeline->n_slices, timeline->n_streams, timeline->span_us);
  cs_boxes boxes = {
      .id = id,
      .label = label,
      .description = description,
      .style = style,
      .across = {.title = "time", .unit = CS_UNIT_US, .compared = cs_view_longest_us(view)},
      .lanes = lanes,
      .n_lanes = n_lanes,
      .most_across = most_us,
      .rules = rules,
      .n_rules = n_rules,
      .legend = legend,
      .n_legend = N_LEGEND};
  cs_figure_boxes(out, &boxes, items, timeline->n_slices);
}

cs_status cs_draw_gantt(const cs_view *view, const cs_policy_view *policy,
                        const cs_timeline *timeline, double most_us, const char *style,
                        cs_strbuf *out) {
  cs_status st = CS_OK;
  size_t n = (size_t)timeline->n_slices + 1;
  int n_rules = 0;
  cs_box *items = cs_calloc(n, sizeof *items);
  char **tips = cs_calloc(n, sizeof *tips);
  char(*names)[64] = cs_calloc(n, sizeof *names);
  double *rules = cs_calloc((size_t)policy->plan->n_tasks + 1, sizeof *rules);
  if (!items || !tips || !names || !rules)
    CS_FAIL(st, done, CS_CODE_NO_MEMORY, "out of memory for boxes");
  CS_TRY(st, make_boxes(policy, timeline, items, tips, names), done);
  if (timeline->source != CS_TIMELINE_MEASURED)
    CS_TRY(st, block_rules(policy, rules, &n_rules), done);
  draw(view, policy, timeline, most_us, style, items, rules, n_rules, out);
done:
  for (size_t i = 0; tips && i < n; i++) free(tips[i]);
  free(tips);
  free(items);
  free(names);
  free(rules);
  return st;
}

/* ---- Data ---- */

enum {
  POLICY,
  SOURCE,
  STREAM,
  START,
  END,
  NODE,
  OP,
  CANDIDATE,
  KERNEL,
  INDEX,
  OF,
  WORKSPACE,
  N_COLUMNS
};
static const cs_table_column columns[N_COLUMNS] = {
    [POLICY] = {"policy", "policy", CS_COLUMN_TEXT, CS_COLUMN_ALL, true},
    [SOURCE] = {"source", "source", CS_COLUMN_TEXT, CS_COLUMN_ALL, true},
    [STREAM] = {"stream", "stream", 0, CS_COLUMN_ALL, false},
    [START] = {"start_us", "start us", 2, CS_COLUMN_ALL, false},
    [END] = {"end_us", "end us", 2, CS_COLUMN_ALL, false},
    [NODE] = {"node", "node", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [OP] = {"op", "op", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [CANDIDATE] = {"candidate", "candidate", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [KERNEL] = {"kernel", "kernel", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [INDEX] = {"index", "index", 0, CS_COLUMN_DATA, false},
    [OF] = {"of", "of", 0, CS_COLUMN_DATA, false},
    [WORKSPACE] = {"workspace_bytes", "workspace B", 0, CS_COLUMN_ALL, false},
};

static void add_rows(const cs_policy_view *policy, const cs_timeline *timeline, cs_table *out) {
  for (int i = 0; timeline && i < timeline->n_slices; i++) {
    const cs_timeline_slice *slice = &timeline->slices[i];
    cs_table_row(out, i > 0);
    cs_table_text(out, POLICY, "%s", policy->name);
    cs_table_text(out, SOURCE, "%s", cs_timeline_source_name(timeline->source));
    cs_table_number(out, STREAM, slice->stream);
    cs_table_number(out, START, slice->start_us);
    cs_table_number(out, END, slice->end_us);
    cs_table_text(out, NODE, "%s", slice->name);
    cs_table_text(out, OP, "%s", cs_op_name(op_of(policy, slice)));
    cs_table_text(out, CANDIDATE, "%s", slice->candidate);
    if (slice->kernel_known) cs_table_text(out, KERNEL, "%s", slice->kernel.name);
    cs_table_number(out, INDEX, slice->index);
    cs_table_number(out, OF, slice->of);
    cs_table_number(out, WORKSPACE, (double)slice->workspace_bytes);
  }
}

cs_status cs_tabulate_gantt(const cs_view *view, cs_table *out) {
  cs_table_init(out, columns, N_COLUMNS);
  if (view->n_policies == 0) return cs_error(CS_CODE_NOT_FOUND, "%s", view->no_plans);
  for (int i = 0; i < view->n_policies; i++) {
    add_rows(&view->policies[i], view->policies[i].planned, out);
    add_rows(&view->policies[i], view->policies[i].measured, out);
  }
  return CS_OK;
}
