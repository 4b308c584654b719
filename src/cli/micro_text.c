/* Micro-batches for a person: how nodes are divided, and what it brought. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/members.h"

/* "64 + 64", "15 x 64 + 40". */
static void print_parts(const json_t *parts, cs_strbuf *text) {
  size_t n = json_array_size(parts);
  for (size_t i = 0; i < n;) {
    json_int_t size = json_integer_value(json_array_get(parts, i));
    size_t same = i;
    while (same < n && json_integer_value(json_array_get(parts, same)) == size) same++;
    cs_strbuf_printf(text, "%s", i ? " + " : "");
    if (same - i > 1) cs_strbuf_printf(text, "%zu x ", same - i);
    cs_strbuf_printf(text, "%lld", (long long)size);
    i = same;
  }
}

static void print_list(const json_t *list, cs_strbuf *text) {
  const json_t *nodes = json_object_get(list, "nodes");
  size_t n = json_array_size(nodes);
  cs_strbuf_printf(text, " %s", json_string_value(json_array_get(nodes, 0)));
  if (n > 1) {
    cs_strbuf_printf(text, " … %s (%zu nodes)", json_string_value(json_array_get(nodes, n - 1)), n);
  }
  cs_strbuf_printf(text, " in ");
  print_parts(json_object_get(list, "parts"), text);
}

/* The trial that is the plan; NULL: none. */
static const json_t *taken_trial(const json_t *micro) {
  const json_t *trials = json_object_get(micro, "trials"), *taken = NULL;
  for (size_t i = 0; i < json_array_size(trials); i++) {
    const json_t *trial = json_array_get(trials, i);
    if (json_is_true(json_object_get(trial, "taken"))) taken = trial;
  }
  return taken;
}

static void print_gain(const json_t *trial, cs_strbuf *text) {
  const json_t *ratio = json_object_get(trial, "ratio"), *gain = json_object_get(trial, "gain_us");
  if (json_is_object(ratio)) {
    cs_strbuf_printf(text, "; %.3f times as long as the undivided plan (%.3f to %.3f)",
                     number(ratio, "median"), number(ratio, "low"), number(ratio, "high"));
  }
  cs_strbuf_printf(text,
                   "; of its operations %.1f us were expected to be saved by faster candidates, "
                   "%.1f us by the cache",
                   number(gain, "candidates"), number(gain, "cache"));
}

/* Why none were taken, where they were a choice. */
static void print_none(const char *policy, const json_t *micro, cs_strbuf *text) {
  const json_t *trials = json_object_get(micro, "trials");
  size_t n = json_array_size(trials);
  double best = INFINITY;
  for (size_t i = 0; i < n; i++) {
    const json_t *ratio = json_object_get(json_array_get(trials, i), "ratio");
    if (json_is_object(ratio)) best = fmin(best, number(ratio, "median"));
  }
  cs_strbuf_printf(text, "Micro-batches of %s: none; ", policy);
  if (n == 0) {
    cs_strbuf_printf(text, "no parts of a batch promise to be faster.\n");
  } else if (isfinite(best)) {
    cs_strbuf_printf(
        text, "the best of %zu divided plans takes %.3f times as long as the undivided one.\n", n,
        best);
  } else {
    cs_strbuf_printf(text, "%zu divided plans that promised to be faster were not measured.\n", n);
  }
}

void cli_print_micro_batches(const char *policy, const json_t *micro, cs_strbuf *text) {
  const json_t *divided = json_object_get(micro, "divided"), *trial = taken_trial(micro);
  size_t n = json_array_size(divided);
  if (n == 0) {
    if (micro) print_none(policy, micro, text);
    return;
  }
  cs_strbuf_printf(text, "Micro-batches of %s:", policy);
  for (size_t i = 0; i < n; i++) {
    cs_strbuf_printf(text, "%s", i ? "," : "");
    print_list(json_array_get(divided, i), text);
  }
  if (trial) print_gain(trial, text);
  cs_strbuf_printf(text, ".\n");
}
