/* Plans and explanations for a person. */
#include <string.h>

#include "cli/members.h"
#include "cli/plan.h"

static void print_head(const json_t *info, cs_strbuf *text) {
  cs_strbuf_printf(text, "Predicted: %.1f us on %lld streams.\n", number(info, "predicted_us"),
                   integer(info, "streams"));
  cli_print_bounds(json_object_get(info, "bounds"), text);
  cli_print_memory(string(info, "policy"), info, text);
  cli_print_split(string(info, "policy"), json_object_get(info, "split"), text);
  cli_print_micro_batches(string(info, "policy"), json_object_get(info, "micro_batches"), text);
}

/* What a plan says of a task beyond its place, behind its candidate. */
static void print_extras(const json_t *task, long long units, cs_strbuf *text) {
  if (string(task, "merged")[0]) {
    cs_strbuf_printf(text, "  merged with %s", string(task, "merged"));
  }
  if (integer(task, "priority") > 0) cs_strbuf_printf(text, "  high priority");
  if (json_is_false(json_object_get(task, "early"))) cs_strbuf_printf(text, "  not early");
  if (units > 0) cs_strbuf_printf(text, "  on %lld SMs", units);
  cs_strbuf_printf(text, "\n");
}

/* ---- The plan ---- */

/* SMs of the part of the device that a stream has; 0: it has all of it. */
static long long units_of_stream(const json_t *plan, long long stream) {
  const json_t *split = json_object_get(plan, "split");
  const json_t *part = json_array_get(json_object_get(split, "streams"), (size_t)stream);
  if (!json_is_integer(part)) return 0;
  return (long long)json_integer_value(
      json_array_get(json_object_get(split, "parts"), (size_t)json_integer_value(part)));
}

/* What the session says of the plan, below its table. */
static cs_status print_summary(const cs_session *session, cs_strbuf *text) {
  char *info_text = NULL;
  CS_RETURN_IF_ERROR(cs_session_info_json(session, &info_text));
  json_t *info = json_loads(info_text, 0, NULL);
  cs_string_free(info_text);
  cs_strbuf_printf(text, "\n");
  print_head(info, text);
  json_decref(info);
  return CS_OK;
}

cs_status plan_print(const cs_session *session, const char *text) {
  json_t *plan = json_loads(text, 0, NULL);
  cs_strbuf table = {0};
  cs_strbuf_printf(&table, "%4s %6s %10s %10s %12s  %-32s %s\n", "#", "stream", "start us",
                   "end us", "workspace", "task", "candidate");
  size_t i;
  json_t *task;
  json_array_foreach(json_object_get(plan, "tasks"), i, task) {
    const json_t *candidate = json_object_get(task, "candidate");
    cs_strbuf_printf(&table, "%4zu %6lld %10.1f %10.1f %12lld  %-32s %s", i,
                     integer(task, "stream"), number(task, "start_us"), number(task, "end_us"),
                     integer(candidate, "workspace_bytes"), string(task, "name"),
                     string(candidate, "id"));
    print_extras(task, units_of_stream(plan, integer(task, "stream")), &table);
  }
  bool hints = json_is_true(json_object_get(plan, "launch_hints"));
  json_decref(plan);
  cs_status st = print_summary(session, &table);
  if (hints) cs_strbuf_printf(&table, "With hints of the launch order between streams.\n");
  if (st == CS_OK) st = cli_write_buffer(NULL, &table);
  cs_strbuf_free(&table);
  return st;
}

/* ---- The explanation ---- */

static const char *limited_by(const json_t *object) {
  const char *limiter = string(object, "limiter");
  if (!limiter[0]) return "not known what limits them (kernels not recorded)";
  return strcmp(limiter, "none") == 0 ? "nothing keeps them apart" : limiter;
}

static void print_pair(const json_t *pair, cs_strbuf *text) {
  const json_t *tasks = json_object_get(pair, "tasks");
  bool limited = string(pair, "limiter")[0] && strcmp(string(pair, "limiter"), "none") != 0;
  cs_strbuf_printf(text, "  %s beside %s, at most %.1f us: %s%s\n",
                   json_string_value(json_array_get(tasks, 0)),
                   json_string_value(json_array_get(tasks, 1)), number(pair, "most_us"),
                   limited ? "kept apart by " : "", limited_by(pair));
  size_t i;
  json_t *other;
  json_array_foreach(json_object_get(pair, "alternatives"), i, other) {
    const char *limiter = string(other, "limiter");
    cs_strbuf_printf(text, "    %s with %s: %s, %+.1f us alone\n", string(other, "task"),
                     string(other, "candidate"),
                     !limiter[0]                    ? "not known"
                     : strcmp(limiter, "none") == 0 ? "nothing"
                                                    : limiter,
                     number(other, "cost_us"));
  }
}

static void print_block(const json_t *block, size_t number_of_block, cs_strbuf *text) {
  const json_t *tasks = json_object_get(block, "tasks"), *pairs = json_object_get(block, "pairs");
  bool several = json_array_size(tasks) > 1;
  size_t i;
  json_t *value;
  if (several) {
    cs_strbuf_printf(
        text, "\nBlock %zu: %lld streams, %.1f us; one after the other %.1f us alone\n",
        number_of_block, integer(block, "streams"),
        number(block, "end_us") - number(block, "start_us"), number(block, "serial_us"));
  }
  json_array_foreach(tasks, i, value) {
    cs_strbuf_printf(text, "%5zu %6lld %10.1f %10.1f %10.1f  %-32s %s", number_of_block,
                     integer(value, "stream"), number(value, "start_us"), number(value, "end_us"),
                     number(value, "alone_us"), string(value, "name"), string(value, "candidate"));
    print_extras(value, integer(value, "part"), text);
  }
  json_array_foreach(pairs, i, value) {
    print_pair(value, text);
  }
  if (integer(block, "more_pairs") > 0) {
    cs_strbuf_printf(text, "  and %lld shorter pairs\n", integer(block, "more_pairs"));
  }
  if (several) cs_strbuf_printf(text, "\n");
}

cs_status plan_print_explanation(const char *json) {
  json_t *explanation = json_loads(json, 0, NULL);
  cs_strbuf text = {0};
  size_t i;
  json_t *block;
  cs_strbuf_printf(&text, "%s  batch %lld  %s  %s\n", string(explanation, "model"),
                   integer(explanation, "batch"), string(explanation, "dtype"),
                   string(explanation, "policy"));
  print_head(explanation, &text);
  cs_strbuf_printf(&text, "\n%5s %6s %10s %10s %10s  %-32s %s\n", "block", "stream", "start us",
                   "end us", "alone us", "task", "candidate");
  json_array_foreach(json_object_get(explanation, "blocks"), i, block) {
    print_block(block, i, &text);
  }
  json_decref(explanation);
  return cli_write_buffer(NULL, &text);
}
