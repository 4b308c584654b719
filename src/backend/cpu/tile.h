/* The innermost loop of the CPU's own products: a tile of sums in registers. */
#ifndef CONVSCHED_BACKEND_CPU_TILE_H_
#define CONVSCHED_BACKEND_CPU_TILE_H_

#include <stdint.h>

#define CPU_TILE_ROWS 4
#define CPU_TILE_LANES 16

/* sums[i][lane] += x[i][c * step] · w[c * CPU_TILE_LANES + lane] over `depth` values of c. */
typedef void (*cpu_tile_fn)(float sums[CPU_TILE_ROWS][CPU_TILE_LANES],
                            const float *const x[CPU_TILE_ROWS], int64_t step, int64_t depth,
                            const float *w);
/* For the widest vectors that this processor has. */
cpu_tile_fn cpu_tile_choose(void);

#endif
