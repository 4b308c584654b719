/* Choosing layouts: profile the graph in each uniform layout, let the dynamic program mix them, and
 * keep whichever lowered program has the least measured time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cost_table.h"
#include "runtime/planning.h"

/* A copy that has not been measured yet: a launch, and its bytes at a modest share of the
 * bandwidth. */
#define COPY_LAUNCH_US 3.0
#define COPY_BYTES_PER_US 1.0e6

static double cost_of(void *user, const cs_op_desc *desc) {
  const cs_cost_table *table = user;
  if (desc->op == CS_OP_COPY) return COPY_LAUNCH_US + cs_op_bytes(desc) / COPY_BYTES_PER_US;
  char *signature = NULL;
  cs_status st = cs_op_signature(desc, &signature);
  if (st != CS_OK) {
    cs_status_free(st);
    return -1;
  }
  uint64_t key = cs_hash_string(CS_HASH_SEED, signature);
  free(signature);
  return cs_cost_table_find(table, key);
}

double cs_program_cost(const cs_program *program, const cs_task_choices *choices) {
  double sum = 0;
  for (int t = 0; t < program->n_tasks; t++) sum += choices[t].choices[0].cold_us;
  return sum;
}

static cs_status add_cost(const cs_program *program, int node, cs_layout layout, double us,
                          cs_cost_table *table) {
  cs_op_desc desc;
  char *signature = NULL;
  CS_RETURN_IF_ERROR(cs_graph_node_desc(program->graph, node, program->precision, layout, &desc));
  CS_RETURN_IF_ERROR(cs_op_signature(&desc, &signature));
  cs_status st = cs_cost_table_add(table, cs_hash_string(CS_HASH_SEED, signature), us);
  free(signature);
  return st;
}

/* Enters the measured time of each node (with the strides it really has, and of all its parts)
 * under its dense signature. */
static cs_status add_costs(const cs_program *program, cs_layout layout,
                           const cs_task_choices *choices, cs_cost_table *table) {
  size_t n = (size_t)program->graph->n_nodes;
  cs_status st = CS_OK;
  double *us = cs_calloc(n, sizeof *us);
  bool *timed = cs_calloc(n, sizeof *timed);
  if (!us || !timed) {
    st = cs_no_memory("times of nodes", n * sizeof *us);
    goto done;
  }
  for (int t = 0; t < program->n_tasks; t++) {
    int node = program->tasks[t].node;
    if (node < 0) continue;
    us[node] += choices[t].choices[0].cold_us;
    timed[node] = true;
  }
  for (size_t i = 0; i < n; i++) {
    if (timed[i]) CS_TRY(st, add_cost(program, (int)i, layout, us[i], table), done);
  }
done:
  free(us);
  free(timed);
  return st;
}

typedef struct layout_search {
  cs_session *session;
  const cs_measure_options *measure;
  cs_program *best;
  double best_us;
  cs_cost_table costs;
  cs_near near;     /* to a pin that was not found */
  bool *bans_seen;  /* per ban: some program has such a candidate */
  cs_status missed; /* simulated devices: the first layout that was passed over, and why */
  char missed_in[16];
} layout_search;

/* The last of the layouts' failures has gathered the most, but that something is not there says
 * less than what is wrong with it. */
static void keep_failure(cs_status *kept, cs_status failure) {
  bool says_less =
      cs_status_code(failure) == CS_CODE_NOT_FOUND && cs_status_code(*kept) != CS_CODE_NOT_FOUND;
  if (*kept != CS_OK && says_less) {
    cs_status_free(failure);
    return;
  }
  cs_status_free(*kept);
  *kept = failure;
}

/* The same error, with the command that records what is missing. */
static cs_status advise_recording(const cs_session *session, cs_status miss) {
  const cs_session_options *options = &session->settings.options;
  cs_session_options usual;
  char limit[64] = "", parts[32] = "";
  cs_session_options_init(&usual);
  if (options->workspace_limit != usual.workspace_limit) {
    snprintf(limit, sizeof limit, " --workspace-limit %lld", (long long)options->workspace_limit);
  }
  if (options->micro_batches > 1) {
    snprintf(parts, sizeof parts, " --micro-batches %d", options->micro_batches);
  }
  return cs_error(CS_CODE_NOT_FOUND,
                  "%s; to record it, run `convsched profile %s --batch %lld --dtype %s%s%s "
                  "--export FILE` on that device",
                  cs_status_message(miss), session->source->source, (long long)options->batch,
                  cs_precision_name(options->precision), limit, parts);
}

/* Nothing more can be measured of a simulated device: a layout with an operation that was not
 * recorded is passed over. Of any other failure nothing changes. */
static cs_status pass_over_miss(layout_search *search, const char *layout, cs_status miss) {
  const cs_session *session = search->session;
  if (cs_status_code(miss) != CS_CODE_NOT_FOUND || !cs_device_is_simulated(session->device)) {
    return miss;
  }
  if (search->missed == CS_OK) {
    search->missed = advise_recording(session, miss);
    snprintf(search->missed_in, sizeof search->missed_in, "%s", layout);
  }
  cs_status_free(miss);
  return CS_OK;
}

/* Lowers, measures, and keeps the program if it is the cheapest so far. A layout in which some node
 * has no admissible candidate is passed over; `*failure` keeps why. */
static cs_status try_layouts(layout_search *search, const cs_layout *layouts, bool uniform,
                             cs_layout layout, cs_status *failure) {
  cs_session *session = search->session;
  cs_status st = CS_OK;
  int n_tasks = 0;
  const char *name = uniform ? cs_layout_name(layout) : "mixed";
  cs_program *program = NULL;
  cs_task_choices *choices = NULL;
  cs_measure_report report = {0};
  CS_TRY(st,
         cs_program_lower_divided(session->planned.graph, session->settings.options.precision,
                                  layouts, session->planned.division, &program),
         done);
  n_tasks = program->n_tasks;
  double started = cs_now_seconds();
  st = cs_profile_program(session->device->profile, session->device->backend, program,
                          search->measure, &session->device->logger, &report);
  if (st != CS_OK) {
    st = pass_over_miss(search, name, st);
    goto done;
  }
  session->timings.profile += cs_now_seconds() - started;
  cs_measure_report_add(&report, &session->planned.measured);
  CS_TRY(st, cs_bans_seen(session->device->profile, program, &session->settings, search->bans_seen),
         done);
  cs_status missing = cs_choices_of_program(session->device->profile, program, &session->settings,
                                            search->measure->threads, &search->near, &choices);
  if (missing != CS_OK) {
    keep_failure(failure, missing);
    goto done;
  }
  if (uniform) CS_TRY(st, add_costs(program, layout, choices, &search->costs), done);
  double us = cs_program_cost(program, choices);
  cs_log(&session->device->logger, CS_LOG_DEBUG, "layout %s: %.1f us in %d tasks", name, us,
         program->n_tasks);
  if (!search->best || us < search->best_us) {
    cs_program_destroy(search->best);
    search->best = program;
    search->best_us = us;
    program = NULL;
  }
done:
  cs_choices_free(choices, n_tasks);
  cs_program_destroy(program);
  return st;
}

cs_status cs_choose_program(cs_session *session, const cs_measure_options *measure,
                            cs_program **out) {
  const cs_graph *graph = session->planned.graph;
  cs_backend *backend = session->device->backend;
  cs_precision precision = session->settings.options.precision;
  cs_layout available[CS_MAX_DEVICE_LAYOUTS];
  int n_available = backend->vtable->layouts(backend, precision, available);
  layout_search search = {.session = session, .measure = measure};
  cs_status st = CS_OK, failure = CS_OK;
  cs_layout *layouts = cs_calloc((size_t)graph->n_values, sizeof *layouts);
  search.bans_seen = cs_calloc((size_t)session->settings.options.n_bans, sizeof(bool));
  if (!layouts || !search.bans_seen) {
    st = cs_no_memory("layouts", (size_t)graph->n_values * sizeof *layouts);
    goto done;
  }
  for (int a = 0; a < n_available; a++) {
    cs_graph_uniform_layouts(graph, available[a], layouts);
    CS_TRY(st, try_layouts(&search, layouts, true, available[a], &failure), done);
  }
  if (!search.best) {
    cs_status *why = failure != CS_OK ? &failure : &search.missed;
    st = *why;
    *why = CS_OK;
    goto done;
  }
  CS_TRY(st,
         cs_bans_check(session->device->profile, search.best, &session->settings, search.bans_seen),
         done);
  if (n_available > 1) {
    double predicted;
    cs_cost_table_sort(&search.costs);
    CS_TRY(st,
           cs_layout_assign(graph, precision, available, n_available, cost_of, &search.costs,
                            layouts, &predicted),
           done);
    cs_log(&session->device->logger, CS_LOG_DEBUG, "layouts: dynamic program expects %.1f us",
           predicted);
    CS_TRY(st, try_layouts(&search, layouts, false, CS_LAYOUT_NCHW, &failure), done);
  }
  if (search.missed != CS_OK) {
    cs_log(&session->device->logger, CS_LOG_INFO, "layout %s is passed over: %s", search.missed_in,
           cs_status_message(search.missed));
  }
  *out = search.best;
  search.best = NULL;
done:
  cs_status_free(search.missed);
  cs_status_free(failure);
  cs_program_destroy(search.best);
  cs_cost_table_free(&search.costs);
  free(search.bans_seen);
  free(layouts);
  return st;
}
