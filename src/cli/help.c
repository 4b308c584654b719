#include "cli/help.h"

#include <string.h>

const cli_told cli_exit_codes[] = {
    {"0", "ok"},
    {"1", "wrong result or missed requirement"},
    {"2", "wrong use: options, arguments"},
    {"3", "bad input"},
    {"4", "device, library or disk failure"},
    {"129", "hung up (SIGHUP, if not ignored); what was measured is kept"},
    {"130", "interrupted (Ctrl-C); what was measured is kept"},
    {"143", "terminated (SIGTERM); what was measured is kept"},
    {NULL, NULL}};

const cli_told cli_environment[] = {
    {"XDG_CACHE_HOME", "Its folder convsched/v1 is the profile database (default: ~/.cache)."},
    {"CONVSCHED_CACHE_CAP",
     "Bytes, as 500M or 2G, that the database may grow to before files of devices that were not "
     "used for longest are removed (default 1G; 0: no limit)."},
    {"TERM", "dumb: no progress is drawn on the terminal."},
    {NULL, NULL}};

const cli_told cli_files[] = {
    {"~/.cache/convsched/v1", "The profile database, a file for every device and its libraries."},
    {NULL, NULL}};

/* ---- Notes ---- */

const char *cli_notes_of(const char *help) {
  const char *mark = strchr(help, '\v');
  return mark && mark[1] ? mark + 1 : NULL;
}

bool cli_next_line(const char **notes, const char **line, size_t *length) {
  if (!**notes) return false;
  *line = *notes;
  *length = strcspn(*notes, "\n");
  *notes += *length + ((*notes)[*length] == '\n');
  return true;
}

/* Where a line of at most `most` bytes may end: behind the last space, else at the next one. */
static size_t fitting(const char *line, size_t length, size_t most, const char *before) {
  size_t end = 0;
  if (length <= most) return length;
  for (size_t i = 1; i < length; i++) {
    if (line[i] != ' ' || strncmp(line + i, before, strlen(before)) != 0) continue;
    if (i > most && end > 0) break;
    end = i;
    if (i > most) break;
  }
  return end > 0 ? end : length;
}

static void add_paragraph(const char *line, size_t length, cs_strbuf *out) {
  while (length > 0) {
    size_t end = fitting(line, length, CLI_HELP_COLUMNS, " ");
    cs_strbuf_printf(out, "%.*s\n", (int)end, line);
    end += end < length;
    line += end;
    length -= end;
  }
}

/* Breaks before an option, behind the indentation. */
static void add_example(const char *line, size_t length, cs_strbuf *out) {
  const char *indent = "";
  while (length > 0) {
    size_t most = CLI_HELP_COLUMNS - 2 - strlen(indent);
    size_t end = fitting(line, length, most, " -");
    cs_strbuf_printf(out, "%s%.*s%s\n", indent, (int)end, line, end < length ? " \\" : "");
    end += end < length;
    line += end;
    length -= end;
    indent = "      ";
  }
}

void cli_add_notes(const char *help, cs_strbuf *out) {
  const char *notes = cli_notes_of(help), *line;
  size_t length;
  if (!notes) return;
  while (cli_next_line(&notes, &line, &length)) {
    if (length == 0) {
      cs_strbuf_printf(out, "\n");
    } else if (line[0] == ' ') {
      add_example(line, length, out);
    } else {
      add_paragraph(line, length, out);
    }
  }
}

/* ---- convsched --help ---- */

cs_status cli_print_help(void) {
  int n;
  const cli_command *const *commands = cli_commands(&n);
  cs_strbuf text = {0};
  cs_strbuf_printf(
      &text,
      "Usage: convsched COMMAND [ARGUMENT…] [OPTION…]\n\n"
      "Runs non-linear CNNs with algorithm, stream, order and memory chosen together.\n\n"
      "Commands:\n");
  for (int i = 0; i < n; i++) {
    cs_strbuf_printf(&text, "  %-18s %s\n", commands[i]->name, commands[i]->summary);
  }
  cs_strbuf_printf(&text,
                   "\n`convsched COMMAND --help` tells a command's options, with an example.\n"
                   "Where a MODEL.json is wanted, a MODEL.onnx is imported in memory.\n\n"
                   "Exit codes:\n");
  for (const cli_told *code = cli_exit_codes; code->name; code++) {
    cs_strbuf_printf(&text, "  %-5s %s\n", code->name, code->text);
  }
  cs_strbuf_printf(&text,
                   "\nExample:\n"
                   "  convsched run models/googlenet.json --policy all\n");
  return cli_write_buffer(NULL, &text);
}
