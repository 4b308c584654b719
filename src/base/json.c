#include "base/json.h"

cs_status cs_json_take_text(json_t *json, char **out) {
  char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
  json_decref(json);
  if (!text) return cs_no_memory("JSON text", 0);
  *out = text;
  return CS_OK;
}
