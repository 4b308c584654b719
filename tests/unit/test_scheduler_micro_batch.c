/* The divisions of micro_batch.h against trying everything, and where the answer is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/micro_batch.h"

#define MIB ((int64_t)1 << 20)

static void assert_ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

static void assert_near(double found, double wanted) {
  if (!(fabs(found - wanted) <= 1e-9)) fail_msg("found %.12g, wanted %.12g", found, wanted);
}

static void assert_parts(const cs_micro_parts *parts, const int64_t *sizes, int n) {
  assert_int_equal(parts->n, n);
  for (int i = 0; i < n; i++) assert_int_equal(parts->sizes[i], sizes[i]);
}
#define PARTS(...) \
  (const int64_t[]){__VA_ARGS__}, (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* ---- Known answers ---- */

/* A Winograd algorithm in half the time, whose workspace of 1 MiB an entry fits 64 of 128: with the
 * launch of a second part 2 × 26 µs against 100. */
static const cs_micro_way winograd_fits[] = {{128, 0, 100, 100},
                                             {128, 128 * MIB, 50, 50},
                                             {64, 0, 52, 52},
                                             {64, 64 * MIB, 26, 26},
                                             {32, 32 * MIB, 14, 14}};

static void workspace_decides(void **state) {
  (void)state;
  cs_micro_op op = {winograd_fits, 5, 0, 0, 0};
  cs_micro_problem problem = {&op, 1, 128, 64 * MIB, 0};
  cs_micro_result result;
  assert_ok(cs_micro_in_turn(&problem, &result));
  assert_parts(&result.parts[0], PARTS(64, 64));
  assert_near(result.us, 52);
  assert_near(result.whole_us, 100);
  cs_micro_result_free(&result);
  problem.workspace_limit = 63 * MIB; /* 4 × 14 µs */
  assert_ok(cs_micro_in_turn(&problem, &result));
  assert_parts(&result.parts[0], PARTS(32, 32, 32, 32));
  cs_micro_result_free(&result);
  problem.workspace_limit = 128 * MIB; /* it fits as it is */
  assert_ok(cs_micro_in_turn(&problem, &result));
  assert_parts(&result.parts[0], PARTS(128));
  assert_near(result.us, 50);
  cs_micro_result_free(&result);
  problem.workspace_limit = 16 * MIB; /* nothing to gain */
  assert_ok(cs_micro_in_turn(&problem, &result));
  assert_parts(&result.parts[0], PARTS(128));
  cs_micro_result_free(&result);
}

/* The paper's own kind of division: sizes that differ. */
static void sizes_differ(void **state) {
  (void)state;
  static const cs_micro_way ways[] = {{128, 0, 100, 100}, {48, 64, 20, 20}, {32, 42, 14, 14}};
  cs_micro_op op = {ways, 3, 0, 0, 0};
  cs_micro_problem problem = {&op, 1, 128, 64, 0};
  cs_micro_result result;
  assert_ok(cs_micro_in_turn(&problem, &result));
  assert_parts(&result.parts[0], PARTS(48, 48, 32));
  assert_near(result.us, 54);
  cs_micro_result_free(&result);
}

/* Three operations of 8 MiB an entry in 40 MiB of cache: four entries stay there. */
static void cache_decides(void **state) {
  (void)state;
  static const cs_micro_way ways[] = {{8, 0, 100, 90}, {4, 0, 51, 30}, {2, 0, 27, 16}};
  cs_micro_op ops[3];
  for (int i = 0; i < 3; i++) ops[i] = (cs_micro_op){ways, 3, i, 8 * MIB, MIB};
  cs_micro_problem problem = {ops, 3, 8, 0, 40 * MIB};
  cs_micro_result result;
  assert_ok(cs_micro_in_turn(&problem, &result));
  for (int i = 0; i < 3; i++) assert_parts(&result.parts[i], PARTS(4, 4));
  assert_near(result.us, 2 * (51 + 30 + 30));
  assert_near(result.whole_us, 300);
  cs_micro_result_free(&result);
  problem.cache_bytes = 34 * MIB; /* with the weights of three operations two entries do */
  assert_ok(cs_micro_in_turn(&problem, &result));
  for (int i = 0; i < 3; i++) assert_parts(&result.parts[i], PARTS(2, 2, 2, 2));
  assert_near(result.us, 4 * (27 + 16 + 16));
  cs_micro_result_free(&result);
  problem.cache_bytes = 0;
  assert_ok(cs_micro_in_turn(&problem, &result));
  for (int i = 0; i < 3; i++) assert_parts(&result.parts[i], PARTS(8));
  cs_micro_result_free(&result);
}

/* Two branches share the limit: only one of them can have its workspace, the one that gains more.
 */
static void branches_share(void **state) {
  (void)state;
  static const cs_micro_way much[] = {{4, 0, 100, 100}, {2, 60, 20, 20}},
                            less[] = {{4, 0, 100, 100}, {2, 60, 30, 30}, {1, 4, 20, 20}};
  cs_micro_op ops[2] = {{much, 2, 0, 0, 0}, {less, 3, 0, 0, 0}};
  cs_micro_problem problem = {ops, 2, 4, 64, 0};
  cs_micro_result result;
  assert_ok(cs_micro_at_once(&problem, &result));
  assert_parts(&result.parts[0], PARTS(2, 2));
  assert_parts(&result.parts[1], PARTS(1, 1, 1, 1));
  assert_near(result.us, 120);
  cs_micro_result_free(&result);
  ops[1].group = 1;
  assert_ok(cs_micro_at_once(&problem, &result));
  assert_parts(&result.parts[1], PARTS(2, 2));
  assert_near(result.us, 100);
  cs_micro_result_free(&result);
}

static void nothing_fits(void **state) {
  (void)state;
  static const cs_micro_way ways[] = {{3, 0, 1, 1}, {4, 100, 1, 1}};
  cs_micro_op op = {ways, 2, 0, 0, 0};
  cs_micro_problem problem = {&op, 1, 4, 64, 0};
  cs_micro_result result;
  cs_status st = cs_micro_in_turn(&problem, &result);
  assert_int_equal(cs_status_code(st), CS_CODE_NOT_FOUND);
  assert_non_null(strstr(cs_status_message(st), "no ways to run 4 batch entries within 64 bytes"));
  cs_status_free(st);
  st = cs_micro_at_once(&problem, &result);
  assert_int_equal(cs_status_code(st), CS_CODE_NOT_FOUND);
  cs_status_free(st);
}

/* Undivided, an operation may need more of the limit than its share: its time is no endless one. */
static void more_than_a_share(void **state) {
  (void)state;
  static const cs_micro_way ways[] = {{4, 100, 50, 50}, {4, 90, 70, 70}, {2, 40, 20, 20}};
  cs_micro_op op = {ways, 3, 0, 0, 0};
  cs_micro_problem problem = {&op, 1, 4, 64, 0};
  cs_micro_result result;
  assert_ok(cs_micro_at_once(&problem, &result));
  assert_parts(&result.parts[0], PARTS(2, 2));
  assert_near(result.us, 40);
  assert_near(result.whole_us, 50);
  cs_micro_result_free(&result);
}

/* ---- Everything tried ---- */

#define OPS 4
#define WAYS 7
#define BATCH 6

static unsigned next_random(unsigned *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

typedef struct random_problem {
  cs_micro_way ways[OPS][WAYS];
  cs_micro_op ops[OPS];
  cs_micro_problem problem;
} random_problem;

static void make_random(random_problem *r, unsigned seed) {
  static const int64_t sizes[] = {1, 2, 3, 4, 6};
  for (int i = 0; i < OPS; i++) {
    for (int w = 0; w < WAYS; w++) {
      int64_t entries = w == 0 ? BATCH : sizes[next_random(&seed) % 5];
      double cold = (double)(2 + entries) * (double)(1 + next_random(&seed) % 8);
      r->ways[i][w] =
          (cs_micro_way){entries, w == 0 ? 0 : (int64_t)(next_random(&seed) % 20) * entries, cold,
                         cold * (0.5 + 0.1 * (next_random(&seed) % 5))};
    }
    r->ops[i] = (cs_micro_op){r->ways[i], WAYS, i / 2, 1 + (int64_t)(next_random(&seed) % 8),
                              (int64_t)(next_random(&seed) % 5)};
  }
  r->problem = (cs_micro_problem){r->ops, OPS, BATCH, (int64_t)(next_random(&seed) % 80),
                                  (int64_t)(next_random(&seed) % 40)};
}

/* A part of the operations first … end − 1, straight from the definition. */
static double cost_of_part(const cs_micro_problem *p, int first, int end, int64_t entries) {
  int64_t weights = 0, most = 0;
  double sum = 0;
  for (int i = first; i < end; i++) {
    weights += p->ops[i].weight_bytes;
    most = cs_max_i64(most, p->ops[i].entry_bytes * entries);
  }
  for (int i = first; i < end; i++) {
    const cs_micro_way *best = NULL;
    for (int w = 0; w < p->ops[i].n_ways; w++) {
      const cs_micro_way *way = &p->ops[i].ways[w];
      bool can = way->entries == entries && way->workspace_bytes <= p->workspace_limit;
      if (can && (!best || way->cold_us < best->cold_us)) best = way;
    }
    if (!best) return INFINITY;
    bool warm = i > first && most + weights <= p->cache_bytes;
    sum += warm ? best->warm_us : best->cold_us;
  }
  return sum;
}

static double cheapest_parts(const cs_micro_problem *p, int first, int end, int64_t left) {
  double best = left == 0 ? 0 : INFINITY;
  for (int64_t s = 1; s <= left; s++) {
    double part = cost_of_part(p, first, end, s);
    if (!isinf(part)) best = fmin(best, part + cheapest_parts(p, first, end, left - s));
  }
  return best;
}

static double cheapest_segments(const cs_micro_problem *p, int first) {
  double best = first == p->n_ops ? 0 : INFINITY;
  for (int end = first + 1; end <= p->n_ops; end++) {
    best = fmin(best, cheapest_parts(p, first, end, p->batch) + cheapest_segments(p, end));
  }
  return best;
}

/* What a result says it costs, as its parts really do. */
static double cost_of_result(const cs_micro_problem *p, const cs_micro_result *result) {
  double best[OPS + 1] = {0};
  for (int end = 1; end <= p->n_ops; end++) {
    best[end] = INFINITY;
    for (int first = end - 1; first >= 0; first--) {
      const cs_micro_parts *parts = &result->parts[end - 1], *other = &result->parts[first];
      if (parts->n != other->n ||
          memcmp(parts->sizes, other->sizes, sizeof(int64_t) * (size_t)parts->n) != 0)
        break;
      double sum = 0;
      for (int i = 0; i < parts->n; i++) sum += cost_of_part(p, first, end, parts->sizes[i]);
      best[end] = fmin(best[end], best[first] + sum);
    }
  }
  return best[p->n_ops];
}

static void in_turn_is_optimal(void **state) {
  (void)state;
  int divided = 0, segments = 0;
  for (unsigned seed = 1; seed <= 300; seed++) {
    random_problem r;
    cs_micro_result result;
    make_random(&r, seed);
    assert_ok(cs_micro_in_turn(&r.problem, &result));
    double wanted = cheapest_segments(&r.problem, 0);
    assert_near(result.us, wanted);
    assert_near(cost_of_result(&r.problem, &result), wanted);
    assert_true(result.us <= result.whole_us);
    for (int i = 0; i < OPS; i++) {
      int64_t sum = 0;
      for (int k = 0; k < result.parts[i].n; k++) sum += result.parts[i].sizes[k];
      assert_int_equal(sum, BATCH);
      divided += result.parts[i].n > 1;
      segments += i > 0 && result.parts[i].n > 1 && result.parts[i].n == result.parts[i - 1].n;
    }
    cs_micro_result_free(&result);
  }
  assert_true(divided > 100); /* the problems are no trivial ones */
  assert_true(segments > 30);
}

/* The least time of one operation's parts with a way each, none with more workspace than `most`. */
static double cheapest_alone(const cs_micro_op *op, int64_t left, int64_t most) {
  double best = left == 0 ? 0 : INFINITY;
  for (int w = 0; w < op->n_ways; w++) {
    const cs_micro_way *way = &op->ways[w];
    if (way->entries > left || way->workspace_bytes > most) continue;
    best = fmin(best, way->cold_us + cheapest_alone(op, left - way->entries, most));
  }
  return best;
}

/* Every share of the limit for the first of two operations of a group. */
static double cheapest_group(const cs_micro_problem *p, int first) {
  double best = INFINITY;
  for (int64_t share = 0; share <= p->workspace_limit; share++) {
    best = fmin(best, cheapest_alone(&p->ops[first], p->batch, share) +
                          cheapest_alone(&p->ops[first + 1], p->batch, p->workspace_limit - share));
  }
  return best;
}

static void at_once_is_optimal(void **state) {
  (void)state;
  int differ = 0;
  for (unsigned seed = 1; seed <= 300; seed++) {
    random_problem r;
    cs_micro_result result, alone;
    make_random(&r, seed);
    assert_ok(cs_micro_at_once(&r.problem, &result));
    assert_near(result.us, cheapest_group(&r.problem, 0) + cheapest_group(&r.problem, 2));
    r.problem.cache_bytes = 0;
    assert_ok(cs_micro_in_turn(&r.problem, &alone));
    assert_true(alone.us <= result.us + 1e-9);
    differ += alone.us < result.us - 1e-9;
    cs_micro_result_free(&result);
    cs_micro_result_free(&alone);
  }
  assert_true(differ > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(workspace_decides),  cmocka_unit_test(sizes_differ),
      cmocka_unit_test(cache_decides),      cmocka_unit_test(branches_share),
      cmocka_unit_test(nothing_fits),       cmocka_unit_test(more_than_a_share),
      cmocka_unit_test(in_turn_is_optimal), cmocka_unit_test(at_once_is_optimal),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
