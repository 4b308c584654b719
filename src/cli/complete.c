/* What a shell offers for the word that is being typed, from the commands, the table of options and
 * the model on the line. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/help.h"
#include "cli/options.h"

#define MOST_ENDINGS 4

typedef struct completion {
  const char *word; /* what is typed of it */
  const cli_command *command;
  const char *model; /* the last argument that is a model; NULL: none */
  cs_strbuf found;
  bool files;
} completion;

static bool begins_with(const char *text, const char *prefix, size_t length) {
  return strncmp(text, prefix, length) == 0;
}

/* Adds head + text where it goes on from the word. */
static void offer(completion *c, const char *head, size_t head_length, const char *text,
                  size_t length, const char *what) {
  cs_strbuf whole = {0};
  cs_strbuf_append(&whole, head, head_length);
  cs_strbuf_append(&whole, text, length);
  if (!whole.failed && whole.data && begins_with(whole.data, c->word, strlen(c->word))) {
    cs_strbuf_printf(&c->found, "%s%s%s\n", whole.data, what ? "\t" : "", what ? what : "");
  }
  cs_strbuf_free(&whole);
}

/* ---- Files ---- */

static bool has_ending(const char *name, const char *const *endings, int n) {
  size_t length = strlen(name);
  for (int i = 0; i < n; i++) {
    size_t wanted = strlen(endings[i]);
    if (length > wanted && strcmp(name + length - wanted, endings[i]) == 0) return true;
  }
  return n == 0;
}

static char *folder_to_read(const char *typed, size_t length) {
  cs_strbuf path = {0};
  char *out = NULL;
  const char *home = getenv("HOME");
  if (home && length > 1 && typed[0] == '~' && typed[1] == '/') {
    cs_strbuf_append(&path, home, strlen(home));
    typed++;
    length--;
  }
  cs_strbuf_append(&path, length > 0 ? typed : ".", length > 0 ? length : 1);
  cs_status_free(cs_strbuf_take(&path, &out));
  return out;
}

/* Folders, with a slash, and files with one of the endings (n 0: all files, below 0: none). What of
 * the word is before `head` is no part of the path. */
static void offer_files(completion *c, size_t head, const char *const *endings, int n) {
  const char *path = c->word + head, *slash = strrchr(path, '/');
  size_t in_folder = slash ? (size_t)(slash - path) + 1 : 0;
  char *folder = folder_to_read(path, in_folder);
  DIR *open = folder ? opendir(folder) : NULL;
  c->files = true;
  for (struct dirent *entry = open ? readdir(open) : NULL; entry; entry = readdir(open)) {
    struct stat info;
    bool hidden = entry->d_name[0] == '.' && path[in_folder] != '.';
    bool self = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    if (hidden || self || strpbrk(entry->d_name, "\n\t")) continue;
    bool is_folder = fstatat(dirfd(open), entry->d_name, &info, 0) == 0 && S_ISDIR(info.st_mode);
    if (!is_folder && (n < 0 || !has_ending(entry->d_name, endings, n))) continue;
    cs_strbuf name = {0};
    cs_strbuf_printf(&name, "%s%s", entry->d_name, is_folder ? "/" : "");
    if (name.data) offer(c, c->word, head + in_folder, name.data, name.length, NULL);
    cs_strbuf_free(&name);
  }
  if (open) closedir(open);
  free(folder);
}

/* The endings of "FILE.jsonl", "MODEL.json…", in the text's first word that has one. */
static int endings_of(const char *value, char *text, size_t size,
                      const char *endings[MOST_ENDINGS]) {
  const char *dot = strchr(value, '.');
  int n = 0;
  if (!dot) return 0;
  size_t length = 1 + strspn(dot + 1, "abcdefghijklmnopqrstuvwxyz0123456789");
  if (length < 2 || length >= size) return 0;
  memcpy(text, dot, length);
  text[length] = '\0';
  endings[n++] = text;
  if (strcmp(text, ".jsonl") == 0) endings[n++] = ".jsonl.gz";
  if (strncmp(value, "A.json", 6) == 0) endings[n++] = ".jsonl"; /* records, one a line */
  if (strncmp(value, "MODEL", 5) == 0 || strncmp(value, "[MODEL", 6) == 0) {
    endings[n++] = strcmp(text, ".json") == 0 ? ".onnx" : ".json";
    if (strcmp(text, ".onnx") == 0) n--; /* a converter takes that alone */
  }
  return n;
}

/* ---- Nodes of the model ---- */

static void offer_nodes(completion *c, size_t head, const char *behind) {
  cs_graph *graph = NULL;
  char *text = NULL;
  if (!c->model) return;
  cs_status st = cli_load_graph(c->model, &graph);
  if (st == CS_OK) st = cs_graph_to_json(graph, &text);
  json_t *root = text ? json_loads(text, 0, NULL) : NULL, *node;
  size_t i;
  json_array_foreach(json_object_get(root, "nodes"), i, node) {
    const char *name = json_string_value(json_object_get(node, "name"));
    cs_strbuf whole = {0};
    cs_strbuf_printf(&whole, "%s%s", name ? name : "", behind);
    if (name && whole.data && !strpbrk(name, "\n\t")) { /* they end what is offered */
      offer(c, c->word, head, whole.data, whole.length,
            json_string_value(json_object_get(node, "op")));
    }
    cs_strbuf_free(&whole);
  }
  json_decref(root);
  cs_string_free(text);
  cs_graph_destroy(graph);
  cs_status_free(st); /* a model that cannot be read has no nodes to offer */
}

/* ---- Values ---- */

static void offer_names(completion *c, size_t head, const char *const *(*names_of)(int *count)) {
  int n;
  const char *const *names = names_of(&n);
  for (int i = 0; i < n; i++) offer(c, c->word, head, names[i], strlen(names[i]), NULL);
}

/* One of "auto|cpu|cuda:N|sim:FILE": what is written in small letters is meant as it stands. */
static void offer_alternative(completion *c, size_t head, const char *text, size_t length) {
  static const char *const profiles[] = {".jsonl", ".jsonl.gz"};
  size_t literal = 0;
  while (literal < length && !(text[literal] >= 'A' && text[literal] <= 'Z')) literal++;
  bool file = length - literal >= 4 && strncmp(text + literal, "FILE", 4) == 0;
  if (length == 4 && strncmp(text, "NAME", 4) == 0) {
    offer_names(c, head, cs_policy_names);
  } else if (file && literal == 0) { /* "FILE.png|FOLDER/": folders are offered, too */
    char ending[32];
    const char *endings[MOST_ENDINGS];
    offer_files(c, head, endings, endings_of(text, ending, sizeof ending, endings));
  } else if (file && literal > 0 && begins_with(c->word + head, text, literal)) {
    offer_files(c, head + literal, profiles, 2);
  } else if (literal > 0 && (literal == length || text[literal - 1] == ':')) {
    offer(c, c->word, head, text, literal, NULL);
  }
}

static void offer_alternatives(completion *c, size_t head, const char *value) {
  const char *end = value + strcspn(value, "[");
  if (end < value + strlen(value)) { /* of a list the last: "f32|f16[,…]" */
    const char *comma = strrchr(c->word + head, ',');
    if (comma) head = (size_t)(comma + 1 - c->word);
  }
  while (value < end) {
    size_t length = strcspn(value, "|[");
    offer_alternative(c, head, value, length);
    value += length + (value[length] == '|');
  }
}

/* `head`: bytes of the word before the value, as of "--plan=". */
static void offer_values(completion *c, size_t head, const char *value) {
  char text[32];
  const char *endings[MOST_ENDINGS];
  if (strncmp(value, "NODE", 4) == 0) {
    const char *equals = strchr(c->word + head, '=');
    if (!equals) offer_nodes(c, head, value[4] == '=' ? "=" : "");
    if (equals && strcmp(value, "NODE[=FILE]") == 0) {
      offer_files(c, (size_t)(equals + 1 - c->word), NULL, 0);
    }
  } else if (strcmp(value, "FIGURE") == 0) {
    offer_names(c, head, cs_page_figure_names);
  } else if (strchr(value, '|') || strcmp(value, "NAME") == 0) {
    offer_alternatives(c, head, value);
  } else if (strcmp(value, "FOLDER") == 0) {
    offer_files(c, head, NULL, -1);
  } else if (strstr(value, "FILE") || (strchr(value, '.') && !strstr(value, "[,"))) {
    const char *equals = strncmp(value, "[NAME=]", 7) == 0 ? strchr(c->word + head, '=') : NULL;
    if (equals) head = (size_t)(equals + 1 - c->word);
    offer_files(c, head, endings, endings_of(value, text, sizeof text, endings));
  }
}

/* ---- Words ---- */

static void offer_commands(completion *c) {
  int n;
  const cli_command *const *commands = cli_commands(&n);
  for (int i = 0; i < n; i++) {
    offer(c, "", 0, commands[i]->name, strlen(commands[i]->name), commands[i]->summary);
  }
  if (c->word[0] == '-') {
    offer(c, "", 0, "--help", 6, "List the commands");
    offer(c, "", 0, "--version", 9, "Print the version");
  }
}

static void offer_options(completion *c) {
  for (const cli_option_entry *entry = cli_option_entries; entry->option.name; entry++) {
    if (!cli_takes(c->command, entry)) continue;
    offer(c, "--", 2, entry->option.name, strlen(entry->option.name), entry->option.doc);
  }
}

/* "[path|list|clear]" or files: "[MODEL.json…]", "MODEL.json\n--diff A.plan.json B.plan.json". */
static void offer_arguments(completion *c) {
  const char *value = c->command->arguments;
  if (strchr(value, '|')) {
    size_t length = strlen(value);
    cs_strbuf plain = {0};
    bool optional = length > 2 && value[0] == '[' && value[length - 1] == ']';
    cs_strbuf_append(&plain, value + optional, length - (optional ? 2 : 0));
    if (plain.data) offer_alternatives(c, 0, plain.data);
    cs_strbuf_free(&plain);
  } else if (*value) {
    offer_values(c, 0, value);
  }
}

/* The option that a word names (--name, --name=…, -o); NULL: none of the command's. `length`: of
 * the name. */
static const cli_option_entry *option_of(const cli_command *command, const char *word) {
  size_t length = strcspn(word, "=");
  for (const cli_option_entry *entry = cli_option_entries; entry->option.name; entry++) {
    const struct argp_option *option = &entry->option;
    if (!cli_takes(command, entry)) continue;
    bool is_long = length > 2 && strlen(option->name) == length - 2 &&
                   strncmp(word, "--", 2) == 0 && strncmp(word + 2, option->name, length - 2) == 0;
    bool is_short =
        strlen(word) == 2 && word[0] == '-' && option->key < 128 && word[1] == option->key;
    if (is_long || is_short) return entry;
  }
  return NULL;
}

/* Goes over the words before the last; the option that waits for its value, or NULL. */
static const cli_option_entry *read_words(completion *c, int n, char **words) {
  const cli_option_entry *waiting = NULL;
  for (int i = 1; i < n - 1; i++) {
    if (waiting) {
      waiting = NULL;
      continue;
    }
    const cli_option_entry *option = option_of(c->command, words[i]);
    if (option && option->option.arg && !strchr(words[i], '=')) waiting = option;
    if (words[i][0] != '-') c->model = words[i];
  }
  return waiting;
}

static void complete(completion *c, int n, char **words) {
  if (n == 1) {
    offer_commands(c);
    return;
  }
  c->command = cli_find_command(words[0]);
  if (!c->command) return;
  const cli_option_entry *waiting = read_words(c, n, words);
  const cli_option_entry *option = option_of(c->command, c->word);
  const char *equals = strchr(c->word, '=');
  if (waiting) {
    offer_values(c, 0, waiting->option.arg);
  } else if (option && equals && option->option.arg) {
    offer_values(c, (size_t)(equals + 1 - c->word), option->option.arg);
  } else if (c->word[0] == '-') {
    offer_options(c);
  } else {
    offer_arguments(c);
  }
}

cs_status cli_complete(int n, char **words) {
  completion c = {.word = n > 0 ? words[n - 1] : ""};
  cs_strbuf text = {0};
  if (n > 0) complete(&c, n, words);
  cs_strbuf_printf(&text, "%s\n%s", c.files ? "files" : "words", c.found.data ? c.found.data : "");
  text.failed |= c.found.failed;
  cs_strbuf_free(&c.found);
  return cli_write_buffer(NULL, &text);
}
