#include "backend/cuda/split.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cuda/stream_name.h"
#include "profiler/partition.h"

struct cs_cuda_split {
  int n, parts[CS_MAX_PARTS];
  CUgreenCtx contexts[CS_MAX_PARTS];
  CUgreenCtx
      rests[CS_MAX_PARTS]; /* of what remained and had to be split again; nothing runs there */
  cudaStream_t streams[CS_MAX_PARTS][CS_CUDA_MAX_STREAMS];
  cudaStream_t urgent[CS_MAX_PARTS][CS_CUDA_MAX_STREAMS];
  struct cs_cuda_split *next;
};

static cs_status device_resource(const cs_cuda_backend *backend, CUdevice *device,
                                 CUdevResource *out) {
  const cs_cuda_driver *driver = &backend->driver;
  CS_RETURN_IF_ERROR(cs_driver_status((int)driver->device_get(device, backend->device),
                                      "asking for CUDA device %d", backend->device));
  return cs_driver_status((int)driver->device_get_resource(*device, out, CU_DEV_RESOURCE_TYPE_SM),
                          "asking for the SMs of CUDA device %d", backend->device);
}

cs_status cs_cuda_split_units(cs_cuda_backend *backend) {
  CUdevice device = 0;
  CUdevResource sms;
  cs_device_info *info = &backend->info;
  info->part_least = info->part_step = 0;
  memset(&sms, 0, sizeof(sms));
  if (!backend->driver.green_create) {
    cs_log(&backend->base.logger, CS_LOG_DEBUG, "%s cannot be split: %s", info->name,
           backend->driver.no_green);
    return CS_OK;
  }
  CS_RETURN_IF_ERROR(device_resource(backend, &device, &sms));
  cs_part_units(info->compute_capability, &info->part_least, &info->part_step);
#if CUDA_VERSION >= 13000
  if (sms.sm.minSmPartitionSize > 0 && sms.sm.smCoscheduledAlignment > 0) {
    info->part_least = (int)sms.sm.minSmPartitionSize;
    info->part_step = (int)sms.sm.smCoscheduledAlignment;
  }
#endif
  return CS_OK;
}

/* ---- Making one ---- */

/* A context of these SMs; it must have as many as are wanted. */
static cs_status make_context(const cs_cuda_backend *backend, CUdevice device, CUdevResource *sms,
                              int wanted, CUgreenCtx *out) {
  const cs_cuda_driver *driver = &backend->driver;
  CUdevResourceDesc description = NULL;
  CUdevResource given;
  memset(&given, 0, sizeof(given));
  CS_RETURN_IF_ERROR(cs_driver_status((int)driver->resource_describe(&description, sms, 1),
                                      "describing %d SMs", wanted));
  CS_RETURN_IF_ERROR(cs_driver_status(
      (int)driver->green_create(out, description, device, CU_GREEN_CTX_DEFAULT_STREAM),
      "creating a green context of %d SMs", wanted));
  CS_RETURN_IF_ERROR(
      cs_driver_status((int)driver->green_get_resource(*out, &given, CU_DEV_RESOURCE_TYPE_SM),
                       "asking for the SMs of a green context"));
  if ((int)given.sm.smCount == wanted) return CS_OK;
  return cs_error(CS_CODE_BAD_INPUT, "the driver gave %u SMs where %d were wanted",
                  given.sm.smCount, wanted);
}

/* Takes `wanted` SMs off `rest`. */
static cs_status cut(const cs_cuda_driver *driver, CUdevResource *rest, int wanted,
                     CUdevResource *out) {
  CUdevResource left;
  unsigned groups = 1;
  memset(&left, 0, sizeof(left));
  CS_RETURN_IF_ERROR(
      cs_driver_status((int)driver->resource_split(out, &groups, rest, &left, 0, (unsigned)wanted),
                       "splitting %d off %u SMs", wanted, rest->sm.smCount));
  if (groups != 1 || (int)out->sm.smCount != wanted) {
    return cs_error(CS_CODE_BAD_INPUT, "the driver splits %u off %u SMs where %d were wanted",
                    groups > 0 ? out->sm.smCount : 0, rest->sm.smCount, wanted);
  }
  *rest = left;
  return CS_OK;
}

/* One part after the other is taken off what remains. CUDA splits what a split left only once a
 * context was made of it; the last part may be all that is left. */
static cs_status make_parts(const cs_cuda_backend *backend, cs_cuda_split *split) {
  const cs_cuda_driver *driver = &backend->driver;
  CUdevice device = 0;
  CUdevResource rest, part;
  memset(&rest, 0, sizeof(rest));
  CS_RETURN_IF_ERROR(device_resource(backend, &device, &rest));
  for (int i = 0; i < split->n; i++) {
    memset(&part, 0, sizeof(part));
    if ((int)rest.sm.smCount == split->parts[i]) {
      part = rest;
    } else {
      if (i > 0) {
        CS_RETURN_IF_ERROR(
            make_context(backend, device, &rest, (int)rest.sm.smCount, &split->rests[i]));
        CS_RETURN_IF_ERROR(cs_driver_status(
            (int)driver->green_get_resource(split->rests[i], &rest, CU_DEV_RESOURCE_TYPE_SM),
            "asking for the SMs of a green context"));
      }
      CS_RETURN_IF_ERROR(cut(driver, &rest, split->parts[i], &part));
    }
    CS_RETURN_IF_ERROR(make_context(backend, device, &part, split->parts[i], &split->contexts[i]));
  }
  return CS_OK;
}

/* Streams before their contexts: what is left behind is leaked. */
static void destroy(const cs_cuda_driver *driver, cs_cuda_split *split) {
  for (int p = 0; p < split->n; p++) {
    for (int i = 0; i < CS_CUDA_MAX_STREAMS; i++) {
      if (split->streams[p][i]) (void)cudaStreamDestroy(split->streams[p][i]);
      if (split->urgent[p][i]) (void)cudaStreamDestroy(split->urgent[p][i]);
    }
    if (split->contexts[p]) (void)driver->green_destroy(split->contexts[p]);
  }
  for (int p = split->n - 1; p >= 0; p--) {
    if (split->rests[p]) (void)driver->green_destroy(split->rests[p]);
  }
  free(split);
}

/* ---- Those that there are ---- */

cs_status cs_cuda_split_find(cs_cuda_backend *backend, const cs_stream_set *streams,
                             cs_cuda_split **out) {
  size_t bytes = (size_t)streams->n_parts * sizeof(streams->parts[0]);
  char text[CS_PARTS_TEXT];
  for (cs_cuda_split *s = backend->splits; s; s = s->next) {
    *out = s;
    if (s->n == streams->n_parts && memcmp(s->parts, streams->parts, bytes) == 0) return CS_OK;
  }
  *out = NULL;
  cs_cuda_split *split = cs_calloc(1, sizeof(*split));
  if (!split) return cs_no_memory("a split of the SMs", sizeof(*split));
  split->n = streams->n_parts;
  memcpy(split->parts, streams->parts, bytes);
  cs_parts_text(split->parts, split->n, text);
  cs_status st = make_parts(backend, split);
  if (st != CS_OK) {
    destroy(&backend->driver, split);
    return cs_annotate(st, "partition %s of %s: ", text, backend->info.name);
  }
  cs_log(&backend->base.logger, CS_LOG_DEBUG, "%s split into %s SMs", backend->info.name, text);
  split->next = backend->splits;
  backend->splits = split;
  *out = split;
  return CS_OK;
}

cs_status cs_cuda_split_stream(const cs_cuda_backend *backend, cs_cuda_split *split, int part,
                               int index, bool urgent, cudaStream_t *out) {
  cudaStream_t *stream = urgent ? &split->urgent[part][index] : &split->streams[part][index];
  if (!*stream) {
    int priority = 0;
    CS_RETURN_IF_ERROR(cs_cuda_priority(urgent, &priority));
    CS_RETURN_IF_ERROR(cs_driver_status(
        (int)backend->driver.green_stream_create((CUstream *)stream, split->contexts[part],
                                                 CU_STREAM_NON_BLOCKING, priority),
        "creating stream %d on %d SMs", index, split->parts[part]));
    cs_cuda_name_stream(*stream, index, urgent, split->parts[part]);
  }
  *out = *stream;
  return CS_OK;
}

void cs_cuda_splits_destroy(cs_cuda_backend *backend) {
  while (backend->splits) {
    cs_cuda_split *split = backend->splits;
    backend->splits = split->next;
    destroy(&backend->driver, split);
  }
}
