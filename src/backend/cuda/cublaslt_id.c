#include "backend/cuda/cublaslt_id.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

cs_status cs_cublaslt_id_format(const cs_cublaslt_id *id, char **out) {
  cs_strbuf text = {0};
  cs_strbuf_printf(&text, CS_CUBLASLT_PREFIX "v%" PRId64 ":algo%" PRIu32, id->version,
                   id->algorithm);
  for (int i = 0; i < CS_CUBLASLT_N_ATTRIBUTES; i++) {
    cs_strbuf_printf(&text, "/%" PRIu32, id->attributes[i]);
  }
  char before = '+';
  for (int i = 0; i < CS_CUBLASLT_WORDS; i++) {
    if (!id->has_word[i]) continue;
    cs_strbuf_printf(&text, "%c%d=%" PRIx64, before, i, id->words[i]);
    before = ',';
  }
  return cs_strbuf_take(&text, out);
}

static bool skip(const char **text, const char *wanted) {
  size_t length = strlen(wanted);
  if (strncmp(*text, wanted, length) != 0) return false;
  *text += length;
  return true;
}

/* Reads the one way to write a number (small letters, no sign, no leading zero). */
static bool read_number(const char **text, int base, uint64_t most, uint64_t *out) {
  const char *digits = base == 16 ? "0123456789abcdef" : "0123456789";
  size_t length = strspn(*text, digits);
  char *end = NULL;
  if (length == 0 || (length > 1 && **text == '0')) return false;
  errno = 0;
  *out = strtoull(*text, &end, base);
  if (errno || end != *text + length || *out > most) return false;
  *text = end;
  return true;
}

static bool read_words(const char **text, cs_cublaslt_id *out) {
  int last = -1;
  const char *before = "+";
  while (**text) {
    uint64_t index = 0, value = 0;
    if (!skip(text, before) || !read_number(text, 10, CS_CUBLASLT_WORDS - 1, &index) ||
        (int)index <= last || !skip(text, "=") || !read_number(text, 16, UINT64_MAX, &value)) {
      return false;
    }
    last = (int)index;
    out->has_word[last] = true;
    out->words[last] = value;
    before = ",";
  }
  return true;
}

bool cs_cublaslt_id_parse(const char *text, cs_cublaslt_id *out) {
  uint64_t number = 0;
  memset(out, 0, sizeof(*out));
  if (!skip(&text, CS_CUBLASLT_PREFIX "v") || !read_number(&text, 10, INT32_MAX, &number)) {
    return false;
  }
  out->version = (int64_t)number;
  if (!skip(&text, ":algo") || !read_number(&text, 10, INT32_MAX, &number)) return false;
  out->algorithm = (uint32_t)number;
  for (int i = 0; i < CS_CUBLASLT_N_ATTRIBUTES; i++) {
    if (!skip(&text, "/") || !read_number(&text, 10, UINT32_MAX, &number)) return false;
    out->attributes[i] = (uint32_t)number;
  }
  return read_words(&text, out);
}
