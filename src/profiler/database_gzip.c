/* Files that may be compressed: read by their first bytes, written by their name. */
#include <string.h>
#include <zlib.h>

#include <stdlib.h>

#include "base/file.h"
#include "profiler/database.h"

#define GZIP_WINDOW (15 + 16) /* zlib: the largest window, in gzip's wrapping */
#define STEP ((size_t)1 << 20)

/* A gzip file may be several, one behind the other: is there another? */
static bool begin_next(z_stream *z) {
  return z->avail_in >= 2 && z->next_in[0] == 0x1f && z->next_in[1] == 0x8b &&
         inflateReset(z) == Z_OK;
}

static cs_status inflate_all(z_stream *z, const char *path, cs_strbuf *out) {
  unsigned char *piece = malloc(STEP);
  int result = Z_OK;
  if (!piece) return cs_no_memory("a compressed file", STEP);
  while (result == Z_OK && out->length <= CS_PROFILE_FILE_LIMIT) {
    z->next_out = piece;
    z->avail_out = STEP;
    result = inflate(z, Z_NO_FLUSH);
    if (result == Z_OK || result == Z_STREAM_END) {
      cs_strbuf_append(out, (const char *)piece, STEP - z->avail_out);
    }
    if (result == Z_STREAM_END && begin_next(z)) result = Z_OK;
  }
  free(piece);
  if (out->failed || result == Z_MEM_ERROR) return cs_no_memory("a compressed file", out->length);
  if (result == Z_STREAM_END && z->avail_in == 0) return CS_OK;
  if (result == Z_STREAM_END) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: damaged gzip data (%u bytes behind its end)", path,
                    z->avail_in);
  }
  if (result == Z_OK) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: more than %zu bytes when unpacked", path,
                    CS_PROFILE_FILE_LIMIT);
  }
  return cs_error(CS_CODE_BAD_INPUT, "%s: damaged gzip data (%s)", path,
                  z->msg ? z->msg : "it ends early");
}

cs_status cs_read_maybe_gzip(const char *path, char **out, size_t *length) {
  char *raw = NULL;
  cs_strbuf text = {0};
  *out = NULL;
  CS_RETURN_IF_ERROR(cs_file_read(path, CS_PROFILE_FILE_LIMIT, &raw, length));
  if (*length < 2 || (unsigned char)raw[0] != 0x1f || (unsigned char)raw[1] != 0x8b) {
    *out = raw;
    return CS_OK;
  }
  z_stream z = {.next_in = (unsigned char *)raw, .avail_in = (unsigned)*length};
  cs_status st = inflateInit2(&z, GZIP_WINDOW) == Z_OK ? inflate_all(&z, path, &text)
                                                       : cs_no_memory("a compressed file", *length);
  (void)inflateEnd(&z);
  free(raw);
  if (st != CS_OK) {
    cs_strbuf_free(&text);
    return st;
  }
  *length = text.length;
  return cs_strbuf_take(&text, out);
}

static bool ends_with(const char *text, const char *end) {
  size_t a = strlen(text), b = strlen(end);
  return a >= b && strcmp(text + a - b, end) == 0;
}

cs_status cs_write_maybe_gzip(const char *path, const char *data, size_t length) {
  if (!ends_with(path, ".gz")) return cs_file_replace(path, data, length);
  z_stream z = {.next_in = (unsigned char *)(uintptr_t)data, .avail_in = (unsigned)length};
  /* No time and no name in the header: the same data give the same bytes. */
  if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 9, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return cs_no_memory("compressing", length);
  }
  size_t room = deflateBound(&z, length);
  char *packed = malloc(room);
  cs_status st = packed ? CS_OK : cs_no_memory("compressing", room);
  z.next_out = (unsigned char *)packed;
  z.avail_out = (unsigned)room;
  if (st == CS_OK && deflate(&z, Z_FINISH) != Z_STREAM_END) {
    st = cs_error(CS_CODE_INTERNAL, "%s: zlib did not finish", path);
  }
  if (st == CS_OK) st = cs_file_replace(path, packed, z.total_out);
  (void)deflateEnd(&z);
  free(packed);
  return st;
}
