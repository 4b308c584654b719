/* What a device's performance counters tell of kernels. Pure data. */
#ifndef CONVSCHED_PROFILER_COUNTERS_H_
#define CONVSCHED_PROFILER_COUNTERS_H_

/* X(name, unit, meaning). The names are those of the members in records. */
#define CS_COUNTERS(X)                                                                          \
  X(duration_us, "us", "time on the device while counted (never compared with measured times)") \
  X(issue_pct, "%", "issue slots used while an SM is active")                                   \
  X(alu_pct, "%", "integer and logic pipe")                                                     \
  X(fma_pct, "%", "f32 multiply-add pipe")                                                      \
  X(tensor_pct, "%", "tensor pipe")                                                             \
  X(occupancy_pct, "%", "resident warps while an SM is active")                                 \
  X(sm_active_pct, "%", "SMs with at least one resident warp")                                  \
  X(dram_pct, "%", "DRAM throughput")                                                           \
  X(l2_pct, "%", "L2 throughput")                                                               \
  X(memory_stall_ratio, "1", "warps waiting for memory for every warp that issues")             \
  X(stall_registers, "cycles", "launches of blocks held up for want of registers, per TPC")     \
  X(stall_shared, "cycles", "launches of blocks held up for want of shared memory, per TPC")    \
  X(stall_blocks, "cycles", "launches of blocks held up for want of block slots, per TPC")

typedef enum cs_counter {
#define CS_COUNTER_ENUM(name, unit, meaning) CS_COUNTER_##name,
  CS_COUNTERS(CS_COUNTER_ENUM)
#undef CS_COUNTER_ENUM
      CS_COUNTER_COUNT
} cs_counter;

/* A value that is not known is NaN. */
typedef struct cs_counters {
  double value[CS_COUNTER_COUNT];
} cs_counters;

#endif
