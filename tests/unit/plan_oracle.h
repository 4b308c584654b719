/* What a right plan is, by trying everything: an oracle for the plan checker's tests. */
#ifndef CONVSCHED_TESTS_UNIT_PLAN_ORACLE_H_
#define CONVSCHED_TESTS_UNIT_PLAN_ORACLE_H_

#include "unit/scheduler_fixture.h"

typedef struct region {
  int64_t offset, bytes;
  bool whole;
  bool uses[ORACLE_MAX];
} region;

static inline bool all_pairs_before(const region *a, const region *b, int n, const closure *c) {
  for (int p = 0; p < n; p++)
    for (int q = 0; q < n; q++)
      if (a->uses[p] && b->uses[q] && !c->before[q][p]) return false;
  return true;
}

static inline bool is_live(const region *a, int n) {
  bool used = a->whole;
  for (int p = 0; p < n; p++) used |= a->uses[p];
  return used && a->bytes > 0;
}

static inline bool memory_is_right(const cs_plan *plan, const cs_program *program,
                                   const closure *c) {
  static region places[2 * ORACLE_MAX + 2];
  int n = plan->n_tasks, count = program->n_buffers + n;
  memset(places, 0, sizeof places);
  for (int b = 0; b < program->n_buffers; b++) {
    places[b].offset = plan->buffer_offsets[b];
    places[b].bytes = program->buffers[b].bytes;
    places[b].whole = program->buffers[b].kind != CS_BUFFER_INTERMEDIATE;
  }
  for (int p = 0; p < n; p++) {
    const cs_task *task = &program->tasks[plan->tasks[p].task];
    region *workspace = &places[program->n_buffers + p];
    workspace->offset = plan->tasks[p].workspace_offset;
    workspace->bytes = plan->tasks[p].workspace_bytes;
    workspace->uses[p] = true;
    places[program->tensors[task->output].buffer].uses[p] = true;
    for (int i = 0; i < task->desc.n_inputs; i++)
      places[program->tensors[task->inputs[i]].buffer].uses[p] = true;
  }
  for (int i = 0; i < count; i++) {
    const region *a = &places[i];
    if (a->offset < 0 || a->offset % 256 || a->offset + a->bytes > plan->arena_bytes) return false;
    for (int j = 0; j < i; j++) {
      const region *b = &places[j];
      if (!is_live(a, n) || !is_live(b, n)) continue;
      if (a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset) continue;
      if (a->whole || b->whole) return false;
      if (!all_pairs_before(a, b, n, c) && !all_pairs_before(b, a, n, c)) return false;
    }
  }
  return true;
}

static inline bool order_is_right(const cs_plan *plan, const cs_program *program,
                                  const closure *c) {
  int position[ORACLE_MAX];
  for (int t = 0; t < program->n_tasks; t++) position[t] = -1;
  for (int p = 0; p < plan->n_tasks; p++) {
    if (position[plan->tasks[p].task] >= 0) return false;
    position[plan->tasks[p].task] = p;
    for (int w = 0; w < plan->tasks[p].n_waits; w++) {
      int q = plan->tasks[p].waits[w];
      if (q < 0 || q >= p || plan->tasks[q].stream == plan->tasks[p].stream) return false;
      if (w > 0 && q <= plan->tasks[p].waits[w - 1]) return false;
    }
  }
  for (int t = 0; t < program->n_tasks; t++)
    if (position[t] < 0) return false;
  for (int t = 0; t < program->n_tasks; t++)
    for (int i = 0; i < program->tasks[t].n_preds; i++)
      if (!c->before[position[t]][position[program->tasks[t].preds[i]]]) return false;
  return true;
}

/* Members of a merged launch directly behind its leader, as like it as they must be. */
static inline bool launches_are_right(const cs_plan *plan) {
  for (int p = 0; p < plan->n_tasks; p++) {
    const cs_plan_task *own = &plan->tasks[p];
    if (own->merged == -1) continue;
    if (own->merged < 0 || own->merged >= p || p - own->merged >= CS_MERGE_MOST) return false;
    const cs_plan_task *leader = &plan->tasks[own->merged];
    if (leader->merged != -1 || own->n_waits > 0 || own->stream != leader->stream ||
        own->priority != leader->priority || own->late != leader->late || !own->candidate.merges ||
        !leader->candidate.merges || own->workspace_bytes > 0 || leader->workspace_bytes > 0 ||
        strcmp(own->candidate.id, leader->candidate.id) != 0)
      return false;
    for (int q = own->merged + 1; q < p; q++)
      if (plan->tasks[q].merged != own->merged) return false;
  }
  return true;
}

/* Everything but the workspace peak. */
static inline bool is_right(const cs_plan *plan, const cs_program *program) {
  closure c;
  if (!launches_are_right(plan)) return false;
  close_plan(plan, &c);
  return order_is_right(plan, program, &c) && memory_is_right(plan, program, &c);
}

/* What the oracle says of a mutant, which is what the checker must say. A changed order changes the
 * peak: not what is on trial here. */
static inline bool judged(cs_plan *mutant, const cs_program *program, const char *mutation) {
  bool right = is_right(mutant, program);
  if (right) assert_ok(cs_plan_workspace_peak(mutant, &mutant->workspace_peak));
  cs_status st = cs_plan_check(mutant, program, 0, 0);
  if ((st == CS_OK) != right)
    fail_msg("%s: the oracle says %s, the checker says: %s", mutation, right ? "right" : "wrong",
             cs_status_message(st));
  if (st != CS_OK) assert_int_equal(cs_status_code(st), CS_CODE_INTERNAL);
  cs_status_free(st);
  return right;
}

/* A deep copy, by way of nothing but assignments. */
static inline cs_plan *clone(const cs_plan *plan) {
  cs_plan *copy = cs_calloc(1, sizeof *copy);
  *copy = *plan;
  copy->policy = cs_strdup(plan->policy);
  copy->device_identity = cs_strdup(plan->device_identity);
  copy->layouts = NULL;
  copy->stream_part = NULL;
  if (plan->n_parts > 0) copy->stream_part = cs_calloc((size_t)plan->n_streams, sizeof(int));
  for (int s = 0; plan->n_parts > 0 && s < plan->n_streams; s++)
    copy->stream_part[s] = plan->stream_part[s];
  copy->n_values = 0;
  copy->tasks = cs_calloc((size_t)plan->n_tasks, sizeof *copy->tasks);
  for (int p = 0; p < plan->n_tasks; p++) {
    copy->tasks[p] = plan->tasks[p];
    copy->tasks[p].waits = cs_calloc((size_t)plan->tasks[p].n_waits, sizeof(int));
    for (int w = 0; w < plan->tasks[p].n_waits; w++)
      copy->tasks[p].waits[w] = plan->tasks[p].waits[w];
    memset(&copy->tasks[p].candidate, 0, sizeof copy->tasks[p].candidate);
    assert_ok(cs_candidate_copy(&plan->tasks[p].candidate, &copy->tasks[p].candidate));
  }
  copy->buffer_offsets = cs_calloc((size_t)plan->n_buffers, sizeof(int64_t));
  for (int b = 0; b < plan->n_buffers; b++) copy->buffer_offsets[b] = plan->buffer_offsets[b];
  return copy;
}

#endif
