#include "backend/cuda/cudnn_descriptor.h"

#include <string.h>

cs_descriptor cs_descriptor_begin(cudnnBackendDescriptorType_t type) {
  cs_descriptor d = {.attribute = -1};
  d.status = cudnnBackendCreateDescriptor(type, &d.value);
  if (d.status != CUDNN_STATUS_SUCCESS) d.value = NULL;
  return d;
}

void cs_descriptor_set(cs_descriptor *descriptor, cudnnBackendAttributeName_t name,
                       cudnnBackendAttributeType_t type, int64_t count, const void *values) {
  if (descriptor->status != CUDNN_STATUS_SUCCESS) return;
  descriptor->status = cudnnBackendSetAttribute(descriptor->value, name, type, count, values);
  if (descriptor->status != CUDNN_STATUS_SUCCESS) descriptor->attribute = (int)name;
}

void cs_descriptor_int(cs_descriptor *descriptor, cudnnBackendAttributeName_t name, int64_t value) {
  cs_descriptor_set(descriptor, name, CUDNN_TYPE_INT64, 1, &value);
}

void cs_descriptor_child(cs_descriptor *descriptor, cudnnBackendAttributeName_t name,
                         cudnnBackendDescriptor_t child) {
  cs_descriptor_set(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &child);
}

cudnnStatus_t cs_descriptor_finish_raw(cs_descriptor *descriptor, cudnnBackendDescriptor_t *out) {
  *out = NULL;
  if (descriptor->status == CUDNN_STATUS_SUCCESS) {
    descriptor->status = cudnnBackendFinalize(descriptor->value);
  }
  if (descriptor->status == CUDNN_STATUS_SUCCESS) {
    *out = descriptor->value;
    descriptor->value = NULL;
  }
  cs_descriptor_destroy(&descriptor->value);
  return descriptor->status;
}

cs_status cs_descriptor_finish(cs_descriptor *descriptor, const char *what,
                               cudnnBackendDescriptor_t *out) {
  cudnnStatus_t result = cs_descriptor_finish_raw(descriptor, out);
  if (result == CUDNN_STATUS_SUCCESS) return CS_OK;
  if (!cs_cudnn_unsupported(result)) return cs_cudnn_status(result, "describing %s to cuDNN", what);
  return cs_error(CS_CODE_BAD_INPUT, "cuDNN does not take %s (attribute %d): error %d (%s)", what,
                  descriptor->attribute, (int)result, cudnnGetErrorString(result));
}

void cs_descriptor_destroy(cudnnBackendDescriptor_t *descriptor) {
  if (*descriptor) (void)cudnnBackendDestroyDescriptor(*descriptor);
  *descriptor = NULL;
}

bool cs_descriptor_get(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                       cudnnBackendAttributeType_t type, void *value) {
  return cs_descriptor_get_many(descriptor, name, type, 1, value) == 1;
}

int cs_descriptor_get_many(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, int capacity, void *values) {
  int64_t count = 0;
  if (cudnnBackendGetAttribute(descriptor, name, type, capacity, &count, values) !=
      CUDNN_STATUS_SUCCESS) {
    return 0;
  }
  return (int)cs_min_i64(count, capacity);
}

int cs_descriptor_count(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                        cudnnBackendAttributeType_t type) {
  int64_t count = 0;
  if (cudnnBackendGetAttribute(descriptor, name, type, 0, &count, NULL) != CUDNN_STATUS_SUCCESS) {
    return 0;
  }
  return (int)count;
}

cs_status cs_cudnn_properties_create(const char *json, cudnnBackendDescriptor_t *out) {
  cs_descriptor d = cs_descriptor_begin(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  cs_descriptor_set(&d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                    (int64_t)strlen(json), json);
  return cs_descriptor_finish(&d, "device properties", out);
}
