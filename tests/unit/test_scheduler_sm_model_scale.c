/* The SM model on random schedules: the same twice, sound, and fast enough to be called in a
 * search.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka wants the four above first */
#include <cmocka.h>
/* clang-format on */

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "scheduler/sm_model.h"
#include "unit/h100_sm.h"

#define N 1000
#define STREAMS 4

/* Sanitizers and valgrind slow everything down; the limit is for what is measured without. */
#include "sanitized.h"

#if CS_TEST_SANITIZED
#define SLOWER 40
#else
#define SLOWER 1
#endif

static const cs_device_info h100 = {
    .name = "H100", .units = 132, .cache_bytes = 52428800, .unit = H100_SM};

static void assert_ok(cs_status status) {
  if (status != CS_OK) print_error("%s\n", cs_status_message(status));
  assert_true(status == CS_OK);
}

typedef struct schedule {
  cs_sm_kernel kernels[N];
  cs_sm_launch launches[N];
  int waits[N];
  double solo_us[N];
} schedule;

static double between(cs_rng *rng, double low, double high) {
  return low + (high - low) * cs_rng_uniform(rng);
}

static int one_of(cs_rng *rng, int n) {
  return (int)(cs_rng_u32(rng) % (uint32_t)n);
}

static void random_kernel(cs_rng *rng, const cs_sm_model *model, double *solo_us,
                          cs_sm_kernel *out) {
  static const int threads[] = {64, 128, 256, 384, 512, 1024};
  static const int shared[] = {0, 0, 4224, 40960, 61440, 98304, 231424};
  static const int clusters[] = {1, 1, 1, 2, 7, 8};
  cs_counters counters;
  cs_kernel_info info = {.name = "random",
                         .grid = {1 + (int)exp(between(rng, 0, 10)), 1, 1},
                         .block = {threads[one_of(rng, 6)], 1, 1},
                         .cluster = {clusters[one_of(rng, 6)], 1, 1},
                         .registers = 16 + one_of(rng, 48),
                         .dynamic_shared = shared[one_of(rng, 7)]};
  for (int i = 0; i < CS_COUNTER_COUNT; i++) counters.value[i] = between(rng, 0, 80);
  *solo_us = counters.value[CS_COUNTER_duration_us] = exp(between(rng, 0.5, 4));
  assert_ok(cs_sm_kernel_prepare(model, &info, &counters, *solo_us, out));
}

/* Kernels over four streams; some wait for an earlier one. */
static schedule *random_schedule(const cs_sm_model *model, uint64_t seed) {
  cs_rng rng;
  schedule *s = calloc(1, sizeof *s);
  assert_non_null(s);
  cs_rng_init(&rng, seed, 0);
  for (int i = 0; i < N; i++) {
    random_kernel(&rng, model, &s->solo_us[i], &s->kernels[i]);
    s->launches[i] = (cs_sm_launch){.kernel = &s->kernels[i], .stream = one_of(&rng, STREAMS)};
    if (i == 0 || one_of(&rng, 3) > 0) continue;
    s->waits[i] = one_of(&rng, i);
    s->launches[i].waits = &s->waits[i];
    s->launches[i].n_waits = 1;
  }
  return s;
}

static void test_deterministic(void **state) {
  (void)state;
  cs_sm_span first[N], again[N];
  cs_sm_timeline a, b, other;
  cs_sm_model *model;
  memset(first, 0, sizeof first);
  memset(again, 0, sizeof again);
  assert_ok(cs_sm_model_create(&h100, NULL, &model));
  for (uint64_t seed = 1; seed <= 3; seed++) {
    schedule *s = random_schedule(model, seed), *t = random_schedule(model, seed + 100);
    assert_ok(cs_sm_simulate(model, s->launches, N, 1, first, &a));
    assert_ok(cs_sm_simulate(model, t->launches, 7, 0, NULL, &other));
    assert_ok(cs_sm_simulate(model, s->launches, N, 1, again, &b));
    assert_memory_equal(first, again, sizeof first);
    assert_memory_equal(&a, &b, sizeof a);
    free(s);
    free(t);
  }
  cs_sm_model_destroy(model);
}

/* Nothing starts before what it waits for has ended, nor runs faster than alone. */
static void test_sound(void **state) {
  (void)state;
  cs_sm_span spans[N];
  cs_sm_timeline timeline;
  cs_sm_model *model;
  assert_ok(cs_sm_model_create(&h100, NULL, &model));
  schedule *s = random_schedule(model, 5);
  assert_ok(cs_sm_simulate(model, s->launches, N, 0.5, spans, &timeline));
  double ended[STREAMS] = {0}, last = 0;
  for (int i = 0; i < N; i++) {
    const cs_sm_launch *launch = &s->launches[i];
    double gap = s->kernels[i].gap_us;
    assert_true(spans[i].start_us >= ended[launch->stream] + gap - 1e-6);
    if (launch->n_waits) assert_true(spans[i].start_us >= spans[launch->waits[0]].end_us - 1e-6);
    assert_true(spans[i].end_us - spans[i].start_us >= s->solo_us[i] - gap - 0.1);
    ended[launch->stream] = spans[i].end_us;
    last = fmax(last, spans[i].end_us);
  }
  assert_true(timeline.total_us == last);
  assert_true(timeline.overlap > 0.1 && timeline.overlap <= 1);
  free(s);
  cs_sm_model_destroy(model);
}

static void test_a_chain_is_the_sum(void **state) {
  (void)state;
  cs_sm_timeline timeline;
  cs_sm_model *model;
  double sum = 0;
  assert_ok(cs_sm_model_create(&h100, NULL, &model));
  schedule *s = random_schedule(model, 9);
  for (int i = 0; i < N; i++) {
    s->launches[i].stream = 3;
    sum += s->solo_us[i];
  }
  assert_ok(cs_sm_simulate(model, s->launches, N, 1, NULL, &timeline));
  assert_true(fabs(timeline.total_us / sum - 1) < 1e-6);
  free(s);
  cs_sm_model_destroy(model);
}

/* Of this thread, whatever else the machine does. */
static double cpu_seconds(void) {
  struct timespec now;
  assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void test_a_thousand_kernels(void **state) {
  (void)state;
  cs_sm_timeline timeline;
  cs_sm_model *model;
  double best = INFINITY;
  assert_ok(cs_sm_model_create(&h100, NULL, &model));
  schedule *s = random_schedule(model, 11);
  for (int i = 0; i < 5; i++) {
    double begin = cpu_seconds();
    assert_ok(cs_sm_simulate(model, s->launches, N, 1, NULL, &timeline));
    best = fmin(best, cpu_seconds() - begin);
  }
  print_message("%d kernels: %.2f ms\n", N, 1e3 * best);
  assert_true(best <= 0.010 * SLOWER);
  free(s);
  cs_sm_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_deterministic),
      cmocka_unit_test(test_sound),
      cmocka_unit_test(test_a_chain_is_the_sum),
      cmocka_unit_test(test_a_thousand_kernels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
