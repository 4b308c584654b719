#include "base/progress.h"

#include <stdio.h>

/* A thread's watcher: work of others' threads is none of its business. */
static _Thread_local struct {
  cs_progress_fn report;
  void *user;
} watcher;

void cs_progress_set_watcher(cs_progress_fn report, void *user) {
  watcher.report = report;
  watcher.user = user;
}

static void report(cs_progress *progress, const char *format, va_list args) {
  char item[256] = "";
  if (format && vsnprintf(item, sizeof item, format, args) < 0) item[0] = '\0';
  progress->item = item;
  if (!progress->unit) progress->unit = "";
  watcher.report(watcher.user, progress);
}

void cs_progress_step(const char *stage, const char *unit, int64_t done, int64_t total,
                      const char *item, ...) {
  if (!watcher.report) return;
  cs_progress progress = {.stage = stage, .unit = unit, .done = done, .total = total};
  va_list args;
  va_start(args, item);
  report(&progress, item, args);
  va_end(args);
}

void cs_progress_timed(const char *stage, const char *unit, int64_t done, int64_t total,
                       double elapsed_s, double limit_s, const char *item, ...) {
  if (!watcher.report) return;
  cs_progress progress = {.stage = stage,
                          .unit = unit,
                          .done = done,
                          .total = total,
                          .elapsed_s = elapsed_s,
                          .limit_s = limit_s};
  va_list args;
  va_start(args, item);
  report(&progress, item, args);
  va_end(args);
}
