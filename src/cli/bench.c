/* `convsched bench`: rungs of a ladder over sizes or layers, device against device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/file.h"
#include "cli/bench.h"

#define MOST_RECORD_BYTES ((size_t)1 << 28)

typedef struct bench {
  const cli_options *options;
  bench_kind kind;
  bench_cases cases;
  bench_ladder ladder;
  bench_device devices[BENCH_MOST_DEVICES];
  int n_devices;
  char specs[256]; /* of --devices, cut at its commas */
  json_t *records;
  int wrong;
} bench;

/* ---- What is asked for ---- */

static cs_status read_kind(const cli_options *options, bench_kind *out) {
  const char *name = options->models.n > 0 ? options->models.items[0] : "";
  for (int kind = 0; kind < BENCH_KINDS; kind++) {
    *out = (bench_kind)kind;
    if (strcmp(name, bench_kind_name(*out)) == 0) return CS_OK;
  }
  return cli_error(CS_CODE_USAGE,
                   "bench: found \"%s\", wanted gemm or convtranspose, or --from FILE", name);
}

/* False: not a file of that ending. */
static bool ends_in(const char *path, const char *ending) {
  size_t length = strlen(path), tail = strlen(ending);
  return length > tail && strcmp(path + length - tail, ending) == 0;
}

static cs_status check_output(const cli_options *options) {
  if (options->format == CS_REPORT_JSON)
    return cli_error(CS_CODE_USAGE, "bench: --format json: the records are --json's");
  if (!options->output) return CS_OK;
  if (!ends_in(options->output, ".html") && !ends_in(options->output, ".svg"))
    return cli_error(CS_CODE_USAGE, "bench: --output %s: wanted a name in .html or .svg",
                     options->output);
  return cli_check_writable(options->output);
}

static bool is_spec(const char *spec) {
  if (strcmp(spec, "cpu") == 0) return true;
  const char *number = spec + 5;
  return strncmp(spec, "cuda:", 5) == 0 && *number && !number[strspn(number, "0123456789")];
}

static cs_status read_devices(bench *b) {
  const char *text = b->options->devices;
  if (strlen(text) >= sizeof b->specs)
    return cli_error(CS_CODE_USAGE, "bench: --devices: wanted a shorter list");
  snprintf(b->specs, sizeof b->specs, "%s", text);
  for (char *at = b->specs; at;) {
    char *comma = strchr(at, ',');
    if (comma) *comma = '\0';
    if (!is_spec(at))
      return cli_error(CS_CODE_USAGE, "bench: --devices: found \"%s\", wanted cpu or cuda:N", at);
    for (int d = 0; d < b->n_devices; d++)
      if (strcmp(b->devices[d].spec, at) == 0)
        return cli_error(CS_CODE_USAGE, "bench: --devices: %s is given twice", at);
    if (b->n_devices == BENCH_MOST_DEVICES)
      return cli_error(CS_CODE_USAGE, "bench: --devices: more than %d", BENCH_MOST_DEVICES);
    b->devices[b->n_devices++].spec = at;
    at = comma ? comma + 1 : NULL;
  }
  return CS_OK;
}

static cs_status open_device(bench *b, bench_device *device) {
  CS_RETURN_IF_ERROR(cs_device_open(device->spec, cli_logger(b->options), &device->device));
  CS_RETURN_IF_ERROR(cli_device_json(device->device, &device->info));
  const char *backend = json_string_value(json_object_get(device->info, "backend"));
  device->on_cpu = backend && strcmp(backend, "cpu") == 0;
  return CS_OK;
}

/* The CPU, and the first GPU where one works. */
static cs_status open_default(bench *b) {
  b->devices[0].spec = "cpu";
  b->n_devices = 1;
  CS_RETURN_IF_ERROR(open_device(b, &b->devices[0]));
  b->devices[1].spec = "cuda:0";
  cs_status st = open_device(b, &b->devices[1]);
  if (st == CS_OK) b->n_devices = 2;
  if (cs_status_code(st) != CS_CODE_DEVICE) return st;
  cs_log(cli_logger(b->options), CS_LOG_INFO, "the CPU alone: %s", cs_status_message(st));
  cs_status_free(st);
  return CS_OK;
}

static cs_status open_devices(bench *b) {
  if (!b->options->devices) return open_default(b);
  for (int d = 0; d < b->n_devices; d++) CS_RETURN_IF_ERROR(open_device(b, &b->devices[d]));
  return CS_OK;
}

static bool device_has(const bench *b, const bench_device *device) {
  for (int r = 0; r < b->ladder.n; r++)
    if (b->ladder.wanted[r] && bench_patterns(&b->ladder.rungs[r], device->on_cpu)[0]) return true;
  return false;
}

/* That there is something to tell. */
static cs_status check_rungs(const bench *b) {
  for (int d = 0; d < b->n_devices; d++)
    if (device_has(b, &b->devices[d])) return CS_OK;
  return cli_error(CS_CODE_USAGE, "bench %s: --rungs %s: %s has none of them",
                   bench_kind_name(b->kind), b->options->rungs, b->devices[0].spec);
}

static cs_status check_precisions(const cli_options *options) {
  for (int p = 0; p < options->n_precisions; p++)
    for (int q = 0; q < p; q++)
      if (options->precisions[p] == options->precisions[q])
        return cli_error(CS_CODE_USAGE, "bench: --dtype: %s is given twice",
                         cs_precision_name(options->precisions[p]));
  return CS_OK;
}

/* Before anything is measured: what no device could hold. */
static cs_status check_memory(const bench *b, cs_precision precision) {
  for (int d = 0; d < b->n_devices; d++) {
    double memory = json_number_value(json_object_get(b->devices[d].info, "memory_bytes"));
    for (int c = 0; c < b->cases.n && memory > 0; c++) {
      double bytes = bench_case_bytes(&b->cases.items[c], precision);
      char wanted[32], there[32];
      if (bytes <= memory) continue;
      cli_bytes_text(wanted, sizeof wanted, bytes);
      cli_bytes_text(there, sizeof there, memory);
      return cli_error(CS_CODE_BAD_INPUT, "bench %s: %s in %s takes %s, and %s has %s",
                       bench_kind_name(b->kind), b->cases.items[c].name,
                       cs_precision_name(precision), wanted, b->devices[d].spec, there);
    }
  }
  return CS_OK;
}

/* ---- Measuring ---- */

static cs_status measure_case(bench *b, bench_device *device, const bench_case *one,
                              cs_precision precision) {
  json_t *record = NULL;
  int n_cases = b->n_devices * b->cases.n * b->options->n_precisions;
  CS_RETURN_IF_ERROR(cli_check_interrupt());
  CS_RETURN_IF_ERROR(
      bench_measure(b->options, &b->ladder, device, one, precision, &record, &b->wrong));
  const json_t *best = json_object_get(record, "best");
  cs_log(cli_logger(b->options), CS_LOG_INFO, "%s %s %s on %s: %.1f us, %.1f GFLOP/s",
         bench_kind_name(b->kind), one->name, cs_precision_name(precision), device->spec,
         json_number_value(json_object_get(best, "warm_us")),
         1e-9 * json_number_value(json_object_get(best, "flop_per_s")));
  return cli_add_record(b->options, n_cases, b->records, record);
}

static cs_status measure_all(bench *b) {
  for (int p = 0; p < b->options->n_precisions; p++) {
    for (int d = 0; d < b->n_devices; d++) {
      memset(b->devices[d].rates, 0, sizeof b->devices[d].rates);
      for (int c = 0; c < b->cases.n; c++)
        CS_RETURN_IF_ERROR(
            measure_case(b, &b->devices[d], &b->cases.items[c], b->options->precisions[p]));
    }
  }
  return CS_OK;
}

/* ---- Telling ---- */

static cs_status tell(const cli_options *options, const char *records, size_t length,
                      const char *name) {
  char *text = NULL;
  cs_report_format format = options->format_given ? options->format : CS_REPORT_TEXT;
  bool printed = options->json && strcmp(options->json, "-") == 0;
  if (!printed) {
    CS_RETURN_IF_ERROR(cs_bench_records_text(records, length, name, format, &text));
    cs_status st = cli_print(text);
    cs_string_free(text);
    if (st != CS_OK) return st;
  }
  if (!options->output) return CS_OK;
  format = ends_in(options->output, ".svg") ? CS_REPORT_SVG : CS_REPORT_HTML;
  CS_RETURN_IF_ERROR(cs_bench_records_text(records, length, name, format, &text));
  cs_status st = cs_text_save(options->output, text);
  cs_string_free(text);
  if (st == CS_OK) cli_tell_written(options, options->output);
  return st;
}

static cs_status tell_records(const bench *b) {
  size_t i;
  json_t *record;
  cs_strbuf all = {0};
  char *text = NULL;
  json_array_foreach(b->records, i, record) {
    char *one = json_dumps(record, JSON_COMPACT);
    if (!one) {
      cs_strbuf_free(&all);
      return cs_no_memory("records", 0);
    }
    cs_strbuf_printf(&all, "%s\n", one);
    free(one);
  }
  CS_RETURN_IF_ERROR(cs_strbuf_take(&all, &text));
  cs_status st = tell(b->options, text, strlen(text), "bench");
  free(text);
  return st;
}

/* What is given that only measuring takes; NULL: nothing. */
static const char *measuring_option(const cli_options *o) {
  if (o->models.n > 0) return o->models.items[0];
  if (o->json) return "--json";
  if (o->sizes) return "--sizes";
  if (o->layers) return "--layers";
  if (o->devices) return "--devices";
  if (o->rungs) return "--rungs";
  if (o->batch_given) return "--batch";
  if (o->n_precisions > 1 || o->precisions[0] != CS_PRECISION_F32) return "--dtype";
  if (o->refresh) return "--refresh";
  return o->frozen ? "--frozen" : NULL;
}

static cs_status tell_file(const cli_options *options) {
  char *text = NULL;
  size_t length = 0;
  const char *measuring = measuring_option(options);
  if (measuring)
    return cli_error(CS_CODE_USAGE,
                     "bench --from %s: the records hold what was measured, so it goes "
                     "without %s",
                     options->from, measuring);
  CS_RETURN_IF_ERROR(cs_file_read(options->from, MOST_RECORD_BYTES, &text, &length));
  cs_status st = tell(options, text, length, options->from);
  free(text);
  return st;
}

/* ---- The command ---- */

static void close_all(bench *b) {
  for (int d = 0; d < BENCH_MOST_DEVICES; d++) {
    cs_device_close(b->devices[d].device);
    json_decref(b->devices[d].info);
  }
  json_decref(b->records);
}

static cs_status prepare(bench *b) {
  const cli_options *options = b->options;
  CS_RETURN_IF_ERROR(read_kind(options, &b->kind));
  CS_RETURN_IF_ERROR(bench_ladder_of(options, b->kind, &b->ladder));
  CS_RETURN_IF_ERROR(bench_cases_of(options, b->kind, "64..1024", &b->cases));
  CS_RETURN_IF_ERROR(check_precisions(options));
  if (options->devices) CS_RETURN_IF_ERROR(read_devices(b));
  CS_RETURN_IF_ERROR(cli_check_writable(options->json));
  CS_RETURN_IF_ERROR(open_devices(b));
  CS_RETURN_IF_ERROR(check_rungs(b));
  bool with_gpu = b->n_devices > 1 || !b->devices[0].on_cpu;
  if (with_gpu) CS_RETURN_IF_ERROR(bench_cases_of(options, b->kind, "64..4096", &b->cases));
  for (int p = 0; p < options->n_precisions; p++)
    CS_RETURN_IF_ERROR(check_memory(b, options->precisions[p]));
  return CS_OK;
}

static cs_status run_bench(const cli_options *options) {
  bench b = {.options = options, .records = json_array()};
  cs_status st = b.records ? prepare(&b) : cs_no_memory("records", 0);
  if (st == CS_OK) st = measure_all(&b);
  cli_end_progress();
  if (st == CS_OK)
    st = cli_write_records(options, b.n_devices * b.cases.n * options->n_precisions, b.records);
  if (st == CS_OK) st = tell_records(&b);
  if (st == CS_OK && b.wrong > 0)
    st = cli_error(CS_CODE_WRONG_RESULT,
                   "%d rungs have only candidates that were rejected; the table says why", b.wrong);
  close_all(&b);
  return st;
}

static cs_status bench_command(const cli_options *options) {
  CS_RETURN_IF_ERROR(check_output(options));
  return options->from ? tell_file(options) : run_bench(options);
}

const cli_command cli_bench = {
    .name = "bench",
    .arguments = "[gemm|convtranspose]",
    .summary = "Sweep a product or a layer over sizes and devices, rung by rung",
    .help =
        "Measures one operation over sizes (gemm) or layers (convtranspose) on each device, from "
        "plain loops to the libraries, and prints for every rung time, rate and share of what the "
        "device sustains, and how many times as fast as plain sequential loops the fastest is. "
        "Every result is checked against the reference. Measurements are kept as profile's are: "
        "an interrupted bench goes on where it stopped.\v"
        "Examples:\n"
        "  convsched bench gemm --sizes 64..2048 --devices cpu --output gemm.html\n"
        "  convsched bench convtranspose --devices cpu,cuda:0 --dtype f32,f16 --batch 256 --json "
        "layers.jsonl\n"
        "  convsched bench --from layers.jsonl --output layers.svg",
    .options = CLI_BENCHING | CLI_JSON,
    .max_models = 1,
    .run = bench_command,
    .asks = true};
