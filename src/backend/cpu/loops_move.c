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

typedef struct resize_tap {
  int n;
  int64_t first;
  double weight[CS_RESIZE_TAPS];
} resize_tap;

static float resize_element(const cs_tensor_desc *in, const cs_resize_axis axes[2],
                            const float *input, int64_t n, int64_t c, const resize_tap taps[2]) {
  double sum = 0;
  for (int r = 0; r < taps[0].n; r++)
    for (int s = 0; s < taps[1].n; s++) {
      int64_t y = cs_resize_inside(&axes[0], taps[0].first + r);
      int64_t x = cs_resize_inside(&axes[1], taps[1].first + s);
      sum +=
          taps[0].weight[r] * taps[1].weight[s] * (double)input[cs_tensor_offset4(in, n, c, y, x)];
    }
  return (float)sum;
}

void cpu_loop_resize(const cs_op_desc *desc, const float *input, float *output) {
  const cs_tensor_desc *out = &desc->output;
  const int64_t *dims = out->shape.dims;
  cs_resize_axis axes[2];
  for (int i = 0; i < 2; i++) cs_resize_axis_of(desc, i, &axes[i]);
  int64_t rows = dims[0] * dims[2];
  CPU_PARALLEL_FOR
  for (int64_t row = 0; row < rows; row++) {
    int64_t n = row / dims[2], h = row % dims[2];
    resize_tap taps[2];
    taps[0].n = cs_resize_taps(&axes[0], h, &taps[0].first, taps[0].weight);
    for (int64_t w = 0; w < dims[3]; w++) {
      taps[1].n = cs_resize_taps(&axes[1], w, &taps[1].first, taps[1].weight);
      bool outside = taps[0].n == 0 || taps[1].n == 0;
      for (int64_t c = 0; c < dims[1]; c++)
        output[cs_tensor_offset4(out, n, c, h, w)] =
            outside ? (float)desc->attrs.resize.extrapolation_value
                    : resize_element(&desc->inputs[0], axes, input, n, c, taps);
    }
  }
}
