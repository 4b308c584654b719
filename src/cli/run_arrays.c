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

/* ---- "FILE" or "NAME=FILE", where both may hold a '=' ---- */

typedef const char *(*name_fn)(const cs_graph *graph, int index);

/* The file of an item, and through *index which input or output it is of: the one with the longest
 * name before a '=', or the only one. NULL: none. */
static const char *file_of(const cs_graph *graph, name_fn name, int n, const char *item,
                           int *index) {
  size_t longest = 0;
  for (int i = 0; i < n; i++) {
    size_t length = strlen(name(graph, i));
    if (strncmp(item, name(graph, i), length) != 0 || item[length] != '=' || length <= longest) {
      continue;
    }
    longest = length;
    *index = i;
  }
  if (longest > 0) return item + longest + 1;
  *index = 0;
  return n == 1 ? item : NULL;
}

/* files[n]: that of each, NULL where none was given. */
static cs_status resolve(const cs_graph *graph, const char *option, name_fn name, int n,
                         const cli_list *list, const char **files) {
  for (int k = 0; k < list->n; k++) {
    int index;
    const char *file = file_of(graph, name, n, list->items[k], &index);
    if (!file || !file[0]) {
      return cli_error(CS_CODE_USAGE, "%s %s: %s has %d of them, wanted NAME=FILE, as %s=%s",
                       option, list->items[k], cs_graph_name(graph), n, name(graph, 0),
                       list->items[k]);
    }
    if (files[index]) {
      return cli_error(CS_CODE_USAGE, "%s: %s is given twice: %s and %s", option,
                       name(graph, index), files[index], file);
    }
    files[index] = file;
  }
  return CS_OK;
}

static cs_status files_of(const cli_options *options, const cs_graph *graph, bool inputs,
                          const char ***out, int *n) {
  *n = inputs ? cs_graph_input_count(graph) : cs_graph_output_count(graph);
  *out = calloc((size_t)*n, sizeof **out);
  if (!*out) return cs_no_memory("names of files", (size_t)*n * sizeof **out);
  cs_status st =
      inputs ? resolve(graph, "--input", cs_graph_input_name, *n, &options->inputs, *out)
             : resolve(graph, "--output", cs_graph_output_name, *n, &options->outputs, *out);
  if (st == CS_OK) return CS_OK;
  free(*out);
  *out = NULL;
  return st;
}

static cs_status dump_file(const cs_graph *graph, const char *item, char **path);

/* A file of --output or --dump; the `n` before it (NULL: not given) are others. */
static cs_status check_result(const cli_options *options, const char *option, const char *path,
                              const char *const *before, int n) {
  CS_RETURN_IF_ERROR(cli_check_written_file(options, option, path));
  for (int i = 0; i < n; i++) {
    CS_RETURN_IF_ERROR(cli_check_other_file(option, path, "another result", before[i]));
  }
  return cli_check_writable(path);
}

static cs_status check_dumps(const cli_options *options, const cs_graph *graph,
                             const char *const *outputs, int n_outputs) {
  char *paths[CLI_MAX_LIST] = {NULL};
  cs_status st = CS_OK;
  for (int d = 0; d < options->dumps.n && st == CS_OK; d++) {
    st = dump_file(graph, options->dumps.items[d], &paths[d]);
    if (st == CS_OK) {
      st = check_result(options, "--dump", paths[d], (const char *const *)paths, d);
    }
    for (int i = 0; i < n_outputs && st == CS_OK; i++) {
      st = cli_check_other_file("--dump", paths[d], "--output", outputs[i]);
    }
  }
  for (int d = 0; d < options->dumps.n; d++) free(paths[d]);
  return st;
}

cs_status run_check_arrays(const cli_options *options, const cs_graph *graph) {
  const char **files = NULL;
  int n;
  CS_RETURN_IF_ERROR(files_of(options, graph, true, &files, &n));
  cs_status st = CS_OK;
  for (int i = 0; i < n && options->inputs.n > 0 && st == CS_OK; i++) {
    if (files[i]) continue;
    st = cli_error(CS_CODE_USAGE, "--input: %s is not given, wanted all %d inputs or none",
                   cs_graph_input_name(graph, i), n);
  }
  free(files);
  if (st == CS_OK) st = files_of(options, graph, false, &files, &n);
  if (st != CS_OK) return st;
  for (int i = 0; i < n && st == CS_OK; i++) {
    if (files[i]) st = check_result(options, "--output", files[i], files, i);
  }
  if (st == CS_OK) st = check_dumps(options, graph, files, n);
  free(files);
  return st;
}

/* ---- Inputs ---- */

cs_status run_set_input(const run_case *run, cs_session *session) {
  cs_status st = CS_OK;
  const char **files = NULL;
  int n = 0;
  if (run->options->inputs.n == 0) return CS_OK;
  CS_RETURN_IF_ERROR(files_of(run->options, run->graph, true, &files, &n));
  float **arrays = calloc((size_t)n, sizeof *arrays);
  int64_t *sizes = calloc((size_t)n, sizeof *sizes);
  if (!arrays || !sizes) {
    st = cs_no_memory("inputs", (size_t)n * sizeof *arrays);
    goto done;
  }
  for (int i = 0; i < n; i++) {
    int rank;
    int64_t dims[8];
    CS_TRY(st, cs_session_shape(session, cs_graph_input_name(run->graph, i), &rank, dims), done);
    CS_TRY(st, cs_array_load(files[i], rank, dims, &arrays[i]), done);
    sizes[i] = elements_of(rank, dims);
  }
  st = cs_session_set_inputs(session, (const float *const *)arrays, sizes, n);
done:
  for (int i = 0; arrays && i < n; i++) cs_array_free(arrays[i]);
  free(arrays);
  free(sizes);
  free(files);
  return st;
}

/* ---- Outputs ---- */

void run_free_outputs(run_outputs *outputs) {
  for (int i = 0; outputs->arrays && i < outputs->n; i++) free(outputs->arrays[i]);
  free(outputs->arrays);
  free(outputs->sizes);
  *outputs = (run_outputs){0};
}

cs_status run_first(const run_case *run, cs_session *session, run_outputs *out) {
  int n = cs_graph_output_count(run->graph);
  *out = (run_outputs){.n = n,
                       .arrays = calloc((size_t)n, sizeof *out->arrays),
                       .sizes = calloc((size_t)n, sizeof *out->sizes)};
  if (!out->arrays || !out->sizes) return cs_no_memory("outputs", (size_t)n * sizeof *out->arrays);
  for (int i = 0; i < n; i++) {
    int rank;
    int64_t dims[8];
    CS_RETURN_IF_ERROR(cs_session_shape(session, cs_graph_output_name(run->graph, i), &rank, dims));
    out->sizes[i] = elements_of(rank, dims);
    out->arrays[i] = calloc((size_t)out->sizes[i], sizeof **out->arrays);
    if (!out->arrays[i]) {
      return cs_no_memory("an output", (size_t)out->sizes[i] * sizeof **out->arrays);
    }
  }
  return cs_session_run(session, NULL, NULL, 0, out->arrays, out->sizes, n);
}

cs_status run_write_outputs(const run_case *run, const cs_session *session,
                            const run_outputs *outputs) {
  const char **files = NULL;
  int n;
  CS_RETURN_IF_ERROR(files_of(run->options, run->graph, false, &files, &n));
  cs_status st = CS_OK;
  for (int i = 0; i < n && st == CS_OK; i++) {
    int rank;
    int64_t dims[8];
    if (!files[i]) continue;
    st = cs_session_shape(session, cs_graph_output_name(run->graph, i), &rank, dims);
    if (st == CS_OK) st = cs_array_save(files[i], rank, dims, outputs->arrays[i]);
  }
  free(files);
  return st;
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

static cs_status dump_file(const cs_graph *graph, const char *item, char **path) {
  char *node = NULL;
  CS_RETURN_IF_ERROR(run_dump_node(graph, item, &node));
  cs_status st = dump_path(item, node, path);
  free(node);
  return st;
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
