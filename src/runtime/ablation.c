/* What candidates, order, streams, merged launches, priorities, parts of the device and early
 * beginnings each bring: the session's plan and another policy's, mixed, and timed in turn as whole
 * schedules. To add a variant: a function that makes it and a line in `variants`. */
#include <jansson.h>

#include "base/progress.h"
#include "runtime/planning.h"
#include "runtime/search.h"

/* What the variants are made of: another policy's configuration, and the session's. */
typedef struct mixture {
  const cs_configuration *base, *own;
  cs_coselect *model;
} mixture;

/* ---- Parts of a configuration ---- */

/* Without merged launches, priorities, hints and a split. */
static cs_status plain(const cs_configuration *from, cs_configuration *out) {
  CS_RETURN_IF_ERROR(cs_configuration_copy(from, out));
  out->n_parts = 0;
  out->hints = false;
  for (int p = 0; p < out->n; p++) {
    out->places[p].joined = false;
    out->places[p].priority = 0;
  }
  return CS_OK;
}

static const cs_placement *place_of(const cs_configuration *configuration, int task) {
  return &configuration->places[cs_configuration_position(configuration, task)];
}

static void take_candidates(const cs_configuration *from, cs_configuration *into) {
  for (int p = 0; p < into->n; p++) {
    into->places[p].choice = place_of(from, into->places[p].task)->choice;
  }
}

static bool has_merges(const mixture *m) {
  bool any = false;
  for (int p = 0; p < m->own->n; p++) any = any || m->own->places[p].joined;
  return any;
}

static bool has_priorities(const mixture *m) {
  bool any = false;
  for (int p = 0; p < m->own->n; p++) any = any || m->own->places[p].priority > 0;
  return any;
}

static bool has_parts(const mixture *m) {
  return m->own->n_parts > 0;
}

/* Whether a launch of the session's that can begin early may (`late` false) or may not. */
static bool any_begins(const mixture *m, bool late) {
  for (int p = 0; p < m->own->n; p++) {
    if (m->own->places[p].late == late &&
        cs_configuration_can_begin_early(m->own, m->model->input->choices, p)) {
      return true;
    }
  }
  return false;
}

static bool has_early(const mixture *m) {
  return any_begins(m, false);
}

static bool has_late(const mixture *m) {
  return any_begins(m, true);
}

/* Something that can begins early in the one and not in the other. */
static bool begins_otherwise(const mixture *m) {
  bool any = false;
  for (int p = 0; p < m->own->n; p++) {
    const cs_placement *place = &m->own->places[p];
    any = any || (place->late != place_of(m->base, place->task)->late &&
                  cs_configuration_can_begin_early(m->own, m->model->input->choices, p));
  }
  return any;
}

static bool has_hints(const mixture *m) {
  return m->own->hints;
}

static bool has_more(const mixture *m) {
  return has_hints(m) || has_parts(m) || has_merges(m) || has_priorities(m) || begins_otherwise(m);
}

/* ---- Variants ---- */

static cs_status make_base(const mixture *m, cs_configuration *out) {
  return cs_configuration_copy(m->base, out);
}

/* The base's schedule with the session's candidates. */
static cs_status make_candidates(const mixture *m, cs_configuration *out) {
  CS_RETURN_IF_ERROR(plain(m->base, out));
  take_candidates(m->own, out);
  return CS_OK;
}

/* The base in the session's launch order. */
static cs_status make_order(const mixture *m, cs_configuration *out) {
  CS_RETURN_IF_ERROR(plain(m->base, out));
  for (int p = 0; p < out->n; p++) {
    cs_placement place = *place_of(m->base, m->own->places[p].task);
    out->places[p] =
        (cs_placement){.task = place.task, .stream = place.stream, .choice = place.choice};
  }
  return CS_OK;
}

static cs_status make_schedule(const mixture *m, cs_configuration *out) {
  CS_RETURN_IF_ERROR(plain(m->own, out));
  take_candidates(m->base, out);
  return CS_OK;
}

static cs_status make_both(const mixture *m, cs_configuration *out) {
  return plain(m->own, out);
}

/* The base with the session's merged launches, and the candidates that these have. */
static cs_status make_merge(const mixture *m, cs_configuration *out) {
  const cs_configuration *own = m->own;
  CS_RETURN_IF_ERROR(plain(m->base, out));
  for (int p = 0, end = 0; p < own->n; p = end) {
    int tasks[CS_MERGE_MOST], n = 0;
    const cs_placement *leader = &own->places[p];
    const cs_choice *choice = &m->model->input->choices[leader->task].choices[leader->choice];
    end = cs_launch_end(own->places, own->n, p);
    for (int q = p; q < end && n < CS_MERGE_MOST; q++) tasks[n++] = own->places[q].task;
    if (n < 2) continue;
    if (!cs_coselect_join_tasks(m->model, out->places, out->n, tasks, n, choice->candidate->id)) {
      return cs_error(CS_CODE_INTERNAL, "%d tasks of the plan's launch with %s cannot be merged", n,
                      choice->candidate->id);
    }
  }
  return CS_OK;
}

/* The base with the session's priorities. */
static cs_status make_priority(const mixture *m, cs_configuration *out) {
  CS_RETURN_IF_ERROR(plain(m->base, out));
  for (int p = 0; p < out->n; p++) {
    out->places[p].priority = place_of(m->own, out->places[p].task)->priority;
  }
  return CS_OK;
}

/* The base's candidates on the session's streams, in its order and on its parts: to be held against
 * streams and order alone. */
static cs_status make_partition(const mixture *m, cs_configuration *out) {
  CS_RETURN_IF_ERROR(make_schedule(m, out));
  out->n_parts = m->own->n_parts;
  return CS_OK;
}

static cs_status make_all(const mixture *m, cs_configuration *out) {
  return cs_configuration_copy(m->own, out);
}

/* The session's with all launches late, or none. */
static cs_status make_begin(const mixture *m, bool late, cs_configuration *out) {
  CS_RETURN_IF_ERROR(cs_configuration_copy(m->own, out));
  for (int p = 0; p < out->n; p++) out->places[p].late = late;
  return CS_OK;
}

static cs_status make_early_nowhere(const mixture *m, cs_configuration *out) {
  return make_begin(m, true, out);
}

static cs_status make_early_everywhere(const mixture *m, cs_configuration *out) {
  return make_begin(m, false, out);
}

static cs_status make_no_hints(const mixture *m, cs_configuration *out) {
  CS_RETURN_IF_ERROR(cs_configuration_copy(m->own, out));
  out->hints = false;
  return CS_OK;
}

/* Each beside the base. `applies` NULL: always; else where it is true of what it is made of.
 * `begins_as_base`: its launches begin early as those of the base do. */
static const struct {
  const char *name;
  cs_status (*make)(const mixture *m, cs_configuration *out);
  bool (*applies)(const mixture *m);
  bool begins_as_base;
} variants[] = {
    {"base", make_base, NULL, true},
    {"candidates", make_candidates, NULL, true},
    {"order", make_order, NULL, true},
    {"streams_and_order", make_schedule, NULL, true},
    {"both", make_both, NULL, true}, /* candidates, streams and order */
    {"merge", make_merge, has_merges, true},
    {"priority", make_priority, has_priorities, true},
    {"partition", make_partition, has_parts, true},
    {"all", make_all, has_more, false},
    {"early_nowhere", make_early_nowhere, has_early, false},
    {"early_everywhere", make_early_everywhere, has_late, false},
    {"no_hints", make_no_hints, has_hints, false},
};
#define N_VARIANTS ((int)(sizeof variants / sizeof variants[0]))

/* ---- Measuring ---- */

static cs_status measure_made(cs_bench *bench, const char *name, const cs_configuration *made,
                              json_t *list) {
  cs_bench_pairs pairs;
  CS_RETURN_IF_ERROR(cs_bench_set(bench, CS_BENCH_TRIAL, made));
  CS_RETURN_IF_ERROR(cs_bench_compare(bench, CS_BENCH_SAMPLES, &pairs));
  json_array_append_new(list, json_pack("{s:s, s:f, s:f}", "name", name, "latency_us",
                                        pairs.trial_us, "speedup_vs_base", 1 / pairs.ratio));
  return CS_OK;
}

static cs_status measure_one(cs_bench *bench, const mixture *m, int v, json_t *list) {
  cs_configuration made = {0};
  cs_status st = variants[v].make(m, &made);
  if (st == CS_OK && variants[v].begins_as_base) cs_configuration_begin_as(m->base, &made);
  if (st == CS_OK) st = measure_made(bench, variants[v].name, &made, list);
  cs_configuration_free(&made);
  return cs_annotate(st, "%s: ", variants[v].name);
}

static cs_status measure(cs_bench *bench, const mixture *m, json_t *list) {
  CS_RETURN_IF_ERROR(cs_bench_set(bench, CS_BENCH_BEST, m->base));
  for (int v = 0; v < N_VARIANTS; v++) {
    if (variants[v].applies && !variants[v].applies(m)) continue;
    cs_progress_step("ablation", "variants", v, N_VARIANTS, "%s", variants[v].name);
    CS_RETURN_IF_ERROR(measure_one(bench, m, v, list));
  }
  return CS_OK;
}

/* The base's schedule with the candidates that suit it best, by a search of their own from the
 * base's and the session's, which suit the session's schedule. It has half as long as the session's
 * search. */
static cs_status measure_alone(cs_session *session, const mixture *m, cs_bench *bench,
                               json_t *list) {
  static const char name[] = "candidates_alone";
  double seconds = session->settings.options.search_seconds;
  cs_configuration start = {0}, own = {0}, found = {0};
  cs_status st = CS_OK;
  if (seconds == 0) return CS_OK;
  CS_TRY(st, plain(m->base, &start), done);
  CS_TRY(st, make_candidates(m, &own), done);
  CS_TRY(st,
         cs_search_candidates_of(session, m->model, bench, &start, &own,
                                 (seconds < 0 ? CS_SEARCH_SECONDS : seconds) / 2, &found),
         done);
  CS_TRY(st, cs_bench_set(bench, CS_BENCH_BEST, m->base), done);
  st = measure_made(bench, name, &found, list);
done:
  cs_configuration_free(&start);
  cs_configuration_free(&own);
  cs_configuration_free(&found);
  return cs_annotate(st, "%s: ", name);
}

/* As it would be planned. */
static cs_status base_of(cs_session *session, const cs_policy_input *input, const char *policy,
                         cs_configuration *out) {
  cs_plan *plan = NULL;
  const cs_policy *found = cs_policy_find(policy);
  if (!found) return cs_error(CS_CODE_USAGE, "unknown policy \"%s\" to compare with", policy);
  CS_RETURN_IF_ERROR(cs_plan_make(found, input, &plan));
  cs_status st = cs_configuration_of_plan(plan, input->choices, out);
  cs_plan_destroy(plan);
  if (st == CS_OK) st = cs_choose_early(session, input, NULL, out);
  return st;
}

static cs_status to_text(const char *policy, json_t *list, char **out) {
  json_t *root =
      json_pack("{s:s, s:i, s:O}", "base", policy, "samples", CS_BENCH_SAMPLES, "variants", list);
  *out = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(6));
  json_decref(root);
  return *out ? CS_OK : cs_no_memory("an ablation", 0);
}

cs_status cs_session_ablate(cs_session *session, const char *policy, char **json) {
  cs_status st = CS_OK;
  cs_policy_input input;
  cs_configuration base = {0}, own = {0};
  mixture m = {.base = &base, .own = &own};
  json_t *list = NULL;
  cs_bench *bench = NULL;
  *json = NULL;
  CS_RETURN_IF_ERROR(cs_device_must_compute(session->device, "cs_session_ablate"));
  if (!session->planned.choices) {
    return cs_error(CS_CODE_USAGE, "a loaded plan is run without the profile: nothing to ablate");
  }
  if (cs_session_in_flight(session) > 1) {
    return cs_error(CS_CODE_USAGE,
                    "an ablation is of one request's latency, so it goes without in_flight %d",
                    cs_session_in_flight(session));
  }
  input = cs_planning_input(session);
  list = json_array();
  CS_TRY(st, base_of(session, &input, policy, &base), done);
  CS_TRY(st, cs_configuration_of_plan(session->planned.plan, input.choices, &own), done);
  CS_TRY(st, cs_coselect_create(&input, &m.model), done);
  CS_TRY(st, cs_bench_create(session, &input, 1, &bench), done);
  CS_TRY(st, measure(bench, &m, list), done);
  CS_TRY(st, measure_alone(session, &m, bench, list), done);
  st = to_text(policy, list, json);
done:
  json_decref(list);
  cs_bench_destroy(bench);
  cs_coselect_destroy(m.model);
  cs_configuration_free(&base);
  cs_configuration_free(&own);
  return st;
}
