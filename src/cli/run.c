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
    "Throughput with four requests in flight, beside one:\n"
    "  convsched run models/googlenet.json --dtype f16 --batch 8 --pipeline 4\n\n"
    "Several models, batches or dtypes are run one after the other; --json then writes JSON "
    "lines. Latencies of all policies are sampled in turn in one process.\n\n"
    "With --device sim:FILE, a profile that `convsched profile --export FILE` wrote on a GPU, "
    "nothing "
    "is run: the plans are that GPU's, and the SM model predicts their times.";

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
  if (run->policies) {
    add_policy(run, "sequential");
    for (int i = 0; i < run->n_policies; i++) add_policy(run, run->policies[i]);
    return;
  }
  if (run->options->plan) run->plan_policy = cli_plan_policy(run->options->plan);
  const char *policy = run->plan_policy       ? run->plan_policy
                       : run->options->policy ? run->options->policy
                                              : CLI_DEFAULT_POLICY;
  add_policy(run, "sequential");
  if (strcmp(policy, "all") != 0) {
    add_policy(run, policy);
    return;
  }
  int count;
  const char *const *names = cs_policy_names(&count);
  for (int i = 0; i < count; i++) add_policy(run, names[i]);
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
    cli_tell_progress("sampling", "samples", s, run->options->samples);
    for (int i = 0; i < run->n; i++) {
      run_contender *contender = &run->contenders[i];
      CS_RETURN_IF_ERROR(
          cs_session_latency(contender->session, &contender->samples[contender->n_samples]));
      contender->n_samples++;
    }
  }
  for (int i = 0; i < run->n; i++) {
    run_contender *contender = &run->contenders[i];
    /* run_free_case() releases the samples. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    CS_RETURN_IF_ERROR(cs_stats_of(contender->samples, contender->n_samples, &contender->stats));
    CS_RETURN_IF_ERROR(
        cs_session_latency_b2b(contender->session, B2B_LAUNCHES, &contender->b2b_us));
  }
  return CS_OK;
}

static cs_status verify_all(run_case *run) {
  run->passed = true;
  if (run->options->verify < 0) return CS_OK;
  double started = cli_now();
  for (int i = 0; i < run->n; i++) {
    CS_RETURN_IF_ERROR(cli_check_interrupt());
    run_contender *contender = &run->contenders[i];
    CS_RETURN_IF_ERROR(cs_session_verify(contender->session, (cs_verify_level)run->options->verify,
                                         &contender->verification));
    contender->verified = true;
    if (!contender->verification.passed) run->passed = false;
  }
  run->verify_s = cli_now() - started;
  return CS_OK;
}

static cs_status ablate(run_case *run) {
  char *text = NULL;
  CS_RETURN_IF_ERROR(cs_session_ablate(run->contenders[run->n - 1].session, "streams", &text));
  run->ablation = json_loads(text, 0, NULL);
  cs_string_free(text);
  return run->ablation ? CS_OK : cli_error(CS_CODE_INTERNAL, "an ablation is not JSON");
}

/* ---- A case ---- */

/* Whose session is made first, with the rest forked from it: the wanted policy, but of several
 * `ios`, so that what it measures of stages is known when `coselect` compares itself with it. */
static run_contender *first_contender(run_case *run) {
  for (int i = 0; !run->options->plan && i < run->n; i++) {
    if (strcmp(run->contenders[i].policy, "ios") == 0) return &run->contenders[i];
  }
  return &run->contenders[run->n - 1];
}

/* The first output of the wanted policy is the process's first result. */
static cs_status create_sessions(run_case *run) {
  cs_session_options options;
  char *kept[CLI_MAX_LIST];
  cs_status st = CS_OK;
  run_outputs outputs = {0};
  run_contender *main_one = &run->contenders[run->n - 1], *first = first_contender(run);
  cli_session_options(run->options, run->batch, run->precision, first->policy, &options);
  int n_kept = 0;
  for (; n_kept < run->options->dumps.n; n_kept++) {
    CS_TRY(st, run_dump_node(run->graph, run->options->dumps.items[n_kept], &kept[n_kept]), done);
  }
  options.keep = (const char *const *)kept;
  options.n_keep = n_kept;
  CS_TRY(st, cs_session_create(run->device, run->graph, &options, &first->session), done);
  CS_TRY(st, run_set_input(run, first->session), done);
  if (first != main_one) {
    CS_TRY(st, cs_session_fork(first->session, main_one->policy, &main_one->session), done);
  }
  double started = cli_now();
  CS_TRY(st, run_first(run, main_one->session, &outputs), done);
  run->first_run_s = cli_now() - started;
  run->first_result_s = cli_now() - cli_started;
  CS_TRY(st, run_write_outputs(run, main_one->session, &outputs), done);
  for (int d = 0; d < run->options->dumps.n; d++) {
    CS_TRY(st, run_dump(run, main_one->session, run->options->dumps.items[d]), done);
  }
  for (int i = 0; i < run->n - 1; i++) {
    if (run->contenders[i].session) continue;
    CS_TRY(
        st,
        cs_session_fork(main_one->session, run->contenders[i].policy, &run->contenders[i].session),
        done);
  }
done:
  run_free_outputs(&outputs);
  for (int k = 0; k < n_kept; k++) free(kept[k]);
  return st;
}

cs_status run_do_case(run_case *run) {
  choose_policies(run);
  if (run->simulated) return run_predict(run);
  CS_RETURN_IF_ERROR(create_sessions(run));
  CS_RETURN_IF_ERROR(sample_all(run));
  if (run->options->ablate) CS_RETURN_IF_ERROR(ablate(run));
  CS_RETURN_IF_ERROR(verify_all(run));
  for (int i = 0; i < run->n; i++)
    CS_RETURN_IF_ERROR(cli_session_json(run->contenders[i].session, &run->contenders[i].info));
  return CS_OK;
}

void run_free_case(run_case *run) {
  for (int i = 0; i < run->n; i++) {
    cs_session_destroy(run->contenders[i].session);
    free(run->contenders[i].samples);
    json_decref(run->contenders[i].info);
    json_decref(run->contenders[i].overlap);
    json_decref(run->contenders[i].pipeline);
  }
  json_decref(run->ablation);
  free(run->plan_policy);
}

/* ---- All cases ---- */

typedef struct run_totals {
  int n_cases;
  json_t *records;
  bool passed;
  bool first;             /* no case has been run yet */
  bool simulated, on_cpu; /* as in run_case */
  double open_s;
} run_totals;

static cs_status run_one(const cli_options *options, cs_device *device, const cs_graph *graph,
                         const char *path, double load_s, int64_t batch, cs_precision precision,
                         run_totals *totals) {
  cs_status st = CS_OK, more = CS_OK;
  char *table = NULL;
  json_t *record = NULL;
  run_case run = {.options = options,
                  .device = device,
                  .graph = graph,
                  .path = path,
                  .batch = batch,
                  .precision = precision,
                  .simulated = totals->simulated,
                  .on_cpu = totals->on_cpu,
                  .open_s = totals->open_s,
                  .load_s = load_s};
  CS_TRY(st, run_do_case(&run), done);
  cli_end_progress();
  /* What was measured before is told even where these fail. */
  if (options->pipeline) more = cs_annotate(run_pipeline(&run), "--pipeline: ");
  if (options->overlap && more == CS_OK) more = cs_annotate(run_overlap(&run), "--overlap: ");
  if (!totals->first) run.first_result_s = 0;
  totals->first = false;
  if (!run.passed) totals->passed = false;
  if (!options->json || strcmp(options->json, "-") != 0) {
    CS_TRY(st, run_table(&run, &table), done);
    CS_TRY(st, cli_print(table), done);
  }
  CS_TRY(st, run_record(&run, &record), done);
  st = cli_add_record(options, totals->n_cases, totals->records, record);
done:
  if (st == CS_OK) {
    st = more;
  } else {
    cs_status_free(more);
  }
  free(table);
  run_free_case(&run);
  return st;
}

static cs_status run_model(const cli_options *options, cs_device *device, const char *path,
                           run_totals *totals) {
  cs_graph *graph = NULL;
  double started = cli_now();
  CS_RETURN_IF_ERROR(cli_load_graph(path, &graph));
  double load_s = cli_now() - started;
  cs_status st = run_check_arrays(options, graph);
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
  totals.n_cases = n_cases;
  if (n_cases > 1 &&
      (options->outputs.n || options->inputs.n || options->dumps.n || options->plan)) {
    CS_FAIL(st, done, CS_CODE_USAGE,
            "--input, --output, --dump and --plan go with one model, batch and dtype; %d cases "
            "given",
            n_cases);
  }
  if (n_cases > 1 && options->overlap) {
    CS_FAIL(st, done, CS_CODE_USAGE,
            "--overlap goes with one model, batch and dtype, since nothing is timed once a tracer "
            "was there; %d cases given",
            n_cases);
  }
  if (options->ablate && options->in_flight > 1) {
    CS_FAIL(st, done, CS_CODE_USAGE,
            "--ablate measures one request's latency, so it goes without --in-flight %d",
            options->in_flight);
  }
  CS_TRY(st, cli_check_plan_options(options), done);
  if (cli_device_is_simulated(options)) CS_TRY(st, run_check_simulated(options), done);
  CS_TRY(st, cli_check_writable(options->json), done);
  double started = cli_now();
  CS_TRY(st, cs_device_open(options->device, cli_logger(options), &device), done);
  totals.open_s = cli_now() - started;
  if (options->overlap) CS_TRY(st, cs_device_check_trace(device, "--overlap"), done);
  CS_TRY(st, run_check_pipeline(options, device, &totals.on_cpu), done);
  totals.simulated = cli_device_is_simulated(options);
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
                             .run = run_command,
                             .asks = true};
