/* What an experiment recorded, as a table. Pure: files and statistics. */
#ifndef CONVSCHED_REPORT_EXPERIMENT_H_
#define CONVSCHED_REPORT_EXPERIMENT_H_

#include "report/page.h"

/* ---- Records (experiment_records.c) ---- */

/* A policy in a cell, or a cell that failed (no policy). Texts are the document's. */
typedef struct cs_trial {
  const json_t *cell;           /* its coordinates: "model", "dtype", "batch", … */
  const char *policy;           /* NULL: the cell failed */
  const char *outcome, *reason; /* reason NULL: none */
  double us, low,
      high; /* median of latency with a 95% interval, or what is predicted; NaN: failed */
  double gain, gain_low, gain_high; /* over the cell's `sequential` */
  int samples;
  const json_t *told; /* the policy's entry of convsched.run/1; NULL: failed */
} cs_trial;

typedef struct cs_experiment_records {
  const char *path;
  json_t *lines;      /* array */
  const json_t *head; /* the first of them */
  cs_trial *trials;   /* in the order in which cells were first recorded */
  size_t n, capacity;
  json_t *values;                 /* of each dimension: the different ones, in order */
  int n_cells, n_failed, n_wrong; /* cells; of one that was measured again, the last counts */
  json_t *cells, *cases;          /* arrays of the last record of each */
  bool torn;                      /* the last line is not whole and was left out */
} cs_experiment_records;

/* Errors: IO; BAD_INPUT (file, line, found, wanted). Free in any case. */
cs_status cs_experiment_records_read(const char *path, cs_experiment_records *out) CS_MUST_USE;
void cs_experiment_records_free(cs_experiment_records *records);

/* Dimensions of cells, "model" first; NULL ends them. */
extern const char *const cs_experiment_dimensions[];
/* A coordinate for a person: "64.0 MiB", "default". */
void cs_experiment_value_text(const json_t *cell, const char *dimension, char out[256]);
/* How many different values of a dimension there are. */
size_t cs_experiment_count(const cs_experiment_records *records, const char *dimension);

/* "googlenet f16 batch 32, family legacy": what differs between cells, and always model, dtype and
 * batch; but not the dimensions `but` and `nor` (NULL: none). */
void cs_experiment_cell_text(const cs_experiment_records *records, const json_t *cell,
                             const char *but, const char *nor, cs_strbuf *out);

/* ---- Plots (experiment_plots.c) ---- */

/* Latency and gain against each numeric dimension that varies, a figure for each combination of the
 * others, a line for each policy; and where there are several families, a line for each of them. */
cs_status cs_experiment_plots(const cs_experiment_records *records, cs_html *page) CS_MUST_USE;

/* ---- The page (experiment_page.c) ---- */

/* One self-contained HTML file; free() releases. */
cs_status cs_experiment_page_of(const char *path, char **out) CS_MUST_USE;

/* ---- The table (experiment.c) ---- */

/* That of the page. Shows what differs alone. */
void cs_experiment_table_of(const cs_experiment_records *records, cs_table *out);

/* A row for every trial. `out` is to be freed in any case. */
cs_status cs_report_experiment(const char *path, cs_table *out) CS_MUST_USE;

#endif
