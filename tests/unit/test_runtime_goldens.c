/* The reference, with and without passes, against what PyTorch computed in float64
 * (tools/make_goldens.py). The goldens are stored as f32, whose rounding is the tolerance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "runtime/session.h"
#include "sanitized.h"

#define GOLDENS CS_SOURCE_DIR "/tests/data/goldens/"
/* f32 rounding of the stored outputs is 2^-24 each; folded weights are rounded to f32 once more and
 * those errors grow through a graph. */
#define TOLERANCE 1e-7
#define TOLERANCE_FOLDED 1e-6

static void assert_ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

/* The relative L2 difference between the golden `output` and the reference is at most `limit`. */
static void compare(const cs_graph *graph, const cs_params *params, cs_pass_options passes,
                    const float *input, const float *output, double limit) {
  cs_graph *passed = NULL;
  cs_pass_report report;
  double rel_l2 = -1;
  assert_ok(cs_graph_apply_passes(graph, passes, &report, &passed));
  cs_known_outputs known = {0};
  assert_ok(cs_known_outputs_make(passed, params, &input, &known));
  assert_ok(cs_end_to_end_error(passed, &known, &output, &rel_l2));
  cs_known_outputs_clear(&known);
  cs_graph_destroy(passed);
  if (!(rel_l2 <= limit)) {
    fail_msg("%s: relative L2 difference %g, wanted at most %g", graph->name, rel_l2, limit);
  }
}

static float *read_array(const char *path, const cs_graph *graph, int value) {
  float *data = NULL;
  assert_ok(cs_array_read(path, &graph->values[value].shape, &data));
  return data;
}

static bool takes_all(void *user, const cs_op_desc *desc) {
  (void)user;
  return desc->has_prologue;
}

/* Without passes, with those of any device, and with those of one that takes every prologue. */
static void compare_all(const cs_graph *graph, const cs_params *params, const float *input,
                        const float *output) {
  cs_pass_options all = CS_PASSES_ALL;
  compare(graph, params, CS_PASSES_NONE, input, output, TOLERANCE);
  compare(graph, params, all, input, output, TOLERANCE_FOLDED);
  all.prologue = (cs_prologue_taker){takes_all, NULL, CS_PRECISION_F32, CS_LAYOUT_NCHW};
  compare(graph, params, all, input, output, TOLERANCE_FOLDED);
}

static const char *const families[] = {
    "inception_lrn",  "inception_bn", "inception_factorised", "residual_bottleneck", "fire",
    "dense_block",    "dcgan_head",   "conv_variants",        "transposed_variants", "pools",
    "normalisations", "lrn_even",     "elementwise",          "movements",           "attention"};

static void small_graphs(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
    char path[256];
    cs_graph *graph = NULL, *bound = NULL;
    cs_params *params = NULL;
    snprintf(path, sizeof path, GOLDENS "%s/graph.json", families[i]);
    assert_ok(cs_graph_load(path, &graph));
    assert_ok(cs_graph_bind(graph, 2, &bound));
    snprintf(path, sizeof path, GOLDENS "%s/weights.safetensors", families[i]);
    assert_ok(cs_params_load(graph, path, NULL, &params));
    snprintf(path, sizeof path, GOLDENS "%s/input.npy", families[i]);
    float *input = read_array(path, bound, bound->inputs[0]);
    snprintf(path, sizeof path, GOLDENS "%s/output.npy", families[i]);
    float *output = read_array(path, bound, bound->outputs[0]);
    compare_all(bound, params, input, output);
    free(input);
    free(output);
    cs_params_destroy(params);
    cs_graph_destroy(bound);
    cs_graph_destroy(graph);
  }
}

/* Parameters and input are generated here as they were there. */
static void whole_model(const char *model) {
  char path[256];
  cs_graph *graph = NULL, *bound = NULL;
  cs_params *params = NULL;
  int64_t count;
  snprintf(path, sizeof path, CS_SOURCE_DIR "/models/%s.json", model);
  assert_ok(cs_graph_load(path, &graph));
  assert_ok(cs_graph_bind(graph, 1, &bound));
  assert_ok(cs_params_generate(graph, 0, &params));
  const cs_value *source = &bound->values[bound->inputs[0]];
  assert_ok(cs_shape_elements(&source->shape, &count));
  float *input = cs_calloc((size_t)count, sizeof *input);
  assert_non_null(input);
  cs_input_generate(source->name, 0, input, count);
  snprintf(path, sizeof path, GOLDENS "models/%s.npy", model);
  float *output = read_array(path, bound, bound->outputs[0]);
  compare(bound, params, CS_PASSES_ALL, input, output, TOLERANCE_FOLDED);
  free(input);
  free(output);
  cs_params_destroy(params);
  cs_graph_destroy(bound);
  cs_graph_destroy(graph);
}

#define MODEL_TEST(model)           \
  static void model(void **state) { \
    (void)state;                    \
    whole_model(#model);            \
  }
/* Under a sanitizer the smallest of those with branches, and the transposed one: the small graphs
 * have the operators and passes of all. */
#if !CS_TEST_SANITIZED
MODEL_TEST(googlenet)
MODEL_TEST(googlenet_bn)
MODEL_TEST(inception_v3)
MODEL_TEST(resnet50)
MODEL_TEST(densenet121)
MODEL_TEST(mobilenet_v2)
MODEL_TEST(efficientnet_b0)
MODEL_TEST(nasnet_a_mobile)
MODEL_TEST(randwire_ws_small)
#endif
MODEL_TEST(squeezenet1_1)
MODEL_TEST(dcgan_generator)

int main(void) {
  const struct CMUnitTest tests[] = {
#if !CS_TEST_SANITIZED
    cmocka_unit_test(googlenet),
    cmocka_unit_test(googlenet_bn),
    cmocka_unit_test(inception_v3),
    cmocka_unit_test(resnet50),
    cmocka_unit_test(densenet121),
    cmocka_unit_test(mobilenet_v2),
    cmocka_unit_test(efficientnet_b0),
    cmocka_unit_test(nasnet_a_mobile),
    cmocka_unit_test(randwire_ws_small),
#endif
    cmocka_unit_test(small_graphs),
    cmocka_unit_test(squeezenet1_1),
    cmocka_unit_test(dcgan_generator),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
