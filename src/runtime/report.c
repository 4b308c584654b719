/* cs_report: a table made from a graph and a profile, and its forms. */
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "runtime/device.h"
#include "runtime/passes.h"
#include "runtime/report.h"

void cs_report_options_init(cs_report_options *options) {
  *options = (cs_report_options){.struct_size = sizeof *options};
}

/* The profile to read; *own is to be closed afterwards, where there is one. */
static cs_status open_profile(cs_device *device, const cs_session_options *session,
                              const cs_report_options *options, cs_profile **own,
                              cs_profile **profile) {
  if (options->profile_path) {
    CS_RETURN_IF_ERROR(cs_profile_open_file(options->profile_path, &options->logger, own));
    *profile = *own;
    return CS_OK;
  }
  if (!device) return cs_error(CS_CODE_USAGE, "report: wanted a device or a profile's file");
  return cs_device_profile(device, session->cache_dir, profile);
}

static const cs_device_info *device_info(const cs_device *device, const cs_profile *profile,
                                         bool from_file) {
  static const cs_device_info unknown;
  const cs_device_info *recorded = cs_profile_device(profile);
  if (!from_file) return device->backend->vtable->info(device->backend);
  return recorded ? recorded : &unknown;
}

static cs_status make_table(cs_device *device, const cs_graph *graph,
                            const cs_session_options *session, const cs_report_options *options,
                            cs_table *out) {
  cs_status st = CS_OK;
  cs_graph *bound = NULL, *passed = NULL;
  cs_profile *own = NULL, *profile = NULL;
  cs_pass_report passes;
  CS_TRY(st, open_profile(device, session, options, &own, &profile), done);
  CS_TRY(st, cs_graph_bind(graph, session->batch, &bound), done);
  CS_TRY(st,
         own ? cs_passes_for_profile(own, bound, session->precision, &passes, &passed)
             : cs_passes_for_backend(device->backend, bound, session->precision, &passes, &passed),
         done);
  cs_report_input input = {.bound = bound,
                           .graph = passed,
                           .precision = session->precision,
                           .profile = profile,
                           .device = device_info(device, profile, own != NULL),
                           .patterns = options->nodes,
                           .n_patterns = options->n_nodes,
                           .candidates = options->candidates,
                           .workspace_limit = session->workspace_limit,
                           .deterministic = session->deterministic,
                           .paper = options->paper};
  st = cs_report_table_of(&input, options->kind, out);
done:
  cs_graph_destroy(passed);
  cs_graph_destroy(bound);
  cs_profile_close(own);
  return st;
}

cs_status cs_report_create(cs_device *device, const cs_graph *graph,
                           const cs_session_options *session_options,
                           const cs_report_options *options, cs_report **out) {
  *out = NULL;
  if (options->struct_size < sizeof *options ||
      session_options->struct_size < sizeof *session_options) {
    return cs_error(CS_CODE_USAGE,
                    "report: struct_size %zu and %zu, wanted %zu and %zu (call the init functions "
                    "first)",
                    options->struct_size, session_options->struct_size, sizeof *options,
                    sizeof *session_options);
  }
  cs_table table = {0};
  cs_status st = make_table(device, graph, session_options, options, &table);
  return cs_report_give(st, &table, out);
}

cs_status cs_report_give(cs_status st, cs_table *table, cs_report **out) {
  *out = NULL;
  cs_report *report = st == CS_OK ? cs_calloc(1, sizeof *report) : NULL;
  if (st == CS_OK && !report) st = cs_no_memory("a report", sizeof *report);
  if (st != CS_OK) {
    cs_table_free(table);
    return st;
  }
  report->table = *table;
  *out = report;
  return CS_OK;
}

void cs_report_destroy(cs_report *report) {
  if (!report) return;
  cs_table_free(&report->table);
  free(report);
}

cs_status cs_report_format_text(const cs_report *report, cs_report_format format, char **out) {
  switch (format) {
    case CS_REPORT_TEXT:
      return cs_table_to_text(&report->table, out);
    case CS_REPORT_MARKDOWN:
      return cs_table_to_markdown(&report->table, out);
    case CS_REPORT_CSV:
      return cs_table_to_csv(&report->table, out);
    case CS_REPORT_JSON:
      return cs_table_to_json(&report->table, out);
  }
  return cs_error(CS_CODE_USAGE, "report: no format %d", (int)format);
}
