#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/progress.h"

#define BAR_CELLS 20
#define BAR_FROM_COLUMNS 60 /* narrower terminals have none */
#define LEFT_AFTER_S 1.0    /* seconds of a stage before it tells how long it will take */

/* Of the stage that is done, 0 to 1; below 0: not known. */
static double share_of(const cs_progress *progress) {
  double share = -1;
  if (progress->total > 0) share = (double)progress->done / (double)progress->total;
  if (progress->limit_s > 0) share = fmax(share, progress->elapsed_s / progress->limit_s);
  return share < 0 ? -1 : fmin(share, 1);
}

static double seconds_left(const cs_progress *progress, double seconds) {
  double left = -1;
  if (progress->limit_s > 0) left = fmax(0, progress->limit_s - progress->elapsed_s);
  if (progress->total > 0 && progress->done > 0 && seconds >= LEFT_AFTER_S) {
    double of_units =
        seconds / (double)progress->done * fmax(0, (double)(progress->total - progress->done));
    left = left < 0 ? of_units : fmin(left, of_units);
  }
  return left;
}

static void duration_text(char *out, size_t size, double seconds) {
  long long s = (long long)ceil(fmin(seconds, 1e9));
  if (s >= 3600) {
    snprintf(out, size, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  } else {
    snprintf(out, size, "%lld:%02lld", s / 60, s % 60);
  }
}

static void count_text(char *out, size_t size, const cs_progress *progress) {
  char done[32], total[32];
  if (strcmp(progress->unit, "bytes") == 0) {
    cli_bytes_text(done, sizeof done, (double)progress->done);
    cli_bytes_text(total, sizeof total, (double)progress->total);
    snprintf(out, size, progress->total > 0 ? "  %s of %s" : "  %s", done, total);
  } else if (progress->total > 0) {
    snprintf(out, size, "  %lld/%lld%s%s", (long long)progress->done, (long long)progress->total,
             *progress->unit ? " " : "", progress->unit);
  } else if (progress->done > 0 || *progress->unit) {
    snprintf(out, size, "  %lld%s%s", (long long)progress->done, *progress->unit ? " " : "",
             progress->unit);
  } else {
    out[0] = '\0';
  }
}

/* Cuts UTF-8 behind `columns` characters (each taken for one column), and what is no text out. */
static void cut(char *text, int columns) {
  char *to = text;
  int n = 0;
  for (const char *from = text; *from; from++) {
    bool continues = ((unsigned char)*from & 0xC0) == 0x80;
    if (!continues && n++ >= columns) break;
    *to++ = (unsigned char)*from < ' ' || *from == 0x7f ? ' ' : *from;
  }
  *to = '\0';
}

void cli_progress_line(const cs_progress *progress, double seconds, int columns,
                       char out[CLI_PROGRESS_BYTES]) {
  double share = share_of(progress), left = seconds_left(progress, seconds);
  char bar[BAR_CELLS + 8] = "", percent[16] = "", count[96], rest[48] = "";
  if (share >= 0) {
    snprintf(percent, sizeof percent, "  %3d%%", (int)(100 * share));
    if (columns >= BAR_FROM_COLUMNS) {
      int full = (int)(share * BAR_CELLS);
      char cells[BAR_CELLS + 1];
      memset(cells, '#', (size_t)full);
      memset(cells + full, '-', (size_t)(BAR_CELLS - full));
      cells[BAR_CELLS] = '\0';
      snprintf(bar, sizeof bar, "  [%s]", cells);
    }
  }
  count_text(count, sizeof count, progress);
  if (left >= 0) {
    char duration[32];
    duration_text(duration, sizeof duration, left);
    snprintf(rest, sizeof rest, "  %s left", duration);
  }
  snprintf(out, CLI_PROGRESS_BYTES, "%.200s%s%s%s%s%s%.256s", progress->stage, bar, percent, count,
           rest, *progress->item ? "  " : "", progress->item);
  cut(out, columns > 0 ? columns : 0);
}
