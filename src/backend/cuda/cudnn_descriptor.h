/* cuDNN backend descriptors: made in one go (begin, set attributes, finish), the first failure kept
 * until the end. */
#ifndef CONVSCHED_BACKEND_CUDA_CUDNN_DESCRIPTOR_H_
#define CONVSCHED_BACKEND_CUDA_CUDNN_DESCRIPTOR_H_

#include "backend/cuda/cuda_error.h"

/* What plans are made for: a handle (a device that is there) or a device-property descriptor (a
 * device known only by its properties; plans can be made but not run). Exactly one is set. */
typedef struct cs_cudnn_target {
  cudnnHandle_t handle;
  cudnnBackendDescriptor_t properties;
} cs_cudnn_target;

typedef struct cs_descriptor {
  cudnnBackendDescriptor_t value;
  cudnnStatus_t status; /* of the first step that failed */
  int attribute;        /* of that step; -1: creation or finishing */
} cs_descriptor;

cs_descriptor cs_descriptor_begin(cudnnBackendDescriptorType_t type);
void cs_descriptor_set(cs_descriptor *descriptor, cudnnBackendAttributeName_t name,
                       cudnnBackendAttributeType_t type, int64_t count, const void *values);
void cs_descriptor_int(cs_descriptor *descriptor, cudnnBackendAttributeName_t name, int64_t value);
void cs_descriptor_child(cs_descriptor *descriptor, cudnnBackendAttributeName_t name,
                         cudnnBackendDescriptor_t child);
/* Finalizes; on failure destroys and leaves *out NULL. BAD_INPUT: cuDNN has no such thing for what
 * was set. The raw form gives cuDNN's own result. */
cudnnStatus_t cs_descriptor_finish_raw(cs_descriptor *descriptor, cudnnBackendDescriptor_t *out);
cs_status cs_descriptor_finish(cs_descriptor *descriptor, const char *what,
                               cudnnBackendDescriptor_t *out) CS_MUST_USE;
/* NULL is fine; *descriptor becomes NULL. */
void cs_descriptor_destroy(cudnnBackendDescriptor_t *descriptor);

/* Reads one attribute element; false if it is not there. */
bool cs_descriptor_get(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                       cudnnBackendAttributeType_t type, void *value);
/* Reads up to `capacity` elements; returns how many were delivered. */
int cs_descriptor_get_many(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, int capacity, void *values);
/* How many elements the attribute claims to have. */
int cs_descriptor_count(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                        cudnnBackendAttributeType_t type);

/* A device-property descriptor from JSON text. */
cs_status cs_cudnn_properties_create(const char *json, cudnnBackendDescriptor_t *out) CS_MUST_USE;

#endif
