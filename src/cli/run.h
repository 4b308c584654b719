/* One case of `run` (model, batch, dtype), its contenders, and how they are told. */
#ifndef CONVSCHED_CLI_RUN_H_
#define CONVSCHED_CLI_RUN_H_

#include "base/base.h"
#include "cli/cli.h"

#define RUN_MAX_POLICIES 16

typedef struct run_contender {
  const char *policy;
  cs_session *session;
  double *samples; /* latency, microseconds */
  int n_samples;
  cs_stats stats;
  double b2b_us;
  double predicted_us; /* of a simulated device, in place of what is measured */
  json_t *info;        /* cs_session_info_json */
  json_t *overlap;     /* cs_session_overlap_json; NULL: not asked for */
  json_t *pipeline;    /* of requests in flight; NULL: not asked for */
  cs_verification verification;
  bool verified;
} run_contender;

typedef struct run_case {
  const cli_options *options;
  cs_device *device;
  const cs_graph *graph;
  const char *path;
  int64_t batch;
  cs_precision precision;
  const char *const *policies; /* beside `sequential`; NULL: those that the options name */
  int n_policies;
  run_contender contenders[RUN_MAX_POLICIES]; /* the baseline `sequential` first */
  int n;
  char *plan_policy;  /* of --plan: the file's own; NULL: none */
  bool simulated;     /* the device is: times are predicted, nothing is run */
  bool on_cpu;        /* with --pipeline: the device is a CPU */
  double open_s;      /* opening the device */
  double load_s;      /* reading the graph */
  double first_run_s; /* input up, one run, output down; 0: nothing is run */
  double
      first_result_s; /* from the start of the process to the first output; 0: not the first case */
  double verify_s;    /* verifying all contenders; 0: not asked for */
  bool passed;
  json_t *ablation; /* NULL: not asked for */
} run_case;

/* ---- run_arrays.c ---- */
/* USAGE where --input or --output do not fit the graph's; IO where one could not be written. */
cs_status run_check_arrays(const cli_options *options, const cs_graph *graph) CS_MUST_USE;
cs_status run_set_input(const run_case *run, cs_session *session) CS_MUST_USE;
typedef struct run_outputs {
  int n;
  float **arrays;
  int64_t *sizes;
} run_outputs;
/* Runs once; run_free_outputs releases, in any case. */
cs_status run_first(const run_case *run, cs_session *session, run_outputs *out) CS_MUST_USE;
void run_free_outputs(run_outputs *outputs);
cs_status run_write_outputs(const run_case *run, const cs_session *session,
                            const run_outputs *outputs) CS_MUST_USE;
/* The node that an item of --dump names; free() releases. */
cs_status run_dump_node(const cs_graph *graph, const char *item, char **node) CS_MUST_USE;
cs_status run_dump(const run_case *run, cs_session *session, const char *item) CS_MUST_USE;

/* ---- run_predicted.c ---- */
/* USAGE: an option that wants numbers, which a simulated device has not. */
cs_status run_check_simulated(const cli_options *options) CS_MUST_USE;
/* Plans for every contender and fills in what the model predicts. */
cs_status run_predict(run_case *run) CS_MUST_USE;

/* ---- run_overlap.c ---- */
/* Traces the policy's session (of `all`, every one); nothing is timed after it. */
cs_status run_overlap(run_case *run) CS_MUST_USE;
void run_print_overlap(const run_case *run, cs_strbuf *text);

/* ---- run_pipeline.c ---- */
/* USAGE: stream calls on a device whose requests in flight are launches of graphs. *on_cpu: the
 * device is a CPU; false without --pipeline. */
cs_status run_check_pipeline(const cli_options *options, const cs_device *device,
                             bool *on_cpu) CS_MUST_USE;
/* Measures and checks every contender's plan with one request and with --pipeline of them in
 * flight; what is wrong clears `passed`. */
cs_status run_pipeline(run_case *run) CS_MUST_USE;
void run_print_pipeline(const run_case *run, cs_strbuf *text);

/* ---- run_search.c ---- */
/* A line for each block that fell back to one stream. */
void run_print_search(const run_case *run, cs_strbuf *text);

/* ---- record.c ---- */
/* Seconds of what starting up consists of, of the policy asked for; NULL: no memory. */
json_t *run_timings_json(const run_case *run);

/* ---- run.c ---- */
/* Plans for every contender and fills in what is measured, or predicted. Where it fails the case is
 * to be freed, too. */
cs_status run_do_case(run_case *run) CS_MUST_USE;
void run_free_case(run_case *run);

/* `convsched.run/1` for a case. */
cs_status run_record(const run_case *run, json_t **out) CS_MUST_USE;
/* The table for a person. free() releases *out. */
cs_status run_table(const run_case *run, char **out) CS_MUST_USE;

/* Microseconds: the median measured, or what is predicted. */
double run_latency_us(const run_case *run, const run_contender *contender);
/* Numbers and objects of a contender's info. */
double run_info_number(const run_contender *contender, const char *key);
double run_bound(const run_contender *contender, const char *key);

#endif
