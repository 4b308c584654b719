/* The public functions of a build without the importer (cmake/ConvschedOnnx.cmake says why). */
#include "base/base.h"

static cs_status absent(const char *path) {
  return cs_error(CS_CODE_NOT_FOUND,
                  "%s: this build cannot import ONNX: protobuf-c or onnx.proto was not found, or "
                  "left out, when it "
                  "was made; install libprotobuf-c-dev, protobuf-c-compiler and libonnx-dev, then "
                  "configure and build again",
                  path);
}

cs_status cs_graph_import(const char *path, cs_graph **out) {
  *out = NULL;
  return absent(path);
}

cs_status cs_import_check_json(const char *path, char **out) {
  *out = NULL;
  return absent(path);
}

bool cs_import_is_built(void) {
  return false;
}
