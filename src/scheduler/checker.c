/* The plan checker: completeness, order and dependencies. */
#include "scheduler/checker.h"

#include <stdlib.h>
#include <string.h>

static cs_status check_tasks(cs_checker *check) {
  const cs_plan *plan = check->plan;
  const cs_program *program = check->program;
  if (plan->n_tasks != program->n_tasks)
    return cs_error(CS_CODE_INTERNAL, "the plan has %d tasks, wanted the program's %d",
                    plan->n_tasks, program->n_tasks);
  if (plan->n_buffers != program->n_buffers)
    return cs_error(CS_CODE_INTERNAL, "the plan has %d buffers, wanted the program's %d",
                    plan->n_buffers, program->n_buffers);
  if (plan->n_streams < 1 || (plan->n_streams > 1 && plan->n_streams > plan->n_tasks))
    return cs_error(CS_CODE_INTERNAL, "the plan has %d streams, wanted 1 to %d", plan->n_streams,
                    plan->n_tasks > 1 ? plan->n_tasks : 1);
  for (int t = 0; t < program->n_tasks; t++) check->position_of[t] = -1;
  for (int p = 0; p < plan->n_tasks; p++) {
    const cs_plan_task *placed = &plan->tasks[p];
    if (placed->task < 0 || placed->task >= program->n_tasks)
      return cs_error(CS_CODE_INTERNAL, "plan position %d has task %d, wanted 0 to %d", p,
                      placed->task, program->n_tasks - 1);
    const char *name = program->tasks[placed->task].name;
    if (check->position_of[placed->task] >= 0)
      return cs_error(CS_CODE_INTERNAL, "task %s is launched twice, at positions %d and %d", name,
                      check->position_of[placed->task], p);
    check->position_of[placed->task] = p;
    if (placed->stream < 0 || placed->stream >= plan->n_streams)
      return cs_error(CS_CODE_INTERNAL, "task %s is on stream %d, wanted 0 to %d", name,
                      placed->stream, plan->n_streams - 1);
    if (!placed->candidate.id) return cs_error(CS_CODE_INTERNAL, "task %s has no candidate", name);
    if (placed->workspace_bytes != placed->candidate.workspace_bytes)
      return cs_error(
          CS_CODE_INTERNAL, "task %s has %lld bytes of workspace, wanted its candidate's %lld",
          name, (long long)placed->workspace_bytes, (long long)placed->candidate.workspace_bytes);
  }
  return CS_OK;
}

/* ---- Merged launches ---- */

/* What two positions of one launch must have in common, but do not. */
static const char *difference(const cs_plan_task *leader, const cs_plan_task *member) {
  if (leader->stream != member->stream) return "one stream";
  if (strcmp(leader->candidate.id, member->candidate.id) != 0) return "one candidate";
  if (leader->priority != member->priority) return "one priority";
  if (leader->late != member->late) return "one way to begin";
  if (!leader->candidate.merges || !member->candidate.merges) return "a candidate that merges";
  if (leader->workspace_bytes != 0 || member->workspace_bytes != 0) return "no workspace";
  return NULL;
}

static cs_status check_merged(const cs_checker *check, int p) {
  const cs_plan_task *tasks = check->plan->tasks, *member = &tasks[p];
  int leader = member->merged, size = 2;
  if (member->priority < 0 || member->priority > 1)
    return cs_error(CS_CODE_INTERNAL, "task %s has priority %d, wanted 0 or 1",
                    cs_checker_name(check, p), member->priority);
  if (leader == -1) return CS_OK;
  if (leader < 0 || leader >= p)
    return cs_error(CS_CODE_INTERNAL,
                    "task %s at position %d is merged with position %d, wanted an earlier one",
                    cs_checker_name(check, p), p, leader);
  if (tasks[leader].merged != -1)
    return cs_error(CS_CODE_INTERNAL, "task %s is merged with %s, which does not lead its launch",
                    cs_checker_name(check, p), cs_checker_name(check, leader));
  for (int q = leader + 1; q < p; q++, size++)
    if (tasks[q].merged != leader)
      return cs_error(
          CS_CODE_INTERNAL, "task %s is merged with %s, but %s is launched between them",
          cs_checker_name(check, p), cs_checker_name(check, leader), cs_checker_name(check, q));
  if (size > CS_MERGE_MOST)
    return cs_error(CS_CODE_INTERNAL, "the launch of %s has more than %d tasks",
                    cs_checker_name(check, leader), CS_MERGE_MOST);
  const char *wanted = difference(&tasks[leader], member);
  if (wanted)
    return cs_error(CS_CODE_INTERNAL, "task %s is merged with %s: wanted %s for both",
                    cs_checker_name(check, p), cs_checker_name(check, leader), wanted);
  if (member->n_waits > 0)
    return cs_error(CS_CODE_INTERNAL, "task %s waits, but it is launched with %s: wanted no waits",
                    cs_checker_name(check, p), cs_checker_name(check, leader));
  return CS_OK;
}

/* ---- The split of the device ---- */

static cs_status check_split(const cs_plan *plan) {
  if (plan->n_parts < 0 || plan->n_parts > CS_MAX_PARTS)
    return cs_error(CS_CODE_INTERNAL, "the plan splits the device into %d parts, wanted 0 to %d",
                    plan->n_parts, CS_MAX_PARTS);
  for (int i = 0; i < plan->n_parts; i++)
    if (plan->parts[i] < 1)
      return cs_error(CS_CODE_INTERNAL, "part %d of the device has %d SMs, wanted at least 1", i,
                      plan->parts[i]);
  if ((plan->stream_part != NULL) != (plan->n_parts > 0))
    return cs_error(CS_CODE_INTERNAL, "the plan has %d parts of the device and %s of its streams",
                    plan->n_parts, plan->stream_part ? "those" : "none");
  for (int s = 0; plan->n_parts > 0 && s < plan->n_streams; s++)
    if (plan->stream_part[s] < -1 || plan->stream_part[s] >= plan->n_parts)
      return cs_error(CS_CODE_INTERNAL, "stream %d runs on part %d of the device, wanted -1 to %d",
                      s, plan->stream_part[s], plan->n_parts - 1);
  return CS_OK;
}

/* ---- Order ---- */

static cs_status check_waits(const cs_checker *check, int p) {
  const cs_plan_task *placed = &check->plan->tasks[p];
  for (int w = 0; w < placed->n_waits; w++) {
    int q = placed->waits[w];
    if (q < 0 || q >= p)
      return cs_error(CS_CODE_INTERNAL,
                      "task %s at position %d waits for position %d, wanted an "
                      "earlier one",
                      cs_checker_name(check, p), p, q);
    if (w > 0 && q <= placed->waits[w - 1])
      return cs_error(CS_CODE_INTERNAL, "the waits of task %s are not ascending",
                      cs_checker_name(check, p));
    if (check->plan->tasks[q].stream == placed->stream)
      return cs_error(CS_CODE_INTERNAL, "task %s waits for %s of its own stream",
                      cs_checker_name(check, p), cs_checker_name(check, q));
  }
  return CS_OK;
}

/* clock[p] takes in what had finished before position q starts. */
static int *merge_clock_of(cs_checker *check, int p, int q) {
  size_t streams = (size_t)check->plan->n_streams;
  int *own = check->clock + (size_t)p * streams;
  const int *other = check->clock + (size_t)q * streams;
  for (size_t s = 0; s < streams; s++)
    if (other[s] > own[s]) own[s] = other[s];
  return own;
}

/* The same, and q itself: with all that is launched with it. */
static void merge_clock(cs_checker *check, int p, int q) {
  int *at = &merge_clock_of(check, p, q)[check->plan->tasks[q].stream];
  if (check->index[q] + 1 > *at) *at = check->index[q] + 1;
}

static cs_status run_clocks(cs_checker *check, int *latest, int *launched) {
  for (int s = 0; s < check->plan->n_streams; s++) latest[s] = -1;
  for (int p = 0; p < check->plan->n_tasks; p++) {
    CS_RETURN_IF_ERROR(check_merged(check, p));
    CS_RETURN_IF_ERROR(check_waits(check, p));
    const cs_plan_task *placed = &check->plan->tasks[p];
    if (placed->merged >= 0) { /* the same launch: what is before and behind it is the leader's */
      check->index[p] = check->index[placed->merged];
      (void)merge_clock_of(check, p, placed->merged);
      continue;
    }
    check->index[p] = launched[placed->stream]++;
    if (latest[placed->stream] >= 0) merge_clock(check, p, latest[placed->stream]);
    for (int w = 0; w < placed->n_waits; w++) merge_clock(check, p, placed->waits[w]);
    latest[placed->stream] = p;
  }
  return CS_OK;
}

static cs_status check_dependency(const cs_checker *check, int writer, int reader) {
  int a = check->position_of[writer], b = check->position_of[reader];
  if (cs_checker_before(check, a, b)) return CS_OK;
  return cs_error(CS_CODE_INTERNAL,
                  "task %s (position %d, stream %d) reads what %s (position %d, stream %d) writes, "
                  "but nothing makes it wait",
                  check->program->tasks[reader].name, b, check->plan->tasks[b].stream,
                  check->program->tasks[writer].name, a, check->plan->tasks[a].stream);
}

/* The program's dependencies, and again those that follow from who writes and reads a tensor. */
static cs_status check_dependencies(const cs_checker *check, int *writer_of) {
  const cs_program *program = check->program;
  for (int x = 0; x < program->n_tensors; x++) writer_of[x] = -1;
  for (int t = 0; t < program->n_tasks; t++) writer_of[program->tasks[t].output] = t;
  for (int t = 0; t < program->n_tasks; t++) {
    const cs_task *task = &program->tasks[t];
    for (int i = 0; i < task->n_preds; i++)
      CS_RETURN_IF_ERROR(check_dependency(check, task->preds[i], t));
    for (int i = 0; i < task->desc.n_inputs; i++)
      if (writer_of[task->inputs[i]] >= 0)
        CS_RETURN_IF_ERROR(check_dependency(check, writer_of[task->inputs[i]], t));
  }
  return CS_OK;
}

cs_status cs_plan_check(const cs_plan *plan, const cs_program *program, int64_t workspace_limit,
                        int64_t memory_limit) {
  cs_status st = CS_OK;
  cs_checker check = {.plan = plan, .program = program};
  int *latest = NULL, *launched = NULL, *writer_of = NULL;
  size_t n = (size_t)program->n_tasks, streams = 0;
  check.position_of = cs_calloc(n, sizeof *check.position_of);
  if (!check.position_of) return cs_no_memory("the plan checker", n * sizeof(int));
  CS_TRY(st, check_tasks(&check), done);
  CS_TRY(st, check_split(plan), done);
  streams = (size_t)plan->n_streams;
  check.index = cs_calloc(n, sizeof *check.index);
  check.clock = cs_calloc(n * streams, sizeof *check.clock);
  latest = cs_calloc(streams, sizeof *latest);
  launched = cs_calloc(streams, sizeof *launched);
  writer_of = cs_calloc((size_t)program->n_tensors, sizeof *writer_of);
  if (!check.index || !check.clock || !latest || !launched || !writer_of) {
    st = cs_no_memory("the plan checker", n * streams * sizeof(int));
    goto done;
  }
  CS_TRY(st, run_clocks(&check, latest, launched), done);
  CS_TRY(st, check_dependencies(&check, writer_of), done);
  CS_TRY(st, cs_checker_memory(&check, memory_limit), done);
  CS_TRY(st, cs_checker_workspace(&check, workspace_limit), done);
done:
  free(check.position_of);
  free(check.index);
  free(check.clock);
  free(latest);
  free(launched);
  free(writer_of);
  return cs_annotate(st, "plan check: ");
}
