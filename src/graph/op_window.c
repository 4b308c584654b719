/* Windows that slide over H and W: extents, signatures. */
#include "graph/op_family.h"

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

cs_status cs_window_infer(const cs_place *place, const cs_window *window, const cs_shape *input,
                          cs_shape *out) {
  for (int axis = 0; axis < 2; axis++) {
    int64_t in = input->dims[2 + axis], kernel = window->kernel[axis];
    int64_t before = window->pads[axis], after = window->pads[2 + axis];
    int64_t span = (kernel - 1) * window->dilations[axis] + 1, padded = in + before + after;
    out->dims[2 + axis] =
        cs_window_extent(in, kernel, window->strides[axis], window->dilations[axis], before, after,
                         window->ceil_mode);
    if (out->dims[2 + axis] >= 1) continue;
    return cs_place_error(
        place, "attrs.kernel_shape",
        "found a window of %lld (dilated) along %s, wanted one that fits into the padded %lld",
        (long long)span, axis ? "W" : "H", (long long)padded);
  }
  return CS_OK;
}

void cs_window_sign(const cs_window *window, cs_strbuf *out) {
  const int64_t *k = window->kernel, *s = window->strides, *p = window->pads;
  cs_strbuf_printf(out, " k=%lldx%lld s=%lldx%lld p=%lld,%lld,%lld,%lld d=%lldx%lld",
                   (long long)k[0], (long long)k[1], (long long)s[0], (long long)s[1],
                   (long long)p[0], (long long)p[1], (long long)p[2], (long long)p[3],
                   (long long)window->dilations[0], (long long)window->dilations[1]);
}
