/* The graph: values and nodes in topological order; loading, shape inference, passes, views. Pure:
 * no backend, no weights' contents. A finished graph is immutable and may be shared by threads. */
#ifndef CONVSCHED_GRAPH_GRAPH_H_
#define CONVSCHED_GRAPH_GRAPH_H_

#include "graph/op.h"

/* A named parameter, in PyTorch's name and shape. */
typedef struct cs_param {
  char *name;
  cs_shape shape;
  bool trainable; /* false: running_mean, running_var */
} cs_param;

/* An affine map per channel that a BatchNormalization stands for: y = scale·x + shift with
 * scale = weight / sqrt(running_var + epsilon), shift = bias − running_mean · scale. `node` names
 * the folded node, whose four parameters are <node>.weight, .bias, .running_mean, .running_var. */
typedef struct cs_bn_fold {
  char *node; /* NULL: none */
  int64_t channels;
  double epsilon;
} cs_bn_fold;

typedef struct cs_node {
  char *name; /* as written; a fused node keeps the name of its convolution */
  cs_op op;
  cs_attrs attrs;
  int n_inputs;
  int *inputs; /* value indices; a residual is the last */
  int output;  /* value index */
  /* What passes fused in. */
  cs_activation activation;
  bool has_residual;
  cs_bn_fold bn_before; /* applied to the input's channels (no padding), then the convolution */
  cs_bn_fold bn_after;  /* applied to the output channels, before residual and activation */
  cs_bn_fold prologue;  /* of a Conv: on the input's channels, then prologue_activation, then it */
  cs_activation prologue_activation;
} cs_node;

/* Parameters that came with a graph (an imported model): read in pieces, by several threads. */
typedef struct cs_param_source cs_param_source;
struct cs_param_source {
  /* Elements first … first + count − 1 of a parameter, row-major in PyTorch's shape. */
  cs_status (*read)(const cs_param_source *source, const char *name, int64_t first, int64_t count,
                    float *out);
  /* The file it reads that this path names, by its own path; NULL: none. */
  const char *(*file_at)(const cs_param_source *source, const char *path);
  void (*destroy)(cs_param_source *source);
};

typedef struct cs_value {
  char *name;
  cs_shape shape;
  int producer; /* node index, -1 for a graph input */
  /* In-place concat: the value lies in value `root` from channel `channel_offset` on. A value that
   * is its own root lies alone. Set by the concat pass, for axis 1 of rank-4 values only. `host` is
   * the next value on the way to the root (-1: the value is its own root), `host_offset` the
   * channel within it: where a layout breaks the chain, the part below the break still holds. */
  int root;
  int64_t channel_offset;
  int host;
  int64_t host_offset;
} cs_value;

struct cs_graph {
  char *name;
  char *source;       /* file it came from, or the name given to cs_graph_parse */
  char *weights_path; /* absolute or relative to the working directory; NULL */
  /* Owned; NULL: none came with it. Of the graph as written only: copies have none. */
  cs_param_source *param_source;
  cs_value *values;
  int n_values;
  cs_node *nodes; /* topological order */
  int n_nodes;
  int *inputs, n_inputs;   /* value indices */
  int *outputs, n_outputs; /* value indices */
  int64_t batch;           /* CS_DIM_N while symbolic, else the bound batch */
};

/* The graph of a parsed document; `source` names it in messages. */
cs_status cs_graph_from_json(const json_t *root, const char *source, cs_graph **out) CS_MUST_USE;
/* cs_graph_to_json with `weights` for the path of the weights; NULL: the graph's own. */
cs_status cs_graph_to_json_with(const cs_graph *graph, const char *weights, char **out) CS_MUST_USE;

/* Deep copy with the symbolic batch bound to n >= 1 and every shape inferred anew. A graph without
 * a symbolic batch accepts only its own. BAD_INPUT: n < 1, overflow. */
cs_status cs_graph_bind(const cs_graph *graph, int64_t n, cs_graph **out) CS_MUST_USE;
int cs_graph_find_value(const cs_graph *graph, const char *name); /* -1: none */
/* Readers of a value: writes node indices, returns how many there are (may exceed `capacity`). */
int cs_graph_consumers(const cs_graph *graph, int value, int *nodes, int capacity);
bool cs_graph_is_output(const cs_graph *graph, int value);
/* Stable 64-bit hash of structure, attributes, shapes and batch (not of names of files). */
uint64_t cs_graph_hash(const cs_graph *graph);

/* Parameters of the graph as written (before passes), in node order, weight, bias, running_mean,
 * running_var within a node. Released with cs_params_free. */
cs_status cs_graph_params(const cs_graph *graph, cs_param **out, int *count) CS_MUST_USE;
void cs_params_free(cs_param *params, int count);
/* Trainable parameters of one node: its weight and bias. */
int64_t cs_node_parameter_count(const cs_graph *graph, const cs_node *node);

/* ---- Passes ---- */

/* Which convolutions take the BatchNormalization and activation before them as their prologue:
 * asked with what the operation would then be, in one layout and dense (cs_graph_node_desc). */
typedef struct cs_prologue_taker {
  bool (*takes)(void *user, const cs_op_desc *desc); /* NULL: none does */
  void *user;
  cs_precision precision;
  cs_layout layout;
} cs_prologue_taker;
typedef struct cs_pass_options {
  bool fold_batch_norm, fuse, drop_identities, concat_in_place;
  cs_prologue_taker prologue;
} cs_pass_options;
/* All that need to know nothing of a device. */
#define CS_PASSES_ALL \
  ((cs_pass_options){ \
      .fold_batch_norm = true, .fuse = true, .drop_identities = true, .concat_in_place = true})
#define CS_PASSES_NONE ((cs_pass_options){.fuse = false})
typedef struct cs_pass_report { /* how many nodes each pass changed */
  int identities_dropped, batch_norms_folded, activations_fused, residuals_fused, prologues_fused,
      concats_in_place, concat_inputs_copied, concats_flattened, movements_composed;
} cs_pass_report;
/* A new graph. Dropped nodes' values disappear; a fused node takes over the output value of the
 * last node it swallowed (so every remaining value keeps its name). Graph outputs are always kept
 * under their names. */
cs_status cs_graph_apply_passes(const cs_graph *bound, cs_pass_options options,
                                cs_pass_report *report, cs_graph **out) CS_MUST_USE;

/* The Sigmoid, or HardSigmoid of slope 1/6 and offset 1/2, whose input the Mul multiplies it with;
 * -1: it is no such product. */
int cs_node_gate(const cs_graph *graph, const cs_node *product);

/* A value that is always NCHW, that is row-major: of another rank than 4, or what a MatMul makes,
 * which reads its inputs so too. */
bool cs_graph_is_row_major(const cs_graph *graph, int value);
/* Whether a value may be stored in a layout: one that is always row-major in NCHW alone, and a
 * Concat along the channels takes a blocked layout only if every boundary between its inputs is a
 * multiple of the layout's granule. */
bool cs_graph_layout_allowed(const cs_graph *graph, int value, cs_layout layout);
/* out[n_values]: `layout` wherever it is allowed, else NCHW. */
void cs_graph_uniform_layouts(const cs_graph *graph, cs_layout layout, cs_layout *out);

/* A Slice of neighbouring channels, in a layout in whose blocks they begin and end: a view of its
 * input, where that has the layout and the result needs no bytes of its own. */
bool cs_node_is_channel_view(const cs_graph *graph, const cs_node *node, cs_layout layout);

/* A Flatten or Reshape whose result has bytes of its own is copied to them through the input's
 * shape where the output is row-major, else as the output is. */
bool cs_node_copies_through_input(const cs_graph *graph, const cs_node *node,
                                  const cs_layout *layouts);

/* Concrete description of a node for uniform layout `layout`, every tensor dense (no views). Not
 * for Concat, Flatten, Reshape, Identity, Dropout. */
cs_status cs_graph_node_desc(const cs_graph *graph, int node, cs_precision precision,
                             cs_layout layout, cs_op_desc *out) CS_MUST_USE;

/* ---- Blocks: nodes between cut values (values that every path from source to sink passes) ---- */

/* block_of[n_nodes]: block index of each node, in topological order; returns the number of blocks
 * through *n_blocks. A chain of k nodes has k blocks. */
cs_status cs_graph_blocks(const cs_graph *graph, int *block_of, int *n_blocks) CS_MUST_USE;

#endif
