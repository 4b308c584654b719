/* Weights on their way to the device. */
#ifndef CONVSCHED_RUNTIME_UPLOAD_H_
#define CONVSCHED_RUNTIME_UPLOAD_H_

#include "runtime/session.h"

/* Whose weights: those of the tasks of a plan. */
typedef struct cs_weights {
  const cs_program *program;
  const cs_plan *plan;
  const cs_params *params;
  /* Per plan position: the one whose weights it shares, itself where it has its own; NULL: all have
   * their own. */
  const int *owner;
} cs_weights;

typedef struct cs_upload_way {
  int64_t piece_bytes; /* of one piece at most, where a single task's weights are no more */
  bool beside;         /* a piece is packed while the one before is uploaded */
  bool pinned;         /* from memory of host_allocate, where the backend has it */
} cs_upload_way;
/* Pieces of 32 MiB, beside each other, from pageable memory: what pinning gains or costs has not
 * been measured (tests/gpu/test_runtime_gpu_upload.c prints it). */
extern const cs_upload_way cs_upload_default;

/* Allocates and fills out->weights, where execs and exec_of are there; sets weight_offset,
 * weights_bytes and uploading. Errors name the task. */
cs_status cs_upload_weights(const cs_weights *weights, cs_realised *out) CS_MUST_USE;
/* Fills realised->weights, which is not the host's memory. Adds to *times. Takes two pieces of host
 * memory meanwhile; no copy is under way when it returns. */
cs_status cs_upload_pieces(const cs_weights *weights, const cs_upload_way *way,
                           const cs_realised *realised, cs_upload_times *times) CS_MUST_USE;

#endif
