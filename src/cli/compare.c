/* `convsched compare`: two files of records, side by side. */
#include <string.h>

#include "cli/cli.h"

/* What the report counts as regressions. */
static cs_status regressions_of(const cs_report *report, int *out) {
  char *text = NULL;
  cs_status st = cs_report_format_text(report, CS_REPORT_JSON, &text);
  if (st != CS_OK) return st;
  json_t *root = json_loads(text, 0, NULL);
  cs_string_free(text);
  const json_t *summary = json_object_get(root, "summary");
  *out = (int)json_integer_value(json_object_get(summary, "regressions"));
  json_decref(root);
  return CS_OK;
}

static cs_status compare_command(const cli_options *options) {
  cs_report *report = NULL;
  int regressions = 0;
  const char *a = options->models.items[0], *b = options->models.items[1];
  cs_status st = cli_check_writable(options->json);
  if (st == CS_OK) st = cs_compare_records(a, b, options->max_regression, &report);
  if (st == CS_OK) st = cli_write_report(options, report);
  if (st == CS_OK) st = regressions_of(report, &regressions);
  if (st == CS_OK && regressions > 0) {
    st = cli_error(CS_CODE_WRONG_RESULT, "%s: %d slower than in %s by more than %g%%", b,
                   regressions, a, options->max_regression);
  }
  cs_report_destroy(report);
  return st;
}

const cli_command cli_compare = {
    .name = "compare",
    .arguments = "A.json B.json",
    .summary = "Compare two runs or benches, with confidence intervals",
    .help =
        "Sets two files of records beside each other: what `run --json` wrote, or bench/peers.py "
        "and "
        "bench/throughput.py (a document or JSON lines). Of every model, dtype, batch and policy "
        "(or other system) that both have: medians, B's time over A's (of images/s the inverse) "
        "and "
        "its 95% interval. B is slower or faster where the interval leaves out 1. With "
        "--max-regression exit 1 where B is slower by more than that.\v"
        "Example:\n  convsched run models/googlenet.json --dtype f16 --policy all --json new.json\n"
        "  convsched compare old.json new.json --max-regression 3",
    .options = CLI_COMPARING | CLI_JSON,
    .min_models = 2,
    .max_models = 2,
    .run = compare_command};
