/* Splits of a device's units (SMs) into parts that streams keep to: which there are. Pure. */
#ifndef CONVSCHED_PROFILER_PARTITION_H_
#define CONVSCHED_PROFILER_PARTITION_H_

#include "backend/backend.h"

/* Parts as one text: "16,116". */
#define CS_PARTS_TEXT 64
void cs_parts_text(const int *parts, int n, char out[CS_PARTS_TEXT]);

/* The least part of a GPU of this compute capability and the step of larger ones, as CUDA documents
 * them (a driver of CUDA 13 tells them itself). 0 and 0: not known, it cannot be split. */
void cs_part_units(int compute_capability, int *least, int *step);

/* BAD_INPUT, which says what was found and wanted, unless the device's units can be split so: 2 to
 * CS_MAX_PARTS parts, each a multiple of part_step from part_least on, together no more than there
 * are. The last part may instead be all units that the others leave. */
cs_status cs_parts_check(const cs_device_info *device, const int *parts, int n) CS_MUST_USE;

/* The splits into two parts worth trying, smaller part first: about a quarter and the rest, half
 * and half; fewer on a device that is too small for them. Returns how many. */
#define CS_DEFAULT_SPLITS 2
int cs_parts_default(const cs_device_info *device, int out[CS_DEFAULT_SPLITS][2]);

/* Streams of a schedule on this device: one or more, parts as above (none: no stream has one).
 * INTERNAL for a part that is not there. */
cs_status cs_stream_set_check(const cs_stream_set *streams,
                              const cs_device_info *device) CS_MUST_USE;
/* The part that a stream keeps to, -1: the whole device. */
static inline int cs_stream_part(const cs_stream_set *streams, int stream) {
  return streams->n_parts > 0 && streams->part_of ? streams->part_of[stream] : -1;
}

#endif
