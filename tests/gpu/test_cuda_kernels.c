/* Own kernels against the references: the shared table of cases, and cases of their own for what it
 * leaves out (the epilogue, tiles that overlap an edge, many rows, long sums, offsets past 2^31).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel_check.h"

static const cs_layout kLayouts[] = {CS_LAYOUT_NCHW, CS_LAYOUT_NHWC};
static const cs_precision kPrecisions[] = {CS_PRECISION_F32, CS_PRECISION_F16, CS_PRECISION_BF16};

static int check_table(const conformance_table *table) {
  int failures = 0, variants = 0;
  for (int i = 0; i < table->n; i++) failures += kc_check_case(&table->cases[i], &variants);
  fprintf(stderr, "%d cases, %d variants, %d failures\n", table->n, variants, failures);
  return failures;
}

static void test_table(void **state) {
  (void)state;
  conformance_table table = conformance_build(kLayouts, 2);
  assert_true(table.n >= 300);
  assert_int_equal(check_table(&table), 0);
  free(table.cases);
}

/* Both layouts and all storage types of a specification. */
static void emit_all(conformance_table *table, const conformance_spec *spec) {
  for (int precision = 0; precision < 3; precision++)
    for (int layout = 0; layout < (spec->input.rank == 4 ? 2 : 1); layout++)
      cc_emit(table, spec, kPrecisions[precision], kLayouts[layout]);
}

static void emit_same(conformance_table *table, const char *name, cs_op op, cs_attrs attrs,
                      cs_shape shape, int flags) {
  conformance_spec spec = {.name = name, .op = op, .attrs = attrs, .n_inputs = 1, .flags = flags};
  spec.input = spec.output = shape;
  if (op == CS_OP_ADD || op == CS_OP_MUL) spec.n_inputs = 2;
  emit_all(table, &spec);
}

static void emit_gemm(conformance_table *table, const char *name, int batch, int in, int out,
                      int flags) {
  conformance_spec spec = {.name = name, .op = CS_OP_GEMM, .n_inputs = 1, .flags = flags};
  spec.attrs.gemm.out_features = out, spec.attrs.gemm.bias = flags & CC_BIAS;
  spec.input = cc_shape2(batch, in), spec.output = cc_shape2(batch, out);
  emit_all(table, &spec);
}

static void emit_pool(conformance_table *table, const char *name, cs_op op, cs_shape in, int kernel,
                      int stride, const int pads[4], int dilation, int flags) {
  conformance_spec spec = {.name = name, .op = op, .n_inputs = 1, .flags = flags};
  cs_pool_attrs *a = &spec.attrs.pool;
  spec.input = spec.output = in;
  for (int i = 0; i < 2; i++) {
    a->kernel[i] = kernel, a->strides[i] = stride, a->dilations[i] = dilation;
    a->pads[i] = pads[i], a->pads[i + 2] = pads[i + 2];
    spec.output.dims[2 + i] = cs_window_extent(in.dims[2 + i], kernel, stride, dilation, pads[i],
                                               pads[i + 2], flags & CC_CEIL);
  }
  a->ceil_mode = flags & CC_CEIL, a->count_include_pad = flags & CC_INCLUDE_PAD;
  emit_all(table, &spec);
}

static void test_own_cases(void **state) {
  (void)state;
  conformance_table table = {0};
  cs_attrs none = {0}, lrn5 = {.lrn = {5, 0.3, 0.75, 1.0}}, lrn6 = {.lrn = {6, 0.3, 0.75, 2.0}};
  emit_same(&table, "lrn5_33", CS_OP_LRN, lrn5, cc_shape4(2, 33, 5, 3), 0);
  emit_same(&table, "lrn5_3", CS_OP_LRN, lrn5, cc_shape4(2, 3, 5, 3), 0);
  emit_same(&table, "lrn5_slice", CS_OP_LRN, lrn5, cc_shape4(2, 48, 9, 7), CC_VIEW_IN);
  emit_same(&table, "lrn6", CS_OP_LRN, lrn6, cc_shape4(2, 24, 5, 3), 0);
  for (int axis = 0; axis < 4; axis++) {
    cs_attrs softmax = {.axis = {axis}};
    emit_same(&table, "softmax_axis", CS_OP_SOFTMAX, softmax, cc_shape4(3, 40, 7, 5), 0);
  }
  cs_attrs columns = {.axis = {1}}, rows = {.axis = {0}};
  emit_same(&table, "softmax_long", CS_OP_SOFTMAX, columns, cc_shape2(5, 3001), 0);
  emit_same(&table, "softmax_one", CS_OP_SOFTMAX, columns, cc_shape2(3, 1), 0);
  emit_same(&table, "softmax_rows", CS_OP_SOFTMAX, rows, cc_shape2(65, 33), 0);
  emit_gemm(&table, "gemv_tail", 1, 1031, 67, CC_BIAS);
  emit_gemm(&table, "gemv_long", 1, 9216, 10, CC_BIAS);
  emit_gemm(&table, "gemm_7", 7, 520, 130, CC_BIAS | CC_RESIDUAL);
  emit_gemm(&table, "gemm_65", 65, 77, 65, CC_BIAS);
  emit_gemm(&table, "gemm_130", 130, 64, 129, 0);
  const int same[4] = {1, 1, 1, 1}, uneven[4] = {2, 0, 1, 3}, dilated[4] = {2, 2, 2, 2};
  emit_pool(&table, "max_3x3", CS_OP_MAX_POOL, cc_shape4(1, 64, 14, 13), 3, 1, same, 1, 0);
  emit_pool(&table, "max_2x2", CS_OP_MAX_POOL, cc_shape4(2, 24, 9, 9), 2, 2, same, 1, CC_CEIL);
  emit_pool(&table, "max_dilated", CS_OP_MAX_POOL, cc_shape4(2, 16, 11, 9), 3, 2, dilated, 2, 0);
  emit_pool(&table, "average_uneven", CS_OP_AVERAGE_POOL, cc_shape4(2, 32, 8, 9), 4, 3, uneven, 1,
            CC_CEIL | CC_INCLUDE_PAD);
  emit_pool(&table, "average_3x3", CS_OP_AVERAGE_POOL, cc_shape4(1, 40, 9, 8), 3, 1, same, 1,
            CC_VIEW_OUT);
  emit_pool(&table, "average_inside", CS_OP_AVERAGE_POOL, cc_shape4(1, 9, 9, 8), 5, 2, uneven, 1,
            CC_CEIL);
  conformance_spec mean = {.name = "mean", .op = CS_OP_GLOBAL_AVERAGE_POOL, .n_inputs = 1};
  mean.input = cc_shape4(3, 72, 23, 17), mean.output = cc_shape4(3, 72, 1, 1);
  emit_all(&table, &mean);
  mean.input = cc_shape4(2, 37, 7, 7), mean.output = cc_shape4(2, 37, 1, 1);
  mean.flags = CC_VIEW_IN;
  emit_all(&table, &mean);
  emit_same(&table, "mul_odd", CS_OP_MUL, none, cc_shape4(1, 7, 3, 1), 0);
  assert_int_equal(check_table(&table), 0);
  free(table.cases);
}

/* ---- Copies: sizes at both tile widths, every pair of types, slices at odd channels ---- */

static void emit_copy(conformance_table *table, cs_shape shape, int from, int to, int types,
                      bool slice, bool odd) {
  conformance_spec spec = {.name = "copy", .op = CS_OP_COPY, .n_inputs = 1};
  spec.input = spec.output = shape;
  cs_dtype in = cs_precision_storage(kPrecisions[types % 3]);
  cs_dtype out = cs_precision_storage(kPrecisions[types / 3]);
  cc_emit(table, &spec, kPrecisions[types / 3], kLayouts[to]);
  conformance_case *c = &table->cases[table->n - 1];
  c->desc.inputs[0] = cc_place(&shape, in, kLayouts[from], slice, odd, &c->inputs[0]);
  c->desc.output = cc_place(&shape, out, kLayouts[to], slice, odd, &c->output);
  snprintf(c->name, sizeof c->name, "copy %lldx%lldx%lldx%lld layouts %d%d types %d%s%s",
           (long long)shape.dims[0], (long long)shape.dims[1], (long long)shape.dims[2],
           (long long)shape.dims[3], from, to, types, slice ? " slice" : "", odd ? " odd" : "");
}

static void test_copies(void **state) {
  (void)state;
  conformance_table table = {0};
  /* The second is large enough for the wide tiles and ends inside one on both axes. */
  const cs_shape shapes[] = {cc_shape4(2, 45, 7, 9), cc_shape4(3, 258, 50, 38)};
  for (int types = 0; types < 9; types++)
    for (int ways = 0; ways < 4; ways++) {
      for (int kind = 0; kind < 3; kind++)
        emit_copy(&table, shapes[0], ways % 2, ways / 2, types, kind > 0, kind > 1);
      if (ways == 1 || ways == 2)
        emit_copy(&table, shapes[1], ways % 2, ways / 2, types, false, false);
    }
  emit_copy(&table, shapes[1], 1, 0, 4, true, false);
  emit_copy(&table, shapes[1], 0, 1, 4, true, true);
  emit_copy(&table, cc_shape4(1, 3, 40, 50), 0, 1, 3, false, false);
  assert_int_equal(check_table(&table), 0);
  free(table.cases);
}

/* ---- The epilogue: the same as Add (or Relu) of what lies in y, with bias ---- */

static int check_epilogue(cs_shape shape, cs_precision precision, cs_layout layout, int flags,
                          bool bias, bool residual) {
  conformance_table table = {0};
  conformance_spec spec = {.name = "epilogue", .op = CS_OP_COPY, .n_inputs = 1, .flags = flags};
  spec.input = spec.output = shape;
  spec.flags |= (bias ? CC_BIAS : 0) | (residual ? CC_RESIDUAL : 0);
  spec.activation.kind = CS_ACT_LEAKY_RELU, spec.activation.alpha = 0.3;
  cc_emit(&table, &spec, precision, layout);
  conformance_case *c = table.cases;
  /* The reference: a residual behind a copy of what y holds; the bias is a [C] array of its own. */
  float *values = kc_random(shape.dims[1], 5, 1.0, CS_DTYPE_F32);
  c->desc.has_bias = false;
  kc_run run = kc_run_create(c);
  float *y = kc_alloc((size_t)run.elements * sizeof(float));
  float *added = kc_alloc((size_t)run.elements * sizeof(float));
  int64_t plane = shape.dims[2] * shape.dims[3];
  cs_tensor_to_f32(&c->desc.inputs[0], run.inputs[0].host + KC_GUARD + c->inputs[0].offset, y);
  if (residual)
    cs_tensor_to_f32(&c->desc.inputs[1], run.inputs[1].host + KC_GUARD + c->inputs[1].offset,
                     added);
  for (int64_t i = 0; i < run.elements; i++) {
    double b = bias ? (double)values[i / plane % shape.dims[1]] : 0;
    double sum = (double)y[i] + b + (double)added[i];
    run.value[i] = sum > 0 ? sum : 0.3 * sum;
    run.magnitude[i] = fabs((double)y[i]) + fabs(b) + fabs((double)added[i]);
  }
  cs_tensor_from_f32(&c->desc.output, y, run.output.host + KC_GUARD + c->output.offset);
  kc_upload(&run.output);
  kc_region array = kc_region_create(shape.dims[1] * (int64_t)sizeof(float));
  memcpy(array.host + KC_GUARD, values, array.bytes);
  kc_upload(&array);
  c->desc.op = CS_OP_ADD; /* the tolerance of a sum */
  int failures =
      kc_failed(c->name, "epilogue",
                cs_cuda_epilogue_launch(
                    &c->desc, &c->desc.output, run.output.base + KC_GUARD + c->output.offset,
                    bias ? (const float *)(array.base + KC_GUARD) : NULL,
                    residual ? run.in[1] : NULL, run.output.base + KC_GUARD + c->output.offset, 0));
  failures += kc_judge(&run, "epilogue");
  kc_region_free(&array);
  kc_run_free(&run);
  free(values);
  free(y);
  free(added);
  free(table.cases);
  return failures;
}

static void test_epilogue(void **state) {
  (void)state;
  int failures = 0;
  const int flags[] = {0, CC_VIEW_OUT | CC_VIEW_RES, CC_VIEW_OUT | CC_VIEW_RES | CC_VIEW_ODD};
  for (int precision = 0; precision < 3; precision++)
    for (int layout = 0; layout < 2; layout++)
      for (int parts = 0; parts < 4; parts++)
        for (int view = 0; view < 3; view++) {
          failures += check_epilogue(cc_shape4(2, 32, 6, 4), kPrecisions[precision],
                                     kLayouts[layout], flags[view], parts & 1, parts & 2);
          failures += check_epilogue(cc_shape4(3, 13, 5, 1), kPrecisions[precision],
                                     kLayouts[layout], flags[view], parts & 1, parts & 2);
        }
  assert_int_equal(failures, 0);
}

/* ---- Offsets past 2^31: the second image of a view lies 2^31 + 64 elements behind the first ----
 */

static const int64_t kFar = (INT64_C(1) << 31) + 64;

/* Runs an operation whose f16 input and output both have that stride over shared far memory. */
static int check_far(conformance_case *c, uint16_t *x, uint16_t *y) {
  int failures = 0;
  const char *ids[8];
  kc_run run = kc_run_create(c);
  cs_op_desc far = c->desc;
  int64_t in = kc_elements(&c->desc.inputs[0].shape) / 2, out = run.elements / 2;
  size_t size = sizeof(uint16_t);
  far.inputs[0].strides[0] = far.output.strides[0] = kFar;
  int n = cs_cuda_kernel_variants(&far, ids, 8);
  if (n == 0) failures += kc_complain(c->name, "far", "no kernel");
  for (int i = 0; i < 2; i++)
    kc_cuda(cudaMemcpy(x + i * kFar, (const uint16_t *)run.in[0] + i * in, (size_t)in * size,
                       cudaMemcpyDeviceToDevice),
            "scatter");
  for (int v = 0; v < n; v++) {
    cs_cuda_kernel kernel = kc_kernel(&far, ids[v]);
    kc_region weights = kc_region_create(cs_cuda_kernel_weight_bytes(&kernel, &far));
    failures += kc_failed(
        c->name, ids[v],
        cs_cuda_kernel_pack_weights(&kernel, &far, run.weight, run.bias, weights.host + KC_GUARD));
    kc_upload(&weights);
    kc_upload(&run.output);
    const void *inputs[CS_MAX_OP_INPUTS] = {x, x, x};
    failures +=
        kc_failed(c->name, ids[v],
                  cs_cuda_kernel_launch(&kernel, &far, inputs, weights.base + KC_GUARD, y, 0));
    for (int i = 0; i < 2; i++)
      kc_cuda(cudaMemcpy((uint16_t *)(run.output.base + KC_GUARD) + i * out, y + i * kFar,
                         (size_t)out * size, cudaMemcpyDeviceToDevice),
              "gather");
    failures += kc_judge(&run, ids[v]);
    kc_region_free(&weights);
  }
  kc_run_free(&run);
  return failures;
}

static void test_far_offsets(void **state) {
  (void)state;
  size_t free_bytes = 0, total = 0, bytes = (size_t)(kFar + 65536) * sizeof(uint16_t);
  kc_cuda(cudaMemGetInfo(&free_bytes, &total), "cudaMemGetInfo");
  if (free_bytes < 3 * bytes) skip();
  uint16_t *x = NULL, *y = NULL;
  kc_cuda(cudaMalloc((void **)&x, bytes), "cudaMalloc");
  kc_cuda(cudaMalloc((void **)&y, bytes), "cudaMalloc");
  conformance_table all = conformance_build(kLayouts, 2);
  int failures = 0, cases = 0;
  for (int i = 0; i < all.n; i++) {
    conformance_case *c = &all.cases[i];
    const cs_op_desc *d = &c->desc;
    bool dense = cs_tensor_is_dense(&d->inputs[0]) && cs_tensor_is_dense(&d->output);
    bool halves = d->inputs[0].dtype == CS_DTYPE_F16 && d->output.dtype == CS_DTYPE_F16;
    bool two = d->inputs[0].shape.dims[0] == 2 && d->output.shape.dims[0] == 2;
    if (d->n_inputs != 1 || !dense || !halves || !two || d->inputs[0].shape.rank != 4) continue;
    failures += check_far(c, x, y);
    cases++;
  }
  fprintf(stderr, "%d cases, %d failures\n", cases, failures);
  assert_true(cases > 10);
  free(all.cases);
  kc_cuda(cudaFree(x), "cudaFree");
  kc_cuda(cudaFree(y), "cudaFree");
  assert_int_equal(failures, 0);
}

/* ---- Refusals and timing kernels ---- */

static void test_refusals(void **state) {
  (void)state;
  const char *ids[8];
  cs_op_desc desc = {.op = CS_OP_RELU, .n_inputs = 1};
  cs_shape shape = cc_shape4(1, 16, 2, 2);
  desc.inputs[0] = desc.output = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW16C);
  assert_int_equal(cs_cuda_kernel_variants(&desc, ids, 8), 0);
  desc.inputs[0] = desc.output = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  assert_int_equal(cs_cuda_kernel_variants(&desc, ids, 8), 1);
  assert_string_equal(ids[0], "cuda.relu.v1");
  assert_int_equal(cs_cuda_kernel_variants(&desc, NULL, 0), 1);
  cs_cuda_kernel kernel;
  cs_status st = cs_cuda_kernel_find(&desc, "cuda.tanh.v1", &kernel);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  assert_non_null(strstr(cs_status_message(st), "cuda.tanh.v1"));
  cs_status_free(st);
}

/* Wide limits: the clock may be anywhere between idle and boost. */
static float milliseconds(cs_status (*launch)(void *), void *argument) {
  cudaEvent_t begin, end;
  float ms = 0;
  kc_cuda(cudaEventCreate(&begin), "cudaEventCreate");
  kc_cuda(cudaEventCreate(&end), "cudaEventCreate");
  assert_null(launch(argument));
  kc_cuda(cudaEventRecord(begin, 0), "cudaEventRecord");
  assert_null(launch(argument));
  kc_cuda(cudaEventRecord(end, 0), "cudaEventRecord");
  kc_cuda(cudaEventSynchronize(end), "cudaEventSynchronize");
  kc_cuda(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
  kc_cuda(cudaEventDestroy(begin), "cudaEventDestroy");
  kc_cuda(cudaEventDestroy(end), "cudaEventDestroy");
  return ms;
}

static cs_status launch_spin(void *argument) {
  (void)argument;
  return cs_cuda_spin_launch(100.0, 0);
}
static cs_status launch_work(void *argument) {
  return cs_cuda_reference_work_launch(argument, 0);
}

static void test_timing_kernels(void **state) {
  (void)state;
  kc_region scratch = kc_region_create(sizeof(float));
  float spin = milliseconds(launch_spin, NULL);
  float work = milliseconds(launch_work, scratch.base + KC_GUARD);
  fprintf(stderr, "spin %.1f us, work %.1f us\n", (double)spin * 1e3, (double)work * 1e3);
  assert_true(spin >= 0.095f && spin < 1.0f);
  assert_true(work > 0.005f && work < 1.0f);
  kc_region_free(&scratch);
}

int main(void) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    fprintf(stderr, "skipped: no GPU\n");
    return 77;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_table),          cmocka_unit_test(test_own_cases),
      cmocka_unit_test(test_copies),         cmocka_unit_test(test_epilogue),
      cmocka_unit_test(test_far_offsets),    cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_timing_kernels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
