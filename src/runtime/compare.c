/* Two files of records, side by side. */
#include "report/compare.h"

#include "runtime/report.h"

cs_status cs_compare_records(const char *path_a, const char *path_b, double max_regression,
                             cs_report **out) {
  cs_table table = {0};
  return cs_report_give(cs_report_compare(path_a, path_b, max_regression, &table), &table, out);
}
