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

/* Walks through concats of concats on a stack of our own; stamps keep shared parts from being
 * walked twice. */
static cs_status collect(cs_lowering *lowering, int writer, size_t *n) {
  size_t depth = 0;
  CS_RETURN_IF_ERROR(push(lowering, &depth, writer));
  while (depth > 0) {
    int at = lowering->stack[--depth];
    if (at == CS_WRITER_NONE) continue;
    if (at >= 0) {
      if (lowering->seen_task[at] == lowering->stamp) continue;
      lowering->seen_task[at] = lowering->stamp;
      CS_RETURN_IF_ERROR(
          cs_grow(&lowering->found, &lowering->found_capacity, *n + 1, sizeof *lowering->found));
      lowering->found[(*n)++] = at;
      continue;
    }
    int node = -2 - at;
    if (lowering->seen_node[node] == lowering->stamp) continue;
    lowering->seen_node[node] = lowering->stamp;
    const int *slots = lowering->slot_writers + lowering->first_slot[node];
    for (int k = 0; k < lowering->graph->nodes[node].n_inputs; k++) {
      CS_RETURN_IF_ERROR(push(lowering, &depth, slots[k]));
    }
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
  lowering->stamp++;
  for (int k = 0; k < task->desc.n_inputs; k++) {
    CS_RETURN_IF_ERROR(collect(lowering, lowering->writer[task->inputs[k]], &n));
  }
  if (n == 0) return CS_OK;
  qsort(lowering->found, n, sizeof *lowering->found, by_value);
  task->preds = cs_calloc(n, sizeof *task->preds);
  if (!task->preds) return cs_no_memory("predecessors", n * sizeof *task->preds);
  memcpy(task->preds, lowering->found, n * sizeof *task->preds);
  task->n_preds = (int)n;
  return CS_OK;
}
