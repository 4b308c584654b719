/* Two files of records, side by side. */
#include "report/compare.h"

#include "runtime/report.h"

cs_status cs_compare_records(const char *path_a, const char *path_b, double max_regression,
                             cs_report **out) {
  *out = NULL;
  cs_report *report = cs_calloc(1, sizeof *report);
  if (!report) return cs_no_memory("a report", sizeof *report);
  cs_status st = cs_report_compare(path_a, path_b, max_regression, &report->table);
  if (st != CS_OK) {
    cs_report_destroy(report);
    return st;
  }
  *out = report;
  return CS_OK;
}
