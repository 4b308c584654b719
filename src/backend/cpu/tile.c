#include "backend/cpu/tile.h"

#include <string.h>

#include "backend/cpu/omp.h"

#define ROWS CPU_TILE_ROWS
#define LANES CPU_TILE_LANES

static inline __attribute__((always_inline)) void add_products(float sums[ROWS][LANES],
                                                               const float *const x[ROWS],
                                                               int64_t step, int64_t depth,
                                                               const float *w) {
  float s[ROWS][LANES];
  memcpy(s, sums, sizeof s);
  for (int64_t c = 0; c < depth; c++, w += LANES)
    for (int i = 0; i < ROWS; i++) {
      float v = x[i][c * step];
      CPU_SIMD
      for (int lane = 0; lane < LANES; lane++) s[i][lane] += v * w[lane];
    }
  memcpy(sums, s, sizeof s);
}

static void tile_plain(float sums[ROWS][LANES], const float *const x[ROWS], int64_t step,
                       int64_t depth, const float *w) {
  add_products(sums, x, step, depth, w);
}

#ifdef __x86_64__
__attribute__((target("avx2,fma"))) static void tile_avx2(float sums[ROWS][LANES],
                                                          const float *const x[ROWS], int64_t step,
                                                          int64_t depth, const float *w) {
  add_products(sums, x, step, depth, w);
}

__attribute__((target("avx512f"))) static void tile_avx512(float sums[ROWS][LANES],
                                                           const float *const x[ROWS], int64_t step,
                                                           int64_t depth, const float *w) {
  add_products(sums, x, step, depth, w);
}
#endif

cpu_tile_fn cpu_tile_choose(void) {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return tile_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return tile_avx2;
#endif
  return tile_plain;
}
