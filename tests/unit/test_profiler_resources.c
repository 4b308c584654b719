/* Shares of an SM's resources, against figures worked out by hand from the CUDA occupancy rules. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profiler/resources.h"

/* Compute capability 9.0. */
static const cs_unit_limits sm90 = {.registers = 65536,
                                    .threads = 2048,
                                    .blocks = 32,
                                    .shared_bytes = 233472,
                                    .reserved_shared_bytes = 1024,
                                    .warp_size = 32};

static cs_kernel_info kernel_of(int blocks, int threads, int registers, int shared) {
  return (cs_kernel_info){.grid = {blocks, 1, 1},
                          .block = {threads, 1, 1},
                          .cluster = {1, 1, 1},
                          .registers = registers,
                          .dynamic_shared = shared};
}

static void assert_near(double found, double wanted) {
  if (!(fabs(found - wanted) < 1e-9)) fail_msg("found %.12g, wanted %.12g", found, wanted);
}

static void test_block_use_is_rounded_as_it_is_allocated(void **state) {
  (void)state;
  /* 100 threads are 4 warps; 37 × 32 = 1184 registers become 1280 a warp; 1000 + 1024 bytes become
   * 16 × 128. */
  cs_kernel_info kernel = kernel_of(1, 100, 37, 1000);
  cs_block_use use = cs_kernel_block_use(&kernel, &sm90);
  assert_int_equal(use.threads, 128);
  assert_int_equal(use.registers, 4 * 1280);
  assert_int_equal(use.shared_bytes, 2048);
}

static void test_each_resource_limits(void **state) {
  (void)state;
  static const struct {
    int threads, registers, shared, fitting;
  } cases[] = {
      {256, 128, 0, 2},     /* registers: 4096 a warp, 4 warps a quarter, 16 in all, 8 a block */
      {128, 168, 49152, 3}, /* 5376 a warp: 3 a quarter, 12 in all, 4 a block; shared alone: 4 */
      {128, 32, 49152, 4},  /* shared: 50176 bytes, 4 fit, 200704 of 233472 */
      {384, 168, 100 << 10, 1}, /* 12 warps of registers: one block of 12 */
      {64, 16, 0, 32},          /* block slots, and threads: 2048 / 64 */
      {32, 16, 0, 32},          /* block slots alone */
      {1024, 32, 0, 2},         /* threads */
      {128, 255, 232448, 1},    /* the most shared memory one block may ask for */
      {128, 32, 232449, 0},     /* more than there is */
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cs_kernel_info kernel = kernel_of(1000, cases[i].threads, cases[i].registers, cases[i].shared);
    assert_int_equal(cs_kernel_blocks_fitting(&kernel, &sm90), cases[i].fitting);
  }
}

static void test_registers_are_handed_out_by_quarters(void **state) {
  (void)state;
  /* 80 registers: 2560 a warp. 65536 / 2560 would be 25 warps, but a quarter of 16384 holds 6, the
   * SM 24: with blocks of 5 warps 4 fit, not 5. */
  cs_kernel_info kernel = kernel_of(1000, 160, 80, 0);
  assert_int_equal(cs_kernel_blocks_fitting(&kernel, &sm90), 4);
}

static void test_the_drivers_figure_comes_first(void **state) {
  (void)state;
  cs_kernel_info kernel = kernel_of(1000, 128, 32, 0);
  kernel.blocks_per_unit = 5;
  assert_int_equal(cs_kernel_blocks_fitting(&kernel, &sm90), 5);
  assert_int_equal(cs_kernel_shares(&kernel, &sm90, 132).blocks_resident, 5);
}

static void test_shares_of_a_full_device(void **state) {
  (void)state;
  cs_kernel_info kernel = kernel_of(784, 128, 128, 16384);
  kernel.static_shared = 256; /* 16384 + 256 + 1024 = 17664 = 138 × 128 */
  cs_resource_shares shares = cs_kernel_shares(&kernel, &sm90, 132);
  assert_int_equal(shares.blocks_fitting, 4); /* 4096 registers a warp, 16384 a block */
  assert_int_equal(shares.blocks_resident, 4);
  assert_int_equal(shares.units_occupied, 132);
  assert_near(shares.registers, 1.0);
  assert_near(shares.shared, 4 * 17664 / 233472.0);
  assert_near(shares.threads, 512 / 2048.0);
  assert_near(shares.blocks, 4 / 32.0);
  assert_near(shares.waves, 784 / 528.0);
}

static void test_a_small_grid_leaves_room(void **state) {
  (void)state;
  /* 200 blocks over 132 SMs: at most 2 on one, though 4 would fit; 64 blocks: one each on 64. */
  cs_kernel_info kernel = kernel_of(0, 128, 128, 0);
  kernel.grid[0] = 20;
  kernel.grid[1] = 5;
  kernel.grid[2] = 2;
  cs_resource_shares shares = cs_kernel_shares(&kernel, &sm90, 132);
  assert_int_equal(shares.blocks_resident, 2);
  assert_near(shares.registers, 0.5);
  assert_near(shares.blocks, 2 / 32.0);
  assert_near(shares.waves, 200 / 528.0);
  kernel.grid[0] = 64;
  kernel.grid[1] = kernel.grid[2] = 1;
  shares = cs_kernel_shares(&kernel, &sm90, 132);
  assert_int_equal(shares.blocks_resident, 1);
  assert_int_equal(shares.units_occupied, 64);
  assert_near(shares.registers, 0.25);
}

static void test_what_is_not_known_is_nan(void **state) {
  (void)state;
  cs_kernel_info kernel = kernel_of(100, 128, 64, 0);
  cs_unit_limits nothing = {0};
  cs_resource_shares shares = cs_kernel_shares(&kernel, &nothing, 132);
  assert_true(isnan(shares.registers) && isnan(shares.shared) && isnan(shares.waves));
  assert_int_equal(shares.blocks_fitting, 0);
  kernel.blocks_per_unit = 2; /* waves need no limits */
  shares = cs_kernel_shares(&kernel, &nothing, 132);
  assert_true(isnan(shares.registers) && isnan(shares.blocks));
  assert_near(shares.waves, 100 / 264.0);
  kernel.registers = 0;
  shares = cs_kernel_shares(&kernel, &sm90, 132);
  assert_true(isnan(shares.registers));
  assert_near(shares.threads, 128 / 2048.0);
  shares = cs_kernel_shares(&kernel, &sm90, 0);
  assert_true(isnan(shares.threads) && isnan(shares.waves));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_block_use_is_rounded_as_it_is_allocated),
      cmocka_unit_test(test_each_resource_limits),
      cmocka_unit_test(test_registers_are_handed_out_by_quarters),
      cmocka_unit_test(test_the_drivers_figure_comes_first),
      cmocka_unit_test(test_shares_of_a_full_device),
      cmocka_unit_test(test_a_small_grid_leaves_room),
      cmocka_unit_test(test_what_is_not_known_is_nan),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
