/* Concats: in place, prefix-nested, nested, and what has to be copied. */
#include "graph_fixture.h"

static void assert_lies(const cs_graph *graph, const char *name, const char *root, int64_t offset) {
  const cs_value *value = value_of(graph, name);
  if (strcmp(graph->values[value->root].name, root) != 0) {
    print_error("%s lies in %s\n", name, graph->values[value->root].name);
  }
  assert_string_equal(graph->values[value->root].name, root);
  assert_int_equal(value->channel_offset, offset);
}

static cs_graph *in_place(const char *nodes, const char *outputs, cs_pass_report *report) {
  cs_graph *graph = graph_of("2,16,8,8", nodes, outputs);
  cs_graph *out = passed(graph, CS_PASSES_ALL, report);
  cs_graph_destroy(graph);
  return out;
}

#define C8(name, input) CONV(name, input, "8", "1")

static void test_googlenet_module(void **state) {
  (void)state;
  cs_pass_report report;
  cs_graph *graph = in_place(
      CONV("a", "x", "64", "1") "," CONV("b", "x", "128", "1") "," CONV(
          "c", "x", "32",
          "1") "," CONV("d", "x", "32",
                        "1") "," CONCAT("cat", "'a','b','c','d'") "," NODE("r", "Tanh", "cat"),
      "'r'", &report);
  assert_lies(graph, "a", "cat", 0);
  assert_lies(graph, "b", "cat", 64);
  assert_lies(graph, "c", "cat", 192);
  assert_lies(graph, "d", "cat", 224);
  assert_lies(graph, "cat", "cat", 0);
  assert_int_equal(report.concats_in_place, 1);
  assert_int_equal(report.concat_inputs_copied, 0);
  cs_graph_destroy(graph);
}

/* DenseNet: every layer concatenates all before it. */
static void test_prefix_nesting(void **state) {
  (void)state;
  cs_pass_report report;
  cs_graph *graph = in_place(
      C8("f0", "x") "," C8("f1", "f0") "," CONCAT("c1", "'f0','f1'") "," C8("f2", "c1") "," CONCAT(
          "c2", "'f0','f1','f2'") "," C8("f3", "c2") "," CONCAT("c3",
                                                                "'f0','f1','f2','f3'") "," C8("y",
                                                                                              "c3"),
      "'y'", &report);
  assert_lies(graph, "f0", "c3", 0);
  assert_lies(graph, "f1", "c3", 8);
  assert_lies(graph, "f2", "c3", 16);
  assert_lies(graph, "f3", "c3", 24);
  assert_lies(graph, "c1", "c3", 0);
  assert_lies(graph, "c2", "c3", 0);
  assert_int_equal(report.concats_in_place, 3);
  assert_int_equal(report.concat_inputs_copied, 0);
  cs_graph_destroy(graph);
}

/* Two lists with one beginning: the longer has it, the other copies. */
static void test_forked_prefix(void **state) {
  (void)state;
  cs_pass_report report;
  cs_graph *graph = in_place(
      C8("a", "x") "," C8("b", "a") "," C8("c", "b") "," C8("d", "c") "," C8("e", "d") ","
      CONCAT("ab", "'a','b'") "," CONCAT("abe", "'a','b','e'") ","
      CONCAT("abcd", "'a','b','c','d'") "," C8("y", "ab") "," C8("z", "abe") "," C8("w", "abcd"),
      "'y','z','w'", &report);
  assert_lies(graph, "ab", "abcd", 0);
  assert_lies(graph, "b", "abcd", 8);
  assert_lies(graph, "d", "abcd", 24);
  assert_lies(graph, "e", "abe", 16);
  assert_int_equal(report.concats_in_place, 2);
  assert_int_equal(report.concat_inputs_copied, 2);
  cs_graph_destroy(graph);
}

static void test_twins(void **state) {
  (void)state;
  cs_pass_report report;
  cs_graph *graph = in_place(C8("a", "x") "," C8("b", "x") "," CONCAT("p", "'a','b'") "," CONCAT(
                                 "q", "'a','b'") "," C8("y", "p") "," C8("z", "q"),
                             "'y','z'", &report);
  assert_lies(graph, "q", "p", 0);
  assert_lies(graph, "b", "p", 8);
  assert_int_equal(report.concats_in_place, 2);
  cs_graph_destroy(graph);
}

/* A concat that others read too stays, and lies inside the outer one: offsets add up. */
static void test_concat_of_concat(void **state) {
  (void)state;
  cs_pass_report report;
  cs_graph *graph = in_place(
      C8("a", "x") "," C8("b", "x") "," C8("c", "x") "," CONCAT("bc", "'b','c'") "," C8(
          "d", "bc") "," CONCAT("abc",
                                "'a','bc'") "," CONCAT("all",
                                                       "'d','abc'") "," C8("y",
                                                                           "abc") "," C8("z",
                                                                                         "all"),
      "'y','z'", &report);
  assert_lies(graph, "bc", "all", 16);
  assert_lies(graph, "a", "all", 8);
  assert_lies(graph, "c", "all", 24);
  assert_int_equal(report.concats_in_place, 3);
  assert_int_equal(report.concats_flattened, 0);
  cs_graph_destroy(graph);
}

static void test_flattened(void **state) {
  (void)state;
  cs_pass_report report;
  cs_graph *graph =
      in_place(C8("a", "x") "," C8("b", "x") "," C8("c", "x") "," CONCAT(
                   "bc", "'b','c'") "," CONCAT("abc", "'a','bc'") "," CONCAT("all", "'abc','x'"),
               "'all'", &report);
  assert_int_equal(report.concats_flattened, 2);
  assert_int_equal(graph->nodes[graph->n_nodes - 1].n_inputs, 4);
  assert_int_equal(cs_graph_find_value(graph, "bc"), -1);
  assert_lies(graph, "c", "all", 16);
  assert_int_equal(report.concat_inputs_copied, 1); /* the graph's input */
  cs_graph_destroy(graph);
}

static void test_copies(void **state) {
  (void)state;
  cs_pass_report report;
  /* The same value twice: the second use is a copy. */
  cs_graph *graph = in_place(C8("a", "x") "," CONCAT("k", "'a','a'"), "'k'", &report);
  assert_lies(graph, "a", "k", 0);
  assert_int_equal(report.concat_inputs_copied, 1);
  assert_int_equal(report.concats_in_place, 0);
  cs_graph_destroy(graph);
  /* A graph input and a graph output have places of their own. */
  graph =
      in_place(C8("a", "x") "," C8("b", "x") "," CONCAT("k", "'x','a','b'"), "'k','a'", &report);
  assert_lies(graph, "x", "x", 0);
  assert_lies(graph, "a", "a", 0);
  assert_lies(graph, "b", "k", 24);
  assert_int_equal(report.concat_inputs_copied, 2);
  cs_graph_destroy(graph);
  /* In two concats with different beginnings: in place in one. */
  graph =
      in_place(C8("a", "x") "," C8("b", "x") "," CONCAT("k", "'a','b'") "," CONCAT("l", "'b','a'"),
               "'k','l'", &report);
  assert_lies(graph, "a", "k", 0);
  assert_lies(graph, "b", "k", 8);
  assert_int_equal(report.concat_inputs_copied, 2);
  assert_int_equal(report.concats_in_place, 1);
  cs_graph_destroy(graph);
  /* A prefix that is an output cannot lie in another buffer; what it shares is copied there. */
  graph = in_place(C8("a", "x") "," C8("b", "x") "," C8("c", "x") "," CONCAT(
                       "k", "'a','b'") "," CONCAT("l", "'a','b','c'"),
                   "'k','l'", &report);
  assert_lies(graph, "k", "k", 0);
  assert_lies(graph, "a", "l", 0);
  assert_int_equal(report.concat_inputs_copied, 2);
  cs_graph_destroy(graph);
}

static void test_other_axes_stay(void **state) {
  (void)state;
  cs_pass_report report;
  cs_graph *graph = in_place(C8("a", "x") "," C8("b", "x") ",{'name':'k','op':'Concat','inputs':"
                             "['a','b'],'attrs':{'axis':2}}", "'k'", &report);
  assert_lies(graph, "a", "a", 0);
  assert_int_equal(report.concats_in_place, 0);
  cs_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_googlenet_module), cmocka_unit_test(test_prefix_nesting),
      cmocka_unit_test(test_forked_prefix),    cmocka_unit_test(test_twins),
      cmocka_unit_test(test_concat_of_concat), cmocka_unit_test(test_flattened),
      cmocka_unit_test(test_copies),           cmocka_unit_test(test_other_axes_stay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
