/* Values for kernels' steps on the host, and what the plain reference makes of them. */
#ifndef CONVSCHED_TESTS_VALUES_FIXTURE_H_
#define CONVSCHED_TESTS_VALUES_FIXTURE_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka wants the four above first */
#include <cmocka.h>
/* clang-format on */
#include <stdlib.h>

#include "backend/reference/reference.h"
#include "unit/status_checks.h"

static inline void *zeros(int64_t n, size_t size) {
  void *memory = calloc((size_t)n, size);
  assert_non_null(memory);
  return memory;
}

static inline int64_t count(const cs_shape *shape) {
  int64_t n = 1;
  for (int i = 0; i < shape->rank; i++) n *= shape->dims[i];
  return n;
}

/* Normal, of deviation 1. free() releases. */
static inline float *random_values(int64_t n, uint64_t stream) {
  float *values = zeros(n, sizeof *values);
  cs_rng rng;
  cs_rng_init(&rng, 5, stream);
  cs_rng_fill_normal(&rng, values, n, 0.0, 1.0);
  return values;
}

/* The operation's output in double precision, of a dense x in logical order. free() releases. */
static inline double *reference_of(const cs_op_desc *d, const float *x, const float *weight,
                                   const float *bias) {
  int64_t n_x = count(&d->inputs[0].shape);
  double *input = zeros(n_x, sizeof *input);
  double *value = zeros(count(&d->output.shape), sizeof *value);
  for (int64_t i = 0; i < n_x; i++) input[i] = (double)x[i];
  const double *inputs[] = {input};
  ok(cs_reference_run(d, inputs, weight, bias, value, NULL, 1));
  free(input);
  return value;
}

#endif
