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
#define MOST_SETS 4000

static void assert_ok(cs_status status) {
  if (status != CS_OK) print_error("%s\n", cs_status_message(status));
  assert_true(status == CS_OK);
}

/* ---- Errors ---- */

typedef enum predictor { MODEL, LONGEST, SERIAL, PREDICTORS } predictor;

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

static const char *const files[] = {"h100-f16-b1", "h100-f16-b32", "h100-tf32-b1", "h100-tf32-b32"};
#define N_FILES ((int)(sizeof files / sizeof *files))

typedef struct recorded {
  cs_profile *profile;
  const cs_corun **coruns;
  int n;
} recorded;

static void open_file(const char *name, recorded *out) {
  char path[512];
  snprintf(path, sizeof path, FOLDER "%s.jsonl.gz", name);
  assert_ok(cs_profile_open_file(path, NULL, &out->profile));
  assert_ok(cs_profile_coruns(out->profile, NULL, 0, &out->coruns, &out->n));
}

static void close_file(recorded *file) {
  free(file->coruns);
  cs_profile_close(file->profile);
}

/* ---- Choosing among the recorded combinations of a set ---- */

#define LEAST_COMBINATIONS 8 /* of which measuring four is a choice */
#define MOST_COMBINATIONS 256

/* The best measured time of the first one, and of the first four, by a prediction, over the best of
 * all: what is lost where only these are measured. */
typedef struct choices {
  int n;
  double one[PREDICTORS][MOST_SETS], four[PREDICTORS][MOST_SETS];
} choices;

static bool same_set(const cs_corun *a, const cs_corun *b) {
  bool same = a->n == b->n;
  for (int i = 0; same && i < a->n; i++) {
    same = strcmp(a->members[i].signature, b->members[i].signature) == 0;
  }
  return same;
}

/* The least measured[i] of the `first` least predicted[i]. */
static double best_of(const double *predicted, const double *measured, int n, int first) {
  double best = INFINITY;
  for (int i = 0; i < n; i++) {
    int before = 0;
    for (int k = 0; k < n; k++) {
      before += predicted[k] < predicted[i] || (predicted[k] == predicted[i] && k < i);
    }
    if (before < first) best = fmin(best, measured[i]);
  }
  return best;
}

static void choose(const recorded *file, cs_sm_model *model, int begin, int n, choices *out) {
  double predicted[PREDICTORS][MOST_COMBINATIONS], measured[MOST_COMBINATIONS];
  assert_true(n <= MOST_COMBINATIONS && out->n < MOST_SETS);
  for (int i = 0; i < n; i++) {
    cs_sm_prediction p;
    assert_ok(cs_sm_predict_corun(model, file->profile, file->coruns[begin + i], &p));
    measured[i] = file->coruns[begin + i]->concurrent_us;
    predicted[MODEL][i] = p.cold.together_us;
    predicted[LONGEST][i] = p.cold.longest_us;
    predicted[SERIAL][i] = p.cold.serial_us;
  }
  double best = best_of(measured, measured, n, n);
  for (int p = 0; p < PREDICTORS; p++) {
    out->one[p][out->n] = best_of(predicted[p], measured, n, 1) / best - 1;
    out->four[p][out->n] = best_of(predicted[p], measured, n, 4) / best - 1;
  }
  out->n++;
}

static void choose_all(const recorded *file, choices *out) {
  cs_sm_model *model;
  assert_ok(cs_sm_model_create(cs_profile_device(file->profile), NULL, &model));
  for (int first = 0, end = 0; first < file->n; first = end) {
    while (end < file->n && same_set(file->coruns[first], file->coruns[end])) end++;
    if (end - first < LEAST_COMBINATIONS || !held_out(file->coruns[first])) continue;
    choose(file, model, first, end - first, out);
  }
  cs_sm_model_destroy(model);
}

static void print_choices(const choices *c) {
  static const char *const names[PREDICTORS] = {"model", "max", "sum"};
  printf("| of %d sets, chosen by | lost with one: mean | p90 | lost with four: mean | p90 |\n",
         c->n);
  printf("|---|---|---|---|---|\n");
  for (int p = 0; p < PREDICTORS; p++) {
    cs_stats one = stats_of(c->one[p], c->n), four = stats_of(c->four[p], c->n);
    printf("| %s | %.1f %% | %.1f %% | %.1f %% | %.1f %% |\n", names[p], 100 * one.mean,
           100 * one.p90, 100 * four.mean, 100 * four.p90);
  }
}

/* Predicts the co-runs of one half into `cold` and `warm`. */
static void predict(const recorded *file, const cs_sm_constants *constants, bool held, errors *cold,
                    errors *warm, agreement *a) {
  cs_sm_model *model;
  assert_ok(cs_sm_model_create(cs_profile_device(file->profile), constants, &model));
  for (int i = 0; i < file->n; i++) {
    const cs_corun *corun = file->coruns[i];
    cs_sm_prediction p;
    if (held_out(corun) != held) continue;
    assert_ok(cs_sm_predict_corun(model, file->profile, corun, &p));
    add(cold, &p.cold, corun->concurrent_us);
    if (a) agree(a, corun, &p.cold.timeline);
    if (!isnan(corun->concurrent_warm_us)) add(warm, &p.warm, corun->concurrent_warm_us);
  }
  cs_sm_model_destroy(model);
}

/* ---- The test ---- */

static void print_file(const char *name, const char *way, const errors *e) {
  char label[64];
  snprintf(label, sizeof label, "%s, %s", name, way);
  print_errors(label, e);
}

static void print_agreement(const agreement *a) {
  printf("overlap: mean %.2f predicted, %.2f recorded, mean difference %.2f of %d co-runs\n",
         a->predicted / a->overlaps, a->recorded / a->overlaps, a->overlap_error / a->overlaps,
         a->overlaps);
  printf("limiter: the recorded one in %d of %d co-runs\n", a->limiters_same, a->limiters);
}

static void append(errors *into, const errors *from) {
  assert_true(into->n + from->n <= MOST_ERRORS);
  for (int p = 0; p < PREDICTORS; p++) {
    memcpy(into->error[p] + into->n, from->error[p], (size_t)from->n * sizeof(double));
  }
  memcpy(into->ratio + into->n, from->ratio, (size_t)from->n * sizeof(double));
  into->n += from->n;
}

static void predict_held_out(errors *all, errors *fitted, agreement *a, choices *c) {
  for (int f = 0; f < N_FILES; f++) {
    recorded file;
    errors *cold = errors_create(), *warm = errors_create();
    open_file(files[f], &file);
    predict(&file, NULL, true, cold, warm, a);
    print_file(files[f], "cold", cold);
    print_file(files[f], "warm", warm);
    append(all, cold);
    append(all, warm);
    predict(&file, NULL, false, fitted, fitted, NULL);
    choose_all(&file, c);
    errors_destroy(cold);
    errors_destroy(warm);
    close_file(&file);
  }
}

static void test_held_out(void **state) {
  (void)state;
  errors *held = errors_create(), *fitted = errors_create();
  agreement a = {0};
  choices *c = calloc(1, sizeof *c);
  assert_non_null(c);
  printf("| held-out co-runs | n | model: median | p90 | max: median | p90 | sum: median | p90 | ");
  printf("predicted / measured |\n|---|---|---|---|---|---|---|---|---|\n");
  predict_held_out(held, fitted, &a, c);
  print_errors("all", held);
  print_errors("(those fitted on)", fitted);
  print_agreement(&a);
  print_choices(c);
  free(c);
  cs_stats model = stats_of(held->error[MODEL], held->n);
  assert_true(model.median <= 0.15);
  assert_true(model.p90 <= 0.35);
  for (int p = LONGEST; p < PREDICTORS; p++) {
    cs_stats other = stats_of(held->error[p], held->n);
    assert_true(model.median < other.median && model.p90 < other.p90);
  }
  errors_destroy(held);
  errors_destroy(fitted);
}

/* ---- Fitting: `--fit` prints the constants; nothing is asserted ---- */

#define ROUNDS 8

/* Mean error of the half that is fitted on, and a little of the bad ones. */
static double loss(const recorded *all, const cs_sm_constants *constants) {
  errors *e = errors_create();
  for (int f = 0; f < N_FILES; f++) predict(&all[f], constants, false, e, e, NULL);
  cs_stats stats = stats_of(e->error[MODEL], e->n);
  errors_destroy(e);
  return stats.mean + 0.3 * stats.p90;
}

/* Tries one constant at these multiples of what it is; true if one is better. */
static bool improve(const recorded *all, cs_sm_constants *best, double *constant, double most,
                    double *least_loss) {
  static const double steps[] = {0.7, 0.85, 0.95, 1.05, 1.15, 1.4};
  double from = *constant, kept = from;
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    *constant = fmin(most, from * steps[i]);
    double now = loss(all, best);
    if (now >= *least_loss - 1e-4) continue;
    *least_loss = now;
    kept = *constant;
  }
  *constant = kept;
  return kept != from;
}

static int fit(void) {
  recorded all[N_FILES];
  cs_sm_constants c = {cs_sm_h100.gap_us, 1, 1, 1, 0.6, 0.6, 0.6, 0.5}; /* the gap is chosen */
  const struct {
    const char *name;
    double *value, most;
  } constants[] = {{"launch_us", &c.launch_us, 9},       {"edge_warm_us", &c.edge_warm_us, 9},
                   {"edge_cold_us", &c.edge_cold_us, 9}, {"pipe_capacity", &c.pipe_capacity, 1},
                   {"l2_capacity", &c.l2_capacity, 1},   {"dram_capacity", &c.dram_capacity, 1},
                   {"cache_share", &c.cache_share, 0.9}};
  const int n = (int)(sizeof constants / sizeof *constants);
  bool better = true;
  for (int f = 0; f < N_FILES; f++) open_file(files[f], &all[f]);
  double least_loss = loss(all, &c);
  for (int round = 0; round < ROUNDS && better; round++) {
    better = false;
    for (int i = 0; i < n; i++) {
      if (improve(all, &c, constants[i].value, constants[i].most, &least_loss)) better = true;
    }
    printf("round %d: loss %.4f\n", round, least_loss);
  }
  for (int i = 0; i < n; i++) printf("%s %.3g\n", constants[i].name, *constants[i].value);
  printf("loss of the constants in use: %.4f\n", loss(all, &cs_sm_h100));
  for (int f = 0; f < N_FILES; f++) close_file(&all[f]);
  return 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_held_out)};
  if (argc == 2 && strcmp(argv[1], "--fit") == 0) return fit();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
