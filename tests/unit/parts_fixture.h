/* A block for which parts of the device, or priorities, pay: task 0, more waves of blocks than the
 * device holds at once, beside the chain 1, 2, 3 of kernels that take a quarter of it; task 4 needs
 * both and is a block (window 1) of its own. What is launched later gets no SM before all blocks of
 * task 0 have one. */
#ifndef CONVSCHED_TESTS_UNIT_PARTS_FIXTURE_H_
#define CONVSCHED_TESTS_UNIT_PARTS_FIXTURE_H_

#include "scheduler/coselect.h"
#include "unit/scheduler_fixture.h"

#define PARTS_TASKS 5

static const cs_device_info sixteen = {.name = "sixteen SMs",
                                       .backend = "cuda",
                                       .units = 16,
                                       .unit = {.registers = 65536,
                                                .threads = 2048,
                                                .blocks = 32,
                                                .shared_bytes = 233472,
                                                .reserved_shared_bytes = 1024,
                                                .warp_size = 32}};
static const cs_sm_parts quarter = {2, {4, 12}}, half = {2, {8, 8}};

typedef struct parts_block {
  fixture f;
  cs_policy_input input;
  cs_kernel_profile kernels[PARTS_TASKS];
} parts_block;

/* One block of a kernel fills an SM. */
static inline void parts_kernel(parts_block *b, int task, int blocks) {
  b->kernels[task] = (cs_kernel_profile){.info = {.grid = {blocks, 1, 1},
                                                  .block = {256, 1, 1},
                                                  .cluster = {1, 1, 1},
                                                  .registers = 255,
                                                  .name = "k"}};
  b->f.choices[task].choices[0].kernels = &b->kernels[task];
  b->f.choices[task].choices[0].n_kernels = 1;
}

static inline void parts_block_init(parts_block *b) {
  const int chain[] = {1, 2}, both[] = {0, 3};
  memset(b, 0, sizeof *b);
  fixture_init(&b->f, PARTS_TASKS + 2); /* two of them have buffers of their own to read */
  simple_task(&b->f, NULL, 0, 40);
  simple_task(&b->f, NULL, 0, 15);
  simple_task(&b->f, &chain[0], 1, 15);
  simple_task(&b->f, &chain[1], 1, 15);
  simple_task(&b->f, both, 2, 5);
  parts_kernel(b, 0, 64);
  for (int t = 1; t < PARTS_TASKS; t++) parts_kernel(b, t, 4);
  b->input = fixture_input(&b->f, 4, 0, 0);
  b->input.device = &sixteen;
}

/* Task 0 and 4 on stream 0, the chain on stream 1, task 0 first. */
static inline void parts_plain(cs_configuration *out) {
  assert_ok(cs_configuration_make(PARTS_TASKS, out));
  for (int t = 0; t < PARTS_TASKS; t++)
    out->places[t] = (cs_placement){.task = t, .stream = t >= 1 && t <= 3};
}

/* Of its windows, one after the other. */
static inline double parts_predicted(cs_coselect *c, const cs_configuration *configuration) {
  cs_placement places[CS_IOS_MOST_TASKS];
  double sum = 0;
  cs_coselect_use_split(c, configuration);
  for (int w = 0; w < c->windows.n; w++) {
    double us = 0;
    int n = cs_coselect_gather(c, configuration, w, places);
    assert_ok(cs_coselect_predict(c, places, n, &us));
    sum += us;
  }
  return sum;
}

static inline int parts_high(const cs_configuration *configuration) {
  int n = 0;
  for (int p = 0; p < configuration->n; p++) n += configuration->places[p].priority;
  return n;
}

#endif
