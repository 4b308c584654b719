/* What an SM of an H100 holds, and a device of four such SMs. */
#ifndef CONVSCHED_TESTS_UNIT_H100_SM_H_
#define CONVSCHED_TESTS_UNIT_H100_SM_H_

#include "scheduler/sm_model.h"

/* An initializer of cs_unit_limits. */
#define H100_SM                                                                \
  {                                                                            \
    .registers = 65536, .threads = 2048, .blocks = 32, .shared_bytes = 233472, \
    .reserved_shared_bytes = 1024, .warp_size = 32                             \
  }

static const cs_device_info four = {.name = "four SMs", .units = 4, .unit = H100_SM};

/* Nothing costs anything but the blocks themselves. */
static const cs_sm_constants ideal = {
    .pipe_capacity = 1, .l2_capacity = 1, .dram_capacity = 1, .cache_share = 0.5};

#endif
