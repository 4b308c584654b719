/* `convsched run`: profile, plan, execute, check, and say what was gained. */
#include "cli/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define B2B_LAUNCHES 20

static const char help[] =
    "Profiles every operation of a graph over the implementations the device offers (from the "
    "cache where it has been measured before), plans, runs the plan beside the sequential one, "
    "checks the numbers and says what was gained.\v"
    "Example:\n"
    "  convsched run models/googlenet.json --dtype tf32 --batch 1,32 --json out.jsonl\n\n"
    "Several models, batches or dtypes are run one after the other; --json then writes JSON "
    "lines. Latencies of all policies are sampled in turn in one process.";

/* ---- Contenders ---- */

static bool has_contender(const run_case *run, const char *policy) {
  for (int i = 0; i < run->n; i++) {
    if (strcmp(run->contenders[i].policy, policy) == 0) return true;
  }
  return false;
}

static void add_policy(run_case *run, const char *policy) {
  if (!has_contender(run, policy) && run->n < RUN_MAX_POLICIES) {
    run->contenders[run->n++].policy = policy;
  }
}

static void choose_policies(run_case *run) {
  const char *policy = run->options->policy ? run->options->policy : CLI_DEFAULT_POLICY;
  add_policy(run, "sequential");
  if (strcmp(policy, "all") != 0) {
    add_policy(run, policy);
    return;
  }
  int count;
  const char *const *names = cs_policy_names(&count);
  for (int i = 0; i < count; i++) add_policy(run, names[i]);
}

/* ---- Inputs and outputs ---- */

static int64_t elements_of(int rank, const int64_t *dims) {
  int64_t count = 1;
  for (int d = 0; d < rank; d++) count *= dims[d];
  return count;
}

static cs_status set_input(const run_case *run, cs_session *session) {
  if (!run->options->input) return CS_OK;
  if (cs_graph_input_count(run->graph) != 1) {
    return cli_error(CS_CODE_USAGE, "--input: %s has %d inputs, wanted one", run->path,
                     cs_graph_input_count(run->graph));
  }
  int rank;
  int64_t dims[8];
  float *array = NULL;
  CS_RETURN_IF_ERROR(cs_session_shape(session, cs_graph_input_name(run->graph, 0), &rank, dims));
  CS_RETURN_IF_ERROR(cs_array_load(run->options->input, rank, dims, &array));
  int64_t size = elements_of(rank, dims);
  cs_status st = cs_session_set_inputs(session, (const float *const *)&array, &size, 1);
  cs_array_free(array);
  return st;
}

static cs_status run_once(const run_case *run, cs_session *session, float **first_output) {
  cs_status st = CS_OK;
  int n = cs_graph_output_count(run->graph);
  float **outputs = calloc((size_t)n, sizeof *outputs);
  int64_t *sizes = calloc((size_t)n, sizeof *sizes);
  if (!outputs || !sizes) {
    st = cs_no_memory("outputs", (size_t)n * sizeof *outputs);
    goto done;
  }
  for (int i = 0; i < n; i++) {
    int rank;
    int64_t dims[8];
    CS_TRY(st, cs_session_shape(session, cs_graph_output_name(run->graph, i), &rank, dims), done);
    sizes[i] = elements_of(rank, dims);
    outputs[i] = calloc((size_t)sizes[i], sizeof **outputs);
    if (!outputs[i]) {
      st = cs_no_memory("an output", (size_t)sizes[i] * sizeof **outputs);
      goto done;
    }
  }
  CS_TRY(st, cs_session_run(session, NULL, NULL, 0, outputs, sizes, n), done);
  *first_output = outputs[0];
  outputs[0] = NULL;
done:
  for (int i = 0; outputs && i < n; i++) free(outputs[i]);
  free(outputs);
  free(sizes);
  return st;
}

static cs_status write_output(const run_case *run, const cs_session *session, const float *output) {
  if (!run->options->output) return CS_OK;
  int rank;
  int64_t dims[8];
  CS_RETURN_IF_ERROR(cs_session_shape(session, cs_graph_output_name(run->graph, 0), &rank, dims));
  return cs_array_save(run->options->output, rank, dims, output);
}

/* "NODE" writes NODE.npy (with '/' made '_'), "NODE=FILE" writes FILE. */
static cs_status dump_one(cs_session *session, const char *item) {
  cs_status st = CS_OK;
  const char *equals = strchr(item, '=');
  char *node = equals ? strndup(item, (size_t)(equals - item)) : strdup(item);
  cs_strbuf path = {0};
  float *data = NULL;
  int rank;
  int64_t dims[8];
  if (!node) return cs_no_memory("a node's name", strlen(item));
  cs_strbuf_printf(&path, equals ? "%s" : "%s.npy", equals ? equals + 1 : node);
  for (size_t i = 0; !equals && i < path.length; i++) {
    if (path.data[i] == '/') path.data[i] = '_';
  }
  CS_TRY(st, cs_session_shape(session, node, &rank, dims), done);
  data = calloc((size_t)elements_of(rank, dims), sizeof *data);
  if (!data || path.failed) {
    st = cs_no_memory("a dump", (size_t)elements_of(rank, dims) * sizeof *data);
    goto done;
  }
  CS_TRY(st, cs_session_read(session, node, data, elements_of(rank, dims)), done);
  st = cs_array_save(path.data, rank, dims, data);
done:
  cs_strbuf_free(&path);
  free(node);
  free(data);
  return st;
}

/* ---- Measuring ---- */

static cs_status sample_all(run_case *run) {
  for (int i = 0; i < run->n; i++) {
    run->contenders[i].samples =
        calloc((size_t)run->options->samples, sizeof *run->contenders[i].samples);
    if (!run->contenders[i].samples) return cs_no_memory("samples", 0);
    double warm_up;
    for (int w = 0; w < 3; w++) {
      CS_RETURN_IF_ERROR(cs_session_latency(run->contenders[i].session, &warm_up));
    }
  }
  for (int s = 0; s < run->options->samples; s++) {
    CS_RETURN_IF_ERROR(cli_check_interrupt());
    for (int i = 0; i < run->n; i++) {
      run_contender *contender = &run->contenders[i];
      CS_RETURN_IF_ERROR(
          cs_session_latency(contender->session, &contender->samples[contender->n_samples]));
      contender->n_samples++;
    }
  }
  for (int i = 0; i < run->n; i++) {
    run_contender *contender = &run->contenders[i];
    /* free_case() releases the samples. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    CS_RETURN_IF_ERROR(cs_stats_of(contender->samples, contender->n_samples, &contender->stats));
    CS_RETURN_IF_ERROR(
        cs_session_latency_b2b(contender->session, B2B_LAUNCHES, &contender->b2b_us));
  }
  return CS_OK;
}

static cs_status verify_all(run_case *run) {
  run->passed = true;
  if (run->options->verify < 0) return CS_OK;
  for (int i = 0; i < run->n; i++) {
    CS_RETURN_IF_ERROR(cli_check_interrupt());
    run_contender *contender = &run->contenders[i];
    CS_RETURN_IF_ERROR(cs_session_verify(contender->session, (cs_verify_level)run->options->verify,
                                         &contender->verification));
    contender->verified = true;
    if (!contender->verification.passed) run->passed = false;
  }
  return CS_OK;
}

static cs_status read_info(run_contender *contender) {
  char *text = NULL;
  CS_RETURN_IF_ERROR(cs_session_info_json(contender->session, &text));
  contender->info = json_loads(text, 0, NULL);
  cs_string_free(text);
  return contender->info ? CS_OK : cli_error(CS_CODE_INTERNAL, "session info is not JSON");
}

/* ---- A case ---- */

/* The wanted policy first: its first output is the process's first result. */
static cs_status create_sessions(run_case *run) {
  cs_session_options options;
  const char *kept[CLI_MAX_LIST];
  cs_status st = CS_OK;
  float *output = NULL;
  run_contender *main_one = &run->contenders[run->n - 1];
  cli_session_options(run->options, run->batch, run->precision, main_one->policy, &options);
  int n_kept = 0;
  for (int d = 0; d < run->options->dumps.n; d++) {
    const char *item = run->options->dumps.items[d], *equals = strchr(item, '=');
    kept[n_kept] = equals ? strndup(item, (size_t)(equals - item)) : strdup(item);
    if (!kept[n_kept++]) {
      st = cs_no_memory("a node's name", strlen(item));
      goto done;
    }
  }
  options.keep = kept;
  options.n_keep = n_kept;
  CS_TRY(st, cs_session_create(run->device, run->graph, &options, &main_one->session), done);
  CS_TRY(st, set_input(run, main_one->session), done);
  CS_TRY(st, run_once(run, main_one->session, &output), done);
  run->first_result_s = cli_now() - cli_started;
  CS_TRY(st, write_output(run, main_one->session, output), done);
  for (int d = 0; d < run->options->dumps.n; d++) {
    CS_TRY(st, dump_one(main_one->session, run->options->dumps.items[d]), done);
  }
  for (int i = 0; i < run->n - 1; i++) {
    CS_TRY(
        st,
        cs_session_fork(main_one->session, run->contenders[i].policy, &run->contenders[i].session),
        done);
  }
done:
  free(output);
  for (int k = 0; k < n_kept; k++) free((char *)kept[k]);
  return st;
}

static cs_status do_case(run_case *run) {
  choose_policies(run);
  CS_RETURN_IF_ERROR(create_sessions(run));
  CS_RETURN_IF_ERROR(sample_all(run));
  CS_RETURN_IF_ERROR(verify_all(run));
  for (int i = 0; i < run->n; i++) CS_RETURN_IF_ERROR(read_info(&run->contenders[i]));
  return CS_OK;
}

static void free_case(run_case *run) {
  for (int i = 0; i < run->n; i++) {
    cs_session_destroy(run->contenders[i].session);
    free(run->contenders[i].samples);
    json_decref(run->contenders[i].info);
  }
}

/* ---- All cases ---- */

typedef struct run_totals {
  json_t *records;
  bool passed;
  bool first; /* no case has been run yet */
} run_totals;

static cs_status run_one(const cli_options *options, cs_device *device, const cs_graph *graph,
                         const char *path, double load_s, int64_t batch, cs_precision precision,
                         run_totals *totals) {
  cs_status st = CS_OK;
  char *table = NULL;
  json_t *record = NULL;
  run_case run = {.options = options,
                  .device = device,
                  .graph = graph,
                  .path = path,
                  .batch = batch,
                  .precision = precision,
                  .load_s = load_s};
  CS_TRY(st, do_case(&run), done);
  cli_end_progress();
  if (!totals->first) run.first_result_s = 0;
  totals->first = false;
  if (!run.passed) totals->passed = false;
  if (!options->json || strcmp(options->json, "-") != 0) {
    CS_TRY(st, run_table(&run, &table), done);
    CS_TRY(st, cli_print(table), done);
  }
  CS_TRY(st, run_record(&run, &record), done);
  json_array_append_new(totals->records, record);
done:
  free(table);
  free_case(&run);
  return st;
}

static cs_status run_model(const cli_options *options, cs_device *device, const char *path,
                           run_totals *totals) {
  cs_graph *graph = NULL;
  double started = cli_now();
  CS_RETURN_IF_ERROR(cs_graph_load(path, &graph));
  double load_s = cli_now() - started;
  cs_status st = CS_OK;
  for (int p = 0; p < options->n_precisions && st == CS_OK; p++) {
    for (int b = 0; b < options->n_batches && st == CS_OK; b++) {
      st = cli_check_interrupt();
      if (st != CS_OK) break;
      st = run_one(options, device, graph, path, load_s, options->batches[b],
                   options->precisions[p], totals);
    }
  }
  cs_graph_destroy(graph);
  return st;
}

static cs_status run_command(const cli_options *options) {
  cs_status st = CS_OK;
  cs_device *device = NULL;
  run_totals totals = {.records = json_array(), .passed = true, .first = true};
  int n_cases = options->models.n * options->n_batches * options->n_precisions;
  if (n_cases > 1 && (options->output || options->input || options->dumps.n || options->plan)) {
    CS_FAIL(st, done, CS_CODE_USAGE,
            "--input, --output, --dump and --plan go with one model, batch and dtype; %d cases "
            "given",
            n_cases);
  }
  CS_TRY(st, cs_device_open(options->device, cli_logger(options), &device), done);
  for (int m = 0; m < options->models.n; m++) {
    st = run_model(options, device, options->models.items[m], &totals);
    if (st != CS_OK) break;
  }
  /* What was measured is written even when a later case failed. */
  if (st == CS_OK || json_array_size(totals.records) > 0) {
    cs_status written = cli_write_records(options, n_cases, totals.records);
    if (st == CS_OK) {
      st = written;
    } else {
      cs_status_free(written);
    }
  }
  if (st == CS_OK && !totals.passed) {
    st = cli_error(CS_CODE_WRONG_RESULT, "verification failed; the table says where");
  }
done:
  cs_device_close(device);
  json_decref(totals.records);
  return st;
}

const cli_command cli_run = {.name = "run",
                             .arguments = "MODEL.json…",
                             .summary = "Profile, plan, execute, check and time a network",
                             .help = help,
                             .options = CLI_PLANNING | CLI_RUNNING | CLI_JSON,
                             .min_models = 1,
                             .max_models = CLI_MAX_LIST,
                             .run = run_command};
