/* Inside of a report as the public API hands it out. */
#ifndef CONVSCHED_RUNTIME_REPORT_H_
#define CONVSCHED_RUNTIME_REPORT_H_

#include "report/table.h"

struct cs_report {
  cs_table table;
};

#endif
