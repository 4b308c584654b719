/* `run --pipeline N`: throughput of every policy's plan with one request in flight and with N. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/members.h"
#include "cli/run.h"

#define WINDOWS 7
#define GPU_WINDOW_S 0.5
#define CPU_WINDOW_S 0.1
#define MOST_REQUESTS 1000000

/* What the windows of so many requests in flight gave. */
typedef struct windows {
  int in_flight, requests;
  double seconds[WINDOWS], images_per_s[WINDOWS], host_images_per_s[WINDOWS];
  double latency[WINDOWS], latency_p10[WINDOWS], latency_p90[WINDOWS];
  double joules, images; /* of all windows together, filling and draining in it */
} windows;

/* ---- Before anything is measured ---- */

cs_status run_check_pipeline(const cli_options *options, const cs_device *device, bool *on_cpu) {
  char backend[32];
  *on_cpu = false;
  if (!options->pipeline) return CS_OK;
  CS_RETURN_IF_ERROR(cli_device_backend(device, backend, sizeof backend));
  *on_cpu = strcmp(backend, "cpu") == 0;
  if (!options->no_graph || *on_cpu) return CS_OK;
  return cli_error(CS_CODE_USAGE,
                   "--pipeline %d: requests in flight are launches of CUDA graphs, so it goes "
                   "without --no-graph on this device (%s)",
                   options->pipeline, backend);
}

/* ---- Measuring ---- */

/* As many requests as fill a window, from ever longer ones, which warm the device up, too. */
static cs_status choose_requests(cs_pipeline *pipeline, int64_t batch, double window_s,
                                 windows *w) {
  static const double parts[] = {0.1, 0.5, 1.05};
  w->requests = 1;
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    cs_pipeline_rate rate;
    CS_RETURN_IF_ERROR(cli_check_interrupt());
    CS_RETURN_IF_ERROR(cs_pipeline_window(pipeline, w->in_flight, w->requests, true, &rate));
    double per_s = rate.host_images_per_s / (double)batch;
    w->requests = (int)fmin(fmax(ceil(parts[i] * window_s * per_s), 1), MOST_REQUESTS);
  }
  return CS_OK;
}

static cs_status take_window(cs_pipeline *pipeline, int64_t batch, int i, windows *w) {
  cs_pipeline_rate rate;
  CS_RETURN_IF_ERROR(cli_check_interrupt());
  CS_RETURN_IF_ERROR(cs_pipeline_window(pipeline, w->in_flight, w->requests, true, &rate));
  w->seconds[i] = rate.seconds;
  w->images_per_s[i] = rate.images_per_s;
  w->host_images_per_s[i] = rate.host_images_per_s;
  w->latency[i] = rate.latency_us;
  w->latency_p10[i] = rate.latency_p10_us;
  w->latency_p90[i] = rate.latency_p90_us;
  w->joules += rate.joules;
  w->images += (double)rate.all_requests * (double)batch;
  return CS_OK;
}

/* Windows of all in turn, another one first each time. */
static cs_status take_windows(cs_pipeline *pipeline, int64_t batch, double window_s, windows *all,
                              int n) {
  for (int k = 0; k < n; k++) {
    CS_RETURN_IF_ERROR(choose_requests(pipeline, batch, window_s, &all[k]));
  }
  for (int i = 0; i < WINDOWS; i++) {
    for (int k = 0; k < n; k++) {
      cli_tell_progress("windows of requests", "windows", i * n + k, WINDOWS * n);
      CS_RETURN_IF_ERROR(take_window(pipeline, batch, i, &all[(k + i) % n]));
    }
  }
  return CS_OK;
}

/* ---- The record ---- */

static double median(const double *values) {
  cs_stats stats;
  cs_status st = cs_stats_of(values, WINDOWS, &stats);
  double found = st == CS_OK ? stats.median : NAN;
  cs_status_free(st);
  return found;
}

static cs_status rates_json(const windows *w, json_t **out) {
  cs_stats stats;
  CS_RETURN_IF_ERROR(cs_stats_of(w->images_per_s, WINDOWS, &stats));
  json_t *samples = json_array();
  for (int i = 0; i < WINDOWS; i++) {
    json_array_append_new(samples, cs_json_number(w->images_per_s[i]));
  }
  json_t *rates = json_pack("{s:f, s:f, s:f, s:f, s:o}", "median", stats.median, "p10", stats.p10,
                            "p90", stats.p90, "variation", stats.variation, "samples", samples);
  json_t *latency = json_pack("{s:f, s:f, s:f}", "median", median(w->latency), "p10",
                              median(w->latency_p10), "p90", median(w->latency_p90));
  *out = json_pack("{s:i, s:i, s:f, s:o, s:f, s:o, s:o}", "in_flight", w->in_flight, "requests",
                   w->requests, "window_s", median(w->seconds), "images_per_s", rates,
                   "host_images_per_s", median(w->host_images_per_s), "latency_us", latency,
                   "joules_per_image", cs_json_number(w->joules / w->images));
  return *out ? CS_OK : cs_no_memory("rates of requests", 0);
}

static json_t *check_json(const cs_pipeline_check *check) {
  json_t *json = json_pack(
      "{s:b, s:i, s:o, s:o}", "passed", check->passed, "requests", check->requests, "bitwise_equal",
      check->bitwise_applies ? json_boolean(check->bitwise_equal) : json_null(), "rel_l2",
      cs_json_number(check->rel_l2));
  if (!check->passed) json_object_set_new(json, "problem", json_string(check->problem));
  return json;
}

/* Why there are no joules; null where there are. */
static cs_status add_energy(cs_device *device, const windows *all, int n, json_t *record) {
  double joules;
  const char *reason = NULL;
  cs_status st = cs_device_energy(device, &joules);
  if (st != CS_OK && cs_status_code(st) != CS_CODE_NOT_FOUND) return st;
  if (st != CS_OK) reason = cs_status_message(st);
  for (int k = 0; k < n && !reason; k++) {
    if (isnan(all[k].joules)) reason = "not known: the board's energy counter was begun anew";
  }
  json_object_set_new(record, "no_joules", reason ? json_string(reason) : json_null());
  cs_status_free(st);
  return CS_OK;
}

/* Requests in flight that a policy's plan was chosen for. */
static int planned_for(const cli_options *options, const char *policy) {
  bool chosen = strcmp(policy, "coselect") == 0 && options->in_flight > 1;
  return chosen ? options->in_flight : 1;
}

static cs_status make_record(const run_case *run, const char *policy, cs_pipeline *pipeline,
                             const windows *all, int n, const cs_pipeline_check *check,
                             json_t **out) {
  json_t *rates = json_array();
  /* A plan from a file does not tell. */
  json_t *chosen =
      run->options->plan ? json_null() : json_integer(planned_for(run->options, policy));
  *out = json_pack("{s:i, s:o, s:s, s:b, s:I, s:o}", "in_flight", all[n - 1].in_flight,
                   "planned_for", chosen, "how", cs_pipeline_how(pipeline), "copies", 1,
                   "arena_bytes", (json_int_t)cs_pipeline_arena_bytes(pipeline), "rates", rates);
  if (!*out) return cs_no_memory("a record of requests", 0);
  for (int k = 0; k < n; k++) {
    json_t *one = NULL;
    CS_RETURN_IF_ERROR(rates_json(&all[k], &one));
    json_array_append_new(rates, one);
  }
  json_object_set_new(*out, "verification", check ? check_json(check) : json_null());
  return add_energy(run->device, all, n, *out);
}

/* ---- A case ---- */

static cs_status measure(run_case *run, double window_s, run_contender *contender) {
  cs_status st = CS_OK;
  cs_pipeline *pipeline = NULL;
  cs_pipeline_check check;
  windows all[2] = {{.in_flight = 1}, {.in_flight = run->options->pipeline}};
  int n = run->options->pipeline > 1 ? 2 : 1;
  bool checked = run->options->verify >= 0;
  CS_RETURN_IF_ERROR(cs_pipeline_create(contender->session, run->options->pipeline, &pipeline));
  CS_TRY(st, take_windows(pipeline, run->batch, window_s, all, n), done);
  if (checked) CS_TRY(st, cs_pipeline_verify(pipeline, &check), done);
  if (checked && !check.passed) run->passed = false;
  CS_TRY(st,
         make_record(run, contender->policy, pipeline, all, n, checked ? &check : NULL,
                     &contender->pipeline),
         done);
done:
  cs_pipeline_destroy(pipeline);
  return st;
}

cs_status run_pipeline(run_case *run) {
  double window_s = run->on_cpu ? CPU_WINDOW_S : GPU_WINDOW_S;
  for (int i = 0; i < run->n; i++) {
    run_contender *contender = &run->contenders[i];
    CS_RETURN_IF_ERROR(cs_annotate(measure(run, window_s, contender), "%s: ", contender->policy));
  }
  return CS_OK;
}

/* ---- For a person ---- */

static const char *verdict_of(const json_t *pipeline) {
  const json_t *check = json_object_get(pipeline, "verification");
  if (!json_is_object(check)) return "not checked";
  return json_is_true(json_object_get(check, "passed")) ? "ok" : "WRONG";
}

static void print_rate(const char *policy, const json_t *pipeline, size_t k, cs_strbuf *text) {
  const json_t *all = json_object_get(pipeline, "rates"), *rate = json_array_get(all, k);
  const json_t *images = json_object_get(rate, "images_per_s");
  const json_t *latency = json_object_get(rate, "latency_us");
  double alone = number(json_object_get(json_array_get(all, 0), "images_per_s"), "median");
  bool last = k + 1 == json_array_size(all);
  cs_strbuf_printf(text, "%-12s %9.0f %11.1f %11.1f %11.1f %7.2fx %10.1f %10.1f", policy,
                   number(rate, "in_flight"), number(images, "median"), number(images, "p10"),
                   number(images, "p90"), number(images, "median") / alone,
                   number(latency, "median"), number(latency, "p90"));
  if (json_is_number(json_object_get(rate, "joules_per_image"))) {
    cs_strbuf_printf(text, " %10.4f", number(rate, "joules_per_image"));
  } else {
    cs_strbuf_printf(text, " %10s", "-");
  }
  cs_strbuf_printf(text, "%s%s\n", last ? "  " : "", last ? verdict_of(pipeline) : "");
}

static void print_one(const run_contender *contender, cs_strbuf *text) {
  const json_t *pipeline = contender->pipeline;
  for (size_t k = 0; k < json_array_size(json_object_get(pipeline, "rates")); k++) {
    print_rate(contender->policy, pipeline, k, text);
  }
}

static void print_problem(const run_contender *contender, cs_strbuf *text) {
  const json_t *check = json_object_get(contender->pipeline, "verification");
  const char *problem = json_string_value(json_object_get(check, "problem"));
  if (problem) {
    cs_strbuf_printf(text, "%s with requests in flight is WRONG: %s\n", contender->policy, problem);
  }
}

/* What coselect's plan was made for. */
static void print_planned_for(const run_case *run, cs_strbuf *text) {
  const cli_options *options = run->options;
  const char *policy = run->contenders[run->n - 1].policy;
  int in_flight = planned_for(options, policy);
  if (strcmp(policy, "coselect") != 0 || options->plan) return;
  if (in_flight > 1) {
    cs_strbuf_printf(text, "coselect is planned for %d requests in flight.\n", in_flight);
  } else if (options->pipeline > 1 && !run->on_cpu) {
    cs_strbuf_printf(text,
                     "coselect is planned for one request's latency; --in-flight %d plans for so "
                     "many in flight.\n",
                     options->pipeline);
  }
}

void run_print_pipeline(const run_case *run, cs_strbuf *text) {
  const json_t *first = run->contenders[0].pipeline;
  if (!first) return;
  cs_strbuf_printf(text,
                   "\nRequests in flight: %s.\nImages a second and, meanwhile, latencies of "
                   "requests with their copies, from %d windows in turn.\n",
                   json_string_value(json_object_get(first, "how")), WINDOWS);
  cs_strbuf_printf(text, "%-12s %9s %11s %11s %11s %8s %10s %10s %10s  %s\n", "policy", "in flight",
                   "images/s", "p10", "p90", "vs 1", "latency us", "p90 us", "J/image", "verdict");
  for (int i = 0; i < run->n; i++) print_one(&run->contenders[i], text);
  const char *reason = json_string_value(json_object_get(first, "no_joules"));
  cs_strbuf_printf(text, "Joules of the whole board: %s.\n",
                   reason ? reason : "NVML's counter over all windows, nothing subtracted");
  print_planned_for(run, text);
  for (int i = 0; i < run->n; i++) print_problem(&run->contenders[i], text);
}
