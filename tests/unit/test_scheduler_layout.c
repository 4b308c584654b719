/* Layout assignment: the dynamic program against every choice there is on small graphs, each choice
 * priced by lowering it and summing its tasks; and the price it states against the lowered program
 * of the real models. */
#include "unit/scheduler_fixture.h"

#include "base/file.h"

static const cs_layout all_layouts[] = {CS_LAYOUT_NHWC, CS_LAYOUT_NCHW, CS_LAYOUT_NCHW8C};

typedef struct pricing {
  uint64_t salt;
  bool ban; /* convolutions cannot run in NHWC */
  int asked;
} pricing;

/* A made-up price in whole numbers, by operation, shapes and layouts, not by strides: sums are
 * exact. */
static double price(void *user, const cs_op_desc *desc) {
  pricing *p = user;
  cs_op_desc dense = *desc;
  char *signature = NULL;
  for (int i = 0; i < desc->n_inputs; i++)
    dense.inputs[i] =
        cs_tensor_dense(&desc->inputs[i].shape, desc->inputs[i].dtype, desc->inputs[i].layout);
  dense.output = cs_tensor_dense(&desc->output.shape, desc->output.dtype, desc->output.layout);
  p->asked++;
  if (p->ban && desc->op == CS_OP_CONV && desc->output.layout == CS_LAYOUT_NHWC) return -1;
  assert_ok(cs_op_signature(&dense, &signature));
  uint64_t hash = cs_hash_string(p->salt, signature);
  free(signature);
  return (double)(desc->op == CS_OP_COPY ? 1 + (hash >> 20) % 40 : 10 + (hash >> 20) % 100);
}

/* The price of the lowered program; < 0: some task cannot run. */
static double lowered_price(const cs_graph *graph, const cs_layout *layouts, pricing *p) {
  cs_program *program = NULL;
  assert_ok(cs_program_lower(graph, CS_PRECISION_F32, layouts, &program));
  double sum = 0;
  for (int t = 0; t < program->n_tasks && sum >= 0; t++) {
    double us = price(p, &program->tasks[t].desc);
    sum = us < 0 ? -1 : sum + us;
  }
  cs_program_destroy(program);
  return sum;
}

static cs_graph *passed(cs_graph *graph, int64_t batch) {
  cs_graph *bound = NULL, *out = NULL;
  cs_pass_report report;
  assert_ok(cs_graph_bind(graph, batch, &bound));
  assert_ok(cs_graph_apply_passes(bound, CS_PASSES_ALL, &report, &out));
  cs_graph_destroy(bound);
  cs_graph_destroy(graph);
  return out;
}

/* ---- Every choice ---- */

typedef struct exhaustive {
  const cs_graph *graph;
  pricing *p;
  int *block_of, n_blocks;
  cs_layout layouts[64];
  double best;
} exhaustive;

static void lay(exhaustive *e, int value, cs_layout layout) {
  e->layouts[value] = e->graph->values[value].shape.rank == 4 ? layout : CS_LAYOUT_NCHW;
}

static void price_choice(exhaustive *e) {
  for (int v = 0; v < e->graph->n_values; v++)
    if (!cs_graph_layout_allowed(e->graph, v, e->layouts[v])) return;
  double us = lowered_price(e->graph, e->layouts, e->p);
  if (us >= 0 && (e->best < 0 || us < e->best)) e->best = us;
}

/* Inner layout and layout of the last value of every block from `block` on. */
static void choose(exhaustive *e, int block) {
  if (block == e->n_blocks) {
    price_choice(e);
    return;
  }
  int last = -1, count = 0;
  for (int i = 0; i < e->graph->n_nodes; i++)
    if (e->block_of[i] == block) last = i, count++;
  for (int inner = 0; inner < (count > 1 ? 3 : 1); inner++)
    for (int behind = 0; behind < 3; behind++) {
      for (int i = 0; i < e->graph->n_nodes; i++)
        if (e->block_of[i] == block)
          lay(e, e->graph->nodes[i].output, all_layouts[i == last ? behind : inner]);
      choose(e, block + 1);
    }
}

static double best_of_all(const cs_graph *graph, pricing *p) {
  exhaustive e = {.graph = graph, .p = p, .best = -1};
  assert_true(graph->n_values <= 64);
  e.block_of = cs_calloc((size_t)graph->n_nodes, sizeof *e.block_of);
  assert_ok(cs_graph_blocks(graph, e.block_of, &e.n_blocks));
  for (int input = 0; input < 3; input++) {
    for (int i = 0; i < graph->n_inputs; i++) lay(&e, graph->inputs[i], all_layouts[input]);
    choose(&e, 0);
  }
  free(e.block_of);
  return e.best;
}

/* ---- Small graphs ---- */

#define CONV(name, input, channels)                             \
  "{\"name\":\"" name "\",\"op\":\"Conv\",\"inputs\":[\"" input \
  "\"],\"attrs\":{"                                             \
  "\"out_channels\":" channels                                  \
  ",\"kernel_shape\":[1,1],\"strides\":[1,1],"                  \
  "\"pads\":[0,0,0,0],\"dilations\":[1,1],\"group\":1,\"bias\":true}}"
#define NODE(name, op, inputs) "{\"name\":\"" name "\",\"op\":\"" op "\",\"inputs\":[" inputs "]}"
#define CONCAT(name, inputs) \
  "{\"name\":\"" name "\",\"op\":\"Concat\",\"inputs\":[" inputs "],\"attrs\":{\"axis\":1}}"
#define FLATTEN(name, input) \
  "{\"name\":\"" name "\",\"op\":\"Flatten\",\"inputs\":[\"" input "\"],\"attrs\":{\"axis\":1}}"
#define SLICE(name, input, begin, end)                           \
  "{\"name\":\"" name "\",\"op\":\"Slice\",\"inputs\":[\"" input \
  "\"],\"attrs\":{\"starts\":[" begin "],\"ends\":[" end "],\"axes\":[1]}}"
#define RESHAPE(name, input, extents)                              \
  "{\"name\":\"" name "\",\"op\":\"Reshape\",\"inputs\":[\"" input \
  "\"],\"attrs\":{\"shape\":[\"N\"," extents "]}}"
#define GRAPH(nodes, output)                                                                \
  "{\"schema\":\"convsched.graph/1\",\"name\":\"g\",\"inputs\":[{\"name\":\"x\",\"shape\":" \
  "[\"N\",8,6,6],\"dtype\":\"f32\"}],\"nodes\":[" nodes "],\"outputs\":[\"" output "\"]}"

static const char *const small_graphs[] = {
    /* a chain */
    GRAPH(CONV("a", "x", "16") "," CONV("b", "a", "8") "," CONV("c", "b", "24"), "c"),
    /* a module of three branches whose slices fit blocks of 8 */
    GRAPH(CONV("a", "x", "16") "," CONV("b", "x", "8") "," CONV("c", "b", "24") "," CONCAT(
              "k", "\"a\",\"c\",\"x\"") "," CONV("d", "k", "8"),
          "d"),
    /* slices that do not fit */
    GRAPH(CONV("a", "x", "12") "," CONV("b", "x", "20") "," CONCAT("k", "\"a\",\"b\"") "," CONV(
              "d", "k", "8"),
          "d"),
    /* a residual and a flattened end */
    GRAPH(CONV("a", "x", "8") "," NODE("s", "Add", "\"a\",\"x\"") "," NODE(
              "r", "Sigmoid", "\"s\"") "," FLATTEN("f", "r"),
          "f"),
    /* one pixel */
    GRAPH(CONV("a", "x", "12") "," NODE("p", "GlobalAveragePool", "\"a\"") "," CONV(
              "b", "p", "10") "," FLATTEN("f", "b"),
          "f"),
    /* nested concats and a value that is read twice */
    GRAPH(CONV("a", "x", "8") "," CONV("b", "a", "8") "," CONCAT("k", "\"a\",\"b\"") "," CONV(
              "c", "k", "8") "," CONCAT("m", "\"k\",\"c\""),
          "m"),
    /* halves of channels: in blocks of 8 a view, in blocks of 16 not; one goes into a concat */
    GRAPH(CONV("a", "x", "16") "," SLICE("s", "a", "8", "16") "," CONV("b", "s", "8") "," SLICE(
              "t", "a", "0", "8") "," CONCAT("k", "\"t\",\"b\"") "," CONV("d", "k", "8"),
          "d"),
    /* other planes, behind a slice too */
    GRAPH(CONV("a", "x", "16") "," SLICE("s", "a", "4", "12") "," RESHAPE(
              "r", "s", "8,4,9") "," CONV("b", "r", "8"),
          "b"),
    /* one pixel that was a row, and reshaped results */
    GRAPH(CONV("a", "x", "12") "," NODE("p", "GlobalAveragePool", "\"a\"") "," FLATTEN(
              "f", "p") "," RESHAPE("r", "f", "12,1,1") "," NODE("m", "Mul", "\"r\",\"a\""),
          "m"),
    GRAPH(CONV("a", "x", "12") "," RESHAPE("r", "a", "6,8,9"), "r"),
    GRAPH(CONV("a", "x", "12") "," SLICE("s", "a", "0", "8"), "s"),
};

static cs_graph *small_graph(int i) {
  cs_graph *graph = NULL;
  assert_ok(cs_graph_parse(small_graphs[i], strlen(small_graphs[i]), "small", &graph));
  return passed(graph, 2);
}

static void the_best_of_all_choices_is_found(void **state) {
  (void)state;
  for (int i = 0; i < (int)(sizeof small_graphs / sizeof small_graphs[0]); i++) {
    cs_graph *graph = small_graph(i);
    for (uint64_t salt = 1; salt <= 24; salt++) {
      pricing p = {.salt = salt, .ban = salt % 3 == 0};
      cs_layout layouts[64];
      double cost = 0;
      assert_ok(
          cs_layout_assign(graph, CS_PRECISION_F32, all_layouts, 3, price, &p, layouts, &cost));
      double stated = lowered_price(graph, layouts, &p), best = best_of_all(graph, &p);
      if (stated != cost || cost != best)
        fail_msg("graph %d, prices %d: stated %g, lowered %g, best of all %g", i, (int)salt, cost,
                 stated, best);
    }
    cs_graph_destroy(graph);
  }
}

/* Each operation is priced once, whatever the number of blocks and layouts. */
static void an_operation_is_priced_once(void **state) {
  (void)state;
  cs_graph *graph = small_graph(0);
  pricing p = {.salt = 5};
  cs_layout layouts[64];
  double cost;
  assert_ok(cs_layout_assign(graph, CS_PRECISION_F32, all_layouts, 3, price, &p, layouts, &cost));
  assert_true(p.asked <= 3 * 3 + 3 * 6); /* nodes × layouts, values × pairs of layouts */
  cs_graph_destroy(graph);
}

static double nothing_runs(void *user, const cs_op_desc *desc) {
  (void)user;
  return desc->op == CS_OP_CONV && desc->output.shape.dims[1] == 24 ? -1 : 1;
}

static void a_node_that_cannot_run_is_named(void **state) {
  (void)state;
  cs_graph *graph = small_graph(1);
  cs_layout layouts[64];
  double cost;
  assert_fails(
      cs_layout_assign(graph, CS_PRECISION_F32, all_layouts, 3, nothing_runs, NULL, layouts, &cost),
      CS_CODE_BAD_INPUT, "node c (Conv)");
  cs_graph_destroy(graph);
}

/* ---- The models ---- */

static void the_stated_price_is_the_lowered_programs(void **state) {
  (void)state;
  static const char *const models[] = {"googlenet",   "googlenet_bn",  "inception_v3",   "resnet50",
                                       "densenet121", "squeezenet1_1", "dcgan_generator"};
  for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
    char path[512];
    cs_graph *graph = NULL;
    snprintf(path, sizeof path, "%s/models/%s.json", CS_SOURCE_DIR, models[m]);
    assert_ok(cs_graph_load(path, &graph));
    graph = passed(graph, 1);
    cs_layout *layouts = cs_calloc((size_t)graph->n_values, sizeof *layouts);
    for (uint64_t salt = 1; salt <= 2; salt++) {
      pricing p = {.salt = salt};
      double cost;
      double start = cs_now_seconds();
      assert_ok(
          cs_layout_assign(graph, CS_PRECISION_F32, all_layouts, 3, price, &p, layouts, &cost));
      double seconds = cs_now_seconds() - start, lowered = lowered_price(graph, layouts, &p);
      if (lowered != cost)
        fail_msg("%s: stated %g us, lowered program %g us", models[m], cost, lowered);
      for (int l = 0; l < 2; l++) { /* never worse than one layout everywhere */
        for (int v = 0; v < graph->n_values; v++)
          layouts[v] = graph->values[v].shape.rank == 4 ? all_layouts[l] : CS_LAYOUT_NCHW;
        assert_true(cost <= lowered_price(graph, layouts, &p));
      }
      if (salt == 1) print_message("%s: %.3f s\n", models[m], seconds);
    }
    free(layouts);
    cs_graph_destroy(graph);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_best_of_all_choices_is_found),
      cmocka_unit_test(an_operation_is_priced_once),
      cmocka_unit_test(a_node_that_cannot_run_is_named),
      cmocka_unit_test(the_stated_price_is_the_lowered_programs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
