#include "cli/png.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PACKED_BYTES ((size_t)1 << 18) /* of a chunk of data, at most */
#define MOST_EXTENT INT64_C(0x7fffffff)
#define FILTER_SUB 1 /* each byte less that of the pixel to its left */

/* PNG (ISO/IEC 15948): a signature, then chunks of length, name, data and check sum. */
static const unsigned char signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

static void put_u32(unsigned char *out, uint32_t value) {
  for (int i = 0; i < 4; i++) out[i] = (unsigned char)(value >> (24 - 8 * i));
}

static cs_status write_chunk(cli_png *png, const char name[4], const unsigned char *data,
                             size_t length) {
  unsigned char head[8], tail[4];
  put_u32(head, (uint32_t)length);
  memcpy(head + 4, name, 4);
  uLong sum = crc32(crc32(0, Z_NULL, 0), head + 4, 4);
  if (length > 0) sum = crc32(sum, data, (uInt)length);
  put_u32(tail, (uint32_t)sum);
  CS_RETURN_IF_ERROR(cs_file_writer_append(&png->file, head, sizeof head));
  CS_RETURN_IF_ERROR(cs_file_writer_append(&png->file, data, length));
  return cs_file_writer_append(&png->file, tail, sizeof tail);
}

/* ---- Beginning ---- */

static cs_status write_head(cli_png *png, int64_t width, int64_t height) {
  unsigned char head[13] = {[8] = 8, [9] = png->channels == 3 ? 2 : 0};
  put_u32(head, (uint32_t)width);
  put_u32(head + 4, (uint32_t)height);
  CS_RETURN_IF_ERROR(cs_file_writer_append(&png->file, signature, sizeof signature));
  return write_chunk(png, "IHDR", head, sizeof head);
}

static cs_status begin_packing(cli_png *png) {
  png->row = cs_calloc(png->row_bytes + 1, 1);
  png->packed = cs_calloc(PACKED_BYTES, 1);
  if (!png->row || !png->packed) return cs_no_memory("a row of a picture", png->row_bytes);
  png->row[0] = FILTER_SUB;
  if (deflateInit(&png->packer, Z_BEST_SPEED) != Z_OK) return cs_no_memory("a packer", 0);
  png->packing = true;
  png->packer.next_out = png->packed;
  png->packer.avail_out = PACKED_BYTES;
  return CS_OK;
}

cs_status cli_png_check(const char *path, int64_t width, int64_t height, int channels) {
  if (width <= MOST_EXTENT / channels && height <= MOST_EXTENT) return CS_OK;
  return cs_error(CS_CODE_USAGE,
                  "%s: %" PRId64 "x%" PRId64 " pixels, wanted at most %" PRId64 "x%" PRId64
                  " of a PNG",
                  path, width, height, MOST_EXTENT / channels, MOST_EXTENT);
}

cs_status cli_png_begin(cli_png *png, const char *path, bool one_of_many, int64_t width,
                        int64_t height, int channels) {
  *png = (cli_png){.channels = channels};
  CS_RETURN_IF_ERROR(cli_png_check(path, width, height, channels));
  png->row_bytes = (size_t)(width * channels);
  CS_RETURN_IF_ERROR(one_of_many ? cs_file_writer_open_one_of_many(&png->file, path)
                                 : cs_file_writer_open(&png->file, path));
  cs_status st = write_head(png, width, height);
  if (st == CS_OK) st = begin_packing(png);
  if (st != CS_OK) cli_png_abandon(png);
  return st;
}

/* ---- Rows ---- */

/* The packed bytes so far become a chunk. */
static cs_status flush(cli_png *png) {
  size_t length = PACKED_BYTES - png->packer.avail_out;
  if (length > 0) CS_RETURN_IF_ERROR(write_chunk(png, "IDAT", png->packed, length));
  png->packer.next_out = png->packed;
  png->packer.avail_out = PACKED_BYTES;
  return CS_OK;
}

static cs_status pack(cli_png *png, int mode) {
  for (;;) {
    int result = deflate(&png->packer, mode);
    if (result == Z_STREAM_ERROR) return cs_error(CS_CODE_INTERNAL, "zlib's deflate failed");
    if (result == Z_STREAM_END || (mode == Z_NO_FLUSH && png->packer.avail_in == 0)) return CS_OK;
    CS_RETURN_IF_ERROR(flush(png));
  }
}

static void filter_row(cli_png *png, const uint8_t *pixels) {
  size_t step = (size_t)png->channels;
  unsigned char *row = png->row + 1;
  for (size_t i = 0; i < png->row_bytes; i++) {
    row[i] = (unsigned char)(pixels[i] - (i >= step ? pixels[i - step] : 0));
  }
}

cs_status cli_png_rows(cli_png *png, const uint8_t *pixels, int64_t n) {
  for (int64_t r = 0; r < n; r++) {
    filter_row(png, pixels + (size_t)r * png->row_bytes);
    png->packer.next_in = png->row;
    png->packer.avail_in = (uInt)(png->row_bytes + 1);
    CS_RETURN_IF_ERROR(pack(png, Z_NO_FLUSH));
  }
  return CS_OK;
}

/* ---- Ending ---- */

static void free_packing(cli_png *png) {
  if (png->packing) (void)deflateEnd(&png->packer);
  free(png->row);
  free(png->packed);
  png->packing = false;
  png->row = png->packed = NULL;
}

cs_status cli_png_end(cli_png *png) {
  cs_status st = pack(png, Z_FINISH);
  if (st == CS_OK) st = flush(png);
  if (st == CS_OK) st = write_chunk(png, "IEND", NULL, 0);
  free_packing(png);
  if (st == CS_OK) return cs_file_writer_commit(&png->file);
  cs_file_writer_abandon(&png->file);
  return st;
}

void cli_png_abandon(cli_png *png) {
  free_packing(png);
  cs_file_writer_abandon(&png->file);
}
