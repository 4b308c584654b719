/* What is told of commands and options: --help, man pages, completion. All of it comes from the
 * commands and the table of options. */
#ifndef CONVSCHED_CLI_HELP_H_
#define CONVSCHED_CLI_HELP_H_

#include "base/base.h"
#include "cli/cli.h"

#define CLI_HELP_COLUMNS 79

/* A pair of what is listed with its explanation; ended by a name of NULL. */
typedef struct cli_told {
  const char *name, *text;
} cli_told;
extern const cli_told cli_exit_codes[], cli_environment[], cli_files[];

/* The lines of a command's help behind '\v': paragraphs, which are free text, and examples, which
 * are indented by two spaces and are what a shell takes. NULL where there are none. */
const char *cli_notes_of(const char *help);
/* The next line of *notes, which is moved behind it; false at the end. */
bool cli_next_line(const char **notes, const char **line, size_t *length);
/* These for a terminal: paragraphs wrapped; examples that are wider end in a backslash and go on in
 * the next line. */
void cli_add_notes(const char *help, cs_strbuf *out);

/* `convsched --help` */
cs_status cli_print_help(void) CS_MUST_USE;
/* convsched.1 and a page for every command, in a folder that is made where it is not there. */
cs_status cli_write_man_pages(const char *folder) CS_MUST_USE;
/* What can stand in place of the last of the words behind `convsched`: a line "words" or "files"
 * (what follows are names of files), then a line for each, with a tab and an explanation where
 * there is one. */
cs_status cli_complete(int n, char **words) CS_MUST_USE;

#endif
