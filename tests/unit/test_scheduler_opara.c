/* The opara policy: which stream a task continues, the launch order, and the demands it goes by. */
#include <math.h>

#include "unit/h100_sm.h"
#include "unit/scheduler_fixture.h"

static const cs_device_info device = {.units = 100, .unit = H100_SM};

/* A block takes an eighth of an SM's registers and of its threads: 100 SMs hold 800 of them. */
static cs_kernel_profile kernel_of(int blocks) {
  cs_kernel_profile kernel = {
      .info = {
          .grid = {blocks, 1, 1}, .block = {256, 1, 1}, .registers = 32, .blocks_per_unit = 8}};
  for (int i = 0; i < CS_COUNTER_COUNT; i++) kernel.counters.value[i] = NAN;
  return kernel;
}

static cs_kernel_profile counted(int blocks, double us, double dram_pct, double tensor_pct) {
  cs_kernel_profile kernel = kernel_of(blocks);
  kernel.counted = true;
  kernel.counters.value[CS_COUNTER_duration_us] = us;
  kernel.counters.value[CS_COUNTER_dram_pct] = dram_pct;
  kernel.counters.value[CS_COUNTER_tensor_pct] = tensor_pct;
  return kernel;
}

static void set_kernels(fixture *f, int task, const cs_kernel_profile *kernels, int n) {
  f->choices[task].choices[0].kernels = kernels;
  f->choices[task].choices[0].n_kernels = n;
}

/* A Gemm of `in` to `out` features: 2·in·out FLOPs, 4·(in + out + in·out) bytes. */
static void make_gemm(fixture *f, int task, int64_t in, int64_t out) {
  cs_op_desc *desc = &f->program.tasks[task].desc;
  cs_shape x = {.rank = 2, .dims = {1, in}}, y = {.rank = 2, .dims = {1, out}};
  *desc = (cs_op_desc){.op = CS_OP_GEMM, .n_inputs = 1, .attrs.gemm.out_features = out};
  desc->inputs[0] = cs_tensor_dense(&x, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  desc->output = cs_tensor_dense(&y, CS_DTYPE_F32, CS_LAYOUT_NCHW);
}

static cs_plan *make(const fixture *f, int streams, const cs_device_info *on) {
  cs_plan *plan = NULL;
  cs_policy_input input = fixture_input(f, streams, 0, 0);
  input.device = on;
  assert_ok(cs_plan_make(&cs_policy_opara, &input, &plan));
  return plan;
}

static void assert_streams(const cs_plan *plan, const int *wanted) {
  int position[ORACLE_MAX];
  cs_plan_positions(plan, position);
  for (int t = 0; t < plan->n_tasks; t++)
    if (plan->tasks[position[t]].stream != wanted[t])
      fail_msg("task %d is on stream %d, wanted %d", t, plan->tasks[position[t]].stream, wanted[t]);
}

static void assert_order(const cs_plan *plan, const int *wanted) {
  for (int p = 0; p < plan->n_tasks; p++)
    if (plan->tasks[p].task != wanted[p])
      fail_msg("position %d has task %d, wanted %d", p, plan->tasks[p].task, wanted[p]);
}

/* ---- Streams ---- */

static void the_first_untaken_predecessor_hands_on_its_stream(void **state) {
  (void)state;
  static const struct {
    int n, preds[3];
  } tasks[] = {{0, {0}},    {1, {0}}, {1, {0}}, {1, {0}}, {2, {1, 2}}, /* continues 1 */
               {1, {2}},                                               /* 2 is untaken still */
               {2, {3, 4}},                                            /* continues 3 */
               {1, {4}}};                                              /* 4 is untaken still */
  static const int wanted[] = {0, 0, 1, 2, 0, 1, 2, 0};
  fixture f;
  fixture_init(&f, 16);
  for (int t = 0; t < 8; t++) simple_task(&f, tasks[t].preds, tasks[t].n, 1);
  cs_plan *plan = make(&f, 16, NULL);
  assert_int_equal(plan->n_streams, 3);
  assert_streams(plan, wanted);
  cs_plan_destroy(plan);
  fixture_free(&f);
}

/* Two heads → three tasks that read both → join → two tasks. */
static void two_modules(fixture *f) {
  fixture_init(f, 16);
  int heads[2], middle[3];
  for (int i = 0; i < 2; i++) heads[i] = simple_task(f, NULL, 0, 1 + i);
  for (int i = 0; i < 3; i++) middle[i] = simple_task(f, heads, 2, 1);
  int join = simple_task(f, middle, 3, 1);
  for (int i = 0; i < 2; i++) simple_task(f, &join, 1, 1);
}

static void ended_streams_are_used_again(void **state) {
  (void)state;
  static const int wanted[] = {0, 1, 0, 1, 2, 0, 0, 1};
  fixture f;
  two_modules(&f);
  cs_plan *plan = make(&f, 16, NULL);
  assert_int_equal(plan->n_streams, 3);
  assert_streams(plan, wanted);
  cs_plan_destroy(plan);
  fixture_free(&f);
}

/* The third task beside the other two joins the stream with the least work: 1 + 1 against 2 + 1. */
static void without_a_stream_left_the_least_work_is_joined(void **state) {
  (void)state;
  static const int wanted[] = {0, 1, 0, 1, 0, 1, 1, 0};
  fixture f;
  two_modules(&f);
  cs_plan *two = make(&f, 2, NULL), *one = make(&f, 1, NULL);
  assert_int_equal(two->n_streams, 2);
  assert_streams(two, wanted);
  assert_int_equal(one->n_streams, 1);
  cs_plan_destroy(two);
  cs_plan_destroy(one);
  fixture_free(&f);
}

/* ---- Launch order ---- */

static void least_demand_first_and_kinds_in_turn(void **state) {
  (void)state;
  static const int wanted[] = {0, 4, 2, 3, 1};
  const cs_kernel_profile kernels[] = {counted(80, 1, 60, 20), counted(400, 1, 50, 10),
                                       counted(80, 1, 50, 10), counted(1600, 1, 10, 50),
                                       counted(160, 1, 10, 50)};
  fixture f;
  fixture_init(&f, 16);
  int head = simple_task(&f, NULL, 0, 1);
  for (int i = 0; i < 4; i++) simple_task(&f, &head, 1, 1);
  for (int t = 0; t < 5; t++) set_kernels(&f, t, &kernels[t], 1);
  cs_plan *plan = make(&f, 8, &device);
  assert_order(plan, wanted);
  cs_plan_destroy(plan);
  fixture_free(&f);
}

/* When one kind has run out, the other goes on, and a task that becomes ready counts at once. */
static void a_kind_that_has_run_out_is_passed_over(void **state) {
  (void)state;
  static const int wanted[] = {3, 0, 2, 1, 4};
  const cs_kernel_profile kernels[] = {counted(80, 1, 60, 20), counted(400, 1, 60, 20),
                                       counted(160, 1, 60, 20), counted(800, 1, 10, 50),
                                       counted(8, 1, 10, 50)};
  fixture f;
  fixture_init(&f, 16);
  for (int i = 0; i < 4; i++) simple_task(&f, NULL, 0, 1);
  int last = 1;
  simple_task(&f, &last, 1, 1);
  for (int t = 0; t < 5; t++) set_kernels(&f, t, &kernels[t], 1);
  cs_plan *plan = make(&f, 8, &device);
  assert_order(plan, wanted);
  cs_plan_destroy(plan);
  fixture_free(&f);
}

/* ---- Demands ---- */

static void demands_come_from_kernels(void **state) {
  (void)state;
  /* Two kernels: the larger share counts; their kinds are weighed by time: 2·50 + 8·10 bytes
   * against 2·10 + 8·30. */
  const cs_kernel_profile two[] = {counted(400, 2, 50, 10), counted(80, 8, 10, 30)};
  const cs_kernel_profile tail = counted(2000, 1, 30, 10);
  cs_task_demand demands[3];
  fixture f;
  fixture_init(&f, 16);
  for (int t = 0; t < 3; t++) simple_task(&f, NULL, 0, 1);
  set_kernels(&f, 0, two, 2);
  set_kernels(&f, 1, &tail, 1);
  cs_policy_input input = fixture_input(&f, 1, 0, 0);
  input.device = &device;
  cs_task_demands(&input, demands);
  assert_float_equal(demands[0].share, 0.5, 1e-12);
  assert_false(demands[0].memory_bound);
  assert_float_equal(demands[1].share, 2.5, 1e-12);
  assert_true(demands[1].memory_bound);
  fixture_free(&f);
}

/* Without kernels: 1 → 1000 features move far more than they compute, beside 1000 → 1000. */
static void demands_follow_from_the_roofline_else(void **state) {
  (void)state;
  const cs_kernel_profile not_counted = kernel_of(400);
  cs_task_demand demands[3];
  cs_device_info peaks = device;
  fixture f;
  fixture_init(&f, 16);
  for (int t = 0; t < 3; t++) simple_task(&f, NULL, 0, 2);
  make_gemm(&f, 0, 1000, 1000); /* 2e6 FLOPs, 4.008e6 bytes */
  make_gemm(&f, 1, 1, 1000);    /* 2e3 FLOPs, 8.004e3 bytes */
  make_gemm(&f, 2, 1000, 1000);
  set_kernels(&f, 2, &not_counted, 1);
  cs_policy_input input = fixture_input(&f, 1, 0, 0);
  cs_task_demands(&input, demands); /* rates of the first and third task are the roofline */
  assert_float_equal(demands[0].share, 1, 1e-12);
  assert_float_equal(demands[1].share, 8004.0 / 4008000, 1e-12);
  assert_true(demands[1].memory_bound);
  peaks.peak_flops[CS_PRECISION_F32] = 2e12; /* half of it in 2 us */
  peaks.peak_bandwidth = 16.032e12;          /* an eighth */
  input.device = &peaks;
  cs_task_demands(&input, demands);
  assert_float_equal(demands[0].share, 0.5, 1e-12);
  assert_false(demands[0].memory_bound);
  assert_float_equal(demands[2].share, 0.5, 1e-12); /* 400 of 800 blocks */
  assert_false(demands[2].memory_bound);            /* not counted: intensity tells */
  peaks.peak_bandwidth = 3.006e12;                  /* two thirds */
  cs_task_demands(&input, demands);
  assert_float_equal(demands[0].share, 2.0 / 3, 1e-12);
  assert_true(demands[0].memory_bound);
  fixture_free(&f);
}

static void on_a_cpu_threads_are_the_demand(void **state) {
  (void)state;
  cs_task_demand demands[2];
  fixture f;
  fixture_init(&f, 16);
  for (int t = 0; t < 2; t++) simple_task(&f, NULL, 0, 2);
  ((cs_candidate *)(uintptr_t)f.choices[0].choices[0].candidate)->threads = 25;
  cs_policy_input input = fixture_input(&f, 1, 0, 0);
  input.device = &device;
  cs_task_demands(&input, demands);
  assert_float_equal(demands[0].share, 0.25, 1e-12);
  fixture_free(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_first_untaken_predecessor_hands_on_its_stream),
      cmocka_unit_test(ended_streams_are_used_again),
      cmocka_unit_test(without_a_stream_left_the_least_work_is_joined),
      cmocka_unit_test(least_demand_first_and_kinds_in_turn),
      cmocka_unit_test(a_kind_that_has_run_out_is_passed_over),
      cmocka_unit_test(demands_come_from_kernels),
      cmocka_unit_test(demands_follow_from_the_roofline_else),
      cmocka_unit_test(on_a_cpu_threads_are_the_demand),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
