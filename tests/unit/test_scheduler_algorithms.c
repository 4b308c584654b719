/* The exact algorithms of the scheduler against brute force: antichain, matching, transitive
 * reduction, remaining times, waits, happens-before. */
#include "unit/scheduler_fixture.h"

/* ---- Random plans and graphs ---- */

/* The task at p is launched with the one before it; neither has a workspace. */
static void join(cs_plan *plan, int p) {
  plan->tasks[p].merged = cs_plan_leader(plan, p - 1);
  plan->tasks[p].stream = plan->tasks[p - 1].stream;
  plan->tasks[p].workspace_bytes = plan->tasks[plan->tasks[p].merged].workspace_bytes = 0;
}

/* A plan of n tasks on up to 4 streams with random waits, merged launches and workspaces; nothing
 * else is filled. */
static void random_plan(cs_plan *plan, cs_rng *rng, int n) {
  memset(plan, 0, sizeof *plan);
  plan->n_tasks = n;
  plan->n_streams = 1 + below(rng, 4);
  plan->tasks = cs_calloc((size_t)n, sizeof *plan->tasks);
  int density = 1 + below(rng, 8);
  for (int p = 0; p < n; p++) {
    cs_plan_task *task = &plan->tasks[p];
    task->task = p;
    task->merged = -1;
    task->stream = below(rng, plan->n_streams);
    task->workspace_bytes = below(rng, 3) == 0 ? 0 : below(rng, 100);
    task->waits = cs_calloc((size_t)n, sizeof *task->waits);
    if (p > 0 && below(rng, 5) == 0) join(plan, p);
    for (int q = 0; q < p && task->merged < 0; q++)
      if (plan->tasks[q].stream != task->stream && below(rng, density) == 0)
        task->waits[task->n_waits++] = q;
  }
}

static void random_plan_free(cs_plan *plan) {
  for (int p = 0; p < plan->n_tasks; p++) free(plan->tasks[p].waits);
  free(plan->tasks);
}

static void random_dag(cs_dag *dag, cs_rng *rng, int n) {
  memset(dag, 0, sizeof *dag);
  dag->n = n;
  dag->first = cs_calloc((size_t)n + 1, sizeof *dag->first);
  dag->from = cs_calloc((size_t)(n * n), sizeof *dag->from);
  int density = 1 + below(rng, 6);
  for (int v = 0; v < n; v++) {
    for (int u = 0; u < v; u++)
      if (below(rng, density) == 0) dag->from[dag->n_edges++] = u;
    dag->first[v + 1] = dag->n_edges;
  }
}

/* ---- Antichain and order ---- */

static void order_equals_closure(void **state) {
  (void)state;
  cs_rng rng;
  cs_rng_init(&rng, 1, 1);
  for (int i = 0; i < 500; i++) {
    cs_plan plan;
    closure c;
    cs_order *order = NULL;
    random_plan(&plan, &rng, 1 + below(&rng, ORACLE_MAX));
    close_plan(&plan, &c);
    assert_ok(cs_order_create(&plan, &order));
    for (int p = 0; p < plan.n_tasks; p++)
      for (int q = 0; q < plan.n_tasks; q++)
        assert_int_equal(cs_order_before(order, q, p), c.before[p][q]);
    cs_order_destroy(order);
    random_plan_free(&plan);
  }
}

static void antichain_is_the_heaviest(void **state) {
  (void)state;
  cs_rng rng;
  cs_rng_init(&rng, 2, 1);
  for (int i = 0; i < 1500; i++) {
    cs_plan plan;
    closure c;
    bool members[ORACLE_MAX];
    int64_t weight = -1, sum = 0;
    random_plan(&plan, &rng, 1 + below(&rng, 12));
    close_plan(&plan, &c);
    assert_ok(cs_plan_heaviest_antichain(&plan, members, &weight));
    assert_true(weight == brute_peak(&plan, &c));
    for (int p = 0; p < plan.n_tasks; p++) {
      if (members[p]) sum += plan.tasks[p].workspace_bytes;
      for (int q = 0; q < p; q++) assert_false(members[p] && members[q] && c.before[p][q]);
    }
    assert_true(sum == weight); /* the members are one such antichain */
    random_plan_free(&plan);
  }
}

static void workspaces_out_of_range_are_refused(void **state) {
  (void)state;
  cs_plan_task tasks[2] = {{.merged = -1, .workspace_bytes = INT64_MAX},
                           {.merged = -1, .workspace_bytes = INT64_MAX}};
  cs_plan plan = {.n_streams = 1, .tasks = tasks, .n_tasks = 2};
  int64_t peak;
  assert_fails(cs_plan_workspace_peak(&plan, &peak), CS_CODE_INTERNAL, "out of range");
}

/* ---- Matching ---- */

/* The most right nodes from v on that can be matched to left nodes not in `taken`. */
static int brute_matching(const cs_dag *edges, int v, unsigned taken) {
  if (v == edges->n) return 0;
  int best = brute_matching(edges, v + 1, taken);
  for (int e = edges->first[v]; e < edges->first[v + 1]; e++) {
    unsigned bit = 1u << edges->from[e];
    if (taken & bit) continue;
    int size = 1 + brute_matching(edges, v + 1, taken | bit);
    if (size > best) best = size;
  }
  return best;
}

static void matching_is_the_largest(void **state) {
  (void)state;
  cs_rng rng;
  cs_rng_init(&rng, 3, 1);
  for (int i = 0; i < 1000; i++) {
    cs_dag edges;
    int next[16], prev[16], size = -1, pairs = 0;
    random_dag(&edges, &rng, 1 + below(&rng, 8));
    assert_ok(cs_bipartite_match(&edges, next, prev, &size));
    assert_int_equal(size, brute_matching(&edges, 0, 0));
    for (int v = 0; v < edges.n; v++) {
      if (prev[v] < 0) continue;
      bool is_edge = false;
      for (int e = edges.first[v]; e < edges.first[v + 1]; e++) is_edge |= edges.from[e] == prev[v];
      assert_true(is_edge);
      assert_int_equal(next[prev[v]], v);
      pairs++;
    }
    assert_int_equal(pairs, size);
    cs_dag_free(&edges);
  }
}

/* Two right nodes want the same left node first: the second must move the first elsewhere. */
static void matching_needs_an_augmenting_path(void **state) {
  (void)state;
  int first[] = {0, 0, 0, 2, 3}, from[] = {0, 1, 0}, next[4], prev[4], size;
  cs_dag edges = {.n = 4, .n_edges = 3, .first = first, .from = from};
  assert_ok(cs_bipartite_match(&edges, next, prev, &size));
  assert_int_equal(size, 2);
  assert_int_equal(prev[2], 1);
  assert_int_equal(prev[3], 0);
}

/* ---- Width ---- */

/* Whether none of the nodes in `set` is an ancestor of another. */
static bool is_antichain(const uint64_t *ancestors, int n, unsigned set) {
  for (int v = 0; v < n; v++)
    for (int u = 0; u < v; u++)
      if ((set >> u & 1) && (set >> v & 1) &&
          cs_bit_get(ancestors + (size_t)v * cs_bit_words(n), u))
        return false;
  return true;
}

static void width_is_the_largest_antichain(void **state) {
  (void)state;
  cs_rng rng;
  cs_rng_init(&rng, 5, 1);
  for (int i = 0; i < 500; i++) {
    cs_dag dag;
    bool chosen[8];
    int width = -1, best = 0, n = 1 + below(&rng, 8);
    random_dag(&dag, &rng, n);
    unsigned of = 0;
    for (int v = 0; v < n; v++) {
      chosen[v] = below(&rng, 4) > 0;
      of |= (unsigned)chosen[v] << v;
    }
    uint64_t *ancestors = cs_dag_ancestors(&dag);
    assert_non_null(ancestors);
    for (unsigned set = 0; set < 1u << n; set++) {
      if ((set & ~of) || !is_antichain(ancestors, n, set)) continue;
      if (__builtin_popcount(set) > best) best = __builtin_popcount(set);
    }
    assert_ok(cs_dag_width(&dag, chosen, &width));
    assert_int_equal(width, best);
    free(ancestors);
    cs_dag_free(&dag);
  }
}

/* ---- Transitive reduction ---- */

static bool has_edge(const cs_dag *dag, int u, int v) {
  for (int e = dag->first[v]; e < dag->first[v + 1]; e++)
    if (dag->from[e] == u) return true;
  return false;
}

/* A path u → v that does not use the edge u → v itself. */
static bool has_detour(const cs_dag *dag, int u, int v) {
  bool reached[ORACLE_MAX] = {false};
  reached[u] = true;
  for (int w = u + 1; w <= v; w++)
    for (int e = dag->first[w]; e < dag->first[w + 1]; e++)
      if (reached[dag->from[e]] && !(w == v && dag->from[e] == u)) reached[w] = true;
  return reached[v];
}

static void reduction_keeps_what_has_no_detour(void **state) {
  (void)state;
  cs_rng rng;
  cs_rng_init(&rng, 4, 1);
  for (int i = 0; i < 500; i++) {
    cs_dag dag, meg;
    random_dag(&dag, &rng, 1 + below(&rng, 30));
    assert_ok(cs_dag_reduce(&dag, &meg));
    for (int v = 0; v < dag.n; v++)
      for (int u = 0; u < v; u++)
        assert_int_equal(has_edge(&meg, u, v), has_edge(&dag, u, v) && !has_detour(&dag, u, v));
    cs_dag_free(&meg);
    cs_dag_free(&dag);
  }
}

/* a → b → d, a → c → d with times 1, 2, 5, 3. */
static void remaining_time_is_the_longest_path(void **state) {
  (void)state;
  int first[] = {0, 0, 1, 2, 4}, from[] = {0, 0, 1, 2};
  double time_us[] = {1, 2, 5, 3}, remaining[4];
  cs_dag dag = {.n = 4, .n_edges = 4, .first = first, .from = from};
  assert_ok(cs_dag_remaining(&dag, time_us, remaining));
  assert_true(remaining[0] == 9 && remaining[1] == 5 && remaining[2] == 8 && remaining[3] == 3);
}

/* ---- Waits ---- */

static bool enforces(const cs_plan *plan, const cs_program *program) {
  closure c;
  int position[ORACLE_MAX];
  close_plan(plan, &c);
  cs_plan_positions(plan, position);
  for (int t = 0; t < program->n_tasks; t++)
    for (int i = 0; i < program->tasks[t].n_preds; i++)
      if (!c.before[position[t]][position[program->tasks[t].preds[i]]]) return false;
  return true;
}

/* Any assignment of tasks to streams gets waits that enforce the dependencies, none in vain. */
static void waits_are_enough_and_necessary(void **state) {
  (void)state;
  cs_rng rng;
  cs_rng_init(&rng, 5, 1);
  for (int i = 0; i < 500; i++) {
    fixture f;
    cs_plan plan;
    random_program(&f, &rng, 1 + below(&rng, 25), 1 + below(&rng, 12));
    assert_ok(cs_plan_begin(&f.program, &plan));
    plan.n_streams = 1 + below(&rng, 5);
    for (int t = 0; t < plan.n_tasks; t++)
      assert_ok(cs_plan_place(&plan, t, t, below(&rng, plan.n_streams),
                              f.choices[t].choices[0].candidate));
    assert_ok(cs_plan_fill_waits(&plan, &f.program));
    assert_true(enforces(&plan, &f.program));
    for (int p = 0; p < plan.n_tasks; p++) {
      cs_plan_task *task = &plan.tasks[p];
      for (int w = 0; w < task->n_waits; w++) {
        int kept = task->waits[w];
        task->waits[w] = -1; /* the closure skips it */
        assert_false(enforces(&plan, &f.program));
        task->waits[w] = kept;
      }
    }
    for (int p = 0; p < plan.n_tasks; p++) {
      cs_candidate_clear(&plan.tasks[p].candidate);
      free(plan.tasks[p].waits);
    }
    free(plan.tasks);
    free(plan.buffer_offsets);
    fixture_free(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(order_equals_closure),
      cmocka_unit_test(antichain_is_the_heaviest),
      cmocka_unit_test(workspaces_out_of_range_are_refused),
      cmocka_unit_test(matching_is_the_largest),
      cmocka_unit_test(matching_needs_an_augmenting_path),
      cmocka_unit_test(width_is_the_largest_antichain),
      cmocka_unit_test(reduction_keeps_what_has_no_detour),
      cmocka_unit_test(remaining_time_is_the_longest_path),
      cmocka_unit_test(waits_are_enough_and_necessary),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
