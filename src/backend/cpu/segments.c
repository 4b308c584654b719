#include "backend/cpu/segments.h"

#include "backend/cpu/omp.h"

cs_tensor_desc cpu_as_rank4(const cs_tensor_desc *tensor) {
  cs_tensor_desc four = *tensor;
  for (int i = four.shape.rank; i < 4; i++) four.shape.dims[i] = four.strides[i] = 1;
  four.shape.rank = 4;
  return four;
}

/* Channels that lie side by side: what a segment along lanes covers. */
static int64_t lanes_of(const cs_tensor_desc *tensor) {
  switch (tensor->layout) {
    case CS_LAYOUT_NHWC:
      return tensor->shape.dims[1];
    case CS_LAYOUT_NCHW16C:
    case CS_LAYOUT_NCHW8C:
      return cs_layout_granule(tensor->layout);
    default:
      return 1;
  }
}

typedef struct walk_plan {
  cs_tensor_desc tensors[CPU_MAX_WALKED];
  int n;
  int64_t lanes, blocks;
  bool flat; /* rank 2: one segment a row of channels */
} walk_plan;

/* Rows (n, channel block, h): along lanes for each w, or along w. */
static void walk_row(const walk_plan *plan, int64_t row, cpu_segment_fn body, void *user) {
  const int64_t *dims = plan->tensors[0].shape.dims;
  int64_t h = row % dims[2], block = row / dims[2] % plan->blocks;
  int64_t n = row / dims[2] / plan->blocks, c = block * plan->lanes;
  bool along_lanes = plan->lanes > 1;
  cpu_segment segment = {.channel = c, .channel_step = along_lanes ? 1 : 0};
  segment.length = along_lanes ? cs_min_i64(plan->lanes, dims[1] - c) : dims[3];
  int64_t at[CPU_MAX_WALKED];
  for (int i = 0; i < plan->n; i++) {
    const cs_tensor_desc *t = &plan->tensors[i];
    at[i] = cs_tensor_offset4(t, n, c, h, 0);
    bool blocked = cs_layout_granule(t->layout) > 1;
    segment.steps[i] = !along_lanes ? t->strides[3] : blocked ? 1 : t->strides[1];
  }
  for (int64_t w = 0; w < (along_lanes ? dims[3] : 1); w++) {
    for (int i = 0; i < plan->n; i++) segment.offsets[i] = at[i] + w * plan->tensors[i].strides[3];
    body(user, &segment);
  }
}

void cpu_walk(const cs_tensor_desc *const *tensors, int n, cpu_segment_fn body, void *user) {
  walk_plan plan = {.n = n};
  bool same_layout = true;
  for (int i = 0; i < n; i++) {
    plan.tensors[i] = cpu_as_rank4(tensors[i]);
    same_layout &= tensors[i]->layout == tensors[0]->layout;
  }
  const int64_t *dims = plan.tensors[0].shape.dims;
  plan.flat = tensors[0]->shape.rank == 2;
  plan.lanes = plan.flat ? dims[1] : same_layout ? lanes_of(&plan.tensors[0]) : 1;
  if (plan.lanes < 1) return; /* nothing to visit */
  plan.blocks = (dims[1] + plan.lanes - 1) / plan.lanes;
  int64_t rows = dims[0] * plan.blocks * dims[2];
  CPU_PARALLEL_FOR
  for (int64_t row = 0; row < rows; row++) walk_row(&plan, row, body, user);
}
