/* Inside of a report as the public API hands it out. */
#ifndef CONVSCHED_RUNTIME_REPORT_H_
#define CONVSCHED_RUNTIME_REPORT_H_

#include "convsched/convsched.h"
#include "report/table.h"

struct cs_report {
  cs_table table;
};

/* A report of a table that was made with status `st`; takes over both. Fails with `st`. */
cs_status cs_report_give(cs_status st, cs_table *table, cs_report **out) CS_MUST_USE;
/* USAGE where options of `what` (`found` of `wanted` bytes) or of its session were not made by
 * their init functions. */
cs_status cs_report_check_sizes(const char *what, size_t found, size_t wanted,
                                const cs_session_options *session) CS_MUST_USE;

#endif
