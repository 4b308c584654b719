/* The SM model where the device is split and where launches have priorities, against timelines
 * worked out by hand on four SMs. */
#include "unit/sm_fixture.h"

static void takes_in_parts(fixture *f, cs_sm_parts parts, double total_us) {
  assert_ok(cs_sm_simulate_parts(f->model, &parts, f->launches, f->n, 1, f->spans, &f->timeline));
  assert_near(f->timeline.total_us, total_us);
}

/* A kernel of four blocks, each of which fills an SM for 10 us: on a part of one SM four waves, of
 * three SMs two. */
static void test_a_part_has_fewer_sms(void **state) {
  (void)state;
  const struct {
    int part;
    double us;
  } cases[] = {{-1, 10}, {0, 40}, {1, 20}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f;
    open_model(&f, &ideal);
    int k = add(&f, filling(4), 10, 0);
    f.launches[k].part = cases[i].part;
    takes_in_parts(&f, (cs_sm_parts){2, {1, 3}}, cases[i].us);
    cs_sm_model_destroy(f.model);
  }
}

/* Without a split a part means nothing, whatever it is. */
static void test_not_split(void **state) {
  (void)state;
  fixture f;
  open_model(&f, &ideal);
  int k = add(&f, filling(4), 10, 0);
  f.launches[k].part = 77;
  takes(&f, 10);
  takes_in_parts(&f, (cs_sm_parts){0}, 10);
  cs_sm_model_destroy(f.model);
}

/* In parts neither waits for the other, where on the whole device the second one would come after
 * the first: 8 blocks in 4 waves on 2 SMs beside 2 blocks in one. */
static void test_parts_keep_apart(void **state) {
  (void)state;
  fixture f;
  open_model(&f, &ideal);
  int a = add(&f, filling(8), 20, 0), b = add(&f, filling(2), 10, 1);
  takes(&f, 30);
  runs(&f, b, 20, 30);
  f.launches[a].part = 0;
  f.launches[b].part = 1;
  takes_in_parts(&f, (cs_sm_parts){2, {2, 2}}, 40);
  runs(&f, a, 0, 40);
  runs(&f, b, 0, 10);
  assert_near(f.timeline.overlap, 0.25);
  assert_string_equal(cs_sm_timeline_limiter(&f.timeline), "none");
  cs_sm_model_destroy(f.model);
}

/* One of the whole device takes what the parts leave, and SMs of no part are free for it only. */
static void test_whole_beside_parts(void **state) {
  (void)state;
  fixture f;
  open_model(&f, &ideal);
  int a = add(&f, filling(4), 10, 0), b = add(&f, filling(3), 10, 1);
  f.launches[a].part = 0; /* one SM: four waves */
  f.launches[b].part = -1;
  takes_in_parts(&f, (cs_sm_parts){2, {1, 1}}, 40);
  runs(&f, a, 0, 40);
  runs(&f, b, 0, 10);
  cs_sm_model_destroy(f.model);
}

/* Both ready at once: the one of high priority goes first, though it was launched last. */
static void test_priority_goes_first(void **state) {
  (void)state;
  fixture f;
  open_model(&f, &ideal);
  int a = add(&f, filling(4), 10, 0), b = add(&f, filling(4), 7, 1);
  takes(&f, 17);
  runs(&f, a, 0, 10);
  f.launches[b].priority = 1;
  takes(&f, 17);
  runs(&f, b, 0, 7);
  runs(&f, a, 7, 17);
  f.launches[a].priority = 1; /* both: as without */
  takes(&f, 17);
  runs(&f, a, 0, 10);
  cs_sm_model_destroy(f.model);
}

/* One that becomes ready while another has blocks left goes before those, but runs on beside what
 * runs already: nothing is preempted. Two waves of 10 us, between them the 7 us of high priority.
 */
static void test_priority_between_waves(void **state) {
  (void)state;
  fixture f;
  open_model(&f, &ideal);
  int small = add(&f, kernel(1, 32, 32, 0), 1, 1);
  int waves = add(&f, filling(8), 20, 0), urgent = add(&f, filling(4), 7, 1);
  f.launches[small].priority = f.launches[urgent].priority = 1;
  assert_ok(cs_sm_simulate(f.model, f.launches, f.n, 1, f.spans, &f.timeline));
  assert_true(f.spans[urgent].start_us < f.spans[waves].end_us - 7);
  double with = f.spans[urgent].end_us;
  f.launches[urgent].priority = 0;
  assert_ok(cs_sm_simulate(f.model, f.launches, f.n, 1, f.spans, &f.timeline));
  assert_true(f.spans[urgent].end_us > with);
  cs_sm_model_destroy(f.model);
}

static void test_impossible(void **state) {
  (void)state;
  fixture f;
  open_model(&f, &ideal);
  int k = add(&f, filling(4), 10, 0);
  cs_sm_parts more = {2, {3, 2}}, none = {2, {0, 4}}, good = {2, {2, 2}};
  assert_fails(cs_sm_simulate_parts(f.model, &more, f.launches, f.n, 1, NULL, &f.timeline),
               CS_CODE_BAD_INPUT, "5 SMs together");
  assert_fails(cs_sm_simulate_parts(f.model, &none, f.launches, f.n, 1, NULL, &f.timeline),
               CS_CODE_BAD_INPUT, "wanted");
  f.launches[k].part = 0;
  f.kernels[k].cluster = 4; /* on two SMs, one block on each */
  assert_fails(cs_sm_simulate_parts(f.model, &good, f.launches, f.n, 1, NULL, &f.timeline),
               CS_CODE_BAD_INPUT, "launch 0: the SMs of part 0 hold no cluster of 4");
  f.kernels[k].cluster = 1;
  f.launches[k].part = 2;
  assert_fails(cs_sm_simulate_parts(f.model, &good, f.launches, f.n, 1, NULL, &f.timeline),
               CS_CODE_BAD_INPUT, "launch 0: part 2");
  cs_sm_model_destroy(f.model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_part_has_fewer_sms), cmocka_unit_test(test_not_split),
      cmocka_unit_test(test_parts_keep_apart),     cmocka_unit_test(test_whole_beside_parts),
      cmocka_unit_test(test_priority_goes_first),  cmocka_unit_test(test_priority_between_waves),
      cmocka_unit_test(test_impossible),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
