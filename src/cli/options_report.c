/* The options of `report`. */
#include <stdio.h>
#include <string.h>

#include "cli/options.h"

/* The index of `text` among n names. */
static int parse_name(struct argp_state *state, const char *option, const char *text,
                      const char *const *names, int n) {
  char known[128] = "";
  for (int i = 0; i < n; i++) {
    if (strcmp(names[i], text) == 0) return i;
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s",
             i == 0       ? ""
             : i == n - 1 ? " or "
                          : ", ",
             names[i]);
  }
  argp_error(state, "--%s \"%s\": wanted %s", option, text, known);
  return 0;
}

error_t cli_parse_report_option(int key, char *text, struct argp_state *state, cli_options *out) {
  static const char *const tables[] = {"resources", "workspace", "complementary"};
  static const char *const formats[] = {"text", "md", "csv", "json"};
  static const char *const candidates[] = {"fastest", "pareto", "all"};
  switch (key) {
    case KEY_TABLE:
      out->table = parse_name(state, "table", text, tables, 3);
      return 0;
    case KEY_FORMAT:
      out->format = (cs_report_format)parse_name(state, "format", text, formats, 4);
      return 0;
    case KEY_CANDIDATES:
      out->candidates = (cs_report_candidates)parse_name(state, "candidates", text, candidates, 3);
      return 0;
    case KEY_PROFILE:
      if (!text[0]) argp_error(state, "--profile \"\": wanted a name");
      out->profile = text;
      return 0;
    case KEY_PAPER:
      out->paper = true;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}
