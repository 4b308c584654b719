#include <math.h>
#include <string.h>

#include "base/base.h"

/* Philox 4x32 with ten rounds: J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011. */
static void philox(const uint32_t key_in[2], const uint32_t counter[4], uint32_t out[4]) {
  uint32_t key[2] = {key_in[0], key_in[1]};
  uint32_t x[4];
  memcpy(x, counter, sizeof x);
  for (int round = 0; round < 10; round++) {
    uint64_t a = UINT64_C(0xD2511F53) * x[0], b = UINT64_C(0xCD9E8D57) * x[2];
    uint32_t y[4] = {(uint32_t)(b >> 32) ^ x[1] ^ key[0], (uint32_t)b,
                     (uint32_t)(a >> 32) ^ x[3] ^ key[1], (uint32_t)a};
    memcpy(x, y, sizeof x);
    key[0] += UINT32_C(0x9E3779B9);
    key[1] += UINT32_C(0xBB67AE85);
  }
  memcpy(out, x, sizeof x);
}

void cs_rng_init(cs_rng *rng, uint64_t seed, uint64_t stream) {
  memset(rng, 0, sizeof *rng);
  rng->key[0] = (uint32_t)seed;
  rng->key[1] = (uint32_t)(seed >> 32);
  rng->stream = stream;
  rng->used = 4;
}

uint32_t cs_rng_u32(cs_rng *rng) {
  if (rng->used == 4) {
    uint32_t counter[4] = {(uint32_t)rng->counter, (uint32_t)(rng->counter >> 32),
                           (uint32_t)rng->stream, (uint32_t)(rng->stream >> 32)};
    philox(rng->key, counter, rng->block);
    rng->counter++;
    rng->used = 0;
  }
  return rng->block[rng->used++];
}

double cs_rng_uniform(cs_rng *rng) {
  uint64_t high = cs_rng_u32(rng) >> 5, low = cs_rng_u32(rng) >> 6;
  return (double)(high * UINT64_C(67108864) + low) / 9007199254740992.0;
}

double cs_rng_normal(cs_rng *rng) {
  if (rng->has_spare) {
    rng->has_spare = false;
    return rng->spare;
  }
  double u = 1.0 - cs_rng_uniform(rng), v = cs_rng_uniform(rng);
  double radius = sqrt(-2.0 * log(u)), angle = 6.283185307179586476925 * v;
  rng->spare = radius * sin(angle);
  rng->has_spare = true;
  return radius * cos(angle);
}

void cs_rng_fill_normal(cs_rng *rng, float *out, int64_t count, double mean, double deviation) {
  for (int64_t i = 0; i < count; i++) out[i] = (float)(mean + deviation * cs_rng_normal(rng));
}
