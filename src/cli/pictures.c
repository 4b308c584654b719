#include "cli/pictures.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/png.h"

#define PICTURE_NAME "%06" PRId64 ".png"
#define MOST_QUEUED 4 /* pieces that wait for the thread */

typedef struct piece {
  uint8_t *pixels;
  int64_t n;
} piece;

struct cli_pictures {
  cli_pictures_options options;
  bool folder;
  int64_t columns, written; /* pictures */
  size_t picture_bytes;
  cli_png sheet;
  bool sheet_begun;
  uint8_t *band; /* a row of the sheet's pictures, as rows of pixels */
  int64_t in_band;
  double busy_s;

  pthread_t thread;
  bool thread_begun;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* Under the lock: */
  piece queue[MOST_QUEUED];
  int n_queued;
  bool ended, dropped;
  cs_status failure; /* the thread's first */
};

/* ---- Files ---- */

static bool is_folder(const char *path) {
  struct stat info;
  size_t length = strlen(path);
  return (length > 0 && path[length - 1] == '/') ||
         (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

static cs_status picture_path(const cli_pictures_options *options, int64_t index, char **out) {
  cs_strbuf path = {0};
  size_t length = strlen(options->path);
  cs_strbuf_printf(&path, "%s%s" PICTURE_NAME, options->path,
                   options->path[length - 1] == '/' ? "" : "/", index);
  return cs_strbuf_take(&path, out);
}

static cs_status check_file(const cli_pictures_options *options, const char *path) {
  struct stat info;
  if (!options->force && stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
    return cs_error(CS_CODE_USAGE, "--output %s: is there already; --force replaces it", path);
  }
  return CS_OK;
}

/* Whether one of the pictures (`user`: cli_pictures_options) has this name. */
static bool is_picture(const char *name, const void *user) {
  int64_t count = ((const cli_pictures_options *)user)->count;
  char wanted[32];
  long long index = strtoll(name, NULL, 10);
  snprintf(wanted, sizeof wanted, PICTURE_NAME, (int64_t)index);
  return index >= 0 && index < count && strcmp(name, wanted) == 0;
}

/* By what is in the folder: there may be fewer files than pictures, or no end of these. */
static cs_status check_folder(const cli_pictures_options *options) {
  cs_status st = CS_OK;
  char *path = NULL;
  CS_RETURN_IF_ERROR(cs_make_directories(options->path));
  DIR *folder = opendir(options->path);
  if (!folder) return cs_io_error(options->path, "open", errno);
  for (const struct dirent *entry; st == CS_OK && (entry = readdir(folder));) {
    if (!is_picture(entry->d_name, options)) continue;
    st = picture_path(options, strtoll(entry->d_name, NULL, 10), &path);
    if (st == CS_OK) st = check_file(options, path);
    free(path);
  }
  closedir(folder);
  CS_RETURN_IF_ERROR(st);
  CS_RETURN_IF_ERROR(picture_path(options, 0, &path));
  st = cs_file_check_replace(path);
  free(path);
  return st;
}

/* Pictures in a row of the sheet, and its pixels (INT64_MAX: more than fit). */
static int64_t lay_out_sheet(const cli_pictures_options *o, int64_t *width, int64_t *height) {
  int64_t columns = o->columns > 0 ? o->columns : (int64_t)ceil(sqrt((double)o->count));
  if (columns > o->count) columns = o->count;
  int64_t rows = o->count / columns + (o->count % columns > 0);
  if (!cs_mul_i64(columns, o->width, width)) *width = INT64_MAX;
  if (!cs_mul_i64(rows, o->height, height)) *height = INT64_MAX;
  return columns;
}

/* A device or a pipe has no name that says what it is of. */
static cs_status check_name(const char *path) {
  static const char end[] = ".png";
  size_t length = strlen(path), wanted = sizeof end - 1;
  if (length > wanted && strcasecmp(path + length - wanted, end) == 0) return CS_OK;
  if (cs_file_is_in_place(path)) return CS_OK;
  return cs_error(CS_CODE_USAGE,
                  "--output %s: wanted FILE.png for a sheet of all pictures, or FOLDER/ (there, or "
                  "with a slash at its end) for a PNG each; no other format is written",
                  path);
}

static cs_status check_sheet(const cli_pictures_options *options) {
  int64_t width, height;
  CS_RETURN_IF_ERROR(check_name(options->path));
  CS_RETURN_IF_ERROR(check_file(options, options->path));
  if (options->width > 0) {
    (void)lay_out_sheet(options, &width, &height);
    CS_RETURN_IF_ERROR(cli_png_check(options->path, width, height, options->channels));
  }
  return cs_file_check_replace(options->path);
}

cs_status cli_pictures_check(const cli_pictures_options *options) {
  if (options->columns > 0 && is_folder(options->path)) {
    return cs_error(CS_CODE_USAGE,
                    "--columns %" PRId64 ": is of a sheet, so it goes without the folder %s",
                    options->columns, options->path);
  }
  return is_folder(options->path) ? check_folder(options) : check_sheet(options);
}

/* ---- Writing: on the thread ---- */

static cs_status write_file(const cli_pictures *p, const uint8_t *pixels) {
  const cli_pictures_options *o = &p->options;
  char *path = NULL;
  cli_png png;
  CS_RETURN_IF_ERROR(picture_path(o, p->written, &path));
  cs_status st = cli_png_begin(&png, path, true, o->width, o->height, o->channels);
  free(path);
  CS_RETURN_IF_ERROR(st);
  st = cli_png_rows(&png, pixels, o->height);
  if (st == CS_OK) return cli_png_end(&png);
  cli_png_abandon(&png);
  return st;
}

/* Pictures that lack at the end of the last row are black. */
static cs_status end_band(cli_pictures *p) {
  if (p->in_band == 0) return CS_OK;
  CS_RETURN_IF_ERROR(cli_png_rows(&p->sheet, p->band, p->options.height));
  memset(p->band, 0, (size_t)p->columns * p->picture_bytes);
  p->in_band = 0;
  return CS_OK;
}

static cs_status add_to_sheet(cli_pictures *p, const uint8_t *pixels) {
  size_t row = (size_t)(p->options.width * p->options.channels);
  for (int64_t h = 0; h < p->options.height; h++) {
    size_t at = (size_t)(h * p->columns + p->in_band) * row;
    memcpy(p->band + at, pixels + (size_t)h * row, row);
  }
  return ++p->in_band == p->columns ? end_band(p) : CS_OK;
}

static cs_status write_piece(cli_pictures *p, const piece *taken) {
  for (int64_t i = 0; i < taken->n; i++) {
    const uint8_t *pixels = taken->pixels + (size_t)i * p->picture_bytes;
    CS_RETURN_IF_ERROR(p->folder ? write_file(p, pixels) : add_to_sheet(p, pixels));
    p->written++;
  }
  return CS_OK;
}

/* False: there is nothing to come. */
static bool take_piece(cli_pictures *p, piece *out) {
  pthread_mutex_lock(&p->lock);
  while (p->n_queued == 0 && !p->ended) pthread_cond_wait(&p->changed, &p->lock);
  bool taken = p->n_queued > 0 && !p->dropped;
  if (taken) {
    *out = p->queue[0];
    memmove(p->queue, p->queue + 1, (size_t)--p->n_queued * sizeof *p->queue);
    pthread_cond_broadcast(&p->changed);
  }
  pthread_mutex_unlock(&p->lock);
  return taken;
}

static void *write_all(void *user) {
  cli_pictures *p = user;
  piece taken;
  cs_status st = CS_OK;
  while (st == CS_OK && take_piece(p, &taken)) {
    double begun = cs_now_seconds();
    st = write_piece(p, &taken);
    p->busy_s += cs_now_seconds() - begun;
    free(taken.pixels);
  }
  pthread_mutex_lock(&p->lock);
  p->failure = st;
  p->ended = true;
  pthread_cond_broadcast(&p->changed);
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

/* ---- From outside ---- */

static cs_status begin_sheet(cli_pictures *p) {
  const cli_pictures_options *o = &p->options;
  int64_t width, height;
  p->columns = lay_out_sheet(o, &width, &height);
  CS_RETURN_IF_ERROR(cli_png_begin(&p->sheet, o->path, false, width, height, o->channels));
  p->sheet_begun = true;
  p->band = cs_calloc((size_t)p->columns, p->picture_bytes);
  return p->band ? CS_OK : cs_no_memory("a row of pictures", (size_t)p->columns * p->picture_bytes);
}

cs_status cli_pictures_open(const cli_pictures_options *options, cli_pictures **out) {
  cs_status st = CS_OK;
  *out = NULL;
  cli_pictures *p = cs_calloc(1, sizeof *p);
  if (!p) return cs_no_memory("pictures", sizeof *p);
  p->options = *options;
  p->folder = is_folder(options->path);
  p->picture_bytes = (size_t)(options->width * options->height * options->channels);
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->changed, NULL);
  if (p->folder) {
    cs_file_tidy(options->path, is_picture, options);
  } else {
    CS_TRY(st, begin_sheet(p), done);
  }
  if (pthread_create(&p->thread, NULL, write_all, p) != 0) {
    st = cs_no_memory("a thread that writes pictures", 0);
    goto done;
  }
  p->thread_begun = true;
  *out = p, p = NULL;
done:
  cli_pictures_abandon(p);
  return st;
}

/* The thread's failure, which the caller then has; CS_OK where there is none. */
static cs_status take_failure(cli_pictures *p) {
  cs_status st = p->failure;
  p->failure = CS_OK;
  return st;
}

cs_status cli_pictures_put(cli_pictures *pictures, const uint8_t *pixels, int64_t n) {
  cli_pictures *p = pictures;
  size_t bytes = (size_t)n * p->picture_bytes;
  piece added = {.pixels = malloc(bytes), .n = n};
  if (!added.pixels) return cs_no_memory("pictures", bytes);
  memcpy(added.pixels, pixels, bytes);
  pthread_mutex_lock(&p->lock);
  while (p->n_queued == MOST_QUEUED && !p->ended) pthread_cond_wait(&p->changed, &p->lock);
  cs_status st = take_failure(p);
  bool queued = st == CS_OK && !p->ended;
  if (queued) p->queue[p->n_queued++] = added;
  pthread_cond_broadcast(&p->changed);
  pthread_mutex_unlock(&p->lock);
  if (!queued) free(added.pixels);
  return st;
}

static void join(cli_pictures *p, bool drop) {
  if (!p->thread_begun) return;
  pthread_mutex_lock(&p->lock);
  p->ended = true;
  p->dropped = drop;
  pthread_cond_broadcast(&p->changed);
  pthread_mutex_unlock(&p->lock);
  pthread_join(p->thread, NULL);
  p->thread_begun = false;
}

static void free_pictures(cli_pictures *p) {
  for (int i = 0; i < p->n_queued; i++) free(p->queue[i].pixels);
  cs_status_free(p->failure);
  pthread_cond_destroy(&p->changed);
  pthread_mutex_destroy(&p->lock);
  free(p->band);
  free(p);
}

cs_status cli_pictures_close(cli_pictures *pictures, double *busy_s) {
  cli_pictures *p = pictures;
  join(p, false);
  cs_status st = take_failure(p);
  double begun = cs_now_seconds();
  if (st == CS_OK && p->sheet_begun) st = end_band(p);
  if (p->sheet_begun) {
    if (st == CS_OK) {
      st = cli_png_end(&p->sheet);
    } else {
      cli_png_abandon(&p->sheet);
    }
  }
  *busy_s = p->busy_s + cs_now_seconds() - begun;
  free_pictures(p);
  return st;
}

void cli_pictures_abandon(cli_pictures *pictures) {
  if (!pictures) return;
  join(pictures, true);
  if (pictures->sheet_begun) cli_png_abandon(&pictures->sheet);
  free_pictures(pictures);
}
