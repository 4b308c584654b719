/* Which prologues a graph gets for a backend, and for a profile of a device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>

#include "runtime/passes.h"

#define NORM(name, input)                                                     \
  "{\"name\":\"" name "\",\"op\":\"BatchNormalization\",\"inputs\":[\"" input \
  "\"]},"                                                                     \
  "{\"name\":\"" name ".relu\",\"op\":\"Relu\",\"inputs\":[\"" name "\"]},"
#define CONV(name, input, channels)                             \
  "{\"name\":\"" name "\",\"op\":\"Conv\",\"inputs\":[\"" input \
  "\"],\"attrs\":{"                                             \
  "\"out_channels\":" channels ",\"kernel_shape\":[1,1],\"bias\":false}},"
/* Two convolutions behind normalisations that read the input, of 32 and of 48 filters. */
static const char text[] =
    "{\"schema\":\"convsched.graph/1\",\"name\":\"t\",\"inputs\":[{\"name\":\"x\",\"shape\":"
    "[\"N\",64,8,8],\"dtype\":\"f32\"}],\"nodes\":[" NORM("n", "x") CONV("a", "n.relu", "32")
        NORM("m", "x") CONV("b", "m.relu", "48")
    "{\"name\":\"k\",\"op\":\"Concat\",\"inputs\":[\"a\",\"b\"],\"attrs\":{\"axis\":1}}],"
    "\"outputs\":[\"k\"]}";

static void ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

static cs_graph *bound_graph(void) {
  cs_graph *graph = NULL, *bound = NULL;
  ok(cs_graph_parse(text, strlen(text), "t.json", &graph));
  ok(cs_graph_bind(graph, 2, &bound));
  cs_graph_destroy(graph);
  return bound;
}

static int fused_for_profile(const cs_profile *profile, cs_precision precision) {
  cs_graph *bound = bound_graph(), *out = NULL;
  cs_pass_report report;
  ok(cs_passes_for_profile(profile, bound, precision, &report, &out));
  cs_graph_destroy(out);
  cs_graph_destroy(bound);
  return report.prologues_fused;
}

static void record(cs_profile *profile, const char *signature) {
  char id[] = "cuda.mma_pre.v1-64x64", family[] = "cuda.mma_pre";
  cs_candidate candidate = {.id = id, .family = family};
  cs_measurement measured = {.cold_us = 1, .warm_us = 1, .p10_us = 1, .p90_us = 1, .samples = 5};
  ok(cs_profile_add(profile, signature, &candidate, &measured));
}

static void a_profile_tells_which_its_device_took(void **state) {
  (void)state;
  char directory[] = "/tmp/cs-passes-XXXXXX", command[64];
  assert_non_null(mkdtemp(directory));
  cs_profile *profile = NULL;
  ok(cs_profile_open(directory, "a device", NULL, &profile));
  assert_int_equal(fused_for_profile(profile, CS_PRECISION_F16), 0);
  /* Without the prologue, of another batch. */
  record(profile, "Conv f16 x=2x64x8x8/nhwc y=2x32x8x8/nhwc k=1x1 s=1x1 p=0,0,0,0 d=1x1 g=1");
  record(profile,
         "Conv f16 x=1x64x8x8/nhwc y=1x32x8x8/nhwc k=1x1 s=1x1 p=0,0,0,0 d=1x1 g=1 pre=relu");
  assert_int_equal(fused_for_profile(profile, CS_PRECISION_F16), 0);
  /* As a slice of the concat. */
  record(profile,
         "Conv f16 x=2x64x8x8/nhwc y=2x32x8x8/nhwc/s5120,1,640,80 k=1x1 s=1x1 p=0,0,0,0 d=1x1 "
         "g=1 pre=relu");
  assert_int_equal(fused_for_profile(profile, CS_PRECISION_F16), 1);
  assert_int_equal(fused_for_profile(profile, CS_PRECISION_BF16), 0);
  cs_profile_close(profile);
  snprintf(command, sizeof command, "rm -rf %s", directory);
  assert_int_equal(system(command), 0);
}

/* ---- Backends ---- */

static int some_layouts(const cs_backend *backend, cs_precision precision,
                        cs_layout out[CS_MAX_DEVICE_LAYOUTS]) {
  (void)backend;
  out[0] = precision == CS_PRECISION_F32 ? CS_LAYOUT_NCHW : CS_LAYOUT_NHWC;
  return 1;
}

static bool takes_nhwc(cs_backend *backend, const cs_op_desc *desc) {
  (void)backend;
  assert_true(desc->has_prologue && desc->prologue.kind == CS_ACT_RELU);
  return desc->inputs[0].layout == CS_LAYOUT_NHWC;
}

static int fused_for_backend(const cs_backend_vtable *vtable, cs_precision precision) {
  cs_backend backend = {.vtable = vtable};
  cs_graph *bound = bound_graph(), *out = NULL;
  cs_pass_report report;
  ok(cs_passes_for_backend(&backend, bound, precision, &report, &out));
  cs_graph_destroy(out);
  cs_graph_destroy(bound);
  return report.prologues_fused;
}

static void a_backend_is_asked_in_the_layout_it_prefers(void **state) {
  (void)state;
  const cs_backend_vtable none = {.layouts = some_layouts};
  const cs_backend_vtable some = {.layouts = some_layouts, .takes_prologue = takes_nhwc};
  assert_int_equal(fused_for_backend(&none, CS_PRECISION_F16), 0);
  assert_int_equal(fused_for_backend(&some, CS_PRECISION_F16), 2);
  assert_int_equal(fused_for_backend(&some, CS_PRECISION_F32), 0);
}

/* Recorded before there were any, so that what was recorded is what is planned. */
static void a_recorded_device_goes_on_as_it_was(void **state) {
  (void)state;
  cs_backend *sim = NULL;
  cs_graph *graph = NULL, *bound = NULL, *out = NULL;
  cs_pass_report report;
  ok(cs_sim_backend_open_file(CS_SOURCE_DIR "/tests/data/profiles/h100-f16-b1.jsonl.gz", NULL,
                              &sim));
  ok(cs_graph_load(CS_SOURCE_DIR "/models/densenet121.json", &graph));
  ok(cs_graph_bind(graph, 1, &bound));
  ok(cs_passes_for_backend(sim, bound, CS_PRECISION_F16, &report, &out));
  assert_int_equal(report.prologues_fused, 0);
  sim->vtable->close(sim);
  cs_graph_destroy(out);
  cs_graph_destroy(bound);
  cs_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_profile_tells_which_its_device_took),
      cmocka_unit_test(a_backend_is_asked_in_the_layout_it_prefers),
      cmocka_unit_test(a_recorded_device_goes_on_as_it_was),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
