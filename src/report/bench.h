/* What `convsched bench` recorded: rungs of a ladder over sizes or layers, as a table, curves and a
 * page. Pure. */
#ifndef CONVSCHED_REPORT_BENCH_H_
#define CONVSCHED_REPORT_BENCH_H_

#include "convsched/convsched.h"
#include "report/page.h"

/* One rung in one case. Texts are the documents'. */
typedef struct cs_bench_row {
  const json_t *record;
  const char *bench, *which, *device, *backend, *dtype; /* which: the case */
  const char *rung, *id;                                /* id NULL: skipped */
  const char *skipped;                                  /* why; NULL: it was measured */
  double at;                                            /* place on the axis: size, layer */
  double batch;                                         /* NaN: none */
  double us, cold_us;                                   /* NaN: skipped */
  double flops;                                         /* FLOP/s */
  double of_peak, of_roofline; /* shares of what the device sustains; NaN: not known */
  double against_own;          /* times as fast as the device's own naive rung; NaN: not measured */
  double against_cpu;          /* … as the CPU's on one thread */
  double samples;              /* NaN: not told */
  bool best;                   /* the fastest of all candidates in its case */
} cs_bench_row;

typedef struct cs_bench_records {
  const char *name; /* of them, for messages */
  json_t *list;
  cs_bench_row *rows; /* of each record its rungs, then the best */
  size_t n, capacity;
} cs_bench_records;

#define CS_BENCH_NAIVE "naive" /* the rung that others are compared with */
#define CS_BENCH_BEST "best"

/* Errors: BAD_INPUT (record, found, wanted). Free in any case. */
cs_status cs_bench_records_parse(const char *text, size_t length, const char *name,
                                 cs_bench_records *out) CS_MUST_USE;
void cs_bench_records_free(cs_bench_records *records);

/* A row for every rung; below it what all layers together take. Free in any case. */
void cs_bench_table_of(const cs_bench_records *records, cs_table *out);

/* FLOP/s over sizes (time over layers) of all rungs, or where these are more than lines have
 * colours of the naive one, the library's and the fastest. `style` as of cs_svg_head. */
cs_status cs_bench_overview(const cs_bench_records *records, const char *style,
                            cs_strbuf *out) CS_MUST_USE;
/* The overview, for every device and dtype what of its peak each rung reaches, and the table;
 * free() releases. */
cs_status cs_bench_page_of(const cs_bench_records *records, char **out) CS_MUST_USE;

/* cs_bench_records_text of the public API. */
cs_status cs_bench_text_of(const char *text, size_t length, const char *name,
                           cs_report_format format, char **out) CS_MUST_USE;

#endif
