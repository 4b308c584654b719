#include "profiler/measure_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/reference/reference.h"

/* Prime, so that no image or channel of a usual size repeats the one before. */
#define N_NORMALS 1048573
#define DATA_SEED 1

cs_status cs_measure_normals(float **out) {
  cs_rng rng;
  *out = cs_calloc(N_NORMALS, sizeof **out);
  if (!*out) return cs_no_memory("random values", N_NORMALS * sizeof **out);
  cs_rng_init(&rng, DATA_SEED, 0);
  cs_rng_fill_normal(&rng, *out, N_NORMALS, 0, 1);
  return CS_OK;
}

/* `n` of the table's values from element `start` on, which goes on from its beginning. */
static void fill(const float *normals, int64_t n, int64_t start, double mean, double deviation,
                 float *out) {
  int64_t at = start % N_NORMALS;
  for (int64_t i = 0; i < n; i++) {
    out[i] = (float)(mean + deviation * (double)normals[at]);
    if (++at == N_NORMALS) at = 0;
  }
}

static cs_status take(const float *normals, int64_t n, int64_t start, double mean, double deviation,
                      float **out) {
  *out = cs_calloc((size_t)n, sizeof **out);
  if (!*out) return cs_no_memory("tensor contents", (size_t)n * sizeof **out);
  fill(normals, n, start, mean, deviation, *out);
  return CS_OK;
}

/* Of ordinary size as divisors and bases of powers. */
static void make_positive(float *values, int64_t n) {
  for (int64_t i = 0; i < n; i++) values[i] = fabsf(values[i]) + 0.5f;
}

/* ---- Inputs, part by part on all cores ---- */

typedef struct making {
  cs_tensor_desc part; /* one image of many, or the whole */
  int64_t n_parts, elements, stride,
      span; /* elements of a part; bytes from one to the next, of all */
  const float *normals;
  int64_t start;
  bool positive;
  char *memory;
} making;

static making making_of(const cs_tensor_desc *desc, int64_t n, int64_t span) {
  making m = {.part = *desc, .n_parts = 1, .elements = n, .span = span};
  int64_t images = desc->shape.rank >= 2 ? desc->shape.dims[0] : 1;
  if (images < 2) return m;
  cs_tensor_desc image = *desc;
  image.shape.dims[0] = 1;
  int64_t stride = desc->strides[0] * cs_dtype_size(desc->dtype);
  if (stride < cs_tensor_span_bytes(&image)) return m;
  m.part = image, m.n_parts = images, m.elements = n / images, m.stride = stride;
  return m;
}

static cs_status make_part(void *user, int64_t index, int worker) {
  const making *m = user;
  (void)worker;
  float *values = NULL;
  char *memory = m->memory + index * m->stride;
  CS_RETURN_IF_ERROR(take(m->normals, m->elements, m->start + index * m->elements, 0, 1, &values));
  if (m->positive) make_positive(values, m->elements);
  memset(memory, 0xFF, (size_t)(index + 1 == m->n_parts ? m->span - index * m->stride : m->stride));
  cs_tensor_from_f32(&m->part, values, memory);
  free(values);
  return CS_OK;
}

cs_status cs_measure_make_input(const float *normals, const cs_tensor_desc *desc, int index,
                                bool positive, void **out) {
  int64_t n = 0, span = cs_tensor_span_bytes(desc);
  CS_RETURN_IF_ERROR(cs_shape_elements(&desc->shape, &n));
  making m = making_of(desc, n, span);
  m.normals = normals, m.start = (int64_t)index * 350377, m.positive = positive;
  *out = m.memory = malloc((size_t)cs_max_i64(span, 1));
  if (!*out) return cs_no_memory("an input", (size_t)span);
  return cs_parallel_for(m.n_parts, n < (1 << 18) ? 1 : 0, make_part, &m);
}

cs_status cs_measure_make_weights(const float *normals, const cs_op_desc *desc, float **weight,
                                  float **bias) {
  int64_t n_weight = cs_op_weight_elements(desc), n_bias = cs_op_bias_elements(desc);
  cs_dtype storage = cs_precision_storage(desc->precision);
  bool scale = desc->op == CS_OP_BATCH_NORM || desc->op == CS_OP_INSTANCE_NORM;
  if (n_weight > 0) {
    double deviation = scale ? 0.1 : 1 / sqrt((double)cs_op_reduction(desc));
    CS_RETURN_IF_ERROR(take(normals, n_weight, 700001, scale ? 1 : 0, deviation, weight));
    if (cs_op_wants_positive(desc, desc->n_inputs)) make_positive(*weight, n_weight);
    cs_round_to_dtype(storage, *weight, n_weight);
  }
  if (n_bias > 0) {
    CS_RETURN_IF_ERROR(take(normals, n_bias, 900001, 0, 0.1, bias));
    int64_t scales = desc->has_prologue ? desc->inputs[0].shape.dims[1] : 0;
    for (int64_t c = 0; c < scales; c++) (*bias)[n_bias - 2 * scales + c] += 1;
    cs_round_to_dtype(storage, *bias, n_bias);
  }
  return CS_OK;
}
