/* What long work reports of itself: cs_progress_watch of the public API, from the inside. */
#ifndef CONVSCHED_BASE_PROGRESS_H_
#define CONVSCHED_BASE_PROGRESS_H_

#include "base/base.h"

/* cs_progress_watch, which is the library's alone: a program that is linked to this module, too,
 * has a watcher of its own there. */
void cs_progress_set_watcher(cs_progress_fn report, void *user);

/* `done` of `total` units of a stage; `item` is a format, NULL: nothing to tell. Costs a
 * comparison where this thread's calls are not watched. Never between the beginning and the end of
 * a measurement. */
void cs_progress_step(const char *stage, const char *unit, int64_t done, int64_t total,
                      const char *item, ...) CS_PRINTF(5, 6);
/* The same of a stage that ends after limit_s seconds at the latest, elapsed_s of which are gone;
 * total 0: as many as there is time for. */
void cs_progress_timed(const char *stage, const char *unit, int64_t done, int64_t total,
                       double elapsed_s, double limit_s, const char *item, ...) CS_PRINTF(7, 8);

#endif
