/* A simulation of a few launches on four SMs, for the tests of the SM model. */
#ifndef CONVSCHED_TESTS_UNIT_SM_FIXTURE_H_
#define CONVSCHED_TESTS_UNIT_SM_FIXTURE_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka wants the four above first */
#include <cmocka.h>
/* clang-format on */

#include <math.h>
#include <string.h>

#include "scheduler/sm_model.h"
#include "unit/h100_sm.h"

#define NEAR 1e-5 /* microseconds */

static inline void assert_ok(cs_status status) {
  if (status != CS_OK) print_error("%s\n", cs_status_message(status));
  assert_true(status == CS_OK);
}

static inline void assert_fails(cs_status status, cs_code code, const char *part) {
  assert_true(status != CS_OK);
  assert_int_equal(cs_status_code(status), code);
  if (!strstr(cs_status_message(status), part)) print_error("%s\n", cs_status_message(status));
  assert_non_null(strstr(cs_status_message(status), part));
  cs_status_free(status);
}

static inline void assert_near(double found, double wanted) {
  if (!(fabs(found - wanted) <= NEAR)) print_error("found %.9g, wanted %.9g\n", found, wanted);
  assert_true(fabs(found - wanted) <= NEAR);
}

typedef struct fixture {
  cs_sm_model *model;
  cs_sm_kernel kernels[8];
  cs_sm_launch launches[8];
  cs_sm_span spans[8];
  cs_sm_timeline timeline;
  int n;
} fixture;

static inline void open_model(fixture *f, const cs_sm_constants *constants) {
  *f = (fixture){0};
  assert_ok(cs_sm_model_create(&four, constants, &f->model));
}

static inline cs_kernel_info kernel(int blocks, int threads, int registers, int shared) {
  return (cs_kernel_info){.name = "k",
                          .grid = {blocks, 1, 1},
                          .block = {threads, 1, 1},
                          .cluster = {1, 1, 1},
                          .registers = registers,
                          .dynamic_shared = shared};
}

/* One block of these fills the registers of an SM; of the others a quarter. */
static inline cs_kernel_info filling(int blocks) {
  return kernel(blocks, 256, 255, 0);
}
static inline cs_kernel_info quarter(int blocks) {
  return kernel(blocks, 256, 64, 0);
}

static inline int add_counted(fixture *f, cs_kernel_info info, const cs_counters *counters,
                              double solo_us, int stream) {
  int i = f->n++;
  assert_ok(cs_sm_kernel_prepare(f->model, &info, counters, solo_us, &f->kernels[i]));
  f->launches[i] = (cs_sm_launch){.kernel = &f->kernels[i], .stream = stream};
  return i;
}

static inline int add(fixture *f, cs_kernel_info info, double solo_us, int stream) {
  return add_counted(f, info, NULL, solo_us, stream);
}

static inline void wait_for(fixture *f, int i, const int *waits, int n) {
  f->launches[i].waits = waits;
  f->launches[i].n_waits = n;
}

/* Simulates; the whole must take `total_us`. */
static inline void takes(fixture *f, double total_us) {
  assert_ok(cs_sm_simulate(f->model, f->launches, f->n, 1, f->spans, &f->timeline));
  assert_near(f->timeline.total_us, total_us);
}

static inline void runs(const fixture *f, int i, double start_us, double end_us) {
  assert_near(f->spans[i].start_us, start_us);
  assert_near(f->spans[i].end_us, end_us);
}

/* All SMs active for all of `solo_us`, and one rate at `percent` of its peak. */
static inline cs_counters counters_of(double solo_us, cs_counter counter, double percent) {
  cs_counters counters;
  for (int i = 0; i < CS_COUNTER_COUNT; i++) counters.value[i] = NAN;
  counters.value[CS_COUNTER_duration_us] = solo_us;
  counters.value[CS_COUNTER_sm_active_pct] = 100;
  counters.value[counter] = percent;
  return counters;
}

#endif
