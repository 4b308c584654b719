/* Happens-before among the launch positions of a plan: stream order and waits, transitively. The
 * positions of a merged launch are not ordered among themselves. */
#include <stdlib.h>

#include "scheduler/internal.h"

/* Behind a merged launch is behind all of it. */
static cs_status add_edge(cs_order *order, const cs_plan *plan, int position, int earlier) {
  if (earlier < 0 || earlier >= position)
    return cs_error(CS_CODE_INTERNAL,
                    "plan position %d waits for position %d: wanted an earlier one", position,
                    earlier);
  uint64_t *set = order->before + (size_t)position * order->words;
  int leader = cs_plan_leader(plan, earlier), end = cs_plan_launch_end(plan, leader);
  cs_bits_or(set, cs_order_set(order, leader), order->words);
  for (int p = leader; p < end; p++) cs_bit_set(set, p);
  return CS_OK;
}

/* Members of a merged launch happen after what its leader happens after. */
static cs_status join_leader(cs_order *order, const cs_plan *plan, int position) {
  const cs_plan_task *task = &plan->tasks[position];
  int leader = task->merged, before = position - 1;
  if (leader > before || task->n_waits > 0 || plan->tasks[leader].stream != task->stream ||
      cs_plan_leader(plan, before) != leader)
    return cs_error(CS_CODE_INTERNAL,
                    "plan position %d is merged with position %d: wanted a launch of the same "
                    "stream directly before it, and no waits of its own",
                    position, leader);
  cs_bits_or(order->before + (size_t)position * order->words, cs_order_set(order, leader),
             order->words);
  return CS_OK;
}

static cs_status fill(cs_order *order, const cs_plan *plan, int *last_on_stream) {
  for (int s = 0; s < plan->n_streams; s++) last_on_stream[s] = -1;
  for (int p = 0; p < plan->n_tasks; p++) {
    const cs_plan_task *task = &plan->tasks[p];
    if (task->stream < 0 || task->stream >= plan->n_streams)
      return cs_error(CS_CODE_INTERNAL, "plan position %d is on stream %d: wanted 0 to %d", p,
                      task->stream, plan->n_streams - 1);
    int *last = &last_on_stream[task->stream];
    if (task->merged >= 0) {
      CS_RETURN_IF_ERROR(join_leader(order, plan, p));
      continue;
    }
    if (*last >= 0) CS_RETURN_IF_ERROR(add_edge(order, plan, p, *last));
    for (int w = 0; w < task->n_waits; w++)
      CS_RETURN_IF_ERROR(add_edge(order, plan, p, task->waits[w]));
    *last = p;
  }
  return CS_OK;
}

cs_status cs_order_create(const cs_plan *plan, cs_order **out) {
  *out = NULL;
  cs_status st = CS_OK;
  size_t n = (size_t)plan->n_tasks;
  int *last = cs_calloc((size_t)plan->n_streams, sizeof *last);
  cs_order *order = cs_calloc(1, sizeof *order);
  if (!last || !order) CS_FAIL(st, done, CS_CODE_NO_MEMORY, "out of memory for a plan's order");
  order->n = plan->n_tasks;
  order->words = cs_bit_words(plan->n_tasks);
  order->before = cs_calloc(n * order->words, sizeof *order->before);
  if (!order->before) {
    st = cs_no_memory("a plan's order", n * order->words * sizeof *order->before);
    goto done;
  }
  CS_TRY(st, fill(order, plan, last), done);
  *out = order, order = NULL;
done:
  free(last);
  cs_order_destroy(order);
  return st;
}

bool cs_order_before(const cs_order *order, int a, int b) {
  return cs_bit_get(cs_order_set(order, b), a);
}

void cs_order_destroy(cs_order *order) {
  if (!order) return;
  free(order->before);
  free(order);
}
