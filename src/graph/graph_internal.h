/* What the files of the graph module share. */
#ifndef CONVSCHED_GRAPH_GRAPH_INTERNAL_H_
#define CONVSCHED_GRAPH_GRAPH_INTERNAL_H_

#include "graph/graph.h"
#include "graph/op_family.h"

/* Deep copy. */
cs_status cs_graph_clone(const cs_graph *graph, cs_graph **out) CS_MUST_USE;
/* Infers the output shape of one node from its inputs' shapes. */
cs_status cs_graph_infer_node(cs_graph *graph, int index, const cs_place *place) CS_MUST_USE;
/* One flag per value: is it an output of the graph. free() releases. */
cs_status cs_graph_output_flags(const cs_graph *graph, bool **out) CS_MUST_USE;
void cs_node_clear(cs_node *node);
/* Operator, attributes and what was fused in, without the tensors. */
cs_op_desc cs_node_base_desc(const cs_node *node, cs_precision precision);
/* What `fold` is to keep of a BatchNormalization that goes. */
cs_status cs_bn_fold_make(const cs_graph *graph, const cs_node *norm, cs_bn_fold *fold) CS_MUST_USE;
/* Its output is its input: Identity, Dropout (at inference), Concat of one input. */
bool cs_node_is_identity(const cs_node *node);
/* A convolution of either kind or a Gemm. */
bool cs_node_is_product(const cs_node *node);
/* An activation behind it can be part of it. */
bool cs_node_takes_activation(const cs_node *node);
/* A rank-4 Concat along the channels. */
bool cs_node_is_channel_concat(const cs_graph *graph, const cs_node *node);

/* A graph that passes are changing. */
typedef struct cs_rewrite {
  cs_graph *graph;
  bool *is_output; /* per value */
  bool *dead;      /* per node */
  int *uses;       /* per value: reads by live nodes, each graph output counting as one */
} cs_rewrite;
/* The node that made `value` if it may be changed into something else: `value` is read once. */
cs_node *cs_rewrite_sole_producer(const cs_rewrite *rewrite, int value);
/* Node `from` goes; `into` writes from's output in its place. */
void cs_rewrite_take_over(cs_rewrite *rewrite, int into, int from);

cs_status cs_pass_drop_identities(cs_rewrite *rewrite, cs_pass_report *report) CS_MUST_USE;
void cs_pass_global_pool(cs_rewrite *rewrite);
/* Reshape, Transpose, Reshape become one Transpose. */
void cs_pass_compose_movements(cs_rewrite *rewrite, cs_pass_report *report);
cs_status cs_pass_fold_batch_norm(cs_rewrite *rewrite, cs_pass_report *report) CS_MUST_USE;
cs_status cs_pass_fuse(cs_rewrite *rewrite, cs_pass_report *report) CS_MUST_USE;
cs_status cs_pass_fuse_prologues(cs_rewrite *rewrite, const cs_prologue_taker *taker,
                                 cs_pass_report *report) CS_MUST_USE;
cs_status cs_pass_flatten_concats(cs_rewrite *rewrite, cs_pass_report *report) CS_MUST_USE;
/* On a compact graph: sets the values' hosts and roots. */
cs_status cs_pass_concat_in_place(cs_graph *graph, cs_pass_report *report) CS_MUST_USE;

#endif
