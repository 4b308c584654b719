/* Lowering: buffers, views and dependencies in every layout. */
#include "graph_fixture.h"

typedef struct lowered {
  cs_graph *graph;
  cs_layout *layouts;
  cs_program *program;
} lowered;

/* Passes, then every rank-4 value in `layout`. */
static lowered lower_with(const char *shape, const char *nodes, const char *outputs,
                          cs_pass_options options, cs_precision precision, cs_layout layout) {
  lowered l = {0};
  cs_graph *graph = graph_of(shape, nodes, outputs);
  l.graph = passed(graph, options, NULL);
  cs_graph_destroy(graph);
  l.layouts = calloc((size_t)l.graph->n_values, sizeof *l.layouts);
  for (int i = 0; i < l.graph->n_values; i++) l.layouts[i] = layout;
  assert_ok(cs_program_lower(l.graph, precision, l.layouts, &l.program));
  return l;
}

static lowered lower(const char *nodes, const char *outputs, cs_layout layout) {
  return lower_with("2,16,4,4", nodes, outputs, CS_PASSES_ALL, CS_PRECISION_F16, layout);
}

/* Lowers again with one value in another layout. */
static void relayout(lowered *l, const char *value, cs_layout layout) {
  l->layouts[cs_graph_find_value(l->graph, value)] = layout;
  cs_program_destroy(l->program);
  assert_ok(cs_program_lower(l->graph, CS_PRECISION_F16, l->layouts, &l->program));
}

static void release(lowered *l) {
  cs_program_destroy(l->program);
  free(l->layouts);
  cs_graph_destroy(l->graph);
}

static int task_index(const lowered *l, const char *name) {
  for (int i = 0; i < l->program->n_tasks; i++) {
    if (strcmp(l->program->tasks[i].name, name) == 0) return i;
  }
  print_error("no task %s\n", name);
  fail();
  return -1;
}

static const cs_task *task(const lowered *l, const char *name) {
  return &l->program->tasks[task_index(l, name)];
}

/* `names`: the predecessors, in order, ending with NULL. */
static void assert_preds(const lowered *l, const char *name, const char *const *names) {
  const cs_task *at = task(l, name);
  int n = 0;
  for (; names[n]; n++) {
    assert_true(n < at->n_preds);
    assert_int_equal(at->preds[n], task_index(l, names[n]));
  }
  assert_int_equal(at->n_preds, n);
}
#define PREDS(...) ((const char *const[]){__VA_ARGS__, NULL})
static const char *const no_preds[] = {NULL};

static const cs_tensor *output_of(const lowered *l, const char *name) {
  return &l->program->tensors[task(l, name)->output];
}

static void assert_tensor(const cs_tensor *tensor, int64_t offset, const int64_t strides[4],
                          int64_t alignment) {
  assert_int_equal(tensor->offset, offset);
  for (int i = 0; i < 4; i++) assert_int_equal(tensor->desc.strides[i], strides[i]);
  assert_int_equal(tensor->desc.alignment, alignment);
}

static void assert_program_consistent(const lowered *l) {
  const cs_program *program = l->program;
  for (int i = 0; i < program->n_tensors; i++) {
    const cs_tensor *tensor = &program->tensors[i];
    assert_in_range(tensor->buffer, 0, program->n_buffers - 1);
    assert_true(tensor->offset >= 0);
    assert_true(tensor->offset + cs_tensor_span_bytes(&tensor->desc) <=
                program->buffers[tensor->buffer].bytes);
    assert_int_equal(tensor->offset % tensor->desc.alignment, 0);
  }
  for (int i = 0; i < program->n_tasks; i++) {
    const cs_task *at = &program->tasks[i];
    for (int k = 0; k < at->n_preds; k++) {
      assert_true(at->preds[k] < i);
      assert_true(k == 0 || at->preds[k - 1] < at->preds[k]);
    }
    for (int k = 0; k < at->desc.n_inputs; k++) {
      assert_memory_equal(&at->desc.inputs[k], &program->tensors[at->inputs[k]].desc,
                          sizeof at->desc.inputs[k]);
    }
  }
}

#define MODULE                                                           \
  CONV("a", "x", "16", "1")                                              \
  "," CONV("b", "x", "32", "1") "," CONV("c", "b", "8", "1") "," CONCAT( \
      "cat", "'a','b','c'") "," CONV("y", "cat", "4", "1")

static void test_views(void **state) {
  (void)state;
  lowered l = lower(MODULE, "'y'", CS_LAYOUT_NHWC);
  assert_program_consistent(&l);
  assert_int_equal(l.program->n_tasks, 4);
  assert_int_equal(l.program->n_buffers, 3); /* x, cat, y */
  const int64_t nhwc[4] = {56 * 16, 1, 56 * 4, 56};
  assert_tensor(output_of(&l, "a"), 0, nhwc, 256);
  assert_tensor(output_of(&l, "b"), 16 * 2, nhwc, 32);
  assert_tensor(output_of(&l, "c"), 48 * 2, nhwc, 32);
  assert_int_equal(output_of(&l, "a")->buffer, output_of(&l, "c")->buffer);
  assert_int_equal(l.program->buffers[output_of(&l, "a")->buffer].bytes, 2 * 56 * 16 * 2);
  assert_string_equal(l.program->buffers[output_of(&l, "a")->buffer].name, "cat");
  assert_preds(&l, "a", no_preds);
  assert_preds(&l, "c", PREDS("b"));
  assert_preds(&l, "y", PREDS("a", "b", "c"));
  assert_int_equal(l.program->buffers[output_of(&l, "y")->buffer].kind, CS_BUFFER_OUTPUT);
  int input = l.program->input_tensors[0];
  assert_int_equal(l.program->buffers[l.program->tensors[input].buffer].kind, CS_BUFFER_INPUT);
  assert_int_equal(l.program->output_tensors[0], task(&l, "y")->output);
  /* b is read where it lies. */
  assert_int_equal(task(&l, "c")->inputs[0], task(&l, "b")->output);
  release(&l);
  l = lower(MODULE, "'y'", CS_LAYOUT_NCHW);
  const int64_t nchw[4] = {56 * 16, 16, 4, 1};
  assert_tensor(output_of(&l, "b"), 16 * 16 * 2, nchw, 256);
  assert_tensor(output_of(&l, "c"), 48 * 16 * 2, nchw, 256);
  release(&l);
  /* 56 channels are 4 blocks of 16; the last slice is half a block. */
  l = lower(MODULE, "'y'", CS_LAYOUT_NCHW16C);
  assert_program_consistent(&l);
  const int64_t blocked[4] = {4 * 256, 256, 64, 16};
  assert_tensor(output_of(&l, "b"), 256 * 2, blocked, 256);
  assert_tensor(output_of(&l, "c"), 3 * 256 * 2, blocked, 256);
  assert_int_equal(l.program->n_tasks, 4);
  release(&l);
}

/* A MatMul reads and writes rows: what comes in another layout is copied, and what it makes too
 * where it is read in another. */
static void test_products_are_row_major(void **state) {
  (void)state;
  cs_graph *graph = graph_of("2,16,4,4",
                             CONV("c", "x", "16", "1") ","
                             "{'name':'m','op':'MatMul','inputs':['c','c']}," CONV("d", "m", "16",
                                                                                   "1"),
                             "'d'");
  cs_layout layouts[8];
  int product = cs_graph_find_value(graph, "m");
  for (int v = 0; v < graph->n_values; v++) {
    assert_true(cs_graph_layout_allowed(graph, v, CS_LAYOUT_NHWC) == (v != product));
    layouts[v] = CS_LAYOUT_NHWC;
  }
  cs_program *program = NULL;
  assert_fails(cs_program_lower(graph, CS_PRECISION_F16, layouts, &program), CS_CODE_BAD_INPUT,
               "value \"m\": found layout nhwc, wanted nchw");
  layouts[product] = CS_LAYOUT_NCHW;
  assert_ok(cs_program_lower(graph, CS_PRECISION_F16, layouts, &program));
  const char *const names[] = {"c", "copy:c:nchw", "m", "copy:m:nhwc", "d"};
  assert_int_equal(program->n_tasks, 5);
  for (int t = 0; t < 5; t++) assert_string_equal(program->tasks[t].name, names[t]);
  assert_int_equal(program->tasks[2].inputs[0], program->tasks[2].inputs[1]);
  assert_int_equal(program->tasks[2].desc.inputs[0].layout, CS_LAYOUT_NCHW);
  cs_program_destroy(program);
  cs_graph_destroy(graph);
}

static void test_layouts_that_do_not_fit(void **state) {
  (void)state;
  cs_graph *graph = graph_of(
      "2,16,4,4",
      CONV("a", "x", "8", "1") "," CONV("b", "x", "24", "1") "," CONCAT("cat", "'a','b'") "," NODE(
          "g", "GlobalAveragePool", "cat") "," NODE("f", "Flatten", "g"),
      "'f'");
  int cat = cs_graph_find_value(graph, "cat"), flat = cs_graph_find_value(graph, "f");
  assert_true(cs_graph_layout_allowed(graph, cat, CS_LAYOUT_NCHW8C));
  assert_false(cs_graph_layout_allowed(graph, cat, CS_LAYOUT_NCHW16C));
  assert_true(cs_graph_layout_allowed(graph, cs_graph_find_value(graph, "a"), CS_LAYOUT_NCHW16C));
  assert_true(cs_graph_layout_allowed(graph, flat, CS_LAYOUT_NCHW));
  assert_false(cs_graph_layout_allowed(graph, flat, CS_LAYOUT_NHWC));
  cs_layout layouts[8] = {CS_LAYOUT_NCHW};
  layouts[cat] = CS_LAYOUT_NCHW16C;
  cs_program *program = NULL;
  assert_fails(cs_program_lower(graph, CS_PRECISION_F32, layouts, &program), CS_CODE_BAD_INPUT,
               "value \"cat\": found layout nchw16c");
  assert_null(program);
  cs_graph_destroy(graph);
  graph = graph_of("'N',4", NODE("a", "Relu", "x"), "'a'");
  assert_fails(cs_program_lower(graph, CS_PRECISION_F32, layouts, &program), CS_CODE_USAGE,
               "symbolic batch");
  cs_graph_destroy(graph);
}

#define DENSE                                                             \
  CONV("f0", "x", "16", "1")                                              \
  "," CONV("f1", "f0", "16", "1") "," CONCAT("c1", "'f0','f1'") "," CONV( \
      "f2", "c1", "16", "1") "," CONCAT("c2", "'f0','f1','f2'") "," CONV("y", "c2", "4", "1")

/* A reader of a prefix waits for the writers of the prefix alone. */
static void test_prefix_nesting(void **state) {
  (void)state;
  lowered l = lower(DENSE, "'y'", CS_LAYOUT_NHWC);
  assert_program_consistent(&l);
  assert_int_equal(l.program->n_tasks, 4);
  assert_preds(&l, "f2", PREDS("f0", "f1"));
  assert_preds(&l, "y", PREDS("f0", "f1", "f2"));
  const cs_tensor *prefix = &l.program->tensors[task(&l, "f2")->inputs[0]];
  assert_int_equal(prefix->desc.shape.dims[1], 32);
  assert_tensor(prefix, 0, (int64_t[]){48 * 16, 1, 48 * 4, 48}, 256);
  release(&l);
}

/* Another layout in the middle breaks the chain of hosts: the inner concat gets bytes of its own
 * and copies of what lies in the outer one. */
static void test_broken_chain(void **state) {
  (void)state;
  lowered l = lower(DENSE, "'y'", CS_LAYOUT_NHWC);
  relayout(&l, "c1", CS_LAYOUT_NCHW);
  assert_program_consistent(&l);
  assert_preds(&l, "copy:f0:c1", PREDS("f0"));
  assert_preds(&l, "copy:f1:c1", PREDS("f1"));
  assert_preds(&l, "copy:c1:nhwc", PREDS("copy:f0:c1", "copy:f1:c1"));
  assert_preds(&l, "f2", PREDS("copy:c1:nhwc"));
  assert_preds(&l, "y", PREDS("f0", "f1", "f2"));
  assert_int_equal(task(&l, "copy:f1:c1")->node, -1);
  assert_int_equal(task(&l, "copy:f1:c1")->desc.op, CS_OP_COPY);
  assert_int_equal(output_of(&l, "copy:f1:c1")->desc.layout, CS_LAYOUT_NCHW);
  assert_int_equal(output_of(&l, "copy:f1:c1")->offset, 16 * 16 * 2);
  release(&l);
}

/* The graph's input is copied into the shared place once. */
static void test_shared_copy(void **state) {
  (void)state;
  lowered l =
      lower(CONV("a", "x", "16", "1") "," CONCAT("c1", "'x','a'") "," CONV(
                "b", "c1", "16", "1") "," CONCAT("c2", "'x','a','b'") "," CONV("y", "c2", "4", "1"),
            "'y'", CS_LAYOUT_NHWC);
  assert_program_consistent(&l);
  assert_int_equal(l.program->n_tasks, 4);
  assert_preds(&l, "copy:x:c1", no_preds);
  assert_preds(&l, "b", PREDS("a", "copy:x:c1"));
  assert_preds(&l, "y", PREDS("a", "copy:x:c1", "b"));
  release(&l);
}

static void test_double_use(void **state) {
  (void)state;
  lowered l = lower(CONV("a", "x", "16", "1") "," CONCAT("k", "'a','a'"), "'k'", CS_LAYOUT_NCHW);
  assert_program_consistent(&l);
  assert_int_equal(l.program->n_tasks, 2);
  assert_preds(&l, "copy:a:k", PREDS("a"));
  assert_int_equal(output_of(&l, "a")->offset, 0);
  assert_int_equal(output_of(&l, "copy:a:k")->offset, 16 * 16 * 2);
  assert_int_equal(l.program->buffers[output_of(&l, "a")->buffer].kind, CS_BUFFER_OUTPUT);
  release(&l);
}

/* Without the pass every concat input is copied; other axes always. */
static void test_copied_concats(void **state) {
  (void)state;
  lowered l =
      lower_with("2,16,4,4", MODULE, "'y'", CS_PASSES_NONE, CS_PRECISION_F32, CS_LAYOUT_NCHW);
  assert_program_consistent(&l);
  assert_int_equal(l.program->n_tasks, 7);
  assert_preds(&l, "y", PREDS("copy:a:cat", "copy:b:cat", "copy:c:cat"));
  release(&l);
  l = lower(CONV("a", "x", "16", "1") ",{'name':'k','op':'Concat','inputs':['a','x'],'attrs':"
            "{'axis':3}}", "'k'", CS_LAYOUT_NCHW16C);
  assert_program_consistent(&l);
  assert_tensor(output_of(&l, "copy:x:k"), 4 * 16 * 2, (int64_t[]){512, 512, 128, 16}, 128);
  release(&l);
}

/* Two readers of another layout share one copy. */
static void test_layout_copies(void **state) {
  (void)state;
  lowered l = lower(CONV("a", "x", "16", "1") "," CONV("b", "a", "16", "1") ","
                    CONV("c", "a", "16", "1") "," "{'name':'y','op':'Mul','inputs':['b','c']}",
                    "'y'", CS_LAYOUT_NHWC);
  relayout(&l, "a", CS_LAYOUT_NCHW);
  assert_program_consistent(&l);
  assert_preds(&l, "copy:x:nchw", no_preds);
  assert_preds(&l, "a", PREDS("copy:x:nchw"));
  assert_preds(&l, "copy:a:nhwc", PREDS("a"));
  assert_preds(&l, "b", PREDS("copy:a:nhwc"));
  assert_preds(&l, "c", PREDS("copy:a:nhwc"));
  assert_int_equal(l.program->n_tasks, 6);
  assert_string_equal(l.program->buffers[output_of(&l, "copy:a:nhwc")->buffer].name, "a@nhwc");
  release(&l);
}

static void test_flatten(void **state) {
  (void)state;
  const char *nodes = CONV("a", "x", "16", "1") "," NODE("f", "Flatten", "a") ","
                      "{'name':'y','op':'Gemm','inputs':['f'],'attrs':{'out_features':3}}";
  lowered l = lower(nodes, "'y'", CS_LAYOUT_NCHW);
  assert_int_equal(l.program->n_tasks, 2); /* a view */
  assert_preds(&l, "y", PREDS("a"));
  assert_int_equal(l.program->tensors[task(&l, "y")->inputs[0]].buffer, output_of(&l, "a")->buffer);
  assert_int_equal(task(&l, "y")->desc.inputs[0].shape.rank, 2);
  release(&l);
  l = lower(nodes, "'y'", CS_LAYOUT_NHWC);
  assert_int_equal(l.program->n_tasks, 3);
  assert_preds(&l, "y", PREDS("copy:a:nchw"));
  release(&l);
  /* One pixel: a view in every layout whose blocks are full. */
  nodes = NODE("a", "GlobalAveragePool", "x") "," NODE("f", "Flatten", "a") ","
          "{'name':'y','op':'Gemm','inputs':['f'],'attrs':{'out_features':3}}";
  for (int layout = 0; layout < CS_LAYOUT_COUNT; layout++) {
    l = lower(nodes, "'y'", (cs_layout)layout);
    assert_int_equal(l.program->n_tasks, 2);
    release(&l);
  }
}

/* A flattened output: its buffer is written through the value that is flattened, or a copy is. */
static void test_flattened_output(void **state) {
  (void)state;
  const char *nodes = NODE("a", "Sigmoid", "x") "," NODE("f", "Flatten", "a");
  lowered l = lower(nodes, "'f'", CS_LAYOUT_NCHW);
  assert_int_equal(l.program->n_tasks, 1);
  assert_int_equal(l.program->n_buffers, 2);
  const cs_tensor *out = &l.program->tensors[l.program->output_tensors[0]];
  assert_int_equal(out->buffer, output_of(&l, "a")->buffer);
  assert_int_equal(out->desc.shape.rank, 2);
  assert_int_equal(l.program->buffers[out->buffer].kind, CS_BUFFER_OUTPUT);
  assert_string_equal(l.program->buffers[out->buffer].name, "f");
  release(&l);
  l = lower(nodes, "'f'", CS_LAYOUT_NHWC);
  assert_program_consistent(&l);
  assert_int_equal(l.program->n_tasks, 2);
  assert_preds(&l, "copy:a:f", PREDS("a"));
  out = &l.program->tensors[l.program->output_tensors[0]];
  assert_int_equal(out->buffer, output_of(&l, "copy:a:f")->buffer);
  assert_int_equal(output_of(&l, "copy:a:f")->desc.layout, CS_LAYOUT_NCHW);
  release(&l);
  l = lower(NODE("f", "Flatten", "x"), "'f'", CS_LAYOUT_NCHW);
  assert_preds(&l, "copy:x:f", no_preds);
  release(&l);
}

static void test_identities(void **state) {
  (void)state;
  lowered l = lower_with("2,16,4,4",
                         NODE("a", "Relu", "x") "," NODE("i", "Identity", "a") "," NODE(
                             "y", "Tanh", "i") "," NODE("o", "Dropout", "y"),
                         "'o'", CS_PASSES_NONE, CS_PRECISION_F32, CS_LAYOUT_NHWC);
  assert_program_consistent(&l);
  assert_int_equal(l.program->n_tasks, 3);
  assert_preds(&l, "y", PREDS("a"));
  assert_preds(&l, "copy:y:o", PREDS("y"));
  release(&l);
}

/* One pixel: NCHW and NHWC are the same bytes, so changing between them costs no copy. */
static void test_one_pixel(void **state) {
  (void)state;
  lowered l = lower(NODE("g", "GlobalAveragePool", "x") "," CONV("y", "g", "4", "1"), "'y'",
                    CS_LAYOUT_NHWC);
  relayout(&l, "g", CS_LAYOUT_NCHW);
  assert_program_consistent(&l);
  assert_int_equal(l.program->n_tasks, 3); /* the copy of x for g */
  assert_preds(&l, "y", PREDS("g"));
  assert_int_equal(task(&l, "y")->desc.inputs[0].layout, CS_LAYOUT_NHWC);
  assert_true(cs_tensor_is_dense(&task(&l, "y")->desc.inputs[0]));
  release(&l);
}

static void test_residual(void **state) {
  (void)state;
  lowered l = lower(CONV("a", "x", "16", "1") "," CONV("b", "a", "16", "1") ","
                    "{'name':'s','op':'Add','inputs':['b','a']}," NODE("y", "Relu", "s"),
                    "'y'", CS_LAYOUT_NHWC);
  const cs_task *at = task(&l, "b");
  assert_true(at->desc.has_residual);
  assert_int_equal(at->desc.n_inputs, 2);
  assert_int_equal(at->desc.activation.kind, CS_ACT_RELU);
  assert_preds(&l, "b", PREDS("a"));
  assert_int_equal(at->inputs[0], at->inputs[1]);
  double flops, bytes;
  cs_program_totals(l.program, &flops, &bytes);
  assert_true(flops == 2 * (2.0 * 2 * 16 * 16 * 16));
  /* Five activations of 512 elements and two weights with biases, two bytes each. */
  assert_true(bytes == 2.0 * (5 * 512 + 2 * (256 + 16)));
  release(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_views),
      cmocka_unit_test(test_products_are_row_major),
      cmocka_unit_test(test_layouts_that_do_not_fit),
      cmocka_unit_test(test_prefix_nesting),
      cmocka_unit_test(test_broken_chain),
      cmocka_unit_test(test_shared_copy),
      cmocka_unit_test(test_double_use),
      cmocka_unit_test(test_copied_concats),
      cmocka_unit_test(test_layout_copies),
      cmocka_unit_test(test_flatten),
      cmocka_unit_test(test_flattened_output),
      cmocka_unit_test(test_identities),
      cmocka_unit_test(test_one_pixel),
      cmocka_unit_test(test_residual),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
