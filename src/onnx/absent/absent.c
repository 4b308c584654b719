/* The module's functions in a build without protobuf-c (cmake/ConvschedOnnx.cmake says why). */
#include "onnx/export.h"

static cs_status absent(const char *path, const char *what) {
  return cs_error(CS_CODE_NOT_FOUND,
                  "%s: this build cannot %s ONNX: protobuf-c or onnx.proto was not found, or "
                  "left out, when it "
                  "was made; install libprotobuf-c-dev, protobuf-c-compiler and libonnx-dev, then "
                  "configure and build again",
                  path, what);
}

cs_status cs_graph_import(const char *path, cs_graph **out) {
  *out = NULL;
  return absent(path, "import");
}

cs_status cs_import_check_json(const char *path, char **out) {
  *out = NULL;
  return absent(path, "import");
}

bool cs_import_is_built(void) {
  return false;
}

cs_status cs_onnx_export_encode(const cs_graph *graph, const char *note, cs_onnx_export *out) {
  (void)note;
  *out = (cs_onnx_export){0};
  return absent(graph->source, "export");
}

/* Nothing was encoded. */
cs_status cs_onnx_export_write(const cs_onnx_export *model, const cs_onnx_elements *elements,
                               const char *path) {
  (void)model;
  (void)elements;
  return absent(path, "export");
}

void cs_onnx_export_clear(cs_onnx_export *model) {
  *model = (cs_onnx_export){0};
}
