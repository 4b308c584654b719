/* The line that shows progress, as text. */
#ifndef CONVSCHED_CLI_PROGRESS_H_
#define CONVSCHED_CLI_PROGRESS_H_

#include "convsched/convsched.h"

#define CLI_PROGRESS_BYTES 1024

/* "profiling  [#####-----]  52%  26/50 operations  0:07 left  conv1 (Conv)": no more than `columns`
 * characters wide, what is least wanted left out first. `seconds`: since the stage began. */
void cli_progress_line(const cs_progress *progress, double seconds, int columns,
                       char out[CLI_PROGRESS_BYTES]);

#endif
