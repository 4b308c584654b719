/* A report's first section: what came out, in numbers and in words. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/view.h"

/* ---- What a plan's kernels do ---- */

/* Kernels at a time, on average over the time in which any ran; NaN for none. */
static double concurrency_of(const cs_timeline *timeline) {
  double busy = 0, active = 0, end = 0;
  for (int i = 0; i < timeline->n_slices; i++) {
    const cs_timeline_slice *slice = &timeline->slices[i];
    busy += slice->end_us - slice->start_us;
    active += fmax(0, slice->end_us - fmax(slice->start_us, end));
    end = fmax(end, slice->end_us);
  }
  return active > 0 ? busy / active : NAN;
}

typedef struct apart {
  char name[24];
  double us;
} apart;

/* How long pairs of tasks could overlap, by what keeps them apart, longest first. */
static int limiters_of(const json_t *explanation, apart out[8]) {
  size_t b, p;
  json_t *block, *pair;
  int n = 0;
  json_array_foreach(json_object_get(explanation, "blocks"), b, block) {
    json_array_foreach(json_object_get(block, "pairs"), p, pair) {
      const char *name = json_string_value(json_object_get(pair, "limiter"));
      int i = 0;
      if (!name) name = "";
      while (i < n && strcmp(out[i].name, name) != 0) i++;
      if (i == 8) continue;
      if (i == n) {
        snprintf(out[n].name, sizeof out[n].name, "%s", name);
        out[n++].us = 0;
      }
      out[i].us += json_number_value(json_object_get(pair, "most_us"));
    }
  }
  for (int i = 1; i < n; i++) {
    for (int k = i; k > 0 && out[k].us > out[k - 1].us; k--) {
      apart swap = out[k];
      out[k] = out[k - 1];
      out[k - 1] = swap;
    }
  }
  return n;
}

/* ---- Cards ---- */

static void latency_card(const cs_view *view, const cs_policy_view *policy, cs_html *page) {
  char label[80], us[32], low[32], high[32], note[96];
  cs_unit_text(CS_UNIT_US, cs_policy_view_us(policy), us);
  snprintf(label, sizeof label, "%s of %s", view->not_measured ? "Predicted latency" : "Latency",
           policy->name);
  if (policy->latency.n > 0) {
    cs_unit_text(CS_UNIT_US, policy->interval.low, low);
    cs_unit_text(CS_UNIT_US, policy->interval.high, high);
    snprintf(note, sizeof note, "95%%: %s to %s, %d samples", low, high, policy->latency.n);
  } else {
    snprintf(note, sizeof note, "by the SM model; not measured");
  }
  cs_html_card(page, label, us, note);
}

static void gain_card(const cs_view *view, const cs_policy_view *policy, cs_html *page) {
  char value[32], note[96], us[32];
  const cs_policy_view *base = &view->policies[0];
  if (base == policy) return;
  cs_unit_text(CS_UNIT_US, cs_policy_view_us(base), us);
  snprintf(value, sizeof value, "%.2f×", cs_policy_view_us(base) / cs_policy_view_us(policy));
  snprintf(note, sizeof note, "%s: %s", base->name, us);
  cs_html_card(page, "Times as fast as sequential", value, note);
}

static void other_cards(const cs_policy_view *policy, cs_html *page) {
  char value[32], note[96], workspace[32];
  const cs_timeline *timeline = policy->measured ? policy->measured : policy->planned;
  double at_a_time = concurrency_of(timeline);
  snprintf(value, sizeof value, "%.2f", at_a_time);
  int kernels = timeline->n_slices, streams = policy->plan->n_streams;
  snprintf(note, sizeof note, "%d kernel%s on %d stream%s, %s", kernels, kernels == 1 ? "" : "s",
           streams, streams == 1 ? "" : "s", cs_timeline_source_name(timeline->source));
  if (!isnan(at_a_time)) cs_html_card(page, "Kernels at a time", value, note);
  cs_unit_text(CS_UNIT_BYTES, (double)policy->plan->arena_bytes, value);
  cs_unit_text(CS_UNIT_BYTES, (double)policy->plan->workspace_peak, workspace);
  snprintf(note, sizeof note, "of it workspace: at most %s", workspace);
  cs_html_card(page, "Memory arena", value, note);
}

/* ---- Sentences ---- */

#define ESTIMATE_HOLDS 0.95 /* a plan that takes so much less than an estimate disproves it */

static void tell_latency(const cs_view *view, const cs_policy_view *policy, cs_html *page) {
  char us[32], other[32];
  const cs_policy_view *base = &view->policies[0], *best = policy;
  for (int i = 0; i < view->n_policies; i++) {
    if (cs_policy_view_us(&view->policies[i]) < cs_policy_view_us(best)) best = &view->policies[i];
  }
  cs_unit_text(CS_UNIT_US, cs_policy_view_us(policy), us);
  cs_unit_text(CS_UNIT_US, cs_policy_view_us(base), other);
  double gain = cs_policy_view_us(base) / cs_policy_view_us(policy);
  if (base == policy) {
    cs_html_paragraph(page, "%s %s %s.", policy->name,
                      view->not_measured ? "is predicted to take" : "takes", us);
  } else {
    cs_html_paragraph(page, "%s %s %s, %s %s: %.2f times as fast.", policy->name,
                      view->not_measured ? "is predicted to take" : "takes", us, base->name, other,
                      gain);
  }
  if (best == policy) return;
  cs_unit_text(CS_UNIT_US, cs_policy_view_us(best), other);
  bool close =
      policy->latency.n > 0 && best->latency.n > 0 && policy->interval.low <= best->interval.high;
  cs_html_paragraph(page, "The fastest policy here is another one: %s, with %s%s.", best->name,
                    other, close ? "; the intervals of both overlap" : "");
}

static void tell_bounds(const cs_policy_view *policy, cs_html *page) {
  char roof[32], path[32], area[32];
  const cs_bounds *bounds = policy->bounds;
  double us = cs_policy_view_us(policy);
  if (!bounds) {
    cs_html_missing(page, NULL, "bounds; a plan from a file has none");
    return;
  }
  cs_unit_text(CS_UNIT_US, bounds->roofline_us, roof);
  cs_unit_text(CS_UNIT_US, bounds->critical_path_us, path);
  cs_unit_text(CS_UNIT_US, bounds->area_us, area);
  if (!isnan(bounds->roofline_us)) {
    cs_html_paragraph(page,
                      "No plan is faster than the roofline, %s; this one takes %.2f times as long.",
                      roof, us / bounds->roofline_us);
  }
  if (isnan(bounds->area_us)) {
    cs_html_paragraph(page,
                      "The longest chain of dependent tasks takes %s with the fastest candidate of "
                      "each, alone and with cold weights (an estimate): %.2f times as long as that "
                      "is what the plan takes.",
                      path, us / bounds->critical_path_us);
    return;
  }
  bool chain = bounds->critical_path_us >= bounds->area_us;
  double times = us / fmax(bounds->critical_path_us, bounds->area_us);
  char verdict[160];
  if (times < ESTIMATE_HOLDS) {
    snprintf(verdict, sizeof verdict,
             "The plan takes %.2f times as long as the longer of them: run behind each other tasks "
             "take less than alone and cold, so neither tells what binds",
             times);
  } else {
    snprintf(verdict, sizeof verdict, "%s binds: the plan takes %.2f times as long",
             chain ? "The chain, not the room on the machine,"
                   : "The room on the machine, not the chain,",
             times);
  }
  cs_html_paragraph(
      page,
      "The longest chain of dependent tasks takes %s with the fastest candidate of each, and what "
      "all kernels hold of the machine adds up to %s of the whole of it (both estimates, cold "
      "weights). %s.",
      path, area, verdict);
}

static void tell_limiters(const cs_policy_view *policy, cs_html *page) {
  apart found[8];
  char us[32];
  double all = 0, free_of = 0, unknown = 0;
  cs_strbuf text = {0};
  int n = policy->explanation ? limiters_of(policy->explanation, found) : 0, told = 0;
  for (int i = 0; i < n; i++) {
    bool none = strcmp(found[i].name, "none") == 0;
    all += found[i].us;
    if (none) free_of += found[i].us;
    if (!found[i].name[0]) unknown += found[i].us;
    if (none || !found[i].name[0]) continue;
    cs_unit_text(CS_UNIT_US, found[i].us, us);
    cs_strbuf_printf(&text, "%s%s (%s)", told++ ? ", " : "", found[i].name, us);
  }
  cs_unit_text(CS_UNIT_US, all, us);
  if (all > 0 && told == 0 && unknown < all) {
    cs_html_paragraph(
        page,
        "Pairs of tasks on different streams could overlap for %s in all; where it is "
        "known, no resource keeps them apart.",
        us);
  } else if (told > 0) {
    cs_html_paragraph(page,
                      "Pairs of tasks on different streams could overlap for %s in all. What keeps "
                      "them apart: %s; nothing for %.0f%% of that time.",
                      us, text.data ? text.data : "", 100 * free_of / all);
  }
  if (unknown > 0 && unknown >= all) {
    cs_html_paragraph(page,
                      "Pairs of tasks on different streams could overlap for %s in all. What keeps "
                      "them apart is not known: their kernels are not recorded.",
                      us);
  } else if (unknown > 0) {
    cs_html_paragraph(page, "For %.0f%% of that time it is not known: kernels are not recorded.",
                      100 * unknown / all);
  }
  cs_strbuf_free(&text);
}

static void tell_prediction(const cs_policy_view *policy, cs_html *page) {
  char predicted[32], measured[32];
  if (policy->latency.n == 0) return;
  double error = policy->plan->predicted_us / policy->latency.median - 1;
  cs_unit_text(CS_UNIT_US, policy->plan->predicted_us, predicted);
  cs_unit_text(CS_UNIT_US, policy->latency.median, measured);
  cs_html_paragraph(page, "Predicted were %s, measured %s: the prediction is %.1f%% too %s.",
                    predicted, measured, 100 * fabs(error), error < 0 ? "low" : "high");
}

static void tell_concurrency(const cs_policy_view *policy, cs_html *page) {
  double planned = concurrency_of(policy->planned);
  if (!policy->measured) return;
  cs_html_paragraph(page,
                    "While kernels ran there were %.2f at a time, in a run under the tracer; the "
                    "plan promises %.2f.",
                    concurrency_of(policy->measured), planned);
}

void cs_write_verdict(const cs_view *view, cs_html *page) {
  const cs_policy_view *policy = cs_view_main(view);
  if (!policy) {
    cs_html_missing(page, view->measure, "a plan, and so latencies and timelines; %s",
                    view->no_plans);
    return;
  }
  cs_html_cards_begin(page);
  latency_card(view, policy, page);
  gain_card(view, policy, page);
  other_cards(policy, page);
  cs_html_cards_end(page);
  tell_latency(view, policy, page);
  tell_bounds(policy, page);
  tell_limiters(policy, page);
  tell_concurrency(policy, page);
  tell_prediction(policy, page);
  if (view->not_measured) {
    cs_html_missing(page, view->trace, "measured latencies; %s", view->not_measured);
  }
}
