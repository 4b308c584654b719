/* The prologue of a convolution, on its whole input by definition. Nothing is rounded to the
 * storage type in between, as a device does: the tolerance knows of that. */
#include <math.h>
#include <stdlib.h>

#include "backend/reference/internal.h"

typedef struct prologue_work {
  const ref_args *args;
  double *value, *magnitude;
} prologue_work;

static cs_status apply_plane(void *user, int64_t plane, int worker) {
  (void)worker;
  const prologue_work *work = user;
  const cs_op_desc *d = work->args->desc;
  const int64_t *in = d->inputs[0].shape.dims;
  const float *scale = cs_op_prologue(d, work->args->bias), *shift = scale + in[1];
  int64_t c = plane % in[1], elements = in[2] * in[3];
  for (int64_t at = plane * elements; at < (plane + 1) * elements; at++) {
    double product = scale[c] * work->args->inputs[0][at];
    work->value[at] = ref_activation(d->prologue, product + shift[c]);
    work->magnitude[at] = fabs(product) + fabs((double)shift[c]);
  }
  return CS_OK;
}

cs_status ref_apply_prologue(const ref_args *args, int threads, double **value,
                             double **magnitude) {
  const int64_t *in = args->desc->inputs[0].shape.dims;
  size_t elements = (size_t)(in[0] * in[1] * in[2] * in[3]);
  *value = cs_calloc(elements, sizeof **value);
  *magnitude = cs_calloc(elements, sizeof **magnitude);
  if (!*value || !*magnitude) return cs_no_memory("a prologue", 2 * elements * sizeof **value);
  prologue_work work = {args, *value, *magnitude};
  return cs_parallel_for(in[0] * in[1], threads, apply_plane, &work);
}
