/* Base: random numbers against published vectors, half floats exhaustively, statistics, strings,
 * statuses, parallel loops. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

/* Known answers of Philox 4x32-10 for counter and key of zeros, from the Random123 distribution. */
static void test_philox_known_answer(void **state) {
  (void)state;
  cs_rng rng;
  cs_rng_init(&rng, 0, 0);
  const uint32_t wanted[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (int i = 0; i < 4; i++) assert_int_equal(cs_rng_u32(&rng), wanted[i]);
}

static void test_normal_moments(void **state) {
  (void)state;
  enum { N = 200000 };
  cs_rng rng;
  cs_rng_init(&rng, 42, 7);
  double sum = 0, squares = 0, fourth = 0;
  for (int i = 0; i < N; i++) {
    double x = cs_rng_normal(&rng);
    sum += x, squares += x * x, fourth += x * x * x * x;
  }
  assert_true(fabs(sum / N) < 0.01);
  assert_true(fabs(squares / N - 1) < 0.02);
  assert_true(fabs(fourth / N - 3) < 0.15);
}

static void test_streams_differ(void **state) {
  (void)state;
  cs_rng a, b;
  cs_rng_init(&a, 1, 1);
  cs_rng_init(&b, 1, 2);
  int equal = 0;
  for (int i = 0; i < 1000; i++) equal += cs_rng_u32(&a) == cs_rng_u32(&b);
  assert_true(equal <= 1);
}

/* Every half converts to f32 and back; f32 between two halves rounds to the nearest, ties to even.
 */
static void test_f16_exhaustive(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    float value = cs_f16_to_f32((uint16_t)bits);
    if ((bits & 0x7fff) > 0x7c00) {
      assert_true(isnan(value));
      assert_true(isnan(cs_f16_to_f32(cs_f32_to_f16(value))));
      continue;
    }
    assert_int_equal(cs_f32_to_f16(value), bits);
    if ((bits & 0x7fff) >= 0x7bff) continue;
    float next = cs_f16_to_f32((uint16_t)(bits + 1));
    float middle = (value + next) / 2; /* exact in f32 */
    uint16_t even = (uint16_t)((bits & 1) ? bits + 1 : bits);
    assert_int_equal(cs_f32_to_f16(middle), even);
    assert_int_equal(cs_f32_to_f16(nextafterf(middle, value)), bits);
    assert_int_equal(cs_f32_to_f16(nextafterf(middle, next)), bits + 1);
  }
  assert_int_equal(cs_f32_to_f16(65519.0f), 0x7bff);
  assert_int_equal(cs_f32_to_f16(65520.0f), 0x7c00);
  assert_int_equal(cs_f32_to_f16(1e30f), 0x7c00);
  assert_int_equal(cs_f32_to_f16(-INFINITY), 0xfc00);
}

static void test_bf16(void **state) {
  (void)state;
  assert_int_equal(cs_f32_to_bf16(1.0f), 0x3f80);
  assert_int_equal(cs_f32_to_bf16(1.00390625f), 0x3f80); /* a tie: to even */
  assert_int_equal(cs_f32_to_bf16(1.01171875f), 0x3f82); /* a tie: to even, upwards */
  assert_int_equal(cs_f32_to_bf16(1.004f), 0x3f81);
  assert_int_equal(cs_f32_to_bf16(3.4e38f), 0x7f80);
  assert_true(isnan(cs_bf16_to_f32(cs_f32_to_bf16(NAN))));
  assert_true(cs_bf16_to_f32(0xc040) == -3.0f);
}

static void test_statistics(void **state) {
  (void)state;
  const double samples[] = {5, 1, 4, 2, 3};
  cs_stats stats;
  assert_null(cs_stats_of(samples, 5, &stats));
  assert_true(stats.median == 3 && stats.min == 1 && stats.max == 5 && stats.mean == 3);
  assert_true(fabs(stats.p10 - 1.4) < 1e-12 && fabs(stats.p90 - 4.6) < 1e-12);
  assert_true(fabs(stats.variation - sqrt(2.5) / 3) < 1e-12);
  assert_true(samples[0] == 5);
  assert_null(cs_stats_of(samples, 0, &stats));
  assert_int_equal(stats.n, 0);
}

static void test_statuses(void **state) {
  (void)state;
  cs_status st = cs_annotate(cs_error(CS_CODE_BAD_INPUT, "found %d, wanted %d", 1, 2), "a.json: ");
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  assert_int_equal(cs_status_exit_code(st), 3);
  assert_string_equal(cs_status_message(st), "a.json: found 1, wanted 2");
  cs_status_free(st);
  assert_null(cs_annotate(CS_OK, "never"));
  assert_int_equal(cs_status_exit_code(CS_OK), 0);
  assert_string_equal(cs_status_message(CS_OK), "ok");
}

static void test_strings(void **state) {
  (void)state;
  cs_strbuf buffer = {0};
  char *text = NULL;
  for (int i = 0; i < 1000; i++) cs_strbuf_printf(&buffer, "%03d,", i);
  cs_strbuf_printf(&buffer, "%0500d", 7);
  assert_null(cs_strbuf_take(&buffer, &text));
  assert_int_equal(strlen(text), 4500);
  assert_memory_equal(text + 3996, "999,000", 7);
  free(text);
  assert_null(cs_strbuf_take(&buffer, &text));
  assert_string_equal(text, "");
  free(text);
}

static void test_bytes(void **state) {
  (void)state;
  const struct {
    const char *text;
    int64_t bytes;
  } good[] = {{"0", 0},
              {"12", 12},
              {"1024k", 1 << 20},
              {"3K", 3072},
              {"64M", 64 << 20},
              {"2G", INT64_C(2) << 30},
              {"9223372036854775807", INT64_MAX}};
  const char *const bad[] = {"",
                             "M",
                             "k",
                             " 1",
                             "+1",
                             "-1",
                             "1.5M",
                             "1T",
                             "1kB",
                             "x",
                             "1 M",
                             "9223372036854775808",
                             "9007199254740992k",
                             "99999999999G"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    int64_t bytes = -1;
    assert_true(cs_parse_bytes(good[i].text, &bytes));
    assert_int_equal(bytes, good[i].bytes);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    int64_t bytes = -1;
    if (cs_parse_bytes(bad[i], &bytes)) fail_msg("\"%s\" is %lld bytes", bad[i], (long long)bytes);
  }
}

static void test_overflow(void **state) {
  (void)state;
  int64_t out;
  assert_false(cs_mul_i64(INT64_MAX / 2 + 1, 2, &out));
  assert_true(cs_mul_i64(3, -4, &out) && out == -12);
  assert_false(cs_add_i64(INT64_MAX, 1, &out));
}

typedef struct loop_state {
  atomic_int visits[1000];
  atomic_int total;
} loop_state;

static cs_status visit(void *user, int64_t index, int worker) {
  loop_state *loop = user;
  if (worker < 0 || worker >= 4) return cs_error(CS_CODE_INTERNAL, "worker %d", worker);
  atomic_fetch_add(&loop->visits[index], 1);
  return CS_OK;
}

static cs_status fail_at_ten(void *user, int64_t index, int worker) {
  (void)worker;
  loop_state *loop = user;
  atomic_fetch_add(&loop->total, 1);
  return index == 10 ? cs_error(CS_CODE_INTERNAL, "ten") : CS_OK;
}

static void test_parallel_loop(void **state) {
  (void)state;
  static loop_state loop;
  assert_null(cs_parallel_for(1000, 4, visit, &loop));
  for (int i = 0; i < 1000; i++) assert_int_equal(loop.visits[i], 1);
  cs_status st = cs_parallel_for(100000, 4, fail_at_ten, &loop);
  assert_string_equal(cs_status_message(st), "ten");
  cs_status_free(st);
  assert_true(loop.total < 100000);
  assert_null(cs_parallel_for(0, 4, visit, &loop));
}

/* Ranks of the binomial distribution, as in tables of the sign test. */
static void test_median_interval(void **state) {
  (void)state;
  static const struct {
    int n, rank; /* of the lower end */
    double confidence;
  } known[] = {{1, 1, 0},         {5, 1, 0.9375},  {6, 1, 0.96875}, {7, 1, 0.984375},
               {15, 4, 0.964844}, {21, 6, 0.9734}, {40, 14, 0.9615}};
  double samples[40];
  cs_median_interval found;
  for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
    int n = known[k].n;
    for (int i = 0; i < n; i++) samples[i] = (i * 7) % n + 1; /* 1 … n in some order */
    if (n % 7 == 0) {
      for (int i = 0; i < n; i++) samples[i] = n - i;
    }
    if (cs_median_interval_of(samples, n, 0.95, &found) != CS_OK) fail();
    if (found.low != known[k].rank || found.high != n + 1 - known[k].rank ||
        fabs(found.confidence - known[k].confidence) > 1e-4) {
      fail_msg("%d samples: %g to %g with %g", n, found.low, found.high, found.confidence);
    }
  }
  if (cs_median_interval_of(NULL, 0, 0.95, &found) != CS_OK) fail();
  assert_true(found.low == 0 && found.high == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_philox_known_answer),
      cmocka_unit_test(test_normal_moments),
      cmocka_unit_test(test_median_interval),
      cmocka_unit_test(test_streams_differ),
      cmocka_unit_test(test_f16_exhaustive),
      cmocka_unit_test(test_bf16),
      cmocka_unit_test(test_statistics),
      cmocka_unit_test(test_statuses),
      cmocka_unit_test(test_strings),
      cmocka_unit_test(test_bytes),
      cmocka_unit_test(test_overflow),
      cmocka_unit_test(test_parallel_loop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
