/* Pictures of tensors: what 8-bit pixel an element of -1 … 1 is. */
#ifndef CONVSCHED_GRAPH_PIXELS_H_
#define CONVSCHED_GRAPH_PIXELS_H_

#include "graph/op.h"

/* 0 for -1 and below, 255 for 1 and above, between them rounded to nearest, to even from half way:
 * (x + 1) · 127.5 in f32, an addition and a multiplication. A NaN is 0. Evaluated the same by hosts
 * and devices. */
#define CS_PIXEL_SCALED(x) (((x) + 1.0f) * 127.5f)

/* Whether a tensor is pictures: N×C×H×W of 1 or 3 channels. */
bool cs_pixels_shape(const cs_shape *shape);
/* Bytes of its pixels, N×H×W×C. */
int64_t cs_pixels_bytes(const cs_shape *shape);

#endif
