/* Reshape, Transpose, Slice, Pad, Resize in graphs: shapes, signatures, what is read, the pass that
 * composes them, and which of them are views. */
#include "graph/graph_internal.h"
#include "graph_fixture.h"

#define OP(name, op, input, attrs) \
  "{'name':'" name "','op':'" op "','inputs':['" input "'],'attrs':{" attrs "}}"

/* ---- Shapes, signatures, bytes ---- */

static const struct {
  const char *input, *node;
  int rank;
  int64_t dims[6];
  const char *signature; /* in f32, NCHW; NULL: no operation */
  int64_t elements;      /* read and written */
} shapes[] = {
    {"'N',3,4,5", OP("a", "Reshape", "x", "'shape':['N',6,10]"), 3, {2, 6, 10}, NULL, 0},
    {"2,3,4,5", OP("a", "Reshape", "x", "'shape':[5,4,1,6]"), 4, {5, 4, 1, 6}, NULL, 0},
    {"'N',3,4,5",
     OP("a", "Transpose", "x", "'perm':[0,3,1,2]"),
     4,
     {2, 5, 3, 4},
     "Transpose f32 x=2x3x4x5/nchw y=2x5x3x4/nchw perm=0,3,1,2",
     240},
    {"'N',6,4,5",
     OP("a", "Transpose", "x",
        "'perm':[0,2,1,3,4],'input_shape':['N',2,3,4,5],'output_shape':['N',6,4,5]"),
     4,
     {2, 6, 4, 5},
     "Transpose f32 x=2x6x4x5/nchw y=2x6x4x5/nchw perm=0,2,1,3,4 from=2x2x3x4x5 to=2x6x4x5",
     480},
    {"'N',6,4,5",
     OP("a", "Transpose", "x", "'perm':[0,2,3,1],'output_shape':['N',20,6]"),
     3,
     {2, 20, 6},
     "Transpose f32 x=2x6x4x5/nchw y=2x20x6/row perm=0,2,3,1 to=2x20x6",
     480},
    {"'N',6,4,5",
     OP("a", "Slice", "x", "'starts':[-3],'ends':[99],'axes':[-3]"),
     4,
     {2, 3, 4, 5},
     "Slice f32 x=2x6x4x5/nchw y=2x3x4x5/nchw axis1=3:6:1",
     240},
    {"'N',6,4,5",
     OP("a", "Slice", "x", "'starts':[-1,0],'ends':[-99,4],'axes':[3,2],'steps':[-2,3]"),
     4,
     {2, 6, 2, 3},
     "Slice f32 x=2x6x4x5/nchw y=2x6x2x3/nchw axis3=4:-6:-2 axis2=0:4:3",
     144},
    {"2,7",
     OP("a", "Slice", "x", "'starts':[1],'ends':[2]"),
     2,
     {1, 7},
     "Slice f32 x=2x7/row y=1x7/row axis0=1:2:1",
     14},
    {"'N',3,4,5",
     OP("a", "Pad", "x", "'pads':[0,0,3,-1,0,0,1,2],'mode':'reflect'"),
     4,
     {2, 3, 8, 6},
     "Pad f32 x=2x3x4x5/nchw y=2x3x8x6/nchw p=0,0,3,-1,0,0,1,2 reflect",
     120 + 288},
    {"'N',3,4,5",
     OP("a", "Resize", "x", "'sizes':[8,3]"),
     4,
     {2, 3, 8, 3},
     "Resize f32 x=2x3x4x5/nchw y=2x3x8x3/nchw nearest half_pixel round_prefer_floor",
     72 + 144},
    {"'N',3,4,5",
     OP("a", "Resize", "x",
        "'sizes':[1,2],'scales':[0.25,0.5],'mode':'linear',"
        "'coordinate_transformation_mode':'asymmetric'"),
     4,
     {2, 3, 1, 2},
     "Resize f32 x=2x3x4x5/nchw y=2x3x1x2/nchw linear asymmetric scales=0.25,0.5",
     48 + 12},
    {"'N',3,4,5",
     OP("a", "Resize", "x",
        "'sizes':[1,2],'scales':[0.25,0.5],'mode':'linear','antialias':true,"
        "'coordinate_transformation_mode':'asymmetric'"),
     4,
     {2, 3, 1, 2},
     "Resize f32 x=2x3x4x5/nchw y=2x3x1x2/nchw linear asymmetric scales=0.25,0.5 antialias",
     120 + 12},
    {"'N',3,4,5",
     OP("a", "Resize", "x",
        "'sizes':[2,3],'coordinate_transformation_mode':'tf_half_pixel_for_nn',"
        "'nearest_mode':'floor','antialias':true"),
     4,
     {2, 3, 2, 3},
     "Resize f32 x=2x3x4x5/nchw y=2x3x2x3/nchw nearest tf_half_pixel_for_nn floor",
     36 + 36},
};

static void test_shapes_and_signatures(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    cs_graph *graph = graph_of(shapes[i].input, shapes[i].node, "'a'"), *bound = NULL;
    assert_ok(cs_graph_bind(graph, 2, &bound));
    assert_shape(bound, "a", shapes[i].rank, shapes[i].dims);
    if (shapes[i].signature) {
      cs_op_desc desc;
      char *text = NULL;
      assert_ok(cs_graph_node_desc(bound, 0, CS_PRECISION_F32, CS_LAYOUT_NCHW, &desc));
      assert_ok(cs_op_signature(&desc, &text));
      assert_string_equal(text, shapes[i].signature);
      assert_true(cs_op_bytes(&desc) == 4.0 * (double)shapes[i].elements);
      free(text);
    }
    cs_graph_destroy(bound);
    cs_graph_destroy(graph);
  }
}

/* From 4 to 2 rows a linear filter meets 4 of them, where it is widened; from 5 to 9 columns 2. */
static void test_work_of_widened_filters(void **state) {
  (void)state;
  for (int widened = 0; widened < 2; widened++) {
    const char *node =
        widened ? OP("a", "Resize", "x", "'sizes':[2,9],'mode':'linear','antialias':true")
                : OP("a", "Resize", "x", "'sizes':[2,9],'mode':'linear'");
    cs_graph *graph = graph_of("2,3,4,5", node, "'a'");
    cs_op_desc desc;
    assert_ok(cs_graph_node_desc(graph, 0, CS_PRECISION_F32, CS_LAYOUT_NCHW, &desc));
    int64_t elements = widened ? 8 : 4;
    assert_int_equal(cs_op_reduction(&desc), elements);
    assert_true(cs_op_flops(&desc) == 2.0 * (double)elements * (2 * 3 * 2 * 9));
    cs_graph_destroy(graph);
  }
}

/* ---- The pass ---- */

#define SHUFFLE(planes)                                                                   \
  OP("split", "Reshape", "x", "'shape':[2,2,4," planes "]")                               \
  "," OP("turn", "Transpose", "split", "'perm':[0,2,1,3]") "," OP("y", "Reshape", "turn", \
                                                                  "'shape':[2,8,6,5]")

static void assert_ints(const int64_t *found, const int64_t *wanted, int n) {
  for (int i = 0; i < n; i++) assert_int_equal(found[i], wanted[i]);
}

static void test_channel_shuffle_becomes_one_node(void **state) {
  (void)state;
  cs_graph *graph = graph_of("2,8,6,5", SHUFFLE("30"), "'y'");
  cs_pass_report report;
  cs_graph *out = passed(graph, CS_PASSES_ALL, &report);
  assert_int_equal(out->n_nodes, 1);
  assert_int_equal(report.movements_composed, 2);
  const cs_transpose_attrs *t = &out->nodes[0].attrs.transpose;
  assert_string_equal(out->nodes[0].name, "turn");
  assert_string_equal(out->values[out->nodes[0].output].name, "y");
  assert_int_equal(t->n_perm, 5);
  assert_ints(t->input_shape.dims, (const int64_t[]){2, 2, 4, 6, 5}, 5);
  assert_ints(t->perm, (const int64_t[]){0, 2, 1, 3, 4}, 5);
  assert_ints(t->output_shape.dims, (const int64_t[]){2, 8, 6, 5}, 4);
  cs_graph_destroy(out);
  cs_graph_destroy(graph);
}

/* Three tensors of six axes are gone. */
static void test_depth_to_space_becomes_one_node(void **state) {
  (void)state;
  cs_graph *graph =
      graph_of("2,8,6,5",
               OP("split", "Reshape", "x", "'shape':[2,2,2,2,6,5]") "," OP(
                   "turn", "Transpose", "split",
                   "'perm':[0,3,4,1,5,2]") "," OP("y", "Reshape", "turn", "'shape':[2,2,12,10]"),
               "'y'");
  cs_graph *out = passed(graph, CS_PASSES_ALL, NULL);
  assert_int_equal(out->n_nodes, 1);
  assert_int_equal(out->nodes[0].attrs.transpose.input_shape.rank, 6);
  assert_shape(out, "y", 4, (const int64_t[]){2, 2, 12, 10});
  cs_graph_destroy(out);
  cs_graph_destroy(graph);
}

/* What is read between stays; axes that neither split nor merge are not composed. */
static void test_what_is_not_composed(void **state) {
  (void)state;
  const struct {
    const char *nodes, *outputs;
    int kept;
  } rows[] = {
      {SHUFFLE("30") "," OP("z", "Relu", "turn", ""), "'y','z'", 3}, /* before: composed */
      {SHUFFLE("30") "," OP("z", "Relu", "split", ""), "'y','z'", 3},
      {OP("r", "Reshape", "x", "'shape':[2,5,48]") "," OP("y", "Transpose", "r", "'perm':[0,2,1]"),
       "'y'", 2},
      {OP("t", "Transpose", "x", "'perm':[0,1,3,2]") "," OP("y", "Reshape", "t",
                                                            "'shape':[2,8,10,3]"),
       "'y'", 1}, /* 5 × 6 as 10 × 3: both are 5, 2, 3 */
      {OP("t", "Transpose", "x", "'perm':[0,1,3,2]") "," OP("y", "Reshape", "t",
                                                            "'shape':[2,8,3,10]"),
       "'y'", 2},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    cs_graph *graph = graph_of("2,8,6,5", rows[i].nodes, rows[i].outputs);
    cs_graph *out = passed(graph, CS_PASSES_ALL, NULL);
    assert_int_equal(out->n_nodes, rows[i].kept);
    cs_graph_destroy(out);
    cs_graph_destroy(graph);
  }
}

/* ---- Views ---- */

typedef struct lowered {
  cs_graph *graph;
  cs_program *program;
} lowered;

static lowered lower(const char *nodes, const char *outputs, cs_layout layout) {
  lowered l = {0};
  cs_layout layouts[16];
  cs_graph *graph = graph_of("2,16,4,4", nodes, outputs);
  l.graph = passed(graph, CS_PASSES_ALL, NULL);
  cs_graph_destroy(graph);
  for (int i = 0; i < l.graph->n_values; i++) layouts[i] = layout;
  assert_ok(cs_program_lower(l.graph, CS_PRECISION_F16, layouts, &l.program));
  return l;
}

static void release(lowered *l) {
  cs_program_destroy(l->program);
  cs_graph_destroy(l->graph);
}

static const cs_task *task(const lowered *l, const char *name) {
  for (int i = 0; i < l->program->n_tasks; i++) {
    if (strcmp(l->program->tasks[i].name, name) == 0) return &l->program->tasks[i];
  }
  return NULL;
}

static const cs_tensor *input_of(const lowered *l, const char *name) {
  const cs_task *at = task(l, name);
  assert_non_null(at);
  return &l->program->tensors[at->inputs[0]];
}

static void test_slices_of_channels_are_views(void **state) {
  (void)state;
  const char *nodes = OP("a", "Relu", "x", "") "," OP(
      "s", "Slice", "a", "'starts':[8],'ends':[16],'axes':[1]") "," OP("y", "Tanh", "s", "");
  lowered l = lower(nodes, "'y'", CS_LAYOUT_NHWC);
  assert_int_equal(l.program->n_tasks, 2);
  const cs_tensor *read = input_of(&l, "y");
  assert_int_equal(read->offset, 8 * 2);
  assert_int_equal(read->desc.alignment, 16);
  assert_ints(read->desc.shape.dims, (const int64_t[]){2, 8, 4, 4}, 4);
  assert_ints(read->desc.strides, (const int64_t[]){256, 1, 64, 16}, 4);
  assert_int_equal(task(&l, "y")->n_preds, 1);
  release(&l);
  l = lower(nodes, "'y'", CS_LAYOUT_NCHW8C); /* the second block of two */
  assert_int_equal(l.program->n_tasks, 2);
  assert_int_equal(input_of(&l, "y")->offset, 8 * 16 * 2);
  release(&l);
  l = lower(nodes, "'y'", CS_LAYOUT_NCHW16C); /* half a block */
  assert_int_equal(l.program->n_tasks, 3);
  assert_int_equal(task(&l, "s")->desc.op, CS_OP_SLICE);
  release(&l);
}

/* An output has bytes of its own, and so has a part of a concat; steps and other axes are no view.
 */
static void test_slices_that_are_copied(void **state) {
  (void)state;
  const char *const ends[] = {
      OP("s", "Slice", "a", "'starts':[8],'ends':[16],'axes':[1]"),
      OP("s", "Slice", "a", "'starts':[0],'ends':[16],'axes':[1],'steps':[2]") "," OP("y", "Tanh",
                                                                                      "s", ""),
      OP("s", "Slice", "a", "'starts':[1],'ends':[3],'axes':[2]") "," OP("y", "Tanh", "s", "")};
  for (int i = 0; i < 3; i++) {
    char nodes[512];
    snprintf(nodes, sizeof nodes, "%s,%s", OP("a", "Relu", "x", ""), ends[i]);
    lowered l = lower(nodes, i ? "'y'" : "'s'", CS_LAYOUT_NHWC);
    assert_non_null(task(&l, "s"));
    assert_int_equal(l.program->tensors[task(&l, "s")->output].offset, 0);
    release(&l);
  }
  lowered l = lower(
      OP("a", "Relu", "x", "") "," OP(
          "s", "Slice", "a",
          "'starts':[8],'ends':[16],'axes':[1]") "," OP("b", "Tanh", "a",
                                                        "") "," CONCAT("k",
                                                                       "'b','s'") "," OP("y", "Abs",
                                                                                         "k", ""),
      "'y'", CS_LAYOUT_NCHW);
  assert_int_equal(l.program->n_tasks, 4); /* the slice writes its part of the concat */
  assert_int_equal(l.program->tensors[task(&l, "s")->output].offset, 16 * 16 * 2);
  release(&l);
}

static void test_reshapes_are_views_of_rows(void **state) {
  (void)state;
  const char *nodes = OP("a", "Relu", "x", "") "," OP(
      "r", "Reshape", "a", "'shape':[2,4,8,8]") "," OP("y", "Tanh", "r", "");
  lowered l = lower(nodes, "'y'", CS_LAYOUT_NCHW);
  assert_int_equal(l.program->n_tasks, 2);
  assert_ints(input_of(&l, "y")->desc.strides, (const int64_t[]){256, 64, 8, 1}, 4);
  release(&l);
  l = lower(nodes, "'y'", CS_LAYOUT_NHWC); /* there and back */
  assert_int_equal(l.program->n_tasks, 4);
  assert_non_null(task(&l, "copy:a:nchw"));
  assert_non_null(task(&l, "copy:a:r"));
  assert_ints(input_of(&l, "y")->desc.strides, (const int64_t[]){256, 1, 32, 4}, 4);
  release(&l);
  /* An output in NCHW is written through the input's shape, or by what makes the input. */
  nodes = OP("a", "Relu", "x", "") "," OP("r", "Reshape", "a", "'shape':[2,4,8,8]");
  l = lower(nodes, "'r'", CS_LAYOUT_NCHW);
  assert_int_equal(l.program->n_tasks, 1);
  release(&l);
  l = lower(nodes, "'r'", CS_LAYOUT_NHWC);
  assert_int_equal(l.program->n_tasks, 3);
  release(&l);
  /* One pixel is the same bytes in both. */
  nodes = OP("p", "GlobalAveragePool", "x", "") "," OP("f", "Flatten", "p", "'axis':1") "," OP(
      "r", "Reshape", "f", "'shape':[2,16,1,1]") "," OP("y", "Tanh", "r", "");
  l = lower(nodes, "'y'", CS_LAYOUT_NHWC);
  assert_int_equal(l.program->n_tasks, 2);
  assert_int_equal(input_of(&l, "y")->desc.layout, CS_LAYOUT_NHWC);
  release(&l);
}

/* ---- Loop nests ---- */

static void test_movements(void **state) {
  (void)state;
  cs_graph *graph = graph_of("2,8,6,5",
                             OP("t", "Transpose", "x",
                                "'perm':[0,2,1,3,4],'input_shape':[2,2,4,6,5],"
                                "'output_shape':[2,8,6,5]") "," OP("s", "Slice", "x",
                                                                   "'starts':[5,1],'ends':[-99,5],'"
                                                                   "axes':[2,1],'steps':[-2,1]"),
                             "'t','s'");
  cs_op_desc desc;
  cs_movement m;
  assert_ok(cs_graph_node_desc(graph, 0, CS_PRECISION_F32, CS_LAYOUT_NHWC, &desc));
  assert_true(cs_op_movement(&desc, &m));
  assert_int_equal(m.rank, 5);
  assert_ints(m.size, (const int64_t[]){2, 4, 2, 6, 5}, 5);
  assert_ints(m.in_stride, (const int64_t[]){240, 1, 4, 40, 8}, 5);
  assert_ints(m.out_stride, (const int64_t[]){240, 2, 1, 40, 8}, 5);
  assert_ok(cs_graph_node_desc(graph, 1, CS_PRECISION_F32, CS_LAYOUT_NCHW, &desc));
  assert_true(cs_op_movement(&desc, &m));
  assert_ints(m.size, (const int64_t[]){2, 4, 3, 5}, 4);
  assert_ints(m.in_stride, (const int64_t[]){240, 30, -10, 1}, 4);
  assert_int_equal(m.in_offset, 30 + 25);
  assert_ok(cs_graph_node_desc(graph, 0, CS_PRECISION_F32, CS_LAYOUT_NCHW16C, &desc));
  assert_false(cs_op_movement(&desc, &m));
  cs_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shapes_and_signatures),
      cmocka_unit_test(test_work_of_widened_filters),
      cmocka_unit_test(test_channel_shuffle_becomes_one_node),
      cmocka_unit_test(test_depth_to_space_becomes_one_node),
      cmocka_unit_test(test_what_is_not_composed),
      cmocka_unit_test(test_slices_of_channels_are_views),
      cmocka_unit_test(test_slices_that_are_copied),
      cmocka_unit_test(test_reshapes_are_views_of_rows),
      cmocka_unit_test(test_movements),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
