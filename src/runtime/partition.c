/* The option that says how the device may be split. */
#include "profiler/partition.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/planning.h"

/* "A,B,…", each a number from 1 on. */
static bool parse(const char *text, cs_sm_parts *out) {
  for (out->n = 0; out->n < CS_MAX_PARTS;) {
    char *end = NULL;
    bool digit = *text >= '0' && *text <= '9';
    long value = digit ? strtol(text, &end, 10) : 0;
    if (value < 1 || value > INT_MAX) return false;
    out->units[out->n++] = (int)value;
    if (*end == '\0') return out->n > 1;
    if (*end != ',') return false;
    text = end + 1;
  }
  return false;
}

static int default_splits(const cs_device_info *info, cs_sm_parts *out) {
  int pairs[CS_DEFAULT_SPLITS][2];
  int n = cs_parts_default(info, pairs);
  for (int i = 0; i < n; i++) out[i] = (cs_sm_parts){2, {pairs[i][0], pairs[i][1]}};
  return n;
}

cs_status cs_partition_splits(const char *partition, const cs_device_info *info, cs_sm_parts *out,
                              int *n) {
  *n = 0;
  if (!partition) {
    *n = default_splits(info, out);
    return CS_OK;
  }
  if (strcmp(partition, "none") == 0) return CS_OK;
  if (!parse(partition, &out[0])) {
    return cs_error(CS_CODE_USAGE,
                    "partition \"%s\": wanted none or 2 to %d numbers of SMs, as 32,100", partition,
                    CS_MAX_PARTS);
  }
  CS_RETURN_IF_ERROR(cs_parts_check(info, out[0].units, out[0].n));
  *n = 1;
  return CS_OK;
}
