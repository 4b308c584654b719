/* Loading a document, shared by document.c (head, inputs, outputs) and document_nodes.c. */
#ifndef CONVSCHED_GRAPH_DOCUMENT_H_
#define CONVSCHED_GRAPH_DOCUMENT_H_

#include "graph/graph_internal.h"
#include "graph/index.h"

/* What loading knows about the file's nodes, by file index. */
typedef struct cs_loader {
  const char *source;
  cs_graph *graph;
  cs_name_map names; /* inputs: their index; nodes: n_inputs + file index */
  const json_t *nodes;
  cs_node *drafts; /* by file index; their inputs are numbers of `names` */
  int *order;      /* file indices, dependencies first */
  int n_nodes;
} cs_loader;

/* "nodes[3].inputs[0]" and the like. */
typedef struct cs_path_text {
  char text[96];
} cs_path_text;
cs_path_text cs_path_of(const char *format, ...) CS_PRINTF(1, 2);

/* BAD_INPUT "source: path: found …, wanted …". */
cs_status cs_load_error(const cs_loader *load, const char *path, const json_t *found,
                        const char *wanted) CS_MUST_USE;
/* Refuses keys of `object` that are not in the NULL-terminated list. */
cs_status cs_load_keys(const cs_loader *load, const char *path, const json_t *object,
                       const char *const *known) CS_MUST_USE;
/* A name that is new among inputs and nodes; put into the map as `value`. */
cs_status cs_load_name(cs_loader *load, const char *path, const json_t *json,
                       int value) CS_MUST_USE;
/* Reads, resolves, sorts and places the nodes of load->nodes; infers their shapes. */
cs_status cs_load_nodes(cs_loader *load) CS_MUST_USE;

#endif
