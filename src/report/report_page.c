/* The page: its sections in order, each with what it lacks and what gives that. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/view.h"

/* ---- Summary ---- */

/* What of the profile is not there. */
static void tell_holes(const cs_view *view, const cs_view_candidates *candidates, cs_html *page) {
  int unmeasured = 0;
  for (int i = 0; i < view->nodes->n; i++) {
    const cs_report_node *node = &view->nodes->items[i];
    bool any = node->n_ops == 0;
    for (int k = 0; k < node->n_ops; k++) any = any || node->ops[k].known;
    unmeasured += !any;
  }
  if (unmeasured > 0) {
    cs_html_missing(page, view->measure, "measurements of %d of the network's %d nodes", unmeasured,
                    view->nodes->n);
  }
  if (candidates->without_kernels > 0 && cs_view_has_sms(view)) {
    cs_html_missing(page, view->measure,
                    "registers, shared memory and threads of %d of %d candidates: their kernels "
                    "are not recorded (more than 3 times slower than the fastest, or measured "
                    "before kernels were)",
                    candidates->without_kernels, candidates->n);
  }
  if (candidates->rejected > 0) {
    cs_html_paragraph(page,
                      "%d more candidates were rejected, since their results were wrong or they "
                      "failed; the table of workspaces says why.",
                      candidates->rejected);
  }
}

static cs_status summary(const cs_view *view, const cs_view_candidates *candidates, cs_html *page) {
  cs_strbuf svg = {0};
  cs_table table;
  cs_html_section(page, "summary", "Summary");
  cs_write_verdict(view, page);
  if (candidates) tell_holes(view, candidates, page);
  if (view->n_policies == 0) return CS_OK;
  CS_RETURN_IF_ERROR(cs_write_figure(
      cs_draw_policies(view, NULL, &svg), &svg,
      view->not_measured ? "Predicted latency of each policy, and how many times as "
                           "fast as the first."
                         : "Latency of each policy, sampled in turn in one process, "
                           "and how many times as fast as the first.",
      false, NULL, page));
  cs_status st = cs_tabulate_policies(view, &table);
  if (st == CS_OK) cs_html_table(page, &table, "The same in numbers");
  cs_table_free(&table);
  return st;
}

/* ---- Timelines ---- */

/* What is planned and what was measured are on one scale. */
static double longest(const cs_policy_view *policy) {
  return fmax(policy->planned->span_us, policy->measured ? policy->measured->span_us : 0);
}

typedef cs_status (*draw_fn)(const cs_view *view, const cs_policy_view *policy,
                             const cs_timeline *timeline, double most_us, const char *style,
                             cs_strbuf *out);

static cs_status timelines_of(const cs_view *view, const cs_policy_view *policy, draw_fn draw,
                              const char *what, bool zoom, cs_html *page) {
  cs_strbuf svg = {0};
  char caption[256];
  if (policy->measured) {
    snprintf(caption, sizeof caption,
             "%s of %s, measured: the run of the median span among %d under a tracer. What it "
             "takes there is no latency.",
             what, policy->name, policy->traced_runs);
    CS_RETURN_IF_ERROR(
        cs_write_figure(draw(view, policy, policy->measured, longest(policy), NULL, &svg), &svg,
                        caption, zoom, NULL, page));
  }
  snprintf(caption, sizeof caption, "%s of %s, %s.", what, policy->name,
           policy->planned->source == CS_TIMELINE_SIMULATED ? "as the SM model predicts it"
                                                            : "as planned");
  return cs_write_figure(draw(view, policy, policy->planned, longest(policy), NULL, &svg), &svg,
                         caption, zoom, NULL, page);
}

static cs_status gantt(const cs_view *view, cs_html *page) {
  char id[64];
  cs_html_section(page, "timelines", "Timelines");
  if (view->n_policies == 0) {
    cs_html_missing(page, NULL, "timelines; there is no plan (the summary says why)");
    return CS_OK;
  }
  if (view->not_traced) {
    cs_html_missing(page, view->trace, "measured timelines; %s", view->not_traced);
  }
  cs_html_panels_begin(page, "Policy");
  for (int i = 0; i < view->n_policies; i++) {
    snprintf(id, sizeof id, "timelines-%s", view->policies[i].name);
    cs_html_panel(page, id, view->policies[i].name);
    if (view->policies[i].not_traced) {
      cs_html_missing(page, view->trace, "a measured timeline; %s", view->policies[i].not_traced);
    }
    CS_RETURN_IF_ERROR(
        timelines_of(view, &view->policies[i], cs_draw_gantt, "Kernels", true, page));
  }
  cs_html_panels_end(page);
  cs_html_paragraph(
      page,
      "Dotted lines: a block of several tasks begins. What is planned and what was measured of "
      "a policy have one scale, and times of all policies one unit.");
  return CS_OK;
}

static cs_status sm_use(const cs_view *view, cs_html *page) {
  char id[64];
  cs_html_section(page, "sm-use", "SM resources");
  const cs_policy_view *policy = cs_view_main(view);
  if (!policy) {
    cs_html_missing(page, NULL,
                    "what kernels take over time; there is no plan (the summary says why)");
    return CS_OK;
  }
  if (!cs_view_has_sms(view)) { /* nothing that is measured there gives it */
    cs_html_missing(page, NULL,
                    "what kernels take of an SM; the device has none, or the profile does not tell "
                    "what one has");
    return CS_OK;
  }
  if (!cs_view_has_sm_use(view, policy->planned)) {
    cs_html_missing(page, view->measure, "what kernels take of an SM; no kernels are recorded");
    return CS_OK;
  }
  cs_html_panels_begin(page, "Policy");
  for (int i = 0; i < view->n_policies; i++) {
    snprintf(id, sizeof id, "sm-use-of-%s", view->policies[i].name);
    cs_html_panel(page, id, view->policies[i].name);
    CS_RETURN_IF_ERROR(timelines_of(view, &view->policies[i], cs_draw_sm_use,
                                    "What running kernels ask for", false, page));
  }
  cs_html_panels_end(page);
  cs_html_paragraph(page,
                    "The share of all SMs' registers, shared memory, threads and block slots that "
                    "the blocks of the kernels running at a time hold, were each alone. Above the "
                    "line blocks wait for others to end; strips end at twice all there is.");
  return CS_OK;
}

/* ---- Tables ---- */

typedef cs_status (*table_fn)(const cs_report_input *input, const cs_report_nodes *nodes,
                              cs_table *out);

static cs_status put_table(const cs_view *view, table_fn make, const char *caption,
                           const char *command, cs_html *page) {
  cs_table table = {0};
  if (!view->nodes) {
    cs_html_missing(page, NULL, "this table; nothing was measured (see Candidates)");
    return CS_OK;
  }
  cs_status st = make(view->report, view->nodes, &table);
  if (st == CS_OK) cs_html_table(page, &table, caption);
  cs_table_free(&table);
  return cs_write_missing(st, command, page);
}

static cs_status tables(const cs_view *view, cs_html *page) {
  cs_html_section(page, "resources", "Resources");
  CS_RETURN_IF_ERROR(put_table(view, cs_report_resources,
                               "What the kernels of each node's fastest candidate take of one SM",
                               NULL, page));
  cs_html_section(page, "workspace", "Workspace");
  CS_RETURN_IF_ERROR(put_table(view, cs_report_workspace,
                               "Every algorithm of a node: its fastest configuration", NULL, page));
  cs_html_section(page, "complementary", "Complementary sets");
  return put_table(view, cs_report_complementary,
                   "Nodes that run faster together with candidates that are slower alone", NULL,
                   page);
}

/* ---- Memory, graph, peers, environment ---- */

static cs_status arena(const cs_view *view, cs_html *page) {
  char id[64], caption[200], bytes[32];
  cs_html_section(page, "memory", "Memory");
  if (view->n_policies == 0) {
    cs_html_missing(page, NULL, "the arena; there is no plan (the summary says why)");
    return CS_OK;
  }
  cs_html_panels_begin(page, "Policy");
  for (int i = 0; i < view->n_policies; i++) {
    const cs_policy_view *policy = &view->policies[i];
    cs_strbuf svg = {0};
    snprintf(id, sizeof id, "arena-of-%s", policy->name);
    cs_html_panel(page, id, policy->name);
    cs_unit_text(CS_UNIT_BYTES, (double)policy->plan->arena_bytes, bytes);
    snprintf(caption, sizeof caption,
             "The arena of %s, %s: each value from its first write to its last read, each "
             "workspace while its task runs. Weights have memory of their own.",
             policy->name, bytes);
    CS_RETURN_IF_ERROR(
        cs_write_figure(cs_draw_arena(view, policy, NULL, &svg), &svg, caption, true, NULL, page));
  }
  cs_html_panels_end(page);
  return CS_OK;
}

static cs_status graph(const cs_view *view, cs_html *page) {
  cs_strbuf svg = {0};
  char caption[256];
  const cs_policy_view *policy = cs_view_main(view);
  cs_html_section(page, "graph", "Graph");
  if (!policy) {
    cs_html_missing(page, NULL, "tasks and their streams; there is no plan (the summary says why)");
    return CS_OK;
  }
  snprintf(
      caption, sizeof caption,
      "The tasks of the plan of %s as they depend on each other, from left to right and row by "
      "row; all of a block depends on all of the one before. Colour and s0, s1, … tell the "
      "stream, below on the right its predicted time.",
      policy->name);
  return cs_write_figure(cs_draw_graph(policy, NULL, &svg), &svg, caption, false, NULL, page);
}

/* Records of another device say nothing of this one. */
static cs_status tell_devices(const cs_view *view, cs_html *page) {
  char *devices = NULL;
  CS_RETURN_IF_ERROR(cs_view_peer_devices(view, &devices));
  const char *here = cs_view_device_name(view);
  if (strcmp(devices, here) != 0) {
    cs_html_missing(page, view->bench, "records of this device, %s; these are of %s", here,
                    devices);
  }
  free(devices);
  return CS_OK;
}

static cs_status peers(const cs_view *view, cs_html *page) {
  cs_strbuf svg = {0};
  cs_table table;
  cs_html_section(page, "peers", "Other systems");
  cs_status st = cs_draw_peers(view, NULL, &svg);
  bool drawn = st == CS_OK;
  if (drawn) st = tell_devices(view, page);
  CS_RETURN_IF_ERROR(
      cs_write_figure(st, &svg,
                      "Medians and their 95% intervals, and how many times the fastest "
                      "each takes, of the file of records.",
                      false, view->bench, page));
  if (!drawn) return CS_OK;
  st = cs_tabulate_peers(view, &table);
  if (st == CS_OK) cs_html_table(page, &table, "The same in numbers");
  cs_table_free(&table);
  return st;
}

static void environment(const cs_view *view, cs_html *page) {
  const char *label;
  json_t *text;
  cs_html_section(page, "environment", "Environment");
  cs_markup_raw(&page->body,
                "<div class=\"table\"><table><caption>What this was made with</caption>"
                "<thead><tr><th scope=\"col\">what</th><th scope=\"col\">value</th></tr>"
                "</thead><tbody>\n");
  json_object_foreach(view->environment, label, text) {
    cs_markup_raw(&page->body, "<tr><td>");
    cs_markup_text(&page->body, label);
    cs_markup_raw(&page->body, "</td><td class=\"wrap\">");
    cs_markup_text(&page->body, json_string_value(text));
    cs_markup_raw(&page->body, "</td></tr>\n");
  }
  cs_markup_raw(&page->body, "</tbody></table></div>\n");
}

/* ---- All ---- */

static cs_status sections(const cs_view *view, const cs_view_candidates *candidates,
                          cs_html *page) {
  CS_RETURN_IF_ERROR(summary(view, candidates, page));
  CS_RETURN_IF_ERROR(gantt(view, page));
  CS_RETURN_IF_ERROR(sm_use(view, page));
  CS_RETURN_IF_ERROR(cs_write_candidates(view, candidates, page));
  CS_RETURN_IF_ERROR(tables(view, page));
  CS_RETURN_IF_ERROR(arena(view, page));
  CS_RETURN_IF_ERROR(graph(view, page));
  CS_RETURN_IF_ERROR(peers(view, page));
  environment(view, page);
  return CS_OK;
}

cs_status cs_report_page(const cs_view *view, char **out) {
  cs_status st = CS_OK;
  cs_html page = {0};
  cs_view_candidates candidates = {0};
  char subtitle[512];
  const cs_report_input *report = view->report;
  *out = NULL;
  if (view->nodes) CS_TRY(st, cs_view_candidates_of(view, &candidates), done);
  snprintf(subtitle, sizeof subtitle, "Batch %lld, %s, %s", (long long)report->graph->batch,
           cs_precision_name(report->precision), cs_view_device_name(view));
  cs_html_open(&page, report->graph->name, subtitle);
  CS_TRY(st, sections(view, view->nodes ? &candidates : NULL, &page), done);
  st = cs_html_close(&page, out);
done:
  cs_view_candidates_free(&candidates);
  cs_html_free(&page);
  return st;
}
