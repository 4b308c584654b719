/* Runs own kernels on device arrays between guard bands and judges them: every variant against the
 * plain C reference, and the double GPU reference against it too. */
#ifndef CONVSCHED_TESTS_GPU_KERNEL_CHECK_H_
#define CONVSCHED_TESTS_GPU_KERNEL_CHECK_H_

#include <math.h>

#include "backend/cuda/kernels.h"
#include "backend/reference/reference.h"
#include "conformance_cases.h"

#define KC_GUARD 512

/* Device bytes between guard bands; `host` mirrors all of it. Filled with 0xFF: NaN in every type.
 */
typedef struct kc_region {
  unsigned char *host, *base;
  size_t bytes;
} kc_region;

static inline void *kc_alloc(size_t bytes) {
  void *memory = calloc(1, bytes > 0 ? bytes : 1);
  if (!memory) abort();
  return memory;
}

static inline void kc_cuda(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  abort();
}

static inline void kc_upload(const kc_region *region) {
  kc_cuda(
      cudaMemcpy(region->base, region->host, region->bytes + 2 * KC_GUARD, cudaMemcpyHostToDevice),
      "upload");
}

static inline kc_region kc_region_create(int64_t bytes) {
  kc_region region = {.bytes = (size_t)bytes};
  region.host = kc_alloc(region.bytes + 2 * KC_GUARD);
  memset(region.host, 0xFF, region.bytes + 2 * KC_GUARD);
  kc_cuda(cudaMalloc((void **)&region.base, region.bytes + 2 * KC_GUARD), "cudaMalloc");
  kc_upload(&region);
  return region;
}

static inline void kc_region_free(kc_region *region) {
  free(region->host);
  if (region->base) kc_cuda(cudaFree(region->base), "cudaFree");
  *region = (kc_region){0};
}

/* What the device holds now; free() releases. Waits for the kernels. */
static inline unsigned char *kc_download(const kc_region *region) {
  unsigned char *now = kc_alloc(region->bytes + 2 * KC_GUARD);
  kc_cuda(cudaMemcpy(now, region->base, region->bytes + 2 * KC_GUARD, cudaMemcpyDeviceToHost),
          "download");
  return now;
}

static inline int64_t kc_elements(const cs_shape *shape) {
  int64_t n = 1;
  for (int i = 0; i < shape->rank; i++) n *= shape->dims[i];
  return n;
}

/* Values the storage type holds exactly. */
static inline float *kc_random(int64_t n, uint64_t stream, double deviation, cs_dtype dtype) {
  float *values = kc_alloc((size_t)n * sizeof(float));
  cs_rng rng;
  cs_rng_init(&rng, 77, stream);
  cs_rng_fill_normal(&rng, values, n, 0.0, deviation);
  cs_round_to_dtype(dtype, values, n);
  return values;
}

typedef struct kc_run {
  const conformance_case *c;
  kc_region inputs[CS_MAX_OP_INPUTS], output;
  const void *in[CS_MAX_OP_INPUTS];
  float *weight, *bias;
  double *value, *magnitude; /* the plain C reference */
  int64_t elements;
} kc_run;

/* All but what the reference makes of it; `doubles`: the inputs, which the caller frees. */
static inline kc_run kc_run_begin(const conformance_case *c, double *doubles[CS_MAX_OP_INPUTS]) {
  kc_run run = {.c = c};
  const cs_op_desc *d = &c->desc;
  uint64_t stream = cs_hash_string(CS_HASH_SEED, c->name);
  for (int i = 0; i < d->n_inputs; i++) {
    int64_t n = kc_elements(&d->inputs[i].shape);
    float *values = kc_random(n, stream + (uint64_t)i, 1.0, d->inputs[i].dtype);
    if (cs_op_wants_positive(d, i)) conformance_make_positive(values, n, d->inputs[i].dtype);
    doubles[i] = kc_alloc((size_t)n * sizeof(double));
    for (int64_t j = 0; j < n; j++) doubles[i][j] = (double)values[j];
    run.inputs[i] = kc_region_create(c->inputs[i].bytes);
    cs_tensor_from_f32(&d->inputs[i], values, run.inputs[i].host + KC_GUARD + c->inputs[i].offset);
    kc_upload(&run.inputs[i]);
    run.in[i] = run.inputs[i].base + KC_GUARD + c->inputs[i].offset;
    free(values);
  }
  int64_t n_weight = cs_op_weight_elements(d), n_bias = cs_op_bias_elements(d);
  double deviation = 1.0 / sqrt((double)cs_op_reduction(d));
  if (n_weight > 0) run.weight = kc_random(n_weight, stream + 7, deviation, d->output.dtype);
  if (cs_op_wants_positive(d, d->n_inputs))
    conformance_make_positive(run.weight, n_weight, d->output.dtype);
  if (n_bias > 0) run.bias = kc_random(n_bias, stream + 8, 0.5, d->output.dtype);
  run.output = kc_region_create(c->output.bytes);
  run.elements = kc_elements(&d->output.shape);
  run.value = kc_alloc((size_t)run.elements * sizeof(double));
  run.magnitude = kc_alloc((size_t)run.elements * sizeof(double));
  return run;
}

static inline kc_run kc_run_create(const conformance_case *c) {
  double *doubles[CS_MAX_OP_INPUTS] = {0};
  kc_run run = kc_run_begin(c, doubles);
  cs_status st = cs_reference_run(&c->desc, (const double *const *)doubles, run.weight, run.bias,
                                  run.value, run.magnitude, 0);
  if (st != CS_OK) abort();
  for (int i = 0; i < c->desc.n_inputs; i++) free(doubles[i]);
  return run;
}

static inline kc_region kc_region_of(const void *values, int64_t bytes) {
  kc_region region = kc_region_create(bytes);
  if (values) memcpy(region.host + KC_GUARD, values, (size_t)bytes);
  kc_upload(&region);
  return region;
}

static inline void kc_move(kc_region *from, void *to) {
  unsigned char *now = kc_download(from);
  memcpy(to, now + KC_GUARD, from->bytes);
  free(now);
  kc_region_free(from);
}

/* The reference is the device's: the plain C one would take long. */
static inline kc_run kc_run_create_large(const conformance_case *c) {
  const cs_op_desc *d = &c->desc;
  double *doubles[CS_MAX_OP_INPUTS] = {0};
  kc_run run = kc_run_begin(c, doubles);
  for (int i = 0; i < d->n_inputs; i++) free(doubles[i]);
  int64_t floats = (int64_t)sizeof(float), bytes = run.elements * (int64_t)sizeof(double);
  kc_region weight = kc_region_of(run.weight, cs_op_weight_elements(d) * floats);
  kc_region bias = kc_region_of(run.bias, cs_op_bias_elements(d) * floats);
  kc_region value = kc_region_create(bytes), magnitude = kc_region_create(bytes);
  cs_status st = cs_cuda_reference_launch(
      d, run.in, run.weight ? (const float *)(weight.base + KC_GUARD) : NULL,
      run.bias ? (const float *)(bias.base + KC_GUARD) : NULL, (double *)(value.base + KC_GUARD),
      (double *)(magnitude.base + KC_GUARD), 0);
  if (st != CS_OK) abort();
  kc_move(&value, run.value);
  kc_move(&magnitude, run.magnitude);
  kc_region_free(&weight);
  kc_region_free(&bias);
  return run;
}

static inline void kc_run_free(kc_run *run) {
  for (int i = 0; i < CS_MAX_OP_INPUTS; i++) kc_region_free(&run->inputs[i]);
  kc_region_free(&run->output);
  free(run->weight);
  free(run->bias);
  free(run->value);
  free(run->magnitude);
}

static inline int kc_complain(const char *name, const char *id, const char *what) {
  fprintf(stderr, "FAIL %s %s: %s\n", name, id, what);
  return 1;
}

static inline int kc_failed(const char *name, const char *id, cs_status st) {
  int failures = st == CS_OK ? 0 : kc_complain(name, id, cs_status_message(st));
  cs_status_free(st);
  return failures;
}

/* Compares the output with the reference, and everything around it with what was there. */
static inline int kc_judge(const kc_run *run, const char *id) {
  const cs_op_desc *d = &run->c->desc;
  unsigned char *now = kc_download(&run->output);
  unsigned char *expected = kc_alloc(run->output.bytes + 2 * KC_GUARD);
  float *out = kc_alloc((size_t)run->elements * sizeof(float));
  int64_t at = KC_GUARD + run->c->output.offset;
  cs_tensor_to_f32(&d->output, now + at, out);
  memcpy(expected, run->output.host, run->output.bytes + 2 * KC_GUARD);
  cs_tensor_from_f32(&d->output, out, expected + at);
  double rel_l2, max_scaled;
  cs_tolerance(d, 0, &rel_l2, &max_scaled);
  cs_error_measure e = cs_measure_error(out, run->value, run->magnitude, run->elements);
  int failures = 0;
  char text[160];
  snprintf(text, sizeof text, "rel_l2 %.3g (limit %.3g), max_scaled %.3g (limit %.3g)%s", e.rel_l2,
           rel_l2, e.max_scaled, max_scaled, e.finite ? "" : ", not finite");
  if (!e.finite || e.rel_l2 > rel_l2 || e.max_scaled > max_scaled)
    failures = kc_complain(run->c->name, id, text);
  if (memcmp(now, expected, run->output.bytes + 2 * KC_GUARD) != 0)
    failures += kc_complain(run->c->name, id, "writes outside the output");
  free(now);
  free(expected);
  free(out);
  return failures;
}

/* The double GPU reference against the plain C one: only the order of double sums differs. */
static inline int kc_check_reference(const kc_run *run) {
  const cs_op_desc *d = &run->c->desc;
  int64_t n = run->elements, n_weight = cs_op_weight_elements(d), n_bias = cs_op_bias_elements(d);
  int64_t floats = (int64_t)sizeof(float), doubles = (int64_t)sizeof(double);
  kc_region weight = kc_region_create(n_weight * floats);
  kc_region bias = kc_region_create(n_bias * floats);
  kc_region value = kc_region_create(n * doubles), magnitude = kc_region_create(n * doubles);
  if (run->weight) memcpy(weight.host + KC_GUARD, run->weight, (size_t)(n_weight * floats));
  if (run->bias) memcpy(bias.host + KC_GUARD, run->bias, (size_t)(n_bias * floats));
  kc_upload(&weight);
  kc_upload(&bias);
  int failures =
      kc_failed(run->c->name, "reference",
                cs_cuda_reference_launch(
                    d, run->in, run->weight ? (const float *)(weight.base + KC_GUARD) : NULL,
                    run->bias ? (const float *)(bias.base + KC_GUARD) : NULL,
                    (double *)(value.base + KC_GUARD), (double *)(magnitude.base + KC_GUARD), 0));
  unsigned char *v = kc_download(&value), *m = kc_download(&magnitude);
  int64_t wrong = 0;
  for (int64_t i = 0; i < n; i++) {
    double gpu_value = ((double *)(v + KC_GUARD))[i], gpu_magnitude = ((double *)(m + KC_GUARD))[i];
    double limit = 1e-12 * (run->magnitude[i] + 1e-300);
    bool same = fabs(gpu_value - run->value[i]) <= limit + 1e-13 * fabs(run->value[i]) ||
                (isnan(gpu_value) && isnan(run->value[i])) || gpu_value == run->value[i];
    wrong += !same || !(fabs(gpu_magnitude - run->magnitude[i]) <= limit ||
                        gpu_magnitude == run->magnitude[i] ||
                        (isnan(gpu_magnitude) && isnan(run->magnitude[i])));
  }
  if (wrong > 0) failures += kc_complain(run->c->name, "reference", "differs from the plain C one");
  bool guards = memcmp(v, value.host, KC_GUARD) == 0 &&
                memcmp(v + KC_GUARD + n * doubles, value.host, KC_GUARD) == 0 &&
                memcmp(m, magnitude.host, KC_GUARD) == 0 &&
                memcmp(m + KC_GUARD + n * doubles, magnitude.host, KC_GUARD) == 0;
  if (!guards) failures += kc_complain(run->c->name, "reference", "writes outside its arrays");
  free(v);
  free(m);
  kc_region_free(&weight);
  kc_region_free(&bias);
  kc_region_free(&value);
  kc_region_free(&magnitude);
  return failures;
}

/* Of an operation's variants, so it is there. */
static inline cs_cuda_kernel kc_kernel(const cs_op_desc *desc, const char *id) {
  cs_cuda_kernel kernel;
  cs_status st = cs_cuda_kernel_find(desc, id, &kernel);
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
  return kernel;
}

static inline int kc_check_variant(kc_run *run, const char *id) {
  const cs_op_desc *d = &run->c->desc;
  cs_cuda_kernel kernel = kc_kernel(d, id);
  kc_region weights = kc_region_create(cs_cuda_kernel_weight_bytes(&kernel, d));
  int failures = kc_failed(
      run->c->name, id,
      cs_cuda_kernel_pack_weights(&kernel, d, run->weight, run->bias, weights.host + KC_GUARD));
  kc_upload(&weights);
  kc_upload(&run->output);
  failures +=
      kc_failed(run->c->name, id,
                cs_cuda_kernel_launch(&kernel, d, run->in, weights.base + KC_GUARD,
                                      run->output.base + KC_GUARD + run->c->output.offset, 0));
  failures += kc_judge(run, id);
  kc_region_free(&weights);
  return failures;
}

/* Every variant of a case; returns failures and adds to *variants. */
static inline int kc_check_case(const conformance_case *c, int *variants) {
  const char *ids[CS_CUDA_VARIANTS_MOST];
  int n = cs_cuda_kernel_variants(&c->desc, ids, CS_CUDA_VARIANTS_MOST);
  if (n == 0) return kc_complain(c->name, "-", "no kernel");
  kc_run run = kc_run_create(c);
  int failures = kc_check_reference(&run);
  for (int i = 0; i < n; i++) failures += kc_check_variant(&run, ids[i]);
  for (int i = 0; i < c->desc.n_inputs; i++) {
    unsigned char *now = kc_download(&run.inputs[i]);
    if (memcmp(now, run.inputs[i].host, run.inputs[i].bytes + 2 * KC_GUARD) != 0)
      failures += kc_complain(c->name, "-", "writes to an input");
    free(now);
  }
  *variants += n;
  kc_run_free(&run);
  return failures;
}

#endif
