/* Pad. */
#include <float.h>
#include <math.h>

#include "onnx/import.h"

/* Spreads pads of the axes listed (opset 18) over all axes: begins, then ends. */
static cs_status spread_pads(cs_onnx_node *node, int rank, const int64_t *list, int n,
                             int64_t out[2 * CS_MAX_RANK]) {
  int64_t axes[CS_MAX_RANK];
  int n_axes = -1;
  if (node->import->opset >= 18) CS_RETURN_IF_ERROR(cs_onnx_axes(node, 3, 18, rank, axes, &n_axes));
  if (node->refused) return CS_OK;
  if (n_axes < 0) {
    n_axes = rank;
    for (int i = 0; i < rank; i++) axes[i] = i;
  }
  if (n != 2 * n_axes) {
    return cs_onnx_refuse(node, "pads: found %d numbers, wanted %d", n, 2 * n_axes);
  }
  for (int i = 0; i < n_axes; i++) {
    out[axes[i]] = list[i];
    out[rank + axes[i]] = list[n_axes + i];
  }
  return CS_OK;
}

static cs_status read_mode_and_value(cs_onnx_node *node, cs_pad_attrs *pad) {
  char mode[16];
  CS_RETURN_IF_ERROR(cs_onnx_text(node, "mode", "constant", mode, sizeof mode));
  int found = cs_pad_mode_named(mode);
  if (found < 0) {
    return cs_onnx_refuse(node, "attribute mode: found %s, wanted constant, reflect, edge or wrap",
                          mode);
  }
  pad->mode = (cs_pad_mode)found;
  if (node->import->opset < 11) {
    CS_RETURN_IF_ERROR(cs_onnx_real(node, "value", 0.0, &pad->value));
  } else {
    CS_RETURN_IF_ERROR(cs_onnx_scalar(node, "constant_value", 2, &pad->value));
  }
  /* What a MaxPool behind it does not take. JSON has no word for infinity. */
  if (isinf(pad->value)) pad->value = copysign((double)FLT_MAX, pad->value);
  if (!isnan(pad->value)) return CS_OK;
  return cs_onnx_refuse(node, "input constant_value: found %g, wanted a number", pad->value);
}

cs_status cs_onnx_pad(cs_onnx_node *node) {
  cs_onnx_data input;
  int64_t list[2 * CS_MAX_RANK] = {0};
  cs_attrs attrs = {0};
  int n;
  bool there, none = !node->import->model->as_written;
  CS_RETURN_IF_ERROR(read_mode_and_value(node, &attrs.pad));
  CS_RETURN_IF_ERROR(cs_onnx_list(node, "pads", 1, 11, 2 * CS_MAX_RANK, list, &n));
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there || node->refused) return CS_OK;
  attrs.pad.rank = input.shape.rank;
  CS_RETURN_IF_ERROR(spread_pads(node, input.shape.rank, list, n, attrs.pad.pads));
  if (node->refused) return CS_OK;
  for (int i = 0; i < 2 * attrs.pad.rank; i++) none = none && attrs.pad.pads[i] == 0;
  if (none) return cs_onnx_become(node, CS_OP_IDENTITY, NULL, &input, 1);
  return cs_onnx_become(node, CS_OP_PAD, &attrs, &input, 1);
}
