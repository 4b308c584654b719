/* Small things every module uses: memory, strings, logging, hashing, random numbers, half floats,
 * statistics, time, parallel loops. Thread-safe unless said otherwise. */
#ifndef CONVSCHED_BASE_BASE_H_
#define CONVSCHED_BASE_BASE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* ---- Memory and strings ---- */

/* Zeroed array of count × size bytes, or NULL (also on overflow). free() releases. */
void *cs_calloc(size_t count, size_t size);
/* Makes room for `need` elements in a growing array: doubles *capacity, keeps the contents, zeroes
 * the new part. */
cs_status cs_grow(void *array_pointer, size_t *capacity, size_t need,
                  size_t element_size) CS_MUST_USE;
char *cs_strdup(const char *text); /* NULL on failure or for NULL */
cs_status cs_strdup_to(const char *text, char **out) CS_MUST_USE;

/* "1048576", "1024k", "64M", "2G"; false for anything else, and what is below 0 or too large. */
bool cs_parse_bytes(const char *text, int64_t *out);

/* A growing string; zero-initialise, release with cs_strbuf_free. After an allocation failure the
 * buffer stays failed and cs_strbuf_take reports it. */
typedef struct cs_strbuf {
  char *data;
  size_t length, capacity;
  bool failed;
} cs_strbuf;
void cs_strbuf_printf(cs_strbuf *buffer, const char *format, ...) CS_PRINTF(2, 3);
void cs_strbuf_append(cs_strbuf *buffer, const char *text, size_t length);
cs_status cs_strbuf_take(cs_strbuf *buffer, char **out) CS_MUST_USE; /* empty buffer gives "" */
void cs_strbuf_free(cs_strbuf *buffer);

/* ---- Logging ---- */

void cs_log(const cs_logger *logger, cs_log_level level, const char *format, ...) CS_PRINTF(3, 4);

/* ---- Checked arithmetic: false on overflow ---- */

bool cs_mul_i64(int64_t a, int64_t b, int64_t *out);
bool cs_add_i64(int64_t a, int64_t b, int64_t *out);
static inline int64_t cs_round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
static inline int64_t cs_min_i64(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static inline int64_t cs_max_i64(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* ---- Hashing (FNV-1a, 64 bit; stable across machines) ---- */

#define CS_HASH_SEED UINT64_C(0xcbf29ce484222325)
uint64_t cs_hash_bytes(uint64_t hash, const void *data, size_t length);
uint64_t cs_hash_string(uint64_t hash, const char *text);

/* ---- Random numbers: Philox 4x32-10 (Salmon et al., SC'11), counter-based ---- */

typedef struct cs_rng {
  uint32_t key[2];
  uint64_t stream, counter;
  uint32_t block[4];
  int used;
  bool has_spare;
  double spare;
} cs_rng;
/* Streams of one seed are independent. */
void cs_rng_init(cs_rng *rng, uint64_t seed, uint64_t stream);
uint32_t cs_rng_u32(cs_rng *rng);
double cs_rng_uniform(cs_rng *rng); /* [0, 1) */
double cs_rng_normal(cs_rng *rng);  /* mean 0, variance 1 (Box–Muller) */
void cs_rng_fill_normal(cs_rng *rng, float *out, int64_t count, double mean, double deviation);

/* ---- Half floats: round to nearest even; NaN, infinities and subnormals kept ---- */

uint16_t cs_f32_to_f16(float value);
float cs_f16_to_f32(uint16_t half);
uint16_t cs_f32_to_bf16(float value);
float cs_bf16_to_f32(uint16_t bits);

/* ---- Statistics ---- */

typedef struct cs_stats {
  int n;
  double median, p10, p90, mean, min, max;
  double variation; /* coefficient: standard deviation / mean */
} cs_stats;
/* Linear interpolation between order statistics; n == 0 gives zeros. Does not change `samples`. */
cs_status cs_stats_of(const double *samples, int n, cs_stats *out) CS_MUST_USE;

/* The k-th smallest and the k-th largest sample, k as large as they enclose the distribution's
 * median with at least the confidence wanted (order statistics; David and Nagaraja, 2003, 7.1). */
typedef struct cs_median_interval {
  double low, high;
  double confidence; /* that it has: of few samples (5 for 0.95) less than wanted */
} cs_median_interval;
/* n <= 1000; n == 0 gives zeros. */
cs_status cs_median_interval_of(const double *samples, int n, double confidence,
                                cs_median_interval *out) CS_MUST_USE;

/* ---- Time ---- */

double cs_now_seconds(void); /* monotonic */

/* ---- Parallel loop over [0, n) on up to `threads` threads (0: all cores) ---- */

/* `body` gets the index and the worker number in [0, threads); the first error stops the rest from
 * starting and is returned. */
typedef cs_status (*cs_parallel_fn)(void *user, int64_t index, int worker);
cs_status cs_parallel_for(int64_t n, int threads, cs_parallel_fn body, void *user) CS_MUST_USE;
/* The same; the calling thread reports its items as those of a stage (base/progress.h). */
cs_status cs_parallel_stage(const char *stage, const char *unit, int64_t n, int threads,
                            cs_parallel_fn body, void *user) CS_MUST_USE;
int cs_cpu_count(void); /* cores this process may use (affinity mask) */

#endif
