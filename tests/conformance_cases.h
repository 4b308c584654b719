/* The table of operator cases that every backend is tested with: the same cases for the CPU and the
 * GPU, generated in a fixed order from nothing but the layouts and precisions asked for. */
#ifndef CONVSCHED_TESTS_CONFORMANCE_CASES_H_
#define CONVSCHED_TESTS_CONFORMANCE_CASES_H_

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/reference/reference.h"
#include "graph/op_family.h"

/* Where a tensor lies: `offset` bytes into an allocation of `bytes`. */
typedef struct conformance_place {
  int64_t bytes, offset;
} conformance_place;

typedef struct conformance_case {
  char name[160]; /* "conv_3x3_s2/tf32/nhwc" */
  cs_op_desc desc;
  conformance_place inputs[CS_MAX_OP_INPUTS], output;
} conformance_case;

typedef struct conformance_table {
  conformance_case *cases;
  int n, capacity;
  int n_specs;
} conformance_table;

enum {
  CC_BIAS = 1,
  CC_RESIDUAL = 2,
  CC_VIEW_IN = 4,   /* the first input is a channel slice (offset 16) */
  CC_VIEW_OUT = 8,  /* the output is a channel slice (offset 16) */
  CC_VIEW_ODD = 16, /* slices start at channel 3 where the layout's granule allows it */
  CC_VIEW_RES = 32, /* the residual is a channel slice */
  CC_INCLUDE_PAD = 64,
  CC_CEIL = 128,
  CC_PROLOGUE = 256,       /* scale, shift and Relu on the first input */
  CC_PROLOGUE_PLAIN = 512, /* scale and shift alone */
  CC_OPERAND = 1024,       /* a constant for the second input of a binary operator */
  CC_OPERAND_FIRST = 2048, /* … and it is the first operand */
};

/* Shapes and attributes of a case before layout and precision are chosen. */
typedef struct conformance_spec {
  const char *name;
  cs_op op;
  cs_attrs attrs;
  cs_activation activation;
  cs_shape input, output;
  cs_shape second; /* of the second input; rank 0: as the first */
  int n_inputs;    /* without the residual */
  int flags;
} conformance_spec;

static inline cs_shape cc_shape4(int64_t n, int64_t c, int64_t h, int64_t w) {
  return (cs_shape){.rank = 4, .dims = {n, c, h, w}};
}

static inline cs_shape cc_shape2(int64_t n, int64_t c) {
  return (cs_shape){.rank = 2, .dims = {n, c}};
}

/* Lays a tensor out, dense or as a slice of a wider parent. */
static inline cs_tensor_desc cc_place(const cs_shape *shape, cs_dtype dtype, cs_layout layout,
                                      bool view, bool odd, conformance_place *place) {
  if (shape->rank != 4) layout = CS_LAYOUT_NCHW;
  cs_tensor_desc dense = cs_tensor_dense(shape, dtype, layout);
  *place = (conformance_place){cs_tensor_span_bytes(&dense), 0};
  if (!view || shape->rank != 4) return dense;
  int64_t begin = odd && cs_layout_granule(layout) == 1 ? 3 : 16;
  cs_shape parent_shape = *shape;
  parent_shape.dims[1] = begin + (shape->dims[1] + 15) / 16 * 16 + 16;
  cs_tensor_desc parent = cs_tensor_dense(&parent_shape, dtype, layout);
  place->bytes = cs_tensor_span_bytes(&parent);
  place->offset = cs_tensor_offset4(&parent, 0, begin, 0, 0) * cs_dtype_size(dtype);
  cs_tensor_desc slice = parent;
  slice.shape = *shape;
  slice.alignment = 256;
  while (place->offset % slice.alignment != 0) slice.alignment /= 2;
  return slice;
}

static inline void cc_emit(conformance_table *table, const conformance_spec *spec,
                           cs_precision precision, cs_layout layout) {
  if (table->n == table->capacity) {
    table->capacity = table->capacity ? table->capacity * 2 : 256;
    table->cases = realloc(table->cases, (size_t)table->capacity * sizeof *table->cases);
    if (!table->cases) abort();
  }
  conformance_case *c = &table->cases[table->n++];
  memset(c, 0, sizeof *c);
  snprintf(c->name, sizeof c->name, "%s/%s/%s", spec->name, cs_precision_name(precision),
           cs_layout_name(layout));
  cs_dtype dtype = cs_precision_storage(precision);
  cs_op_desc *d = &c->desc;
  bool odd = spec->flags & CC_VIEW_ODD;
  d->op = spec->op;
  d->attrs = spec->attrs;
  d->activation = spec->activation;
  d->precision = precision;
  d->has_bias = spec->flags & CC_BIAS;
  d->has_residual = spec->flags & CC_RESIDUAL;
  d->has_prologue = spec->flags & (CC_PROLOGUE | CC_PROLOGUE_PLAIN);
  if (spec->flags & CC_PROLOGUE) d->prologue.kind = CS_ACT_RELU;
  d->n_inputs = spec->n_inputs + (d->has_residual ? 1 : 0);
  for (int i = 0; i < spec->n_inputs; i++)
    d->inputs[i] = cc_place(i == 1 && spec->second.rank ? &spec->second : &spec->input, dtype,
                            layout, i == 0 && (spec->flags & CC_VIEW_IN), odd, &c->inputs[i]);
  if (d->has_residual)
    d->inputs[spec->n_inputs] = cc_place(&spec->output, dtype, layout, spec->flags & CC_VIEW_RES,
                                         odd, &c->inputs[spec->n_inputs]);
  d->output = cc_place(&spec->output, dtype, layout, spec->flags & CC_VIEW_OUT, odd, &c->output);
}

/* One specification: every layout in f32, and the other precisions with a layout that rotates. */
static inline void cc_add(conformance_table *table, const conformance_spec *spec,
                          const cs_layout *layouts, int n_layouts) {
  static const cs_precision others[] = {CS_PRECISION_TF32, CS_PRECISION_F16, CS_PRECISION_BF16};
  int turn = table->n_specs++;
  int distinct = spec->input.rank == 4 ? n_layouts : 1;
  for (int i = 0; i < distinct; i++) cc_emit(table, spec, CS_PRECISION_F32, layouts[i]);
  for (int i = 0; i < 3; i++) cc_emit(table, spec, others[i], layouts[(turn + i) % n_layouts]);
}

typedef struct cc_context {
  conformance_table *table;
  const cs_layout *layouts;
  int n_layouts;
} cc_context;

static inline void cc_act(conformance_spec *spec, cs_act_kind kind) {
  spec->activation.kind = kind;
  if (kind == CS_ACT_LEAKY_RELU) spec->activation.alpha = 0.2;
  if (kind == CS_ACT_ELU) spec->activation.alpha = 0.7;
  if (kind == CS_ACT_SWISH) spec->activation.alpha = 1.25;
  if (kind == CS_ACT_HARD_SIGMOID) spec->activation.alpha = 0.25, spec->activation.beta = 0.4;
  if (kind == CS_ACT_CLIP) spec->activation.alpha = -0.25, spec->activation.beta = 0.5;
}

/* in: N C H W; conv: K R S, strides, pads (top left bottom right), dilations, groups. */
static inline void cc_conv(cc_context *x, const char *name, const int in[4], const int conv[3],
                           const int strides[2], const int pads[4], const int dilations[2],
                           int group, int flags, cs_act_kind act) {
  conformance_spec spec = {.name = name, .op = CS_OP_CONV, .n_inputs = 1, .flags = flags};
  cs_conv_attrs *a = &spec.attrs.conv;
  a->out_channels = conv[0], a->group = group, a->bias = flags & CC_BIAS;
  int64_t out[2];
  for (int i = 0; i < 2; i++) {
    a->kernel[i] = conv[1 + i], a->strides[i] = strides[i], a->dilations[i] = dilations[i];
    a->pads[i] = pads[i], a->pads[i + 2] = pads[i + 2];
    out[i] =
        (in[2 + i] + pads[i] + pads[i + 2] - (dilations[i] * (conv[1 + i] - 1) + 1)) / strides[i] +
        1;
  }
  spec.input = cc_shape4(in[0], in[1], in[2], in[3]);
  spec.output = cc_shape4(in[0], conv[0], out[0], out[1]);
  cc_act(&spec, act);
  cc_add(x->table, &spec, x->layouts, x->n_layouts);
}

static inline void cc_conv_transpose(cc_context *x, const char *name, const int in[4],
                                     const int conv[3], const int strides[2], const int pads[4],
                                     const int dilations[2], const int output_padding[2], int group,
                                     int flags, cs_act_kind act) {
  conformance_spec spec = {.name = name, .op = CS_OP_CONV_TRANSPOSE, .n_inputs = 1, .flags = flags};
  cs_conv_attrs *a = &spec.attrs.conv;
  a->out_channels = conv[0], a->group = group, a->bias = flags & CC_BIAS;
  int64_t out[2];
  for (int i = 0; i < 2; i++) {
    a->kernel[i] = conv[1 + i], a->strides[i] = strides[i], a->dilations[i] = dilations[i];
    a->pads[i] = pads[i], a->pads[i + 2] = pads[i + 2], a->output_padding[i] = output_padding[i];
    out[i] = (in[2 + i] - 1) * strides[i] - pads[i] - pads[i + 2] +
             dilations[i] * (conv[1 + i] - 1) + 1 + output_padding[i];
  }
  spec.input = cc_shape4(in[0], in[1], in[2], in[3]);
  spec.output = cc_shape4(in[0], conv[0], out[0], out[1]);
  cc_act(&spec, act);
  cc_add(x->table, &spec, x->layouts, x->n_layouts);
}

static inline void cc_pool(cc_context *x, cs_op op, const char *name, const int in[4],
                           const int kernel[2], const int strides[2], const int pads[4],
                           const int dilations[2], int flags) {
  conformance_spec spec = {.name = name, .op = op, .n_inputs = 1, .flags = flags};
  cs_pool_attrs *a = &spec.attrs.pool;
  a->ceil_mode = flags & CC_CEIL, a->count_include_pad = flags & CC_INCLUDE_PAD;
  int64_t out[2];
  for (int i = 0; i < 2; i++) {
    a->kernel[i] = kernel[i], a->strides[i] = strides[i], a->dilations[i] = dilations[i];
    a->pads[i] = pads[i], a->pads[i + 2] = pads[i + 2];
    out[i] = cs_window_extent(in[2 + i], kernel[i], strides[i], dilations[i], pads[i], pads[i + 2],
                              a->ceil_mode);
  }
  spec.input = cc_shape4(in[0], in[1], in[2], in[3]);
  spec.output = cc_shape4(in[0], in[1], out[0], out[1]);
  cc_add(x->table, &spec, x->layouts, x->n_layouts);
}

/* Operations whose output is shaped as their input. */
static inline void cc_same(cc_context *x, cs_op op, const char *name, cs_shape shape,
                           const cs_attrs *attrs, int n_inputs, int flags, cs_act_kind act) {
  conformance_spec spec = {.name = name, .op = op, .n_inputs = n_inputs, .flags = flags};
  if (attrs) spec.attrs = *attrs;
  spec.input = spec.output = shape;
  cc_act(&spec, act);
  cc_add(x->table, &spec, x->layouts, x->n_layouts);
}

#define CC4(a, b, c, d) ((const int[4]){a, b, c, d})
#define CC3(a, b, c) ((const int[3]){a, b, c})
#define CC2(a, b) ((const int[2]){a, b})

/* Every activation that is fused, behind what takes one. */
static inline void cc_all_fused(cc_context *x) {
  static const cs_act_kind kinds[] = {CS_ACT_ELU, CS_ACT_HARD_SIGMOID, CS_ACT_HARD_SWISH,
                                      CS_ACT_SWISH};
  const int *one = CC2(1, 1), *none = CC4(0, 0, 0, 0), *p1 = CC4(1, 1, 1, 1);
  cs_shape big = cc_shape4(2, 32, 9, 7), odd = cc_shape4(3, 13, 5, 5);
  cs_attrs bn = {.batch_norm = {1e-5}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    char name[64];
    const char *act = cs_act_name(kinds[i]);
    snprintf(name, sizeof name, "fused_%s_conv", act);
    cc_conv(x, name, CC4(2, 32, 14, 14), CC3(64, 3, 3), one, p1, one, 1, CC_BIAS, kinds[i]);
    snprintf(name, sizeof name, "fused_%s_conv_odd", act);
    cc_conv(x, name, CC4(1, 13, 7, 5), CC3(21, 1, 1), one, none, one, 1, CC_BIAS, kinds[i]);
    snprintf(name, sizeof name, "fused_%s_residual", act);
    cc_conv(x, name, CC4(2, 32, 9, 7), CC3(48, 1, 1), one, none, one, 1,
            CC_BIAS | CC_RESIDUAL | CC_VIEW_OUT, kinds[i]);
    snprintf(name, sizeof name, "fused_%s_depthwise", act);
    cc_conv(x, name, CC4(2, 32, 9, 9), CC3(32, 3, 3), one, p1, one, 32, CC_BIAS, kinds[i]);
    snprintf(name, sizeof name, "fused_%s_transposed", act);
    cc_conv_transpose(x, name, CC4(1, 16, 5, 5), CC3(16, 4, 4), CC2(2, 2), p1, one, CC2(0, 0), 1,
                      CC_BIAS, kinds[i]);
    snprintf(name, sizeof name, "fused_%s_bn", act);
    cc_same(x, CS_OP_BATCH_NORM, name, odd, &bn, 1, CC_BIAS, kinds[i]);
    snprintf(name, sizeof name, "fused_%s_sum", act);
    cc_same(x, CS_OP_ADD, name, big, NULL, 2, 0, kinds[i]);
  }
}

static inline void cc_all_conv(cc_context *x) {
  const int *one = CC2(1, 1), *two = CC2(2, 2), *none = CC4(0, 0, 0, 0), *p1 = CC4(1, 1, 1, 1);
  cc_conv(x, "conv_1x1", CC4(1, 32, 7, 7), CC3(48, 1, 1), one, none, one, 1, CC_BIAS, CS_ACT_RELU);
  cc_conv(x, "conv_1x1_plain", CC4(2, 16, 5, 9), CC3(16, 1, 1), one, none, one, 1, 0, CS_ACT_NONE);
  cc_conv(x, "conv_1x1_stride", CC4(1, 64, 8, 8), CC3(32, 1, 1), two, none, one, 1, CC_BIAS,
          CS_ACT_NONE);
  cc_conv(x, "conv_1x1_odd_channels", CC4(3, 13, 6, 5), CC3(7, 1, 1), one, none, one, 1, CC_BIAS,
          CS_ACT_RELU);
  cc_conv(x, "conv_1x1_image1", CC4(3, 32, 1, 1), CC3(40, 1, 1), one, none, one, 1, CC_BIAS,
          CS_ACT_NONE);
  cc_conv(x, "conv_1x1_residual", CC4(2, 32, 7, 7), CC3(64, 1, 1), one, none, one, 1,
          CC_BIAS | CC_RESIDUAL, CS_ACT_RELU);
  cc_conv(x, "conv_1x1_residual_plain", CC4(1, 24, 7, 3), CC3(32, 1, 1), one, none, one, 1,
          CC_RESIDUAL, CS_ACT_NONE);
  cc_conv(x, "conv_1x1_view_out", CC4(2, 64, 14, 14), CC3(32, 1, 1), one, none, one, 1,
          CC_BIAS | CC_VIEW_OUT, CS_ACT_RELU);
  cc_conv(x, "conv_1x1_view_in", CC4(1, 32, 14, 14), CC3(16, 1, 1), one, none, one, 1,
          CC_BIAS | CC_VIEW_IN, CS_ACT_RELU);
  cc_conv(x, "conv_1x1_view_both_residual", CC4(2, 32, 9, 7), CC3(40, 1, 1), one, none, one, 1,
          CC_BIAS | CC_RESIDUAL | CC_VIEW_IN | CC_VIEW_OUT, CS_ACT_RELU);
  cc_conv(x, "conv_1x1_view_odd", CC4(2, 19, 6, 5), CC3(21, 1, 1), one, none, one, 1,
          CC_BIAS | CC_VIEW_IN | CC_VIEW_OUT | CC_VIEW_ODD, CS_ACT_NONE);
  cc_conv(x, "conv_1x1_pad", CC4(1, 8, 4, 4), CC3(8, 1, 1), one, p1, one, 1, CC_BIAS, CS_ACT_NONE);
  cc_conv(x, "conv_3x3", CC4(1, 32, 14, 14), CC3(64, 3, 3), one, p1, one, 1, CC_BIAS, CS_ACT_RELU);
  cc_conv(x, "conv_3x3_batch3", CC4(3, 16, 9, 11), CC3(32, 3, 3), one, p1, one, 1, CC_BIAS,
          CS_ACT_NONE);
  cc_conv(x, "conv_3x3_nobias", CC4(2, 48, 7, 7), CC3(48, 3, 3), one, p1, one, 1, 0, CS_ACT_RELU);
  cc_conv(x, "conv_3x3_valid", CC4(1, 16, 12, 10), CC3(16, 3, 3), one, none, one, 1, CC_BIAS,
          CS_ACT_NONE);
  cc_conv(x, "conv_3x3_s2", CC4(2, 16, 15, 13), CC3(32, 3, 3), two, p1, one, 1, CC_BIAS,
          CS_ACT_RELU);
  cc_conv(x, "conv_3x3_asym", CC4(1, 16, 10, 9), CC3(24, 3, 3), one, CC4(0, 1, 2, 0), one, 1,
          CC_BIAS, CS_ACT_NONE);
  cc_conv(x, "conv_3x3_asym_s2", CC4(2, 8, 11, 8), CC3(16, 3, 3), two, CC4(0, 0, 1, 1), one, 1,
          CC_BIAS, CS_ACT_RELU);
  cc_conv(x, "conv_3x3_dilated", CC4(1, 16, 13, 13), CC3(16, 3, 3), one, CC4(2, 2, 2, 2), two, 1,
          CC_BIAS, CS_ACT_RELU);
  cc_conv(x, "conv_3x3_dilated_s2", CC4(1, 32, 17, 16), CC3(16, 3, 3), two, CC4(3, 2, 3, 2),
          CC2(3, 2), 1, CC_BIAS, CS_ACT_NONE);
  cc_conv(x, "conv_3x3_image1", CC4(2, 16, 1, 1), CC3(16, 3, 3), one, p1, one, 1, CC_BIAS,
          CS_ACT_NONE);
  cc_conv(x, "conv_3x3_big_stride", CC4(1, 16, 23, 23), CC3(16, 3, 3), CC2(5, 7), p1, one, 1,
          CC_BIAS, CS_ACT_NONE);
  cc_conv(x, "conv_3x3_stride_over_kernel", CC4(1, 8, 16, 16), CC3(8, 2, 2), CC2(3, 4), none, one,
          1, 0, CS_ACT_NONE);
  cc_conv(x, "conv_3x3_residual", CC4(1, 32, 8, 8), CC3(32, 3, 3), one, p1, one, 1,
          CC_BIAS | CC_RESIDUAL, CS_ACT_RELU);
  cc_conv(x, "conv_3x3_residual_view", CC4(2, 16, 7, 6), CC3(32, 3, 3), one, p1, one, 1,
          CC_BIAS | CC_RESIDUAL | CC_VIEW_RES, CS_ACT_RELU);
  cc_conv(x, "conv_3x3_residual_clip", CC4(1, 16, 7, 6), CC3(17, 3, 3), one, p1, one, 1,
          CC_BIAS | CC_RESIDUAL, CS_ACT_CLIP);
  cc_conv(x, "conv_3x3_leaky", CC4(1, 16, 9, 9), CC3(16, 3, 3), one, p1, one, 1, CC_BIAS,
          CS_ACT_LEAKY_RELU);
  cc_conv(x, "conv_3x3_clip", CC4(1, 16, 9, 9), CC3(16, 3, 3), one, p1, one, 1, CC_BIAS,
          CS_ACT_CLIP);
  cc_conv(x, "conv_3x3_sigmoid", CC4(1, 16, 9, 9), CC3(16, 3, 3), one, p1, one, 1, CC_BIAS,
          CS_ACT_SIGMOID);
  cc_conv(x, "conv_3x3_tanh", CC4(2, 8, 9, 9), CC3(3, 3, 3), one, p1, one, 1, CC_BIAS, CS_ACT_TANH);
  cc_conv(x, "conv_3x3_view_out", CC4(2, 32, 14, 14), CC3(48, 3, 3), one, p1, one, 1,
          CC_BIAS | CC_VIEW_OUT, CS_ACT_RELU);
  cc_conv(x, "conv_3x3_view_odd", CC4(2, 16, 10, 10), CC3(24, 3, 3), one, p1, one, 1,
          CC_BIAS | CC_VIEW_OUT | CC_VIEW_ODD, CS_ACT_RELU);
  cc_conv(x, "conv_3x3_view_both", CC4(1, 16, 10, 10), CC3(16, 3, 3), one, p1, one, 1,
          CC_BIAS | CC_VIEW_IN | CC_VIEW_OUT, CS_ACT_RELU);
  cc_conv(x, "conv_3x3_view_in_odd", CC4(3, 16, 8, 9), CC3(16, 3, 3), one, p1, one, 1,
          CC_BIAS | CC_VIEW_IN | CC_VIEW_ODD, CS_ACT_NONE);
  cc_conv(x, "conv_5x5", CC4(1, 16, 14, 14), CC3(32, 5, 5), one, CC4(2, 2, 2, 2), one, 1, CC_BIAS,
          CS_ACT_RELU);
  cc_conv(x, "conv_5x5_view_out", CC4(2, 24, 7, 7), CC3(32, 5, 5), one, CC4(2, 2, 2, 2), one, 1,
          CC_BIAS | CC_VIEW_OUT, CS_ACT_RELU);
  cc_conv(x, "conv_7x7_s2_rgb", CC4(1, 3, 33, 35), CC3(64, 7, 7), two, CC4(3, 3, 3, 3), one, 1,
          CC_BIAS, CS_ACT_RELU);
  cc_conv(x, "conv_7x7_s2_rgb_batch2", CC4(2, 3, 32, 32), CC3(16, 7, 7), two, CC4(3, 3, 3, 3), one,
          1, 0, CS_ACT_NONE);
  cc_conv(x, "conv_1x7", CC4(1, 32, 9, 12), CC3(32, 1, 7), one, CC4(0, 3, 0, 3), one, 1, CC_BIAS,
          CS_ACT_RELU);
  cc_conv(x, "conv_7x1", CC4(1, 32, 12, 9), CC3(32, 7, 1), one, CC4(3, 0, 3, 0), one, 1, CC_BIAS,
          CS_ACT_RELU);
  /* A stage of a tensor-core kernel is more taps than there are: none may be read for those behind.
   */
  cc_conv(x, "conv_9x1_few_channels", CC4(1, 8, 20, 2), CC3(16, 9, 1), one, none, one, 1, CC_BIAS,
          CS_ACT_NONE);
  /* Taps, pads and steps up to and beyond what a map of Hopper's copy engine can say (offsets 255,
   * corners 127, steps 8); a window that leaves the image altogether. */
  cc_conv(x, "conv_far_taps", CC4(2, 32, 3, 150), CC3(24, 1, 3), one, CC4(0, 120, 0, 120),
          CC2(1, 120), 1, CC_BIAS, CS_ACT_RELU);
  cc_conv(x, "conv_taps_too_far", CC4(1, 32, 300, 3), CC3(16, 3, 1), one, CC4(100, 0, 100, 0),
          CC2(130, 1), 1, CC_BIAS, CS_ACT_NONE);
  cc_conv(x, "conv_pads_too_wide", CC4(1, 32, 5, 9), CC3(16, 1, 3), CC2(1, 5), CC4(0, 130, 0, 129),
          one, 1, CC_BIAS, CS_ACT_NONE);
  cc_conv(x, "conv_steps_of_8", CC4(3, 64, 33, 20), CC3(40, 3, 3), CC2(8, 8), p1, one, 1, CC_BIAS,
          CS_ACT_RELU);
  cc_conv(x, "conv_steps_of_9", CC4(2, 64, 33, 20), CC3(40, 3, 3), CC2(9, 9), p1, one, 1, CC_BIAS,
          CS_ACT_RELU);
  cc_conv(x, "conv_beyond_the_image", CC4(1, 32, 4, 4), CC3(16, 2, 2), CC2(3, 3), CC4(7, 8, 9, 6),
          one, 1, CC_BIAS, CS_ACT_NONE);
  cc_conv(x, "conv_2x4_mixed", CC4(1, 10, 9, 12), CC3(11, 2, 4), CC2(2, 1), CC4(1, 0, 0, 2),
          CC2(1, 2), 1, CC_BIAS, CS_ACT_NONE);
  cc_conv(x, "conv_11x11_s4", CC4(1, 3, 47, 47), CC3(16, 11, 11), CC2(4, 4), CC4(2, 2, 2, 2), one,
          1, CC_BIAS, CS_ACT_RELU);
  cc_conv(x, "conv_whole_image", CC4(2, 32, 6, 6), CC3(24, 6, 6), one, none, one, 1, CC_BIAS,
          CS_ACT_NONE);
  cc_conv(x, "conv_one_channel", CC4(2, 1, 12, 12), CC3(1, 3, 3), one, p1, one, 1, CC_BIAS,
          CS_ACT_NONE);
  cc_conv(x, "conv_wide_reduction", CC4(1, 256, 5, 5), CC3(32, 3, 3), one, p1, one, 1, CC_BIAS,
          CS_ACT_RELU);
  /* Several tiles of Winograd's products in each direction, the last ones cut. */
  cc_conv(x, "conv_3x3_many_tiles", CC4(3, 40, 26, 27), CC3(72, 3, 3), one, p1, one, 1, CC_BIAS,
          CS_ACT_RELU);
  /* Long sums of few outputs, which blocks of a cluster share. */
  cc_conv(x, "conv_long_sum_residual", CC4(2, 192, 9, 9), CC3(80, 3, 3), one, p1, one, 1,
          CC_BIAS | CC_RESIDUAL | CC_VIEW_RES, CS_ACT_RELU);
  cc_conv(x, "conv_long_sum_odd", CC4(1, 160, 6, 7), CC3(37, 3, 3), two, p1, one, 1,
          CC_BIAS | CC_VIEW_OUT | CC_VIEW_ODD, CS_ACT_NONE);
  cc_conv(x, "conv_1x1_long_sum", CC4(1, 1088, 7, 7), CC3(72, 1, 1), one, none, one, 1, CC_BIAS,
          CS_ACT_RELU);
  cc_conv(x, "conv_group2", CC4(1, 32, 9, 9), CC3(32, 3, 3), one, p1, one, 2, CC_BIAS, CS_ACT_RELU);
  cc_conv(x, "conv_group4_odd", CC4(2, 12, 9, 7), CC3(20, 3, 3), two, p1, one, 4, CC_BIAS,
          CS_ACT_NONE);
  cc_conv(x, "conv_group_1x1", CC4(1, 64, 6, 6), CC3(64, 1, 1), one, none, one, 4, CC_BIAS,
          CS_ACT_RELU);
  cc_conv(x, "conv_group_residual", CC4(1, 32, 6, 6), CC3(64, 3, 3), one, p1, one, 2,
          CC_BIAS | CC_RESIDUAL, CS_ACT_RELU);
  cc_conv(x, "conv_depthwise", CC4(1, 32, 14, 14), CC3(32, 3, 3), one, p1, one, 32, CC_BIAS,
          CS_ACT_RELU);
  cc_conv(x, "conv_depthwise_s2_batch3", CC4(3, 24, 13, 12), CC3(24, 3, 3), two, p1, one, 24,
          CC_BIAS, CS_ACT_CLIP);
  cc_conv(x, "conv_depthwise_5x5_dilated", CC4(1, 16, 15, 15), CC3(16, 5, 5), one, CC4(4, 4, 4, 4),
          two, 16, CC_BIAS, CS_ACT_NONE);
  cc_conv(x, "conv_depthwise_multiplier", CC4(1, 16, 8, 8), CC3(32, 3, 3), one, p1, one, 16,
          CC_BIAS, CS_ACT_NONE);
  cc_conv(x, "conv_depthwise_asym", CC4(2, 17, 8, 8), CC3(17, 3, 3), two, CC4(0, 0, 1, 1), one, 17,
          CC_BIAS, CS_ACT_RELU);
  cc_conv(x, "conv_depthwise_view_out", CC4(2, 32, 8, 8), CC3(32, 3, 3), one, p1, one, 32,
          CC_BIAS | CC_VIEW_OUT, CS_ACT_RELU);
  /* Whole and cut strips, of more channels than a block has threads for. */
  cc_conv(x, "conv_depthwise_strips", CC4(2, 48, 11, 9), CC3(48, 3, 3), one, CC4(0, 1, 2, 1), one,
          48, CC_BIAS | CC_VIEW_IN | CC_VIEW_OUT, CS_ACT_HARD_SWISH);
  cc_conv(x, "conv_depthwise_strip_s2", CC4(1, 40, 13, 7), CC3(40, 3, 3), two, CC4(2, 0, 0, 2), one,
          40, 0, CS_ACT_NONE);
  cc_conv(x, "conv_depthwise_low", CC4(2, 32, 2, 5), CC3(32, 3, 3), one, p1, one, 32, CC_BIAS,
          CS_ACT_NONE);
  cc_conv(x, "conv_depthwise_5x5", CC4(2, 72, 10, 8), CC3(72, 5, 5), one, CC4(2, 2, 2, 2), one, 72,
          CC_BIAS, CS_ACT_SWISH);
  cc_conv(x, "conv_depthwise_5x5_s2", CC4(1, 48, 15, 14), CC3(48, 5, 5), two, CC4(1, 2, 2, 1), one,
          48, CC_BIAS, CS_ACT_RELU);
  cc_conv(x, "conv_depthwise_many", CC4(1, 1056, 6, 5), CC3(1056, 3, 3), one, p1, one, 1056,
          CC_BIAS, CS_ACT_CLIP);
  cc_conv(x, "conv_depthwise_7x7", CC4(1, 32, 9, 9), CC3(32, 7, 7), one, CC4(3, 3, 3, 3), one, 32,
          CC_BIAS, CS_ACT_NONE);
}

/* Whole and partial stages and tiles of the tensor-core kernels, an image of fewer pixels than
 * rows, and what only the direct one takes. */
static inline void cc_all_prologue(cc_context *x) {
  const int *one = CC2(1, 1), *two = CC2(2, 2), *none = CC4(0, 0, 0, 0);
  cc_conv(x, "conv_pre", CC4(1, 64, 14, 14), CC3(48, 1, 1), one, none, one, 1,
          CC_PROLOGUE | CC_BIAS, CS_ACT_RELU);
  cc_conv(x, "conv_pre_views", CC4(2, 40, 13, 9), CC3(72, 1, 1), one, none, one, 1,
          CC_PROLOGUE | CC_BIAS | CC_VIEW_IN | CC_VIEW_OUT, CS_ACT_RELU);
  cc_conv(x, "conv_pre_large", CC4(2, 544, 14, 14), CC3(128, 1, 1), one, none, one, 1,
          CC_PROLOGUE | CC_BIAS | CC_VIEW_IN, CS_ACT_RELU);
  cc_conv(x, "conv_pre_nobias", CC4(3, 24, 7, 5), CC3(33, 1, 1), one, none, one, 1, CC_PROLOGUE,
          CS_ACT_NONE);
  cc_conv(x, "conv_pre_residual", CC4(2, 32, 7, 7), CC3(64, 1, 1), one, none, one, 1,
          CC_PROLOGUE | CC_BIAS | CC_RESIDUAL, CS_ACT_LEAKY_RELU);
  cc_conv(x, "conv_pre_stride", CC4(1, 136, 9, 8), CC3(32, 1, 1), two, none, one, 1,
          CC_PROLOGUE | CC_BIAS, CS_ACT_NONE);
  cc_conv(x, "conv_pre_plain", CC4(2, 264, 7, 7), CC3(64, 1, 1), one, none, one, 1,
          CC_PROLOGUE_PLAIN | CC_BIAS, CS_ACT_RELU);
  cc_conv(x, "conv_pre_pixel", CC4(1, 832, 1, 1), CC3(48, 1, 1), one, none, one, 1,
          CC_PROLOGUE | CC_BIAS, CS_ACT_SIGMOID);
  cc_conv(x, "conv_pre_odd_channels", CC4(3, 13, 6, 5), CC3(7, 1, 1), one, none, one, 1,
          CC_PROLOGUE | CC_BIAS, CS_ACT_RELU);
}

static inline void cc_all_conv_transpose(cc_context *x) {
  const int *one = CC2(1, 1), *two = CC2(2, 2), *zero = CC2(0, 0), *none = CC4(0, 0, 0, 0),
            *p1 = CC4(1, 1, 1, 1);
  cc_conv_transpose(x, "convt_4x4_s2", CC4(1, 32, 4, 4), CC3(16, 4, 4), two, p1, one, zero, 1, 0,
                    CS_ACT_RELU);
  /* More columns than are summed up at a time. */
  cc_conv_transpose(x, "convt_4x4_s2_images", CC4(5, 8, 32, 32), CC3(64, 4, 4), two, p1, one, zero,
                    1, CC_BIAS, CS_ACT_RELU);
  cc_conv_transpose(x, "convt_4x4_s2_bias_batch3", CC4(3, 16, 5, 7), CC3(8, 4, 4), two, p1, one,
                    zero, 1, CC_BIAS, CS_ACT_NONE);
  cc_conv_transpose(x, "convt_4x4_s2_long_sum", CC4(2, 192, 4, 5), CC3(40, 4, 4), two, p1, one,
                    zero, 1, CC_BIAS | CC_VIEW_OUT, CS_ACT_RELU);
  cc_conv_transpose(x, "convt_5x3_s23", CC4(1, 32, 7, 6), CC3(24, 5, 3), CC2(2, 3), CC4(2, 0, 1, 1),
                    one, CC2(1, 0), 1, CC_BIAS, CS_ACT_LEAKY_RELU);
  cc_conv_transpose(x, "convt_crop", CC4(1, 16, 6, 6), CC3(16, 3, 3), two, CC4(2, 3, 2, 3), one,
                    zero, 1, CC_BIAS, CS_ACT_NONE);
  cc_conv_transpose(x, "convt_latent", CC4(2, 100, 1, 1), CC3(32, 4, 4), one, none, one, zero, 1,
                    CC_BIAS, CS_ACT_RELU);
  cc_conv_transpose(x, "convt_rgb_tanh", CC4(1, 16, 8, 8), CC3(3, 4, 4), two, p1, one, zero, 1,
                    CC_BIAS, CS_ACT_TANH);
  cc_conv_transpose(x, "convt_rgb_64", CC4(2, 64, 7, 35), CC3(3, 4, 4), two, p1, one, zero, 1,
                    CC_BIAS, CS_ACT_TANH);
  cc_conv_transpose(x, "convt_gray_5x5", CC4(3, 24, 7, 7), CC3(1, 5, 5), two, CC4(2, 2, 2, 2), one,
                    one, 1, CC_BIAS, CS_ACT_SIGMOID);
  cc_conv_transpose(x, "convt_latent_128", CC4(9, 128, 1, 1), CC3(24, 4, 4), one, none, one, zero,
                    1, CC_BIAS, CS_ACT_RELU);
  cc_conv_transpose(x, "convt_3x3_s1", CC4(1, 16, 6, 6), CC3(16, 3, 3), one, p1, one, zero, 1,
                    CC_BIAS, CS_ACT_NONE);
  cc_conv_transpose(x, "convt_output_padding", CC4(1, 16, 5, 5), CC3(16, 3, 3), two, p1, one, one,
                    1, CC_BIAS, CS_ACT_RELU);
  cc_conv_transpose(x, "convt_output_padding_mixed", CC4(2, 8, 4, 5), CC3(12, 3, 2), CC2(3, 2),
                    CC4(1, 0, 0, 1), one, CC2(2, 1), 1, CC_BIAS, CS_ACT_NONE);
  cc_conv_transpose(x, "convt_output_padding_past_stride", CC4(2, 6, 5, 4), CC3(8, 3, 2), one, p1,
                    CC2(3, 2), CC2(2, 1), 2, CC_BIAS, CS_ACT_RELU);
  cc_conv_transpose(x, "convt_output_padding_past_stride_residual", CC4(1, 16, 5, 5), CC3(16, 3, 3),
                    one, p1, CC2(3, 2), CC2(2, 1), 1, CC_RESIDUAL, CS_ACT_RELU);
  cc_conv_transpose(x, "convt_2x2_s2", CC4(1, 32, 7, 7), CC3(16, 2, 2), two, none, one, zero, 1,
                    CC_BIAS, CS_ACT_LEAKY_RELU);
  cc_conv_transpose(x, "convt_dilated", CC4(1, 8, 6, 6), CC3(8, 3, 3), one, p1, two, zero, 1,
                    CC_BIAS, CS_ACT_NONE);
  cc_conv_transpose(x, "convt_s2_dilated3", CC4(3, 8, 5, 6), CC3(8, 3, 3), two, p1, CC2(3, 3), zero,
                    1, CC_BIAS, CS_ACT_RELU);
  cc_conv_transpose(x, "convt_s4_dilated2", CC4(2, 8, 4, 3), CC3(16, 3, 4), CC2(4, 4), p1, two,
                    zero, 1, CC_BIAS, CS_ACT_NONE);
  cc_conv_transpose(x, "convt_asym", CC4(1, 8, 6, 6), CC3(8, 3, 3), two, CC4(0, 1, 1, 0), one, zero,
                    1, CC_BIAS, CS_ACT_NONE);
  cc_conv_transpose(x, "convt_gap_stride", CC4(1, 8, 3, 3), CC3(8, 2, 2), CC2(3, 3), none, one,
                    zero, 1, CC_BIAS, CS_ACT_NONE);
  cc_conv_transpose(x, "convt_1x1", CC4(2, 20, 5, 5), CC3(9, 1, 1), one, none, one, zero, 1,
                    CC_BIAS, CS_ACT_NONE);
  cc_conv_transpose(x, "convt_group2", CC4(1, 16, 5, 5), CC3(32, 4, 4), two, p1, one, zero, 2,
                    CC_BIAS, CS_ACT_RELU);
  cc_conv_transpose(x, "convt_depthwise", CC4(1, 16, 5, 5), CC3(16, 3, 3), two, p1, one, zero, 16,
                    CC_BIAS, CS_ACT_NONE);
  cc_conv_transpose(x, "convt_residual", CC4(1, 16, 5, 5), CC3(16, 4, 4), two, p1, one, zero, 1,
                    CC_BIAS | CC_RESIDUAL, CS_ACT_RELU);
  cc_conv_transpose(x, "convt_view_out", CC4(2, 16, 6, 6), CC3(16, 4, 4), two, p1, one, zero, 1,
                    CC_BIAS | CC_VIEW_OUT, CS_ACT_RELU);
  cc_conv_transpose(x, "convt_odd_channels", CC4(2, 5, 6, 6), CC3(7, 5, 5), two, CC4(2, 2, 2, 2),
                    one, one, 1, CC_BIAS, CS_ACT_SIGMOID);
}

static inline void cc_all_pool(cc_context *x) {
  const int *one = CC2(1, 1), *two = CC2(2, 2), *three = CC2(3, 3), *none = CC4(0, 0, 0, 0),
            *p1 = CC4(1, 1, 1, 1);
  cs_op max = CS_OP_MAX_POOL, avg = CS_OP_AVERAGE_POOL;
  cc_pool(x, max, "maxpool_3x3_s2", CC4(1, 16, 15, 15), three, two, p1, one, 0);
  cc_pool(x, max, "maxpool_3x3_s2_ceil", CC4(2, 16, 14, 12), three, two, none, one, CC_CEIL);
  cc_pool(x, max, "maxpool_ceil_drops_window", CC4(1, 8, 6, 6), two, three, p1, one, CC_CEIL);
  cc_pool(x, max, "maxpool_3x3_s1", CC4(2, 32, 7, 7), three, one, p1, one, 0);
  cc_pool(x, max, "maxpool_2x2", CC4(3, 13, 9, 7), two, two, none, one, 0);
  cc_pool(x, max, "maxpool_asym", CC4(1, 16, 9, 9), three, two, CC4(0, 0, 1, 1), one, 0);
  cc_pool(x, max, "maxpool_dilated", CC4(1, 16, 12, 12), three, one, CC4(1, 1, 1, 1), two, 0);
  cc_pool(x, max, "maxpool_dilated_ceil", CC4(2, 8, 13, 11), CC2(2, 3), two, none, CC2(3, 2),
          CC_CEIL);
  cc_pool(x, max, "maxpool_image1", CC4(2, 16, 1, 1), CC2(1, 1), one, none, one, 0);
  cc_pool(x, max, "maxpool_big_stride", CC4(1, 16, 20, 20), two, CC2(7, 5), none, one, 0);
  cc_pool(x, max, "maxpool_view_out", CC4(2, 32, 7, 7), three, one, p1, one, CC_VIEW_OUT);
  cc_pool(x, max, "maxpool_view_in", CC4(1, 32, 8, 8), three, two, p1, one, CC_VIEW_IN);
  cc_pool(x, max, "maxpool_view_odd", CC4(2, 10, 8, 8), three, two, p1, one,
          CC_VIEW_IN | CC_VIEW_OUT | CC_VIEW_ODD);
  cc_pool(x, avg, "avgpool_3x3_s1", CC4(1, 32, 8, 8), three, one, p1, one, 0);
  cc_pool(x, avg, "avgpool_3x3_s1_include", CC4(2, 32, 8, 8), three, one, p1, one, CC_INCLUDE_PAD);
  cc_pool(x, avg, "avgpool_2x2", CC4(3, 16, 8, 10), two, two, none, one, 0);
  cc_pool(x, avg, "avgpool_asym_exclude", CC4(1, 16, 9, 8), three, two, CC4(0, 1, 2, 0), one, 0);
  cc_pool(x, avg, "avgpool_asym_include", CC4(1, 16, 9, 8), three, two, CC4(0, 1, 2, 0), one,
          CC_INCLUDE_PAD);
  cc_pool(x, avg, "avgpool_ceil_exclude", CC4(2, 16, 8, 9), three, two, none, one, CC_CEIL);
  cc_pool(x, avg, "avgpool_ceil_include", CC4(1, 16, 8, 9), three, two, p1, one,
          CC_CEIL | CC_INCLUDE_PAD);
  cc_pool(x, avg, "avgpool_odd_channels", CC4(2, 7, 6, 6), CC2(2, 3), CC2(1, 2), CC4(1, 1, 0, 1),
          one, 0);
  cc_pool(x, avg, "avgpool_whole", CC4(1, 32, 7, 7), CC2(7, 7), one, none, one, 0);
  cc_pool(x, avg, "avgpool_view_out", CC4(2, 16, 8, 8), three, one, p1, one, CC_VIEW_OUT);
}

static inline void cc_all_global_pool(cc_context *x) {
  static const struct {
    const char *name;
    int n, c, h, w, flags;
  } rows[] = {{"gap_7x7", 1, 64, 7, 7, 0},
              {"gap_batch3", 3, 33, 5, 6, 0},
              {"gap_image1", 2, 16, 1, 1, 0},
              {"gap_large", 1, 16, 31, 29, 0},
              {"gap_view_in", 2, 16, 6, 6, CC_VIEW_IN}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    conformance_spec spec = {.name = rows[i].name, .op = CS_OP_GLOBAL_AVERAGE_POOL, .n_inputs = 1};
    spec.flags = rows[i].flags;
    spec.input = cc_shape4(rows[i].n, rows[i].c, rows[i].h, rows[i].w);
    spec.output = cc_shape4(rows[i].n, rows[i].c, 1, 1);
    cc_add(x->table, &spec, x->layouts, x->n_layouts);
  }
}

static inline void cc_all_gemm(cc_context *x) {
  static const struct {
    const char *name;
    int n, in, out, flags;
    cs_act_kind act;
  } rows[] = {{"gemm_1000", 1, 256, 1000, CC_BIAS, CS_ACT_NONE},
              {"gemm_batch3", 3, 64, 40, CC_BIAS, CS_ACT_NONE},
              {"gemm_nobias", 2, 33, 17, 0, CS_ACT_NONE},
              {"gemm_relu", 2, 48, 32, CC_BIAS, CS_ACT_RELU},
              {"gemm_sigmoid_one", 3, 100, 1, CC_BIAS, CS_ACT_SIGMOID},
              {"gemm_1x1024x1000", 1, 1024, 1000, CC_BIAS, CS_ACT_NONE},
              {"gemm_1x9216x4096", 1, 9216, 4096, CC_BIAS, CS_ACT_RELU},
              {"gemm_batch37_odd", 37, 131, 75, CC_BIAS, CS_ACT_RELU},
              {"gemm_batch128", 128, 512, 264, CC_BIAS, CS_ACT_RELU},
              {"gemm_batch200_in50", 200, 50, 300, CC_BIAS, CS_ACT_LEAKY_RELU},
              {"gemm_batch40_residual", 40, 96, 128, CC_BIAS | CC_RESIDUAL, CS_ACT_RELU},
              {"gemm_one_feature", 1, 1, 5, CC_BIAS, CS_ACT_NONE},
              {"gemm_residual", 2, 20, 24, CC_BIAS | CC_RESIDUAL, CS_ACT_RELU}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    conformance_spec spec = {.name = rows[i].name, .op = CS_OP_GEMM, .n_inputs = 1};
    spec.flags = rows[i].flags;
    spec.attrs.gemm.out_features = rows[i].out;
    spec.attrs.gemm.bias = rows[i].flags & CC_BIAS;
    spec.input = cc_shape2(rows[i].n, rows[i].in);
    spec.output = cc_shape2(rows[i].n, rows[i].out);
    cc_act(&spec, rows[i].act);
    cc_add(x->table, &spec, x->layouts, x->n_layouts);
  }
}

/* Every precision, row-major; a constant where `flags` says so. */
static inline void cc_matmul(cc_context *x, const char *name, cs_shape a, cs_shape b, int flags,
                             cs_act_kind act) {
  static const cs_precision precisions[] = {CS_PRECISION_F32, CS_PRECISION_TF32, CS_PRECISION_F16,
                                            CS_PRECISION_BF16};
  conformance_spec spec = {.name = name, .op = CS_OP_MATMUL, .n_inputs = 2, .flags = flags};
  cs_shape inputs[2] = {a, b};
  if (flags & (CC_OPERAND | CC_OPERAND_FIRST)) {
    bool first = flags & CC_OPERAND_FIRST;
    spec.n_inputs = 1;
    spec.attrs.binary = (cs_binary_attrs){.operand = first ? a : b, .operand_first = first};
    if (first) inputs[0] = b;
  }
  cs_place place = {name, -1, name};
  cs_status st = cs_op_infer(&place, spec.op, &spec.attrs, inputs, spec.n_inputs, &spec.output);
  if (st != CS_OK) {
    fprintf(stderr, "%s\n", cs_status_message(st));
    abort();
  }
  spec.input = inputs[0], spec.second = inputs[1];
  cc_act(&spec, act);
  for (int i = 0; i < 4; i++) cc_emit(x->table, &spec, precisions[i], CS_LAYOUT_NCHW);
}

static inline void cc_all_matmul(cc_context *x) {
  const int view = CC_VIEW_IN | CC_VIEW_OUT;
  static const struct {
    const char *name;
    cs_shape a, b;
    int flags;
    cs_act_kind act;
  } rows[] = {
      {"matmul", {2, {33, 47}}, {2, {47, 29}}, 0, CS_ACT_NONE},
      {"matmul_one", {2, {1, 1}}, {2, {1, 1}}, 0, CS_ACT_NONE},
      {"matmul_row", {2, {1, 300}}, {2, {300, 70}}, 0, CS_ACT_NONE},
      {"matmul_column", {2, {70, 300}}, {2, {300, 1}}, 0, CS_ACT_NONE},
      {"matmul_outer", {2, {65, 1}}, {2, {1, 67}}, 0, CS_ACT_NONE},
      {"matmul_tiles", {2, {128, 64}}, {2, {64, 192}}, 0, CS_ACT_RELU},
      {"matmul_deep", {2, {5, 4099}}, {2, {4099, 7}}, 0, CS_ACT_NONE},
      {"matmul_images", {3, {3, 17, 31}}, {3, {3, 31, 23}}, 0, CS_ACT_NONE},
      {"matmul_images_one_b", {3, {3, 17, 31}}, {2, {31, 23}}, 0, CS_ACT_NONE},
      {"matmul_images_one_a", {2, {17, 31}}, {3, {3, 31, 23}}, 0, CS_ACT_NONE},
      {"matmul_images_broadcast", {3, {1, 9, 8}}, {3, {4, 8, 11}}, 0, CS_ACT_SIGMOID},
      {"matmul_heads", {4, {2, 3, 50, 32}}, {4, {2, 3, 32, 50}}, 0, CS_ACT_NONE},
      {"matmul_heads_odd", {4, {2, 5, 13, 7}}, {4, {2, 5, 7, 3}}, 0, CS_ACT_LEAKY_RELU},
      {"matmul_heads_inner", {4, {2, 5, 13, 7}}, {4, {2, 1, 7, 3}}, 0, CS_ACT_NONE},
      {"matmul_heads_outer", {4, {2, 5, 13, 7}}, {4, {1, 5, 7, 3}}, 0, CS_ACT_NONE},
      {"matmul_heads_crossed", {4, {2, 1, 13, 7}}, {4, {1, 5, 7, 3}}, 0, CS_ACT_NONE},
      {"matmul_heads_three", {3, {5, 13, 7}}, {4, {2, 1, 7, 3}}, 0, CS_ACT_NONE},
      {"matmul_heads_matrix", {4, {2, 5, 13, 7}}, {2, {7, 70}}, 0, CS_ACT_NONE},
      {"matmul_heads_view", {4, {2, 16, 9, 20}}, {4, {2, 16, 20, 6}}, view, CS_ACT_NONE},
      {"matmul_heads_view_odd",
       {4, {2, 5, 9, 7}},
       {4, {2, 1, 7, 6}},
       view | CC_VIEW_ODD,
       CS_ACT_CLIP},
      {"matmul_constant", {3, {3, 17, 31}}, {3, {1, 31, 23}}, CC_OPERAND, CS_ACT_NONE},
      {"matmul_constant_each", {4, {2, 5, 13, 7}}, {3, {5, 7, 3}}, CC_OPERAND, CS_ACT_RELU},
      {"matmul_constant_grows", {2, {13, 7}}, {4, {2, 3, 7, 5}}, CC_OPERAND, CS_ACT_NONE},
      {"matmul_constant_first", {2, {17, 31}}, {3, {3, 31, 23}}, CC_OPERAND_FIRST, CS_ACT_NONE},
      {"matmul_constant_first_each",
       {4, {1, 5, 13, 7}},
       {4, {2, 5, 7, 3}},
       CC_OPERAND_FIRST,
       CS_ACT_NONE}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    cc_matmul(x, rows[i].name, rows[i].a, rows[i].b, rows[i].flags, rows[i].act);
}

static inline void cc_all_pointwise(cc_context *x) {
  cs_shape big = cc_shape4(2, 32, 9, 7), odd = cc_shape4(3, 13, 5, 5), flat = cc_shape2(3, 37);
  cs_attrs leaky = {.leaky_relu = {0.1}}, clip = {.clip = {-0.5, 0.75}},
           bn = {.batch_norm = {1e-5}};
  cc_same(x, CS_OP_BATCH_NORM, "bn", big, &bn, 1, CC_BIAS, CS_ACT_NONE);
  cc_same(x, CS_OP_BATCH_NORM, "bn_relu", odd, &bn, 1, CC_BIAS, CS_ACT_RELU);
  cc_same(x, CS_OP_BATCH_NORM, "bn_view_in", big, &bn, 1, CC_BIAS | CC_VIEW_IN, CS_ACT_RELU);
  cc_same(x, CS_OP_BATCH_NORM, "bn_image1", cc_shape4(1, 16, 1, 1), &bn, 1, CC_BIAS, CS_ACT_NONE);
  cc_same(x, CS_OP_RELU, "relu", big, NULL, 1, 0, CS_ACT_NONE);
  cc_same(x, CS_OP_RELU, "relu_odd", odd, NULL, 1, 0, CS_ACT_NONE);
  cc_same(x, CS_OP_RELU, "relu_flat", flat, NULL, 1, 0, CS_ACT_NONE);
  cc_same(x, CS_OP_RELU, "relu_view", big, NULL, 1, CC_VIEW_IN | CC_VIEW_OUT, CS_ACT_NONE);
  cc_same(x, CS_OP_LEAKY_RELU, "leaky", big, &leaky, 1, 0, CS_ACT_NONE);
  cc_same(x, CS_OP_CLIP, "clip", odd, &clip, 1, 0, CS_ACT_NONE);
  cc_same(x, CS_OP_SIGMOID, "sigmoid", big, NULL, 1, 0, CS_ACT_NONE);
  cc_same(x, CS_OP_SIGMOID, "sigmoid_odd", odd, NULL, 1, 0, CS_ACT_NONE);
  cc_same(x, CS_OP_TANH, "tanh", odd, NULL, 1, 0, CS_ACT_NONE);
  cc_same(x, CS_OP_TANH, "tanh_view_out", big, NULL, 1, CC_VIEW_OUT, CS_ACT_NONE);
  cc_same(x, CS_OP_ADD, "add", big, NULL, 2, 0, CS_ACT_NONE);
  cc_same(x, CS_OP_ADD, "add_relu", odd, NULL, 2, 0, CS_ACT_RELU);
  cc_same(x, CS_OP_ADD, "add_view", big, NULL, 2, CC_VIEW_IN | CC_VIEW_OUT, CS_ACT_RELU);
  cc_same(x, CS_OP_ADD, "add_flat", flat, NULL, 2, 0, CS_ACT_NONE);
  cc_same(x, CS_OP_MUL, "mul", big, NULL, 2, 0, CS_ACT_NONE);
  cc_same(x, CS_OP_MUL, "mul_view_odd", odd, NULL, 2, CC_VIEW_IN | CC_VIEW_OUT | CC_VIEW_ODD,
          CS_ACT_NONE);
}

/* Two inputs (a constant where `flags` says so, in the place of the second) and their output. */
static inline void cc_binary(cc_context *x, cs_op op, const char *name, cs_shape a, cs_shape b,
                             int flags, cs_act_kind act) {
  conformance_spec spec = {.name = name, .op = op, .n_inputs = 2, .flags = flags};
  spec.input = a, spec.second = b;
  if (!cs_shape_broadcast(&a, &b, &spec.output)) abort();
  if (flags & (CC_OPERAND | CC_OPERAND_FIRST)) {
    spec.n_inputs = 1;
    spec.attrs.binary.operand = b;
    spec.attrs.binary.operand_first = flags & CC_OPERAND_FIRST;
  }
  cc_act(&spec, act);
  cc_add(x->table, &spec, x->layouts, x->n_layouts);
}

static inline void cc_all_binary(cc_context *x) {
  cs_shape big = cc_shape4(2, 32, 9, 8), odd = cc_shape4(3, 13, 5, 5), flat = cc_shape2(3, 37);
  cs_shape pixel = cc_shape4(2, 32, 1, 1), plane = cc_shape4(2, 1, 9, 8), one = {1, {1}};
  cs_shape odd_pixel = cc_shape4(3, 13, 1, 1), odd_plane = cc_shape4(3, 1, 5, 5);
  cs_shape channels = {3, {32, 1, 1}}, row = {1, {37}}, last = {1, {8}}, image = {2, {9, 8}};
  cs_shape cube = {3, {4, 6, 5}}, line = {2, {6, 1}}, first = cc_shape4(1, 32, 9, 8);
  const int view = CC_VIEW_IN | CC_VIEW_OUT;
  static const cs_op ops[] = {CS_OP_ADD, CS_OP_MUL, CS_OP_SUB, CS_OP_DIV,
                              CS_OP_MAX, CS_OP_MIN, CS_OP_POW};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
    char name[64];
    const char *op = cs_op_name(ops[i]);
    bool new_op = ops[i] != CS_OP_ADD && ops[i] != CS_OP_MUL;
    snprintf(name, sizeof name, "binary_%s", op);
    if (new_op) cc_binary(x, ops[i], name, big, big, 0, CS_ACT_NONE);
    snprintf(name, sizeof name, "binary_%s_odd_pixel", op);
    cc_binary(x, ops[i], name, odd, odd_pixel, 0, CS_ACT_NONE);
    snprintf(name, sizeof name, "binary_%s_first", op);
    cc_binary(x, ops[i], name, big, channels, CC_OPERAND_FIRST, CS_ACT_NONE);
    snprintf(name, sizeof name, "binary_%s_number", op);
    cc_binary(x, ops[i], name, big, one, CC_OPERAND, CS_ACT_NONE);
  }
  cc_binary(x, CS_OP_MUL, "binary_pixel", big, pixel, 0, CS_ACT_NONE);
  cc_binary(x, CS_OP_MUL, "binary_pixel_view", big, pixel, view, CS_ACT_RELU);
  cc_binary(x, CS_OP_MUL, "binary_pixel_view_odd", big, pixel, view | CC_VIEW_ODD, CS_ACT_NONE);
  cc_binary(x, CS_OP_MUL, "binary_pixel_first", pixel, big, 0, CS_ACT_NONE);
  cc_binary(x, CS_OP_ADD, "binary_plane", big, plane, 0, CS_ACT_RELU);
  cc_binary(x, CS_OP_SUB, "binary_plane_first", odd_plane, odd, 0, CS_ACT_NONE);
  cc_binary(x, CS_OP_ADD, "binary_outer", pixel, plane, 0, CS_ACT_NONE);
  cc_binary(x, CS_OP_SUB, "binary_last", big, last, 0, CS_ACT_NONE);
  cc_binary(x, CS_OP_MAX, "binary_image", big, image, 0, CS_ACT_SIGMOID);
  cc_binary(x, CS_OP_MIN, "binary_one_image", big, first, 0, CS_ACT_NONE);
  cc_binary(x, CS_OP_DIV, "binary_channels", big, channels, CC_OPERAND, CS_ACT_RELU);
  cc_binary(x, CS_OP_ADD, "binary_whole", odd, cc_shape4(1, 13, 5, 5), CC_OPERAND, CS_ACT_NONE);
  cc_binary(x, CS_OP_MUL, "binary_grows", pixel, image, CC_OPERAND, CS_ACT_NONE);
  cc_binary(x, CS_OP_SUB, "binary_flat", flat, row, 0, CS_ACT_NONE);
  cc_binary(x, CS_OP_MAX, "binary_flat_first", cc_shape2(1, 37), flat, 0, CS_ACT_NONE);
  cc_binary(x, CS_OP_MUL, "binary_cube", cube, line, 0, CS_ACT_NONE);
  cc_binary(x, CS_OP_POW, "binary_vector", row, row, CC_OPERAND, CS_ACT_NONE);
}

static inline void cc_all_unary(cc_context *x) {
  static const struct {
    cs_op op;
    double alpha, beta;
  } rows[] = {{CS_OP_ELU, 0.7, 0},      {CS_OP_SELU, 1.6, 1.1}, {CS_OP_HARD_SIGMOID, 0.25, 0.4},
              {CS_OP_HARD_SWISH, 0, 0}, {CS_OP_SWISH, 1.25, 0}, {CS_OP_SQRT, 0, 0},
              {CS_OP_ABS, 0, 0},        {CS_OP_NEG, 0, 0},      {CS_OP_EXP, 0, 0},
              {CS_OP_SOFTPLUS, 0, 0},   {CS_OP_ERF, 0, 0},      {CS_OP_GELU, 0, 0}};
  cs_shape big = cc_shape4(2, 32, 9, 7), odd = cc_shape4(3, 13, 5, 5);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    cs_attrs attrs = {.unary = {rows[i].alpha, rows[i].beta}};
    char name[64];
    snprintf(name, sizeof name, "unary_%s", cs_op_name(rows[i].op));
    cc_same(x, rows[i].op, name, big, &attrs, 1, CC_VIEW_IN, CS_ACT_NONE);
    snprintf(name, sizeof name, "unary_%s_odd", cs_op_name(rows[i].op));
    cc_same(x, rows[i].op, name, odd, &attrs, 1, 0, CS_ACT_NONE);
  }
  cs_shape slope = {3, {13, 1, 1}};
  cc_binary(x, CS_OP_PRELU, "prelu", odd, slope, CC_OPERAND, CS_ACT_NONE);
  cc_binary(x, CS_OP_PRELU, "prelu_one", big, (cs_shape){1, {1}}, CC_OPERAND, CS_ACT_NONE);
  cc_binary(x, CS_OP_PRELU, "prelu_input", big, cc_shape4(1, 32, 1, 1), 0, CS_ACT_NONE);
}

/* Bit i of `axes`: axis i. */
static inline void cc_reduce(cc_context *x, cs_op op, const char *name, cs_shape in, unsigned axes,
                             bool keepdims, int flags) {
  conformance_spec spec = {.name = name, .op = op, .n_inputs = 1, .flags = flags, .input = in};
  cs_reduce_attrs *reduce = &spec.attrs.reduce;
  reduce->keepdims = keepdims;
  for (int i = 0; i < in.rank; i++) {
    bool reduced = axes >> i & 1;
    if (reduced) reduce->axes[reduce->n_axes++] = i;
    if (!reduced || keepdims) spec.output.dims[spec.output.rank++] = reduced ? 1 : in.dims[i];
  }
  cc_add(x->table, &spec, x->layouts, x->n_layouts);
}

static inline void cc_all_reduce(cc_context *x) {
  static const cs_op ops[] = {CS_OP_REDUCE_MEAN, CS_OP_REDUCE_SUM, CS_OP_REDUCE_MAX,
                              CS_OP_REDUCE_MIN};
  cs_shape big = cc_shape4(2, 32, 9, 7), odd = cc_shape4(3, 13, 5, 6), flat = cc_shape2(5, 77);
  cs_shape cube = {3, {4, 6, 50}}, line = {1, {300}};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
    char name[64];
    const char *op = cs_op_name(ops[i]);
    snprintf(name, sizeof name, "%s_planes", op);
    cc_reduce(x, ops[i], name, big, 12, true, 0);
    snprintf(name, sizeof name, "%s_channels", op);
    cc_reduce(x, ops[i], name, odd, 2, true, CC_VIEW_IN);
    snprintf(name, sizeof name, "%s_dropped", op);
    cc_reduce(x, ops[i], name, odd, 10, false, 0);
  }
  cc_reduce(x, CS_OP_REDUCE_SUM, "reduce_all", big, 15, true, 0);
  cc_reduce(x, CS_OP_REDUCE_SUM, "reduce_images", big, 1, true, CC_VIEW_IN);
  cc_reduce(x, CS_OP_REDUCE_MEAN, "reduce_images_planes", odd, 13, false, 0);
  cc_reduce(x, CS_OP_REDUCE_MAX, "reduce_width", big, 8, true, CC_VIEW_OUT);
  cc_reduce(x, CS_OP_REDUCE_MIN, "reduce_all_but_images", odd, 14, false, CC_VIEW_IN);
  cc_reduce(x, CS_OP_REDUCE_MEAN, "reduce_long", cc_shape4(1, 3, 67, 71), 12, true, 0);
  cc_reduce(x, CS_OP_REDUCE_SUM, "reduce_rows", flat, 2, false, 0);
  cc_reduce(x, CS_OP_REDUCE_SUM, "reduce_columns", flat, 1, false, 0);
  cc_reduce(x, CS_OP_REDUCE_MEAN, "reduce_cube", cube, 2, false, 0);
  cc_reduce(x, CS_OP_REDUCE_MAX, "reduce_line", line, 1, true, 0);
  conformance_spec global = {.op = CS_OP_GLOBAL_MAX_POOL, .n_inputs = 1};
  global.name = "global_max", global.input = big, global.output = cc_shape4(2, 32, 1, 1);
  cc_add(x->table, &global, x->layouts, x->n_layouts);
  global.name = "global_max_odd", global.input = odd, global.output = cc_shape4(3, 13, 1, 1);
  global.flags = CC_VIEW_IN | CC_VIEW_OUT | CC_VIEW_ODD;
  cc_add(x->table, &global, x->layouts, x->n_layouts);
}

static inline void cc_all_instance_norm(cc_context *x) {
  cs_attrs norm = {.batch_norm = {1e-5}}, wide = {.batch_norm = {0.25}};
  cc_same(x, CS_OP_INSTANCE_NORM, "instance_norm", cc_shape4(2, 32, 9, 7), &norm, 1, CC_BIAS,
          CS_ACT_NONE);
  cc_same(x, CS_OP_INSTANCE_NORM, "instance_norm_odd", cc_shape4(3, 13, 5, 5), &wide, 1, CC_BIAS,
          CS_ACT_NONE);
  cc_same(x, CS_OP_INSTANCE_NORM, "instance_norm_view", cc_shape4(2, 40, 6, 5), &norm, 1,
          CC_BIAS | CC_VIEW_IN | CC_VIEW_OUT, CS_ACT_NONE);
  cc_same(x, CS_OP_INSTANCE_NORM, "instance_norm_pixel", cc_shape4(2, 5, 1, 1), &norm, 1, CC_BIAS,
          CS_ACT_NONE);
  cc_same(x, CS_OP_INSTANCE_NORM, "instance_norm_large", cc_shape4(1, 3, 61, 67), &norm, 1, CC_BIAS,
          CS_ACT_NONE);
}

static inline void cc_all_lrn(cc_context *x) {
  cs_attrs five = {.lrn = {5, 1e-4, 0.75, 1.0}}, even = {.lrn = {4, 0.5, 0.75, 2.0}};
  cs_attrs three = {.lrn = {3, 0.9, 0.6, 1.0}}, wide = {.lrn = {9, 0.3, 1.0, 1.5}};
  cc_same(x, CS_OP_LRN, "lrn_5", cc_shape4(1, 64, 7, 7), &five, 1, 0, CS_ACT_NONE);
  cc_same(x, CS_OP_LRN, "lrn_3_strong", cc_shape4(2, 32, 6, 5), &three, 1, 0, CS_ACT_NONE);
  cc_same(x, CS_OP_LRN, "lrn_even", cc_shape4(2, 16, 5, 5), &even, 1, 0, CS_ACT_NONE);
  cc_same(x, CS_OP_LRN, "lrn_wider_than_channels", cc_shape4(1, 5, 4, 4), &wide, 1, 0, CS_ACT_NONE);
  cc_same(x, CS_OP_LRN, "lrn_view", cc_shape4(2, 16, 5, 5), &five, 1, CC_VIEW_IN | CC_VIEW_OUT,
          CS_ACT_NONE);
}

static inline void cc_all_softmax(cc_context *x) {
  cs_attrs last = {.axis = {1}}, channels = {.axis = {1}}, width = {.axis = {3}};
  cc_same(x, CS_OP_SOFTMAX, "softmax_1000", cc_shape2(2, 1000), &last, 1, 0, CS_ACT_NONE);
  cc_same(x, CS_OP_SOFTMAX, "softmax_10", cc_shape2(3, 10), &last, 1, 0, CS_ACT_NONE);
  cc_same(x, CS_OP_SOFTMAX, "softmax_channels", cc_shape4(2, 21, 4, 5), &channels, 1, 0,
          CS_ACT_NONE);
  cc_same(x, CS_OP_SOFTMAX, "softmax_width", cc_shape4(1, 6, 4, 9), &width, 1, 0, CS_ACT_NONE);
}

/* The output's shape as shape inference has it; what has another rank is read row by row. */
static inline void cc_shaped(cc_context *x, cs_op op, const char *name, cs_shape in,
                             const cs_attrs *attrs, int flags) {
  conformance_spec spec = {.name = name, .op = op, .n_inputs = 1, .flags = flags, .input = in};
  cs_place place = {name, -1, name};
  spec.attrs = *attrs;
  cs_status st = cs_op_infer(&place, op, &spec.attrs, &in, 1, &spec.output);
  if (st != CS_OK) {
    fprintf(stderr, "%s\n", cs_status_message(st));
    abort();
  }
  static const cs_precision stored[] = {CS_PRECISION_F32, CS_PRECISION_F16, CS_PRECISION_BF16};
  if (in.rank == spec.output.rank) {
    cc_add(x->table, &spec, x->layouts, x->n_layouts);
    return;
  }
  for (int i = 0; i < 3; i++) cc_emit(x->table, &spec, stored[i], CS_LAYOUT_NCHW);
}

static inline void cc_all_pad(cc_context *x) {
  static const struct {
    const char *name;
    cs_pad_mode mode;
    double value;
    int64_t pads[8];
  } rows[] = {{"pad_spatial", CS_PAD_CONSTANT, 0.0, {0, 0, 1, 2, 0, 0, 3, 0}},
              {"pad_value", CS_PAD_CONSTANT, -1.5, {0, 0, 1, 1, 0, 0, 1, 1}},
              {"pad_channels", CS_PAD_CONSTANT, 0.5, {0, 2, 0, 0, 0, 3, 0, 1}},
              {"pad_batch", CS_PAD_CONSTANT, 0.0, {1, 0, 0, 0, 0, 0, 2, 0}},
              {"pad_negative", CS_PAD_CONSTANT, 0.5, {0, 0, -1, 2, 0, 0, 3, -2}},
              {"pad_reflect", CS_PAD_REFLECT, 0.0, {0, 0, 4, 3, 0, 0, 2, 5}},
              {"pad_edge", CS_PAD_EDGE, 0.0, {0, 0, 7, 0, 0, 0, 1, 9}},
              {"pad_edge_all", CS_PAD_EDGE, 0.0, {1, 2, 1, 1, 2, 1, 0, 1}},
              {"pad_wrap", CS_PAD_WRAP, 0.0, {0, 0, 5, 2, 0, 0, 1, 6}},
              {"pad_reflect_cut", CS_PAD_REFLECT, 0.0, {0, 0, -2, 1, 0, 0, 2, -1}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    cs_attrs attrs = {.pad = {.rank = 4, .mode = rows[i].mode, .value = rows[i].value}};
    memcpy(attrs.pad.pads, rows[i].pads, sizeof rows[i].pads);
    cc_shaped(x, CS_OP_PAD, rows[i].name, cc_shape4(2, 18, 5, 6), &attrs, 0);
  }
  cs_attrs view = {.pad = {.rank = 4, .pads = {0, 0, 1, 1, 0, 0, 1, 1}, .mode = CS_PAD_REFLECT}};
  cc_shaped(x, CS_OP_PAD, "pad_view", cc_shape4(2, 32, 5, 6), &view, CC_VIEW_IN | CC_VIEW_OUT);
  cs_attrs flat = {.pad = {.rank = 2, .pads = {0, 3, 0, 1}, .value = 2.0}};
  cc_shaped(x, CS_OP_PAD, "pad_flat", cc_shape2(3, 37), &flat, 0);
  cs_attrs cube = {.pad = {.rank = 3, .pads = {1, 0, 2, 0, 1, 3}, .mode = CS_PAD_EDGE}};
  cc_shaped(x, CS_OP_PAD, "pad_cube", (cs_shape){3, {4, 6, 5}}, &cube, 0);
}

static inline cs_attrs cc_transpose(int n, const int64_t *perm, cs_shape from, cs_shape to) {
  cs_attrs attrs = {.transpose = {.n_perm = n, .input_shape = from, .output_shape = to}};
  memcpy(attrs.transpose.perm, perm, (size_t)n * sizeof *perm);
  return attrs;
}

static inline void cc_all_transpose(cc_context *x) {
  static const struct {
    const char *name;
    cs_shape in;
    int n;
    int64_t perm[6];
    cs_shape from, to;
    int flags;
  } rows[] = {{"transpose_last", {4, {2, 18, 5, 6}}, 4, {0, 2, 3, 1}, {0}, {0}, 0},
              {"transpose_first", {4, {2, 18, 5, 6}}, 4, {0, 3, 1, 2}, {0}, {0}, 0},
              {"transpose_planes", {4, {3, 32, 17, 40}}, 4, {0, 1, 3, 2}, {0}, {0}, CC_VIEW_IN},
              {"transpose_images", {4, {3, 13, 5, 6}}, 4, {3, 1, 0, 2}, {0}, {0}, 0},
              {"transpose_nothing", {4, {2, 32, 5, 6}}, 4, {0, 1, 2, 3}, {0}, {0}, CC_VIEW_OUT},
              {"transpose_flat", {2, {65, 77}}, 2, {1, 0}, {0}, {0}, 0},
              {"transpose_cube", {3, {4, 6, 50}}, 3, {2, 0, 1}, {0}, {0}, 0},
              {"transpose_tokens", {4, {2, 32, 4, 5}}, 4, {0, 2, 3, 1}, {0}, {3, {2, 20, 32}}, 0},
              {"transpose_image", {3, {2, 20, 32}}, 4, {0, 3, 1, 2}, {4, {2, 4, 5, 32}}, {0}, 0},
              {"shuffle",
               {4, {2, 32, 9, 8}},
               5,
               {0, 2, 1, 3, 4},
               {5, {2, 4, 8, 9, 8}},
               {4, {2, 32, 9, 8}},
               CC_VIEW_IN | CC_VIEW_OUT},
              {"shuffle_odd",
               {4, {3, 14, 5, 5}},
               5,
               {0, 2, 1, 3, 4},
               {5, {3, 2, 7, 5, 5}},
               {4, {3, 14, 5, 5}},
               CC_VIEW_IN | CC_VIEW_ODD},
              {"depth_to_space",
               {4, {2, 32, 3, 5}},
               6,
               {0, 3, 4, 1, 5, 2},
               {6, {2, 2, 2, 8, 3, 5}},
               {4, {2, 8, 6, 10}},
               0},
              {"depth_to_space_crd",
               {4, {2, 36, 3, 5}},
               6,
               {0, 1, 4, 2, 5, 3},
               {6, {2, 4, 3, 3, 3, 5}},
               {4, {2, 4, 9, 15}},
               CC_VIEW_IN | CC_VIEW_OUT},
              {"space_to_depth",
               {4, {2, 8, 6, 10}},
               6,
               {0, 3, 5, 1, 2, 4},
               {6, {2, 8, 3, 2, 5, 2}},
               {4, {2, 32, 3, 5}},
               CC_VIEW_IN}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    cs_attrs attrs = cc_transpose(rows[i].n, rows[i].perm, rows[i].from, rows[i].to);
    cc_shaped(x, CS_OP_TRANSPOSE, rows[i].name, rows[i].in, &attrs, rows[i].flags);
  }
}

static inline void cc_all_slice(cc_context *x) {
  cs_shape big = cc_shape4(2, 32, 9, 8), odd = cc_shape4(3, 13, 5, 6), flat = cc_shape2(5, 77);
  cs_attrs channels = {.slice = {1, {1}, {8}, {24}, {1}}},
           some = {.slice = {1, {1}, {3}, {10}, {1}}};
  cs_attrs pixels = {.slice = {2, {3, 2}, {1, 0}, {7, 9}, {2, 3}}};
  cs_attrs crop = {.slice = {2, {2, 3}, {2, 4}, {8, 8}, {1, 1}}};
  cs_attrs back = {.slice = {3, {3, 1, 2}, {-1, 9, 4}, {-100, 1, 0}, {-1, -2, -1}}};
  cs_attrs images = {.slice = {1, {0}, {1}, {3}, {1}}};
  cs_attrs columns = {.slice = {1, {1}, {5}, {70}, {1}}},
           rows = {.slice = {1, {0}, {4}, {0}, {-2}}};
  cc_shaped(x, CS_OP_SLICE, "slice_channels", big, &channels, CC_VIEW_IN | CC_VIEW_OUT);
  cc_shaped(x, CS_OP_SLICE, "slice_channels_odd", odd, &some, 0);
  cc_shaped(x, CS_OP_SLICE, "slice_steps", big, &pixels, CC_VIEW_IN);
  cc_shaped(x, CS_OP_SLICE, "slice_crop", big, &crop, 0);
  cc_shaped(x, CS_OP_SLICE, "slice_back", odd, &back, CC_VIEW_IN | CC_VIEW_ODD);
  cc_shaped(x, CS_OP_SLICE, "slice_images", odd, &images, 0);
  cc_shaped(x, CS_OP_SLICE, "slice_columns", flat, &columns, 0);
  cc_shaped(x, CS_OP_SLICE, "slice_rows", flat, &rows, 0);
}

static inline void cc_resize(cc_context *x, const char *how, cs_shape in, int64_t height,
                             int64_t width, cs_resize_attrs resize, int flags) {
  char name[96];
  snprintf(name, sizeof name, "resize_%s_%lldx%lld", how, (long long)height, (long long)width);
  resize.sizes[0] = height, resize.sizes[1] = width;
  if (resize.cubic_coeff_a == 0) resize.cubic_coeff_a = -0.75;
  cs_attrs attrs = {.resize = resize};
  cc_shaped(x, CS_OP_RESIZE, name, in, &attrs, flags);
}

static inline void cc_all_resize(cc_context *x) {
  cs_shape big = cc_shape4(2, 32, 9, 7), odd = cc_shape4(3, 13, 5, 6);
  static const struct {
    const char *how;
    cs_resize_attrs attrs;
  } rows[] = {
      {"nearest", {.nearest = CS_RESIZE_FLOOR, .coordinates = CS_RESIZE_ASYMMETRIC}},
      {"nearest_half", {.nearest = CS_RESIZE_ROUND_PREFER_FLOOR}},
      {"nearest_ceil", {.nearest = CS_RESIZE_CEIL, .coordinates = CS_RESIZE_ALIGN_CORNERS}},
      {"nearest_up", {.nearest = CS_RESIZE_ROUND_PREFER_CEIL}},
      {"nearest_tf", {.nearest = CS_RESIZE_FLOOR, .coordinates = CS_RESIZE_TF_HALF_PIXEL_FOR_NN}},
      {"linear", {.mode = CS_RESIZE_LINEAR}},
      {"linear_corners", {.mode = CS_RESIZE_LINEAR, .coordinates = CS_RESIZE_ALIGN_CORNERS}},
      {"linear_asymmetric", {.mode = CS_RESIZE_LINEAR, .coordinates = CS_RESIZE_ASYMMETRIC}},
      {"linear_scales", {.mode = CS_RESIZE_LINEAR, .scales = {1.3, 0.7}}},
      {"cubic", {.mode = CS_RESIZE_CUBIC}},
      {"cubic_inside", {.mode = CS_RESIZE_CUBIC, .exclude_outside = true, .cubic_coeff_a = -0.5}},
      {"crop",
       {.mode = CS_RESIZE_LINEAR,
        .coordinates = CS_RESIZE_TF_CROP,
        .roi = {0.25, -0.25, 1.25, 0.75},
        .extrapolation_value = 2.5}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    cc_resize(x, rows[i].how, big, 18, 14, rows[i].attrs, 0);
    cc_resize(x, rows[i].how, odd, 8, 4, rows[i].attrs, 0);
  }
  cc_resize(x, "view", big, 13, 16, rows[4].attrs, CC_VIEW_IN | CC_VIEW_OUT);
  cc_resize(x, "view_odd", odd, 10, 12, rows[0].attrs, CC_VIEW_IN | CC_VIEW_OUT | CC_VIEW_ODD);
  cc_resize(x, "pixel", cc_shape4(2, 40, 1, 1), 6, 5, rows[5].attrs, 0);
}

/* Filters widened along both axes, along one, along none; by factors that are no whole numbers. */
static inline void cc_all_antialias(cc_context *x) {
  cs_shape big = cc_shape4(2, 32, 19, 14), odd = cc_shape4(3, 13, 9, 11);
  static const struct {
    const char *how;
    cs_resize_attrs attrs;
  } rows[] = {
      {"antialias", {.mode = CS_RESIZE_LINEAR}},
      {"antialias_inside", {.mode = CS_RESIZE_LINEAR, .exclude_outside = true}},
      {"antialias_corners", {.mode = CS_RESIZE_LINEAR, .coordinates = CS_RESIZE_ALIGN_CORNERS}},
      {"antialias_asymmetric", {.mode = CS_RESIZE_LINEAR, .coordinates = CS_RESIZE_ASYMMETRIC}},
      {"antialias_scales", {.mode = CS_RESIZE_LINEAR, .scales = {0.37, 0.61}}},
      {"antialias_cubic", {.mode = CS_RESIZE_CUBIC}},
      {"antialias_cubic_inside",
       {.mode = CS_RESIZE_CUBIC, .exclude_outside = true, .cubic_coeff_a = -0.5}},
      {"antialias_crop",
       {.mode = CS_RESIZE_LINEAR,
        .coordinates = CS_RESIZE_TF_CROP,
        .roi = {0.25, -0.25, 1.25, 0.75},
        .extrapolation_value = 2.5}}};
  cs_resize_attrs attrs;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    attrs = rows[i].attrs, attrs.antialias = true;
    cc_resize(x, rows[i].how, big, 7, 8, attrs, 0);
    cc_resize(x, rows[i].how, odd, 2, 3, attrs, 0);
    cc_resize(x, rows[i].how, odd, 13, 5, attrs, 0);
  }
  attrs = rows[0].attrs, attrs.antialias = true;
  cc_resize(x, "antialias_up", odd, 12, 16, attrs, 0);
  cc_resize(x, "antialias_far", cc_shape4(1, 10, 61, 83), 3, 2, attrs, 0);
  cc_resize(x, "antialias_view", big, 5, 20, attrs, CC_VIEW_IN | CC_VIEW_OUT);
  cc_resize(x, "antialias_view_odd", odd, 4, 4, attrs, CC_VIEW_IN | CC_VIEW_OUT | CC_VIEW_ODD);
}

/* Copies between every two layouts and every two storage types, dense and sliced. */
static inline void cc_all_copy(cc_context *x) {
  static const cs_precision stored[] = {CS_PRECISION_F32, CS_PRECISION_F16, CS_PRECISION_BF16};
  for (int from = 0; from < x->n_layouts; from++)
    for (int to = 0; to < x->n_layouts; to++)
      for (int kind = 0; kind < 5; kind++) {
        conformance_spec spec = {.name = "copy", .op = CS_OP_COPY, .n_inputs = 1};
        spec.input = spec.output = cc_shape4(1 + kind % 2, kind < 3 ? 19 : 32, 5, 6);
        cs_precision in = stored[kind % 3],
                     out = kind == 0 ? CS_PRECISION_F32 : stored[(kind + 1) % 3];
        cc_emit(x->table, &spec, out, x->layouts[to]);
        conformance_case *c = &x->table->cases[x->table->n - 1];
        c->desc.inputs[0] = cc_place(&spec.input, cs_precision_storage(in), x->layouts[from],
                                     kind == 3, false, &c->inputs[0]);
        c->desc.output = cc_place(&spec.output, cs_precision_storage(out), x->layouts[to],
                                  kind == 4, false, &c->output);
        snprintf(c->name, sizeof c->name, "copy_%d/%s_%s/%s_%s", kind, cs_precision_name(in),
                 cs_layout_name(x->layouts[from]), cs_precision_name(out),
                 cs_layout_name(x->layouts[to]));
      }
}

/* Fills a table for these layouts; release with free(table.cases). */
static inline conformance_table conformance_build(const cs_layout *layouts, int n_layouts) {
  conformance_table table = {0};
  cc_context x = {&table, layouts, n_layouts};
  cc_all_conv(&x);
  cc_all_prologue(&x);
  cc_all_conv_transpose(&x);
  cc_all_pool(&x);
  cc_all_global_pool(&x);
  cc_all_gemm(&x);
  cc_all_matmul(&x);
  cc_all_pointwise(&x);
  cc_all_binary(&x);
  cc_all_unary(&x);
  cc_all_reduce(&x);
  cc_all_instance_norm(&x);
  cc_all_fused(&x);
  cc_all_lrn(&x);
  cc_all_softmax(&x);
  cc_all_pad(&x);
  cc_all_transpose(&x);
  cc_all_slice(&x);
  cc_all_resize(&x);
  cc_all_antialias(&x);
  cc_all_copy(&x);
  return table;
}

/* Values for an operand that is defined for positive numbers alone (cs_op_wants_positive). */
static inline void conformance_make_positive(float *values, int64_t n, cs_dtype dtype) {
  for (int64_t i = 0; values && i < n; i++) values[i] = fabsf(values[i]) + 0.5f;
  cs_round_to_dtype(dtype, values, n);
}

#endif
