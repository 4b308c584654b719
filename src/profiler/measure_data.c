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

static cs_status take(const float *normals, int64_t n, int64_t start, double mean, double deviation,
                      float **out) {
  *out = cs_calloc((size_t)n, sizeof **out);
  if (!*out) return cs_no_memory("tensor contents", (size_t)n * sizeof **out);
  int64_t at = start % N_NORMALS;
  for (int64_t i = 0; i < n; i++) {
    (*out)[i] = (float)(mean + deviation * (double)normals[at]);
    if (++at == N_NORMALS) at = 0;
  }
  return CS_OK;
}

/* Of ordinary size as divisors and bases of powers. */
static void make_positive(float *values, int64_t n) {
  for (int64_t i = 0; i < n; i++) values[i] = fabsf(values[i]) + 0.5f;
}

typedef struct conversion {
  cs_tensor_desc image;
  const float *values;
  int64_t elements, stride; /* of an image: values, bytes */
  char *memory;
} conversion;

static cs_status convert_image(void *user, int64_t index, int worker) {
  const conversion *c = user;
  (void)worker;
  cs_tensor_from_f32(&c->image, c->values + index * c->elements, c->memory + index * c->stride);
  return CS_OK;
}

/* Image by image, on all cores. */
static cs_status convert(const cs_tensor_desc *desc, const float *values, int64_t n, void *memory) {
  int64_t images = desc->shape.rank >= 2 ? desc->shape.dims[0] : 1;
  conversion c = {.image = *desc, .values = values, .elements = n / images, .memory = memory};
  if (images > 1) c.image.shape.dims[0] = 1;
  c.stride = desc->strides[0] * cs_dtype_size(desc->dtype);
  return cs_parallel_for(images, n < (1 << 18) ? 1 : 0, convert_image, &c);
}

cs_status cs_measure_make_input(const float *normals, const cs_tensor_desc *desc, int index,
                                bool positive, void **out) {
  cs_status st = CS_OK;
  float *values = NULL;
  int64_t n = 0, span = cs_tensor_span_bytes(desc);
  CS_TRY(st, cs_shape_elements(&desc->shape, &n), done);
  CS_TRY(st, take(normals, n, (int64_t)index * 350377, 0, 1, &values), done);
  if (positive) make_positive(values, n);
  *out = malloc((size_t)cs_max_i64(span, 1));
  if (!*out) {
    st = cs_no_memory("an input", (size_t)span);
    goto done;
  }
  memset(*out, 0xFF, (size_t)span);
  st = convert(desc, values, n, *out);
done:
  free(values);
  return st;
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
