/* `convsched plan`: the stages before execution. */
#include "cli/plan.h"

#include <stdlib.h>
#include <string.h>

/* ---- Two plan files ---- */

static cs_status diff_command(const cli_options *options) {
  char *text = NULL;
  if (options->models.n != 2) {
    return cli_error(CS_CODE_USAGE, "plan --diff: wanted two plan files, %d given",
                     options->models.n);
  }
  const char *a = options->models.items[0], *b = options->models.items[1];
  CS_RETURN_IF_ERROR(cli_check_writable(options->json));
  CS_RETURN_IF_ERROR(cs_plan_diff_json(a, b, &text));
  cs_status st = options->json ? cli_write(options->json, text) : plan_print_diff(text);
  json_t *diff = json_loads(text, 0, NULL);
  if (st == CS_OK && !json_is_true(json_object_get(diff, "same"))) {
    st = cli_error(CS_CODE_WRONG_RESULT, "%s and %s: the plans differ", a, b);
  }
  json_decref(diff);
  cs_string_free(text);
  return st;
}

/* ---- A plan, and what is told of it ---- */

static cs_status tell_plan(const cli_options *options, const cs_session *session) {
  char *text = NULL;
  CS_RETURN_IF_ERROR(cs_session_plan_json(session, &text));
  cs_status st = options->json ? cli_write(options->json, text) : plan_print(session, text);
  cs_string_free(text);
  return st;
}

static cs_status explain(const cli_options *options, const cs_session *session) {
  char *text = NULL;
  CS_RETURN_IF_ERROR(cs_session_explain_json(session, &text));
  cs_status st = options->json ? cli_write(options->json, text) : plan_print_explanation(text);
  cs_string_free(text);
  return st;
}

static cs_status trade_off(const cli_options *options, const cs_session *session) {
  cs_report *front = NULL;
  CS_RETURN_IF_ERROR(cs_session_tradeoff(session, &front));
  cs_status st = cli_write_report(options, front);
  cs_report_destroy(front);
  return st;
}

static cs_status tell(const cli_options *options, const cs_session *session) {
  if (options->tradeoff) return trade_off(options, session);
  return options->explain ? explain(options, session) : tell_plan(options, session);
}

static cs_status check_use(const cli_options *options) {
  if (options->models.n > 1) {
    return cli_error(CS_CODE_USAGE, "plan: wanted one model, %d given", options->models.n);
  }
  CS_RETURN_IF_ERROR(cli_check_one_plan(options));
  if (options->explain && options->tradeoff) {
    return cli_error(CS_CODE_USAGE, "plan: --explain and --tradeoff, wanted one of them");
  }
  if (options->format != CS_REPORT_TEXT && !options->tradeoff) {
    return cli_error(CS_CODE_USAGE, "plan: --format goes with --tradeoff");
  }
  return CS_OK;
}

static cs_status plan_command(const cli_options *options) {
  if (options->diff) return diff_command(options);
  CS_RETURN_IF_ERROR(check_use(options));
  return cli_tell_plan(options, tell);
}

const cli_command cli_plan = {
    .name = "plan",
    .arguments = "MODEL.json\n--diff A.plan.json B.plan.json",
    .summary = "Plan a network and print, write, explain or compare plans",
    .help =
        "Plans a network and prints the plan, or writes it as convsched.plan/1 with --json; "
        "`run --plan FILE` executes it. --explain tells what was chosen and why tasks do not "
        "overlap, --tradeoff what less memory costs, --diff what two plan files differ in.\v"
        "Examples:\n  convsched plan models/googlenet.json --dtype f16 --json googlenet.plan.json\n"
        "  convsched plan models/googlenet.json --dtype f16 --device sim:h100.jsonl.gz --explain\n"
        "  convsched plan models/googlenet.json --dtype f16 --tradeoff --format csv\n"
        "  convsched plan models/googlenet.json --dtype f16 --device sim:h100.jsonl.gz\n"
        "  convsched plan --diff googlenet.plan.json other.plan.json",
    .options = CLI_PLANNING | CLI_PLANS | CLI_JSON,
    .min_models = 1,
    .max_models = 2,
    .run = plan_command,
    .asks = true};
