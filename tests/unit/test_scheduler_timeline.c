/* Predicted timelines: from times alone, and by the SM model where kernels are known. */
#include <math.h>

#include "scheduler/sm_schedule.h"
#include "unit/h100_sm.h"
#include "unit/scheduler_fixture.h"

#define NEAR 1e-6 /* microseconds */

/* A kernel of `blocks` blocks, one of which fills an SM. */
static cs_kernel_profile whole_sms(int blocks) {
  cs_kernel_profile kernel = {.info = {.name = "k",
                                       .grid = {blocks, 1, 1},
                                       .block = {1024, 1, 1},
                                       .registers = 64,
                                       .blocks_per_unit = 1}};
  return kernel;
}

static void near(double found, double wanted) {
  if (!(fabs(found - wanted) <= NEAR)) fail_msg("found %.9g, wanted %.9g", found, wanted);
}

/* Tasks 0 and 1 beside each other, 2 behind both; all take `us`. */
static void diamond(fixture *f, double us) {
  int both[] = {0, 1};
  fixture_init(f, 3);
  task_behind(f, NULL, 0, us);
  task_behind(f, NULL, 0, us);
  task_behind(f, both, 2, us);
}

static void give_kernels(fixture *f, int task, const cs_kernel_profile *kernels, int n) {
  f->choices[task].choices[0].kernels = kernels;
  f->choices[task].choices[0].n_kernels = n;
}

/* Task 1 on a stream of its own. */
static cs_plan *plan_of(const fixture *f, bool parallel, cs_sm_model *model) {
  cs_plan *plan = NULL;
  cs_policy_input input = fixture_input(f, 2, 0, 0);
  input.model = model;
  assert_ok(cs_plan_make(parallel ? &cs_policy_streams : &cs_policy_sequential, &input, &plan));
  assert_int_equal(plan->n_streams, parallel ? 2 : 1);
  return plan;
}

static void check(const fixture *f, bool parallel, cs_sm_model *model, double wanted) {
  cs_plan *plan = plan_of(f, parallel, model);
  near(plan->predicted_us, wanted);
  near(plan->tasks[2].end_us, wanted);
  assert_true(plan->tasks[2].start_us >= plan->tasks[0].end_us);
  assert_true(plan->tasks[2].start_us >= plan->tasks[1].end_us);
  cs_plan_destroy(plan);
}

typedef struct modelled {
  fixture f;
  cs_sm_model *model;
} modelled;

static int set_up(void **state) {
  modelled *m = calloc(1, sizeof *m);
  diamond(&m->f, 10);
  assert_ok(cs_sm_model_create(&four, &ideal, &m->model));
  *state = m;
  return 0;
}

static int tear_down(void **state) {
  modelled *m = *state;
  cs_sm_model_destroy(m->model);
  fixture_free(&m->f);
  free(m);
  return 0;
}

/* Kernels that fill all SMs gain nothing from streams; those that fill half of them do. */
static void full_kernels_run_one_after_the_other(void **state) {
  modelled *m = *state;
  const cs_kernel_profile full = whole_sms(4), half = whole_sms(2);
  for (int t = 0; t < 3; t++) give_kernels(&m->f, t, &full, 1);
  check(&m->f, true, NULL, 20);
  check(&m->f, true, m->model, 30);
  check(&m->f, false, m->model, 30);
  for (int t = 0; t < 3; t++) give_kernels(&m->f, t, &half, 1);
  check(&m->f, true, m->model, 20);
  check(&m->f, false, m->model, 30);
}

static void without_kernels_a_task_runs_beside_what_there_is(void **state) {
  modelled *m = *state;
  const cs_kernel_profile full = whole_sms(4);
  check(&m->f, true, m->model, 20); /* no kernels at all */
  give_kernels(&m->f, 0, &full, 1);
  check(&m->f, true, m->model, 20);
  check(&m->f, false, m->model, 30);
}

/* Six waves of the first kernel and two of the second share the candidate's 10 us. */
static void kernels_of_a_candidate_run_in_a_row(void **state) {
  modelled *m = *state;
  const cs_kernel_profile pair[] = {whole_sms(24), whole_sms(8)}, full = whole_sms(4);
  give_kernels(&m->f, 0, pair, 2);
  give_kernels(&m->f, 1, &full, 1);
  give_kernels(&m->f, 2, pair, 2);
  check(&m->f, false, m->model, 30);
  check(&m->f, true, m->model, 30);
}

static void steps_are_checked(void **state) {
  modelled *m = *state;
  const cs_kernel_profile full = whole_sms(4);
  cs_sm_operation operation;
  int itself = 0;
  double us;
  assert_ok(cs_sm_operation_prepare(m->model, "a", &full, 1, 5, &operation));
  cs_sm_step step = {.operation = &operation};
  assert_ok(cs_sm_schedule_simulate(m->model, NULL, &step, 1, NULL, &us));
  near(us, 5);
  step.waits = &itself;
  step.n_waits = 1;
  assert_fails(cs_sm_schedule_simulate(m->model, NULL, &step, 1, NULL, &us), CS_CODE_BAD_INPUT,
               "step 0");
  cs_sm_operation_clear(&operation);
  assert_fails(cs_sm_operation_prepare(m->model, "some:id", NULL, 0, 0, &operation),
               CS_CODE_BAD_INPUT, "some:id");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(full_kernels_run_one_after_the_other, set_up, tear_down),
      cmocka_unit_test_setup_teardown(without_kernels_a_task_runs_beside_what_there_is, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(kernels_of_a_candidate_run_in_a_row, set_up, tear_down),
      cmocka_unit_test_setup_teardown(steps_are_checked, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
