/* Man pages, of the commands and the table of options. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/help.h"
#include "cli/options.h"

/* ---- roff ---- */

/* The code point that begins at *text, which is moved behind it (the texts are ours: valid UTF-8).
 */
static unsigned next_character(const char **text) {
  const unsigned char *at = (const unsigned char *)*text;
  int more = *at >= 0xF0 ? 3 : *at >= 0xE0 ? 2 : *at >= 0xC0 ? 1 : 0;
  unsigned code = more == 3 ? *at & 0x07 : more == 2 ? *at & 0x0F : more == 1 ? *at & 0x1F : *at;
  for (int i = 1; i <= more; i++) code = code << 6 | (at[i] & 0x3F);
  *text += 1 + more;
  return code;
}

/* Text that is printed as it is, in ASCII; a line never begins with a request. */
static void add_text(cs_strbuf *out, const char *text, size_t length) {
  const char *end = text + length;
  while (text < end) {
    bool first = out->length == 0 || out->data[out->length - 1] == '\n';
    unsigned code = next_character(&text);
    if (code == '\\') {
      cs_strbuf_printf(out, "\\e");
    } else if (code == '-') {
      cs_strbuf_printf(out, "\\-");
    } else if (code == '~' || code == '^' || code == '`' || code == '\'') {
      cs_strbuf_printf(out, "\\(%s",
                       code == '~'   ? "ti"
                       : code == '^' ? "ha"
                       : code == '`' ? "ga"
                                     : "aq");
    } else if (code > 126) {
      cs_strbuf_printf(out, "\\[u%04X]", code);
    } else {
      cs_strbuf_printf(out, "%s%c", first && code == '.' ? "\\&" : "", (int)code);
    }
  }
}

static void add_string(cs_strbuf *out, const char *text) {
  add_text(out, text, strlen(text));
}

static void add_heading(cs_strbuf *out, const char *name, const char *summary) {
  cs_strbuf_printf(out, ".TH \"CONVSCHED");
  if (name) {
    cs_strbuf_printf(out, "\\-");
    for (const char *c = name; *c; c++) {
      cs_strbuf_printf(out, *c == '-' ? "\\-" : "%c", toupper((unsigned char)*c));
    }
  }
  cs_strbuf_printf(out, "\" \"1\" \"\" \"convsched %s\" \"User Commands\"\n", cs_version_string());
  cs_strbuf_printf(out, ".SH NAME\nconvsched%s", name ? "\\-" : "");
  if (name) add_string(out, name);
  cs_strbuf_printf(out, " \\- ");
  add_string(out, summary);
  cs_strbuf_printf(out, "\n");
}

static void add_told(cs_strbuf *out, const char *heading, const cli_told *told) {
  cs_strbuf_printf(out, ".SH %s\n", heading);
  for (; told->name; told++) {
    cs_strbuf_printf(out, ".TP\n.B ");
    add_string(out, told->name);
    cs_strbuf_printf(out, "\n");
    add_string(out, told->text);
    cs_strbuf_printf(out, "\n");
  }
}

/* ---- A command's page ---- */

/* A line of usage for each line of `arguments`. */
static void add_synopsis(cs_strbuf *out, const cli_command *command) {
  const char *rest = command->arguments, *line = "";
  size_t length = 0;
  cs_strbuf_printf(out, ".SH SYNOPSIS\n");
  bool more = cli_next_line(&rest, &line, &length), first = true;
  while (more || first) {
    cs_strbuf_printf(out, "%s.B convsched ", first ? "" : ".br\n");
    add_string(out, command->name);
    cs_strbuf_printf(out, "\n[\\fIOPTION\\fR...] ");
    add_text(out, line, length);
    cs_strbuf_printf(out, "\n");
    first = false;
    more = cli_next_line(&rest, &line, &length);
  }
}

static void add_options(cs_strbuf *out, const cli_command *command) {
  cs_strbuf_printf(out, ".SH OPTIONS\n");
  for (const cli_option_entry *entry = cli_option_entries; entry->option.name; entry++) {
    const struct argp_option *option = &entry->option;
    if (!cli_takes(command, entry)) continue;
    cs_strbuf_printf(out, ".TP\n");
    if (option->key < 128) {
      cs_strbuf_printf(out, "\\fB\\-%c\\fR", option->key);
      if (option->arg) {
        cs_strbuf_printf(out, " \\fI");
        add_string(out, option->arg);
        cs_strbuf_printf(out, "\\fR");
      }
      cs_strbuf_printf(out, ", ");
    }
    cs_strbuf_printf(out, "\\fB\\-\\-");
    add_string(out, option->name);
    cs_strbuf_printf(out, "\\fR");
    if (option->arg) {
      cs_strbuf_printf(out, "=\\fI");
      add_string(out, option->arg);
      cs_strbuf_printf(out, "\\fR");
    }
    cs_strbuf_printf(out, "\n");
    add_string(out, option->doc);
    cs_strbuf_printf(out, "\n");
  }
}

/* "Example:" and "Examples:": the section is called that. */
static bool is_title(const char *line, size_t length) {
  return (length == 8 && strncmp(line, "Example:", 8) == 0) ||
         (length == 9 && strncmp(line, "Examples:", 9) == 0);
}

static void add_examples(cs_strbuf *out, const char *help) {
  cs_strbuf text = {0};
  cli_add_notes(help, &text);
  const char *notes = text.data ? text.data : "", *line;
  size_t length;
  bool literal = false;
  cs_strbuf_printf(out, ".SH EXAMPLES\n");
  while (cli_next_line(&notes, &line, &length)) {
    bool wanted = length > 0 && line[0] == ' ';
    if (wanted != literal) cs_strbuf_printf(out, wanted ? ".PP\n.nf\n.RS 2\n" : ".RE\n.fi\n.PP\n");
    literal = wanted;
    if (length == 0 || is_title(line, length)) continue;
    size_t indent = wanted && length > 2 ? 2 : 0;
    add_text(out, line + indent, length - indent);
    cs_strbuf_printf(out, "\n");
  }
  if (literal) cs_strbuf_printf(out, ".RE\n.fi\n");
  out->failed |= text.failed;
  cs_strbuf_free(&text);
}

static void add_end(cs_strbuf *out) {
  add_told(out, "EXIT STATUS", cli_exit_codes);
  add_told(out, "ENVIRONMENT", cli_environment);
  add_told(out, "FILES", cli_files);
  cs_strbuf_printf(out, ".SH SEE ALSO\n");
}

static void add_command_page(cs_strbuf *out, const cli_command *command) {
  size_t length = strcspn(command->help, "\v");
  add_heading(out, command->name, command->summary);
  add_synopsis(out, command);
  cs_strbuf_printf(out, ".SH DESCRIPTION\n");
  add_text(out, command->help, length);
  cs_strbuf_printf(out, "\n");
  add_options(out, command);
  add_examples(out, command->help);
  add_end(out);
  cs_strbuf_printf(out, ".BR convsched (1)\n");
}

static void add_main_page(cs_strbuf *out, const cli_command *const *commands, int n) {
  add_heading(out, NULL, "run CNNs with algorithm, stream, order and memory chosen together");
  cs_strbuf_printf(out,
                   ".SH SYNOPSIS\n.B convsched\n\\fICOMMAND\\fR [\\fIARGUMENT\\fR...] "
                   "[\\fIOPTION\\fR...]\n"
                   ".SH DESCRIPTION\n"
                   "Runs convolutional networks with branches so that independent operations "
                   "overlap: what can run each of them is measured, and algorithms, streams, order "
                   "and memory are chosen together. Where a command wants a \\fIMODEL.json\\fR, a "
                   "\\fIMODEL.onnx\\fR is imported in memory.\n"
                   ".SH COMMANDS\n");
  for (int i = 0; i < n; i++) {
    cs_strbuf_printf(out, ".TP\n.BR convsched\\-");
    add_string(out, commands[i]->name);
    cs_strbuf_printf(out, " (1)\n");
    add_string(out, commands[i]->summary);
    cs_strbuf_printf(out, "\n");
  }
  add_end(out);
  for (int i = 0; i < n; i++) {
    cs_strbuf_printf(out, ".BR convsched\\-");
    add_string(out, commands[i]->name);
    cs_strbuf_printf(out, " (1)%s\n", i + 1 < n ? "," : "");
  }
}

/* ---- Files ---- */

static cs_status save_page(const char *folder, const char *name, cs_strbuf *text) {
  char *page = NULL, *path = NULL;
  cs_strbuf where = {0};
  cs_status st = CS_OK;
  cs_strbuf_printf(&where, "%s/convsched%s%s.1", folder, *name ? "-" : "", name);
  CS_TRY(st, cs_strbuf_take(&where, &path), done);
  CS_TRY(st, cs_strbuf_take(text, &page), done);
  st = cs_text_save(path, page);
done:
  cs_strbuf_free(text);
  free(page);
  free(path);
  return st;
}

cs_status cli_write_man_pages(const char *folder) {
  int n;
  const cli_command *const *commands = cli_commands(&n);
  cs_strbuf text = {0};
  CS_RETURN_IF_ERROR(cs_make_directories(folder));
  add_main_page(&text, commands, n);
  CS_RETURN_IF_ERROR(save_page(folder, "", &text));
  for (int i = 0; i < n; i++) {
    add_command_page(&text, commands[i]);
    CS_RETURN_IF_ERROR(save_page(folder, commands[i]->name, &text));
  }
  return CS_OK;
}
