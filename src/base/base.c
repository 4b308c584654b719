#include "base/base.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/progress.h"

/* ---- Memory and strings ---- */

void *cs_calloc(size_t count, size_t size) {
  return calloc(count ? count : 1, size ? size : 1);
}

cs_status cs_grow(void *array_pointer, size_t *capacity, size_t need, size_t element_size) {
  if (need <= *capacity) return CS_OK;
  size_t wanted = *capacity ? *capacity : 8;
  while (wanted < need) {
    if (wanted > SIZE_MAX / 2) return cs_no_memory("a growing array", need);
    wanted *= 2;
  }
  if (wanted > SIZE_MAX / element_size) return cs_no_memory("a growing array", need);
  void *array;
  memcpy(&array, array_pointer, sizeof array);
  void *grown = realloc(array, wanted * element_size);
  if (!grown) return cs_no_memory("a growing array", wanted * element_size);
  memset((char *)grown + *capacity * element_size, 0, (wanted - *capacity) * element_size);
  memcpy(array_pointer, &grown, sizeof grown);
  *capacity = wanted;
  return CS_OK;
}

char *cs_strdup(const char *text) {
  return text ? strdup(text) : NULL;
}

bool cs_parse_bytes(const char *text, int64_t *out) {
  char *end;
  if (text[0] < '0' || text[0] > '9') return false; /* no digits before a unit, as in "M" */
  errno = 0;
  long long value = strtoll(text, &end, 10);
  int shift = 0;
  if (*end == 'k' || *end == 'K') shift = 10;
  if (*end == 'M') shift = 20;
  if (*end == 'G') shift = 30;
  if (shift) end++;
  if (*end || errno || value > INT64_MAX >> shift) return false;
  *out = (int64_t)value << shift;
  return true;
}

cs_status cs_strdup_to(const char *text, char **out) {
  *out = cs_strdup(text);
  return *out ? CS_OK : cs_no_memory("a string", strlen(text) + 1);
}

void cs_strbuf_append(cs_strbuf *buffer, const char *text, size_t length) {
  if (buffer->failed) return;
  cs_status st = cs_grow(&buffer->data, &buffer->capacity, buffer->length + length + 1, 1);
  if (st != CS_OK || !buffer->data) {
    cs_status_free(st);
    buffer->failed = true;
    return;
  }
  memcpy(buffer->data + buffer->length, text, length);
  buffer->length += length;
  buffer->data[buffer->length] = '\0';
}

void cs_strbuf_printf(cs_strbuf *buffer, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  char small[256];
  int length = vsnprintf(small, sizeof small, format, args);
  va_end(args);
  if (length >= 0 && (size_t)length < sizeof small) {
    cs_strbuf_append(buffer, small, (size_t)length);
  } else if (length >= 0) {
    char *text = malloc((size_t)length + 1);
    if (text) {
      vsnprintf(text, (size_t)length + 1, format, again);
      cs_strbuf_append(buffer, text, (size_t)length);
      free(text);
    } else {
      buffer->failed = true;
    }
  } else {
    buffer->failed = true;
  }
  va_end(again);
}

cs_status cs_strbuf_take(cs_strbuf *buffer, char **out) {
  if (!buffer->failed && !buffer->data) cs_strbuf_append(buffer, "", 0);
  if (buffer->failed) {
    cs_strbuf_free(buffer);
    return cs_no_memory("text", 0);
  }
  *out = buffer->data;
  memset(buffer, 0, sizeof *buffer);
  return CS_OK;
}

void cs_strbuf_free(cs_strbuf *buffer) {
  free(buffer->data);
  memset(buffer, 0, sizeof *buffer);
}

/* ---- Logging ---- */

void cs_log(const cs_logger *logger, cs_log_level level, const char *format, ...) {
  if (!logger || !logger->write) return;
  char line[2048];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (length < 0) return;
  logger->write(logger->user, level, line);
}

/* ---- Checked arithmetic ---- */

bool cs_mul_i64(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}
bool cs_add_i64(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_add_overflow(a, b, out);
}

/* ---- Hashing ---- */

uint64_t cs_hash_bytes(uint64_t hash, const void *data, size_t length) {
  const unsigned char *bytes = data;
  for (size_t i = 0; i < length; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
  return hash;
}

uint64_t cs_hash_string(uint64_t hash, const char *text) {
  return cs_hash_bytes(hash, text, strlen(text) + 1);
}

/* ---- Statistics ---- */

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double quantile(const double *sorted, int n, double q) {
  double position = q * (n - 1);
  int below = (int)position;
  if (below >= n - 1) return sorted[n - 1];
  return sorted[below] + (position - below) * (sorted[below + 1] - sorted[below]);
}

cs_status cs_stats_of(const double *samples, int n, cs_stats *out) {
  memset(out, 0, sizeof *out);
  if (n <= 0) return CS_OK;
  double *sorted = cs_calloc((size_t)n, sizeof *sorted);
  if (!sorted) return cs_no_memory("samples", (size_t)n * sizeof *sorted);
  memcpy(sorted, samples, (size_t)n * sizeof *sorted);
  qsort(sorted, (size_t)n, sizeof *sorted, compare_doubles);
  double sum = 0, squares = 0;
  for (int i = 0; i < n; i++) sum += sorted[i];
  out->n = n;
  out->mean = sum / n;
  for (int i = 0; i < n; i++) squares += (sorted[i] - out->mean) * (sorted[i] - out->mean);
  out->median = quantile(sorted, n, 0.5);
  out->p10 = quantile(sorted, n, 0.1);
  out->p90 = quantile(sorted, n, 0.9);
  out->min = sorted[0];
  out->max = sorted[n - 1];
  out->variation = n > 1 && out->mean != 0 ? sqrt(squares / (n - 1)) / out->mean : 0;
  free(sorted);
  return CS_OK;
}

/* ---- Time ---- */

double cs_now_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- Parallel loop ---- */

int cs_cpu_count(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  int count = CPU_COUNT(&set);
  return count > 0 ? count : 1;
}

typedef struct parallel_loop {
  cs_parallel_fn body;
  void *user;
  int64_t n, next;
  int next_worker;
  const char *stage, *unit; /* NULL: reports nothing */
  cs_status first_error;
  pthread_mutex_t lock;
} parallel_loop;

static void work_in_loop(parallel_loop *loop, bool reports) {
  pthread_mutex_lock(&loop->lock);
  int worker = loop->next_worker++;
  while (loop->first_error == CS_OK && loop->next < loop->n) {
    int64_t index = loop->next++;
    pthread_mutex_unlock(&loop->lock);
    if (reports) cs_progress_step(loop->stage, loop->unit, index, loop->n, NULL);
    cs_status st = loop->body(loop->user, index, worker);
    pthread_mutex_lock(&loop->lock);
    if (st != CS_OK) {
      if (loop->first_error == CS_OK) {
        loop->first_error = st;
      } else {
        cs_status_free(st);
      }
    }
  }
  pthread_mutex_unlock(&loop->lock);
}

static void *parallel_worker(void *loop) {
  work_in_loop(loop, false);
  return NULL;
}

cs_status cs_parallel_for(int64_t n, int threads, cs_parallel_fn body, void *user) {
  return cs_parallel_stage(NULL, NULL, n, threads, body, user);
}

cs_status cs_parallel_stage(const char *stage, const char *unit, int64_t n, int threads,
                            cs_parallel_fn body, void *user) {
  if (threads <= 0) threads = cs_cpu_count();
  if (threads > n) threads = (int)n;
  if (n <= 0) return CS_OK;
  parallel_loop loop = {.body = body, .user = user, .n = n, .stage = stage, .unit = unit};
  pthread_mutex_init(&loop.lock, NULL);
  pthread_t *helpers = cs_calloc((size_t)threads, sizeof *helpers);
  int started = 0;
  /* A thread that cannot be started is only a slower loop: the caller works too. */
  while (helpers && started < threads - 1 &&
         pthread_create(&helpers[started], NULL, parallel_worker, &loop) == 0) {
    started++;
  }
  work_in_loop(&loop, stage != NULL);
  for (int i = 0; i < started; i++) pthread_join(helpers[i], NULL);
  free(helpers);
  pthread_mutex_destroy(&loop.lock);
  return loop.first_error;
}
