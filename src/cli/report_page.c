/* `convsched report -o FILE.html`: sessions of every policy, measured as `run` does, and the page.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run.h"
#include "commit.h"

#define TRACED_RUNS 9

/* ---- Where and as what it is written ---- */

static bool ends_in(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

/* As --format says, else as the name of the file; a figure is SVG. */
static cs_report_format format_of(const cli_options *options) {
  static const struct {
    const char *extension;
    cs_report_format format;
  } known[] = {{".csv", CS_REPORT_CSV}, {".md", CS_REPORT_MARKDOWN}, {".txt", CS_REPORT_TEXT}};
  if (options->format_given) return options->format;
  if (!options->figure) return CS_REPORT_HTML;
  for (size_t i = 0; options->output && i < sizeof known / sizeof known[0]; i++) {
    if (ends_in(options->output, known[i].extension)) return known[i].format;
  }
  return CS_REPORT_SVG;
}

static cs_status check(const cli_options *options) {
  cs_report_format format = format_of(options);
  bool html = format == CS_REPORT_HTML;
  if (options->figure && (html || format == CS_REPORT_JSON)) {
    return cli_error(CS_CODE_USAGE, "--figure %s: wanted --format svg, csv, md or text",
                     options->figure);
  }
  if (!options->figure && !html) {
    return cli_error(CS_CODE_USAGE,
                     "a page is HTML; wanted --figure NAME or --table NAME for "
                     "another --format");
  }
  if (options->json) {
    return cli_error(CS_CODE_USAGE, "--json %s goes with --table", options->json);
  }
  if (options->profile && strcmp(options->device, "auto") != 0) {
    return cli_error(CS_CODE_USAGE,
                     "--profile %s is read without a device: it goes without "
                     "--device %s",
                     options->profile, options->device);
  }
  CS_RETURN_IF_ERROR(cli_check_search(options));
  return cli_check_writable(options->output);
}

/* ---- Plans ---- */

typedef struct page_run {
  const cli_options *options;
  run_case run;
  char *no_plans; /* why there are none; NULL */
} page_run;

/* Consumes `reason`. */
static cs_status tell_no_plans(page_run *page, cs_status reason) {
  cs_status st = cs_strdup_to(cs_status_message(reason), &page->no_plans);
  cs_status_free(reason);
  return st;
}

/* A profile without a device is that of a simulated one; what it is not enough for is told on the
 * page. */
static cs_status open_device(page_run *page) {
  const cli_options *options = page->options;
  cs_strbuf spec = {0};
  char *text = NULL;
  if (!options->profile) {
    page->run.simulated = cli_device_is_simulated(options);
    return cs_device_open(options->device, cli_logger(options), &page->run.device);
  }
  cs_strbuf_printf(&spec, "sim:%s", options->profile);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&spec, &text));
  cs_status st = cs_device_open(text, NULL, &page->run.device);
  free(text);
  page->run.simulated = true;
  if (cs_status_code(st) != CS_CODE_BAD_INPUT) return st;
  return tell_no_plans(page, st);
}

/* Of what is missing in a profile, or forbidden to be measured, the page tells; nothing else is
 * forgiven. */
static cs_status make_plans(page_run *page) {
  if (page->no_plans) return CS_OK;
  cs_status st = run_do_case(&page->run);
  if (st == CS_OK && !page->run.passed) {
    return cli_error(CS_CODE_WRONG_RESULT,
                     "a plan's results are wrong, so there is no page; `convsched run` says where");
  }
  if (cs_status_code(st) != CS_CODE_NOT_FOUND) return st;
  return tell_no_plans(page, st);
}

/* ---- The page ---- */

static cs_status make_page(page_run *page, cs_page **out) {
  const cli_options *options = page->options;
  cs_page_policy policies[RUN_MAX_POLICIES];
  char version[96];
  cs_session_options session;
  cs_page_options told;
  cs_page_options_init(&told);
  cli_session_options(options, page->run.batch, page->run.precision, NULL, &session);
  for (int i = 0; i < page->run.n; i++) {
    const run_contender *contender = &page->run.contenders[i];
    policies[i] = (cs_page_policy){contender->session, contender->samples, contender->n_samples};
  }
  told.policies = policies;
  told.n_policies = page->no_plans ? 0 : page->run.n;
  told.no_plans = page->no_plans;
  told.command = cli_command_line;
  snprintf(version, sizeof version, "%s (commit %s)", cs_version_string(), CS_COMMIT);
  told.version = version;
  told.traced_runs = TRACED_RUNS;
  told.report.profile_path = page->run.device ? NULL : options->profile;
  told.report.nodes = options->nodes.items;
  told.report.n_nodes = options->nodes.n;
  told.report.candidates = options->candidates;
  told.report.paper = options->paper;
  told.report.logger = *cli_logger(options);
  told.peers_path = options->peers;
  return cs_page_create(page->run.device, page->run.graph, &session, &told, out);
}

static cs_status write_page(const cli_options *options, const cs_page *page) {
  char *text = NULL;
  cs_status st = cs_page_text(page, options->figure, format_of(options), &text);
  if (st == CS_OK) st = cli_write(options->output, text);
  if (st == CS_OK) cli_tell_written(options, options->output);
  cs_string_free(text);
  return st;
}

cs_status cli_report_page(const cli_options *options) {
  cs_status st = CS_OK;
  cs_graph *graph = NULL;
  cs_page *made = NULL;
  bool all = options->policies.n == 0 || strcmp(options->policies.items[0], "all") == 0;
  int n_names = 0;
  const char *const *names = cs_policy_names(&n_names);
  page_run page = {.options = options,
                   .run = {.options = options,
                           .path = options->models.items[0],
                           .batch = options->batches[0],
                           .precision = options->precisions[0],
                           .policies = all ? names : options->policies.items,
                           .n_policies = all ? n_names : options->policies.n}};
  CS_TRY(st, check(options), done);
  CS_TRY(st, cli_load_graph(page.run.path, &graph), done);
  page.run.graph = graph;
  CS_TRY(st, open_device(&page), done);
  CS_TRY(st, make_plans(&page), done);
  CS_TRY(st, make_page(&page, &made), done);
  cli_end_progress();
  st = write_page(options, made);
done:
  cs_page_destroy(made);
  run_free_case(&page.run);
  cs_device_close(page.run.device);
  cs_graph_destroy(graph);
  free(page.no_plans);
  return st;
}
