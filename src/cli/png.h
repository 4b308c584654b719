/* Writing PNG files row by row: 8-bit grey or RGB, not interlaced; zlib does the packing. */
#ifndef CONVSCHED_CLI_PNG_H_
#define CONVSCHED_CLI_PNG_H_

#include <zlib.h>

#include "base/file.h"

typedef struct cli_png {
  cs_file_writer file;
  z_stream packer;
  bool packing; /* the packer is begun */
  size_t row_bytes;
  unsigned char *row; /* a row behind its filter's number */
  unsigned char *packed;
  int channels;
} cli_png;

/* USAGE: more pixels than PNG has numbers for. */
cs_status cli_png_check(const char *path, int64_t width, int64_t height, int channels) CS_MUST_USE;
/* width × height pixels of 1 or 3 channels. Begins the file, which is there once it is ended; what
 * killed processes left of it is removed, unless it is one of many. USAGE: as cli_png_check. */
cs_status cli_png_begin(cli_png *png, const char *path, bool one_of_many, int64_t width,
                        int64_t height, int channels) CS_MUST_USE;
/* The next rows, one behind the other, width × channels bytes each. */
cs_status cli_png_rows(cli_png *png, const uint8_t *pixels, int64_t n) CS_MUST_USE;
cs_status cli_png_end(cli_png *png) CS_MUST_USE;
/* After an error, or to give up: nothing is left of the file. */
void cli_png_abandon(cli_png *png);

#endif
