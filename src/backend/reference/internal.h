/* What the files of the reference share: one operation's arguments, and a loop per family. */
#ifndef CONVSCHED_BACKEND_REFERENCE_INTERNAL_H_
#define CONVSCHED_BACKEND_REFERENCE_INTERNAL_H_

#include "graph/functions.h"
#include "graph/op.h"

typedef struct ref_args {
  const cs_op_desc *desc;
  const double *const *inputs;
  const float *weight, *bias;
  double *value, *magnitude; /* magnitude may be NULL */
  /* Of the first input, where a prologue summed it; NULL: its absolute values. */
  const double *input_magnitude;
} ref_args;

/* Each fills value and magnitude without bias, residual and fused activation, for one `plane`: an
 * independent part of the output of ref_plane_elements() consecutive elements. */
void ref_conv_plane(const ref_args *args, int64_t plane);
void ref_conv_transpose_plane(const ref_args *args, int64_t plane);
void ref_gemm_plane(const ref_args *args, int64_t plane);
void ref_matmul_plane(const ref_args *args, int64_t plane);
void ref_pool_plane(const ref_args *args, int64_t plane);
void ref_global_pool_plane(const ref_args *args, int64_t plane);
void ref_lrn_plane(const ref_args *args, int64_t plane);
void ref_batch_norm_plane(const ref_args *args, int64_t plane);
void ref_pad_plane(const ref_args *args, int64_t plane);
void ref_move_plane(const ref_args *args, int64_t plane);
void ref_resize_plane(const ref_args *args, int64_t plane);
void ref_pointwise_plane(const ref_args *args, int64_t plane);
void ref_reduce_plane(const ref_args *args, int64_t plane);
void ref_instance_norm_plane(const ref_args *args, int64_t plane);
void ref_binary_plane(const ref_args *args, int64_t plane);
void ref_softmax_plane(const ref_args *args, int64_t plane);

/* What the prologue makes of the first input, and the magnitudes of that; free() releases both,
 * also after an error. */
cs_status ref_apply_prologue(const ref_args *args, int threads, double **value,
                             double **magnitude) CS_MUST_USE;

static inline void ref_store(const ref_args *args, int64_t at, double value, double magnitude) {
  args->value[at] = value;
  if (args->magnitude) args->magnitude[at] = magnitude;
}

#endif
