/* Several convolutions in one launch of the tensor-core kernel: each result is, bit for bit, that
 * of a launch of its own, and nothing else is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel_check.h"

#define PARTS CS_CUDA_MERGE_MOST

/* Branches of a module, and what the edges of tiles, sums and views meet: 64 + 1 pixels, filters
 * that fill no vector, a slice at an odd channel, one pixel, taps outside on every side. */
static conformance_table parts_of(cs_precision precision) {
  conformance_table all = {0}, parts = {0};
  const cs_layout nhwc[] = {CS_LAYOUT_NHWC};
  cc_context x = {&all, nhwc, 1};
  const int *one = CC2(1, 1), *two = CC2(2, 2), *none = CC4(0, 0, 0, 0), *p1 = CC4(1, 1, 1, 1);
  cc_conv(&x, "reduce", CC4(2, 192, 14, 14), CC3(96, 1, 1), one, none, one, 1, CC_BIAS,
          CS_ACT_RELU);
  cc_conv(&x, "branch", CC4(2, 192, 14, 14), CC3(64, 1, 1), one, none, one, 1,
          CC_BIAS | CC_VIEW_OUT, CS_ACT_RELU);
  cc_conv(&x, "three", CC4(2, 96, 14, 14), CC3(136, 3, 3), one, p1, one, 1, CC_BIAS | CC_VIEW_OUT,
          CS_ACT_RELU);
  cc_conv(&x, "five", CC4(1, 16, 13, 5), CC3(20, 5, 5), two, CC4(2, 1, 2, 3), one, 1,
          CC_BIAS | CC_VIEW_IN, CS_ACT_LEAKY_RELU);
  cc_conv(&x, "odd", CC4(1, 8, 13, 5), CC3(7, 3, 3), one, p1, two, 1, CC_VIEW_OUT | CC_VIEW_ODD,
          CS_ACT_NONE);
  cc_conv(&x, "added", CC4(3, 40, 7, 7), CC3(72, 3, 3), one, p1, one, 1,
          CC_BIAS | CC_RESIDUAL | CC_VIEW_RES, CS_ACT_CLIP);
  cc_conv(&x, "pixel", CC4(1, 832, 1, 1), CC3(48, 1, 1), one, none, one, 1, CC_BIAS,
          CS_ACT_SIGMOID);
  cc_conv(&x, "edge", CC4(1, 24, 13, 5), CC3(33, 1, 1), one, CC4(0, 0, 1, 2), one, 1, 0,
          CS_ACT_TANH);
  for (int i = 0; i < all.n; i++) {
    if (all.cases[i].desc.precision != precision) continue;
    parts.cases = realloc(parts.cases, (size_t)(parts.n + 1) * sizeof *parts.cases);
    if (!parts.cases) abort();
    parts.cases[parts.n++] = all.cases[i];
  }
  free(all.cases);
  assert_int_equal(parts.n, PARTS);
  return parts;
}

/* The same for kernels with a prologue, which are all pointwise. */
static conformance_table prologues_of(cs_precision precision) {
  conformance_table all = {0}, parts = {0};
  const cs_layout nhwc[] = {CS_LAYOUT_NHWC};
  cc_context x = {&all, nhwc, 1};
  const int *one = CC2(1, 1), *two = CC2(2, 2), *none = CC4(0, 0, 0, 0);
  cc_conv(&x, "dense", CC4(2, 544, 14, 14), CC3(128, 1, 1), one, none, one, 1,
          CC_PROLOGUE | CC_BIAS | CC_VIEW_IN, CS_ACT_RELU);
  cc_conv(&x, "branch", CC4(2, 192, 14, 14), CC3(64, 1, 1), one, none, one, 1,
          CC_PROLOGUE | CC_BIAS | CC_VIEW_OUT, CS_ACT_RELU);
  cc_conv(&x, "steps", CC4(1, 16, 13, 5), CC3(20, 1, 1), two, none, one, 1, CC_PROLOGUE_PLAIN,
          CS_ACT_CLIP);
  cc_conv(&x, "added", CC4(3, 40, 7, 7), CC3(72, 1, 1), one, none, one, 1,
          CC_PROLOGUE | CC_BIAS | CC_RESIDUAL | CC_VIEW_RES, CS_ACT_NONE);
  for (int i = 0; i < all.n; i++) {
    if (all.cases[i].desc.precision != precision) continue;
    parts.cases = realloc(parts.cases, (size_t)(parts.n + 1) * sizeof *parts.cases);
    if (!parts.cases) abort();
    parts.cases[parts.n++] = all.cases[i];
  }
  free(all.cases);
  return parts;
}

typedef struct set {
  kc_run runs[PARTS];
  kc_region weights[PARTS];
  cs_cuda_merge_part parts[PARTS];
  int n;
} set;

static bool offers(const cs_op_desc *desc, const char *id) {
  const char *ids[CS_CUDA_VARIANTS_MOST];
  int n = cs_cuda_kernel_variants(desc, ids, CS_CUDA_VARIANTS_MOST);
  for (int i = 0; i < n; i++) {
    if (strcmp(ids[i], id) == 0) return true;
  }
  return false;
}

/* The cases that have this kernel. */
static void set_create(const conformance_table *table, const char *id, set *s) {
  *s = (set){0};
  for (int i = 0; i < table->n; i++) {
    const conformance_case *c = &table->cases[i];
    if (!offers(&c->desc, id)) continue;
    kc_run *run = &s->runs[s->n];
    *run = kc_run_create(c);
    cs_cuda_kernel kernel = kc_kernel(&c->desc, id);
    s->weights[s->n] = kc_region_create(cs_cuda_kernel_weight_bytes(&kernel, &c->desc));
    int failures = kc_failed(c->name, id,
                             cs_cuda_kernel_pack_weights(&kernel, &c->desc, run->weight, run->bias,
                                                         s->weights[s->n].host + KC_GUARD));
    assert_int_equal(failures, 0);
    kc_upload(&s->weights[s->n]);
    s->parts[s->n] = (cs_cuda_merge_part){&c->desc, run->in, s->weights[s->n].base + KC_GUARD,
                                          run->output.base + KC_GUARD + c->output.offset};
    s->n++;
  }
}

static void set_free(set *s) {
  for (int i = 0; i < s->n; i++) {
    kc_run_free(&s->runs[i]);
    kc_region_free(&s->weights[i]);
  }
}

/* Launches the parts that `of` names, and compares all of every output with what is wanted. */
static int check_merged(set *s, const int *of, int n, unsigned char *const *wanted,
                        const char *id) {
  cs_cuda_merge_part parts[PARTS] = {0};
  int failures = 0;
  for (int i = 0; i < n; i++) {
    parts[i] = s->parts[of[i]];
    kc_upload(&s->runs[of[i]].output);
  }
  failures += kc_failed("merged", id, cs_cuda_kernel_launch_merged(parts, n, id, 0));
  for (int i = 0; i < n; i++) {
    kc_run *run = &s->runs[of[i]];
    unsigned char *now = kc_download(&run->output);
    if (memcmp(now, wanted[of[i]], run->output.bytes + 2 * KC_GUARD) != 0)
      failures += kc_complain(run->c->name, id, "differs from a launch of its own");
    failures += kc_judge(run, id);
    free(now);
  }
  return failures;
}

/* `most`: the largest number of operations in one launch so far. */
static int check_variant(const conformance_table *table, const char *id, int *most) {
  set s;
  set_create(table, id, &s);
  unsigned char *alone[PARTS];
  int failures = 0, all[PARTS], back[PARTS], pointwise[PARTS], n_pointwise = 0;
  for (int i = 0; i < s.n; i++) {
    failures +=
        kc_failed(s.runs[i].c->name, id, cs_cuda_kernel_launch_merged(&s.parts[i], 1, id, 0));
    failures += kc_judge(&s.runs[i], id);
    alone[i] = kc_download(&s.runs[i].output);
    all[i] = i;
    back[i] = s.n - 1 - i;
    if (s.parts[i].desc->attrs.conv.kernel[0] == 1) pointwise[n_pointwise++] = i;
  }
  assert_true(s.n > 0); /* few operations' sums are long enough for the variants that split them */
  failures += check_merged(&s, all, s.n, alone, id);
  if (s.n > 1) failures += check_merged(&s, back, s.n / 2, alone, id);
  if (n_pointwise > 0) failures += check_merged(&s, pointwise, n_pointwise, alone, id);
  *most = (int)cs_max_i64(*most, s.n);
  for (int i = 0; i < s.n; i++) free(alone[i]);
  set_free(&s);
  return failures;
}

static void check_merged_is_as_alone(conformance_table (*make)(cs_precision precision)) {
  const cs_precision precisions[] = {CS_PRECISION_TF32, CS_PRECISION_F16, CS_PRECISION_BF16};
  for (int p = 0; p < 3; p++) {
    conformance_table table = make(precisions[p]);
    const char *ids[CS_CUDA_VARIANTS_MOST];
    int n = cs_cuda_kernel_variants(&table.cases[0].desc, ids, CS_CUDA_VARIANTS_MOST), most = 0;
    for (int i = 0; i < n; i++) {
      if (!cs_cuda_kernel_merges(ids[i])) continue;
      assert_int_equal(check_variant(&table, ids[i], &most), 0);
    }
    assert_true(most > 1);
    free(table.cases);
  }
}

static void test_merged_is_as_alone(void **state) {
  (void)state;
  check_merged_is_as_alone(parts_of);
}

static void test_merged_prologues_are_as_alone(void **state) {
  (void)state;
  check_merged_is_as_alone(prologues_of);
}

static void test_what_does_not_merge_is_refused(void **state) {
  (void)state;
  conformance_table half = parts_of(CS_PRECISION_F16), single = parts_of(CS_PRECISION_TF32);
  set s, t;
  set_create(&half, "cuda.mma.v3-16x32", &s);
  set_create(&single, "cuda.mma.v3-16x32", &t);
  cs_cuda_merge_part many[PARTS + 1];
  assert_int_equal(s.n, PARTS); /* the smallest tile is for any */
  for (int i = 0; i <= PARTS; i++) many[i] = s.parts[i % PARTS];
  cs_status st = cs_cuda_kernel_launch_merged(many, PARTS + 1, "cuda.mma.v3-16x32", 0);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  cs_status_free(st);
  st = cs_cuda_kernel_launch_merged(many, 2, "cuda.conv.v1", 0);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  cs_status_free(st);
  many[1] = t.parts[1];
  st = cs_cuda_kernel_launch_merged(many, 2, "cuda.mma.v3-16x32", 0);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  cs_status_free(st);
  conformance_table behind = prologues_of(CS_PRECISION_F16);
  set u;
  set_create(&behind, "cuda.mma_pre.v1-16x32", &u);
  many[1] = u.parts[0];
  const char *const either[] = {"cuda.mma.v3-16x32", "cuda.mma_pre.v1-16x32"};
  for (int i = 0; i < 2; i++) { /* with a prologue and without */
    st = cs_cuda_kernel_launch_merged(many, 2, either[i], 0);
    assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
    cs_status_free(st);
  }
  set_free(&s);
  set_free(&t);
  set_free(&u);
  free(half.cases);
  free(single.cases);
  free(behind.cases);
}

int main(void) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return 77;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_merged_is_as_alone),
      cmocka_unit_test(test_merged_prologues_are_as_alone),
      cmocka_unit_test(test_what_does_not_merge_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
