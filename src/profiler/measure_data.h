/* Contents of the tensors that candidates are measured and checked with. */
#ifndef CONVSCHED_PROFILER_MEASURE_DATA_H_
#define CONVSCHED_PROFILER_MEASURE_DATA_H_

#include "graph/op.h"

/* A table of standard normal values, the same in every run; free() releases. */
cs_status cs_measure_normals(float **out) CS_MUST_USE;
/* A tensor of standard normal values (0.5 plus their absolute values where `positive`) as it lies
 * in memory (span bytes; what lies between the elements of a view is NaN). `index`: different
 * inputs get different values. */
cs_status cs_measure_make_input(const float *normals, const cs_tensor_desc *desc, int index,
                                bool positive, void **out) CS_MUST_USE;
/* Weight of variance 1 / reduction length (BatchNormalization, InstanceNormalization: a scale
 * around 1; a constant operand that wants to be positive: as an input) and bias, rounded to the
 * storage type; NULL where the operation has none. */
cs_status cs_measure_make_weights(const float *normals, const cs_op_desc *desc, float **weight,
                                  float **bias) CS_MUST_USE;

#endif
