/* Candidates of several steps and baselines on a GPU: transposed convolutions as columns in pieces,
 * by scattering; the ladder of dense layers. What is computed the conformance runner judges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>

#include "conformance.h"
#include "gpu/open_device.h"

static cs_backend *device;

/* Workspace for the columns of an image or two: batches are cut. */
static void columns_in_pieces_are_right(void **state) {
  (void)state;
  static const int64_t limits[] = {400000, 100000, 30000};
  for (int i = 0; i < 3; i++) {
    conformance_options options = {.only = "convt_*", .enumerate = {.workspace_limit = limits[i]}};
    conformance_report report = cs_conformance_run(device, &options);
    assert_int_equal(report.failures, 0);
    assert_true(report.cases >= 20);
  }
}

static cs_op_desc layer(int64_t batch, cs_precision precision, cs_layout layout) {
  cs_shape x = {4, {batch, 64, 8, 8}}, y = {4, {batch, 32, 16, 16}};
  cs_op_desc d = {.op = CS_OP_CONV_TRANSPOSE, .precision = precision, .n_inputs = 1};
  d.attrs.conv = (cs_conv_attrs){.out_channels = 32,
                                 .kernel = {4, 4},
                                 .strides = {2, 2},
                                 .pads = {1, 1, 1, 1},
                                 .dilations = {1, 1},
                                 .group = 1};
  d.inputs[0] = cs_tensor_dense(&x, cs_precision_storage(precision), layout);
  d.output = cs_tensor_dense(&y, cs_precision_storage(precision), layout);
  return d;
}

static int count_in_family(const cs_candidate_list *list, const char *family) {
  int n = 0;
  for (size_t i = 0; i < list->n; i++) n += strcmp(list->items[i].family, family) == 0;
  return n;
}

static void every_precision_and_layout_has_columns(void **state) {
  (void)state;
  static const cs_precision all[] = {CS_PRECISION_F32, CS_PRECISION_TF32, CS_PRECISION_F16,
                                     CS_PRECISION_BF16};
  static const cs_layout layouts[] = {CS_LAYOUT_NCHW, CS_LAYOUT_NHWC};
  for (int p = 0; p < 8; p++) {
    cs_op_desc desc = layer(8, all[p / 2], layouts[p % 2]);
    cs_candidate_list list = {0};
    cs_enumerate_options options = {.workspace_limit = (int64_t)64 << 20};
    cs_status st = device->vtable->enumerate(device, &desc, &options, &list);
    if (st != CS_OK) fail_msg("%s", cs_status_message(st));
    if (count_in_family(&list, "cuda.col2im") == 0)
      fail_msg("no columns of %s in layout %d", cs_precision_name(all[p / 2]), p % 2);
    assert_int_equal(count_in_family(&list, "cuda.convtranspose_scatter"), 0);
    cs_candidate_list_free(&list);
  }
}

/* A limit of half the columns: in two pieces or more, each within the limit. */
static void a_limit_cuts_the_batch(void **state) {
  (void)state;
  cs_op_desc desc = layer(8, CS_PRECISION_F16, CS_LAYOUT_NHWC);
  int64_t columns = 8 * 64 * 16 * 32 * 4;
  cs_candidate_list list = {0};
  cs_enumerate_options options = {.workspace_limit = columns / 2};
  cs_status st = device->vtable->enumerate(device, &desc, &options, &list);
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
  assert_true(count_in_family(&list, "cuda.col2im") > 0);
  for (size_t i = 0; i < list.n; i++) {
    const cs_candidate *c = &list.items[i];
    if (strcmp(c->family, "cuda.col2im") != 0) continue;
    assert_null(strstr(c->id, "col2im/1:"));
    assert_true(c->workspace_bytes <= columns / 2);
  }
  cs_candidate_list_free(&list);
}

static void baselines_are_asked_for_by_name(void **state) {
  (void)state;
  cs_shape x = {2, {256, 512}}, y = {2, {256, 384}};
  cs_op_desc desc = {.op = CS_OP_GEMM, .precision = CS_PRECISION_F16, .n_inputs = 1};
  desc.attrs.gemm = (cs_gemm_attrs){.out_features = 384};
  desc.inputs[0] = cs_tensor_dense(&x, CS_DTYPE_F16, CS_LAYOUT_NCHW);
  desc.output = cs_tensor_dense(&y, CS_DTYPE_F16, CS_LAYOUT_NCHW);
  const char *const patterns[] = {"cuda.gemm.naive.*", "cuda.gemm.mma.*"};
  cs_candidate_list list = {0};
  cs_enumerate_options options = {
      .workspace_limit = (int64_t)64 << 20, .allows = patterns, .n_allows = 2};
  cs_status st = device->vtable->baselines(device, &desc, &options, &list);
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
  assert_int_equal(count_in_family(&list, "cuda.gemm.naive"), 1);
  assert_true(count_in_family(&list, "cuda.gemm.mma") >= 1);
  assert_int_equal(list.n, 1 + count_in_family(&list, "cuda.gemm.mma"));
  cs_candidate_list_free(&list);
  options.full = true;
  st = device->vtable->baselines(device, &desc, &options, &list);
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
  assert_int_equal(count_in_family(&list, "cuda.gemm.shared"), 1);
  assert_int_equal(count_in_family(&list, "cuda.gemm.register"), 1);
  cs_candidate_list_free(&list);
}

int main(void) {
  device = open_or_skip(NULL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(columns_in_pieces_are_right),
      cmocka_unit_test(every_precision_and_layout_has_columns),
      cmocka_unit_test(a_limit_cuts_the_batch),
      cmocka_unit_test(baselines_are_asked_for_by_name),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->vtable->close(device);
  return failed;
}
