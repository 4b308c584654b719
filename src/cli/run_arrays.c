/* Inputs, outputs and dumps of `run`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run.h"

static int64_t elements_of(int rank, const int64_t *dims) {
  int64_t count = 1;
  for (int d = 0; d < rank; d++) count *= dims[d];
  return count;
}

cs_status run_set_input(const run_case *run, cs_session *session) {
  if (!run->options->input) return CS_OK;
  if (cs_graph_input_count(run->graph) != 1) {
    return cli_error(CS_CODE_USAGE, "--input: %s has %d inputs, wanted one", run->path,
                     cs_graph_input_count(run->graph));
  }
  int rank;
  int64_t dims[8];
  float *array = NULL;
  CS_RETURN_IF_ERROR(cs_session_shape(session, cs_graph_input_name(run->graph, 0), &rank, dims));
  CS_RETURN_IF_ERROR(cs_array_load(run->options->input, rank, dims, &array));
  int64_t size = elements_of(rank, dims);
  cs_status st = cs_session_set_inputs(session, (const float *const *)&array, &size, 1);
  cs_array_free(array);
  return st;
}

cs_status run_first(const run_case *run, cs_session *session, float **first_output) {
  cs_status st = CS_OK;
  int n = cs_graph_output_count(run->graph);
  float **outputs = calloc((size_t)n, sizeof *outputs);
  int64_t *sizes = calloc((size_t)n, sizeof *sizes);
  if (!outputs || !sizes) {
    st = cs_no_memory("outputs", (size_t)n * sizeof *outputs);
    goto done;
  }
  for (int i = 0; i < n; i++) {
    int rank;
    int64_t dims[8];
    CS_TRY(st, cs_session_shape(session, cs_graph_output_name(run->graph, i), &rank, dims), done);
    sizes[i] = elements_of(rank, dims);
    outputs[i] = calloc((size_t)sizes[i], sizeof **outputs);
    if (!outputs[i]) {
      st = cs_no_memory("an output", (size_t)sizes[i] * sizeof **outputs);
      goto done;
    }
  }
  CS_TRY(st, cs_session_run(session, NULL, NULL, 0, outputs, sizes, n), done);
  *first_output = outputs[0];
  outputs[0] = NULL;
done:
  for (int i = 0; outputs && i < n; i++) free(outputs[i]);
  free(outputs);
  free(sizes);
  return st;
}

cs_status run_write_output(const run_case *run, const cs_session *session, const float *output) {
  if (!run->options->output) return CS_OK;
  int rank;
  int64_t dims[8];
  CS_RETURN_IF_ERROR(cs_session_shape(session, cs_graph_output_name(run->graph, 0), &rank, dims));
  return cs_array_save(run->options->output, rank, dims, output);
}

/* ---- Dumps: "NODE" or "NODE=FILE", where both may hold a '=' ---- */

/* Bytes of the node's name in `item`: the longest name of the graph that ends there or before a
 * '='; where there is none, what is before the first '='. */
static size_t node_length(const cs_graph *graph, char *item) {
  size_t first = strcspn(item, "="), longest = 0;
  for (size_t end = first;; end += 1 + strcspn(item + end + 1, "=")) {
    char kept = item[end];
    item[end] = '\0';
    if (cs_graph_has_value(graph, item)) longest = end;
    item[end] = kept;
    if (kept == '\0') break;
  }
  return longest > 0 ? longest : first;
}

cs_status run_dump_node(const cs_graph *graph, const char *item, char **node) {
  *node = strdup(item);
  if (!*node) return cs_no_memory("a node's name", strlen(item));
  (*node)[node_length(graph, *node)] = '\0';
  return CS_OK;
}

/* NODE.npy (with '/' made '_') where no file is named. */
static cs_status dump_path(const char *item, const char *node, char **path) {
  cs_strbuf text = {0};
  bool named = item[strlen(node)] == '=';
  const char *start = named ? item + strlen(node) + 1 : node;
  cs_strbuf_append(&text, start, strlen(start));
  if (!named) cs_strbuf_append(&text, ".npy", 4);
  for (size_t i = 0; !named && i < text.length; i++) {
    if (text.data[i] == '/') text.data[i] = '_';
  }
  return cs_strbuf_take(&text, path);
}

cs_status run_dump(const run_case *run, cs_session *session, const char *item) {
  cs_status st = CS_OK;
  char *node = NULL, *path = NULL;
  float *data = NULL;
  int rank;
  int64_t dims[8];
  CS_TRY(st, run_dump_node(run->graph, item, &node), done);
  CS_TRY(st, dump_path(item, node, &path), done);
  CS_TRY(st, cs_session_shape(session, node, &rank, dims), done);
  data = calloc((size_t)elements_of(rank, dims), sizeof *data);
  if (!data) {
    st = cs_no_memory("a dump", (size_t)elements_of(rank, dims) * sizeof *data);
    goto done;
  }
  CS_TRY(st, cs_session_read(session, node, data, elements_of(rank, dims)), done);
  st = cs_array_save(path, rank, dims, data);
done:
  free(path);
  free(node);
  free(data);
  return st;
}
