/* What an operator family implements: attributes, shape inference, parameters, work. One table row
 * per operator (op.c); to add an operator: one line in CS_OPS, one row, one family. */
#ifndef CONVSCHED_GRAPH_OP_FAMILY_H_
#define CONVSCHED_GRAPH_OP_FAMILY_H_

#include "graph/op.h"

/* Extents and attributes are at most this, so that windows and offsets cannot overflow. */
#define CS_MAX_EXTENT INT64_C(2147483647)

/* Where a message points: `source` (file), node index in the file (-1: not known), node name. */
typedef struct cs_place {
  const char *source;
  int node;
  const char *name;
} cs_place;
/* BAD_INPUT "source: nodes[3].key (node "name"): text"; `key` may be NULL. */
cs_status cs_place_error(const cs_place *place, const char *key, const char *format, ...)
    CS_PRINTF(3, 4) CS_NEVER_OK CS_MUST_USE;

/* Short texts for messages. */
#define CS_TEXT_SIZE 160
const char *cs_shape_text(const cs_shape *shape, char text[CS_TEXT_SIZE]);
const char *cs_json_found(const json_t *json, char text[CS_TEXT_SIZE]); /* "nothing" for NULL */

/* Reads attributes strictly: wrong types and ranges are errors, and finish() refuses every key that
 * was not asked for. */
typedef struct cs_attr_reader {
  const cs_place *place;
  const json_t *object; /* NULL: no attributes given */
  const char *known[12];
  int n_known;
} cs_attr_reader;
#define CS_ATTR_REQUIRED INT64_MIN
cs_status cs_attr_int(cs_attr_reader *reader, const char *key, int64_t fallback, int64_t min,
                      int64_t max, int64_t *out) CS_MUST_USE;
/* A list of exactly n integers; `fallback` fills them all. */
cs_status cs_attr_ints(cs_attr_reader *reader, const char *key, int n, int64_t fallback,
                       int64_t min, int64_t max, int64_t *out) CS_MUST_USE;
/* A list of 1 to CS_MAX_RANK integers; nothing given leaves *n at 0. */
cs_status cs_attr_list(cs_attr_reader *reader, const char *key, int64_t min, int64_t max,
                       int64_t out[CS_MAX_RANK], int *n) CS_MUST_USE;
/* A list of 2 to twice CS_MAX_RANK integers. */
cs_status cs_attr_pairs(cs_attr_reader *reader, const char *key, int64_t min, int64_t max,
                        int64_t out[2 * CS_MAX_RANK], int *n) CS_MUST_USE;
/* A list of 1 to CS_MAX_RANK extents; nothing given leaves rank 0. */
cs_status cs_attr_shape(cs_attr_reader *reader, const char *key, cs_shape *out) CS_MUST_USE;
/* The same where the first extent may be the batch "N". */
cs_status cs_attr_batch_shape(cs_attr_reader *reader, const char *key, cs_shape *out) CS_MUST_USE;
/* One of n names: its index. */
cs_status cs_attr_choice(cs_attr_reader *reader, const char *key, const char *const *names, int n,
                         int fallback, int *out) CS_MUST_USE;
/* A list of exactly n numbers; `fallback` fills them all. */
cs_status cs_attr_doubles(cs_attr_reader *reader, const char *key, int n, double fallback,
                          double *out) CS_MUST_USE;
cs_status cs_attr_bool(cs_attr_reader *reader, const char *key, bool fallback,
                       bool *out) CS_MUST_USE;
cs_status cs_attr_double(cs_attr_reader *reader, const char *key, double fallback,
                         double *out) CS_MUST_USE;
cs_status cs_attr_finish(cs_attr_reader *reader) CS_MUST_USE;
/* JSON array of n integers or numbers; NULL on failure. */
json_t *cs_attr_save_ints(const int64_t *values, int n);
json_t *cs_attr_save_doubles(const double *values, int n);
/* Extents, with "N" for the batch. */
json_t *cs_attr_save_shape(const cs_shape *shape);

/* Members that are NULL: no attributes; no parameters; no products (1). */
typedef struct cs_op_family {
  int min_inputs, max_inputs; /* max_inputs < 0: any number */
  cs_status (*parse)(cs_attr_reader *reader, cs_op op, cs_attrs *attrs);
  /* Sets every attribute in `object`; -1 on failure (jansson's convention). */
  int (*save)(cs_op op, const cs_attrs *attrs, json_t *object);
  /* Checks the inputs against the attributes and gives the output's shape; makes axes
   * non-negative. dims[0] may be CS_DIM_N. */
  cs_status (*infer)(const cs_place *place, cs_op op, cs_attrs *attrs, const cs_shape *inputs,
                     int n_inputs, cs_shape *out);
  cs_shape (*weight_shape)(cs_op op, const cs_attrs *attrs, const cs_shape *input);
  bool (*has_bias)(const cs_attrs *attrs);
  double (*flops)(const cs_op_desc *desc);
  int64_t (*reduction)(const cs_op_desc *desc);
  /* Elements of its inputs that are read, where that may be fewer than there are. */
  double (*reads)(const cs_op_desc *desc);
  /* Attributes that matter for a signature, each preceded by a space. */
  void (*sign)(cs_op op, const cs_attrs *attrs, cs_strbuf *out);
} cs_op_family;

const cs_op_family *cs_op_family_of(cs_op op);

/* An operator of one number: the names and defaults of its attributes, alpha's first. */
typedef struct cs_unary_info {
  cs_act_kind act; /* CS_ACT_NONE: it is no such operator */
  const char *names[2];
  double defaults[2];
} cs_unary_info;
const cs_unary_info *cs_op_unary(cs_op op);

extern const cs_op_family cs_family_conv, cs_family_conv_transpose, cs_family_gemm,
    cs_family_matmul, cs_family_pool, cs_family_global_pool, cs_family_unary, cs_family_binary,
    cs_family_batch_norm, cs_family_lrn, cs_family_softmax, cs_family_concat, cs_family_flatten,
    cs_family_pad, cs_family_identity, cs_family_copy, cs_family_reduce, cs_family_instance_norm,
    cs_family_reshape, cs_family_transpose, cs_family_slice, cs_family_resize;

/* What operators of two inputs, or of one and a constant, share: the constant's attributes, and as
 * many inputs as go with it. */
cs_status cs_operand_parse(cs_attr_reader *reader, cs_op op, cs_attrs *attrs) CS_MUST_USE;
int cs_operand_save(cs_op op, const cs_attrs *attrs, json_t *object);
cs_status cs_operand_want_inputs(const cs_place *place, cs_op op, const cs_attrs *attrs,
                                 int n_inputs) CS_MUST_USE;
cs_shape cs_operand_shape(cs_op op, const cs_attrs *attrs, const cs_shape *input);
void cs_operand_sign(cs_op op, const cs_attrs *attrs, cs_strbuf *out);

/* Shape checks that families share. */
cs_status cs_want_rank(const cs_place *place, const cs_shape *input, int rank) CS_MUST_USE;
/* BAD_INPUT unless f32 elements and the padding lanes of blocked layouts have room in 63 bits of
 * bytes; a symbolic batch counts as one. */
cs_status cs_shape_fits(const cs_shape *shape) CS_MUST_USE;
/* Makes an axis of a tensor of `rank` axes non-negative; at most `max`. */
cs_status cs_make_axis(const cs_place *place, int64_t *axis, int rank, int max) CS_MUST_USE;
/* Elements of an input of the output's rank of which one place along an axis reads at most `taps`.
 */
double cs_window_reads(const cs_op_desc *desc, int64_t taps);
/* " label=2x3" */
void cs_shape_sign(const char *label, const cs_shape *shape, cs_strbuf *out);
/* The output is as the input. */
cs_status cs_same_infer(const cs_place *place, cs_op op, cs_attrs *attrs, const cs_shape *inputs,
                        int n_inputs, cs_shape *out) CS_MUST_USE;

/* A window that slides over H and W (Conv, pooling). */
typedef struct cs_window {
  const int64_t *kernel, *strides, *pads, *dilations; /* pads: top, left, bottom, right */
  bool ceil_mode;
} cs_window;
/* Fills the extents of H and W of a rank-4 output. */
cs_status cs_window_infer(const cs_place *place, const cs_window *window, const cs_shape *input,
                          cs_shape *out) CS_MUST_USE;
/* " k=3x3 s=1x1 p=1,1,1,1 d=1x1" */
void cs_window_sign(const cs_window *window, cs_strbuf *out);
/* Elements of a shape as a double (work, not sizes). */
double cs_shape_count(const cs_shape *shape);

/* Shape, attribute and size checks of one node, as loading, binding and passes need it. */
cs_status cs_op_infer(const cs_place *place, cs_op op, cs_attrs *attrs, const cs_shape *inputs,
                      int n_inputs, cs_shape *out) CS_MUST_USE;
bool cs_op_has_weight(cs_op op);
bool cs_op_has_bias(cs_op op, const cs_attrs *attrs);
cs_shape cs_op_param_shape(cs_op op, const cs_attrs *attrs, const cs_shape *input);
/* Attributes as compact text, for signatures and hashes. */
void cs_op_sign_attrs(cs_op op, const cs_attrs *attrs, cs_strbuf *out);

#endif
