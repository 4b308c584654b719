/* Predecessors of a task: everything that wrote what it reads. */
#include <stdlib.h>
#include <string.h>

#include "graph/lower.h"

static cs_status push(cs_lowering *lowering, size_t *depth, int writer) {
  CS_RETURN_IF_ERROR(
      cs_grow(&lowering->stack, &lowering->stack_capacity, *depth + 1, sizeof *lowering->stack));
  lowering->stack[(*depth)++] = writer;
  return CS_OK;
}

static cs_status add_found(cs_lowering *lowering, int task, size_t *n) {
  if (lowering->seen_task[task] == lowering->stamp) return CS_OK;
  lowering->seen_task[task] = lowering->stamp;
  CS_RETURN_IF_ERROR(
      cs_grow(&lowering->found, &lowering->found_capacity, *n + 1, sizeof *lowering->found));
  lowering->found[(*n)++] = task;
  return CS_OK;
}

/* The parts of a value that have some of the entries. */
static cs_status push_parts(cs_lowering *lowering, size_t *depth, int value,
                            const cs_lowered_part *of) {
  const cs_parts *parts =
      cs_division_parts(lowering->program->division, lowering->graph->values[value].producer);
  for (int p = 0; p < parts->n; p++) {
    bool shares =
        parts->firsts[p] < of->first + of->n && of->first < parts->firsts[p] + parts->sizes[p];
    if (of->part >= 0 && !shares) continue;
    int tensor = lowering->part_tensor[lowering->first_part[value] + p];
    CS_RETURN_IF_ERROR(push(lowering, depth, lowering->writer[tensor]));
  }
  return CS_OK;
}

/* Walks through concats of concats on a stack of our own; stamps keep shared parts from being
 * walked twice. Entries of a concat along the batch are not those of its inputs: *whole is set, and
 * all entries are to be asked for. */
static cs_status collect(cs_lowering *lowering, int writer, const cs_lowered_part *of, size_t *n,
                         bool *whole) {
  const cs_graph *graph = lowering->graph;
  size_t depth = 0;
  CS_RETURN_IF_ERROR(push(lowering, &depth, writer));
  while (depth > 0) {
    int at = lowering->stack[--depth];
    if (at == CS_WRITER_NONE) continue;
    if (at >= 0) {
      CS_RETURN_IF_ERROR(add_found(lowering, at, n));
      continue;
    }
    if (at % 2 != 0) {
      CS_RETURN_IF_ERROR(push_parts(lowering, &depth, (-3 - at) / 2, of));
      continue;
    }
    int node = (-2 - at) / 2;
    if (lowering->seen_node[node] == lowering->stamp) continue;
    lowering->seen_node[node] = lowering->stamp;
    *whole = *whole || graph->nodes[node].attrs.axis.axis == 0;
    const int *slots = lowering->slot_writers + lowering->first_slot[node];
    for (int k = 0; k < graph->nodes[node].n_inputs; k++) {
      CS_RETURN_IF_ERROR(push(lowering, &depth, slots[k]));
    }
  }
  return CS_OK;
}

static cs_status collect_all(cs_lowering *lowering, const cs_task *task, const cs_lowered_part *of,
                             size_t *n, bool *whole) {
  *n = 0;
  *whole = false;
  lowering->stamp++;
  for (int k = 0; k < task->desc.n_inputs; k++) {
    CS_RETURN_IF_ERROR(collect(lowering, lowering->writer[task->inputs[k]], of, n, whole));
  }
  return CS_OK;
}

static int by_value(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

cs_status cs_lower_preds(cs_lowering *lowering) {
  cs_program *program = lowering->program;
  cs_task *task = &program->tasks[program->n_tasks - 1];
  size_t n = 0;
  CS_RETURN_IF_ERROR(cs_grow(&lowering->seen_task, &lowering->seen_task_capacity,
                             (size_t)program->n_tasks, sizeof *lowering->seen_task));
  bool whole;
  const cs_lowered_part all = {.list = -1, .part = -1};
  CS_RETURN_IF_ERROR(collect_all(lowering, task, &lowering->now, &n, &whole));
  if (whole && lowering->now.part >= 0) {
    CS_RETURN_IF_ERROR(collect_all(lowering, task, &all, &n, &whole));
  }
  if (n == 0) return CS_OK;
  qsort(lowering->found, n, sizeof *lowering->found, by_value);
  task->preds = cs_calloc(n, sizeof *task->preds);
  if (!task->preds) return cs_no_memory("predecessors", n * sizeof *task->preds);
  memcpy(task->preds, lowering->found, n * sizeof *task->preds);
  task->n_preds = (int)n;
  return CS_OK;
}
