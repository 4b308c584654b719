#include "runtime/shape_text.h"

#include <inttypes.h>
#include <stdio.h>

cs_shape_text cs_shape_to_text(const cs_shape *shape) {
  cs_shape_text out;
  size_t used = 0;
  out.text[used++] = '[';
  for (int i = 0; i < shape->rank; i++) {
    const char *separator = i ? ", " : "";
    size_t room = sizeof out.text - used;
    int n = shape->dims[i] == CS_DIM_N
                ? snprintf(out.text + used, room, "%sN", separator)
                : snprintf(out.text + used, room, "%s%" PRId64, separator, shape->dims[i]);
    used += (size_t)n;
  }
  out.text[used++] = ']';
  out.text[used] = '\0';
  return out;
}
