/* What the CPU enumerates of an operation depends on the operation alone, not on what the process
 * prepared before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/backend.h"

static void ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

static cs_op_desc desc_of(cs_op op, int64_t channels, cs_layout layout) {
  cs_shape in = {4, {2, channels, 6, 6}}, out = {4, {2, channels, 5, 5}};
  cs_op_desc d = {.op = op, .n_inputs = 1};
  d.inputs[0] = cs_tensor_dense(&in, CS_DTYPE_F32, layout);
  d.output = cs_tensor_dense(&out, CS_DTYPE_F32, layout);
  if (op == CS_OP_CONV) {
    d.attrs.conv = (cs_conv_attrs){.out_channels = channels,
                                   .kernel = {2, 2},
                                   .strides = {1, 1},
                                   .dilations = {1, 1},
                                   .group = 1};
  } else {
    d.attrs.pool = (cs_pool_attrs){.kernel = {2, 2}, .strides = {1, 1}, .dilations = {1, 1}};
  }
  return d;
}

static cs_candidate_list enumerate(cs_backend *backend, const cs_op_desc *desc) {
  cs_candidate_list list = {0};
  cs_enumerate_options options = {.workspace_limit = INT64_C(1) << 28, .threads = 1, .full = true};
  ok(backend->vtable->enumerate(backend, desc, &options, &list));
  assert_true(list.n > 0);
  return list;
}

static void prepare_all(cs_backend *backend, const cs_op_desc *desc,
                        const cs_candidate_list *list) {
  for (size_t i = 0; i < list->n; i++) {
    cs_exec *exec = NULL;
    ok(backend->vtable->prepare(backend, desc, &list->items[i], &exec));
    backend->vtable->exec_destroy(exec);
  }
}

/* Operations of one channel lie the same in both layouts; those of 16 do not. */
static void history_changes_nothing(void **state) {
  (void)state;
  static const cs_op ops[] = {CS_OP_MAX_POOL, CS_OP_AVERAGE_POOL, CS_OP_CONV};
  static const cs_layout layouts[] = {CS_LAYOUT_NCHW, CS_LAYOUT_NHWC};
  enum { N = 3 * 2 * 2 };
  cs_op_desc descs[N];
  cs_candidate_list before[N];
  cs_backend *backend = NULL;
  ok(cs_cpu_backend_open(0, NULL, &backend));
  for (int i = 0; i < N; i++) {
    descs[i] = desc_of(ops[i / 4], i % 4 < 2 ? 1 : 16, layouts[i % 2]);
    before[i] = enumerate(backend, &descs[i]);
  }
  for (int round = 0; round < 2; round++) {
    for (int i = N - 1; i >= 0; i--) prepare_all(backend, &descs[i], &before[i]);
  }
  for (int i = 0; i < N; i++) {
    cs_candidate_list after = enumerate(backend, &descs[i]);
    for (size_t k = 0; k < after.n && k < before[i].n; k++) {
      assert_string_equal(after.items[k].id, before[i].items[k].id);
      assert_int_equal(after.items[k].workspace_bytes, before[i].items[k].workspace_bytes);
    }
    assert_int_equal(after.n, before[i].n);
    cs_candidate_list_free(&after);
    cs_candidate_list_free(&before[i]);
  }
  backend->vtable->close(backend);
}

static cs_candidate_list baselines(cs_backend *backend, const char *pattern, bool full) {
  cs_shape in = {4, {2, 3, 4, 4}}, out = {4, {2, 5, 8, 8}};
  cs_op_desc d = {.op = CS_OP_CONV_TRANSPOSE, .n_inputs = 1};
  cs_candidate_list list = {0};
  cs_enumerate_options options = {.workspace_limit = INT64_C(1) << 28,
                                  .threads = 2,
                                  .full = full,
                                  .allows = &pattern,
                                  .n_allows = pattern ? 1 : 0};
  d.inputs[0] = cs_tensor_dense(&in, CS_DTYPE_F32, CS_LAYOUT_NHWC);
  d.output = cs_tensor_dense(&out, CS_DTYPE_F32, CS_LAYOUT_NHWC);
  d.attrs.conv = (cs_conv_attrs){.out_channels = 5,
                                 .kernel = {4, 4},
                                 .strides = {2, 2},
                                 .pads = {1, 1, 1, 1},
                                 .dilations = {1, 1},
                                 .group = 1};
  ok(backend->vtable->baselines(backend, &d, &options, &list));
  return list;
}

static void baselines_are_asked_for_by_name(void **state) {
  (void)state;
  static const struct {
    const char *pattern;
    bool full;
    size_t n; /* on two threads and on one */
  } rows[] = {{NULL, false, 0},
              {NULL, true, 2},
              {"cpu.convtranspose_scatter*", false, 2},
              {"cpu.*", false, 0},
              {"cpu.gemm_naive*", false, 0}};
  cs_backend *backend = NULL;
  ok(cs_cpu_backend_open(0, NULL, &backend));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    cs_candidate_list list = baselines(backend, rows[i].pattern, rows[i].full);
    assert_int_equal(list.n, rows[i].n);
    if (list.n > 0) assert_string_equal(list.items[0].id, "cpu.convtranspose_scatter/t2");
    if (list.n > 1) assert_string_equal(list.items[1].id, "cpu.convtranspose_scatter/t1");
    cs_candidate_list_free(&list);
  }
  backend->vtable->close(backend);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(history_changes_nothing),
                                     cmocka_unit_test(baselines_are_asked_for_by_name)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
