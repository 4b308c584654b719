/* Own loops of what moves elements: Transpose, Slice, Pad, Resize. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/omp.h"
#include "backend/cpu/segments.h"
#include "graph/resample.h"

/* ---- Transpose, Slice ---- */

static void move_row(const cs_movement *m, const float *from, float *to) {
  int last = m->rank - 1;
  int64_t in = m->in_stride[last], out = m->out_stride[last];
  if (in == 1 && out == 1) {
    memcpy(to, from, (size_t)m->size[last] * sizeof *to);
    return;
  }
  for (int64_t i = 0; i < m->size[last]; i++) to[i * out] = from[i * in];
}

/* The axis nearest to the end along which the output's elements are neighbours goes last. */
static void longest_last(cs_movement *m) {
  int last = m->rank - 1, best = last;
  for (int i = 0; i < m->rank; i++)
    if (m->size[i] > 1 && (m->size[best] == 1 || m->out_stride[i] < m->out_stride[best])) best = i;
  int64_t *arrays[] = {m->size, m->in_stride, m->out_stride};
  for (int a = 0; a < 3; a++) {
    int64_t kept = arrays[a][last];
    arrays[a][last] = arrays[a][best], arrays[a][best] = kept;
  }
}

void cpu_loop_move(const cs_op_desc *desc, const float *input, float *output) {
  cs_movement m;
  if (!cs_op_movement(desc, &m)) return; /* cpu_loop_exists has asked */
  longest_last(&m);
  int64_t rows = 1;
  for (int i = 0; i + 1 < m.rank; i++) rows *= m.size[i];
  CPU_PARALLEL_FOR
  for (int64_t row = 0; row < rows; row++) {
    int64_t in = m.in_offset, out = 0, rest = row;
    for (int i = m.rank - 2; i >= 0; i--) {
      in += rest % m.size[i] * m.in_stride[i];
      out += rest % m.size[i] * m.out_stride[i];
      rest /= m.size[i];
    }
    move_row(&m, input + in, output + out);
  }
}

/* ---- Pad ---- */

typedef struct pad_args {
  const cs_pad_attrs *pad;
  cs_tensor_desc in, out; /* rank 4 */
} pad_args;

static int64_t pad_from(const pad_args *a, int axis, int64_t i) {
  if (axis >= a->pad->rank) return i;
  int64_t begin = a->pad->pads[axis], end = a->pad->pads[a->pad->rank + axis];
  return cs_pad_source(a->pad->mode, i - begin, cs_max_i64(0, -begin),
                       a->in.shape.dims[axis] + cs_min_i64(0, end));
}

void cpu_loop_pad(const cs_op_desc *desc, const float *input, float *output) {
  pad_args a = {&desc->attrs.pad, cpu_as_rank4(&desc->inputs[0]), cpu_as_rank4(&desc->output)};
  const int64_t *dims = a.out.shape.dims;
  int64_t rows = dims[0] * dims[1] * dims[2];
  CPU_PARALLEL_FOR
  for (int64_t row = 0; row < rows; row++) {
    int64_t at[3] = {row / dims[2] / dims[1], row / dims[2] % dims[1], row % dims[2]}, from[3];
    bool inside = true;
    for (int axis = 0; axis < 3; axis++) {
      from[axis] = pad_from(&a, axis, at[axis]);
      inside = inside && from[axis] >= 0;
    }
    for (int64_t w = 0; w < dims[3]; w++) {
      int64_t x = inside ? pad_from(&a, 3, w) : -1;
      output[cs_tensor_offset4(&a.out, at[0], at[1], at[2], w)] =
          x < 0 ? (float)a.pad->value
                : input[cs_tensor_offset4(&a.in, from[0], from[1], from[2], x)];
    }
  }
}

/* ---- Resize ---- */

/* Channels that share a weight: it is computed once for them. */
#define RESIZE_CHANNELS 16

typedef struct resize_args {
  const cs_op_desc *desc;
  cs_resize_axis axes[2];
  const float *input;
} resize_args;

/* The pixel of `count` channels: elements lie offset[k] + y · strides[2] + x · strides[3] from the
 * input's start. */
static void resize_sums(const resize_args *a, const cs_resize_window windows[2], int64_t count,
                        const int64_t offset[RESIZE_CHANNELS], double sum[RESIZE_CHANNELS]) {
  const int64_t *strides = a->desc->inputs[0].strides;
  for (int64_t k = 0; k < count; k++) sum[k] = 0;
  for (int64_t r = 0; r < windows[0].n; r++) {
    int64_t y = cs_resize_inside(&a->axes[0], windows[0].first + r);
    double down = cs_resize_weight(&a->axes[0], &windows[0], r);
    for (int64_t s = 0; s < windows[1].n; s++) {
      int64_t x = cs_resize_inside(&a->axes[1], windows[1].first + s);
      double weight = down * cs_resize_weight(&a->axes[1], &windows[1], s);
      const float *from = a->input + y * strides[2] + x * strides[3];
      for (int64_t k = 0; k < count; k++) sum[k] += weight * (double)from[offset[k]];
    }
  }
}

static void resize_pixel(const resize_args *a, const cs_resize_window windows[2],
                         const int64_t at[3], float *output) {
  const cs_tensor_desc *in = &a->desc->inputs[0], *out = &a->desc->output;
  int64_t channels = out->shape.dims[1], offset[RESIZE_CHANNELS];
  double sum[RESIZE_CHANNELS];
  bool outside = windows[0].n == 0 || windows[1].n == 0;
  for (int64_t first = 0; first < channels; first += RESIZE_CHANNELS) {
    int64_t count = cs_min_i64(RESIZE_CHANNELS, channels - first);
    for (int64_t k = 0; k < count; k++) {
      offset[k] = cs_tensor_offset4(in, at[0], first + k, 0, 0);
      sum[k] = a->desc->attrs.resize.extrapolation_value;
    }
    if (!outside) resize_sums(a, windows, count, offset, sum);
    for (int64_t k = 0; k < count; k++)
      output[cs_tensor_offset4(out, at[0], first + k, at[1], at[2])] = (float)sum[k];
  }
}

void cpu_loop_resize(const cs_op_desc *desc, const float *input, float *output) {
  const int64_t *dims = desc->output.shape.dims;
  resize_args a = {.desc = desc, .input = input};
  for (int i = 0; i < 2; i++) cs_resize_axis_of(desc, i, &a.axes[i]);
  int64_t rows = dims[0] * dims[2];
  CPU_PARALLEL_FOR
  for (int64_t row = 0; row < rows; row++) {
    int64_t n = row / dims[2], h = row % dims[2];
    cs_resize_window windows[2];
    windows[0] = cs_resize_window_of(&a.axes[0], h);
    for (int64_t w = 0; w < dims[3]; w++) {
      windows[1] = cs_resize_window_of(&a.axes[1], w);
      resize_pixel(&a, windows, (const int64_t[]){n, h, w}, output);
    }
  }
}
