/* Parameters: named f32 arrays in a safetensors file, in an imported model or generated from a
 * seed, and the weights of a node after the passes' folding. Those of files stay there until they
 * are wanted, one array at a time: nothing holds all of them. */
#ifndef CONVSCHED_RUNTIME_PARAMS_H_
#define CONVSCHED_RUNTIME_PARAMS_H_

#include "graph/graph.h"

typedef struct cs_params cs_params; /* immutable once made: read by several threads */

/* Maps a safetensors file, which must not be written in place while it is open, and checks that it
 * has what `graph` (as written) needs; f16 and bf16 are widened when they are read. Extra tensors
 * are allowed (their count is given); missing names, wrong shapes, unknown dtypes, overlaps, holes,
 * offsets past the end, duplicate names are BAD_INPUT naming file and tensor. */
cs_status cs_params_load(const cs_graph *graph, const char *path, int *n_extra,
                         cs_params **out) CS_MUST_USE;
/* Those that came with the graph (graph->param_source), which must outlive *out. */
cs_status cs_params_from_source(const cs_graph *graph, cs_params **out) CS_MUST_USE;
/* Counter-based from (seed, parameter name): independent of order, threads and passes. Variance
 * preserving; residual branches scaled. docs/weights.md gives the rule. */
cs_status cs_params_generate(const cs_graph *graph, uint64_t seed, cs_params **out) CS_MUST_USE;
void cs_params_destroy(cs_params *params);
/* The random input that is used where none is given: N(0, 1), from (seed, input name);
 * docs/weights.md gives the rule. `count` elements, row-major. */
void cs_input_generate(const char *name, uint64_t seed, float *out, int64_t count);
/* f32 elements of a parameter, `data` until cs_params_close: the file's own where they are f32
 * there. Zero-initialise. NOT_FOUND: none of that name. IO: the file was written meanwhile. */
typedef struct cs_params_array {
  const float *data;
  int64_t count;
  float *own;                         /* what was read; NULL: `data` lie elsewhere */
  const struct cs_safetensor *tensor; /* of a mapped file; NULL: of none */
} cs_params_array;
cs_status cs_params_open(const cs_params *params, const char *name,
                         cs_params_array *out) CS_MUST_USE;
void cs_params_close(const cs_params *params, cs_params_array *array);
/* The first parameter that holds a NaN or an infinity, and where (`name` NULL: none does). */
typedef struct cs_not_finite {
  const char *name; /* the parameters' own */
  int64_t element;
  float value;
} cs_not_finite;
cs_status cs_params_find_not_finite(const cs_params *params, cs_not_finite *out) CS_MUST_USE;
/* Writes all as safetensors (dtype f32, f16 or bf16). */
cs_status cs_params_save(const cs_params *params, cs_dtype dtype, const char *path) CS_MUST_USE;

/* Weight and bias of a node of the passed graph with its folds applied (in double, stored f32), in
 * the shapes of cs_op_desc (a prologue's scale and shift behind the bias). NULL where the operation
 * has none. A weight that nothing is folded into is the parameter itself. */
typedef struct cs_node_params {
  const float *weight, *bias;
  int64_t n_weight, n_bias;
  cs_params_array raw;          /* what `weight` is where nothing is folded into it */
  float *own_weight, *own_bias; /* folded */
} cs_node_params;
cs_status cs_node_params_open(const cs_params *params, const cs_graph *graph, int node,
                              cs_node_params *out) CS_MUST_USE;
void cs_node_params_close(const cs_params *params, cs_node_params *opened);

/* ---- Arrays in files ---- */

/* .npy (f4, f8, f2, u1; C order) or raw little-endian f32, by extension. `want`: the shape it must
 * have (BAD_INPUT otherwise). free() releases *out. */
cs_status cs_array_read(const char *path, const cs_shape *want, float **out) CS_MUST_USE;
cs_status cs_array_write(const char *path, const cs_shape *shape, const float *data) CS_MUST_USE;

#endif
