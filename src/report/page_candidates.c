/* The page's section of candidates: points, and the data that their tooltips say. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/view.h"

cs_status cs_write_missing(cs_status st, const char *command, cs_html *page) {
  if (st == CS_OK || cs_status_code(st) != CS_CODE_NOT_FOUND) return st;
  cs_html_missing(page, command, "%s", cs_status_message(st));
  cs_status_free(st);
  return CS_OK;
}

cs_status cs_write_figure(cs_status st, cs_strbuf *svg, const char *caption, bool zoom,
                          const char *command, cs_html *page) {
  if (st == CS_OK) cs_html_figure(page, svg, caption, zoom);
  cs_strbuf_free(svg);
  return cs_write_missing(st, command, page);
}

static json_t *number_or_null(double value) {
  return isfinite(value) ? json_real(round(value)) : json_null();
}

static json_t *row_of(const cs_view_candidate *candidate) {
  char cold[32], warm[32], workspace[32];
  const cs_record *record = candidate->record;
  const double *share = candidate->demand.share;
  bool known = candidate->demand.known;
  cs_unit_text(CS_UNIT_US, record->measured.cold_us, cold);
  cs_unit_text(CS_UNIT_US, record->measured.warm_us, warm);
  cs_unit_text(CS_UNIT_BYTES, (double)record->candidate.workspace_bytes, workspace);
  json_t *row = json_pack("[s, s, s, s, s]", record->candidate.id,
                          cs_layout_name(candidate->op->layout), cold, warm, workspace);
  for (int r = 0; row && r < CS_RESOURCE_COUNT; r++) {
    json_array_append_new(row, number_or_null(known ? 100 * share[r] : NAN));
  }
  json_array_append_new(row, record->n_kernels > 0 ? json_integer(record->n_kernels) : json_null());
  json_array_append_new(row, candidate->chosen ? json_string("yes") : json_null());
  return row;
}

/* {"columns", "groups":[{"nodes", "rows"}…]}: what the points' tooltips say. */
static cs_status put_data(const cs_view_candidates *candidates, cs_html *page) {
  json_t *groups = json_array();
  for (int g = 0; g < candidates->n_groups; g++) {
    const cs_view_group *group = &candidates->groups[g];
    json_t *rows = json_array();
    for (int i = 0; i < group->n; i++) json_array_append_new(rows, row_of(&group->candidates[i]));
    json_array_append_new(groups, json_pack("{s:s, s:o}", "nodes", group->nodes, "rows", rows));
  }
  json_t *data = json_pack("{s:[s, s, s, s, s, s, s, s, s, s, s], s:o}", "columns", "candidate",
                           "layout", "time alone", "with warm caches", "workspace",
                           "registers % of an SM", "shared memory %", "threads %", "block slots %",
                           "kernels", "in the plan", "groups", groups);
  char *text =
      data ? json_dumps(data, JSON_COMPACT | JSON_ESCAPE_SLASH | JSON_REAL_PRECISION(6)) : NULL;
  json_decref(data);
  if (!text) return cs_no_memory("candidates", 0);
  cs_markup_raw(&page->body, "<script type=\"application/json\" id=\"candidate-data\">");
  /* No < but as \u003c: with "<!--" and "<script" in a name the element would not end here. */
  for (const char *at = text; *at;) {
    size_t length = strcspn(at, "<");
    cs_strbuf_append(&page->body, at, length);
    at += length;
    if (*at) cs_markup_raw(&page->body, "\\u003c");
    at += *at == '<';
  }
  cs_markup_raw(&page->body, "</script>\n");
  free(text);
  return CS_OK;
}

cs_status cs_write_candidates(const cs_view *view, const cs_view_candidates *candidates,
                              cs_html *page) {
  static const char *const captions[] = {
      "Workspace; those that take none stand before the axis.",
      "Registers that the blocks on an SM hold together.",
      "Shared memory that the blocks on an SM hold together, with the driver's own share."};
  cs_html_section(page, "candidates", "Candidates");
  if (!candidates) {
    cs_html_missing(page, view->measure, "candidates; %s", view->no_nodes);
    return CS_OK;
  }
  cs_html_paragraph(page,
                    "%d candidate%s of %d different operation%s, each by its median time alone "
                    "with cold inputs and weights. Ringed: what the plan of %s runs.",
                    candidates->n, candidates->n == 1 ? "" : "s", candidates->n_groups,
                    candidates->n_groups == 1 ? "" : "s",
                    cs_view_main(view) ? cs_view_main(view)->name : "no policy");
  CS_RETURN_IF_ERROR(put_data(candidates, page));
  cs_markup_raw(&page->body, "<div class=\"scatters\">\n");
  for (int k = 0; k < (cs_view_has_sms(view) ? CS_SCATTER_COUNT : 1); k++) {
    cs_strbuf svg = {0};
    CS_RETURN_IF_ERROR(cs_write_figure(cs_draw_scatter(candidates, (cs_scatter)k, NULL, &svg), &svg,
                                       captions[k], false, view->measure, page));
  }
  cs_markup_raw(&page->body, "</div>\n");
  if (!cs_view_has_sms(view)) {
    cs_html_missing(page, NULL,
                    "registers and shared memory; the device has no SMs, or the profile does not "
                    "tell what one has");
  }
  return CS_OK;
}
