/* The pass that makes prologues: where it does, where it must not, and what the operation then is.
 */
#include "graph/told.h"
#include "graph_fixture.h"

#define BN(name, input) NODE(name, "BatchNormalization", input)
#define ATTRS(name, input, attrs) \
  "{'name':'" name "','op':'Conv','inputs':['" input "'],'attrs':{'out_channels':4," attrs "}}"
/* DenseNet's order: a concat that others read too, normalisation, activation. */
#define BEFORE CONCAT("k", "'x','x'") "," BN("b", "k") "," NODE("r", "Relu", "b")

/* Counts what it is asked, and says yes up to so many times. */
typedef struct asker {
  int asked, yes;
  cs_op_desc last;
} asker;

static bool takes(void *user, const cs_op_desc *desc) {
  asker *a = user;
  a->last = *desc;
  return a->asked++ < a->yes;
}

static cs_pass_options asking(asker *a) {
  cs_pass_options options = CS_PASSES_ALL;
  options.prologue = (cs_prologue_taker){takes, a, CS_PRECISION_F16, CS_LAYOUT_NHWC};
  return options;
}

typedef struct prologue_case {
  const char *nodes, *outputs;
  int asked, fused, n_nodes;
} prologue_case;

static const prologue_case cases[] = {
    /* 0: DenseNet's */
    {BEFORE "," CONV("c", "r", "4", "1"), "'c','k'", 1, 1, 2},
    /* 1: with steps, a residual and an activation of its own */
    {BEFORE "," ATTRS("c", "r", "'kernel_shape':[1,1],'strides':[2,2]") "," CONV(
         "d", "x", "4", "2") ","
                             "{'name':'p','op':'MaxPool','inputs':['d'],'attrs':{'kernel_shape':[1,"
                             "1],'strides':[2,2]}},"
                             "{'name':'s','op':'Add','inputs':['c','p']}," NODE("t", "Tanh", "s"),
     "'t'", 1, 1, 4},
    /* 2: a second reader of what the convolution reads */
    {BEFORE "," CONV("c", "r", "4", "1") "," CONV("d", "r", "4", "1"), "'c','d'", 0, 0, 4},
    /* 3: it is an output */
    {BEFORE "," CONV("c", "r", "4", "1"), "'c','r'", 0, 0, 3},
    /* 4: padded */
    {BEFORE "," ATTRS("c", "r", "'kernel_shape':[1,1],'pads':[0,0,0,1]"), "'c'", 0, 0, 3},
    /* 5: more taps */
    {BEFORE "," CONV("c", "r", "4", "3"), "'c'", 0, 0, 3},
    {BEFORE "," ATTRS("c", "r", "'kernel_shape':[1,2]"), "'c'", 0, 0, 3},
    /* 7: groups */
    {BEFORE "," ATTRS("c", "r", "'kernel_shape':[1,1],'group':2"), "'c'", 0, 0, 3},
    /* 8: without an activation it goes into the weights, and costs nothing there */
    {BN("b", "x") "," CONV("c", "b", "4", "1"), "'c'", 0, 0, 1},
    /* 9: nothing is normalised */
    {NODE("r", "Relu", "x") "," CONV("c", "r", "4", "1"), "'c'", 0, 0, 2},
    /* 10: an activation that is not fused lies between */
    {BEFORE "," NODE("s", "Sigmoid", "r") "," CONV("c", "s", "4", "1"), "'c'", 0, 0, 4},
    /* 11: no convolution */
    {BEFORE "," NODE("g", "GlobalAveragePool", "r"), "'g'", 0, 0, 3},
};

static void it_is_made_where_it_can_be(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cs_graph *graph = graph_of("2,4,8,8", cases[i].nodes, cases[i].outputs);
    asker a = {.yes = 100};
    cs_pass_report report;
    cs_graph *out = passed(graph, asking(&a), &report);
    if (a.asked != cases[i].asked || report.prologues_fused != cases[i].fused ||
        out->n_nodes != cases[i].n_nodes) {
      fail_msg("case %zu: asked %d, fused %d, %d nodes", i, a.asked, report.prologues_fused,
               out->n_nodes);
    }
    cs_graph_destroy(out);
    cs_graph_destroy(graph);
  }
}

static void only_what_the_device_takes(void **state) {
  (void)state;
  cs_graph *graph = graph_of(
      "2,4,8,8",
      BEFORE "," CONV("c", "r", "4", "1") "," BN("b2", "c") "," NODE("r2", "Relu", "b2") "," BN(
          "b3", "r2") "," NODE("r3", "Relu", "b3") "," CONV("d", "r3", "4", "1"),
      "'d'");
  cs_pass_report report;
  cs_graph *out = passed(graph, CS_PASSES_ALL, &report);
  assert_int_equal(report.prologues_fused, 0);
  int without = out->n_nodes;
  cs_graph_destroy(out);
  for (int yes = 0; yes <= 2; yes++) {
    asker a = {.yes = yes};
    out = passed(graph, asking(&a), &report);
    assert_int_equal(a.asked, 2);
    assert_int_equal(report.prologues_fused, yes);
    assert_int_equal(out->n_nodes, without - yes);
    cs_graph_destroy(out);
  }
  cs_graph_destroy(graph);
}

/* What is asked for is what lowering makes: the same but for where tensors lie. */
static void the_task_is_what_was_asked_for(void **state) {
  (void)state;
  cs_graph *graph = graph_of(
      "2,8,6,6", BEFORE "," CONV("c", "r", "4", "1") "," NODE("t", "Relu", "c"), "'t','k'");
  asker a = {.yes = 1};
  cs_graph *out = passed(graph, asking(&a), NULL);
  const cs_node *conv = &out->nodes[out->n_nodes - 1];
  assert_string_equal(conv->name, "c");
  assert_string_equal(conv->prologue.node, "b");
  assert_int_equal(conv->prologue.channels, 16);
  assert_string_equal(out->values[conv->inputs[0]].name, "k");
  int stands_for[16]; /* what is told of its kernel: all four */
  assert_int_equal(cs_graph_nodes_of(graph, out, out->n_nodes - 1, stands_for), 4);
  assert_string_equal(graph->nodes[stands_for[0]].name, "b");
  assert_string_equal(graph->nodes[stands_for[3]].name, "t");
  cs_layout layouts[8] = {0};
  for (int v = 0; v < out->n_values; v++) layouts[v] = CS_LAYOUT_NHWC;
  cs_program *program = NULL;
  assert_ok(cs_program_lower(out, CS_PRECISION_F16, layouts, &program));
  const cs_op_desc *desc = &program->tasks[program->n_tasks - 1].desc;
  char *asked = NULL, *made = NULL;
  assert_ok(cs_op_signature(&a.last, &asked));
  assert_ok(cs_op_signature(desc, &made));
  assert_string_equal(made,
                      "Conv f16 x=2x16x6x6/nhwc y=2x4x6x6/nhwc k=1x1 s=1x1 p=0,0,0,0 d=1x1 g=1 "
                      "bias act=relu pre=relu");
  assert_string_equal(asked, made);
  /* Scale and shift lie behind the bias, and count. */
  const float bias[4 + 2 * 16] = {0};
  assert_int_equal(cs_op_bias_elements(desc), 4 + 2 * 16);
  assert_ptr_equal(cs_op_prologue(desc, bias), bias + 4);
  cs_op_desc without = *desc;
  without.has_prologue = false;
  assert_int_equal(cs_op_bias_elements(&without), 4);
  assert_true(cs_op_flops(desc) == cs_op_flops(&without) + 2 * 2 * 16 * 36);
  assert_true(cs_op_bytes(desc) == cs_op_bytes(&without) + 2 * 32);
  /* A graph with one cannot be saved, and is another graph. */
  char *json = NULL;
  assert_fails(cs_graph_to_json(out, &json), CS_CODE_USAGE, "changed by a pass");
  cs_graph *plain = passed(graph, CS_PASSES_ALL, NULL);
  assert_true(cs_graph_hash(out) != cs_graph_hash(plain));
  cs_graph_destroy(plain);
  free(asked);
  free(made);
  cs_program_destroy(program);
  cs_graph_destroy(out);
  cs_graph_destroy(graph);
}

static void signatures_may_differ_in_layouts_alone(void **state) {
  (void)state;
  const char *wanted = "Conv f16 x=2x16x6x6/nhwc y=2x4x6x6/nhwc k=1x1 pre=relu";
  assert_true(cs_signatures_alike(wanted, wanted));
  assert_true(cs_signatures_alike(
      wanted, "Conv f16 x=2x16x6x6/nchw/s9,1,3,2/a8 y=2x4x6x6/nhwc k=1x1 pre=relu"));
  assert_false(cs_signatures_alike(wanted, "Conv f16 x=2x16x6x6/nhwc y=2x4x6x6/nhwc k=1x1"));
  assert_false(
      cs_signatures_alike(wanted, "Conv f16 x=2x17x6x6/nhwc y=2x4x6x6/nhwc k=1x1 pre=relu"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_is_made_where_it_can_be),
      cmocka_unit_test(only_what_the_device_takes),
      cmocka_unit_test(the_task_is_what_was_asked_for),
      cmocka_unit_test(signatures_may_differ_in_layouts_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
