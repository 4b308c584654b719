/* An ONNX file cut off at every byte, and with every bit of it changed: it imports or is refused
 * with a message, and reading its parameters stays within it. The sanitizer builds see what does
 * not. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "onnx/import.h"

#define PATH "test_onnx_damage.onnx"

typedef struct bytes {
  uint8_t data[4096];
  size_t size;
} bytes;

/* A field of bytes below 128; enough for a model of this size. */
static void block(bytes *to, int number, const void *data, size_t size) {
  to->data[to->size++] = (uint8_t)(number << 3 | 2);
  if (size >= 128) to->data[to->size++] = (uint8_t)((size & 127) | 128);
  to->data[to->size++] = (uint8_t)(size >= 128 ? size >> 7 : size);
  memcpy(to->data + to->size, data, size);
  to->size += size;
}

static void text(bytes *to, int number, const char *value) {
  block(to, number, value, strlen(value));
}

static void number(bytes *to, int field, int value) {
  if (field >= 16) to->data[to->size++] = (uint8_t)((field << 3 & 127) | 128);
  to->data[to->size++] = (uint8_t)(field >= 16 ? field >> 4 : field << 3);
  to->data[to->size++] = (uint8_t)value;
}

static void inner(bytes *to, int field, const bytes *from) {
  block(to, field, from->data, from->size);
}

/* Names are letters. Attributes are a list of n integers, or one where n is 0. */
static void add_node(bytes *graph, const char *op, const char *inputs, const char *outputs,
                     const char *attribute, const int *values, int n) {
  bytes node = {0}, attr = {0};
  for (const char *at = inputs; *at; at++) block(&node, 1, at, 1);
  for (const char *at = outputs; *at; at++) block(&node, 2, at, 1);
  text(&node, 4, op);
  if (attribute && n == 0) {
    text(&attr, 1, attribute);
    number(&attr, 3, values[0]);
    number(&attr, 20, 2);
    inner(&node, 5, &attr);
  } else if (attribute) {
    text(&attr, 1, attribute);
    for (int i = 0; i < n; i++) number(&attr, 8, values[i]);
    number(&attr, 20, 7);
    inner(&node, 5, &attr);
  }
  inner(graph, 1, &node);
}

/* Elements raw (9) or in float_data (4), of type float; or in int32_data (5), of type float16. */
static void add_tensor(bytes *graph, const char *name, const int *dims, int rank, int field) {
  bytes tensor = {0}, elements = {0};
  int count = 1;
  for (int i = 0; i < rank; i++) {
    number(&tensor, 1, dims[i]);
    count *= dims[i];
  }
  number(&tensor, 2, field == 5 ? 10 : 1);
  text(&tensor, 8, name);
  for (int i = 0; i < count; i++) {
    float value = (float)(i % 5) / 4;
    if (field == 5) elements.data[elements.size++] = (uint8_t)(i % 100);
    if (field != 5) memcpy(elements.data + elements.size, &value, sizeof value);
    if (field != 5) elements.size += sizeof value;
  }
  inner(&tensor, field, &elements);
  inner(graph, 5, &tensor);
}

static void add_value(bytes *graph, int field, const char *name, const int *dims, int rank) {
  bytes value = {0}, type = {0}, tensor = {0}, shape = {0};
  for (int i = 0; i < rank; i++) {
    bytes dim = {0};
    if (dims[i] > 0) number(&dim, 1, dims[i]);
    if (dims[i] == 0) text(&dim, 2, "n");
    inner(&shape, 1, &dim);
  }
  number(&tensor, 1, 1);
  inner(&tensor, 2, &shape);
  inner(&type, 1, &tensor);
  text(&value, 1, name);
  inner(&value, 2, &type);
  inner(graph, field, &value);
}

static bytes small_model(void) {
  static const int pads[] = {1, 1, 1, 1};
  bytes graph = {0}, model = {0}, opset = {0};
  add_node(&graph, "Conv", "xwb", "c", "pads", pads, 4);
  add_node(&graph, "Relu", "c", "r", NULL, NULL, 0);
  add_node(&graph, "GlobalAveragePool", "r", "p", NULL, NULL, 0);
  add_node(&graph, "Shape", "p", "s", NULL, NULL, 0);
  add_node(&graph, "Gather", "si", "g", NULL, NULL, 0);
  add_node(&graph, "Concat", "gk", "h", NULL, NULL, 0);
  add_node(&graph, "Squeeze", "pq", "f", NULL, NULL, 0);
  add_node(&graph, "MatMul", "fm", "a", NULL, NULL, 0);
  add_node(&graph, "Add", "av", "y", NULL, NULL, 0);
  add_tensor(&graph, "w", (int[]){2, 1, 3, 3}, 4, 9);
  add_tensor(&graph, "b", (int[]){2}, 1, 5);
  add_tensor(&graph, "m", (int[]){2, 3}, 2, 4);
  add_tensor(&graph, "v", (int[]){3}, 1, 9);
  bytes axes = {0}, index = {0}, rest = {0};
  number(&axes, 1, 2), number(&axes, 2, 7), text(&axes, 8, "q"), block(&axes, 7, "\2\3", 2);
  number(&index, 1, 1), number(&index, 2, 7), text(&index, 8, "i"), block(&index, 7, "\0", 1);
  number(&rest, 1, 1), number(&rest, 2, 7), text(&rest, 8, "k"), block(&rest, 7, "\2", 1);
  inner(&graph, 5, &axes), inner(&graph, 5, &index), inner(&graph, 5, &rest);
  add_value(&graph, 11, "x", (int[]){0, 1, 4, 4}, 4);
  add_value(&graph, 12, "y", (int[]){0, 3}, 2);
  add_value(&graph, 13, "c", (int[]){0, 2, 4, 4}, 4);
  number(&opset, 2, 17);
  number(&model, 1, 8);
  inner(&model, 7, &graph);
  inner(&model, 8, &opset);
  return model;
}

/* A list of integers below 128. */
static void add_list(bytes *graph, const char *name, const char *values, int n) {
  bytes tensor = {0};
  number(&tensor, 1, n), number(&tensor, 2, 7), text(&tensor, 8, name);
  block(&tensor, 7, values, (size_t)n);
  inner(graph, 5, &tensor);
}

/* What moves elements, with lists of constants. */
static bytes moving_model(void) {
  static const int channels[] = {1}, perm[] = {0, 2, 3, 1};
  static const float scales[] = {1, 1, 2, 1.5f};
  bytes graph = {0}, model = {0}, opset = {0}, factors = {0};
  add_node(&graph, "Split", "x", "uv", "axis", channels, 0);
  add_node(&graph, "Slice", "vijk", "s", NULL, NULL, 0);
  add_node(&graph, "Concat", "us", "c", "axis", channels, 0);
  add_node(&graph, "Transpose", "c", "t", "perm", perm, 4);
  add_node(&graph, "Reshape", "tl", "r", NULL, NULL, 0);
  add_node(&graph, "Pad", "rm", "p", NULL, NULL, 0);
  add_node(&graph, "Resize", "pff", "z", NULL, NULL, 0); /* no roi: it is not read */
  add_node(&graph, "Gather", "zg", "q", "axis", channels, 0);
  add_node(&graph, "DepthToSpace", "q", "d", "blocksize", (const int[]){2}, 0);
  add_node(&graph, "Tile", "dn", "y", NULL, NULL, 0);
  add_list(&graph, "i", "\1", 1), add_list(&graph, "j", "\2", 1), add_list(&graph, "k", "\1", 1);
  add_list(&graph, "l", "\0\4\4\3", 4), add_list(&graph, "m", "\0\0\1\1\0\0\0\1", 8);
  add_list(&graph, "g", "\3\2\1\0", 4), add_list(&graph, "n", "\1\1\2\1", 4);
  number(&factors, 1, 4), number(&factors, 2, 1), text(&factors, 8, "f");
  block(&factors, 9, scales, sizeof scales);
  inner(&graph, 5, &factors);
  add_value(&graph, 11, "x", (int[]){0, 4, 4, 4}, 4);
  add_value(&graph, 12, "y", (int[]){0, 1, 20, 14}, 4);
  number(&opset, 2, 17);
  number(&model, 1, 8);
  inner(&model, 7, &graph);
  inner(&model, 8, &opset);
  return model;
}

static void write_file(const uint8_t *data, size_t size) {
  FILE *file = fopen(PATH, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  fclose(file);
}

/* Every parameter in pieces of three. */
static void read_all(const cs_graph *graph) {
  cs_param *params = NULL;
  int count = 0;
  assert_true(cs_graph_params(graph, &params, &count) == CS_OK);
  for (int i = 0; i < count; i++) {
    int64_t elements;
    float out[3];
    assert_true(cs_shape_elements(&params[i].shape, &elements) == CS_OK);
    for (int64_t first = 0; first < elements && first < 300; first += 3) {
      int64_t piece = cs_min_i64(3, elements - first);
      assert_true(graph->param_source->read(graph->param_source, params[i].name, first, piece,
                                            out) == CS_OK);
    }
  }
  cs_params_free(params, count);
}

/* Whether it imports; a refusal has a message that names the file. */
static bool imports(const uint8_t *data, size_t size) {
  cs_graph *graph = NULL;
  char *json = NULL;
  write_file(data, size);
  cs_status st = cs_graph_import(PATH, &graph);
  bool good = st == CS_OK;
  if (good) {
    read_all(graph);
  } else {
    assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
    assert_non_null(strstr(cs_status_message(st), PATH));
  }
  cs_status_free(st);
  cs_graph_destroy(graph);
  st = cs_import_check_json(PATH, &json);
  if (good) assert_true(st == CS_OK);
  cs_status_free(st);
  free(json);
  return good;
}

static void test_whole(void **state) {
  (void)state;
  bytes model = small_model();
  cs_graph *graph = NULL;
  write_file(model.data, model.size);
  cs_status st = cs_graph_import(PATH, &graph);
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
  assert_int_equal(graph->n_nodes, 5); /* Conv, Relu, pool, Flatten, Gemm */
  float row[2];
  assert_true(graph->param_source->read(graph->param_source, "a.weight", 2, 2, row) == CS_OK);
  assert_true(row[0] == 0.25f && row[1] == 1.0f); /* elements (0, 1) and (1, 1) of the matrix */
  cs_graph_destroy(graph);
}

static void test_whole_that_moves(void **state) {
  (void)state;
  bytes model = moving_model();
  cs_graph *graph = NULL;
  write_file(model.data, model.size);
  cs_status st = cs_graph_import(PATH, &graph);
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
  assert_int_equal(graph->n_nodes, 11); /* a Slice for each part of the Split */
  const cs_shape *shape = &graph->values[graph->outputs[0]].shape;
  assert_int_equal(shape->dims[2], 2 * 2 * 10);
  assert_int_equal(shape->dims[3], 2 * 7); /* of 5 pixels by 1.5 */
  cs_graph_destroy(graph);
}

/* Written after it was opened: what is read from then on may be of two files. */
static void test_written_while_in_use(void **state) {
  (void)state;
  bytes model = small_model();
  cs_graph *graph = NULL;
  float row[2];
  write_file(model.data, model.size);
  cs_status st = cs_graph_import(PATH, &graph);
  assert_true(st == CS_OK);
  const cs_param_source *source = graph->param_source;
  assert_string_equal(source->file_at(source, PATH), PATH);
  assert_null(source->file_at(source, "/dev/null"));
  assert_true(source->read(source, "a.weight", 2, 2, row) == CS_OK);
  assert_int_equal(utimensat(AT_FDCWD, PATH, (const struct timespec[2]){{1, 0}, {1, 0}}, 0), 0);
  st = source->read(source, "a.weight", 2, 2, row);
  assert_int_equal(cs_status_code(st), CS_CODE_IO);
  assert_non_null(strstr(cs_status_message(st), "written while in use"));
  cs_status_free(st);
  cs_graph_destroy(graph);
}

static void cut_off(const bytes *model) {
  int good = 0;
  for (size_t size = 0; size < model->size; size++) good += imports(model->data, size);
  assert_int_equal(good, 0); /* the opset is the last field */
}

static void test_cut_off(void **state) {
  (void)state;
  bytes model = small_model(), moving = moving_model();
  cut_off(&model);
  cut_off(&moving);
}

static void changed_bits(bytes model) {
  int good = 0, refused = 0;
  for (size_t at = 0; at < model.size; at++) {
    for (int bit = 0; bit < 8; bit++) {
      model.data[at] ^= (uint8_t)(1 << bit);
      if (imports(model.data, model.size)) {
        good++;
      } else {
        refused++;
      }
      model.data[at] ^= (uint8_t)(1 << bit);
    }
  }
  assert_true(good > 0 && refused > 0);
}

static void test_changed_bits(void **state) {
  (void)state;
  changed_bits(small_model());
  changed_bits(moving_model());
}

static int clean(void **state) {
  (void)state;
  unlink(PATH);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_whole),
      cmocka_unit_test(test_whole_that_moves),
      cmocka_unit_test(test_written_while_in_use),
      cmocka_unit_test(test_cut_off),
      cmocka_unit_test(test_changed_bits),
  };
  return cmocka_run_group_tests(tests, NULL, clean);
}
