/* Nodes computed while importing. `inputs` are the node's, NULL where absent, with one NULL behind;
 * those that the table of fold.c says so have their items read. */
#ifndef CONVSCHED_ONNX_FOLD_H_
#define CONVSCHED_ONNX_FOLD_H_

#include "onnx/import.h"

cs_status cs_onnx_fold_gather(cs_onnx_node *node, cs_onnx_value *const *inputs) CS_MUST_USE;
cs_status cs_onnx_fold_slice(cs_onnx_node *node, cs_onnx_value *const *inputs) CS_MUST_USE;
/* Transpose of a constant whose items are read. */
cs_status cs_onnx_fold_permutation(cs_onnx_node *node, const cs_onnx_value *input) CS_MUST_USE;
cs_status cs_onnx_fold_concat(cs_onnx_node *node, cs_onnx_value *const *inputs) CS_MUST_USE;
/* Add, Sub, Mul, Div, Pow, Max, Min of equal shapes, or with one number. */
cs_status cs_onnx_fold_arithmetic(cs_onnx_node *node, cs_onnx_value *const *inputs) CS_MUST_USE;
/* What a type keeps of a number: f32 of a float, its low bits of a whole one; of bool, whether it
 * is not 0. */
double cs_onnx_rounded(int32_t dtype, double value);
int64_t cs_onnx_wrapped(int32_t dtype, int64_t value);
/* Clip; ReduceProd of a whole list. */
cs_status cs_onnx_fold_clip(cs_onnx_node *node, cs_onnx_value *const *inputs) CS_MUST_USE;
cs_status cs_onnx_fold_product(cs_onnx_node *node, cs_onnx_value *const *inputs) CS_MUST_USE;
/* Neg, Floor, Ceil. */
cs_status cs_onnx_fold_rounding(cs_onnx_node *node, cs_onnx_value *const *inputs) CS_MUST_USE;

#endif
