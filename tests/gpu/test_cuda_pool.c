/* MaxPool and AveragePool: every kernel against the plain C reference where windows, strips and
 * vectors meet edges; NaN and infinities reach the windows that hold them, no others; and strips
 * are offered where they apply. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>

#include "kernel_check.h"

static const cs_layout kLayouts[] = {CS_LAYOUT_NHWC, CS_LAYOUT_NCHW};

/* Both operators. */
static void add_pools(cc_context *x, const char *name, const int in[4], const int kernel[2],
                      const int strides[2], const int pads[4], int flags) {
  cc_pool(x, CS_OP_MAX_POOL, name, in, kernel, strides, pads, CC2(1, 1), flags);
  cc_pool(x, CS_OP_AVERAGE_POOL, name, in, kernel, strides, pads, CC2(1, 1), flags);
  cc_pool(x, CS_OP_AVERAGE_POOL, name, in, kernel, strides, pads, CC2(1, 1),
          flags | CC_INCLUDE_PAD);
}

/* Output heights of one to nine: every remainder of a strip, at either end of the padding. */
static void add_heights(cc_context *x) {
  static const int pads[][4] = {{0, 0, 0, 0}, {1, 1, 1, 1}, {0, 1, 1, 0}, {2, 0, 1, 2}};
  for (int kernel = 2; kernel <= 3; kernel++)
    for (int stride = 1; stride <= 2; stride++)
      for (int p = 0; p < 4; p++)
        for (int height = kernel; height < kernel + 8 * stride; height++) {
          if (kernel == 2 && p == 3) continue; /* pads are less than the kernel */
          char name[64];
          snprintf(name, sizeof name, "k%d_s%d_p%d_h%d", kernel, stride, p, height);
          add_pools(x, name, CC4(1 + height % 2, 24, height, 3 + height % 4), CC2(kernel, kernel),
                    CC2(stride, stride), pads[p], height % 3 == 0 ? CC_CEIL : 0);
        }
}

static conformance_table table_of(int n_layouts) {
  conformance_table table = {0};
  cc_context x = {&table, kLayouts, n_layouts};
  const int *one = CC2(1, 1), *two = CC2(2, 2), *three = CC2(3, 3), *none = CC4(0, 0, 0, 0);
  const int *p1 = CC4(1, 1, 1, 1);
  add_heights(&x);
  add_pools(&x, "pixel", CC4(3, 16, 1, 1), three, one, p1, 0);
  add_pools(&x, "row", CC4(1, 16, 1, 9), three, one, p1, 0);
  add_pools(&x, "column", CC4(2, 16, 9, 1), three, one, p1, 0);
  add_pools(&x, "wide", CC4(2, 40, 6, 61), three, two, CC4(1, 0, 0, 1), CC_CEIL);
  add_pools(&x, "strides_differ", CC4(1, 16, 9, 13), three, CC2(1, 3), p1, 0);
  add_pools(&x, "strides_differ_2", CC4(1, 16, 13, 9), three, CC2(2, 1), p1, 0);
  add_pools(&x, "stride_3", CC4(1, 16, 13, 14), two, CC2(3, 3), p1, CC_CEIL);
  add_pools(&x, "kernel_differs", CC4(1, 16, 9, 9), CC2(2, 3), one, p1, 0);
  add_pools(&x, "slice_in", CC4(2, 32, 9, 7), three, one, p1, CC_VIEW_IN);
  add_pools(&x, "slice_out", CC4(2, 32, 9, 7), three, two, p1, CC_VIEW_OUT);
  add_pools(&x, "slices", CC4(2, 16, 7, 9), two, one, none, CC_VIEW_IN | CC_VIEW_OUT);
  add_pools(&x, "odd_slices", CC4(2, 16, 7, 9), three, one, p1,
            CC_VIEW_IN | CC_VIEW_OUT | CC_VIEW_ODD);
  add_pools(&x, "odd_channels", CC4(2, 13, 7, 9), three, two, p1, 0);
  add_pools(&x, "many_blocks", CC4(3, 64, 57, 55), three, one, p1, 0);
  add_pools(&x, "many_blocks_2", CC4(2, 72, 56, 57), three, two, none, CC_CEIL);
  return table;
}

static void every_kernel_is_right(void **state) {
  (void)state;
  conformance_table table = table_of(2);
  int failures = 0, variants = 0;
  for (int i = 0; i < table.n; i++) failures += kc_check_case(&table.cases[i], &variants);
  fprintf(stderr, "%d cases, %d variants, %d failures\n", table.n, variants, failures);
  assert_int_equal(failures, 0);
  assert_true(2 * variants > 3 * table.n); /* NHWC has three mostly, NCHW one */
  free(table.cases);
}

/* Those that round nothing more than a product: a maximum's tolerance has no room for others. */
static void activations_are_right(void **state) {
  (void)state;
  static const cs_act_kind kinds[] = {CS_ACT_RELU, CS_ACT_LEAKY_RELU, CS_ACT_CLIP};
  int failures = 0, variants = 0;
  for (int kind = 0; kind < 3; kind++) {
    conformance_table table = {0};
    cc_context x = {&table, kLayouts, 2};
    add_pools(&x, "activation", CC4(1, 24, 9, 7), CC2(3, 3), CC2(1, 1), CC4(1, 1, 1, 1), 0);
    for (int i = 0; i < table.n; i++) {
      conformance_spec spec = {0};
      cc_act(&spec, kinds[kind]);
      table.cases[i].desc.activation = spec.activation;
      failures += kc_check_case(&table.cases[i], &variants);
    }
    free(table.cases);
  }
  assert_int_equal(failures, 0);
}

/* ---- NaN and infinities ---- */

/* Another value for about one input in ten: NaN, either infinity, the largest and the smallest. */
static void sprinkle(float *values, int64_t n, uint64_t stream) {
  static const float special[] = {NAN, INFINITY, -INFINITY, 65504.f, 0x1p-14f, -0.f};
  cs_rng rng;
  cs_rng_init(&rng, 78, stream);
  float *draws = kc_alloc((size_t)(2 * n) * sizeof(float));
  cs_rng_fill_normal(&rng, draws, 2 * n, 0.0, 1.0);
  for (int64_t i = 0; i < n; i++)
    if (fabsf(draws[2 * i]) < 0.125f)
      values[i] = special[(int)(fabsf(draws[2 * i + 1]) * 1000.f) % 6];
  free(draws);
}

/* The same NaN, infinity, or (of a maximum) number. Sums near the type's limit may overflow, so of
 * an average's numbers nothing is asked. */
static bool same_kind(const cs_op_desc *d, float out, double value) {
  if (isnan(value)) return isnan(out);
  if (isinf(value) || d->op == CS_OP_MAX_POOL) return (double)out == value;
  return isfinite(out);
}

static int check_special(const conformance_case *c, int *variants) {
  const cs_op_desc *d = &c->desc;
  kc_run run = kc_run_create(c);
  int64_t n = kc_elements(&d->inputs[0].shape);
  unsigned char *tensor = run.inputs[0].host + KC_GUARD + c->inputs[0].offset;
  float *values = kc_alloc((size_t)n * sizeof(float));
  double *doubles = kc_alloc((size_t)n * sizeof(double));
  cs_tensor_to_f32(&d->inputs[0], tensor, values);
  sprinkle(values, n, cs_hash_string(CS_HASH_SEED, c->name));
  cs_tensor_from_f32(&d->inputs[0], values, tensor);
  cs_tensor_to_f32(&d->inputs[0], tensor, values); /* as the type holds them */
  kc_upload(&run.inputs[0]);
  for (int64_t i = 0; i < n; i++) doubles[i] = (double)values[i];
  int failures = kc_failed(c->name, "reference",
                           cs_reference_run(d, (const double *const[]){doubles}, NULL, NULL,
                                            run.value, run.magnitude, 0));
  const char *ids[CS_CUDA_VARIANTS_MOST];
  int n_ids = cs_cuda_kernel_variants(d, ids, CS_CUDA_VARIANTS_MOST);
  float *out = kc_alloc((size_t)run.elements * sizeof(float));
  for (int v = 0; v < n_ids; v++) {
    cs_cuda_kernel kernel = kc_kernel(d, ids[v]);
    kc_upload(&run.output);
    failures += kc_failed(c->name, ids[v],
                          cs_cuda_kernel_launch(&kernel, d, run.in, NULL,
                                                run.output.base + KC_GUARD + c->output.offset, 0));
    unsigned char *now = kc_download(&run.output);
    cs_tensor_to_f32(&d->output, now + KC_GUARD + c->output.offset, out);
    int wrong = 0;
    for (int64_t i = 0; i < run.elements; i++) wrong += !same_kind(d, out[i], run.value[i]);
    if (wrong > 0) failures += kc_complain(c->name, ids[v], "NaN or infinities go astray");
    free(now);
  }
  *variants += n_ids;
  free(values);
  free(doubles);
  free(out);
  kc_run_free(&run);
  return failures;
}

static void special_values_stay_in_their_windows(void **state) {
  (void)state;
  conformance_table table = table_of(2);
  int failures = 0, variants = 0;
  for (int i = 0; i < table.n; i++) failures += check_special(&table.cases[i], &variants);
  fprintf(stderr, "%d variants, %d failures\n", variants, failures);
  assert_int_equal(failures, 0);
  free(table.cases);
}

/* ---- Where strips are offered ---- */

static int offered(cs_op op, cs_layout layout, const int in[4], int kernel, int stride, int flags) {
  conformance_table table = {0};
  cc_context x = {&table, &layout, 1};
  cc_pool(&x, op, "offered", in, CC2(kernel, kernel), CC2(stride, stride), CC4(1, 1, 1, 1),
          CC2(1, 1), flags);
  int n = cs_cuda_kernel_variants(&table.cases[0].desc, NULL, 0);
  free(table.cases);
  return n;
}

static void strips_are_offered_where_they_apply(void **state) {
  (void)state;
  const cs_layout nhwc = CS_LAYOUT_NHWC;
  for (int i = 0; i < 2; i++) {
    cs_op op = i == 0 ? CS_OP_MAX_POOL : CS_OP_AVERAGE_POOL;
    assert_int_equal(offered(op, nhwc, CC4(1, 16, 9, 9), 3, 1, 0), 3);
    assert_int_equal(offered(op, nhwc, CC4(1, 16, 9, 9), 2, 2, 0), 3);
    assert_int_equal(offered(op, nhwc, CC4(1, 16, 3, 9), 3, 1, 0), 2); /* three rows of outputs */
    assert_int_equal(offered(op, nhwc, CC4(1, 16, 1, 9), 3, 1, 0), 1);
    assert_int_equal(offered(op, nhwc, CC4(1, 16, 9, 9), 4, 1, 0), 1);
    assert_int_equal(offered(op, nhwc, CC4(1, 16, 9, 9), 3, 3, 0), 1);
    assert_int_equal(offered(op, nhwc, CC4(1, 13, 9, 9), 3, 1, 0), 1);
    assert_int_equal(offered(op, nhwc, CC4(1, 16, 9, 9), 3, 1, CC_VIEW_IN | CC_VIEW_ODD), 1);
    assert_int_equal(offered(op, CS_LAYOUT_NCHW, CC4(1, 16, 9, 9), 3, 1, 0), 1);
  }
}

int main(void) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return 77;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kernel_is_right),
      cmocka_unit_test(activations_are_right),
      cmocka_unit_test(special_values_stay_in_their_windows),
      cmocka_unit_test(strips_are_offered_where_they_apply),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
