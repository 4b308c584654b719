/* Parameters: a store of named f32 arrays, read from safetensors or generated from a seed, and the
 * weights of a node after the passes' folding. */
#ifndef CONVSCHED_RUNTIME_PARAMS_H_
#define CONVSCHED_RUNTIME_PARAMS_H_

#include "graph/graph.h"

typedef struct cs_params cs_params; /* immutable once made */

/* Reads a safetensors file and takes what `graph` (as written) needs; f16 and bf16 are widened.
 * Extra tensors are allowed (their count is given); missing names, wrong shapes, unknown dtypes,
 * overlaps, holes, offsets past the end, duplicate names are BAD_INPUT naming file and tensor. */
cs_status cs_params_load(const cs_graph *graph, const char *path, int *n_extra,
                         cs_params **out) CS_MUST_USE;
/* Those that came with the graph (graph->param_source). */
cs_status cs_params_from_source(const cs_graph *graph, cs_params **out) CS_MUST_USE;
/* Counter-based from (seed, parameter name): independent of order, threads and passes. Variance
 * preserving; residual branches scaled. docs/weights.md gives the rule. */
cs_status cs_params_generate(const cs_graph *graph, uint64_t seed, cs_params **out) CS_MUST_USE;
void cs_params_destroy(cs_params *params);
/* The random input that is used where none is given: N(0, 1), from (seed, input name);
 * docs/weights.md gives the rule. `count` elements, row-major. */
void cs_input_generate(const char *name, uint64_t seed, float *out, int64_t count);
/* f32 data of a parameter; NULL if there is none of that name. */
const float *cs_params_get(const cs_params *params, const char *name, int64_t *count);
/* Writes all as safetensors (dtype f32, f16 or bf16). */
cs_status cs_params_save(const cs_params *params, cs_dtype dtype, const char *path) CS_MUST_USE;

/* Weight and bias of a node of the passed graph with its folds applied (in double, stored f32), in
 * the shapes of cs_op_desc (a prologue's scale and shift behind the bias). NULL where the operation
 * has none. free() releases both. */
cs_status cs_params_of_node(const cs_params *params, const cs_graph *graph, int node,
                            float **weight, int64_t *n_weight, float **bias,
                            int64_t *n_bias) CS_MUST_USE;

/* ---- Arrays in files ---- */

/* .npy (f4, f8, f2, u1; C order) or raw little-endian f32, by extension. `want`: the shape it must
 * have (BAD_INPUT otherwise). free() releases *out. */
cs_status cs_array_read(const char *path, const cs_shape *want, float **out) CS_MUST_USE;
cs_status cs_array_write(const char *path, const cs_shape *shape, const float *data) CS_MUST_USE;

#endif
