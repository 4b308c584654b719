/* A graph as an ONNX file: its operators are ONNX's, its parameters become initializers, and its
 * values keep their names. docs/onnx.md says what the file looks like. The structure is encoded in
 * memory, the parameters' elements are written one parameter after the other. */
#ifndef CONVSCHED_ONNX_EXPORT_H_
#define CONVSCHED_ONNX_EXPORT_H_

#include "graph/graph.h"
#include "graph/index.h"

/* Where the parameters' elements come from: one parameter is open at a time. */
typedef struct cs_onnx_elements {
  /* *out: `count` elements, row-major in PyTorch's shape, until close. */
  cs_status (*open)(void *user, const char *name, int64_t count, const float **out);
  void (*close)(void *user);
  void *user;
} cs_onnx_elements;

/* An encoded model without its parameters' elements. Zero-initialise. */
typedef struct cs_onnx_export {
  const cs_graph *graph; /* borrowed, as written */
  cs_param *params;
  int n_params;
  cs_name_map taken;   /* names of values and initializers */
  char **initializers; /* names of params, by index */
  char **owned;        /* names of other initializers, which `taken` borrows */
  size_t n_owned, owned_capacity;
  int64_t opset;
  json_t *reals;       /* of CS_ONNX_REALS_KEY */
  cs_strbuf nodes;     /* fields of a GraphProto */
  cs_strbuf constants; /* the same: initializers that are no parameters */
  cs_strbuf head;      /* all of the ModelProto before the parameters, but for the graph's tag */
  uint64_t graph_size; /* bytes of the GraphProto */
} cs_onnx_export;

/* Encodes `graph`; `note` (of the weights) goes into its documentation. BAD_INPUT: an attribute
 * that f32 cannot hold; more bytes than a protobuf message has. USAGE: a graph changed by passes.
 */
cs_status cs_onnx_export_encode(const cs_graph *graph, const char *note,
                                cs_onnx_export *out) CS_MUST_USE;
/* Replaces the file at `path`. */
cs_status cs_onnx_export_write(const cs_onnx_export *model, const cs_onnx_elements *elements,
                               const char *path) CS_MUST_USE;
void cs_onnx_export_clear(cs_onnx_export *model);

/* ---- export_ops.c ---- */
/* The least opset that is written: reductions and Pad have the inputs they have since. */
#define CS_ONNX_EXPORT_OPSET 18
/* Appends the node to model->nodes, what of its attributes are inputs in ONNX to model->constants,
 * and raises model->opset to what it needs. `param`: the index of its first parameter of n_params.
 */
cs_status cs_onnx_export_node(cs_onnx_export *model, const cs_node *node, int param,
                              int n_params) CS_MUST_USE;
/* Whether there is a way to write the operator. */
bool cs_onnx_exports(cs_op op);

/* ---- export.c, for export_ops.c ---- */
/* A new name for an initializer: `wanted`, or with a number behind it where a value is called that.
 * *out lives as long as the model. */
cs_status cs_onnx_export_name(cs_onnx_export *model, const char *node, const char *what,
                              const char **out) CS_MUST_USE;
/* dims, type and name of a TensorProto. */
void cs_onnx_export_tensor(cs_strbuf *out, const char *name, int32_t dtype, const cs_shape *shape);

/* ---- export_fields.c: fields of a node, appended to `out` ---- */
void cs_onnx_put_int(cs_strbuf *out, const char *name, int64_t value);
void cs_onnx_put_ints(cs_strbuf *out, const char *name, const json_t *list);
/* Attributes of these names, each followed by a space, that the node has. */
cs_status cs_onnx_put_attributes(cs_onnx_export *model, const cs_node *node, const char *names,
                                 cs_strbuf *out) CS_MUST_USE;
/* Inputs <node>.<what>: a list of integers, a number, a list of at most 4 numbers. */
cs_status cs_onnx_put_list(cs_onnx_export *model, const cs_node *node, const char *what,
                           const int64_t *values, int n, cs_strbuf *out) CS_MUST_USE;
cs_status cs_onnx_put_number(cs_onnx_export *model, const cs_node *node, const char *what,
                             double value, cs_strbuf *out) CS_MUST_USE;
cs_status cs_onnx_put_numbers(cs_onnx_export *model, const cs_node *node, const char *what,
                              const double *values, int n, cs_strbuf *out) CS_MUST_USE;

/* Field numbers of ONNX's messages. */
enum {
  CS_MODEL_IR_VERSION = 1,
  CS_MODEL_PRODUCER_NAME = 2,
  CS_MODEL_PRODUCER_VERSION = 3,
  CS_MODEL_DOC = 6,
  CS_MODEL_GRAPH = 7,
  CS_MODEL_OPSET = 8,
  CS_MODEL_METADATA = 14,
  CS_OPSET_VERSION = 2,
  CS_ENTRY_KEY = 1,
  CS_ENTRY_VALUE = 2,
  CS_GRAPH_NODE = 1,
  CS_GRAPH_NAME = 2,
  CS_GRAPH_INITIALIZER = 5,
  CS_GRAPH_INPUT = 11,
  CS_GRAPH_OUTPUT = 12,
  CS_GRAPH_VALUE = 13,
  CS_NODE_INPUT = 1,
  CS_NODE_OUTPUT = 2,
  CS_NODE_NAME = 3,
  CS_NODE_OP = 4,
  CS_NODE_ATTRIBUTE = 5,
  CS_ATTRIBUTE_NAME = 1,
  CS_ATTRIBUTE_FLOAT = 2,
  CS_ATTRIBUTE_INT = 3,
  CS_ATTRIBUTE_STRING = 4,
  CS_ATTRIBUTE_INTS = 8,
  CS_ATTRIBUTE_TYPE = 20,
  CS_TENSOR_DIM = 1,
  CS_TENSOR_TYPE = 2,
  CS_TENSOR_NAME = 8,
  CS_VALUE_NAME = 1,
  CS_VALUE_TYPE = 2,
  CS_TYPE_TENSOR = 1,
  CS_TENSOR_TYPE_ELEMENT = 1,
  CS_TENSOR_TYPE_SHAPE = 2,
  CS_SHAPE_DIM = 1,
  CS_DIM_VALUE = 1,
  CS_DIM_PARAM = 2
};

#endif
