/* What the times of requests in flight tell: rates, latencies, whatever order they end in. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka wants the ones above first */
#include <cmocka.h>
/* clang-format on */

#include "runtime/pipeline.h"

static cs_pipeline_rate rate_of(const cs_request_times *times, int lead, int timed, int tail,
                                int64_t batch) {
  cs_pipeline_rate rate = {.host_images_per_s = 7, .joules = 11};
  cs_status st = cs_pipeline_rate_of(times, lead, timed, tail, batch, &rate);
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
  assert_int_equal(rate.requests, timed);
  assert_int_equal(rate.all_requests, lead + timed + tail);
  assert_true(rate.host_images_per_s == 7 && rate.joules == 11); /* not of the times */
  return rate;
}

static void near(double found, double wanted) {
  if (!(fabs(found - wanted) <= 1e-9 * fabs(wanted))) fail_msg("%g, wanted %g", found, wanted);
}

/* One after the other, 100 µs each, from 1 s on: 10000 a second whatever leads and follows. */
static void test_a_steady_flow(void **state) {
  (void)state;
  cs_request_times times[16];
  for (int i = 0; i < 16; i++) times[i] = (cs_request_times){1e6 + 100 * i, 1e6 + 100 * i + 100};
  for (int lead = 1; lead < 4; lead++) {
    for (int tail = 0; tail < 3; tail++) {
      cs_pipeline_rate rate = rate_of(times, lead, 10, tail, 1);
      near(rate.seconds, 1e-3);
      near(rate.images_per_s, 10000);
      near(rate.latency_us, 100);
      near(rate.latency_p10_us, 100);
      near(rate.latency_p90_us, 100);
    }
  }
}

/* Two in flight: each takes 200 µs, one ends every 100 µs; images, not requests, are counted. */
static void test_requests_that_overlap(void **state) {
  (void)state;
  cs_request_times times[12];
  for (int i = 0; i < 12; i++) times[i] = (cs_request_times){100 * i, 100 * i + 200};
  cs_pipeline_rate rate = rate_of(times, 4, 6, 2, 32);
  near(rate.seconds, 600e-6);
  near(rate.images_per_s, 6 * 32 / 600e-6);
  near(rate.latency_us, 200);
}

/* The second timed request ends before the first, and one of the tail before the last timed one:
 * the window lies between the second and the sixth end, latencies are of the four in the middle
 * (80, 100, 110, 290). */
static void test_requests_that_end_out_of_order(void **state) {
  (void)state;
  static const cs_request_times times[] = {{0, 110},   {0, 100},   {100, 210}, {110, 190},
                                           {190, 480}, {210, 310}, {310, 420}};
  cs_pipeline_rate rate = rate_of(times, 2, 4, 1, 3);
  near(rate.seconds, (420 - 110) * 1e-6);
  near(rate.images_per_s, 4 * 3 / 310e-6);
  near(rate.latency_us, 105);
  near(rate.latency_p10_us, 80 + 0.3 * (100 - 80));
  near(rate.latency_p90_us, 110 + 0.7 * (290 - 110));
}

/* Slow beginnings and slow ends are not in the window, nor in the latencies. */
static void test_what_leads_and_follows_does_not_count(void **state) {
  (void)state;
  static const cs_request_times times[] = {{0, 5000},    {0, 9000},    {9000, 9010},
                                           {9010, 9020}, {9020, 9030}, {9030, 99999}};
  cs_pipeline_rate rate = rate_of(times, 2, 3, 1, 1);
  near(rate.seconds, 30e-6);
  near(rate.latency_us, 10);
  near(rate.latency_p90_us, 10);
}

/* One request timed: it is median and quantiles. */
static void test_one_request(void **state) {
  (void)state;
  static const cs_request_times times[] = {{0, 50}, {40, 120}};
  cs_pipeline_rate rate = rate_of(times, 1, 1, 0, 8);
  near(rate.images_per_s, 8 / 70e-6);
  near(rate.latency_us, 80);
  near(rate.latency_p10_us, 80);
  near(rate.latency_p90_us, 80);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_steady_flow),
      cmocka_unit_test(test_requests_that_overlap),
      cmocka_unit_test(test_requests_that_end_out_of_order),
      cmocka_unit_test(test_what_leads_and_follows_does_not_count),
      cmocka_unit_test(test_one_request),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
