/* Parts of the device and priorities in coselect's model half. */
#include "unit/parts_fixture.h"

#include <math.h>

static void streams_go_into_parts_and_out(void **state) {
  (void)state;
  parts_block b;
  cs_coselect *c = NULL;
  cs_configuration configuration, before;
  const int from[] = {0, 1}, to[] = {1, 0}, same[] = {1, 1}, missing[] = {0, 2};
  parts_block_init(&b);
  b.input.n_splits = 2;
  b.input.splits[0] = quarter;
  b.input.splits[1] = half;
  assert_ok(cs_coselect_create(&b.input, &c));
  parts_plain(&configuration);
  parts_plain(&before);
  assert_false(cs_coselect_enter_parts(c, 0, same, &quarter, to, &configuration));
  assert_false(cs_coselect_enter_parts(c, 0, missing, &quarter, to, &configuration));
  assert_false(cs_coselect_leave_parts(c, 0, &configuration));
  configuration.places[3].stream = CS_MAX_SPLIT_STREAMS; /* more streams than a split may have */
  assert_false(cs_coselect_enter_parts(c, 0, from, &quarter, to, &configuration));
  assert_int_equal(configuration.n_parts, 0);
  configuration.places[3].stream = 1;
  assert_true(cs_coselect_enter_parts(c, 0, from, &quarter, to, &configuration));
  assert_true(cs_configuration_valid(&configuration, &b.input));
  assert_int_equal(configuration.n_parts, 2);
  assert_int_equal(configuration.parts[0], 4);
  for (int p = 0; p < PARTS_TASKS; p++) {
    int wanted = p == 0 ? 1 : p < 4 ? 0 : -1; /* the last one is not of this window */
    assert_int_equal(configuration.part_of[configuration.places[p].stream], wanted);
  }
  /* Another split is not mixed with this one. */
  cs_configuration again;
  assert_ok(cs_configuration_copy(&configuration, &again));
  assert_false(cs_coselect_enter_parts(c, 0, from, &half, to, &again));
  cs_configuration_free(&again);
  cs_configuration_number_streams(&configuration);
  assert_true(cs_configuration_valid(&configuration, &b.input));
  assert_true(cs_coselect_leave_parts(c, 0, &configuration));
  cs_configuration_number_streams(&configuration);
  assert_int_equal(configuration.n_parts, 0);
  assert_true(cs_configuration_equal(&configuration, &before));
  cs_configuration_free(&before);
  /* With as many streams as are in use none is left for a part. */
  b.input.max_streams = 2;
  assert_false(cs_coselect_enter_parts(c, 0, from, &quarter, to, &configuration));
  cs_configuration_free(&configuration);
  b.input.max_streams = 4; /* as it was made with */
  cs_coselect_destroy(c);
  fixture_free(&b.f);
}

/* Worked out by hand: unsplit the chain waits for the last wave of task 0; on a quarter it runs
 * beside it, which takes six waves on the rest. */
static void the_model_knows_parts_and_priorities(void **state) {
  (void)state;
  parts_block b;
  cs_coselect *c = NULL;
  cs_configuration configuration;
  const int from[] = {0, 1}, to[] = {1, 0};
  parts_block_init(&b);
  assert_ok(cs_coselect_create(&b.input, &c));
  parts_plain(&configuration);
  double plain = parts_predicted(c, &configuration);
  assert_in_range((int)plain, 40 + 45 + 5 - 5, 40 + 45 + 5 + 10);
  for (int p = 1; p <= 3; p++) cs_launch_toggle_priority(configuration.places, PARTS_TASKS, p);
  double high = parts_predicted(c, &configuration);
  assert_true(high < plain - 5);
  for (int p = 1; p <= 3; p++) cs_launch_toggle_priority(configuration.places, PARTS_TASKS, p);
  assert_true(cs_coselect_enter_parts(c, 0, from, &quarter, to, &configuration));
  double split = parts_predicted(c, &configuration);
  assert_in_range((int)split, 60, 60 + 5 + 10);
  configuration.n_parts = 0; /* nothing of the split stays */
  assert_true(parts_predicted(c, &configuration) == plain);
  print_message("plain %.1f us, the chain of high priority %.1f, on a quarter %.1f\n", plain, high,
                split);
  cs_configuration_free(&configuration);
  cs_coselect_destroy(c);
  fixture_free(&b.f);
}

static double planned_us(const cs_policy_input *input, int *n_parts, int *high) {
  cs_plan *plan = NULL;
  cs_policy_input given = *input;
  assert_ok(cs_sm_model_create(input->device, NULL, &given.model));
  assert_ok(cs_plan_make(&cs_policy_coselect, &given, &plan));
  double us = plan->predicted_us;
  *n_parts = plan->n_parts;
  *high = 0;
  for (int p = 0; p < plan->n_tasks; p++) *high += plan->tasks[p].priority;
  cs_plan_destroy(plan);
  cs_sm_model_destroy(given.model);
  return us;
}

/* Only what is allowed is planned, and what is planned is expected to gain. */
static void plans_use_what_they_may(void **state) {
  (void)state;
  parts_block b;
  int parts, high;
  parts_block_init(&b);
  double plain = planned_us(&b.input, &parts, &high);
  assert_int_equal(parts, 0);
  assert_int_equal(high, 0);
  b.input.n_splits = 2;
  b.input.splits[0] = half;
  b.input.splits[1] = quarter;
  double split = planned_us(&b.input, &parts, &high);
  assert_int_equal(parts, 2);
  assert_int_equal(high, 0);
  assert_true(split < 0.98 * plain);
  b.input.n_splits = 0;
  b.input.priorities = true;
  double prioritised = planned_us(&b.input, &parts, &high);
  assert_int_equal(parts, 0);
  assert_true(high > 0);
  assert_true(prioritised < plain);
  print_message("planned: %.1f us, with parts %.1f, with priorities %.1f\n", plain, split,
                prioritised);
  fixture_free(&b.f);
}

/* A cluster that a part does not hold is no candidate for it, and no failure. */
static void what_does_not_fit_a_part_is_infinitely_slow(void **state) {
  (void)state;
  parts_block b;
  cs_coselect *c = NULL;
  cs_configuration configuration;
  const int from[] = {0, 1}, to[] = {0, 1};
  parts_block_init(&b);
  b.kernels[0].info.cluster[0] = 8; /* on a part of four SMs, each holding one block */
  assert_ok(cs_coselect_create(&b.input, &c));
  parts_plain(&configuration);
  assert_true(isfinite(parts_predicted(c, &configuration)));
  assert_true(cs_coselect_enter_parts(c, 0, from, &quarter, to, &configuration));
  assert_true(isinf(parts_predicted(c, &configuration)));
  cs_configuration_free(&configuration);
  cs_coselect_destroy(c);
  fixture_free(&b.f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(streams_go_into_parts_and_out),
      cmocka_unit_test(the_model_knows_parts_and_priorities),
      cmocka_unit_test(plans_use_what_they_may),
      cmocka_unit_test(what_does_not_fit_a_part_is_infinitely_slow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
