/* Who is told of progress, and of what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off */
#include <cmocka.h>
/* clang-format on */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/progress.h"

typedef struct heard {
  int n;
  bool sorted;
  pthread_t thread;
  cs_progress last;
  char stage[64], unit[64], item[64];
} heard;

static void hear(void *user, const cs_progress *progress) {
  heard *h = user;
  h->sorted = h->n == 0 || (h->sorted && progress->done > h->last.done);
  h->n++;
  h->thread = pthread_self();
  h->last = *progress;
  snprintf(h->stage, sizeof h->stage, "%s", progress->stage);
  snprintf(h->unit, sizeof h->unit, "%s", progress->unit);
  snprintf(h->item, sizeof h->item, "%s", progress->item);
}

static void test_steps(void **state) {
  (void)state;
  heard h = {.n = 0};
  cs_progress_step("unheard", NULL, 1, 2, NULL);
  cs_progress_set_watcher(hear, &h);
  cs_progress_step("profiling", "operations", 3, 7, "%s %d", "conv", 1);
  assert_int_equal(h.n, 1);
  assert_string_equal(h.stage, "profiling");
  assert_string_equal(h.unit, "operations");
  assert_string_equal(h.item, "conv 1");
  assert_int_equal(h.last.done, 3);
  assert_int_equal(h.last.total, 7);
  assert_true(h.last.limit_s == 0);
  cs_progress_timed("search", NULL, 5, 0, 1.5, 20, NULL);
  assert_string_equal(h.unit, "");
  assert_string_equal(h.item, "");
  assert_int_equal(h.last.total, 0);
  assert_true(h.last.elapsed_s == 1.5 && h.last.limit_s == 20);
  cs_progress_set_watcher(NULL, NULL);
  cs_progress_step("unheard", NULL, 1, 2, NULL);
  assert_int_equal(h.n, 2);
}

static void *report_elsewhere(void *user) {
  cs_progress_step("another thread's", NULL, 1, 2, NULL);
  return user;
}

/* A watcher hears the thread that set it and no other. */
static void test_threads(void **state) {
  (void)state;
  heard h = {.n = 0};
  pthread_t thread;
  cs_progress_set_watcher(hear, &h);
  assert_int_equal(pthread_create(&thread, NULL, report_elsewhere, NULL), 0);
  pthread_join(thread, NULL);
  assert_int_equal(h.n, 0);
  cs_progress_set_watcher(NULL, NULL);
}

static cs_status item(void *user, int64_t index, int worker) {
  (void)user;
  (void)worker;
  return index < 1000 ? CS_OK : cs_error(CS_CODE_INTERNAL, "index");
}

/* A parallel loop is reported by the thread that waits for it, in rising order. */
static void test_parallel(void **state) {
  (void)state;
  heard h = {.n = 0};
  cs_progress_set_watcher(hear, &h);
  assert_null(cs_parallel_stage("loop", "items", 1000, 1, item, NULL));
  assert_int_equal(h.n, 1000);
  assert_int_equal(h.last.done, 999);
  h.n = 0;
  assert_null(cs_parallel_stage("loop", "items", 1000, 4, item, NULL));
  assert_in_range(h.n, 0, 1000);
  assert_true(h.n == 0 || (h.sorted && pthread_equal(h.thread, pthread_self())));
  h.n = 0;
  assert_null(cs_parallel_for(1000, 4, item, NULL));
  assert_int_equal(h.n, 0);
  cs_progress_set_watcher(NULL, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps), cmocka_unit_test(test_threads),
                                     cmocka_unit_test(test_parallel)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
