/* An imported graph as files of our own: JSON, and safetensors beside it. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "graph/graph.h"
#include "runtime/safetensors.h"

/* Bytes of a path before its extension. */
static size_t stem_of(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  const char *dot = strrchr(name, '.');
  return dot && dot != name ? (size_t)(dot - path) : strlen(path);
}

static cs_status fill(const void *user, const char *name, int64_t first, int64_t count,
                      float *out) {
  const cs_param_source *source = user;
  return source->read(source, name, first, count, out);
}

static cs_status save_weights(const cs_graph *graph, const char *path) {
  cs_status st = CS_OK;
  cs_param *params = NULL;
  cs_safetensors_item *items = NULL;
  int count = 0;
  CS_TRY(st, cs_graph_params(graph, &params, &count), done);
  items = cs_calloc((size_t)count, sizeof *items);
  if (!items) {
    st = cs_no_memory("the tensor table", (size_t)count * sizeof *items);
    goto done;
  }
  for (int i = 0; i < count; i++) {
    items[i] = (cs_safetensors_item){.name = params[i].name, .shape = &params[i].shape};
  }
  st = cs_safetensors_write(path, CS_DTYPE_F32, items, count, fill, graph->param_source);
done:
  free(items);
  cs_params_free(params, count);
  return st;
}

/* What is written must not be what is read, and parameters still are while they are written. */
static cs_status check_apart(const cs_graph *graph, const char *path) {
  const char *read = graph->param_source->file_at(graph->param_source, path);
  if (!read) return CS_OK;
  return cs_error(CS_CODE_USAGE, "%s: would replace %s, which is read", path, read);
}

cs_status cs_graph_save(const cs_graph *graph, const char *path) {
  cs_status st = CS_OK;
  char *weights = NULL, *json = NULL;
  cs_strbuf text = {0};
  if (!graph->param_source) {
    return cs_error(CS_CODE_USAGE, "%s: found no parameters with the graph, wanted an imported one",
                    graph->source);
  }
  if (strcmp(path + stem_of(path), ".safetensors") == 0) {
    return cs_error(CS_CODE_USAGE, "%s: found the extension of the weights, wanted .json", path);
  }
  CS_RETURN_IF_ERROR(cs_file_check_replace(path));
  if (cs_file_is_in_place(path)) {
    return cs_error(CS_CODE_USAGE,
                    "%s: found a device or a pipe, wanted a file that the weights can lie beside",
                    path);
  }
  cs_strbuf_append(&text, path, stem_of(path));
  cs_strbuf_printf(&text, ".safetensors");
  CS_RETURN_IF_ERROR(cs_strbuf_take(&text, &weights));
  CS_TRY(st, check_apart(graph, path), done);
  CS_TRY(st, check_apart(graph, weights), done);
  const char *slash = strrchr(weights, '/');
  CS_TRY(st, cs_graph_to_json_with(graph, slash ? slash + 1 : weights, &json), done);
  CS_TRY(st, save_weights(graph, weights), done);
  st = cs_text_save(path, json);
done:
  free(json);
  free(weights);
  return st;
}
