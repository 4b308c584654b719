/* What generate says and records. */
#include <inttypes.h>
#include <string.h>

#include "base/base.h"
#include "base/json.h"
#include "cli/generate.h"
#include "cli/members.h"
#include "commit.h"

/* What --time measured. */
typedef struct generate_times {
  cs_stats compute, whole; /* milliseconds for all pictures */
  json_t *info;            /* the session's */
  double roofline_ms;      /* a bound of computing all pictures; 0: not known */
} generate_times;

static cs_status stats_of_ms(const double *seconds, cs_stats *out) {
  double ms[GENERATE_WINDOWS];
  for (int w = 0; w < GENERATE_WINDOWS; w++) ms[w] = 1e3 * seconds[w];
  return cs_stats_of(ms, GENERATE_WINDOWS, out);
}

static cs_status gather(const generation *g, generate_times *out) {
  CS_RETURN_IF_ERROR(stats_of_ms(g->compute_s, &out->compute));
  CS_RETURN_IF_ERROR(stats_of_ms(g->whole_s, &out->whole));
  double request_us = number(json_object_get(out->info, "bounds"), "roofline_us");
  out->roofline_ms = 1e-3 * request_us * (double)g->count / (double)g->batch;
  return CS_OK;
}

static void print_times(const generation *g, const generate_times *times, cs_strbuf *text) {
  cs_strbuf_printf(text,
                   "Steady state, %" PRId64 " pictures in requests of %" PRId64
                   ", %d in flight: "
                   "with copies from latent vectors to pixels in host memory %.3f ms; computing "
                   "alone, one request after the other, %.3f ms",
                   g->count, g->batch, g->in_flight, times->whole.median, times->compute.median);
  if (times->roofline_ms > 0) {
    cs_strbuf_printf(text, ", %.2f times its roofline of %.3f ms.\n",
                     times->compute.median / times->roofline_ms, times->roofline_ms);
  } else {
    cs_strbuf_printf(text, " (no roofline: the device's peak rates are not in the profile).\n");
  }
}

static cs_status print_result(const generation *g, const generate_times *times) {
  cs_strbuf text = {0};
  cs_strbuf_printf(&text,
                   "%" PRId64 " pictures of %" PRId64 "x%" PRId64
                   " in %s: %.3f s, packing and "
                   "writing %.3f s of them beside generating.\n",
                   g->count, g->to.width, g->to.height, g->options->output, g->wall_s,
                   g->packing_s);
  if (times) print_times(g, times, &text);
  return cli_write_buffer(NULL, &text);
}

static json_t *samples_json(const double *seconds) {
  json_t *samples = json_array();
  for (int w = 0; w < GENERATE_WINDOWS; w++) {
    json_array_append_new(samples, json_real(1e3 * seconds[w]));
  }
  return samples;
}

static void add_times(const generation *g, const generate_times *times, json_t *record) {
  json_object_set_new(record, "compute_ms", json_real(times->compute.median));
  json_object_set_new(record, "with_copies_ms", json_real(times->whole.median));
  json_object_set_new(record, "roofline_ms",
                      times->roofline_ms > 0 ? json_real(times->roofline_ms) : json_null());
  json_object_set_new(record, "samples_ms",
                      json_pack("{s:o, s:o}", "compute", samples_json(g->compute_s), "with_copies",
                                samples_json(g->whole_s)));
}

static cs_status write_record(const generation *g, const json_t *info,
                              const generate_times *times) {
  json_t *device = NULL;
  CS_RETURN_IF_ERROR(cli_device_json(g->device, &device));
  json_t *record = json_pack(
      "{s:s, s:s, s:s, s:s, s:s, s:O, s:s, s:o, s:o, s:I, s:I, s:i, s:I, s:f, s:f}", "schema",
      "convsched.generate/1", "model", cs_graph_name(g->graph), "commit", CS_COMMIT, "command",
      cli_command_line, "dtype", cs_precision_name(g->options->precisions[0]), "policy",
      json_object_get(info, "policy"), "backend", g->backend, "device", device, "output",
      cs_json_text(g->options->output), "count", (json_int_t)g->count, "batch",
      (json_int_t)g->batch, "in_flight", g->in_flight, "seed", (json_int_t)g->options->seed,
      "wall_s", g->wall_s, "packing_s", g->packing_s);
  if (!record) return cs_no_memory("a record", 0);
  if (times) add_times(g, times, record);
  json_t *records = json_pack("[o]", record);
  cs_status st = cli_write_records(g->options, 1, records);
  json_decref(records);
  return st;
}

cs_status generate_tell(const generation *g) {
  cs_status st = CS_OK;
  generate_times times = {0};
  const generate_times *measured = g->options->time ? &times : NULL;
  CS_RETURN_IF_ERROR(cli_session_json(g->session, &times.info));
  if (measured) CS_TRY(st, gather(g, &times), done);
  CS_TRY(st, write_record(g, times.info, measured), done);
  if (!g->options->json || strcmp(g->options->json, "-") != 0) st = print_result(g, measured);
done:
  json_decref(times.info);
  return st;
}
