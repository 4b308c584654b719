/* The extent of a windowed operation along one axis. */
#include "graph/op.h"

static int64_t floor_divide(int64_t a, int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

int64_t cs_window_extent(int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                         int64_t pad_begin, int64_t pad_end, bool ceil_mode) {
  int64_t free_extent = in + pad_begin + pad_end - ((kernel - 1) * dilation + 1);
  int64_t out = floor_divide(free_extent + (ceil_mode ? stride - 1 : 0), stride) + 1;
  if (ceil_mode && (out - 1) * stride >= in + pad_begin) out--;
  return out;
}
