/* The ways in which cuDNN comes to compute an operation, and the families of candidates that are
 * named after them. Pure data. */
#ifndef CONVSCHED_BACKEND_CUDA_CUDNN_WAY_H_
#define CONVSCHED_BACKEND_CUDA_CUDNN_WAY_H_

#include "backend/cuda/cudnn_problem.h"

typedef struct cs_cudnn_way {
  bool legacy;   /* a named algorithm; else an engine of an operation graph */
  bool epilogue; /* bias, residual and activation by an own kernel behind it (legacy: always so) */
  bool dense; /* into dense workspace; an own kernel, the epilogue's or a copy, moves the result */
} cs_cudnn_way;

/* "cudnn.graph", "cudnn.graph+epilogue", "cudnn.legacy", and the same with ".dense": static. */
const char *cs_cudnn_family(cs_cudnn_way way);
/* Reads "family:name"; *name points behind the colon. False: none of these families. */
bool cs_cudnn_way_parse(const char *id, cs_cudnn_way *out, const char **name);

/* What cuDNN is asked to compute in this way. */
cs_cudnn_problem cs_cudnn_way_problem(cs_cudnn_way way, const cs_cudnn_problem *problem);
/* Bytes at the start of the workspace that the result lies in before it is moved, rounded up so
 * that cuDNN's own workspace may follow; 0 unless dense. `problem`: as asked of cuDNN. */
int64_t cs_cudnn_way_staging(cs_cudnn_way way, const cs_cudnn_problem *problem);

#endif
