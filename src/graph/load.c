/* JSON text to a graph. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "graph/graph_internal.h"

#define CS_GRAPH_FILE_LIMIT ((size_t)256 << 20)

cs_status cs_graph_parse(const char *json, size_t length, const char *name, cs_graph **out) {
  json_error_t error;
  *out = NULL;
  if (length > CS_GRAPH_FILE_LIMIT) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: found %zu bytes, wanted at most %zu", name, length,
                    CS_GRAPH_FILE_LIMIT);
  }
  json_t *root = json_loadb(json, length, JSON_REJECT_DUPLICATES, &error);
  if (!root) {
    /* Jansson leaves the text empty when an allocation fails outside a token. */
    if (json_error_code(&error) == json_error_out_of_memory || !error.text[0]) {
      return cs_annotate(cs_no_memory("a JSON document", length), "%s: ", name);
    }
    return cs_error(CS_CODE_BAD_INPUT, "%s: line %d, column %d: %s, wanted a JSON object", name,
                    error.line, error.column, error.text);
  }
  cs_status status = cs_graph_from_json(root, name, out);
  json_decref(root);
  return status;
}

cs_status cs_graph_load(const char *path, cs_graph **out) {
  char *text = NULL;
  size_t length = 0;
  *out = NULL;
  const char *dot = strrchr(path, '.');
  if (dot && strcmp(dot, ".onnx") == 0) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: found an ONNX model by its name, wanted a graph's JSON (cs_graph_import "
                    "takes ONNX)",
                    path);
  }
  CS_RETURN_IF_ERROR(cs_file_read(path, CS_GRAPH_FILE_LIMIT, &text, &length));
  cs_status status = cs_graph_parse(text, length, path, out);
  free(text);
  return status;
}
