#include "runtime/search_report.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

cs_status cs_search_report_fallback(cs_search_report *report, const char *first, const char *last,
                                    cs_fallback **out) {
  CS_RETURN_IF_ERROR(cs_grow(&report->fallbacks, &report->fallbacks_capacity,
                             (size_t)report->n_fallbacks + 1, sizeof *report->fallbacks));
  *out = &report->fallbacks[report->n_fallbacks++];
  CS_RETURN_IF_ERROR(cs_strdup_to(first, &(*out)->first));
  return cs_strdup_to(last, &(*out)->last);
}

cs_status cs_search_report_comparison(cs_search_report *report, const char *name,
                                      cs_comparison **out) {
  CS_RETURN_IF_ERROR(cs_grow(&report->comparisons, &report->comparisons_capacity,
                             (size_t)report->n_comparisons + 1, sizeof *report->comparisons));
  *out = &report->comparisons[report->n_comparisons++];
  return cs_strdup_to(name, &(*out)->name);
}

void cs_search_report_free(cs_search_report *report) {
  for (int i = 0; i < report->n_fallbacks; i++) {
    free(report->fallbacks[i].first);
    free(report->fallbacks[i].last);
    free(report->fallbacks[i].pair[0]);
    free(report->fallbacks[i].pair[1]);
  }
  for (int i = 0; i < report->n_comparisons; i++) free(report->comparisons[i].name);
  free(report->fallbacks);
  free(report->comparisons);
  memset(report, 0, sizeof *report);
}

/* ---- JSON ---- */

static json_t *ratio_json(const cs_ratio *ratio) {
  if (ratio->samples == 0) return json_null();
  return json_pack("{s:f, s:f, s:f, s:i}", "median", ratio->median, "low", ratio->low, "high",
                   ratio->high, "samples", ratio->samples);
}

static json_t *fallback_json(const cs_fallback *f) {
  json_t *pair = f->pair[0] ? json_pack("[s, s]", f->pair[0], f->pair[1]) : json_null();
  return json_pack("{s:s, s:s, s:i, s:i, s:o, s:b, s:o, s:o}", "first", f->first, "last", f->last,
                   "tasks", f->tasks, "streams", f->streams, "gain", ratio_json(&f->gain),
                   "fell_back", f->fell_back, "limiter",
                   f->limiter[0] ? json_string(f->limiter) : json_null(), "pair", pair);
}

static json_t *comparison_json(const cs_comparison *c) {
  return json_pack("{s:s, s:b, s:o, s:b}", "with", c->name, "same", c->same, "ratio",
                   ratio_json(&c->ratio), "took_over", c->took_over);
}

cs_status cs_search_report_json(const cs_search_report *report, json_t *into) {
  if (!report->searched) return CS_OK;
  json_t *blocks = json_array(), *comparisons = json_array();
  int failed = 0;
  for (int i = 0; i < report->n_fallbacks; i++) {
    failed |= json_array_append_new(blocks, fallback_json(&report->fallbacks[i]));
  }
  for (int i = 0; i < report->n_comparisons; i++) {
    failed |= json_array_append_new(comparisons, comparison_json(&report->comparisons[i]));
  }
  failed |= json_object_set_new(into, "fallbacks",
                                json_pack("{s:f, s:i, s:o}", "confidence", CS_SEARCH_CONFIDENCE,
                                          "untried", report->untried, "blocks", blocks));
  failed |= json_object_set_new(into, "comparisons", comparisons);
  return failed ? cs_no_memory("what a search tells", 0) : CS_OK;
}
