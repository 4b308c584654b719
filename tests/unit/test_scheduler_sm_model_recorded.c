/* The SM model against co-runs recorded on an H100. Its constants are fitted on half of the sets of
 * operations (by a hash of their signatures); what is asserted is asserted of the other half. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka wants the four above first */
#include <cmocka.h>
/* clang-format on */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/sm_corun.h"

#define FOLDER CS_SOURCE_DIR "/tests/data/profiles/"
#define MOST_ERRORS 60000

static void assert_ok(cs_status status) {
  if (status != CS_OK) print_error("%s\n", cs_status_message(status));
  assert_true(status == CS_OK);
}

/* ---- Errors ---- */

typedef enum predictor { MODEL, LONGEST, SERIAL, PREDICTORS } predictor;
static const char *const predictor_names[PREDICTORS] = {"model", "max", "sum"};

/* |predicted / measured − 1| of every predictor, and the model's predicted / measured. */
typedef struct errors {
  int n;
  double *error[PREDICTORS], *ratio;
} errors;

static errors *errors_create(void) {
  errors *e = calloc(1, sizeof *e);
  assert_non_null(e);
  for (int p = 0; p < PREDICTORS; p++) {
    e->error[p] = calloc(MOST_ERRORS, sizeof(double));
    assert_non_null(e->error[p]);
  }
  e->ratio = calloc(MOST_ERRORS, sizeof(double));
  assert_non_null(e->ratio);
  return e;
}

static void errors_destroy(errors *e) {
  for (int p = 0; p < PREDICTORS; p++) free(e->error[p]);
  free(e->ratio);
  free(e);
}

static void add(errors *e, const cs_sm_times *times, double measured_us) {
  assert_true(e->n < MOST_ERRORS);
  e->error[MODEL][e->n] = fabs(times->together_us / measured_us - 1);
  e->error[LONGEST][e->n] = fabs(times->longest_us / measured_us - 1);
  e->error[SERIAL][e->n] = fabs(times->serial_us / measured_us - 1);
  e->ratio[e->n++] = times->together_us / measured_us;
}

static cs_stats stats_of(const double *values, int n) {
  cs_stats stats;
  assert_true(n > 0);
  assert_ok(cs_stats_of(values, n, &stats));
  return stats;
}

static void print_errors(const char *name, const errors *e) {
  printf("| %-22s | %5d |", name, e->n);
  for (int p = 0; p < PREDICTORS; p++) {
    cs_stats stats = stats_of(e->error[p], e->n);
    printf(" %5.1f %% | %5.1f %% |", 100 * stats.median, 100 * stats.p90);
  }
  printf(" %.2f |\n", stats_of(e->ratio, e->n).median);
}

/* ---- Files ---- */

typedef struct agreement {
  int overlaps, limiters, limiters_same;
  double overlap_error, predicted, recorded;
} agreement;

/* Half of the sets of operations, whatever their candidates. */
static bool held_out(const cs_corun *corun) {
  uint64_t hash = CS_HASH_SEED;
  for (int i = 0; i < corun->n; i++) hash = cs_hash_string(hash, corun->members[i].signature);
  hash ^= hash >> 32;
  return (hash ^ hash >> 16) & 1;
}

static void agree(agreement *a, const cs_corun *corun, const cs_sm_timeline *timeline) {
  if (!isnan(corun->overlap)) {
    a->overlaps++;
    a->overlap_error += fabs(timeline->overlap - corun->overlap);
    a->predicted += timeline->overlap;
    a->recorded += corun->overlap;
  }
  if (corun->limiter[0]) {
    a->limiters++;
    a->limiters_same += strcmp(cs_sm_timeline_limiter(timeline), corun->limiter) == 0;
  }
}

typedef struct sums {
  errors *held_cold, *held_warm, *held, *fitted;
  agreement agreement;
} sums;

static void predict_file(const char *name, const cs_sm_constants *constants, sums *s) {
  char path[512];
  cs_profile *profile;
  cs_sm_model *model;
  const cs_corun **coruns;
  int n;
  snprintf(path, sizeof path, FOLDER "%s.jsonl.gz", name);
  assert_ok(cs_profile_open_file(path, NULL, &profile));
  assert_ok(cs_sm_model_create(cs_profile_device(profile), constants, &model));
  assert_ok(cs_profile_coruns(profile, NULL, 0, &coruns, &n));
  for (int i = 0; i < n; i++) {
    cs_sm_prediction p;
    bool held = held_out(coruns[i]);
    assert_ok(cs_sm_predict_corun(model, profile, coruns[i], &p));
    add(held ? s->held : s->fitted, &p.cold, coruns[i]->concurrent_us);
    if (held) add(s->held_cold, &p.cold, coruns[i]->concurrent_us);
    if (held) agree(&s->agreement, coruns[i], &p.cold.timeline);
    if (isnan(coruns[i]->concurrent_warm_us)) continue;
    add(held ? s->held : s->fitted, &p.warm, coruns[i]->concurrent_warm_us);
    if (held) add(s->held_warm, &p.warm, coruns[i]->concurrent_warm_us);
  }
  free(coruns);
  cs_sm_model_destroy(model);
  cs_profile_close(profile);
}

static const char *const files[] = {"h100-f16-b1", "h100-f16-b32", "h100-tf32-b1", "h100-tf32-b32"};

static void test_held_out(void **state) {
  (void)state;
  sums s = {.held = errors_create(), .fitted = errors_create()};
  printf("| co-runs | n | model median | p90 | max median | p90 | sum median | p90 | bias |\n");
  printf("|---|---|---|---|---|---|---|---|---|\n");
  for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
    char name[64];
    s.held_cold = errors_create();
    s.held_warm = errors_create();
    predict_file(files[f], NULL, &s);
    snprintf(name, sizeof name, "%s, cold", files[f]);
    print_errors(name, s.held_cold);
    snprintf(name, sizeof name, "%s, warm", files[f]);
    print_errors(name, s.held_warm);
    errors_destroy(s.held_cold);
    errors_destroy(s.held_warm);
  }
  print_errors("all held out", s.held);
  print_errors("the half fitted on", s.fitted);
  const agreement *a = &s.agreement;
  printf("overlap: mean %.2f predicted, %.2f recorded, mean difference %.2f of %d co-runs\n",
         a->predicted / a->overlaps, a->recorded / a->overlaps, a->overlap_error / a->overlaps,
         a->overlaps);
  printf("limiter: the recorded one in %d of %d co-runs\n", a->limiters_same, a->limiters);
  cs_stats model = stats_of(s.held->error[MODEL], s.held->n);
  assert_true(model.median <= 0.15);
  assert_true(model.p90 <= 0.35);
  for (int p = LONGEST; p < PREDICTORS; p++) {
    cs_stats other = stats_of(s.held->error[p], s.held->n);
    print_message("%s: median %.3f\n", predictor_names[p], other.median);
    assert_true(model.median < other.median && model.p90 < other.p90);
  }
  errors_destroy(s.held);
  errors_destroy(s.fitted);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_held_out)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
