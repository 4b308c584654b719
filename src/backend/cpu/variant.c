/* Ways to bring an operation to what an implementation accepts: as it is, image by image, or with
 * tensors converted at the borders. */
#include <stdio.h>
#include <string.h>

#include "backend/cpu/cpu.h"

typedef enum base_way { AS_IT_IS, BY_IMAGE, STAGED, INPUT_NCHW, ALL_NCHW, BASE_WAYS } base_way;

static const char *const way_names[] = {"", "/images", "/staged", "/input-nchw", "/nchw"};

/* Inputs, residual included, then the output. */
static cs_tensor_desc *tensor_at(cs_op_desc *desc, int i) {
  return i < desc->n_inputs ? &desc->inputs[i] : &desc->output;
}

static bool all_f32(const cs_op_desc *desc) {
  bool all = desc->output.dtype == CS_DTYPE_F32;
  for (int i = 0; i < desc->n_inputs; i++) all &= desc->inputs[i].dtype == CS_DTYPE_F32;
  return all;
}

static bool all_dense(const cs_op_desc *desc) {
  bool all = cs_tensor_is_dense(&desc->output);
  for (int i = 0; i < desc->n_inputs; i++) all &= cs_tensor_is_dense(&desc->inputs[i]);
  return all;
}

/* Does every input have the output's images? */
static bool images_line_up(const cs_op_desc *desc) {
  for (int i = 0; i < desc->n_inputs; i++) {
    const cs_shape *in = &desc->inputs[i].shape;
    if (in->rank != 4 || in->dims[0] != desc->output.shape.dims[0]) return false;
  }
  return true;
}

/* Each image of a channel slice is dense by itself. */
static bool by_image(const cs_op_desc *desc, cpu_variant *out) {
  if (!all_f32(desc) || all_dense(desc) || desc->output.shape.rank != 4 ||
      desc->op == CS_OP_SOFTMAX || desc->op == CS_OP_PAD || cs_op_has_operand(desc) ||
      desc->output.shape.dims[0] < 2 || !images_line_up(desc))
    return false;
  out->images = (int)desc->output.shape.dims[0];
  for (int i = 0; i <= desc->n_inputs; i++) tensor_at(&out->core, i)->shape.dims[0] = 1;
  return all_dense(&out->core);
}

static bool stage(const cs_op_desc *desc, cpu_variant *out, int i, cs_layout layout) {
  cs_tensor_desc *tensor = tensor_at(&out->core, i);
  cs_tensor_desc wanted = cs_tensor_dense(&tensor->shape, CS_DTYPE_F32, layout);
  bool needed = tensor->dtype != CS_DTYPE_F32 || !cs_tensor_is_dense(tensor) ||
                tensor->layout != wanted.layout;
  if (!needed) return false;
  *tensor = wanted;
  if (i < desc->n_inputs)
    out->staged_inputs[i] = true;
  else
    out->staged_output = true;
  return true;
}

static bool stage_all(const cs_op_desc *desc, cpu_variant *out, base_way way) {
  bool any = false;
  for (int i = 0; i <= desc->n_inputs; i++) {
    cs_layout layout = way == ALL_NCHW ? CS_LAYOUT_NCHW : tensor_at(&out->core, i)->layout;
    any |= stage(desc, out, i, layout);
  }
  return any;
}

/* A first convolution: few channels in a blocked layout are mostly padding. */
static bool input_nchw(const cs_op_desc *desc, cpu_variant *out) {
  const cs_tensor_desc *x = &desc->inputs[0];
  if (desc->op != CS_OP_CONV || x->shape.dims[1] >= cs_layout_granule(x->layout)) return false;
  stage(desc, out, 0, CS_LAYOUT_NCHW);
  for (int i = 1; i <= desc->n_inputs; i++) stage(desc, out, i, tensor_at(&out->core, i)->layout);
  return true;
}

bool cpu_variant_get(const cs_op_desc *desc, int index, cpu_variant *out) {
  memset(out, 0, sizeof *out);
  if (index >= 2 * BASE_WAYS) return false;
  base_way way = (base_way)(index / 2);
  out->core = *desc;
  out->images = 1;
  out->unfused = index % 2 == 1;
  out->applies = true;
  bool mixed = way == ALL_NCHW && desc->output.shape.rank != 4;
  if (way == AS_IT_IS) out->applies = all_f32(desc);
  if (way == BY_IMAGE) out->applies = by_image(desc, out);
  if (way == STAGED || way == ALL_NCHW) out->applies = !mixed && stage_all(desc, out, way);
  if (way == INPUT_NCHW) out->applies = input_nchw(desc, out);
  if (out->unfused) {
    if (!desc->has_residual && desc->activation.kind == CS_ACT_NONE) out->applies = false;
    out->core.activation = (cs_activation){CS_ACT_NONE, 0, 0};
    if (desc->has_residual) out->core.n_inputs--;
    out->core.has_residual = false;
  }
  out->core.precision = CS_PRECISION_F32;
  snprintf(out->suffix, sizeof out->suffix, "%s%s", way_names[way], out->unfused ? "/unfused" : "");
  return true;
}
