/* The tasks of a plan as a graph: blocks one behind the other in rows, as text is, within each its
 * tasks by their longest path, coloured and numbered by stream. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/view.h"

#define BOX_W 92.0
#define BOX_H 30.0
#define GAP_X 22.0
#define GAP_Y 8.0
#define PAD 12.0
#define BLOCK_GAP 20.0
#define ROW_WIDTH 1072.0
#define TITLE 16.0

typedef struct place {
  int segment;
  int layer, lane;
  double x, y; /* left, top */
} place;

/* A block of several tasks, or blocks of one task each that follow one another. */
typedef struct segment {
  int first_block, last_block, n_tasks;
  int layers, lanes;
  double x, y, width, height;
} segment;

typedef struct drawing {
  const cs_policy_view *policy;
  const cs_plan_task **placed_of; /* per task */
  int *block_of, n_blocks;
  place *places; /* per task */
  segment *segments;
  int n_segments;
  double width, height;
  double begin_us; /* of the plan's first task */
} drawing;

/* ---- Segments ---- */

static void find_segments(drawing *d, const int *tasks_of) {
  for (int b = 0; b < d->n_blocks; b++) {
    segment *last = d->n_segments > 0 ? &d->segments[d->n_segments - 1] : NULL;
    bool chain =
        last && tasks_of[b] == 1 && last->n_tasks == last->last_block - last->first_block + 1;
    if (chain && last->n_tasks < 8) {
      last->last_block = b;
      last->n_tasks++;
    } else {
      d->segments[d->n_segments++] =
          (segment){.first_block = b, .last_block = b, .n_tasks = tasks_of[b]};
    }
  }
  int s = 0;
  for (int b = 0; b < d->n_blocks; b++) {
    if (b > d->segments[s].last_block) s++;
    for (int t = 0; t < d->policy->program->n_tasks; t++) {
      if (d->block_of[t] == b) d->places[t].segment = s;
    }
  }
}

/* ---- Layers and lanes ---- */

/* Where the tasks before it lie, on average; of none the middle. */
static double wanted_lane(const drawing *d, int task) {
  const cs_task *of = &d->policy->program->tasks[task];
  double sum = 0;
  int n = 0;
  for (int k = 0; k < of->n_preds; k++) {
    const place *before = &d->places[of->preds[k]];
    if (before->segment != d->places[task].segment) continue;
    sum += before->lane;
    n++;
  }
  return n > 0 ? sum / n : -1;
}

static void set_layers(drawing *d) {
  const cs_program *program = d->policy->program;
  for (int t = 0; t < program->n_tasks; t++) {
    place *at = &d->places[t];
    for (int k = 0; k < program->tasks[t].n_preds; k++) {
      const place *before = &d->places[program->tasks[t].preds[k]];
      if (before->segment == at->segment && before->layer >= at->layer)
        at->layer = before->layer + 1;
    }
    segment *s = &d->segments[at->segment];
    if (at->layer + 1 > s->layers) s->layers = at->layer + 1;
  }
}

static bool lane_is_free(const drawing *d, int segment_index, int layer, int lane) {
  for (int t = 0; t < d->policy->program->n_tasks; t++) {
    const place *other = &d->places[t];
    if (other->segment == segment_index && other->layer == layer && other->lane == lane)
      return false;
  }
  return true;
}

/* In program order: the lane of the task before it where that is free, else the next free one. */
static void set_lanes(drawing *d) {
  int n = d->policy->program->n_tasks;
  for (int t = 0; t < n; t++) d->places[t].lane = -1;
  for (int s = 0; s < d->n_segments; s++) {
    for (int layer = 0; layer < d->segments[s].layers; layer++) {
      for (int t = 0; t < n; t++) {
        place *at = &d->places[t];
        if (at->segment != s || at->layer != layer) continue;
        int lane = (int)lround(fmax(wanted_lane(d, t), 0));
        while (!lane_is_free(d, s, layer, lane)) lane++;
        at->lane = lane;
        if (lane + 1 > d->segments[s].lanes) d->segments[s].lanes = lane + 1;
      }
    }
  }
}

/* ---- Pixels ---- */

static void place_segments(drawing *d) {
  double x = 0, y = 0, row = 0;
  for (int i = 0; i < d->n_segments; i++) {
    segment *s = &d->segments[i];
    s->width = 2 * PAD + s->layers * BOX_W + (s->layers - 1) * GAP_X;
    s->height = TITLE + PAD + s->lanes * BOX_H + (s->lanes - 1) * GAP_Y;
    if (x > 0 && x + s->width > ROW_WIDTH) {
      x = 0;
      y += row + BLOCK_GAP;
      row = 0;
    }
    s->x = x;
    s->y = y;
    x += s->width + BLOCK_GAP;
    row = fmax(row, s->height);
    d->width = fmax(d->width, s->x + s->width);
    d->height = fmax(d->height, s->y + s->height);
  }
  for (int t = 0; t < d->policy->program->n_tasks; t++) {
    place *at = &d->places[t];
    const segment *s = &d->segments[at->segment];
    at->x = s->x + PAD + at->layer * (BOX_W + GAP_X);
    at->y = s->y + TITLE + at->lane * (BOX_H + GAP_Y);
  }
}

static cs_status lay_out(const cs_policy_view *policy, drawing *d) {
  size_t n = (size_t)policy->program->n_tasks + 1;
  *d = (drawing){.policy = policy,
                 .begin_us = cs_policy_view_begin_us(policy),
                 .placed_of = cs_calloc(n, sizeof(const cs_plan_task *)),
                 .block_of = cs_calloc(n, sizeof(int)),
                 .places = cs_calloc(n, sizeof(place)),
                 .segments = cs_calloc(n, sizeof(segment))};
  int *tasks_of = cs_calloc(n, sizeof *tasks_of);
  if (!d->placed_of || !d->block_of || !d->places || !d->segments || !tasks_of) {
    free(tasks_of);
    return cs_no_memory("a graph", n * sizeof(place));
  }
  for (int p = 0; p < policy->plan->n_tasks; p++)
    d->placed_of[policy->plan->tasks[p].task] = &policy->plan->tasks[p];
  int n_blocks = 0;
  cs_status st = cs_program_blocks(policy->program, d->block_of, &n_blocks);
  d->n_blocks = n_blocks;
  if (st == CS_OK) {
    for (int t = 0; t < policy->program->n_tasks; t++) tasks_of[d->block_of[t]]++;
    find_segments(d, tasks_of);
    set_layers(d);
    set_lanes(d);
    place_segments(d);
  }
  free(tasks_of);
  return st;
}

static void drawing_free(drawing *d) {
  free(d->placed_of);
  free(d->block_of);
  free(d->places);
  free(d->segments);
}

/* ---- Drawing ---- */

static void draw_segments(const drawing *d, cs_strbuf *out) {
  cs_svg_group(out, "blocks");
  for (int i = 0; i < d->n_segments; i++) {
    const segment *s = &d->segments[i];
    cs_svg_rect(out, "block", s->x, s->y, s->width, s->height);
    if (s->first_block == s->last_block) {
      cs_svg_text(out, "tick", s->x + PAD, s->y + 12, "block %d", s->first_block);
    } else {
      cs_svg_text(out, "tick", s->x + PAD, s->y + 12, "blocks %d–%d", s->first_block,
                  s->last_block);
    }
    if (i == 0) continue;
    const segment *before = &d->segments[i - 1];
    if (before->y != s->y) continue;
    cs_svg_line(out, "edge", before->x + before->width, s->y + 8, s->x, s->y + 8);
  }
  cs_svg_end(out);
}

static void draw_edges(const drawing *d, cs_strbuf *out) {
  const cs_program *program = d->policy->program;
  cs_svg_group(out, "edges");
  for (int t = 0; t < program->n_tasks; t++) {
    for (int k = 0; k < program->tasks[t].n_preds; k++) {
      const place *from = &d->places[program->tasks[t].preds[k]], *to = &d->places[t];
      if (from->segment != to->segment) continue;
      double x = from->x + BOX_W, y = from->y + BOX_H / 2, end = to->y + BOX_H / 2;
      double reach = fmax(GAP_X / 2, fmin(40, (to->x - x) / 2));
      cs_svg_path_open(out, "edge");
      cs_svg_path_to(out, 'M', x, y);
      cs_svg_path_to(out, 'C', x + reach, y);
      cs_svg_path_to(out, ' ', to->x - reach, end);
      cs_svg_path_to(out, ' ', to->x, end);
      cs_svg_path_close(out);
    }
  }
  cs_svg_end(out);
}

static void draw_task(const drawing *d, int t, cs_strbuf *out) {
  const cs_task *task = &d->policy->program->tasks[t];
  const cs_plan_task *placed = d->placed_of[t];
  const place *at = &d->places[t];
  char shorter[64], name[64], class[32], start[32], took[32];
  snprintf(class, sizeof class, "b b%d", placed->stream % 8);
  cs_unit_text(CS_UNIT_US, placed->start_us - d->begin_us, start);
  cs_unit_text(CS_UNIT_US, placed->end_us - placed->start_us, took);
  cs_view_short_name(task->name, shorter);
  cs_text_fit(task->node < 0 ? "copy" : shorter, 10, BOX_W - 10, name, sizeof name);
  cs_svg_mark(out, class, "%s\n%s · block %d · stream %d\n%s\npredicted at %s for %s", task->name,
              cs_op_name(task->desc.op), d->block_of[t], placed->stream, placed->candidate.id,
              start, took);
  cs_svg_rect(out, NULL, at->x, at->y, BOX_W, BOX_H);
  cs_svg_text(out, NULL, at->x + 5, at->y + 12.5, "%s", name);
  cs_svg_text(out, "tick", at->x + 5, at->y + 24, "s%d", placed->stream);
  cs_svg_text(out, "tick end", at->x + BOX_W - 5, at->y + 24, "%s", took);
  cs_svg_end(out);
}

static double draw_streams(const drawing *d, cs_strbuf *out) {
  cs_legend_entry entries[8];
  char names[8][24], classes[8][24];
  int n = d->policy->plan->n_streams < 8 ? d->policy->plan->n_streams : 8;
  for (int s = 0; s < n; s++) {
    snprintf(names[s], sizeof names[s], s == 7 ? "s%d, …" : "s%d", s);
    snprintf(classes[s], sizeof classes[s], "b b%d", s);
    entries[s] = (cs_legend_entry){classes[s], names[s], false};
  }
  return cs_legend(out, -4, d->height + 12, d->width, entries, n);
}

cs_status cs_draw_graph(const cs_policy_view *policy, const char *style, cs_strbuf *out) {
  drawing d;
  char id[64], label[160];
  cs_strbuf legend = {0};
  cs_status st = lay_out(policy, &d);
  if (st != CS_OK) goto done;
  double below = draw_streams(&d, &legend);
  snprintf(id, sizeof id, "graph-%s", policy->name);
  snprintf(label, sizeof label, "Graph of tasks with the blocks and streams of %s", policy->name);
  cs_svg_head head = {.width = fmax(d.width, 200) + 4,
                      .height = d.height + 16 + below,
                      .id = id,
                      .label = label,
                      .style = style,
                      .frame = true};
  cs_svg_open(out, &head);
  draw_segments(&d, out);
  draw_edges(&d, out);
  cs_svg_group(out, "tasks");
  for (int t = 0; t < policy->program->n_tasks; t++) draw_task(&d, t, out);
  cs_svg_end(out);
  cs_strbuf_append(out, legend.data ? legend.data : "", legend.length);
  cs_svg_close(out);
done:
  cs_strbuf_free(&legend);
  drawing_free(&d);
  return st;
}

/* ---- Data ---- */

enum { POLICY, NAME, OP, BLOCK, STREAM, POSITION, CANDIDATE, NEEDS, START, END, N_COLUMNS };
static const cs_table_column columns[N_COLUMNS] = {
    [POLICY] = {"policy", "policy", CS_COLUMN_TEXT, CS_COLUMN_ALL, true},
    [NAME] = {"task", "task", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [OP] = {"op", "op", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [BLOCK] = {"block", "block", 0, CS_COLUMN_ALL, false},
    [STREAM] = {"stream", "stream", 0, CS_COLUMN_ALL, false},
    [POSITION] = {"position", "position", 0, CS_COLUMN_ALL, false},
    [CANDIDATE] = {"candidate", "candidate", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [NEEDS] = {"needs", "needs", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [START] = {"start_us", "start us", 2, CS_COLUMN_ALL, false},
    [END] = {"end_us", "end us", 2, CS_COLUMN_ALL, false},
};

static cs_status needs_of(const cs_program *program, const cs_task *task, cs_table *out) {
  cs_strbuf names = {0};
  char *text = NULL;
  for (int k = 0; k < task->n_preds; k++) {
    cs_strbuf_printf(&names, "%s%s", k ? " " : "", program->tasks[task->preds[k]].name);
  }
  CS_RETURN_IF_ERROR(cs_strbuf_take(&names, &text));
  cs_table_text(out, NEEDS, "%s", text);
  free(text);
  return CS_OK;
}

static cs_status add_rows(const cs_policy_view *policy, const int *block_of, cs_table *out) {
  double begin = cs_policy_view_begin_us(policy);
  for (int p = 0; p < policy->plan->n_tasks; p++) {
    const cs_plan_task *placed = &policy->plan->tasks[p];
    const cs_task *task = &policy->program->tasks[placed->task];
    cs_table_row(out, p > 0);
    cs_table_text(out, POLICY, "%s", policy->name);
    cs_table_text(out, NAME, "%s", task->name);
    cs_table_text(out, OP, "%s", cs_op_name(task->desc.op));
    cs_table_number(out, BLOCK, block_of[placed->task]);
    cs_table_number(out, STREAM, placed->stream);
    cs_table_number(out, POSITION, p);
    cs_table_text(out, CANDIDATE, "%s", placed->candidate.id);
    CS_RETURN_IF_ERROR(needs_of(policy->program, task, out));
    cs_table_number(out, START, placed->start_us - begin);
    cs_table_number(out, END, placed->end_us - begin);
  }
  return CS_OK;
}

cs_status cs_tabulate_graph(const cs_view *view, cs_table *out) {
  cs_table_init(out, columns, N_COLUMNS);
  if (view->n_policies == 0) return cs_error(CS_CODE_NOT_FOUND, "%s", view->no_plans);
  cs_status st = CS_OK;
  for (int i = 0; i < view->n_policies && st == CS_OK; i++) {
    int n_blocks;
    int *block_of = cs_calloc((size_t)view->policies[i].program->n_tasks + 1, sizeof *block_of);
    if (!block_of) return cs_no_memory("blocks", 0);
    st = cs_program_blocks(view->policies[i].program, block_of, &n_blocks);
    if (st == CS_OK) st = add_rows(&view->policies[i], block_of, out);
    free(block_of);
  }
  return st;
}
