/* A report's page: what its sessions and its profile tell, gathered into a view of pure data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/view.h"
#include "runtime/report.h"
#include "runtime/report_source.h"
#include "runtime/session.h"
#include "runtime/timelines.h"

#define CONFIDENCE 0.95

struct cs_page {
  cs_report_source source;
  cs_report_nodes nodes;
  cs_records records;
  cs_policy_view *policies;
  cs_timelines *timelines; /* per policy */
  json_t **explanations;   /* per policy; NULL: not known */
  char **whys;             /* per policy: why it was not traced */
  char *peers_path, *no_nodes, *no_plans, *not_traced, *not_measured, *measure, *rerun, *bench;
  cs_view view;
};

void cs_page_options_init(cs_page_options *options) {
  *options = (cs_page_options){.struct_size = sizeof *options};
  cs_report_options_init(&options->report);
}

/* ---- What is known of a policy ---- */

static cs_status explain(const cs_session *session, json_t **out) {
  char *text = NULL;
  *out = NULL;
  if (!session->planned.choices) return CS_OK; /* a plan from a file */
  CS_RETURN_IF_ERROR(cs_session_explain_json(session, &text));
  *out = json_loads(text, 0, NULL);
  free(text);
  return *out ? CS_OK : cs_no_memory("an explanation", 0);
}

static cs_status summarise(const cs_page_policy *from, cs_policy_view *out) {
  if (!from->samples || from->n_samples == 0) return CS_OK;
  CS_RETURN_IF_ERROR(cs_stats_of(from->samples, from->n_samples, &out->latency));
  int n = from->n_samples < 1000 ? from->n_samples : 1000;
  return cs_median_interval_of(from->samples, n, CONFIDENCE, &out->interval);
}

/* With traced runs, where the device can be traced, else without; *why says why not (NULL: it was,
 * or no runs were wanted). */
static cs_status take_timelines(cs_session *session, int runs, char **why, cs_timelines *out) {
  cs_status st = cs_session_timelines(session, runs, out);
  cs_code code = cs_status_code(st);
  if (code != CS_CODE_NOT_FOUND && code != CS_CODE_USAGE) return st;
  cs_status copied = cs_strdup_to(cs_status_message(st), why);
  cs_status_free(st);
  return copied == CS_OK ? cs_session_timelines(session, 0, out) : copied;
}

static cs_status add_policy(cs_page *page, const cs_page_policy *from, int runs, int i) {
  const cs_planned *planned = &from->session->planned;
  cs_policy_view *out = &page->policies[i];
  *out = (cs_policy_view){.name = planned->plan->policy,
                          .plan = planned->plan,
                          .program = planned->program,
                          .bounds = planned->choices ? &planned->bounds : NULL,
                          .sequential = planned->choices ? &planned->sequential : NULL};
  CS_RETURN_IF_ERROR(summarise(from, out));
  CS_RETURN_IF_ERROR(take_timelines(from->session, runs, &page->whys[i], &page->timelines[i]));
  CS_RETURN_IF_ERROR(explain(from->session, &page->explanations[i]));
  out->planned = &page->timelines[i].planned;
  if (page->timelines[i].runs > 0) out->measured = &page->timelines[i].measured;
  out->not_traced = page->whys[i];
  out->traced_runs = page->timelines[i].runs;
  out->explanation = page->explanations[i];
  return CS_OK;
}

static cs_status add_policies(cs_page *page, const cs_page_options *options, bool simulated) {
  size_t n = (size_t)options->n_policies + 1;
  page->policies = cs_calloc(n, sizeof *page->policies);
  page->timelines = cs_calloc(n, sizeof *page->timelines);
  page->explanations = cs_calloc(n, sizeof(json_t *));
  page->whys = cs_calloc(n, sizeof(char *));
  if (!page->policies || !page->timelines || !page->explanations || !page->whys) {
    return cs_no_memory("a page", n * sizeof *page->policies);
  }
  if (simulated) {
    CS_RETURN_IF_ERROR(cs_strdup_to("the device is simulated: a profile is all there is of it",
                                    &page->not_measured));
    CS_RETURN_IF_ERROR(cs_strdup_to(page->not_measured, &page->not_traced));
  } else if (options->traced_runs == 0) {
    CS_RETURN_IF_ERROR(cs_strdup_to("no runs were traced", &page->not_traced));
  }
  for (int i = 0; i < options->n_policies; i++) {
    CS_RETURN_IF_ERROR(add_policy(page, &options->policies[i], options->traced_runs, i));
    page->view.n_policies++;
  }
  return CS_OK;
}

/* ---- The rest ---- */

/* That nothing was measured is told on the page; that a node is not there is an error. */
static cs_status find_nodes(cs_page *page) {
  cs_status st = cs_report_nodes_of(&page->source.input, &page->nodes);
  if (st == CS_OK) {
    page->view.nodes = &page->nodes;
    return CS_OK;
  }
  if (cs_status_code(st) != CS_CODE_NOT_FOUND || page->source.input.n_patterns > 0) return st;
  page->no_nodes = cs_strdup(cs_status_message(st));
  cs_status_free(st);
  return page->no_nodes ? CS_OK : cs_no_memory("a message", 0);
}

static cs_status read_peers(cs_page *page, const char *path) {
  if (!path) return CS_OK;
  CS_RETURN_IF_ERROR(cs_strdup_to(path, &page->peers_path));
  CS_RETURN_IF_ERROR(cs_records_read(page->peers_path, CONFIDENCE, &page->records));
  page->view.peers = &page->records;
  return CS_OK;
}

static cs_status commands(cs_page *page) {
  const cs_report_input *input = &page->source.input;
  const char *model = input->bound->source, *dtype = cs_precision_name(input->precision);
  long long batch = (long long)input->bound->batch;
  cs_strbuf measure = {0}, rerun = {0}, bench = {0};
  cs_strbuf_printf(&measure, "convsched profile %s --batch %lld --dtype %s --corun", model, batch,
                   dtype);
  cs_strbuf_printf(&rerun,
                   "convsched report %s --batch %lld --dtype %s --policy all -o report.html", model,
                   batch, dtype);
  cs_strbuf_printf(&bench, "python3 bench/peers.py%s --cells %s/%s/%lld --out FILE.jsonl",
                   strcmp(input->device->backend, "cpu") == 0 ? " --cpu" : "", input->bound->name,
                   dtype, batch);
  cs_status st = cs_strbuf_take(&measure, &page->measure);
  cs_status second = cs_strbuf_take(&rerun, &page->rerun);
  cs_status third = cs_strbuf_take(&bench, &page->bench);
  if (st == CS_OK)
    st = second;
  else
    cs_status_free(second);
  if (st == CS_OK)
    st = third;
  else
    cs_status_free(third);
  return st;
}

static void tell(json_t *environment, const char *label, const char *text) {
  if (text && text[0]) json_object_set_new(environment, label, json_string(text));
}

static cs_status environment(cs_page *page, const cs_page_options *options) {
  char text[128];
  const cs_report_input *input = &page->source.input;
  const cs_device_info *device = input->device;
  json_t *out = page->view.environment = json_object();
  if (!out) return cs_no_memory("an environment", 0);
  tell(out, "device", cs_view_device_name(&page->view));
  tell(out, "identity", cs_profile_identity(input->profile));
  snprintf(text, sizeof text, "%d", device->units);
  if (device->units > 0) tell(out, "SMs or cores", text);
  snprintf(text, sizeof text, "%d MHz", device->clock_mhz);
  if (device->clock_mhz > 0) tell(out, "clock", text);
  tell(out, "driver", device->driver);
  tell(out, "runtime", device->runtime);
  tell(out, "library", device->library);
  tell(out, "model", input->bound->source);
  snprintf(text, sizeof text, "%016llx", (unsigned long long)cs_graph_hash(input->bound));
  tell(out, "graph", text);
  snprintf(text, sizeof text, "batch %lld, %s", (long long)input->bound->batch,
           cs_precision_name(input->precision));
  tell(out, "run as", text);
  tell(out, "profile",
       options->report.profile_path ? options->report.profile_path
                                    : cs_profile_path(input->profile));
  tell(out, "records of other systems", options->peers_path);
  tell(out, "convsched", options->version ? options->version : cs_version_string());
  tell(out, "command", options->command);
  return CS_OK;
}

static cs_status gather(cs_page *page, cs_device *device, const cs_graph *graph,
                        const cs_session_options *session, const cs_page_options *options) {
  bool simulated = device && cs_device_is_simulated(device);
  CS_RETURN_IF_ERROR(
      cs_report_source_open(device, graph, session, &options->report, &page->source));
  page->view.report = &page->source.input;
  CS_RETURN_IF_ERROR(read_peers(page, options->peers_path));
  CS_RETURN_IF_ERROR(find_nodes(page));
  CS_RETURN_IF_ERROR(commands(page));
  CS_RETURN_IF_ERROR(environment(page, options));
  CS_RETURN_IF_ERROR(add_policies(page, options, simulated));
  CS_RETURN_IF_ERROR(cs_strdup_to(options->no_plans ? options->no_plans : "no policy was asked for",
                                  &page->no_plans));
  cs_view *view = &page->view;
  view->no_nodes = page->no_nodes;
  view->policies = page->policies;
  view->no_plans = page->no_plans;
  view->not_traced = page->not_traced;
  view->not_measured = page->not_measured;
  view->measure = page->measure;
  view->trace = page->rerun;
  view->bench = page->bench;
  return CS_OK;
}

/* ---- The public API ---- */

cs_status cs_page_create(cs_device *device, const cs_graph *graph,
                         const cs_session_options *session_options, const cs_page_options *options,
                         cs_page **out) {
  *out = NULL;
  CS_RETURN_IF_ERROR(
      cs_report_check_sizes("page", options->struct_size, sizeof *options, session_options));
  cs_page *page = cs_calloc(1, sizeof *page);
  if (!page) return cs_no_memory("a page", sizeof *page);
  cs_status st = gather(page, device, graph, session_options, options);
  if (st != CS_OK) {
    cs_page_destroy(page);
    return st;
  }
  *out = page;
  return CS_OK;
}

void cs_page_destroy(cs_page *page) {
  if (!page) return;
  for (int i = 0; page->timelines && i < page->view.n_policies + 1; i++) {
    cs_timelines_free(&page->timelines[i]);
  }
  for (int i = 0; page->explanations && i < page->view.n_policies + 1; i++) {
    json_decref(page->explanations[i]);
  }
  for (int i = 0; page->whys && i < page->view.n_policies + 1; i++) free(page->whys[i]);
  free(page->policies);
  free(page->timelines);
  free(page->whys);
  free(page->explanations);
  cs_records_free(&page->records);
  cs_report_nodes_free(&page->nodes);
  cs_report_source_close(&page->source);
  json_decref(page->view.environment);
  char *const texts[] = {page->peers_path,   page->no_nodes, page->no_plans, page->not_traced,
                         page->not_measured, page->measure,  page->rerun,    page->bench};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) free(texts[i]);
  free(page);
}

static cs_status figure_text(const cs_view *view, const cs_figure *figure, char **out) {
  char *style = NULL;
  cs_strbuf svg = {0};
  CS_RETURN_IF_ERROR(cs_figure_style(&style));
  cs_status st = figure->draw(view, style, &svg);
  if (st == CS_OK) {
    st = cs_strbuf_take(&svg, out);
  } else {
    cs_strbuf_free(&svg);
  }
  free(style);
  return cs_annotate(st, "figure %s: ", figure->name);
}

static cs_status figure_data(const cs_view *view, const cs_figure *figure, cs_report_format format,
                             char **out) {
  cs_table table = {0};
  cs_report *report = NULL;
  cs_status st = figure->tabulate(view, &table);
  if (st == CS_OK) {
    cs_table_title(&table, "%s: %s, batch %lld, %s, %s", figure->title, view->report->bound->name,
                   (long long)view->report->bound->batch,
                   cs_precision_name(view->report->precision), cs_view_device_name(view));
  }
  st = cs_report_give(cs_annotate(st, "figure %s: ", figure->name), &table, &report);
  if (st == CS_OK) st = cs_report_format_text(report, format, out);
  cs_report_destroy(report);
  return st;
}

cs_status cs_page_text(const cs_page *page, const char *figure, cs_report_format format,
                       char **out) {
  const cs_figure *found = NULL;
  *out = NULL;
  if (!figure && format == CS_REPORT_HTML) return cs_report_page(&page->view, out);
  if (!figure || format == CS_REPORT_HTML || format == CS_REPORT_JSON) {
    return cs_error(CS_CODE_USAGE,
                    "page: as a whole it is HTML, a figure of it is SVG, CSV, Markdown or text");
  }
  CS_RETURN_IF_ERROR(cs_figure_find(figure, &found));
  return format == CS_REPORT_SVG ? figure_text(&page->view, found, out)
                                 : figure_data(&page->view, found, format, out);
}

const char *const *cs_page_figure_names(int *count) {
  return cs_figure_names(count);
}

cs_status cs_page_check_figure(const char *figure) {
  const cs_figure *found;
  return cs_figure_find(figure, &found);
}
