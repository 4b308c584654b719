/* The coselect policy: configurations and their text, what it is worth against trying everything,
 * and measured configurations. */
#include <math.h>

#include "scheduler/coselect.h"
#include "unit/h100_sm.h"
#include "unit/scheduler_fixture.h"

#define AT(t, s, c) \
  { .task = t, .stream = s, .choice = c }

/* Sixteen SMs as an H100's. */
static const cs_device_info device = {
    .name = "sixteen SMs", .backend = "cuda", .units = 16, .unit = H100_SM};

static cs_kernel_profile kernels[256]; /* of the choices of one fixture */
static int n_kernels;

/* A choice of one kernel: few or many blocks, lean or hungry for registers or shared memory. */
static void add_kernel_choice(fixture *f, cs_rng *rng, int task) {
  cs_kernel_profile *kernel = &kernels[n_kernels++];
  add_choice(f, task, 5 + 20 * cs_rng_uniform(rng), 256 * below(rng, 8));
  *kernel = (cs_kernel_profile){.info = {.grid = {8 + 8 * below(rng, 12), 1, 1},
                                         .block = {128 << below(rng, 2), 1, 1},
                                         .cluster = {1, 1, 1},
                                         .registers = 32 << below(rng, 3),
                                         .dynamic_shared = 16384 * below(rng, 7)},
                                .counted = true};
  snprintf(kernel->info.name, sizeof kernel->info.name, "k%d", n_kernels);
  for (int i = 0; i < CS_COUNTER_COUNT; i++)
    kernel->counters.value[i] = 10 + 30 * cs_rng_uniform(rng);
  cs_choice *choice = &f->choices[task].choices[f->choices[task].n - 1];
  choice->kernels = kernel;
  choice->n_kernels = 1;
}

static int compare_choices(const void *a, const void *b) {
  const cs_choice *x = a, *y = b;
  return (x->cold_us > y->cold_us) - (x->cold_us < y->cold_us);
}

/* n tasks, each reading one of those before or the input, with three candidates each. */
static void random_small(fixture *f, cs_rng *rng, int n) {
  fixture_init(f, n);
  n_kernels = 0;
  int tensors[8];
  tensors[0] = add_tensor(f, add_buffer(f, 1024, CS_BUFFER_INPUT));
  for (int t = 0; t < n; t++) {
    int from = below(rng, t + 1), pred = from - 1;
    tensors[t + 1] = add_tensor(f, add_buffer(f, 1024, CS_BUFFER_INTERMEDIATE));
    add_task(f, &tensors[from], 1, tensors[t + 1], &pred, from > 0);
    for (int c = 0; c < 3; c++) add_kernel_choice(f, rng, t);
    qsort(f->choices[t].choices, 3, sizeof(cs_choice), compare_choices);
  }
}

static cs_policy_input input_of(const fixture *f, int streams) {
  cs_policy_input input = fixture_input(f, streams, 0, 0);
  input.device = &device;
  return input;
}

/* ---- Against trying everything ---- */

typedef struct exhaustive {
  cs_coselect *c;
  cs_configuration now;
  bool placed[8];
  double best_us;
} exhaustive;

static void try_from(exhaustive *e, int position, int n_streams) {
  const cs_program *program = e->c->input->program;
  if (position == program->n_tasks) {
    double us;
    assert_ok(cs_coselect_predict(e->c, e->now.places, e->now.n, &us));
    e->best_us = fmin(e->best_us, us);
    return;
  }
  for (int t = 0; t < program->n_tasks; t++) {
    bool ready = !e->placed[t];
    for (int p = 0; p < program->tasks[t].n_preds; p++) {
      ready = ready && e->placed[program->tasks[t].preds[p]];
    }
    if (!ready) continue;
    e->placed[t] = true;
    for (int choice = 0; choice < e->c->input->choices[t].n; choice++) {
      for (int stream = 0; stream <= n_streams && stream < e->c->input->max_streams; stream++) {
        e->now.places[position] = (cs_placement){.task = t, .stream = stream, .choice = choice};
        try_from(e, position + 1, stream == n_streams ? n_streams + 1 : n_streams);
      }
    }
    e->placed[t] = false;
  }
}

static double predicted(cs_coselect *c, const cs_policy *policy) {
  cs_plan *plan = NULL;
  cs_configuration configuration;
  double us;
  assert_ok(cs_plan_make(policy, c->input, &plan));
  assert_ok(cs_configuration_of_plan(plan, c->input->choices, &configuration));
  assert_ok(cs_coselect_predict(c, configuration.places, configuration.n, &us));
  cs_configuration_free(&configuration);
  cs_plan_destroy(plan);
  return us;
}

#define GRAPHS 20

static void test_against_trying_everything(void **state) {
  (void)state;
  double gap = 0, gap_of_ios = 0, gap_of_streams = 0;
  cs_rng rng;
  cs_rng_init(&rng, 3, 0);
  for (int g = 0; g < GRAPHS;) {
    fixture f;
    cs_coselect *c = NULL;
    random_small(&f, &rng, 3 + g % 2);
    cs_policy_input input = input_of(&f, 4);
    assert_ok(cs_coselect_create(&input, &c));
    assert_non_null(c->model);
    if (c->windows.n == 1) {
      cs_placement places[8];
      exhaustive e = {.c = c, .now = {places, f.program.n_tasks}, .best_us = INFINITY};
      try_from(&e, 0, 0);
      double ours = predicted(c, &cs_policy_coselect);
      assert_true(ours >= e.best_us - 1e-9);
      gap += ours / e.best_us - 1;
      gap_of_ios += predicted(c, &cs_policy_ios) / e.best_us - 1;
      gap_of_streams += predicted(c, &cs_policy_streams) / e.best_us - 1;
      g++;
    }
    cs_coselect_destroy(c);
    fixture_free(&f);
  }
  print_message(
      "mean gap to the best in the model over %d graphs: coselect %.2f %%, ios %.2f %%, "
      "streams %.2f %%\n",
      GRAPHS, 100 * gap / GRAPHS, 100 * gap_of_ios / GRAPHS, 100 * gap_of_streams / GRAPHS);
  assert_true(gap / GRAPHS <= 0.03);
  assert_true(gap < gap_of_streams && gap < gap_of_ios);
}

/* ---- The same every time ---- */

static char *plan_text(const fixture *f, const cs_policy_input *input) {
  cs_plan *plan = NULL;
  cs_configuration configuration;
  char *text = NULL;
  assert_ok(cs_plan_make(&cs_policy_coselect, input, &plan));
  assert_ok(cs_configuration_of_plan(plan, f->choices, &configuration));
  assert_ok(cs_configuration_text(&configuration, f->choices, &text));
  cs_configuration_free(&configuration);
  cs_plan_destroy(plan);
  return text;
}

static void test_the_same_input_gives_the_same_plan(void **state) {
  (void)state;
  fixture f;
  cs_rng rng;
  cs_rng_init(&rng, 5, 0);
  random_small(&f, &rng, 7);
  cs_policy_input input = input_of(&f, 4);
  char *first = plan_text(&f, &input), *again = plan_text(&f, &input);
  assert_string_equal(first, again);
  free(first);
  free(again);
  fixture_free(&f);
}

/* ---- Configurations ---- */

/* Three independent tasks of two candidates each. */
static void three(fixture *f) {
  fixture_init(f, 3);
  int tensor = add_tensor(f, add_buffer(f, 1024, CS_BUFFER_INPUT));
  for (int t = 0; t < 3; t++) {
    int output = add_tensor(f, add_buffer(f, 1024, CS_BUFFER_INTERMEDIATE));
    add_task(f, &tensor, 1, output, NULL, 0);
    add_choice(f, t, 10, 512);
    add_choice(f, t, 20, 0);
  }
}

static void test_text_and_back(void **state) {
  (void)state;
  fixture f;
  three(&f);
  cs_policy_input input = fixture_input(&f, 3, 0, 0);
  cs_placement places[] = {AT(2, 0, 1), AT(0, 1, 0), AT(1, 0, 1)};
  cs_configuration configuration = {.places = places, .n = 3}, back;
  char *text = NULL;
  bool valid = false;
  assert_ok(cs_configuration_text(&configuration, f.choices, &text));
  assert_ok(cs_configuration_parse(text, &input, &back, &valid));
  assert_true(valid);
  assert_true(cs_configuration_equal(&configuration, &back));
  cs_configuration_free(&back);
  input.max_streams = 1; /* stream 1 is not there any more */
  assert_ok(cs_configuration_parse(text, &input, &back, &valid));
  assert_false(valid);
  input.max_streams = 3;
  const char *wrong[] = {"",          "0.0.00000000", "x",         "0.0.0000000 1.0.00000000",
                         "3.0.00000", "0.0",          "-1.0.00000"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_ok(cs_configuration_parse(wrong[i], &input, &back, &valid));
    assert_false(valid);
  }
  const char *behind[] = {" ", "+", " @", " @1:0,0", " 0.0.00000000"}; /* of more than there is */
  for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
    char damaged[128];
    snprintf(damaged, sizeof damaged, "%s%s", text, behind[i]);
    assert_ok(cs_configuration_parse(damaged, &input, &back, &valid));
    assert_false(valid);
  }
  text[0] = '+'; /* for "2": a number all the same */
  assert_ok(cs_configuration_parse(text, &input, &back, &valid));
  assert_false(valid);
  text[0] = '2';
  text[strlen(text) - 1] = text[strlen(text) - 1] == '0' ? '1' : '0'; /* an unknown candidate */
  assert_ok(cs_configuration_parse(text, &input, &back, &valid));
  assert_false(valid);
  free(text);
  fixture_free(&f);
}

static void test_streams_by_first_appearance(void **state) {
  (void)state;
  cs_placement places[] = {AT(0, 3, 0), AT(1, 0, 0), AT(2, 3, 0), AT(3, 1, 0), AT(4, 2, 0)};
  const int wanted[] = {0, 1, 0, 2, 3};
  cs_configuration configuration = {.places = places, .n = 5};
  cs_configuration_number_streams(&configuration);
  for (int i = 0; i < 5; i++) assert_int_equal(places[i].stream, wanted[i]);
}

/* ---- As measured ---- */

static const cs_plan_task *task_of(const cs_plan *plan, int task) {
  int p = 0;
  while (plan->tasks[p].task != task) p++;
  return &plan->tasks[p];
}

/* The fastest confirmed one is the plan, however fast unconfirmed ones or those over the limit are.
 */
static void test_the_best_confirmed_configuration_is_the_plan(void **state) {
  (void)state;
  fixture f;
  three(&f);
  cs_policy_input input = fixture_input(&f, 3, 0, 0);
  cs_placement places[3][3] = {{AT(0, 0, 0), AT(1, 1, 0), AT(2, 2, 0)},  /* 1536 bytes at once */
                               {AT(0, 0, 1), AT(1, 0, 1), AT(2, 1, 1)},  /* none */
                               {AT(1, 0, 0), AT(0, 0, 0), AT(2, 0, 0)}}; /* 512 */
  cs_record records[3] = {{.measured = {.cold_us = 5, .samples = CS_SCHEDULE_CONFIRMED - 1}},
                          {.measured = {.cold_us = 7, .samples = CS_SCHEDULE_CONFIRMED}},
                          {.measured = {.cold_us = 6, .samples = CS_SCHEDULE_CONFIRMED}}};
  const int64_t workspaces[] = {1536, 0, 512};
  cs_record sorted[3];
  for (int i = 0; i < 3; i++) {
    cs_configuration configuration = {.places = places[i], .n = 3};
    assert_ok(cs_configuration_text(&configuration, f.choices, &records[i].candidate.id));
    records[i].candidate.workspace_bytes = workspaces[i];
  }
  sorted[0] = records[0], sorted[1] = records[2], sorted[2] = records[1];
  cs_op_profile schedules = {.records = sorted, .n_records = 3};
  input.schedules = &schedules;
  cs_plan *plan = NULL;
  assert_ok(cs_plan_make(&cs_policy_coselect, &input, &plan));
  assert_int_equal(plan->n_streams, 1);
  assert_int_equal(plan->tasks[0].task, 1);
  assert_string_equal(task_of(plan, 2)->candidate.id, "test:0");
  cs_plan_destroy(plan);
  input.workspace_limit = 511;
  assert_ok(cs_plan_make(&cs_policy_coselect, &input, &plan));
  assert_int_equal(plan->n_streams, 2);
  assert_string_equal(task_of(plan, 2)->candidate.id, "test:1");
  assert_int_equal(task_of(plan, 2)->stream, 1);
  cs_plan_destroy(plan);
  for (int i = 0; i < 3; i++) free(records[i].candidate.id);
  fixture_free(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_against_trying_everything),
      cmocka_unit_test(test_the_same_input_gives_the_same_plan),
      cmocka_unit_test(test_text_and_back),
      cmocka_unit_test(test_streams_by_first_appearance),
      cmocka_unit_test(test_the_best_confirmed_configuration_is_the_plan),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
