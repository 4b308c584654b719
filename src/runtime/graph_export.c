/* A graph as an ONNX file, with the parameters that a session on it would have. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "onnx/export.h"
#include "runtime/params.h"

typedef struct open_elements {
  const cs_params *params;
  cs_params_array array;
} open_elements;

static cs_status open_param(void *user, const char *name, int64_t count, const float **out) {
  open_elements *opened = user;
  CS_RETURN_IF_ERROR(cs_params_open(opened->params, name, &opened->array));
  *out = opened->array.data;
  if (opened->array.count == count) return CS_OK;
  cs_status st = cs_error(CS_CODE_INTERNAL, "parameter \"%s\" has %lld elements, wanted %lld", name,
                          (long long)opened->array.count, (long long)count);
  cs_params_close(opened->params, &opened->array);
  return st;
}

static void close_param(void *user) {
  open_elements *opened = user;
  cs_params_close(opened->params, &opened->array);
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static cs_status make_note(const cs_graph *graph, const char *weights_path, uint64_t seed,
                           char **out) {
  cs_strbuf text = {0};
  if (weights_path) {
    cs_strbuf_printf(&text, "parameters of %s", base_name(weights_path));
  } else if (graph->param_source) {
    cs_strbuf_printf(&text, "parameters of %s", base_name(graph->source));
  } else {
    cs_strbuf_printf(&text, "parameters generated from seed %llu", (unsigned long long)seed);
  }
  return cs_strbuf_take(&text, out);
}

/* A file that is read must not be the one that is written. */
static cs_status check_not_read(const char *path, const char *read) {
  struct stat a, b;
  if (!read || stat(path, &a) != 0 || stat(read, &b) != 0) return CS_OK;
  if (!S_ISREG(a.st_mode) || a.st_dev != b.st_dev || a.st_ino != b.st_ino) return CS_OK;
  return cs_error(CS_CODE_USAGE, "%s: would replace %s, which is read", path, read);
}

static cs_status load_params(const cs_graph *graph, const char *weights_path, uint64_t seed,
                             cs_params **out) {
  if (weights_path) return cs_params_load(graph, weights_path, NULL, out);
  return graph->param_source ? cs_params_from_source(graph, out)
                             : cs_params_generate(graph, seed, out);
}

cs_status cs_graph_export_onnx(const cs_graph *graph, const char *weights_path, uint64_t seed,
                               const char *path) {
  cs_status st = CS_OK;
  char *note = NULL;
  cs_params *params = NULL;
  cs_onnx_export model = {0};
  if (!weights_path) weights_path = graph->weights_path;
  CS_RETURN_IF_ERROR(check_not_read(path, weights_path));
  CS_RETURN_IF_ERROR(check_not_read(path, graph->source));
  CS_RETURN_IF_ERROR(cs_file_check_replace(path));
  CS_TRY(st, make_note(graph, weights_path, seed, &note), done);
  CS_TRY(st, cs_onnx_export_encode(graph, note, &model), done);
  CS_TRY(st, load_params(graph, weights_path, seed, &params), done);
  open_elements opened = {.params = params};
  const cs_onnx_elements elements = {open_param, close_param, &opened};
  st = cs_onnx_export_write(&model, &elements, path);
done:
  cs_onnx_export_clear(&model);
  cs_params_destroy(params);
  free(note);
  return st;
}
