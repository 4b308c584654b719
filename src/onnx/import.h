/* Inside of the importer. An ONNX graph is walked once, in the file's order, which ONNX wants
 * topological. Every value is then a tensor that the network computes (data), a constant, or not
 * known (behind a node that cannot be imported). Nodes whose inputs are constants are folded; the
 * others become drafts of our nodes. What cannot be imported is collected, and reported at the end
 * as one list.
 *
 * A function here that meets such a node calls cs_onnx_refuse and returns CS_OK; statuses are for
 * files that are malformed and for failures of the machine. */
#ifndef CONVSCHED_ONNX_IMPORT_H_
#define CONVSCHED_ONNX_IMPORT_H_

#include "graph/graph.h"
#include "graph/index.h"
#include "graph/op_family.h"
#include "onnx/model.h"
#include "onnx/params.h"

/* One element of a constant that folding computes with. Integers may be multiples of the batch, as
 * those of a shape are. */
typedef struct cs_onnx_item {
  double real;
  int64_t whole;
  bool times_n;
} cs_onnx_item;

/* Constants up to this many elements are folded; larger ones are parameters. */
#define CS_ONNX_MOST_ITEMS 4096

/* Bytes of a name before a number is appended; the format takes 256, as a file of our own has. */
#define CS_ONNX_MOST_NAME 240
#define CS_ONNX_MOST_OWN_NAME 256

/* Who makes a tensor: a draft (its index), or a graph input (−1 − its index). */
typedef struct cs_onnx_data {
  int source;
  cs_shape shape;
} cs_onnx_data;
/* Behind a refused node whose output's shape the file tells: checked on, never built. */
#define CS_ONNX_NOWHERE INT32_MIN

typedef enum cs_onnx_kind { CS_ONNX_UNKNOWN, CS_ONNX_DATA, CS_ONNX_CONSTANT } cs_onnx_kind;

typedef struct cs_onnx_value {
  const char *name; /* of the model's skeleton */
  cs_onnx_kind kind;
  bool defined; /* its node, if it has one, was visited */
  int node;     /* that makes it; −1: an input or initializer */
  int readers;  /* node inputs and graph outputs that name it */
  bool is_output;
  cs_onnx_data data; /* the shape is a constant's too */
  /* Of constants: elements in the file, or computed. */
  int32_t dtype;
  bool transposed; /* rank 2: `tensor` has the axes the other way round */
  cs_onnx_tensor tensor;
  cs_onnx_item *items; /* owned; NULL: not read */
  bool filled;         /* computed, too many for `items`, and every one of them is `fill` */
  cs_onnx_item fill;
} cs_onnx_value;

typedef struct cs_onnx_draft {
  char *name;
  cs_op op;
  cs_attrs attrs;
  int *inputs, n_inputs; /* sources */
  cs_shape shape;
} cs_onnx_draft;

#define CS_ONNX_MOST_REASONS 10000
typedef struct cs_onnx_missing {
  int node; /* −1: of the graph */
  char *reason;
} cs_onnx_missing;

typedef struct cs_onnx_import {
  cs_onnx_model *model;
  const Onnx__GraphProto *graph;
  int64_t opset;
  const char *path;
  cs_onnx_value *values;
  size_t n_values, values_capacity;
  cs_name_map value_of;  /* by ONNX's name */
  int *inputs, n_inputs; /* values that are inputs of our graph */
  char **input_names;    /* their names there */
  size_t input_names_size, n_refused_names;
  cs_onnx_draft *drafts;
  size_t n_drafts, drafts_capacity;
  char **names;           /* of nodes, unique, by index of the ONNX node */
  cs_name_map used_names; /* to the place in `numbers` */
  int *numbers;           /* the last one appended to a name */
  size_t numbers_capacity;
  bool *refused;            /* by index of the ONNX node */
  int n_refused;            /* nodes, inputs and outputs */
  int n_following;          /* of them, nodes that are so only because of what is before them */
  cs_onnx_missing *missing; /* the first CS_ONNX_MOST_REASONS of n_reasons */
  size_t n_missing, missing_capacity, n_reasons;
  cs_onnx_params *params;
} cs_onnx_import;

/* A node being imported. */
typedef struct cs_onnx_node {
  cs_onnx_import *import;
  const Onnx__NodeProto *proto;
  int index;
  bool refused;
} cs_onnx_node;

/* ---- walk.c ---- */
/* Walks the whole graph; import->missing then says what is in the way. */
cs_status cs_onnx_walk(cs_onnx_model *model, cs_onnx_import *import) CS_MUST_USE;
void cs_onnx_import_clear(cs_onnx_import *import);
/* ---- import.c ---- */
/* Records a reason why the node cannot be imported. */
cs_status cs_onnx_refuse(cs_onnx_node *node, const char *format, ...) CS_PRINTF(2, 3) CS_MUST_USE;
/* The value at an input; NULL where the optional input is absent. */
cs_onnx_value *cs_onnx_input(const cs_onnx_node *node, size_t i);
/* A tensor that the network computes at input i. false: `node` is refused, or the value is behind
 * one that is. */
cs_status cs_onnx_data_in(cs_onnx_node *node, size_t i, cs_onnx_data *out, bool *there) CS_MUST_USE;
/* A constant at input i, NULL where it is absent, or refused (not wanted: `optional` is false). */
cs_status cs_onnx_constant_in(cs_onnx_node *node, size_t i, bool optional,
                              cs_onnx_value **out) CS_MUST_USE;
/* A node of ours, checked by the operator table; refused where it does not fit. `suffix` is of
 * nodes beside the main one. *out: what it computes (only if not refused); it may be an input. */
cs_status cs_onnx_emit(cs_onnx_node *node, const char *suffix, cs_op op, const cs_attrs *attrs,
                       const cs_onnx_data *inputs, int n_inputs, cs_onnx_data *out) CS_MUST_USE;
/* The node's first output is that tensor. Nothing where the node was refused. */
void cs_onnx_give(cs_onnx_node *node, const cs_onnx_data *data);
/* … or another one. */
void cs_onnx_give_output(cs_onnx_node *node, size_t i, const cs_onnx_data *data);
/* The value at an output; NULL where it is not wanted. */
cs_onnx_value *cs_onnx_output(const cs_onnx_node *node, size_t i);
/* Emits the one node and gives its output. */
cs_status cs_onnx_become(cs_onnx_node *node, cs_op op, const cs_attrs *attrs,
                         const cs_onnx_data *inputs, int n_inputs) CS_MUST_USE;
/* The parameter <draft>.<what>: a constant's elements. */
cs_status cs_onnx_add_param(cs_onnx_node *node, const cs_onnx_data *draft, const char *what,
                            const cs_onnx_value *constant, cs_onnx_param param) CS_MUST_USE;

/* Refuses a constant whose numbers are multiples of a symbolic batch. */
cs_status cs_onnx_refuse_of_batch(cs_onnx_node *node, const cs_onnx_value *constant) CS_MUST_USE;

/* A binary operator of a tensor and a constant of any shape that broadcasts. */
cs_status cs_onnx_emit_operand(cs_onnx_node *node, const char *suffix, cs_op op,
                               const cs_onnx_data *data, const cs_onnx_value *constant,
                               bool constant_first, cs_onnx_data *out) CS_MUST_USE;

/* One node: folded, converted or refused. */
cs_status cs_onnx_visit(cs_onnx_import *import, int index) CS_MUST_USE;

/* ---- names.c ---- */
cs_status cs_onnx_name_nodes(cs_onnx_import *import) CS_MUST_USE;
/* A new name made of `wanted`. */
cs_status cs_onnx_new_name(cs_onnx_import *import, const char *wanted, const char *fallback,
                           char **out) CS_MUST_USE;
size_t cs_onnx_most_name(const cs_onnx_import *import);
/* For messages: the node's own name, or what it makes. */
const char *cs_onnx_label(const Onnx__NodeProto *node);

/* ---- attributes.c: readers refuse the node where the attribute is of another type or range ----
 */
const Onnx__AttributeProto *cs_onnx_attribute(const cs_onnx_node *node, const char *name);
cs_status cs_onnx_int(cs_onnx_node *node, const char *name, int64_t fallback,
                      int64_t *out) CS_MUST_USE;
cs_status cs_onnx_real(cs_onnx_node *node, const char *name, double fallback,
                       double *out) CS_MUST_USE;
/* The number that a file of our own rounded to `value`, its f32, for that attribute or input; else
 * `value`. */
double cs_onnx_exact(const cs_onnx_node *node, const char *name, double value);
/* A list of n integers, each from `least` to 2147483647; `fallback` fills them all. */
cs_status cs_onnx_ints(cs_onnx_node *node, const char *name, int n, int64_t fallback, int64_t least,
                       int64_t *out) CS_MUST_USE;
/* At most `size` − 1 bytes. */
cs_status cs_onnx_text(cs_onnx_node *node, const char *name, const char *fallback, char *out,
                       size_t size) CS_MUST_USE;
/* Refuses another value than the one given. */
cs_status cs_onnx_want_int(cs_onnx_node *node, const char *name, int64_t fallback,
                           int64_t wanted) CS_MUST_USE;
/* A number: an attribute before opset 11, then a constant scalar; left as it is where there is
 * none. */
cs_status cs_onnx_scalar(cs_onnx_node *node, const char *name, size_t i, double *out) CS_MUST_USE;
/* A list of at most `most` integers that is an attribute before opset `since` and constant input i
 * from then on; INT64's ends are cut to those of extents. *n is −1 where there is none. */
cs_status cs_onnx_list(cs_onnx_node *node, const char *name, size_t i, int64_t since, int most,
                       int64_t *out, int *n) CS_MUST_USE;
/* A list of numbers as a constant input; *n as above. */
cs_status cs_onnx_reals(cs_onnx_node *node, const char *name, size_t i, int most, double *out,
                        int *n) CS_MUST_USE;
/* A list of axes that is an attribute before opset `since` and constant input i from then on; made
 * non-negative for `rank`. *n is −1 where there is none. */
cs_status cs_onnx_axes(cs_onnx_node *node, size_t i, int64_t since, int rank,
                       int64_t axes[CS_MAX_RANK], int *n) CS_MUST_USE;

/* ---- fold.c, fold_ops.c ---- */
/* Reads a constant's elements for folding; *out is NULL where they are too many. */
cs_status cs_onnx_items(cs_onnx_import *import, cs_onnx_value *value,
                        const cs_onnx_item **out) CS_MUST_USE;
/* Tries to compute the node's output; *done is false where it is none of the folded operators, or
 * has an input that the network computes. */
cs_status cs_onnx_fold(cs_onnx_node *node, bool *done) CS_MUST_USE;
/* The node's output is a constant of these items, which are taken over. */
void cs_onnx_give_items(cs_onnx_node *node, int32_t dtype, const cs_shape *shape,
                        cs_onnx_item *items);
/* … is a constant all of whose elements are `fill`. */
cs_status cs_onnx_give_fill(cs_onnx_node *node, int32_t dtype, const cs_shape *shape,
                            cs_onnx_item fill) CS_MUST_USE;
/* … is that constant, maybe of another shape or type. */
cs_status cs_onnx_give_alias(cs_onnx_node *node, const cs_onnx_value *from, const cs_shape *shape,
                             int32_t dtype) CS_MUST_USE;
int64_t cs_onnx_count(const cs_shape *shape);

/* keepdims and axes (an attribute before opset `since`); n_axes is 0 for all, −1 for none. */
cs_status cs_onnx_read_reduce(cs_onnx_node *node, int64_t since, int rank,
                              cs_reduce_attrs *out) CS_MUST_USE;
/* weight · x + bias per channel of [N, C] or [N, C, H, W]; NULL: 1 or 0. */
cs_status cs_onnx_emit_affine(cs_onnx_node *node, const char *suffix, const cs_onnx_data *input,
                              const cs_onnx_value *weight, const cs_onnx_value *bias,
                              cs_onnx_data *out) CS_MUST_USE;
/* An operator of one or two tensors on the way to what the node computes, called <node>/<operator>.
 * `b` NULL: of one. */
cs_status cs_onnx_step(cs_onnx_node *node, cs_op op, const cs_attrs *attrs, const cs_onnx_data *a,
                       const cs_onnx_data *b, cs_onnx_data *out) CS_MUST_USE;
/* A binary operator of a tensor and one number; named as cs_onnx_emit does. */
cs_status cs_onnx_emit_number(cs_onnx_node *node, const char *suffix, cs_op op,
                              const cs_onnx_data *a, double number, bool number_first,
                              cs_onnx_data *out) CS_MUST_USE;

/* ---- The operators ---- */
typedef struct cs_onnx_operator {
  const char *name;
  cs_status (*convert)(cs_onnx_node *node); /* NULL: only folded */
  int min_inputs, max_inputs;
  /* Attributes that are known, separated by spaces, each with the opsets that have it unless all
   * do: "axes:-12" until 12, "training_mode:14-" from 14 on. "#1:13-" is said of input 1, "*:14-"
   * of the operator itself. */
  const char *attributes;
} cs_onnx_operator;
/* NULL: not known. */
const cs_onnx_operator *cs_onnx_operator_of(const char *name);

cs_status cs_onnx_conv(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_conv_transpose(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_pool(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_global_pool(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_gemm(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_matmul(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_batch_norm(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_unary(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_gelu(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_clip(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_binary(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_nary(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_softmax(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_lrn(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_concat(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_pad(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_identity(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_dropout(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_cast(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_flatten(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_reshape(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_squeeze(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_layer_norm(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_group_norm(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_reduce_norm(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_reciprocal(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_mish(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_softsign(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_instance_norm(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_reduce(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_transpose(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_unsqueeze(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_depth_to_space(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_space_to_depth(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_slice(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_split(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_gather(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_tile(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_expand(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_resize(cs_onnx_node *node) CS_MUST_USE;
cs_status cs_onnx_upsample(cs_onnx_node *node) CS_MUST_USE;

/* Whether a MatMul is a layer: the last of two to four axes times a constant matrix, in a file that
 * is not our own. */
bool cs_onnx_is_layer(const cs_onnx_node *node);
/* … and one that is none. */
cs_status cs_onnx_product(cs_onnx_node *node) CS_MUST_USE;
/* A tensor of one spatial axis becomes images of one row, [N, C, 1, L] (*row), by a Reshape; one of
 * two stays. Others are refused; *good: it is there. */
cs_status cs_onnx_as_images(cs_onnx_node *node, cs_onnx_data *data, bool *row,
                            bool *good) CS_MUST_USE;
/* The node's output is that tensor, without the row's axis where there was a `row`. */
cs_status cs_onnx_give_images(cs_onnx_node *node, const cs_onnx_data *data, bool row) CS_MUST_USE;
/* Starts, ends, axes and steps, axes made non-negative, bounds as they are given. */
cs_status cs_onnx_read_slice(cs_onnx_node *node, int rank, cs_slice_attrs *slice) CS_MUST_USE;
/* The input under another shape: nothing, a Flatten or a Reshape. */
cs_status cs_onnx_as_shape(cs_onnx_node *node, const cs_onnx_data *input,
                           const cs_shape *wanted) CS_MUST_USE;

#endif
