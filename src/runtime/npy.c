#include "runtime/npy.h"

#include <inttypes.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";
enum { MAGIC_BYTES = 6 };

typedef struct type_row {
  const char *text;
  cs_npy_type type;
  int64_t bytes;
} type_row;
static const type_row types[] = {
    {"<f4", CS_NPY_F4, 4}, {"<f8", CS_NPY_F8, 8}, {"<f2", CS_NPY_F2, 2}, {"|u1", CS_NPY_U1, 1}};

int64_t cs_npy_type_size(cs_npy_type type) {
  return types[type].bytes;
}

/* The header is a Python dictionary literal of three known keys; the cursor walks over it. */
typedef struct cursor {
  const char *at, *end;
} cursor;

static void skip_spaces(cursor *in) {
  while (in->at < in->end && (*in->at == ' ' || *in->at == '\n')) in->at++;
}

static bool take(cursor *in, const char *token) {
  size_t length = strlen(token);
  skip_spaces(in);
  if ((size_t)(in->end - in->at) < length || memcmp(in->at, token, length) != 0) return false;
  in->at += length;
  return true;
}

/* A quoted text of fewer than `size` bytes. */
static bool take_string(cursor *in, char *out, size_t size) {
  skip_spaces(in);
  if (in->at == in->end || (*in->at != '\'' && *in->at != '"')) return false;
  char quote = *in->at++;
  size_t length = 0;
  while (in->at < in->end && *in->at != quote) {
    if (length + 1 >= size) return false;
    out[length++] = *in->at++;
  }
  out[length] = '\0';
  return take(in, quote == '"' ? "\"" : "'");
}

static bool take_integer(cursor *in, int64_t *out) {
  skip_spaces(in);
  const char *start = in->at;
  *out = 0;
  while (in->at < in->end && *in->at >= '0' && *in->at <= '9') {
    if (!cs_mul_i64(*out, 10, out) || !cs_add_i64(*out, *in->at - '0', out)) return false;
    in->at++;
  }
  return in->at > start;
}

static bool take_shape(cursor *in, cs_shape *out) {
  out->rank = 0;
  if (!take(in, "(")) return false;
  while (!take(in, ")")) {
    if (out->rank == CS_MAX_RANK || !take_integer(in, &out->dims[out->rank++])) return false;
    if (!take(in, ",")) return take(in, ")");
  }
  return true;
}

static cs_status parse_dictionary(cursor in, cs_npy_header *out) {
  char key[32], descr[32] = "";
  bool has_shape = false, has_order = false;
  if (!take(&in, "{")) goto malformed;
  while (!take(&in, "}")) {
    if (!take_string(&in, key, sizeof key) || !take(&in, ":")) goto malformed;
    if (strcmp(key, "descr") == 0) {
      if (!take_string(&in, descr, sizeof descr)) goto malformed;
    } else if (strcmp(key, "fortran_order") == 0) {
      has_order = true;
      if (take(&in, "True")) {
        return cs_error(CS_CODE_BAD_INPUT, "Fortran order, wanted C order");
      }
      if (!take(&in, "False")) goto malformed;
    } else if (strcmp(key, "shape") == 0) {
      has_shape = true;
      if (!take_shape(&in, &out->shape)) goto malformed;
    } else {
      return cs_error(CS_CODE_BAD_INPUT, "unknown key '%s' in the .npy header", key);
    }
    if (!take(&in, ",") && !(in.at < in.end && *in.at == '}')) goto malformed;
  }
  if (!descr[0] || !has_shape || !has_order) goto malformed;
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    if (strcmp(descr, types[i].text) == 0) {
      out->type = types[i].type;
      return CS_OK;
    }
  }
  return cs_error(CS_CODE_BAD_INPUT, "dtype '%s', wanted '<f4', '<f8', '<f2' or '|u1'", descr);
malformed:
  return cs_error(CS_CODE_BAD_INPUT,
                  "malformed .npy header, wanted {'descr', 'fortran_order', 'shape'}");
}

float cs_npy_element(const char *data, cs_npy_type type, int64_t index) {
  double wide;
  float single;
  uint16_t half;
  switch (type) {
    case CS_NPY_F8:
      memcpy(&wide, data + 8 * index, sizeof wide);
      return (float)wide;
    case CS_NPY_F2:
      memcpy(&half, data + 2 * index, sizeof half);
      return cs_f16_to_f32(half);
    case CS_NPY_U1:
      return (float)(unsigned char)data[index];
    case CS_NPY_F4:
      break;
  }
  memcpy(&single, data + 4 * index, sizeof single);
  return single;
}

cs_status cs_npy_parse(const char *data, size_t length, cs_npy_header *out) {
  memset(out, 0, sizeof *out);
  if (length < MAGIC_BYTES + 2 || memcmp(data, magic, MAGIC_BYTES) != 0) {
    return cs_error(CS_CODE_BAD_INPUT, "not a .npy file: it does not begin with \\x93NUMPY");
  }
  unsigned char major = (unsigned char)data[6];
  if (major < 1 || major > 3) {
    return cs_error(CS_CODE_BAD_INPUT, ".npy version %d, wanted 1, 2 or 3", major);
  }
  size_t field = major == 1 ? 2 : 4, start = MAGIC_BYTES + 2 + field;
  if (length < start) return cs_error(CS_CODE_BAD_INPUT, "the .npy header is cut off");
  size_t header = 0;
  for (size_t i = field; i-- > 0;) header = header << 8 | (unsigned char)data[8 + i];
  if (header > length - start) {
    return cs_error(CS_CODE_BAD_INPUT, "the .npy header of %zu bytes is cut off after %zu", header,
                    length - start);
  }
  out->data_offset = start + header;
  return parse_dictionary((cursor){data + start, data + out->data_offset}, out);
}

void cs_npy_format(const cs_shape *shape, cs_strbuf *out) {
  cs_strbuf dictionary = {0};
  cs_strbuf_printf(&dictionary, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
  for (int i = 0; i < shape->rank; i++) {
    cs_strbuf_printf(&dictionary, "%s%" PRId64, i ? ", " : "", shape->dims[i]);
  }
  cs_strbuf_printf(&dictionary, "%s), }", shape->rank == 1 ? "," : "");
  while ((MAGIC_BYTES + 4 + dictionary.length + 1) % 64 != 0) {
    if (dictionary.failed) break;
    cs_strbuf_append(&dictionary, " ", 1);
  }
  cs_strbuf_append(&dictionary, "\n", 1);
  char head[MAGIC_BYTES + 4] = {0};
  memcpy(head, magic, MAGIC_BYTES);
  head[6] = 1;
  head[8] = (char)(dictionary.length & 0xff);
  head[9] = (char)(dictionary.length >> 8);
  cs_strbuf_append(out, head, sizeof head);
  if (dictionary.failed) {
    out->failed = true;
  } else {
    cs_strbuf_append(out, dictionary.data, dictionary.length);
  }
  cs_strbuf_free(&dictionary);
}
