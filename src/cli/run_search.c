/* What the search of a policy found out beside its plan: blocks that fell back to one stream, what
 * micro-batches brought. */
#include <string.h>

#include "cli/run.h"

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

static void print_limiter(const json_t *block, cs_strbuf *text) {
  const json_t *pair = json_object_get(block, "pair");
  const char *limiter = text_of(block, "limiter");
  if (!json_is_array(pair)) {
    cs_strbuf_printf(text, "no two of its tasks may run together");
    return;
  }
  cs_strbuf_printf(text, "%s beside %s: ", json_string_value(json_array_get(pair, 0)),
                   json_string_value(json_array_get(pair, 1)));
  if (!limiter[0]) {
    cs_strbuf_printf(text, "not known what keeps them apart (kernels not recorded)");
  } else if (strcmp(limiter, "none") == 0) {
    cs_strbuf_printf(text, "no resource of an SM keeps them apart");
  } else {
    cs_strbuf_printf(text, "kept apart by %s", limiter);
  }
}

static void print_fallback(const char *policy, const json_t *block, cs_strbuf *text) {
  const json_t *gain = json_object_get(block, "gain");
  cs_strbuf_printf(
      text, "%s: %s … %s (%lld tasks on %lld streams) gained %.3fx (%.3f to %.3f), so one stream; ",
      policy, text_of(block, "first"), text_of(block, "last"),
      (long long)json_integer_value(json_object_get(block, "tasks")),
      (long long)json_integer_value(json_object_get(block, "streams")),
      json_number_value(json_object_get(gain, "median")),
      json_number_value(json_object_get(gain, "low")),
      json_number_value(json_object_get(gain, "high")));
  print_limiter(block, text);
  cs_strbuf_printf(text, ".\n");
}

void run_print_search(const run_case *run, cs_strbuf *text) {
  for (int i = 0; i < run->n; i++) {
    cli_print_micro_batches(run->contenders[i].policy,
                            json_object_get(run->contenders[i].info, "micro_batches"), text);
    const json_t *fallbacks = json_object_get(run->contenders[i].info, "fallbacks");
    json_int_t untried = json_integer_value(json_object_get(fallbacks, "untried"));
    size_t b;
    json_t *block;
    json_array_foreach(json_object_get(fallbacks, "blocks"), b, block) {
      if (!json_is_true(json_object_get(block, "fell_back"))) continue;
      print_fallback(run->contenders[i].policy, block, text);
    }
    if (untried > 0) {
      cs_strbuf_printf(text,
                       "%s: %lld blocks on several streams were not compared with one stream "
                       "(no time or room left).\n",
                       run->contenders[i].policy, (long long)untried);
    }
  }
}
