/* What the fastest candidates take of the machine, by hand. */
#include <math.h>

#include "unit/h100_sm.h"
#include "unit/scheduler_fixture.h"

static cs_kernel_profile kernel(int blocks, int threads, int registers, int per_unit, double us) {
  cs_kernel_profile out = {.info = {.grid = {blocks, 1, 1},
                                    .block = {threads, 1, 1},
                                    .cluster = {1, 1, 1},
                                    .registers = registers,
                                    .blocks_per_unit = per_unit},
                           .counted = us > 0};
  for (int i = 0; i < CS_COUNTER_COUNT; i++) out.counters.value[i] = NAN;
  if (us > 0) out.counters.value[CS_COUNTER_duration_us] = us;
  return out;
}
static cs_kernel_profile halves(int blocks) {
  return kernel(blocks, 256, 128, 2, 0);
}

/* A task of 10 us; `kernels` NULL: none recorded. */
static void add(fixture *f, const cs_kernel_profile *kernels, int n) {
  int t = task_behind(f, NULL, 0, 10);
  f->choices[t].choices[0].kernels = kernels;
  f->choices[t].choices[0].n_kernels = n;
}

static double area_of(const fixture *f) {
  return cs_area_us(&f->program, f->choices, &four);
}

static void check(const cs_kernel_profile *kernels, int n, double wanted) {
  fixture f;
  fixture_init(&f, 1);
  add(&f, kernels, n);
  assert_float_equal(area_of(&f), wanted, 1e-9);
  fixture_free(&f);
}

static void area_is_what_blocks_hold_for_as_long_as_they_hold_it(void **state) {
  (void)state;
  cs_kernel_profile full = halves(8), half = halves(4), tail = halves(12);
  check(&full, 1, 10);
  check(&half, 1, 5);
  check(&tail, 1, 7.5); /* two waves, of which the second is half empty */
  cs_kernel_profile slots = kernel(128, 32, 8, 32, 0);
  check(&slots, 1, 10); /* one warp each: registers an eighth, threads half, but all block slots */
}

static void the_largest_resource_of_all_kernels_counts(void **state) {
  (void)state;
  fixture f;
  cs_kernel_profile registers = halves(8), threads = kernel(8, 1024, 16, 2, 0);
  fixture_init(&f, 2);
  add(&f, &registers, 1); /* all registers, a quarter of the threads */
  add(&f, &threads, 1);   /* half of the registers, all threads */
  /* Registers 10 + 5, threads 2.5 + 10: together less than the 20 of each one's largest. */
  assert_float_equal(area_of(&f), 15, 1e-9);
  fixture_free(&f);
}

static void kernels_share_the_time_of_their_candidate(void **state) {
  (void)state;
  cs_kernel_profile by_waves[] = {halves(8), halves(12)};
  check(by_waves, 2, (10.0 / 3) + (20.0 / 3) * 12 / 16);
  cs_kernel_profile counted[] = {kernel(8, 256, 128, 2, 3), kernel(4, 256, 128, 2, 1)};
  check(counted, 2, 7.5 + 2.5 / 2);
  cs_kernel_profile half_counted[] = {kernel(8, 256, 128, 2, 3), halves(4)};
  check(half_counted, 2, 5 + 5.0 / 2);
}

static void the_fastest_candidate_counts(void **state) {
  (void)state;
  fixture f;
  cs_kernel_profile full = halves(8), half = halves(4);
  fixture_init(&f, 1);
  add(&f, &half, 1);
  add_choice(&f, 0, 4, 0);
  f.choices[0].choices[1].kernels = &full;
  f.choices[0].choices[1].n_kernels = 1;
  assert_float_equal(area_of(&f), 4, 1e-9);
  fixture_free(&f);
}

static void on_a_cpu_cores_are_the_resource(void **state) {
  (void)state;
  fixture f;
  fixture_init(&f, 2);
  for (int t = 0; t < 2; t++) {
    add(&f, NULL, 0);
    ((cs_candidate *)(uintptr_t)f.choices[t].choices[0].candidate)->threads = 3 * (t + 1);
  }
  assert_float_equal(area_of(&f), 10 * 0.75 + 10, 1e-9); /* six threads on four cores hold four */
  fixture_free(&f);
}

static void not_known_is_not_a_number(void **state) {
  (void)state;
  fixture f;
  cs_bounds bounds;
  cs_kernel_profile full = halves(8);
  fixture_init(&f, 2);
  add(&f, &full, 1);
  assert_true(isnan(cs_area_us(&f.program, f.choices, NULL)));
  assert_ok(cs_bounds_of(&f.program, f.choices, 1, 1, &bounds));
  assert_true(isnan(bounds.area_us));
  add(&f, NULL, 0);
  assert_true(isnan(area_of(&f)));
  fixture_free(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(area_is_what_blocks_hold_for_as_long_as_they_hold_it),
      cmocka_unit_test(the_largest_resource_of_all_kernels_counts),
      cmocka_unit_test(kernels_share_the_time_of_their_candidate),
      cmocka_unit_test(the_fastest_candidate_counts),
      cmocka_unit_test(on_a_cpu_cores_are_the_resource),
      cmocka_unit_test(not_known_is_not_a_number),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
