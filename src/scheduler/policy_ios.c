/* IOS (Ding et al., "IOS: Inter-Operator Scheduler for CNN Acceleration", MLSys 2021): the tasks of
 * a block are cut into stages by a dynamic program over their costs; the groups of a stage run
 * concurrently, and a stage starts when the one before it has ended.
 *
 * What differs: blocks and their windows (ios.h); a stage costs what `stage_cost` says, and without
 * it an estimate, where the paper measures each. The paper's other transition makes one convolution
 * of those of a stage that read one input with equal kernels, strides and pads, by stacking their
 * filters; here tasks of one input run by one kernel, which takes unlike ones as well. */
#include <math.h>
#include <stdlib.h>

#include "scheduler/ios.h"

#define USUAL_GROUP_TASKS 3 /* the paper's r */
#define USUAL_GROUPS 8      /* the paper's s */

/* ---- Stage costs, estimated ---- */

typedef struct estimate {
  const cs_policy_input *input;
  cs_task_demand *demands;
} estimate;

static const cs_choice *choice_of(const estimate *e, int task, const char *id) {
  return &e->input->choices[task].choices[cs_choice_find(&e->input->choices[task], id)];
}

/* As one kernel: the longest task, and at least what the device needs for all of them, with one
 * launch gap where each of the times alone has one (of GPUs whose kernels are known). */
static double merged_us(const estimate *e, const cs_stage *stage) {
  const cs_device_info *device = e->input->device;
  double longest = 0, area = 0, gap = device && device->unit.registers > 0 ? cs_sm_h100.gap_us : 0;
  for (int i = 0; i < stage->n; i++) {
    const cs_choice *choice = choice_of(e, stage->tasks[i], stage->merged);
    double share = cs_choice_share(e->input, choice, e->demands[stage->tasks[i]].share);
    longest = fmax(longest, choice->cold_us);
    area += fmax(choice->cold_us - gap, 0) * fmin(share, 1);
  }
  return fmax(longest, area + gap);
}

/* A stage takes as long as its longest group, and at least as long as the device needs for all of
 * its tasks: each takes its share of the device for its time alone. A barrier costs nothing beside:
 * a time alone holds the gap in front of a task already. */
static cs_status estimate_stage(void *user, const cs_stage *stage, double *us) {
  const estimate *e = user;
  *us = stage->merged ? merged_us(e, stage) : 0;
  if (stage->merged) return CS_OK;
  for (int group = 0; group < stage->n_groups; group++) {
    double alone = 0;
    for (int i = 0; i < stage->n; i++)
      if (stage->group_of[i] == group)
        alone += e->input->choices[stage->tasks[i]].choices[0].cold_us;
    if (alone > *us) *us = alone;
  }
  double area = 0;
  for (int i = 0; i < stage->n; i++) {
    double share = e->demands[stage->tasks[i]].share;
    area += e->input->choices[stage->tasks[i]].choices[0].cold_us * (share < 1 ? share : 1);
  }
  if (area > *us) *us = area;
  return CS_OK;
}

/* ---- What can be merged ---- */

/* Tasks that read one input, with the candidate that all of them have, that merges without a
 * workspace, and with which their times alone add up to the least. */
static const char *merging_of(void *user, const int *tasks, int n) {
  const cs_policy_input *input = user;
  const cs_program *program = input->program;
  const cs_task_choices *first = &input->choices[tasks[0]];
  const char *best = NULL;
  double best_us = INFINITY;
  for (int i = 0; i < n; i++)
    if (program->tasks[tasks[i]].desc.n_inputs < 1 ||
        program->tasks[tasks[i]].inputs[0] != program->tasks[tasks[0]].inputs[0])
      return NULL;
  for (int c = 0; c < first->n; c++) {
    const char *id = first->choices[c].candidate->id;
    double us = 0;
    for (int i = 0; i < n && us < best_us; i++) {
      int choice = cs_choice_find(&input->choices[tasks[i]], id);
      const cs_choice *own = choice < 0 ? NULL : &input->choices[tasks[i]].choices[choice];
      bool merges = own && own->candidate->merges && own->candidate->workspace_bytes == 0;
      us = merges ? us + own->cold_us : INFINITY;
    }
    if (us >= best_us) continue;
    best = id;
    best_us = us;
  }
  return best;
}

static bool any_merges(const cs_policy_input *input) {
  for (int t = 0; t < input->program->n_tasks; t++)
    for (int c = 0; c < input->choices[t].n; c++)
      if (input->choices[t].choices[c].candidate->merges) return true;
  return false;
}

/* ---- Windows ---- */

typedef struct ios_state {
  const cs_policy_input *input;
  cs_ios_options options;
  estimate estimate;
  cs_ios_windows windows;
  int *place;    /* per task: in the window at hand, −1: not in it */
  cs_plan *plan; /* positions below n_placed are filled */
  int n_placed;
  int *before, n_before; /* the last position of every stream of the stage before, ascending */
  int *now;              /* room for those of the stage at hand */
} ios_state;

static void fill_window(const ios_state *s, const int *tasks, int n, cs_ios_window *out) {
  *out = (cs_ios_window){.n = n, .tasks = tasks};
  for (int i = 0; i < n; i++) s->place[tasks[i]] = i;
  for (int i = 0; i < n; i++) {
    const cs_task *task = &s->input->program->tasks[tasks[i]];
    for (int k = 0; k < task->n_preds; k++) {
      int pred = s->place[task->preds[k]];
      if (pred < 0) continue;
      out->preds[i] |= UINT32_C(1) << pred;
      out->succs[pred] |= UINT32_C(1) << i;
    }
  }
  for (int i = 0; i < n; i++) s->place[tasks[i]] = -1;
}

/* ---- Stages as launches ---- */

/* stream_of[group]: groups by decreasing time, lower numbers first among equals. */
static void order_groups(const ios_state *s, const cs_stage *stage, int *stream_of) {
  double us[CS_IOS_MOST_TASKS] = {0};
  for (int i = 0; i < stage->n; i++)
    us[stage->group_of[i]] += s->input->choices[stage->tasks[i]].choices[0].cold_us;
  for (int g = 0; g < stage->n_groups; g++) {
    stream_of[g] = 0;
    for (int other = 0; other < stage->n_groups; other++)
      stream_of[g] += us[other] > us[g] || (us[other] == us[g] && other < g);
  }
}

/* The first task of a group waits for all that ran in the stage before on other streams. */
static cs_status add_barrier(const ios_state *s, cs_plan_task *placed) {
  if (s->n_before == 0) return CS_OK;
  placed->waits = cs_calloc((size_t)s->n_before, sizeof *placed->waits);
  if (!placed->waits) return cs_no_memory("the waits of a task", (size_t)s->n_before);
  for (int i = 0; i < s->n_before; i++)
    if (s->plan->tasks[s->before[i]].stream != placed->stream)
      placed->waits[placed->n_waits++] = s->before[i];
  return CS_OK;
}

/* Launches the `round`-th task of the group that runs on a stream; false through *more: it has
 * none. */
static cs_status launch_next(ios_state *s, const cs_stage *stage, const int *stream_of, int stream,
                             int round, bool *more) {
  int seen = 0;
  for (int i = 0; i < stage->n; i++) {
    if (stream_of[stage->group_of[i]] != stream || seen++ != round) continue;
    int position = s->n_placed++, task = stage->tasks[i];
    CS_RETURN_IF_ERROR(cs_plan_place(s->plan, position, task, stream,
                                     s->input->choices[task].choices[0].candidate));
    if (round == 0) CS_RETURN_IF_ERROR(add_barrier(s, &s->plan->tasks[position]));
    s->now[stream] = position;
    *more = true;
  }
  return CS_OK;
}

static int compare_ints(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

/* All tasks by one kernel, on the first stream. */
static cs_status place_merged(ios_state *s, const cs_stage *stage) {
  int leader = s->n_placed;
  for (int i = 0; i < stage->n; i++) {
    int position = s->n_placed++, task = stage->tasks[i];
    const cs_choice *choice = choice_of(&s->estimate, task, stage->merged);
    CS_RETURN_IF_ERROR(cs_plan_place(s->plan, position, task, 0, choice->candidate));
    if (i > 0) s->plan->tasks[position].merged = leader;
  }
  CS_RETURN_IF_ERROR(add_barrier(s, &s->plan->tasks[leader]));
  s->before[0] = leader;
  s->n_before = 1;
  return CS_OK;
}

/* The first tasks of all groups, then the second ones, and so on: the longest group leads. */
static cs_status place_stage(ios_state *s, const cs_stage *stage) {
  int stream_of[CS_IOS_MOST_TASKS];
  bool more = true;
  if (stage->merged) return place_merged(s, stage);
  order_groups(s, stage, stream_of);
  for (int round = 0; more; round++) {
    more = false;
    for (int stream = 0; stream < stage->n_groups; stream++)
      CS_RETURN_IF_ERROR(launch_next(s, stage, stream_of, stream, round, &more));
  }
  if (stage->n_groups > s->plan->n_streams) s->plan->n_streams = stage->n_groups;
  int *now = s->now;
  s->now = s->before;
  s->before = now;
  s->n_before = stage->n_groups;
  qsort(now, (size_t)s->n_before, sizeof *now, compare_ints);
  return CS_OK;
}

/* A window that is too much work is done in halves. */
static cs_status place_window(ios_state *s, const int *tasks, int n) {
  cs_ios_window window;
  uint32_t stages[CS_IOS_MOST_TASKS];
  const char *merged[CS_IOS_MOST_TASKS];
  int n_stages = 0;
  bool solved = false;
  fill_window(s, tasks, n, &window);
  CS_RETURN_IF_ERROR(cs_ios_solve(&window, &s->options, stages, merged, &n_stages, &solved));
  if (!solved) {
    CS_RETURN_IF_ERROR(place_window(s, tasks, n / 2));
    return place_window(s, tasks + n / 2, n - n / 2);
  }
  for (int i = 0; i < n_stages; i++) {
    cs_ios_stage stage;
    cs_ios_stage_of(&window, stages[i], &stage);
    stage.stage.merged = merged[i];
    CS_RETURN_IF_ERROR(place_stage(s, &stage.stage));
  }
  return CS_OK;
}

/* ---- The policy ---- */

/* As the input says, and where it does not know as estimated. */
static cs_status price_stage(void *user, const cs_stage *stage, double *us) {
  ios_state *s = user;
  *us = CS_STAGE_ESTIMATE;
  if (s->input->stage_cost)
    CS_RETURN_IF_ERROR(s->input->stage_cost(s->input->stage_user, stage, us));
  return *us == CS_STAGE_ESTIMATE ? estimate_stage(&s->estimate, stage, us) : CS_OK;
}

static cs_status state_init(ios_state *s, const cs_policy_input *input, cs_plan *plan) {
  size_t n = (size_t)input->program->n_tasks;
  int groups = input->stage_groups > 0 ? input->stage_groups : USUAL_GROUPS;
  int group_tasks = input->stage_group_tasks > 0 ? input->stage_group_tasks : USUAL_GROUP_TASKS;
  s->input = input;
  s->plan = plan;
  s->estimate = (estimate){input, cs_calloc(n, sizeof *s->estimate.demands)};
  s->place = cs_calloc(n, sizeof *s->place);
  s->before = cs_calloc(CS_IOS_MOST_TASKS, sizeof *s->before);
  s->now = cs_calloc(CS_IOS_MOST_TASKS, sizeof *s->now);
  if (!s->estimate.demands || !s->place || !s->before || !s->now)
    return cs_no_memory("the ios policy", n * sizeof *s->estimate.demands);
  for (size_t t = 0; t < n; t++) s->place[t] = -1;
  cs_task_demands(input, s->estimate.demands);
  s->options = (cs_ios_options){.group_tasks = group_tasks,
                                .groups = groups < input->max_streams ? groups : input->max_streams,
                                .cost = price_stage,
                                .user = s};
  if (any_merges(input)) {
    s->options.merging = merging_of;
    s->options.merging_user = (void *)(uintptr_t)input;
  }
  return cs_ios_windows_of(input, &s->windows);
}

static void state_free(ios_state *s) {
  free(s->estimate.demands);
  free(s->place);
  free(s->before);
  free(s->now);
  cs_ios_windows_free(&s->windows);
}

static cs_status plan_ios(const cs_policy_input *input, cs_plan *out) {
  cs_status st = CS_OK;
  ios_state s = {0};
  CS_TRY(st, cs_plan_begin(input->program, out), done);
  out->n_streams = 1;
  CS_TRY(st, state_init(&s, input, out), done);
  for (int w = 0; w < s.windows.n; w++) {
    int first = s.windows.first[w];
    CS_TRY(st, place_window(&s, s.windows.order + first, s.windows.first[w + 1] - first), done);
  }
done:
  state_free(&s);
  return st;
}

const cs_policy cs_policy_ios = {
    .name = "ios",
    .source =
        "IOS (Ding et al., MLSys 2021): dynamic programming over stages of concurrent groups with "
        "a barrier between them, groups of at most r tasks and stages of at most s groups (3 and "
        "8), or as one kernel (its merge transition); here tasks of one input are merged if a "
        "kernel takes them all, whatever their filters, a stage's cost is estimated from times "
        "alone and demands unless measured or modelled costs are given, and blocks of more than "
        "24 tasks or wider than 6 are planned in windows",
    .plan = plan_ios,
};
