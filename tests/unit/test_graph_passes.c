/* Passes: what they change, what they must leave alone; blocks. */
#include "graph/told.h"
#include "graph_fixture.h"

static const cs_node *node_of(const cs_graph *graph, const char *value) {
  int producer = value_of(graph, value)->producer;
  assert_true(producer >= 0);
  return &graph->nodes[producer];
}

static void assert_input(const cs_graph *graph, const cs_node *node, int k, const char *name) {
  assert_string_equal(graph->values[node->inputs[k]].name, name);
}

static void assert_consistent(const cs_graph *graph) {
  for (int i = 0; i < graph->n_nodes; i++) {
    assert_int_equal(graph->values[graph->nodes[i].output].producer, i);
    for (int k = 0; k < graph->nodes[i].n_inputs; k++) {
      int input = graph->nodes[i].inputs[k];
      assert_in_range(input, 0, graph->n_values - 1);
      assert_true(graph->values[input].producer < i);
    }
  }
}

#define BN(name, input) NODE(name, "BatchNormalization", input)
#define ADD(name, a, b) "{'name':'" name "','op':'Add','inputs':['" a "','" b "']}"

typedef struct pass_case {
  const char *nodes, *output;
  cs_pass_report want; /* of CS_PASSES_ALL */
  int n_nodes;
} pass_case;

static const pass_case cases[] = {
    /* 0: a chain of identities */
    {NODE("a", "Dropout", "x") "," NODE("b", "Identity", "a") "," NODE("c", "Relu", "b"),
     "'c'",
     {.identities_dropped = 2},
     1},
    /* 1: an identity is the output: its input's producer writes it */
    {NODE("a", "Relu", "x") "," NODE("b", "Dropout", "a") "," NODE("s", "Sigmoid", "a"),
     "'b','s'",
     {.identities_dropped = 1},
     2},
    /* 2: identity of a graph input as an output stays */
    {NODE("a", "Identity", "x"), "'a'", {0}, 1},
    /* 3: identity between two outputs stays */
    {NODE("a", "Relu", "x") "," NODE("b", "Identity", "a"), "'a','b'", {0}, 2},
    /* 4: concat of one */
    {CONCAT("a", "'x'") "," NODE("b", "Relu", "a"), "'b'", {.identities_dropped = 1}, 1},
    /* 5: convolution, normalisation, activation */
    {CONV("c", "x", "4", "3") "," BN("b", "c") "," NODE("r", "Relu", "b"),
     "'r'",
     {.batch_norms_folded = 1, .activations_fused = 1},
     1},
    /* 6: the convolution's result is wanted itself */
    {CONV("c", "x", "4", "3") "," BN("b", "c"), "'b','c'", {0}, 2},
    /* 7: read twice */
    {CONV("c", "x", "4", "3") "," BN("b", "c") "," ADD("s", "b", "c"), "'s'", {0}, 3},
    /* 8: before an unpadded convolution */
    {BN("b", "x") "," CONV("c", "b", "4", "3"), "'c'", {.batch_norms_folded = 1}, 1},
    /* 9: not before a padded one */
    {BN("b", "x") ",{'name':'c','op':'Conv','inputs':['b'],'attrs':{'out_channels':4,"
                  "'kernel_shape':[3,3],'pads':[0,0,0,1]}}",
     "'c'",
     {0},
     2},
    /* 10: DenseNet's order: the activation joins the normalisation */
    {BN("b", "x") "," NODE("r", "Relu", "b") "," CONV("c", "r", "4", "1"),
     "'c'",
     {.activations_fused = 1},
     2},
    /* 11: activation first, so no folding */
    {CONV("c", "x", "4", "3") "," NODE("r", "Relu", "c") "," BN("b", "r"),
     "'b'",
     {.activations_fused = 1},
     2},
    /* 12: a residual block */
    {CONV("c", "x", "4", "1") "," BN("b", "c") "," ADD("s", "b", "x") "," NODE("r", "Relu", "s"),
     "'r'",
     {.batch_norms_folded = 1, .activations_fused = 1, .residuals_fused = 1},
     1},
    /* 13: no residual behind an activation */
    {CONV("c", "x", "4", "1") "," NODE("q", "Relu", "c") "," ADD("s", "q", "x") "," NODE(
         "r", "Relu", "s"),
     "'r'",
     {.activations_fused = 2},
     2},
    /* 14: one residual only */
    {CONV("c", "x", "4", "1") "," ADD("s", "c", "x") "," ADD("t", "s", "x"),
     "'t'",
     {.residuals_fused = 1},
     2},
    /* 15: the same value twice is no residual */
    {CONV("c", "x", "4", "1") "," ADD("s", "c", "c"), "'s'", {0}, 2},
    /* 16: one activation only */
    {CONV("c", "x", "4", "1") "," NODE("r", "Relu", "c") "," NODE("s", "Sigmoid", "r"),
     "'s'",
     {.activations_fused = 1},
     2},
    /* 17: transposed convolutions too */
    {"{'name':'d','op':'ConvTranspose','inputs':['x'],'attrs':{'out_channels':4,'kernel_shape':"
     "[1,1]}}," BN("b", "d") "," ADD("s", "x", "b") "," NODE("t", "Tanh", "s"),
     "'t'",
     {.batch_norms_folded = 1, .activations_fused = 1, .residuals_fused = 1},
     1},
    /* 18: pooling takes no activation */
    {NODE("p", "GlobalAveragePool", "x") "," NODE("r", "Relu", "p"), "'r'", {0}, 2},
};

static void test_cases(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cs_graph *graph = graph_of("2,4,8,8", cases[i].nodes, cases[i].output);
    cs_pass_report report;
    cs_graph *out = passed(graph, CS_PASSES_ALL, &report);
    if (out->n_nodes != cases[i].n_nodes || memcmp(&report, &cases[i].want, sizeof report) != 0) {
      print_error("case %zu: %d nodes\n", i, out->n_nodes);
    }
    assert_int_equal(out->n_nodes, cases[i].n_nodes);
    assert_memory_equal(&report, &cases[i].want, sizeof report);
    assert_consistent(out);
    assert_int_equal(out->n_outputs, graph->n_outputs);
    for (int k = 0; k < graph->n_outputs; k++) {
      assert_string_equal(cs_graph_output_name(out, k), cs_graph_output_name(graph, k));
    }
    cs_graph *same = passed(graph, CS_PASSES_NONE, NULL);
    assert_true(cs_graph_hash(same) == cs_graph_hash(graph));
    cs_graph_destroy(same);
    cs_graph_destroy(out);
    cs_graph_destroy(graph);
  }
}

static void test_fold_details(void **state) {
  (void)state;
  cs_graph *graph = graph_of("2,4,8,8",
                             BN("n", "x") ",{'name':'c','op':'Conv','inputs':['n'],'attrs':{"
                             "'out_channels':6,'kernel_shape':[1,1],'bias':false}},{'name':'b',"
                             "'op':'BatchNormalization','inputs':['c'],'attrs':{'epsilon':0.25}}",
                             "'b'");
  cs_graph *out = passed(graph, CS_PASSES_ALL, NULL);
  const cs_node *conv = node_of(out, "b");
  assert_string_equal(conv->name, "c");
  assert_string_equal(conv->bn_before.node, "n");
  assert_int_equal(conv->bn_before.channels, 4);
  assert_string_equal(conv->bn_after.node, "b");
  assert_int_equal(conv->bn_after.channels, 6);
  assert_true(conv->bn_after.epsilon == 0.25);
  assert_input(out, conv, 0, "x");
  assert_false(conv->attrs.conv.bias); /* as written; the folds need a bias all the same */
  cs_op_desc desc;
  assert_ok(cs_graph_node_desc(out, 0, CS_PRECISION_F32, CS_LAYOUT_NCHW, &desc));
  assert_true(desc.has_bias);
  char *json = NULL;
  assert_fails(cs_graph_to_json(out, &json), CS_CODE_USAGE, "node \"c\"");
  cs_graph_destroy(out);
  cs_graph_destroy(graph);
}

/* Of two convolutions the later one adds the other's result, and stands where the Add stood. */
static void test_residual_details(void **state) {
  (void)state;
  cs_graph *graph = graph_of("2,4,8,8",
                             CONV("c", "x", "4", "1") "," NODE("y", "Sigmoid", "x") ","
                             CONV("d", "y", "4", "1") "," ADD("s", "d", "c") ","
                             "{'name':'k','op':'Clip','inputs':['s'],'attrs':{'min':-1,'max':6}}",
                             "'k'");
  cs_graph *out = passed(graph, CS_PASSES_ALL, NULL);
  assert_int_equal(out->n_nodes, 3);
  const cs_node *conv = node_of(out, "k");
  assert_string_equal(conv->name, "d");
  assert_true(conv->has_residual);
  assert_int_equal(conv->n_inputs, 2);
  assert_input(out, conv, 0, "y");
  assert_input(out, conv, 1, "c");
  assert_int_equal(conv->activation.kind, CS_ACT_CLIP);
  assert_true(conv->activation.alpha == -1 && conv->activation.beta == 6);
  cs_graph *rebound = NULL;
  assert_ok(cs_graph_bind(out, 2, &rebound));
  assert_true(cs_graph_hash(rebound) == cs_graph_hash(out));
  cs_graph_destroy(rebound);
  cs_graph_destroy(out);
  cs_graph_destroy(graph);
}

/* What is broadcast, or a constant, is no residual; activations go into any binary operator. */
static void test_broadcast_additions_stay(void **state) {
  (void)state;
  const char *nodes[] = {
      CONV("c", "x", "4", "1") "," NODE("p", "GlobalAveragePool", "x") "," ADD(
          "s", "c", "p") "," NODE("k", "Relu", "s"),
      CONV("c", "x", "4",
           "1") ",{'name':'s','op':'Add','inputs':['c'],'attrs':{'operand':[8,8]}}," NODE("k",
                                                                                          "Relu",
                                                                                          "s"),
      NODE("p", "GlobalAveragePool", "x") "," CONV("c", "p", "4", "1") "," ADD(
          "s", "c", "x") "," NODE("k", "Relu", "s")};
  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
    cs_graph *graph = graph_of("2,4,8,8", nodes[i], "'k'");
    cs_pass_report report;
    cs_graph *out = passed(graph, CS_PASSES_ALL, &report);
    assert_int_equal(report.residuals_fused, 0);
    assert_int_equal(report.activations_fused, 1);
    const cs_node *sum = node_of(out, "k");
    assert_string_equal(sum->name, "s");
    assert_int_equal(sum->op, CS_OP_ADD);
    assert_int_equal(sum->activation.kind, CS_ACT_RELU);
    cs_graph_destroy(out);
    cs_graph_destroy(graph);
  }
}

/* x · Sigmoid(x) is one node, which goes into the convolution before it. */
static void test_gates(void **state) {
  (void)state;
  const char *hard = "{'name':'g','op':'HardSigmoid','inputs':['c'],'attrs':{'alpha':%s}},";
  char sixth[128], fifth[128], nodes[512];
  snprintf(sixth, sizeof sixth, hard, "0.1666666716337204");
  snprintf(fifth, sizeof fifth, hard, "0.2");
  const struct {
    const char *gate, *factors, *outputs;
    cs_act_kind wanted;
    int nodes;
  } gated[] = {{NODE("g", "Sigmoid", "c") ",", "'c','g'", "'k'", CS_ACT_SWISH, 1},
               {NODE("g", "Sigmoid", "c") ",", "'g','c'", "'k'", CS_ACT_SWISH, 1},
               {sixth, "'c','g'", "'k'", CS_ACT_HARD_SWISH, 1},
               {fifth, "'c','g'", "'k'", CS_ACT_NONE, 3},
               {NODE("g", "Sigmoid", "x") ",", "'c','g'", "'k'", CS_ACT_NONE, 3},
               {NODE("g", "Sigmoid", "c") ",", "'c','g'", "'k','g'", CS_ACT_NONE, 3}};
  for (size_t i = 0; i < sizeof gated / sizeof *gated; i++) {
    snprintf(nodes, sizeof nodes, "%s%s{'name':'k','op':'Mul','inputs':[%s]}",
             CONV("c", "x", "4", "1") ",", gated[i].gate, gated[i].factors);
    cs_graph *graph = graph_of("2,4,8,8", nodes, gated[i].outputs);
    cs_graph *out = passed(graph, CS_PASSES_ALL, NULL);
    assert_int_equal(out->n_nodes, gated[i].nodes);
    if (gated[i].nodes == 1) {
      const cs_node *conv = node_of(out, "k");
      int made_of[3];
      assert_string_equal(conv->name, "c");
      assert_int_equal(conv->activation.kind, gated[i].wanted);
      assert_int_equal(cs_graph_nodes_of(graph, out, 0, made_of), 3);
    }
    cs_graph_destroy(out);
    cs_graph_destroy(graph);
  }
}

/* A window over the whole input is a global pool; a smaller or a padded one is not. */
static void test_whole_average_pool_is_global(void **state) {
  (void)state;
  const char *attrs[] = {"'kernel_shape':[8,8]", "'kernel_shape':[7,8]",
                         "'kernel_shape':[8,8],'pads':[1,1,0,0],'strides':[8,8]"};
  const cs_op wanted[] = {CS_OP_GLOBAL_AVERAGE_POOL, CS_OP_AVERAGE_POOL, CS_OP_AVERAGE_POOL};
  for (int i = 0; i < 3; i++) {
    char nodes[256];
    snprintf(nodes, sizeof nodes, "{'name':'a','op':'AveragePool','inputs':['x'],'attrs':{%s}}",
             attrs[i]);
    cs_graph *graph = graph_of("2,4,8,8", nodes, "'a'");
    cs_graph *out = passed(graph, CS_PASSES_ALL, NULL);
    assert_int_equal(node_of(out, "a")->op, wanted[i]);
    cs_graph_destroy(out);
    cs_graph_destroy(graph);
  }
}

static void test_reductions_of_planes_are_global_pools(void **state) {
  (void)state;
  const struct {
    const char *op, *attrs;
    cs_op wanted;
  } reductions[] = {{"ReduceMean", "'axes':[3,2]", CS_OP_GLOBAL_AVERAGE_POOL},
                    {"ReduceMax", "'axes':[-2,-1]", CS_OP_GLOBAL_MAX_POOL},
                    {"ReduceSum", "'axes':[2,3]", CS_OP_REDUCE_SUM},
                    {"ReduceMean", "'axes':[1,3]", CS_OP_REDUCE_MEAN},
                    {"ReduceMean", "'axes':[2,3],'keepdims':false", CS_OP_REDUCE_MEAN}};
  for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
    char nodes[256];
    snprintf(nodes, sizeof nodes, "{'name':'a','op':'%s','inputs':['x'],'attrs':{%s}}",
             reductions[i].op, reductions[i].attrs);
    cs_graph *graph = graph_of("2,4,8,8", nodes, "'a'");
    cs_graph *out = passed(graph, CS_PASSES_ALL, NULL);
    assert_int_equal(node_of(out, "a")->op, reductions[i].wanted);
    cs_graph_destroy(out);
    cs_graph_destroy(graph);
  }
}

/* A projection written behind the branch it joins still leaves the sum to the longer branch. */
static void test_residual_goes_to_the_longer_branch(void **state) {
  (void)state;
  cs_graph *graph = graph_of("2,4,8,8",
                             CONV("a", "x", "4", "1") "," CONV("b", "a", "4", "1") "," CONV(
                                 "projection", "x", "4", "1") "," ADD("s", "b", "projection"),
                             "'s'");
  cs_graph *out = passed(graph, CS_PASSES_ALL, NULL);
  assert_consistent(out);
  assert_int_equal(out->n_nodes, 3);
  assert_string_equal(node_of(out, "s")->name, "b");
  assert_input(out, node_of(out, "s"), 1, "projection");
  cs_graph_destroy(out);
  cs_graph_destroy(graph);
}

/* The residual is made after the convolution: the fused node has to wait for it. */
static void test_residual_made_later(void **state) {
  (void)state;
  cs_graph *graph = graph_of("2,4,8,8",
                             CONV("c", "x", "4", "1") "," NODE("y", "Sigmoid", "x") "," NODE(
                                 "z", "Tanh", "y") "," ADD("s", "z", "c"),
                             "'s'");
  cs_graph *out = passed(graph, CS_PASSES_ALL, NULL);
  assert_consistent(out);
  assert_string_equal(out->nodes[2].name, "c");
  assert_input(out, &out->nodes[2], 1, "z");
  cs_graph_destroy(out);
  cs_graph_destroy(graph);
}

static void test_output_identity_renames(void **state) {
  (void)state;
  cs_graph *graph = graph_of("2,4,8,8",
                             NODE("a", "Relu", "x") "," NODE("s", "Sigmoid", "a") "," NODE(
                                 "b", "Dropout", "a") "," NODE("t", "Tanh", "b"),
                             "'b','s','t'");
  cs_graph *out = passed(graph, CS_PASSES_ALL, NULL);
  assert_int_equal(cs_graph_find_value(out, "a"), -1);
  assert_string_equal(node_of(out, "b")->name, "a");
  assert_input(out, node_of(out, "s"), 0, "b");
  assert_input(out, node_of(out, "t"), 0, "b");
  cs_graph_destroy(out);
  cs_graph_destroy(graph);
}

/* Each option alone does its own work only. */
static void test_options(void **state) {
  (void)state;
  cs_graph *graph =
      graph_of("2,4,8,8",
               NODE("i", "Identity", "x") "," CONV("c", "i", "4", "1") "," BN("b", "c") "," NODE(
                   "r", "Relu", "b") "," CONV("d", "x", "4", "1") "," CONCAT("k", "'r','d'"),
               "'k'");
  cs_pass_report report;
  cs_graph *out = passed(graph, (cs_pass_options){.drop_identities = true}, &report);
  assert_memory_equal(&report, (&(cs_pass_report){.identities_dropped = 1}), sizeof report);
  cs_graph_destroy(out);
  out = passed(graph, (cs_pass_options){.fold_batch_norm = true}, &report);
  assert_memory_equal(&report, (&(cs_pass_report){.batch_norms_folded = 1}), sizeof report);
  cs_graph_destroy(out);
  out = passed(graph, (cs_pass_options){.fuse = true}, &report);
  assert_memory_equal(&report, (&(cs_pass_report){.activations_fused = 1}), sizeof report);
  assert_int_equal(node_of(out, "r")->op, CS_OP_BATCH_NORM);
  cs_graph_destroy(out);
  out = passed(graph, (cs_pass_options){.concat_in_place = true}, &report);
  assert_memory_equal(&report, (&(cs_pass_report){.concats_in_place = 1}), sizeof report);
  cs_graph_destroy(out);
  cs_graph_destroy(graph);
}

/* ---- Blocks ---- */

static void assert_blocks(const char *nodes, const char *outputs, int n_blocks, const int *wanted) {
  cs_graph *graph = graph_of("2,4,8,8", nodes, outputs);
  int block_of[16], n = 0;
  assert_ok(cs_graph_blocks(graph, block_of, &n));
  assert_int_equal(n, n_blocks);
  for (int i = 0; i < graph->n_nodes; i++) assert_int_equal(block_of[i], wanted[i]);
  cs_graph_destroy(graph);
}

static void test_blocks(void **state) {
  (void)state;
  assert_blocks(NODE("a", "Relu", "x") "," NODE("b", "Relu", "a") "," NODE("c", "Relu", "b"), "'c'",
                3, (int[]){0, 1, 2});
  /* A diamond between two chains. */
  assert_blocks(NODE("a", "Relu", "x") "," NODE("b", "Relu", "a") "," NODE(
                    "c", "Tanh", "a") "," ADD("d", "b", "c") "," NODE("e", "Relu", "d"),
                "'e'", 3, (int[]){0, 1, 1, 1, 2});
  /* Branches from the input itself. */
  assert_blocks(NODE("b", "Relu", "x") "," NODE("c", "Tanh", "x") "," ADD("d", "b", "c"), "'d'", 1,
                (int[]){0, 0, 0});
  /* A residual around a chain. */
  assert_blocks(NODE("a", "Relu", "x") "," NODE("b", "Relu", "a") "," NODE(
                    "c", "Relu", "b") "," ADD("d", "a", "c") "," NODE("e", "Relu", "d"),
                "'e'", 3, (int[]){0, 1, 1, 1, 2});
  /* An early output is a way past everything behind it. */
  assert_blocks(NODE("a", "Relu", "x") "," NODE("b", "Relu", "a") "," NODE("c", "Relu", "b"),
                "'b','c'", 3, (int[]){0, 1, 2});
  assert_blocks(NODE("a", "Relu", "x") "," NODE("b", "Relu", "a") "," NODE(
                    "c", "Relu", "b") "," NODE("d", "Relu", "c"),
                "'b','d'", 3, (int[]){0, 1, 2, 2});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cases),
      cmocka_unit_test(test_fold_details),
      cmocka_unit_test(test_residual_details),
      cmocka_unit_test(test_broadcast_additions_stay),
      cmocka_unit_test(test_gates),
      cmocka_unit_test(test_reductions_of_planes_are_global_pools),
      cmocka_unit_test(test_whole_average_pool_is_global),
      cmocka_unit_test(test_residual_made_later),
      cmocka_unit_test(test_residual_goes_to_the_longer_branch),
      cmocka_unit_test(test_output_identity_renames),
      cmocka_unit_test(test_options),
      cmocka_unit_test(test_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
