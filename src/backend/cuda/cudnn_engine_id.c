#include "backend/cuda/cudnn_engine_id.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int compare_knobs(const void *a, const void *b) {
  const cs_knob *x = a, *y = b;
  return (x->type > y->type) - (x->type < y->type);
}

void cs_engine_id_sort(cs_engine_id *id) {
  qsort(id->knobs, (size_t)id->n_knobs, sizeof(id->knobs[0]), compare_knobs);
}

cs_status cs_engine_id_format(const cs_engine_id *id, const char *prefix, char **out) {
  cs_strbuf text = {0};
  cs_strbuf_printf(&text, "%seng%" PRId64 "{", prefix, id->engine);
  for (int i = 0; i < id->n_knobs; i++) {
    cs_strbuf_printf(&text, "%s%" PRId64 "=%" PRId64, i ? "," : "", id->knobs[i].type,
                     id->knobs[i].value);
  }
  cs_strbuf_printf(&text, "}");
  return cs_strbuf_take(&text, out);
}

/* Reads a number followed by `after`; moves *text behind it. */
static bool read_number(const char **text, const char *after, int64_t *out) {
  if (**text != '-' && (**text < '0' || **text > '9')) return false;
  char *end = NULL;
  errno = 0;
  *out = strtoll(*text, &end, 10);
  if (errno || end == *text || !strchr(after, *end) || !*end) return false;
  *text = end;
  return true;
}

bool cs_engine_id_parse(const char *text, cs_engine_id *out) {
  memset(out, 0, sizeof(*out));
  if (strncmp(text, "eng", 3) != 0) return false;
  text += 3;
  if (!read_number(&text, "{", &out->engine)) return false;
  text++;
  while (*text != '}') {
    if (out->n_knobs == CS_MAX_KNOBS) return false;
    cs_knob *knob = &out->knobs[out->n_knobs++];
    if (!read_number(&text, "=", &knob->type)) return false;
    text++;
    if (!read_number(&text, ",}", &knob->value)) return false;
    if (*text == ',' && *++text == '}') return false;
  }
  return text[1] == '\0';
}
