#include "runtime/micro_ways.h"

#include <stdlib.h>
#include <string.h>

void cs_ways_close(cs_ways *u) {
  if (!u->program) return;
  cs_choices_free(u->choices, u->program->n_tasks);
  for (int t = 0; u->ways && t < u->program->n_tasks; t++) free(u->ways[t]);
  free(u->ways);
  free(u->ops);
  cs_micro_result_free(&u->in_turn);
  cs_program_destroy(u->program);
  *u = (cs_ways){0};
}

cs_status cs_ways_open(cs_session *session, const cs_layout *layouts,
                       const cs_measure_options *measure, cs_ways *out) {
  cs_measure_report report = {0};
  cs_near near = {0};
  *out = (cs_ways){.measure = *measure};
  CS_RETURN_IF_ERROR(cs_program_lower(session->planned.graph, session->settings.options.precision,
                                      layouts, &out->program));
  CS_RETURN_IF_ERROR(cs_profile_program(session->device->profile, session->device->backend,
                                        out->program, measure, &session->device->logger, &report));
  session->timings.profile += report.seconds;
  return cs_choices_of_program(session->device->profile, out->program, &session->settings,
                               measure->threads, &near, &out->choices);
}

static int64_t bytes_of_weights(const cs_op_desc *desc) {
  return cs_op_weight_elements(desc) * cs_dtype_size(desc->output.dtype);
}

static void add_ways(const cs_task_choices *choices, int64_t entries, cs_micro_op *op,
                     cs_micro_way *ways) {
  for (int i = 0; i < choices->n; i++) {
    const cs_choice *choice = &choices->choices[i];
    ways[op->n_ways++] = (cs_micro_way){entries, choice->candidate->workspace_bytes,
                                        choice->cold_us, choice->warm_us};
  }
}

static cs_status add_parts(const cs_session *session, const cs_ways *u, int task, int64_t entries,
                           size_t *capacity, cs_micro_way **ways) {
  const cs_op_desc *desc = &u->program->tasks[task].desc;
  cs_micro_op *op = &u->ops[task];
  cs_task_choices choices = {0};
  bool known = false;
  CS_RETURN_IF_ERROR(cs_micro_is_known(session, &u->measure, desc, entries, &known));
  if (!known) return CS_OK;
  cs_op_desc part = cs_micro_desc(desc, entries);
  CS_RETURN_IF_ERROR(cs_choices_of_desc(session->device->profile, &part, &session->settings,
                                        u->measure.threads, &choices));
  cs_status st = cs_grow(ways, capacity, (size_t)op->n_ways + (size_t)choices.n, sizeof **ways);
  if (st == CS_OK) add_ways(&choices, entries, op, *ways);
  cs_choices_clear(&choices);
  return st;
}

static cs_status make_op(const cs_session *session, const cs_ways *u, int task, int group) {
  const cs_op_desc *desc = &u->program->tasks[task].desc;
  int64_t sizes[CS_MICRO_SIZES], batch = u->program->graph->batch;
  cs_micro_op *op = &u->ops[task];
  size_t capacity = 0;
  *op = (cs_micro_op){.group = group, .weight_bytes = bytes_of_weights(desc)};
  CS_RETURN_IF_ERROR(
      cs_grow(&u->ways[task], &capacity, (size_t)u->choices[task].n, sizeof **u->ways));
  add_ways(&u->choices[task], batch, op, u->ways[task]);
  int64_t bytes = cs_micro_bytes(desc);
  op->entry_bytes = bytes / batch + (bytes % batch > 0);
  bool all = batch <= CS_MICRO_ALL_SIZES;
  int64_t n = all ? batch - 1 : cs_micro_sizes(batch, sizes);
  for (int64_t i = 0; cs_micro_divides(u->program, task) && i < n; i++) {
    CS_RETURN_IF_ERROR(
        add_parts(session, u, task, all ? i + 1 : sizes[i], &capacity, &u->ways[task]));
  }
  op->ways = u->ways[task];
  return CS_OK;
}

cs_status cs_ways_find(const cs_session *session, cs_ways *u) {
  cs_status st = CS_OK;
  size_t n = (size_t)u->program->n_tasks;
  int n_blocks;
  int *block_of = cs_calloc(n, sizeof *block_of);
  u->ops = cs_calloc(n, sizeof *u->ops);
  u->ways = cs_calloc(n, sizeof *u->ways);
  if (!block_of || !u->ops || !u->ways) {
    st = cs_no_memory("operations", n * sizeof *u->ops);
    goto done;
  }
  CS_TRY(st, cs_program_blocks(u->program, block_of, &n_blocks), done);
  for (size_t t = 0; t < n; t++) CS_TRY(st, make_op(session, u, (int)t, block_of[t]), done);
done:
  free(block_of);
  return st;
}

cs_status cs_ways_solve(const cs_session *session, const cs_ways *u, int streams,
                        cs_micro_result *out) {
  const cs_backend *backend = session->device->backend;
  const cs_device_info *info = backend->vtable->info(backend);
  cs_micro_problem problem = {
      .ops = u->ops,
      .n_ops = u->program->n_tasks,
      .batch = u->program->graph->batch,
      .workspace_limit = session->settings.options.workspace_limit / streams,
      .cache_bytes = info->cache_bytes};
  return streams > 1 ? cs_micro_at_once(&problem, out) : cs_micro_in_turn(&problem, out);
}
