/* The ONNX importer: what it accepts is a graph that can be saved and loaded again, whose
 * parameters can be read, and which can be encoded as ONNX. */
#include "fuzz/fuzz.h"
#include "graph/graph.h"
#include "onnx/export.h"
#include "onnx/wire.h"
#include "onnx/wire_write.h"

#define MOST_READ 4096 /* elements of a parameter; those of ConstantOfShape are without end */

static void read_params(const cs_graph *graph) {
  cs_param *params = NULL;
  int count = 0;
  float out[61];
  fuzz_want_ok(cs_graph_params(graph, &params, &count), "parameters");
  for (int i = 0; i < count; i++) {
    int64_t elements;
    fuzz_want_ok(cs_shape_elements(&params[i].shape, &elements), params[i].name);
    for (int64_t first = 0; first < cs_min_i64(elements, MOST_READ); first += 61) {
      int64_t piece = cs_min_i64(61, elements - first);
      fuzz_want_ok(
          graph->param_source->read(graph->param_source, params[i].name, first, piece, out),
          params[i].name);
    }
  }
  cs_params_free(params, count);
}

static void save_and_load_again(const cs_graph *graph) {
  char *text = NULL;
  cs_graph *again = NULL;
  fuzz_want_ok(cs_graph_to_json(graph, &text), "saving");
  fuzz_want_ok(cs_graph_parse(text, strlen(text), "fuzz.json", &again), "loading what was saved");
  FUZZ_CHECK(cs_graph_hash(again) == cs_graph_hash(graph), "another hash:\n%s", text);
  free(text);
  cs_graph_destroy(again);
}

static void encode(const cs_graph *graph) {
  cs_onnx_export model = {0};
  /* Too large, or a number that f32 cannot hold. */
  (void)fuzz_taken(cs_onnx_export_encode(graph, "fuzz", &model), CS_CODE_BAD_INPUT);
  cs_onnx_export_clear(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_file contents = fuzz_file_of(data, size);
  cs_graph *graph = NULL;
  char *table = NULL;
  bool good = fuzz_taken(cs_graph_import(contents.path, &graph), CS_CODE_BAD_INPUT);
  if (good) {
    read_params(graph);
    save_and_load_again(graph);
    encode(graph);
  }
  cs_graph_destroy(graph);
  bool told = fuzz_taken(cs_import_check_json(contents.path, &table), CS_CODE_BAD_INPUT);
  FUZZ_CHECK(told || !good, "imported, but without a table");
  free(table);
  close(contents.fd);
  return 0;
}

#ifdef CS_FUZZ
/* Fields of a message; 0: it is none. */
static int count_fields(const uint8_t *data, size_t size) {
  const uint8_t *at = data, *end = data + size;
  int n = 0;
  for (cs_wire_field field; at < end; n++) {
    if (!cs_wire_next(&at, end, &field)) return 0;
  }
  return n;
}

static void mutate_message(const uint8_t *data, size_t size, cs_rng *rng, cs_strbuf *out);

static void mutate_bytes(const cs_wire_field *field, cs_rng *rng, cs_strbuf *out) {
  int number = (int)field->number;
  cs_strbuf inner = {0};
  if (fuzz_below(rng, 8) > 0 && count_fields(field->data, field->size) > 0) {
    mutate_message(field->data, field->size, rng, &inner);
    cs_wire_put_message(out, number, &inner);
    return;
  }
  uint8_t *copy = malloc(field->size + 16);
  FUZZ_CHECK(copy, "no memory");
  if (field->size) memcpy(copy, field->data, field->size);
  cs_wire_put_bytes(out, number, copy, LLVMFuzzerMutate(copy, field->size, field->size + 16));
  free(copy);
}

static void mutate_field(const cs_wire_field *field, cs_rng *rng, cs_strbuf *out) {
  static const int64_t some[] = {0, 1, 2, 3, 7, -1, -2, 4096, INT32_MAX, INT64_MAX, INT64_MIN};
  float number = (float)fuzz_below(rng, 5) / 2 - 1;
  if (field->type == CS_WIRE_BYTES) {
    mutate_bytes(field, rng, out);
  } else if (field->type == CS_WIRE_32) {
    cs_wire_put_float(out, (int)field->number, number);
  } else if (field->type == CS_WIRE_VARINT && fuzz_below(rng, 2)) {
    cs_wire_put_int(out, (int)field->number, some[fuzz_below(rng, sizeof some / sizeof some[0])]);
  } else if (field->type == CS_WIRE_VARINT) {
    cs_wire_put_int(out, (int)field->number, (int64_t)(field->varint + fuzz_below(rng, 3) - 1));
  }
}

/* One field goes, comes twice or is changed, with the lengths around it. */
static void mutate_message(const uint8_t *data, size_t size, cs_rng *rng, cs_strbuf *out) {
  const uint8_t *at = data, *end = data + size;
  size_t chosen = fuzz_below(rng, (size_t)count_fields(data, size)), action = fuzz_below(rng, 12);
  cs_wire_field field;
  for (size_t i = 0; at < end && cs_wire_next(&at, end, &field); i++) {
    size_t length = (size_t)(at - field.begin);
    if (i == chosen && action == 0) continue;
    if (i != chosen || action == 1) cs_strbuf_append(out, (const char *)field.begin, length);
    if (i == chosen && action == 1) cs_strbuf_append(out, (const char *)field.begin, length);
    if (i == chosen && action > 1) mutate_field(&field, rng, out);
  }
}

/* Every eighth time bytes of any kind. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  cs_rng rng;
  cs_strbuf out = {0};
  cs_rng_init(&rng, seed, 3);
  if (count_fields(data, size) == 0 || fuzz_below(&rng, 8) == 0) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  mutate_message(data, size, &rng, &out);
  bool fits = !out.failed && out.length <= max_size;
  if (fits && out.length) memcpy(data, out.data, out.length);
  size_t made = fits ? out.length : size;
  cs_strbuf_free(&out);
  return made;
}
#endif
