/* Reports over a profile: which table says what. Pure data: a graph, a profile, no device. */
#ifndef CONVSCHED_REPORT_REPORT_H_
#define CONVSCHED_REPORT_REPORT_H_

#include "profiler/profile.h"
#include "report/table.h"

/* ---- Nodes and their operations (nodes.c) ---- */

/* One node of the graph after passes is one operation a layout, several with equal signatures
 * counting once. */
typedef struct cs_report_op {
  cs_layout layout; /* of the output */
  char *signature;
  const cs_op_profile *known; /* NULL: nothing is */
} cs_report_op;

typedef struct cs_report_node {
  const char *name;
  const cs_node *node;
  cs_op_desc desc; /* in the first layout */
  cs_report_op ops[CS_LAYOUT_COUNT];
  int n_ops;
  bool chosen; /* the report is about it */
} cs_report_node;

typedef struct cs_report_nodes {
  cs_report_node *items; /* topological order */
  int n;
} cs_report_nodes;

/* What a report is made from; everything is borrowed. */
typedef struct cs_report_input {
  const cs_graph *bound; /* as written, batch bound */
  const cs_graph *graph; /* after passes */
  cs_precision precision;
  const cs_profile *profile;
  const cs_device_info *device; /* zeros where the profile does not tell */
  const char *const *patterns;  /* names of nodes, * and ? allowed; none: every convolution */
  int n_patterns;
  cs_report_candidates candidates;
  int64_t workspace_limit;
  bool deterministic, paper;
} cs_report_input;

/* The operations of every node in every layout that the graph allows throughout, looked up in the
 * profile, and the choice of nodes made. NOT_FOUND: a pattern without a node (the message tells
 * near names, or what became of the node); a named node, or all of them, not measured (the message
 * tells what is missing and what measures it). */
cs_status cs_report_nodes_of(const cs_report_input *input, cs_report_nodes *out) CS_MUST_USE;
void cs_report_nodes_free(cs_report_nodes *nodes);
/* Its name, or its identity where the profile does not tell. */
const char *cs_report_device_name(const cs_report_input *input);
/* "`convsched profile MODEL --batch N --dtype T`", with `more` behind it. */
void cs_report_measure_command(const cs_report_input *input, const char *more, cs_strbuf *out);

/* ---- Candidates of a node (choices.c) ---- */

typedef struct cs_report_choice {
  const cs_report_op *op;
  const cs_record *record;
} cs_report_choice;

/* Admissible candidates of a node over all layouts, fastest first, as input->candidates says: the
 * fastest that a plan would choose of itself; the Pareto sets that operations are measured together
 * with (cs_op_pareto); or all. free() releases. */
cs_status cs_report_choices_of(const cs_report_input *input, const cs_report_node *node,
                               cs_report_choice **out, int *n) CS_MUST_USE;

/* ---- Names for a person (names.c) ---- */

/* "void cudnn::ops::nchwToNhwc<float, …>(…)" or its mangled form → "nchwToNhwc"; a plain name
 * loses "_kernel" at its end; what is longer than 48 characters loses its middle. */
void cs_report_kernel_name(const char *name, char out[64]);

/* Which algorithm a candidate is a configuration of. */
typedef enum cs_algorithm_kind {
  CS_ALGORITHM_LEGACY,
  CS_ALGORITHM_ENGINE,
  CS_ALGORITHM_OTHER
} cs_algorithm_kind;
/* "cudnn.legacy:FFT/fma" → "FFT", legacy; "cudnn.graph:eng10{2=5}" → "eng10", an engine;
 * "onednn:jit:avx2/t2" → "jit:avx2"; "cuda.conv.v1" → itself. */
cs_algorithm_kind cs_report_algorithm(const cs_candidate *candidate, char out[64]);

/* ---- Published figures (paper.c) ---- */

typedef struct cs_paper_resources { /* percent of an SM */
  const char *algorithm, *kernel;
  double registers, shared, threads, blocks, alu, memory_stalls;
} cs_paper_resources;
typedef struct cs_paper_workspace {
  const char *algorithm; /* cuDNN's name */
  double workspace_bytes, time_ms;
} cs_paper_workspace;
/* What the paper tells of this convolution, known by its shape; NULL and 0: nothing. */
const cs_paper_resources *cs_paper_resources_of(const cs_op_desc *desc, int *n);
const cs_paper_workspace *cs_paper_workspace_of(const cs_op_desc *desc, int *n);
extern const char cs_paper_source[]; /* where the figures are from */

/* ---- The tables ---- */

cs_status cs_report_resources(const cs_report_input *input, const cs_report_nodes *nodes,
                              cs_table *out) CS_MUST_USE;
cs_status cs_report_workspace(const cs_report_input *input, const cs_report_nodes *nodes,
                              cs_table *out) CS_MUST_USE;
/* NOT_FOUND: no operations of the graph were measured together. */
cs_status cs_report_complementary(const cs_report_input *input, const cs_report_nodes *nodes,
                                  cs_table *out) CS_MUST_USE;

/* The table of `input`, with title and `about` set; `out` is to be freed in any case. */
cs_status cs_report_table_of(const cs_report_input *input, cs_report_kind kind,
                             cs_table *out) CS_MUST_USE;

#endif
