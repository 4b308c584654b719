/* What lies where in a plan's arena, from its first write to its last read, in predicted time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/view.h"

typedef struct resident {
  const char *name, *kind; /* "value", "input", "output", "workspace" */
  int64_t offset, bytes;
  double first_us, last_us; /* from the first task's start on */
} resident;

/* ---- Lifetimes ---- */

static void use(resident *of, double start, double end) {
  if (isnan(of->first_us) || start < of->first_us) of->first_us = start;
  if (isnan(of->last_us) || end > of->last_us) of->last_us = end;
}

static void add_buffers(const cs_policy_view *policy, resident *out) {
  static const char *const kinds[] = {[CS_BUFFER_INTERMEDIATE] = "value",
                                      [CS_BUFFER_INPUT] = "input",
                                      [CS_BUFFER_OUTPUT] = "output"};
  const cs_program *program = policy->program;
  const cs_plan *plan = policy->plan;
  double begin = cs_policy_view_begin_us(policy);
  for (int b = 0; b < program->n_buffers; b++) {
    const cs_buffer *buffer = &program->buffers[b];
    out[b] = (resident){
        buffer->name, kinds[buffer->kind], plan->buffer_offsets[b], buffer->bytes, NAN, NAN};
    if (buffer->kind != CS_BUFFER_INTERMEDIATE) use(&out[b], begin, plan->predicted_us);
  }
  for (int p = 0; p < plan->n_tasks; p++) {
    const cs_plan_task *placed = &plan->tasks[p];
    const cs_task *task = &program->tasks[placed->task];
    use(&out[program->tensors[task->output].buffer], placed->start_us, placed->end_us);
    for (int k = 0; k < task->desc.n_inputs; k++)
      use(&out[program->tensors[task->inputs[k]].buffer], placed->start_us, placed->end_us);
  }
}

static int add_workspaces(const cs_policy_view *policy, resident *out) {
  const cs_plan *plan = policy->plan;
  int n = 0;
  for (int p = 0; p < plan->n_tasks; p++) {
    const cs_plan_task *placed = &plan->tasks[p];
    if (placed->workspace_bytes <= 0) continue;
    out[n++] = (resident){policy->program->tasks[placed->task].name,
                          "workspace",
                          placed->workspace_offset,
                          placed->workspace_bytes,
                          placed->start_us,
                          placed->end_us};
  }
  return n;
}

static int by_start(const void *a, const void *b) {
  const resident *x = a, *y = b;
  if (x->first_us != y->first_us) return x->first_us < y->first_us ? -1 : 1;
  return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* What is never used has no place in time, and is left out. */
static cs_status residents_of(const cs_policy_view *policy, resident **out, int *n) {
  size_t most = (size_t)policy->program->n_buffers + (size_t)policy->plan->n_tasks + 1;
  *out = cs_calloc(most, sizeof **out);
  if (!*out) return cs_no_memory("an arena", most * sizeof **out);
  add_buffers(policy, *out);
  int count = policy->program->n_buffers, kept = 0;
  double begin = cs_policy_view_begin_us(policy);
  count += add_workspaces(policy, *out + count);
  for (int i = 0; i < count; i++) {
    resident r = (*out)[i];
    r.first_us -= begin;
    r.last_us -= begin;
    if (!isnan(r.first_us)) (*out)[kept++] = r;
  }
  if (kept > 0) qsort(*out, (size_t)kept, sizeof **out, by_start);
  *n = kept;
  return CS_OK;
}

/* ---- Drawing ---- */

static const cs_legend_entry legend[] = {{"b b7", "value", false},
                                         {"b b0", "input", false},
                                         {"b b2", "output", false},
                                         {"b b1", "workspace", false}};

static const char *class_of(const resident *r) {
  switch (r->kind[0]) {
    case 'i':
      return "b b0";
    case 'o':
      return "b b2";
    case 'w':
      return "b b1";
    default:
      return "b b7";
  }
}

static cs_status describe(const resident *r, char **out) {
  char bytes[32], offset[32], first[32], last[32];
  cs_strbuf tip = {0};
  cs_unit_text(CS_UNIT_BYTES, (double)r->bytes, bytes);
  cs_unit_text(CS_UNIT_BYTES, (double)r->offset, offset);
  cs_unit_text(CS_UNIT_US, r->first_us, first);
  cs_unit_text(CS_UNIT_US, r->last_us, last);
  cs_strbuf_printf(&tip, "%s\n%s, %s from %s on\nfrom %s to %s", r->name, r->kind, bytes, offset,
                   first, last);
  return cs_strbuf_take(&tip, out);
}

static void draw(const cs_view *view, const cs_policy_view *policy, const char *style,
                 const cs_box *items, int n, cs_strbuf *out) {
  char id[64], label[128], arena[32], description[160];
  snprintf(id, sizeof id, "arena-%s", policy->name);
  snprintf(label, sizeof label, "Memory arena of %s over time", policy->name);
  cs_unit_text(CS_UNIT_BYTES, (double)policy->plan->arena_bytes, arena);
  snprintf(description, sizeof description, "%d buffers and workspaces in an arena of %s", n,
           arena);
  cs_axis up = {.title = "offset in the arena", .unit = CS_UNIT_BYTES};
  cs_axis_fit(&up, (double)policy->plan->arena_bytes);
  cs_boxes boxes = {.id = id,
                    .label = label,
                    .description = description,
                    .style = style,
                    .across = {.title = "predicted time",
                               .unit = CS_UNIT_US,
                               .compared = cs_view_longest_us(view)},
                    .up = up,
                    .most_across = policy->plan->predicted_us - cs_policy_view_begin_us(policy),
                    .legend = legend,
                    .n_legend = (int)(sizeof legend / sizeof legend[0])};
  cs_figure_boxes(out, &boxes, items, n);
}

cs_status cs_draw_arena(const cs_view *view, const cs_policy_view *policy, const char *style,
                        cs_strbuf *out) {
  cs_status st = CS_OK;
  resident *residents = NULL;
  cs_box *items = NULL;
  char **tips = NULL;
  int n = 0;
  CS_TRY(st, residents_of(policy, &residents, &n), done);
  items = cs_calloc((size_t)n + 1, sizeof *items);
  tips = cs_calloc((size_t)n + 1, sizeof *tips);
  if (!items || !tips) CS_FAIL(st, done, CS_CODE_NO_MEMORY, "out of memory for an arena");
  for (int i = 0; i < n; i++) {
    const resident *r = &residents[i];
    CS_TRY(st, describe(r, &tips[i]), done);
    items[i] = (cs_box){r->first_us, r->last_us, (double)r->offset, (double)(r->offset + r->bytes),
                        r->name,     tips[i],    class_of(r)};
  }
  draw(view, policy, style, items, n, out);
done:
  for (int i = 0; tips && i < n; i++) free(tips[i]);
  free(tips);
  free(items);
  free(residents);
  return st;
}

/* ---- Data ---- */

enum { POLICY, NAME, KIND, OFFSET, BYTES, FIRST, LAST, N_COLUMNS };
static const cs_table_column columns[N_COLUMNS] = {
    [POLICY] = {"policy", "policy", CS_COLUMN_TEXT, CS_COLUMN_ALL, true},
    [NAME] = {"name", "name", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [KIND] = {"kind", "kind", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [OFFSET] = {"offset_bytes", "offset B", 0, CS_COLUMN_ALL, false},
    [BYTES] = {"bytes", "bytes", 0, CS_COLUMN_ALL, false},
    [FIRST] = {"first_us", "from us", 2, CS_COLUMN_ALL, false},
    [LAST] = {"last_us", "to us", 2, CS_COLUMN_ALL, false},
};

static cs_status add_rows(const cs_policy_view *policy, cs_table *out) {
  resident *residents = NULL;
  int n = 0;
  CS_RETURN_IF_ERROR(residents_of(policy, &residents, &n));
  for (int i = 0; i < n; i++) {
    cs_table_row(out, i > 0);
    cs_table_text(out, POLICY, "%s", policy->name);
    cs_table_text(out, NAME, "%s", residents[i].name);
    cs_table_text(out, KIND, "%s", residents[i].kind);
    cs_table_number(out, OFFSET, (double)residents[i].offset);
    cs_table_number(out, BYTES, (double)residents[i].bytes);
    cs_table_number(out, FIRST, residents[i].first_us);
    cs_table_number(out, LAST, residents[i].last_us);
  }
  free(residents);
  return CS_OK;
}

cs_status cs_tabulate_arena(const cs_view *view, cs_table *out) {
  cs_table_init(out, columns, N_COLUMNS);
  if (view->n_policies == 0) return cs_error(CS_CODE_NOT_FOUND, "%s", view->no_plans);
  for (int i = 0; i < view->n_policies; i++) CS_RETURN_IF_ERROR(add_rows(&view->policies[i], out));
  return CS_OK;
}
