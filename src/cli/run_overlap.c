/* `run --overlap`: concurrency promised by the plan and achieved by its kernels, block by block. */
#include <stdio.h>
#include <string.h>

#include "cli/run.h"

cs_status run_overlap(run_case *run) {
  bool all = run->options->policy && strcmp(run->options->policy, "all") == 0;
  for (int i = all ? 0 : run->n - 1; i < run->n; i++) {
    run_contender *contender = &run->contenders[i];
    char *text = NULL;
    CS_RETURN_IF_ERROR(cs_session_overlap_json(contender->session, &text));
    contender->overlap = json_loads(text, 0, NULL);
    cs_string_free(text);
    if (!contender->overlap) return cli_error(CS_CODE_INTERNAL, "an overlap is not JSON");
  }
  return CS_OK;
}

static double figure(const json_t *block, const char *when, const char *key) {
  return json_number_value(json_object_get(json_object_get(block, when), key));
}

/* Blank where nothing ran. */
static void print_figures(const json_t *block, const char *when, cs_strbuf *text) {
  if (json_is_object(json_object_get(block, when))) {
    cs_strbuf_printf(text, " %8.2f %10.1f %10.1f", figure(block, when, "concurrency"),
                     figure(block, when, "overlapped_us"), figure(block, when, "span_us"));
  } else {
    cs_strbuf_printf(text, " %8s %10s %10s", "-", "-", "-");
  }
}

static void print_tasks(const json_t *tasks, cs_strbuf *text) {
  size_t n = json_array_size(tasks);
  const char *first = json_string_value(json_array_get(tasks, 0));
  const char *last = json_string_value(json_array_get(tasks, n - 1));
  cs_strbuf_printf(text, "  %s … %s (%zu)\n", first ? first : "?", last ? last : "?", n);
}

static void print_one(const run_contender *contender, cs_strbuf *text) {
  size_t i;
  int single = 0;
  json_t *block;
  const json_t *whole = json_object_get(contender->overlap, "whole");
  cs_strbuf_printf(text,
                   "\n%s: concurrency predicted, and achieved in %lld runs under the tracer\n",
                   contender->policy,
                   (long long)json_integer_value(json_object_get(contender->overlap, "runs")));
  cs_strbuf_printf(text, "%5s %7s %30s %30s\n", "", "", "predicted", "achieved");
  cs_strbuf_printf(text, "%5s %7s %8s %10s %10s %8s %10s %10s  %s\n", "block", "streams", "conc.",
                   "overlap us", "span us", "conc.", "overlap us", "span us", "tasks");
  json_array_foreach(json_object_get(contender->overlap, "blocks"), i, block) {
    const json_t *tasks = json_object_get(block, "tasks");
    if (json_array_size(tasks) < 2) {
      single++;
      continue;
    }
    cs_strbuf_printf(text, "%5zu %7lld", i,
                     (long long)json_integer_value(json_object_get(block, "streams")));
    print_figures(block, "predicted", text);
    print_figures(block, "achieved", text);
    print_tasks(tasks, text);
  }
  cs_strbuf_printf(text, "%5s %7s", "whole", "");
  print_figures(whole, "predicted", text);
  print_figures(whole, "achieved", text);
  cs_strbuf_printf(text, "  all, with %d blocks of one task\n", single);
}

void run_print_overlap(const run_case *run, cs_strbuf *text) {
  bool any = false;
  for (int i = 0; i < run->n; i++) {
    if (!run->contenders[i].overlap) continue;
    any = true;
    print_one(&run->contenders[i], text);
  }
  if (!any) return;
  cs_strbuf_printf(
      text,
      "Concurrency: the time that kernels run, summed, over the time in which at least "
      "one runs.\nOverlap: the time in which two or more run. Times under the tracer "
      "are no latencies.\n");
}
