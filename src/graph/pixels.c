#include "graph/pixels.h"

bool cs_pixels_shape(const cs_shape *shape) {
  return shape->rank == 4 && (shape->dims[1] == 1 || shape->dims[1] == 3);
}

int64_t cs_pixels_bytes(const cs_shape *shape) {
  return shape->dims[0] * shape->dims[1] * shape->dims[2] * shape->dims[3];
}
