/* Merged launches in schedules on the GPU: one kernel at the leader, nothing at the members, the
 * same bits as by launches of their own, and whoever waits for a member waits for the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "gpu/open_device.h"

#define BRANCHES 3
#define LAUNCHES (BRANCHES + 1) /* and one that reads what the last branch wrote */
#define SIZE 28
#define IN 192
#define OUT 64
#define PIXELS (4 * SIZE * SIZE)

static const cs_stream_set two_streams = {.n = 2};
static cs_backend *device;

static void ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

static void *allocate(int64_t bytes) {
  void *memory = NULL;
  ok(device->vtable->allocate(device, bytes, &memory));
  return memory;
}

static cs_op_desc convolution(int64_t in, int64_t out) {
  cs_shape x = {.rank = 4, .dims = {4, in, SIZE, SIZE}},
           y = {.rank = 4, .dims = {4, out, SIZE, SIZE}};
  cs_op_desc d = {.op = CS_OP_CONV,
                  .attrs.conv = {.out_channels = out,
                                 .group = 1,
                                 .kernel = {1, 1},
                                 .strides = {1, 1},
                                 .dilations = {1, 1},
                                 .bias = true},
                  .has_bias = true,
                  .n_inputs = 1,
                  .precision = CS_PRECISION_F16};
  d.inputs[0] = cs_tensor_dense(&x, CS_DTYPE_F16, CS_LAYOUT_NHWC);
  d.output = cs_tensor_dense(&y, CS_DTYPE_F16, CS_LAYOUT_NHWC);
  return d;
}

/* The first candidate that merges. */
static cs_exec *prepare(const cs_op_desc *desc) {
  cs_candidate_list list = {0};
  cs_enumerate_options options = {.workspace_limit = (int64_t)64 << 20};
  cs_exec *exec = NULL;
  ok(device->vtable->enumerate(device, desc, &options, &list));
  for (size_t i = 0; i < list.n && !exec; i++) {
    if (!list.items[i].merges) continue;
    assert_int_equal(list.items[i].workspace_bytes, 0);
    ok(device->vtable->prepare(device, desc, &list.items[i], &exec));
  }
  assert_non_null(exec);
  cs_candidate_list_free(&list);
  return exec;
}

typedef struct module {
  cs_exec *branch, *reader;
  void *x, *weights[LAUNCHES], *out[LAUNCHES];
  cs_launch launches[LAUNCHES];
  int last;
} module;

static int64_t output_bytes(int launch) {
  return (int64_t)PIXELS * (launch < BRANCHES ? OUT : IN) * 2;
}

static void module_create(module *m) {
  cs_op_desc branch = convolution(IN, OUT), reader = convolution(OUT, IN);
  int64_t n_weight = IN * OUT;
  cs_rng rng;
  memset(m, 0, sizeof(*m));
  cs_rng_init(&rng, 5, 0);
  float *host = malloc((size_t)PIXELS * IN * 4);
  uint16_t *half = malloc((size_t)PIXELS * IN * 2);
  cs_rng_fill_normal(&rng, host, (int64_t)PIXELS * IN, 0, 1);
  for (int i = 0; i < PIXELS * IN; i++) half[i] = cs_f32_to_f16(host[i]);
  m->x = allocate((int64_t)PIXELS * IN * 2);
  ok(device->vtable->upload(device, m->x, half, (int64_t)PIXELS * IN * 2));
  m->branch = prepare(&branch);
  m->reader = prepare(&reader);
  m->last = BRANCHES - 1;
  for (int i = 0; i < LAUNCHES; i++) {
    const cs_exec *exec = i < BRANCHES ? m->branch : m->reader;
    int64_t bytes = device->vtable->exec_weight_bytes(exec);
    void *packed = calloc(1, (size_t)bytes);
    ok(device->vtable->pack_weights(exec, host + i * n_weight, host, packed));
    m->weights[i] = allocate(bytes);
    ok(device->vtable->upload(device, m->weights[i], packed, bytes));
    free(packed);
    m->out[i] = allocate(output_bytes(i));
    m->launches[i] = (cs_launch){.exec = exec,
                                 .name = i < BRANCHES ? "branch" : "reader",
                                 .inputs = {i < BRANCHES ? m->x : m->out[m->last]},
                                 .output = m->out[i],
                                 .weights = m->weights[i],
                                 .stream = i < BRANCHES ? 0 : 1,
                                 .n_waits = i < BRANCHES ? 0 : 1,
                                 .waits = &m->last,
                                 .merged = -1};
  }
  free(host);
  free(half);
}

static void module_destroy(module *m) {
  for (int i = 0; i < LAUNCHES; i++) {
    device->vtable->release(device, m->weights[i]);
    device->vtable->release(device, m->out[i]);
  }
  device->vtable->release(device, m->x);
  device->vtable->exec_destroy(m->branch);
  device->vtable->exec_destroy(m->reader);
}

/* All outputs, one after the other, of a run of the schedule. */
static unsigned char *run(const module *m, cs_schedule *schedule, size_t *bytes) {
  *bytes = 0;
  for (int i = 0; i < LAUNCHES; i++) {
    ok(device->vtable->fill(device, m->out[i], 0xFF, output_bytes(i)));
    *bytes += (size_t)output_bytes(i);
  }
  ok(device->vtable->schedule_run(schedule));
  unsigned char *all = malloc(*bytes), *at = all;
  for (int i = 0; i < LAUNCHES; i++) {
    ok(device->vtable->download(device, at, m->out[i], output_bytes(i)));
    at += output_bytes(i);
  }
  return all;
}

static void check_kernels(cs_schedule *schedule, bool merged) {
  cs_kernel_info kernels[2 * LAUNCHES];
  int count = 0, seen[LAUNCHES] = {0};
  ok(device->vtable->schedule_kernels(schedule, kernels, 2 * LAUNCHES, &count));
  assert_int_equal(count, merged ? 2 : LAUNCHES);
  for (int i = 0; i < count; i++) {
    assert_in_range(kernels[i].launch, 0, LAUNCHES - 1);
    seen[kernels[i].launch]++;
  }
  for (int i = 0; i < LAUNCHES; i++) {
    bool member = merged && i > 0 && i < BRANCHES;
    assert_int_equal(seen[i], member ? 0 : 1);
  }
}

static void a_merged_launch_is_one_kernel_with_the_same_bits(void **state) {
  (void)state;
  module m;
  size_t bytes = 0;
  module_create(&m);
  cs_schedule *schedule = NULL;
  ok(device->vtable->schedule_create(device, m.launches, LAUNCHES, &two_streams, true, &schedule));
  check_kernels(schedule, false);
  unsigned char *wanted = run(&m, schedule, &bytes);
  device->vtable->schedule_destroy(schedule);
  for (int i = 1; i < BRANCHES; i++) m.launches[i].merged = 0;
  for (int way = 0; way < 3; way++) { /* by calls, in a graph, beginning early in a graph */
    const cs_stream_set streams = {.n = two_streams.n, .early = way == 2};
    ok(device->vtable->schedule_create(device, m.launches, LAUNCHES, &streams, way > 0, &schedule));
    check_kernels(schedule, true);
    for (int repeat = 0; repeat < 20; repeat++) {
      unsigned char *found = run(&m, schedule, &bytes);
      assert_memory_equal(found, wanted, bytes);
      free(found);
    }
    device->vtable->schedule_destroy(schedule);
  }
  free(wanted);
  module_destroy(&m);
}

static void what_no_kernel_computes_is_refused(void **state) {
  (void)state;
  module m;
  cs_schedule *schedule = NULL;
  module_create(&m);
  m.launches[2].merged = 0; /* launch 1 is by itself */
  cs_status st =
      device->vtable->schedule_create(device, m.launches, LAUNCHES, &two_streams, true, &schedule);
  assert_int_equal(cs_status_code(st), CS_CODE_INTERNAL);
  cs_status_free(st);
  assert_null(schedule);
  module_destroy(&m);
}

int main(void) {
  device = open_or_skip(NULL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_merged_launch_is_one_kernel_with_the_same_bits),
      cmocka_unit_test(what_no_kernel_computes_is_refused),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->vtable->close(device);
  return failed;
}
