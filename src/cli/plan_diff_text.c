/* A comparison of two plans for a person. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plan.h"

/* A value as JSON writes it, without quotes. */
static void print_value(const json_t *value, cs_strbuf *text) {
  if (json_is_string(value)) {
    cs_strbuf_printf(text, "%s", json_string_value(value));
    return;
  }
  char *written = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9));
  cs_strbuf_printf(text, "%s", written ? written : "?");
  free(written);
}

static void print_change(const json_t *both, cs_strbuf *text) {
  const json_t *a = json_object_get(both, "a"), *b = json_object_get(both, "b");
  print_value(a, text);
  cs_strbuf_printf(text, " -> ");
  print_value(b, text);
  if (json_is_number(a) && json_is_number(b)) {
    cs_strbuf_printf(text, json_is_real(a) || json_is_real(b) ? " (%+.1f)" : " (%+.0f)",
                     json_number_value(b) - json_number_value(a));
  }
}

static void print_list(const json_t *list, const char *what, const char *title, cs_strbuf *text) {
  size_t i;
  json_t *entry;
  json_array_foreach(list, i, entry) {
    cs_strbuf_printf(text, "%s%s: ", title, json_string_value(json_object_get(entry, what)));
    print_change(entry, text);
    cs_strbuf_printf(text, "\n");
  }
}

static void print_tasks(const json_t *tasks, cs_strbuf *text) {
  static const char *const told[] = {"candidate", "stream",   "position",
                                     "merged",    "priority", "early"};
  size_t i;
  json_t *task;
  json_array_foreach(tasks, i, task) {
    bool any = false;
    for (size_t k = 0; k < sizeof told / sizeof told[0]; k++) {
      const json_t *both = json_object_get(task, told[k]);
      if (!both) continue;
      cs_strbuf_printf(text, any ? "; %s%s " : "task %s: %s ",
                       any ? "" : json_string_value(json_object_get(task, "name")), told[k]);
      print_value(json_object_get(both, "a"), text);
      cs_strbuf_printf(text, " -> ");
      print_value(json_object_get(both, "b"), text);
      any = true;
    }
    if (any) cs_strbuf_printf(text, "\n");
  }
}

static void print_names(const json_t *names, const char *title, cs_strbuf *text) {
  size_t i;
  json_t *name;
  json_array_foreach(names, i, name) {
    cs_strbuf_printf(text, "%s: task %s\n", title, json_string_value(name));
  }
}

static void print_totals(const json_t *totals, cs_strbuf *text) {
  static const struct {
    const char *key, *title;
  } named[] = {{"candidates", "candidates"},
               {"candidate_details", "candidates of the same name with other properties"},
               {"streams", "streams"},
               {"moved", "moved in the order"},
               {"waits", "waits"},
               {"merged", "merged launches"},
               {"priorities", "priorities"},
               {"early", "early beginnings"},
               {"times", "predicted times"},
               {"workspace_offsets", "offsets of workspaces"},
               {"buffer_offsets", "offsets of buffers"},
               {"buffers", "buffers"}};
  bool any = false;
  for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
    long long n = (long long)json_integer_value(json_object_get(totals, named[i].key));
    if (n == 0) continue;
    cs_strbuf_printf(text, "%s%s %lld", any ? "; " : "Different in both: ", named[i].title, n);
    any = true;
  }
  if (any) cs_strbuf_printf(text, "\n");
}

cs_status plan_print_diff(const char *json) {
  json_t *diff = json_loads(json, 0, NULL);
  cs_strbuf text = {0};
  if (json_is_true(json_object_get(diff, "same"))) {
    cs_strbuf_printf(&text, "The plans are the same.\n");
  }
  print_list(json_object_get(diff, "head"), "member", "", &text);
  print_list(json_object_get(diff, "layouts"), "value", "layout of ", &text);
  print_tasks(json_object_get(diff, "tasks"), &text);
  print_names(json_object_get(diff, "only_a"), "only in the first", &text);
  print_names(json_object_get(diff, "only_b"), "only in the second", &text);
  print_totals(json_object_get(diff, "totals"), &text);
  json_decref(diff);
  return cli_write_buffer(NULL, &text);
}
