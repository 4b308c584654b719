/* Candidates, streams and order chosen together. Where configurations of the program were measured
 * (runtime/search.c does it), the best confirmed one is the plan; else the one that the SM model
 * expects most of, by a local search of each block from the plans of the other policies.
 *
 * Sources: Pourghassemi et al., "On the Limits of Parallelizing Convolutional Neural Networks on
 * GPUs" (SPAA 2020), which shows that algorithms slower alone run faster together and proposes to
 * choose them by profiles. Ours: the choice is made with streams and order, through a model that
 * prunes, and every winner is measured as a real graph. */
#include <stdlib.h>

#include "scheduler/coselect.h"

/* Launches that the whole search may simulate, so that it stays within seconds for any program. */
#define LAUNCH_BUDGET 400000
#define MOST_STEPS 600 /* moves from one start */

/* ---- From the other policies' plans ---- */

/* Without limits only what the policy decides is asked for: no memory is planned. */
static cs_status plan_start(const cs_policy *policy, const cs_policy_input *input, bool limited,
                            cs_plan **out) {
  if (limited) return cs_plan_make(policy, input, out);
  *out = cs_calloc(1, sizeof **out);
  if (!*out) return cs_no_memory("a plan", sizeof **out);
  cs_status st = policy->plan(input, *out);
  if (st == CS_OK) return CS_OK;
  cs_plan_destroy(*out);
  *out = NULL;
  return cs_annotate(st, "%s: ", policy->name);
}

cs_status cs_coselect_starts(const cs_policy_input *input, bool limited, cs_configuration *out,
                             int *n) {
  int count;
  const cs_policy *const *policies = cs_policy_all(&count);
  cs_policy_input given = *input;
  if (!limited) {
    given.workspace_limit = given.memory_limit = 0;
    given.model = NULL; /* their timelines are not asked for */
  }
  *n = 0;
  for (int i = 0; i < count && *n < CS_COSELECT_STARTS; i++) {
    if (policies[i] == &cs_policy_coselect) continue;
    cs_plan *plan = NULL;
    CS_RETURN_IF_ERROR(plan_start(policies[i], &given, limited, &plan));
    cs_status st = cs_configuration_of_plan(plan, input->choices, &out[*n]);
    cs_plan_destroy(plan);
    CS_RETURN_IF_ERROR(st);
    (*n)++;
  }
  return CS_OK;
}

/* ---- By the model ---- */

static int steps_for(const cs_coselect *c, int n_starts) {
  /* An option for measuring, so it only lowers the moves: a large one must not keep them going. */
  if (c->input->search_steps > 0) return (int)cs_min_i64(c->input->search_steps, MOST_STEPS);
  int64_t launches = 2 * (int64_t)c->input->program->n_tasks * (n_starts > 0 ? n_starts : 1);
  int64_t steps = LAUNCH_BUDGET / (launches > 0 ? launches : 1);
  return (int)cs_min_i64(cs_max_i64(steps, 1), MOST_STEPS);
}

static cs_status search_windows(cs_coselect *c, const cs_configuration *const *starts, int n_starts,
                                cs_configuration *out) {
  cs_status st = CS_OK;
  int steps = steps_for(c, n_starts);
  cs_coselect_variants *variants = cs_calloc(1, sizeof *variants);
  if (!variants) return cs_no_memory("variants", sizeof *variants);
  for (int w = 0; w < c->windows.n && st == CS_OK; w++) {
    st = cs_coselect_search(c, w, starts, n_starts, steps, c->input->seed, variants);
    if (st == CS_OK && variants->n > 0) cs_coselect_scatter(c, w, variants->places[0], out);
  }
  free(variants);
  return st;
}

cs_status cs_coselect_by_model(cs_coselect *c, cs_configuration *out) {
  cs_status st = CS_OK;
  cs_configuration starts[CS_COSELECT_STARTS] = {{0}}, made = {0};
  const cs_configuration *list[CS_COSELECT_STARTS];
  int n = 0;
  CS_TRY(st, cs_coselect_starts(c->input, false, starts, &n), done);
  for (int i = 0; i < n; i++) list[i] = &starts[i];
  CS_TRY(st, cs_coselect_window_order(c, &starts[0], &made), done);
  cs_coselect_use_split(c, NULL);
  CS_TRY(st, search_windows(c, list, n, &made), done);
  CS_TRY(st, cs_coselect_split_by_model(c, &made), done);
  cs_configuration_number_streams(&made);
  *out = made;
  made = (cs_configuration){0};
done:
  for (int i = 0; i < CS_COSELECT_STARTS; i++) cs_configuration_free(&starts[i]);
  cs_configuration_free(&made);
  return st;
}

/* ---- As measured ---- */

/* Whether it holds the workspace limit, and the memory limit where there is one. */
static cs_status fits(const cs_policy_input *input, int64_t memory_limit,
                      const cs_configuration *configuration, bool *out) {
  cs_plan *plan = NULL;
  *out = true;
  cs_policy_input limited = *input;
  limited.memory_limit = 0;
  limited.model = NULL;
  if (input->workspace_limit == 0 && memory_limit == 0) return CS_OK;
  cs_status st = cs_configuration_plan(configuration, cs_policy_coselect.name, &limited, &plan);
  if (st == CS_OK) *out = memory_limit == 0 || plan->arena_bytes <= memory_limit;
  cs_plan_destroy(plan);
  if (cs_status_code(st) != CS_CODE_NOT_FOUND) return st;
  cs_status_free(st);
  *out = false;
  return CS_OK;
}

/* The best confirmed configuration that may be planned; *found tells whether there is one. */
static cs_status measured_best(const cs_policy_input *input, cs_configuration *out, bool *found) {
  *found = false;
  for (int r = 0; input->schedules && r < input->schedules->n_records; r++) {
    const cs_record *record = &input->schedules->records[r];
    bool valid = false;
    if (record->measured.rejected || record->measured.samples < CS_SCHEDULE_CONFIRMED) continue;
    if (input->workspace_limit > 0 && record->candidate.workspace_bytes > input->workspace_limit)
      continue;
    CS_RETURN_IF_ERROR(cs_configuration_parse(record->candidate.id, input, out, &valid));
    if (!valid) continue;
    cs_status st = fits(input, input->memory_limit, out, found);
    if (st == CS_OK && *found) return CS_OK;
    cs_configuration_free(out);
    CS_RETURN_IF_ERROR(st);
  }
  return CS_OK;
}

/* The first of the other policies' that holds the limits; that none does is what the first one,
 * `sequential`, says. */
static cs_status first_that_fits(const cs_policy_input *input, cs_configuration *out) {
  cs_configuration starts[CS_COSELECT_STARTS] = {{0}};
  cs_plan *plan = NULL;
  bool found = false;
  int n = 0, first = 0;
  cs_status st = cs_coselect_starts(input, false, starts, &n);
  for (int i = 0; st == CS_OK && i < n && !found; i++) {
    st = fits(input, 0, &starts[i], &found); /* memory is held afterwards, whatever the policy */
    if (found) first = i;
  }
  if (st == CS_OK && !found) st = cs_plan_make(&cs_policy_sequential, input, &plan);
  if (st == CS_OK) st = cs_configuration_copy(&starts[first], out);
  cs_plan_destroy(plan);
  for (int i = 0; i < CS_COSELECT_STARTS; i++) cs_configuration_free(&starts[i]);
  return st;
}

static cs_status expected_best(const cs_policy_input *input, cs_configuration *out) {
  cs_coselect *c = NULL;
  bool found = false;
  CS_RETURN_IF_ERROR(cs_coselect_create(input, &c));
  cs_status st = cs_coselect_by_model(c, out);
  cs_coselect_destroy(c);
  if (st == CS_OK) st = fits(input, 0, out, &found);
  if (st != CS_OK || found) return st;
  cs_configuration_free(out);
  return first_that_fits(input, out);
}

static cs_status plan_coselect(const cs_policy_input *input, cs_plan *out) {
  bool found = false;
  cs_configuration configuration = {0};
  cs_status st = measured_best(input, &configuration, &found);
  if (st == CS_OK && !found) st = expected_best(input, &configuration);
  if (st == CS_OK) st = cs_configuration_fill(&configuration, input, out);
  cs_configuration_free(&configuration);
  return st;
}

const cs_policy cs_policy_coselect = {
    .name = "coselect",
    .source =
        "Candidates, streams and order chosen together, after the observation of Pourghassemi "
        "et al. (SPAA 2020) that algorithms slower alone may be faster together: a local "
        "search of every block through the SM model from the other policies' plans; where "
        "configurations were measured, the best confirmed one",
    .plan = plan_coselect,
};
