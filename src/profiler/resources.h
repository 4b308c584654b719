/* What a kernel takes of the resources that the blocks of one SM share. Pure arithmetic on what the
 * driver tells of the kernel and of the device. */
#ifndef CONVSCHED_PROFILER_RESOURCES_H_
#define CONVSCHED_PROFILER_RESOURCES_H_

#include "backend/backend.h"

/* What one block of a kernel is given, in units of allocation: registers by the warp, in pieces of
 * 256; threads as whole warps; shared memory, the driver's own part included, in pieces of 128
 * bytes. These are the pieces of compute capabilities 8.0 to 9.x; before 8.0 shared memory came in
 * pieces of 256. */
typedef struct cs_block_use {
  int64_t registers, shared_bytes;
  int threads;
} cs_block_use;

/* Shares are of one SM, 0 … 1, by the blocks that are resident on it when the kernel runs alone,
 * spread evenly over the SMs; NaN where the kernel or the device does not tell enough. */
typedef struct cs_resource_shares {
  double registers, shared, threads, blocks;
  int blocks_fitting;  /* as many fit on one SM; 0: unknown */
  int blocks_resident; /* as many are there: fewer where the grid is small; 0: unknown */
  double waves;        /* blocks over those that fit on the device at once; NaN: unknown */
  int units_occupied;  /* SMs with a block in the first wave; 0: unknown */
} cs_resource_shares;

/* Blocks of a launch; 0: unknown. */
int64_t cs_kernel_blocks(const cs_kernel_info *kernel);

cs_block_use cs_kernel_block_use(const cs_kernel_info *kernel, const cs_unit_limits *unit);

/* How many blocks fit on one SM: the driver's own figure (blocks_per_unit) where known, else by the
 * limits, registers being handed out by quarters of the SM. 0: unknown, or none fits. */
int cs_kernel_blocks_fitting(const cs_kernel_info *kernel, const cs_unit_limits *unit);

/* `units`: SMs the kernel may use (0: unknown). */
cs_resource_shares cs_kernel_shares(const cs_kernel_info *kernel, const cs_unit_limits *unit,
                                    int units);

#endif
