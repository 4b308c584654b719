#include "profiler/resources.h"

#include <limits.h>
#include <math.h>

#define REGISTER_PIECE 256 /* registers of a warp come in these */
#define SHARED_PIECE 128   /* bytes of shared memory of a block likewise */
#define SUB_PARTITIONS 4   /* quarters of an SM; a warp's registers lie in one of them */

static int64_t round_up(int64_t value, int64_t piece) {
  return (value + piece - 1) / piece * piece;
}

static int warp_size_of(const cs_unit_limits *unit) {
  return unit->warp_size > 0 ? unit->warp_size : 32;
}

static int64_t threads_of_block(const cs_kernel_info *kernel) {
  return (int64_t)kernel->block[0] * kernel->block[1] * kernel->block[2];
}

int64_t cs_kernel_blocks(const cs_kernel_info *kernel) {
  return (int64_t)kernel->grid[0] * kernel->grid[1] * kernel->grid[2];
}

/* Registers of one warp, as allocated. */
static int64_t warp_registers(const cs_kernel_info *kernel, const cs_unit_limits *unit) {
  return round_up((int64_t)kernel->registers * warp_size_of(unit), REGISTER_PIECE);
}

cs_block_use cs_kernel_block_use(const cs_kernel_info *kernel, const cs_unit_limits *unit) {
  int64_t threads = round_up(threads_of_block(kernel), warp_size_of(unit));
  int64_t shared = (int64_t)kernel->static_shared + kernel->dynamic_shared;
  return (cs_block_use){
      .threads = (int)threads,
      .registers = threads / warp_size_of(unit) * warp_registers(kernel, unit),
      .shared_bytes = round_up(shared + unit->reserved_shared_bytes, SHARED_PIECE),
  };
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

int cs_kernel_blocks_fitting(const cs_kernel_info *kernel, const cs_unit_limits *unit) {
  if (kernel->blocks_per_unit > 0) return kernel->blocks_per_unit;
  cs_block_use use = cs_kernel_block_use(kernel, unit);
  if (use.threads <= 0 || unit->threads <= 0) return 0;
  int64_t fitting = unit->threads / use.threads;
  if (unit->blocks > 0) fitting = least(fitting, unit->blocks);
  if (unit->registers > 0 && use.registers > 0) {
    int64_t warps = unit->registers / SUB_PARTITIONS / warp_registers(kernel, unit);
    fitting = least(fitting, warps * SUB_PARTITIONS * warp_size_of(unit) / use.threads);
  }
  if (unit->shared_bytes > 0 && use.shared_bytes > 0) {
    fitting = least(fitting, unit->shared_bytes / use.shared_bytes);
  }
  return (int)least(fitting, INT_MAX);
}

/* NaN where either side is unknown. */
static double share(int64_t used, int64_t total) {
  return used > 0 && total > 0 ? (double)used / (double)total : NAN;
}

cs_resource_shares cs_kernel_shares(const cs_kernel_info *kernel, const cs_unit_limits *unit,
                                    int units) {
  cs_resource_shares shares = {NAN, NAN, NAN, NAN, 0, 0, NAN, 0};
  int64_t blocks = cs_kernel_blocks(kernel);
  shares.blocks_fitting = cs_kernel_blocks_fitting(kernel, unit);
  if (shares.blocks_fitting <= 0 || blocks <= 0 || units <= 0) return shares;
  int64_t per_unit = (blocks + units - 1) / units;
  int64_t resident = least(shares.blocks_fitting, per_unit);
  cs_block_use use = cs_kernel_block_use(kernel, unit);
  shares.blocks_resident = (int)resident;
  shares.units_occupied = (int)least(blocks, units);
  shares.waves = (double)blocks / ((double)units * shares.blocks_fitting);
  shares.registers = share(resident * use.registers, unit->registers);
  shares.shared = share(resident * use.shared_bytes, unit->shared_bytes);
  shares.threads = share(resident * use.threads, unit->threads);
  shares.blocks = share(resident, unit->blocks);
  return shares;
}
