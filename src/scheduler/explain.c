#include "scheduler/explain.h"

#include <stdlib.h>
#include <string.h>

#include "scheduler/internal.h"

typedef struct explainer {
  const cs_plan *plan;
  const cs_policy_input *input;
  int most_pairs;
  cs_order *order;
  const cs_choice **chosen; /* per task */
} explainer;

/* ---- Pairs ---- */

static cs_demand demand_of(const explainer *e, const cs_choice *choice) {
  if (!e->input->device) return (cs_demand){.known = false};
  return cs_kernels_demand(e->input->device, choice->kernels, choice->n_kernels);
}

static const char *limiter_of(const explainer *e, const cs_choice *a, const cs_choice *b) {
  int threads = a->candidate->threads + b->candidate->threads;
  if (!e->input->device) return "";
  if (a->candidate->threads > 0 && b->candidate->threads > 0)
    return threads > e->input->device->units ? "cores" : "none";
  cs_demand demands[] = {demand_of(e, a), demand_of(e, b)};
  const cs_demand *both[] = {&demands[0], &demands[1]};
  return cs_demands_limiter(e->input->device, both, 2);
}

static void add_alternative(const explainer *e, cs_explained_pair *pair, int task,
                            const cs_choice *choice, const char *limiter) {
  pair->alternatives[pair->n_alternatives++] =
      (cs_alternative){task, choice, limiter, choice->cold_us - e->chosen[task]->cold_us};
}

/* Other candidates of `task` beside what `other` is run with. */
static void add_alternatives(const explainer *e, cs_explained_pair *pair, int task, int other) {
  const cs_task_choices *own = &e->input->choices[task];
  const cs_choice *fastest = NULL, *beside = NULL;
  bool limited = strcmp(pair->limiter, "none") != 0 && pair->limiter[0];
  for (int i = 0; i < own->n; i++) {
    const cs_choice *choice = &own->choices[i];
    if (choice == e->chosen[task]) continue;
    if (!fastest || choice->cold_us < fastest->cold_us) fastest = choice;
    if (!limited || (beside && choice->cold_us >= beside->cold_us)) continue;
    if (strcmp(limiter_of(e, choice, e->chosen[other]), "none") == 0) beside = choice;
  }
  if (fastest) add_alternative(e, pair, task, fastest, limiter_of(e, fastest, e->chosen[other]));
  if (beside && beside != fastest) add_alternative(e, pair, task, beside, "none");
}

static bool may_run_together(const explainer *e, int p, int q) {
  return e->plan->tasks[p].stream != e->plan->tasks[q].stream && !cs_order_before(e->order, p, q) &&
         !cs_order_before(e->order, q, p);
}

/* Longest first, of equals those launched first, and no more than wanted. */
static void keep_pair(const explainer *e, cs_explained_block *block, cs_explained_pair pair) {
  int at = block->n_pairs;
  while (at > 0 && block->pairs[at - 1].most_us < pair.most_us) at--;
  if (block->n_pairs == e->most_pairs) {
    block->n_more_pairs++;
    if (at == e->most_pairs) return;
  } else {
    block->n_pairs++;
  }
  memmove(block->pairs + at + 1, block->pairs + at,
          (size_t)(block->n_pairs - 1 - at) * sizeof *block->pairs);
  block->pairs[at] = pair;
}

static cs_status find_pairs(const explainer *e, cs_explained_block *block) {
  block->pairs = cs_calloc((size_t)e->most_pairs, sizeof *block->pairs);
  if (!block->pairs) return cs_no_memory("pairs", (size_t)e->most_pairs * sizeof *block->pairs);
  for (int i = 0; i < block->n_tasks; i++)
    for (int k = i + 1; k < block->n_tasks; k++) {
      const cs_explained_task *a = &block->tasks[i], *b = &block->tasks[k];
      double us = a->choice->cold_us < b->choice->cold_us ? a->choice->cold_us : b->choice->cold_us;
      if (may_run_together(e, a->position, b->position))
        keep_pair(e, block, (cs_explained_pair){.a = a->task, .b = b->task, .most_us = us});
    }
  for (int i = 0; i < block->n_pairs; i++) {
    cs_explained_pair *pair = &block->pairs[i];
    pair->limiter = limiter_of(e, e->chosen[pair->a], e->chosen[pair->b]);
    add_alternatives(e, pair, pair->a, pair->b);
    add_alternatives(e, pair, pair->b, pair->a);
  }
  return CS_OK;
}

/* ---- Blocks ---- */

static cs_status find_chosen(explainer *e) {
  e->chosen = cs_calloc((size_t)e->plan->n_tasks, sizeof *e->chosen);
  if (!e->chosen) return cs_no_memory("an explanation", (size_t)e->plan->n_tasks);
  for (int p = 0; p < e->plan->n_tasks; p++) {
    const cs_plan_task *placed = &e->plan->tasks[p];
    const cs_task_choices *own = &e->input->choices[placed->task];
    int chosen = cs_choice_find(own, placed->candidate.id);
    if (chosen < 0)
      return cs_error(CS_CODE_INTERNAL, "task %d has no measured candidate %s", placed->task,
                      placed->candidate.id);
    e->chosen[placed->task] = &own->choices[chosen];
  }
  return CS_OK;
}

static void add_task(const explainer *e, cs_explained_block *block, int position) {
  const cs_plan_task *placed = &e->plan->tasks[position];
  const cs_choice *choice = e->chosen[placed->task];
  bool seen = false, first = block->n_tasks == 0;
  for (int i = 0; i < block->n_tasks && !seen; i++)
    seen = e->plan->tasks[block->tasks[i].position].stream == placed->stream;
  block->n_streams += !seen;
  if (first || placed->start_us < block->start_us) block->start_us = placed->start_us;
  if (first || placed->end_us > block->end_us) block->end_us = placed->end_us;
  block->serial_us += choice->cold_us;
  block->tasks[block->n_tasks++] =
      (cs_explained_task){placed->task, position, choice, demand_of(e, choice)};
}

static cs_status fill_blocks(const explainer *e, const int *block_of, cs_explanation *out) {
  out->blocks = cs_calloc((size_t)out->n_blocks, sizeof *out->blocks);
  if (!out->blocks) return cs_no_memory("an explanation", (size_t)out->n_blocks);
  for (int t = 0; t < e->plan->n_tasks; t++) out->blocks[block_of[t]].n_tasks++;
  for (int b = 0; b < out->n_blocks; b++) {
    cs_explained_block *block = &out->blocks[b];
    block->tasks = cs_calloc((size_t)block->n_tasks, sizeof *block->tasks);
    if (!block->tasks) return cs_no_memory("a block", (size_t)block->n_tasks);
    block->n_tasks = 0;
  }
  for (int p = 0; p < e->plan->n_tasks; p++)
    add_task(e, &out->blocks[block_of[e->plan->tasks[p].task]], p);
  for (int b = 0; b < out->n_blocks; b++) CS_RETURN_IF_ERROR(find_pairs(e, &out->blocks[b]));
  return CS_OK;
}

cs_status cs_explain(const cs_plan *plan, const cs_policy_input *input, int most_pairs,
                     cs_explanation *out) {
  cs_status st = CS_OK;
  explainer e = {.plan = plan, .input = input, .most_pairs = most_pairs};
  *out = (cs_explanation){0};
  int *block_of = cs_calloc((size_t)plan->n_tasks, sizeof *block_of);
  if (!block_of) return cs_no_memory("an explanation", (size_t)plan->n_tasks);
  CS_TRY(st, find_chosen(&e), done);
  CS_TRY(st, cs_order_create(plan, &e.order), done);
  CS_TRY(st, cs_program_blocks(input->program, block_of, &out->n_blocks), done);
  CS_TRY(st, fill_blocks(&e, block_of, out), done);
done:
  cs_order_destroy(e.order);
  free(e.chosen);
  free(block_of);
  if (st != CS_OK) cs_explanation_free(out);
  return st;
}

void cs_explanation_free(cs_explanation *explanation) {
  for (int b = 0; explanation->blocks && b < explanation->n_blocks; b++) {
    free(explanation->blocks[b].tasks);
    free(explanation->blocks[b].pairs);
  }
  free(explanation->blocks);
  *explanation = (cs_explanation){0};
}
