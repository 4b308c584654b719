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

static void check_figure(struct argp_state *state, const char *text) {
  cs_status st = cs_page_check_figure(text);
  if (st != CS_OK) argp_error(state, "--figure: %s", cs_status_message(st));
}

error_t cli_parse_report_option(const cli_command *command, int key, char *text,
                                struct argp_state *state, cli_options *out) {
  static const char *const tables[] = {"resources", "workspace", "complementary"};
  static const char *const formats[] = {"text", "md", "csv", "json", "svg", "html"};
  static const char *const candidates[] = {"fastest", "pareto", "all"};
  switch (key) {
    case KEY_TABLE:
      out->table = parse_name(state, "table", text, tables, 3);
      return 0;
    case KEY_FORMAT:
      out->format = (cs_report_format)parse_name(state, "format", text, formats,
                                                 command->options & CLI_REPORTING ? 6 : 4);
      out->format_given = true;
      return 0;
    case KEY_CANDIDATES:
      out->candidates = (cs_report_candidates)parse_name(state, "candidates", text, candidates, 3);
      return 0;
    case KEY_PROFILE:
      if (!text[0]) argp_error(state, "--profile \"\": wanted a name");
      out->profile = text;
      return 0;
    case KEY_FIGURE:
      check_figure(state, text);
      out->figure = text;
      return 0;
    case KEY_PEERS:
      if (!text[0]) argp_error(state, "--peers \"\": wanted a name");
      out->peers = text;
      return 0;
    case KEY_PAPER:
      out->paper = true;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}
