/* cs_report: a table made from a graph and a profile, and its forms. */
#include <stdlib.h>
#include <string.h>

#include "runtime/report.h"
#include "runtime/report_source.h"

void cs_report_options_init(cs_report_options *options) {
  *options = (cs_report_options){.struct_size = sizeof *options};
}

cs_status cs_report_check_sizes(const char *what, size_t found, size_t wanted,
                                const cs_session_options *session) {
  if (found >= wanted && session->struct_size >= sizeof *session) return CS_OK;
  return cs_error(CS_CODE_USAGE,
                  "%s: struct_size %zu and %zu, wanted %zu and %zu (call the init functions first)",
                  what, found, session->struct_size, wanted, sizeof *session);
}

static cs_status make_table(cs_device *device, const cs_graph *graph,
                            const cs_session_options *session, const cs_report_options *options,
                            cs_table *out) {
  cs_report_source source;
  cs_status st = cs_report_source_open(device, graph, session, options, &source);
  if (st == CS_OK) st = cs_report_table_of(&source.input, options->kind, out);
  cs_report_source_close(&source);
  return st;
}

cs_status cs_report_create(cs_device *device, const cs_graph *graph,
                           const cs_session_options *session_options,
                           const cs_report_options *options, cs_report **out) {
  *out = NULL;
  CS_RETURN_IF_ERROR(
      cs_report_check_sizes("report", options->struct_size, sizeof *options, session_options));
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
    case CS_REPORT_SVG:
    case CS_REPORT_HTML:
      break;
  }
  return cs_error(CS_CODE_USAGE, "report: a table has no format %d", (int)format);
}
