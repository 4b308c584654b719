/* What passes did with nodes: which one stands for which, and why some stand alone. */
#include "graph/told.h"
#include "unit/graph_fixture.h"

#define CONV_OF(name, input, more)                   \
  "{'name':'" name "','op':'Conv','inputs':['" input \
  "'],'attrs':{'out_channels':4,'kernel_shape':[3,3],'bias':true" more "}}"
#define PADDED ",'pads':[1,1,1,1]"
#define NODE_OF(name, op, inputs) "{'name':'" name "','op':'" op "','inputs':[" inputs "]}"

static int node_of(const cs_graph *graph, const char *name) {
  for (int i = 0; i < graph->n_nodes; i++)
    if (strcmp(graph->nodes[i].name, name) == 0) return i;
  fail_msg("no node %s", name);
  return -1;
}

static void assert_nodes(const cs_graph *bound, const cs_graph *after, const char *node,
                         const char *wanted) {
  int found[32];
  cs_strbuf text = {0};
  int n = cs_graph_nodes_of(bound, after, node_of(after, node), found);
  for (int i = 0; i < n; i++)
    cs_strbuf_printf(&text, "%s%s", i ? " " : "", bound->nodes[found[i]].name);
  assert_string_equal(text.data ? text.data : "", wanted);
  cs_strbuf_free(&text);
}

static void assert_why(const cs_graph *after, const char *node, const char *wanted) {
  cs_strbuf text = {0};
  cs_graph_tell_why_alone(after, node_of(after, node), &text);
  assert_string_equal(text.data, wanted);
  cs_strbuf_free(&text);
}

static void test_nodes(void **state) {
  (void)state;
  cs_graph *bound = graph_of(
      "1,4,8,8",
      CONV_OF("c1", "x", PADDED) "," NODE_OF("b1", "BatchNormalization", "'c1'") "," NODE_OF(
          "d", "Dropout", "'b1'") "," NODE_OF("r1", "Relu", "'d'") "," CONV_OF("c2", "r1", PADDED) "," NODE_OF(
          "a", "Add", "'r1','c2'") "," NODE_OF("r2", "Relu", "'a'") ","
      "{'name':'p','op':'MaxPool','inputs':['r2'],'attrs':{'kernel_shape':[2,2]}}," NODE_OF(
          "b2", "BatchNormalization", "'p'") "," CONV_OF("c3", "b2", ""),
      "'c3'");
  cs_graph *after = passed(bound, CS_PASSES_ALL, NULL);
  assert_nodes(bound, after, "c1", "c1 b1 r1");
  assert_nodes(bound, after, "c2", "c2 a r2");
  assert_nodes(bound, after, "p", "p");
  assert_nodes(bound, after, "c3", "b2 c3");
  assert_int_equal(after->n_nodes, 4);
  cs_graph_destroy(after);
  cs_graph_destroy(bound);
}

static void test_why_normalization_stays(void **state) {
  (void)state;
  cs_graph *bound = graph_of(
      "1,4,8,8",
      NODE_OF("b0", "BatchNormalization", "'x'") "," CONV_OF("c0", "b0", PADDED) "," CONV_OF(
          "c1", "c0", PADDED) "," NODE_OF("r1", "Relu", "'c1'") ","
      NODE_OF("b1", "BatchNormalization", "'r1'") "," NODE_OF("r2", "Relu", "'b1'") "," CONV_OF(
          "c2", "r2", PADDED) "," NODE_OF("b2", "BatchNormalization", "'c2'") "," NODE_OF(
          "b3", "BatchNormalization", "'b2'") "," NODE_OF("s", "Sigmoid", "'c2'"),
      "'b3','s'");
  cs_graph *after = passed(bound, CS_PASSES_ALL, NULL);
  assert_why(after, "b0", "x is the graph's input; c0 behind it pads its input");
  assert_why(after, "b1",
             "r1 is made by a Conv that ends in relu already; its relu comes before any weights "
             "behind it");
  assert_why(after, "b2", "c2 is read elsewhere too; b3 behind it is a BatchNormalization");
  assert_why(after, "b3",
             "b2 is made by a BatchNormalization, which takes over nothing; its own result is a "
             "result of the graph");
  assert_why(after, "s", "c2 is read elsewhere too");
  cs_graph_destroy(after);
  cs_graph_destroy(bound);
}

static void test_why_addition_stays(void **state) {
  (void)state;
  cs_graph *bound = graph_of("1,4,8,8",
                             CONV_OF("c1", "x", PADDED) "," NODE_OF(
                                 "r1", "Relu", "'c1'") "," NODE_OF("a", "Add", "'r1','x'"),
                             "'a'");
  cs_graph *after = passed(bound, CS_PASSES_ALL, NULL);
  assert_true(cs_graph_could_be_fused(CS_OP_ADD));
  assert_false(cs_graph_could_be_fused(CS_OP_CONV));
  assert_why(after, "a", "r1 is made by a Conv that ends in relu already; x is the graph's input");
  cs_graph_destroy(after);
  cs_graph_destroy(bound);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nodes),
      cmocka_unit_test(test_why_normalization_stays),
      cmocka_unit_test(test_why_addition_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
