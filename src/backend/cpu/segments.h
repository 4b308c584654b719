/* Walks tensors of one shape (or broadcast to it: cs_tensor_broadcast) together in segments: runs
 * of elements with a fixed step in each tensor. Tensors of one layout are walked along their lanes
 * or their rows, others along rows. */
#ifndef CONVSCHED_BACKEND_CPU_SEGMENTS_H_
#define CONVSCHED_BACKEND_CPU_SEGMENTS_H_

#include "graph/op.h"

#define CPU_MAX_WALKED 3

typedef struct cpu_segment {
  int64_t offsets[CPU_MAX_WALKED]; /* elements, per tensor */
  int64_t steps[CPU_MAX_WALKED];
  int64_t length;
  int64_t channel, channel_step; /* of the first element, and from one to the next */
} cpu_segment;

typedef void (*cpu_segment_fn)(void *user, const cpu_segment *segment);
/* Calls `body` for every segment, from all OpenMP threads. The tensors have equal shapes, rank at
 * most 4. Only logical elements are visited, never the lanes that pad a blocked layout. */
void cpu_walk(const cs_tensor_desc *const *tensors, int n, cpu_segment_fn body, void *user);

/* The same tensor as rank 4, trailing extents of 1 added. */
cs_tensor_desc cpu_as_rank4(const cs_tensor_desc *tensor);

#endif
