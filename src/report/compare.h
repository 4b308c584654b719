/* What two files of records measured alike, side by side. Pure: files and statistics. */
#ifndef CONVSCHED_REPORT_COMPARE_H_
#define CONVSCHED_REPORT_COMPARE_H_

#include "report/table.h"

/* ---- Records (records.c) ---- */

/* One thing that was measured: a policy's or another system's latency, or its rate with so many
 * requests in flight. Texts are the document's. */
typedef struct cs_measured {
  const char *model, *dtype, *contender, *layout; /* layout NULL: it has none */
  int64_t batch;
  int in_flight;  /* 0: a latency in microseconds; else images a second */
  bool predicted; /* of a simulated device: exact */
  double median;
  double low, high; /* an interval of the median; both the median where no samples tell */
  int samples;
  char *key; /* equal where the same was measured */
} cs_measured;

/* Of a file of `convsched.run/1` and `convsched.throughput/1`, a document or one a line; of what
 * comes again, the last. */
typedef struct cs_records {
  const char *path;
  json_t *documents; /* array */
  json_t *index;     /* key → position in items */
  cs_measured *items;
  size_t n, capacity;
  int repeated; /* results that a later record took the place of */
} cs_records;

/* Medians' intervals have this confidence (of few samples less). Errors: IO; BAD_INPUT: no JSON,
 * another schema, nothing measured (the message names file, record, found and wanted). Free in any
 * case. */
cs_status cs_records_read(const char *path, double confidence, cs_records *out) CS_MUST_USE;
void cs_records_free(cs_records *records);
/* NULL: not in there. */
const cs_measured *cs_records_find(const cs_records *records, const char *key);
/* The values of a member of the records, each once: "H100, H200". free() releases. */
cs_status cs_records_list(const cs_records *records, const char *object, const char *member,
                          char **out) CS_MUST_USE;

/* ---- The table (compare.c) ---- */

/* A row for everything that both have, with title, notes, `about` and `summary`. A regression is
 * what B does slower than A by more than `max_regression` percent (below 0: nothing is), and
 * slower by more than both medians' intervals leave open. NOT_FOUND: they have nothing in common.
 * `out` is to be freed in any case. */
cs_status cs_report_compare(const char *path_a, const char *path_b, double max_regression,
                            cs_table *out) CS_MUST_USE;

#endif
