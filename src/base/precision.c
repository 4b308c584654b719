#include <string.h>

#include "base/status.h"

static const char *const names[] = {"f32", "tf32", "f16", "bf16"};

const char *cs_precision_name(cs_precision precision) {
  return (unsigned)precision < 4 ? names[precision] : NULL;
}

cs_status cs_precision_parse(const char *name, cs_precision *out) {
  for (int i = 0; i < 4; i++) {
    if (strcmp(name, names[i]) == 0) {
      *out = (cs_precision)i;
      return CS_OK;
    }
  }
  return cs_error(CS_CODE_USAGE, "unknown dtype \"%s\": wanted f32, tf32, f16 or bf16", name);
}
