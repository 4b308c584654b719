/* Where the ios policy cuts a program: blocks, and windows of blocks that are too large. */
#include "scheduler/ios.h"
#include "unit/scheduler_fixture.h"

static const cs_policy_input no_input;

static void blocks_end_where_all_that_follows_depends_on_all_before(void **state) {
  (void)state;
  static const int ends[] = {1, 4, 6, 7, 9};
  fixture f;
  cs_ios_windows windows;
  fixture_init(&f, 16);
  int head = task_behind(&f, NULL, 0, 1), branches[3], heads[2];
  for (int i = 0; i < 3; i++) branches[i] = task_behind(&f, &head, 1, 1);
  for (int i = 0; i < 2; i++) heads[i] = task_behind(&f, branches, 3, 1); /* no task between */
  int join = task_behind(&f, heads, 2, 1);
  task_behind(&f, &join, 1, 1);
  task_behind(&f, &join, 1, 1);
  cs_policy_input input = fixture_input(&f, 1, 0, 0);
  assert_ok(cs_ios_windows_of(&input, &windows));
  assert_int_equal(windows.n, 5);
  for (int w = 0; w < 5; w++) assert_int_equal(windows.first[w + 1], ends[w]);
  for (int t = 0; t < 9; t++) assert_int_equal(windows.order[t], t);
  cs_ios_windows_free(&windows);
  fixture_free(&f);
}

/* The most tasks of which none depends on another: tasks less pairs of the closed order. */
static int width(const fixture *f, const int *tasks, int n) {
  cs_dag dag, closed = {.n = n};
  int next[64], prev[64], pairs;
  assert_ok(cs_dag_of_program(&f->program, &dag));
  uint64_t *ancestors = cs_dag_ancestors(&dag);
  closed.first = cs_calloc((size_t)n + 1, sizeof *closed.first);
  closed.from = cs_calloc((size_t)n * (size_t)n, sizeof *closed.from);
  for (int v = 0; v < n; v++) {
    for (int u = 0; u < v; u++)
      if (cs_bit_get(ancestors + (size_t)tasks[v] * cs_bit_words(dag.n), tasks[u]))
        closed.from[closed.n_edges++] = u;
    closed.first[v + 1] = closed.n_edges;
  }
  assert_ok(cs_bipartite_match(&closed, next, prev, &pairs));
  cs_dag_free(&dag);
  cs_dag_free(&closed);
  free(ancestors);
  return n - pairs;
}

/* Do all tasks from a position on depend on all before it? */
static bool is_cut(const fixture *f, const int *order, int position) {
  cs_dag dag;
  bool cut = true;
  assert_ok(cs_dag_of_program(&f->program, &dag));
  uint64_t *ancestors = cs_dag_ancestors(&dag);
  for (int p = position; p < dag.n; p++)
    for (int q = 0; q < position; q++)
      cut &= cs_bit_get(ancestors + (size_t)order[p] * cs_bit_words(dag.n), order[q]);
  cs_dag_free(&dag);
  free(ancestors);
  return cut;
}

/* Windows are disjoint and hold all tasks in a topological order. One that ends within a block is
 * as large as it may be. */
static void windows_are_as_large_as_they_may_be(void **state) {
  (void)state;
  cs_rng rng;
  int cut = 0;
  cs_rng_init(&rng, 33, 1);
  for (int i = 0; i < 200; i++) {
    fixture f;
    cs_ios_windows windows;
    int position[64];
    random_tasks(&f, &rng, 1 + below(&rng, 60));
    cs_policy_input input = fixture_input(&f, 1, 0, 0);
    assert_ok(cs_ios_windows_of(&input, &windows));
    for (int p = 0; p < f.program.n_tasks; p++) position[windows.order[p]] = p;
    for (int t = 0; t < f.program.n_tasks; t++) {
      assert_int_equal(windows.order[position[t]], t);
      for (int k = 0; k < f.program.tasks[t].n_preds; k++)
        assert_true(position[f.program.tasks[t].preds[k]] < position[t]);
    }
    assert_int_equal(windows.first[windows.n], f.program.n_tasks);
    for (int w = 0; w < windows.n; w++) {
      const int *tasks = windows.order + windows.first[w];
      int n = windows.first[w + 1] - windows.first[w];
      assert_in_range(n, 1, CS_IOS_MOST_TASKS);
      assert_in_range(width(&f, tasks, n), 1, CS_IOS_MOST_WIDTH);
      if (windows.first[w + 1] == f.program.n_tasks || n == CS_IOS_MOST_TASKS) continue;
      if (is_cut(&f, windows.order, windows.first[w + 1])) continue;
      assert_int_equal(width(&f, tasks, n + 1), CS_IOS_MOST_WIDTH + 1);
      cut++;
    }
    cs_ios_windows_free(&windows);
    fixture_free(&f);
  }
  assert_true(cut > 50);
}

/* 12 tasks side by side: two windows of six; a chain tied to nothing else, of 40: 24 and 16. */
static void wide_and_long_blocks_are_cut(void **state) {
  (void)state;
  fixture f;
  cs_ios_windows windows;
  cs_policy_input input = no_input;
  fixture_init(&f, 12);
  for (int t = 0; t < 12; t++) task_behind(&f, NULL, 0, 1);
  input.program = &f.program;
  input.choices = f.choices;
  assert_ok(cs_ios_windows_of(&input, &windows));
  assert_int_equal(windows.n, 2);
  assert_int_equal(windows.first[1], 6);
  cs_ios_windows_free(&windows);
  fixture_free(&f);
  fixture_init(&f, 40);
  for (int t = 0; t < 39; t++) { /* task 39 stands alone: no cut before it */
    int pred = t - 1;
    task_behind(&f, &pred, t > 0, 1);
  }
  task_behind(&f, NULL, 0, 1);
  input.program = &f.program;
  input.choices = f.choices;
  assert_ok(cs_ios_windows_of(&input, &windows));
  assert_int_equal(windows.n, 2);
  assert_int_equal(windows.first[1], 24);
  assert_int_equal(windows.order[1], 39); /* it can start at once */
  cs_ios_windows_free(&windows);
  fixture_free(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_end_where_all_that_follows_depends_on_all_before),
      cmocka_unit_test(windows_are_as_large_as_they_may_be),
      cmocka_unit_test(wide_and_long_blocks_are_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
