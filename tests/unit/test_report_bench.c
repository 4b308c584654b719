/* What a bench's records tell together: shares, how many times as fast as naive rungs, sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/bench.h"

/* A record of a case with a naive rung and the best one, microseconds; naive 0: skipped. */
static void add(cs_strbuf *out, const char *device, const char *dtype, const char *which,
                double naive_us, double best_us) {
  char naive[128] = "{\"rung\":\"naive\",\"skipped\":\"too slow\"}";
  if (naive_us > 0)
    snprintf(naive, sizeof naive,
             "{\"rung\":\"naive\",\"id\":\"n\",\"warm_us\":%g,\"cold_us\":%g,\"samples\":5}",
             naive_us, naive_us);
  cs_strbuf_printf(
      out,
      "{\"schema\":\"convsched.bench/1\",\"bench\":\"convtranspose\",\"commit\":\"c\",\"started\":"
      "\"s\",\"command\":\"x\",\"device\":{\"spec\":\"%s\",\"name\":\"N\",\"backend\":\"%s\"},"
      "\"dtype\":\"%s\",\"batch\":4,\"case\":\"%s\",\"at\":1,\"flops\":2e6,\"bytes\":1e3,"
      "\"peak_flops\":4e12,\"peak_bandwidth\":1e9,\"rungs\":[%s],"
      "\"best\":{\"id\":\"b\",\"warm_us\":%g,\"cold_us\":9,\"samples\":7}}\n",
      device, strcmp(device, "cpu") == 0 ? "cpu" : "cuda", dtype, which, naive, best_us);
}

static cs_bench_records parse(cs_strbuf *text) {
  cs_bench_records records;
  char *all = NULL;
  assert_null(cs_strbuf_take(text, &all));
  cs_status st = cs_bench_records_parse(all, strlen(all), "test", &records);
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
  free(all);
  return records;
}

static void near(double found, double wanted) {
  if (!(fabs(found - wanted) <= 1e-9 * fabs(wanted))) fail_msg("%g, wanted %g", found, wanted);
}

static void rungs_are_compared_with_naive_ones(void **state) {
  (void)state;
  cs_strbuf text = {0};
  add(&text, "cpu", "f32", "a", 1000, 10);
  add(&text, "cpu", "f16", "a", 2000, 20);
  add(&text, "cuda:0", "f16", "a", 50, 2);
  add(&text, "cuda:0", "tf32", "a", 50, 4);
  add(&text, "cuda:0", "f16", "b", 50, 2);
  cs_bench_records records = parse(&text);
  assert_int_equal(records.n, 10);
  const cs_bench_row *rows = records.rows;
  near(rows[1].against_own, 100);
  near(rows[1].against_cpu, 100);
  near(rows[5].against_own, 25);
  near(rows[5].against_cpu, 1000); /* of the same precision */
  near(rows[7].against_cpu, 250);  /* of tf32 there is none: f32's */
  assert_true(isnan(rows[9].against_cpu));
  near(rows[5].flops, 1e12);
  near(rows[5].of_peak, 0.25);
  near(rows[5].of_roofline, 0.5); /* 1 us for a thousand bytes, 0.5 for its products */
  assert_true(rows[1].best && !rows[0].best);
  cs_bench_records_free(&records);
}

/* What one case has seen of the device counts for the others of that device and precision. */
static void shares_are_of_the_highest_peak(void **state) {
  (void)state;
  cs_strbuf text = {0}, fast = {0};
  char *faster = NULL;
  add(&text, "cuda:0", "f16", "a", 50, 2);
  add(&text, "cuda:0", "tf32", "a", 50, 2);
  add(&fast, "cuda:0", "f16", "b", 50, 1);
  assert_null(cs_strbuf_take(&fast, &faster));
  char *peak = strstr(faster, "4e12");
  assert_non_null(peak);
  peak[0] = '8';
  cs_strbuf_printf(&text, "%s", faster);
  free(faster);
  cs_bench_records records = parse(&text);
  near(records.rows[1].of_peak, 0.125);
  near(records.rows[3].of_peak, 0.25);
  near(records.rows[5].of_peak, 0.25);
  near(records.rows[1].of_roofline, 0.5); /* 1 us for a thousand bytes */
  cs_bench_records_free(&records);
}

static void sums_are_of_cases_with_a_naive_time(void **state) {
  (void)state;
  cs_strbuf text = {0};
  cs_table table;
  char *told = NULL;
  add(&text, "cpu", "f32", "a", 1000, 10);
  add(&text, "cpu", "f32", "b", 3000, 10);
  add(&text, "cpu", "f32", "c", 0, 10);
  cs_bench_records records = parse(&text);
  cs_bench_table_of(&records, &table);
  assert_null(cs_table_to_text(&table, &told));
  assert_non_null(strstr(told,
                         "convtranspose, f32, batch 4: sequential naive loops on the CPU 4 ms, "
                         "the fastest on cpu 0.02 ms: 200x, over 2 of 3 cases."));
  assert_non_null(strstr(told, "skipped: too slow"));
  free(told);
  cs_table_free(&table);
  cs_bench_records_free(&records);
}

static void curves_hold_what_was_measured(void **state) {
  (void)state;
  cs_strbuf text = {0}, svg = {0};
  char *drawn = NULL;
  add(&text, "cpu", "f32", "a", 1000, 10);
  add(&text, "cpu", "f32", "b", 0, 10);
  cs_bench_records records = parse(&text);
  assert_null(cs_bench_overview(&records, NULL, &svg));
  assert_null(cs_strbuf_take(&svg, &drawn));
  assert_non_null(strstr(drawn, "cpu naive f32 batch 4"));
  assert_null(strstr(drawn, "cpu best")); /* it is one of the rungs */
  free(drawn);
  cs_bench_records_free(&records);
}

/* Of three devices' naive rungs in four dtypes, and the best, there are more lines than colours. */
static void a_page_tells_of_lines_that_it_leaves_out(void **state) {
  (void)state;
  static const char *const dtypes[] = {"f32", "tf32", "f16", "bf16"};
  static const char *const devices[] = {"cpu", "cuda:0", "cuda:1"};
  for (int n = 2; n <= 3; n++) {
    cs_strbuf text = {0};
    char *page = NULL;
    for (int d = 0; d < 4 * n; d++) add(&text, devices[d / 4], dtypes[d % 4], "a", 1000, 10);
    cs_bench_records records = parse(&text);
    assert_null(cs_bench_page_of(&records, &page));
    assert_int_equal(strstr(page, "more lines") != NULL, n > 2);
    assert_int_equal(strstr(page, " 16 more lines are in the table alone.") != NULL, n > 2);
    free(page);
    cs_bench_records_free(&records);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rungs_are_compared_with_naive_ones),
      cmocka_unit_test(shares_are_of_the_highest_peak),
      cmocka_unit_test(sums_are_of_cases_with_a_naive_time),
      cmocka_unit_test(curves_hold_what_was_measured),
      cmocka_unit_test(a_page_tells_of_lines_that_it_leaves_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
