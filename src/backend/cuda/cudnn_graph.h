/* The operation graph of a convolution with its epilogue: conv → add residual → add bias →
 * activation, in the order for which cuDNN has most engines. */
#ifndef CONVSCHED_BACKEND_CUDA_CUDNN_GRAPH_H_
#define CONVSCHED_BACKEND_CUDA_CUDNN_GRAPH_H_

#include "backend/cuda/cudnn_descriptor.h"
#include "backend/cuda/cudnn_problem.h"

/* Unique ids of the tensors that a variant pack binds. */
enum {
  CS_CUDNN_UID_INPUT = 1,
  CS_CUDNN_UID_FILTER = 2,
  CS_CUDNN_UID_OUTPUT = 3,
  CS_CUDNN_UID_BIAS = 4, /* [1, K, 1, 1], storage type */
  CS_CUDNN_UID_RESIDUAL = 5,
};

typedef struct cs_cudnn_graph cs_cudnn_graph; /* owns every descriptor it was made of */

cs_status cs_cudnn_graph_create(const cs_cudnn_target *target, const cs_cudnn_problem *problem,
                                cs_cudnn_graph **out) CS_MUST_USE;
void cs_cudnn_graph_destroy(cs_cudnn_graph *graph);
cudnnBackendDescriptor_t cs_cudnn_graph_descriptor(const cs_cudnn_graph *graph);

/* True where the graph adds a bias: with any epilogue at all, since the precompiled engines know
 * convolution + bias + … only; a problem without a bias then binds zeros. */
bool cs_cudnn_graph_has_bias(const cs_cudnn_problem *problem);

#endif
