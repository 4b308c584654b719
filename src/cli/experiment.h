/* Inside of `experiment`: the file of records, which cells are meant, and measuring them. */
#ifndef CONVSCHED_CLI_EXPERIMENT_H_
#define CONVSCHED_CLI_EXPERIMENT_H_

#include "base/base.h"
#include "cli/cli.h"

/* ---- experiment_file.c: JSON lines that are appended to, one process at a time ---- */

typedef struct experiment_file {
  const char *path;
  int fd;         /* -1: not open */
  bool made;      /* it was not there before */
  size_t length;  /* bytes; whole lines */
  json_t *header; /* its first line; NULL: it has none yet */
  json_t *done;   /* key → outcome of the last line with it */
  double seconds; /* that cells took, of those that tell */
  int timed;
} experiment_file;

/* Opens it for appending, made where it is not there, and reads what it holds. What a killed
 * process left of its last line is cut off. Errors: IO, USAGE (another process has it), BAD_INPUT
 * (not such a file: file, line, found, wanted). Close in any case, which removes what was made and
 * stayed empty. */
cs_status experiment_file_open(const char *path, experiment_file *out) CS_MUST_USE;
/* The same to read alone; a file that is not there is an empty one. */
cs_status experiment_file_read(const char *path, experiment_file *out) CS_MUST_USE;
void experiment_file_close(experiment_file *file);
/* BAD_INPUT where what the file holds is of another specification, commit or device than `header`,
 * which is written where there is none. */
cs_status experiment_file_begin(experiment_file *file, const json_t *header) CS_MUST_USE;
/* One line, in one write that is on the disk when this returns, with its key and outcome noted. */
cs_status experiment_file_append(experiment_file *file, const json_t *record) CS_MUST_USE;
/* "measured", "predicted", "wrong" (verification found it so), "failed"; NULL: not there. */
const char *experiment_file_outcome(const experiment_file *file, const char *key);

/* ---- experiment_select.c ---- */

/* What cells and cases are called in records; free() releases. */
cs_status experiment_cell_key(const json_t *cell, char **out) CS_MUST_USE;
cs_status experiment_case_key(const json_t *one, char **out) CS_MUST_USE;
/* Of the cells those that --only means: chosen[n]. USAGE: an unknown dimension, no such cell. */
cs_status experiment_choose(const cli_options *options, const json_t *cells,
                            bool *chosen) CS_MUST_USE;
bool experiment_same_case(const json_t *cell, const json_t *one);

/* ---- experiment_cell.c ---- */

typedef struct experiment_run {
  const cli_options *options;
  const json_t *told; /* cs_experiment_json */
  cs_device *device;
  bool simulated;
} experiment_run;

/* A cell's record, `convsched.experiment-cell/1`, without its key. A cell that cannot be measured
 * has one that says why; errors are what ends the experiment (interrupted). */
cs_status experiment_measure(const experiment_run *run, const cs_graph *graph, const json_t *cell,
                             json_t **out) CS_MUST_USE;
/* Measures what the specification's `profile` wants of a case, counters last; a report, or NULL
 * where nothing is wanted. */
cs_status experiment_profile(const experiment_run *run, const cs_graph *graph, const json_t *one,
                             bool counters, json_t **report) CS_MUST_USE;
/* A case's record, `convsched.experiment-profile/1`, without its key: report (may be NULL) and
 * tables. `failure` (consumed): why there is no report. */
cs_status experiment_case_record(const experiment_run *run, const cs_graph *graph,
                                 const json_t *one, json_t *report, cs_status failure,
                                 json_t **out) CS_MUST_USE;

#endif
