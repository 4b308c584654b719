/* The parameters of an imported graph: where in the model's files each is, and what is done to it
 * on the way to PyTorch's shape. */
#ifndef CONVSCHED_ONNX_PARAMS_H_
#define CONVSCHED_ONNX_PARAMS_H_

#include "graph/graph.h"
#include "graph/index.h"
#include "onnx/model.h"

typedef struct cs_onnx_param {
  bool has_tensor; /* else the elements are `values`, or where that is NULL all of them `fill` */
  float *values;   /* owned by the list that the parameter is in */
  cs_onnx_tensor tensor;
  bool transposed;       /* a matrix of rows × columns, stored as columns × rows */
  int64_t rows, columns; /* of a transposed one */
  double scale, fill;    /* tensor: scale × element */
  int64_t count;         /* elements; a tensor of one element fills them all */
} cs_onnx_param;

/* A cs_param_source; owns the model's mapping. */
typedef struct cs_onnx_params {
  cs_param_source source;
  cs_onnx_model *model;
  char **names;
  cs_onnx_param *params;
  size_t n, names_capacity, capacity;
  cs_name_map by_name;
} cs_onnx_params;

cs_status cs_onnx_params_create(cs_onnx_model *model, cs_onnx_params **out) CS_MUST_USE;
void cs_onnx_params_destroy(cs_onnx_params *params); /* closes the model */
/* Takes over `name`. */
cs_status cs_onnx_params_add(cs_onnx_params *params, char *name,
                             const cs_onnx_param *param) CS_MUST_USE;

#endif
