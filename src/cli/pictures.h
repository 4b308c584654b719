/* Where generated pictures go: a contact sheet, or a PNG each in a folder. A thread packs and
 * writes them while others are made. */
#ifndef CONVSCHED_CLI_PICTURES_H_
#define CONVSCHED_CLI_PICTURES_H_

#include "base/base.h"

typedef struct cli_pictures cli_pictures;

typedef struct cli_pictures_options {
  const char *path; /* of the sheet; ending in '/', or a folder that is there: of a PNG each */
  int64_t count;
  int64_t width, height; /* 0: not known yet */
  int channels;
  int64_t columns; /* of the sheet; 0: about as many as rows */
  bool force;      /* files that are there are replaced */
} cli_pictures_options;

/* Whether the files could be written, before anything is computed: USAGE where one is there and is
 * not to be replaced, where a sheet has another name than a PNG's or (once width and height are
 * known) more pixels than a PNG can have; IO where there is no place for it. */
cs_status cli_pictures_check(const cli_pictures_options *options) CS_MUST_USE;
cs_status cli_pictures_open(const cli_pictures_options *options, cli_pictures **out) CS_MUST_USE;
/* The next `n` pictures, height × width × channels each; they are copied. Waits while too many are
 * not yet written. */
cs_status cli_pictures_put(cli_pictures *pictures, const uint8_t *pixels, int64_t n) CS_MUST_USE;
/* Waits until all are written, and ends the files; *busy_s: how long the thread packed and wrote.
 */
cs_status cli_pictures_close(cli_pictures *pictures, double *busy_s) CS_MUST_USE;
/* After an error: nothing is left of an unfinished file. NULL is fine. */
void cli_pictures_abandon(cli_pictures *pictures);

#endif
