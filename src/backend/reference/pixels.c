/* Tensors as pictures, on the host. */
#include <math.h>

#include "backend/reference/reference.h"
#include "graph/pixels.h"

#define MOST_THREADS 8 /* more wait for memory */

typedef struct conversion {
  const cs_tensor_desc *desc;
  const void *memory;
  uint8_t *out;
} conversion;

static uint8_t pixel_of(float x) {
  float scaled = CS_PIXEL_SCALED(x);
  if (!(scaled > 0)) return 0; /* a NaN, too */
  return scaled < 255 ? (uint8_t)lrintf(scaled) : 255;
}

static cs_status convert_picture(void *user, int64_t index, int worker) {
  (void)worker;
  const conversion *work = user;
  const int64_t *dims = work->desc->shape.dims;
  uint8_t *out = work->out + index * dims[1] * dims[2] * dims[3];
  for (int64_t h = 0; h < dims[2]; h++) {
    for (int64_t w = 0; w < dims[3]; w++) {
      for (int64_t c = 0; c < dims[1]; c++) {
        int64_t at = cs_tensor_offset4(work->desc, index, c, h, w);
        *out++ = pixel_of(cs_tensor_element(work->memory, at, work->desc->dtype));
      }
    }
  }
  return CS_OK;
}

cs_status cs_tensor_to_pixels(const cs_tensor_desc *desc, const void *memory, uint8_t *out) {
  conversion work = {desc, memory, out};
  int threads = cs_cpu_count() < MOST_THREADS ? cs_cpu_count() : MOST_THREADS;
  return cs_parallel_for(desc->shape.dims[0], threads, convert_picture, &work);
}
