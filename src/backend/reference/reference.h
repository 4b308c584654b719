/* The plain C reference: every operation with double accumulation, straight from its definition,
 * one loop nest each, no cleverness. Every other implementation is checked against it. */
#ifndef CONVSCHED_BACKEND_REFERENCE_H_
#define CONVSCHED_BACKEND_REFERENCE_H_

#include "backend/error_measure.h"
#include "graph/op.h"

/* `inputs`: logical row-major (NCHW) doubles, in the shapes of desc->inputs. `weight`, `bias`: as
 * in cs_op_desc (NULL where there is none). Writes the output and, unless `magnitude` is NULL, the
 * sum of the absolute values of what was summed for each element, both logical row-major. Uses up
 * to `threads` threads (0: all cores). desc's strides, dtypes and layouts are ignored. */
cs_status cs_reference_run(const cs_op_desc *desc, const double *const *inputs, const float *weight,
                           const float *bias, double *value, double *magnitude,
                           int threads) CS_MUST_USE;

/* Host conversion between a tensor as a device holds it and logical row-major f32/f64. Padding
 * lanes of blocked layouts are written as zeros. */
void cs_tensor_to_f32(const cs_tensor_desc *desc, const void *memory, float *out);
/* The element that lies at an offset in elements. */
float cs_tensor_element(const void *memory, int64_t at, cs_dtype dtype);
/* N×C×H×W of one channel or three as 8-bit pixels N×H×W×C (graph/pixels.h), on several cores. */
cs_status cs_tensor_to_pixels(const cs_tensor_desc *desc, const void *memory,
                              uint8_t *out) CS_MUST_USE;
void cs_tensor_to_f64(const cs_tensor_desc *desc, const void *memory, double *out);
void cs_tensor_from_f32(const cs_tensor_desc *desc, const float *in, void *memory);
/* Rounds f32 values to what the storage type keeps (f32: nothing changes). */
void cs_round_to_dtype(cs_dtype dtype, float *values, int64_t count);

/* ---- Tolerances (docs/verification.md justifies them) ---- */

/* `out`: n values of the device as f32; `value`, `magnitude`: the reference. */
cs_error_measure cs_measure_error(const float *out, const double *value, const double *magnitude,
                                  int64_t n);
/* Limits for one operation: functions of operator, precision and reduction length. `notes`: the
 * candidate's CS_NOTE_* bits (Winograd and FFT have larger constants). */
void cs_tolerance(const cs_op_desc *desc, uint32_t notes, double *rel_l2, double *max_scaled);

#endif
