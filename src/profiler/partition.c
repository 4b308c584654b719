#include "profiler/partition.h"

#include <stdio.h>

void cs_parts_text(const int *parts, int n, char out[CS_PARTS_TEXT]) {
  size_t used = 0;
  out[0] = '\0';
  for (int i = 0; i < n && i < CS_MAX_PARTS && used < CS_PARTS_TEXT; i++) {
    used += (size_t)snprintf(out + used, CS_PARTS_TEXT - used, "%s%d", i > 0 ? "," : "", parts[i]);
  }
}

/* CUDA driver API, "Green Contexts": 2 and 2 from Pascal on, 4 and 2 for Ampere and Ada, 8 and 8
 * from Hopper on. */
void cs_part_units(int compute_capability, int *least, int *step) {
  *least = compute_capability >= 90 ? 8 : compute_capability >= 80 ? 4 : 2;
  *step = compute_capability >= 90 ? 8 : 2;
  if (compute_capability < 60) *least = *step = 0;
}

/* One part, with `left` units that the ones before leave. */
static cs_status check_part(const cs_device_info *device, const int *parts, int n, int index,
                            int left) {
  char text[CS_PARTS_TEXT];
  int units = parts[index];
  bool rest = index == n - 1 && units == left && units >= device->part_least;
  bool stepped = units >= device->part_least && units % device->part_step == 0;
  cs_parts_text(parts, n, text);
  if (units > left) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "partition %s: part %d has %d units where %d of the %d of %s are left", text,
                    index, units, left, device->units, device->name);
  }
  if (rest || stepped) return CS_OK;
  return cs_error(CS_CODE_BAD_INPUT,
                  "partition %s: part %d has %d units; wanted on %s: %d or more, in steps of %d%s",
                  text, index, units, device->name, device->part_least, device->part_step,
                  index == n - 1 ? ", or all that are left" : "");
}

cs_status cs_parts_check(const cs_device_info *device, const int *parts, int n) {
  char text[CS_PARTS_TEXT];
  cs_parts_text(parts, n, text);
  if (device->part_least < 1 || device->part_step < 1) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "partition %s: %s cannot be split; wanted: no partition, or a GPU whose driver "
                    "has green contexts",
                    text, device->name);
  }
  if (n < 2 || n > CS_MAX_PARTS) {
    return cs_error(CS_CODE_BAD_INPUT, "partition %s: %d parts; wanted: 2 to %d", text, n,
                    CS_MAX_PARTS);
  }
  int left = device->units;
  for (int i = 0; i < n; i++) {
    CS_RETURN_IF_ERROR(check_part(device, parts, n, i, left));
    left -= parts[i];
  }
  return CS_OK;
}

int cs_parts_default(const cs_device_info *device, int out[CS_DEFAULT_SPLITS][2]) {
  int n = 0;
  if (device->part_least < 1 || device->part_step < 1) return 0;
  for (int i = 0; i < CS_DEFAULT_SPLITS; i++) {
    int units = device->units / (i == 0 ? 4 : 2) / device->part_step * device->part_step;
    bool again = n > 0 && out[n - 1][0] == units;
    if (units < device->part_least || device->units - units < device->part_least || again) continue;
    out[n][0] = units;
    out[n++][1] = device->units - units;
  }
  return n;
}

cs_status cs_stream_set_check(const cs_stream_set *streams, const cs_device_info *device) {
  if (streams->n < 1) {
    return cs_error(CS_CODE_INTERNAL, "found %d streams, wanted one or more", streams->n);
  }
  for (int i = 0; streams->part_of && i < streams->n; i++) {
    int part = streams->part_of[i];
    if (part >= -1 && part < streams->n_parts) continue;
    return cs_error(CS_CODE_INTERNAL, "stream %d is on part %d of %d", i, part, streams->n_parts);
  }
  return streams->n_parts == 0 ? CS_OK : cs_parts_check(device, streams->parts, streams->n_parts);
}
