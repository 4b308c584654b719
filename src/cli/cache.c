/* `convsched cache`: the folder of measurements, what is in it, and its removal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "cli/cli.h"

/* ---- path ---- */

static cs_status print_path(const cli_options *options) {
  char *path = NULL;
  cs_strbuf text = {0};
  if (options->cache_dir) {
    cs_strbuf_printf(&text, "%s\n", options->cache_dir);
    return cli_write_buffer(NULL, &text);
  }
  CS_RETURN_IF_ERROR(cs_default_cache_directory(&path));
  cs_strbuf_printf(&text, "%s\n", path);
  cs_string_free(path);
  return cli_write_buffer(NULL, &text);
}

/* ---- list ---- */

/* The name inside an identity, where the device itself was not recorded: behind "name=" or in the
 * second part of "cpu|NAME|…". */
static void name_of_identity(const char *identity, char *out, size_t size) {
  const char *start = strstr(identity, "name=");
  if (start) {
    start += strlen("name=");
  } else {
    start = strchr(identity, '|');
    start = start ? start + 1 : identity;
  }
  snprintf(out, size, "%.*s", (int)strcspn(start, ";|"), start);
}

static void format_time(json_int_t seconds, char *out, size_t size) {
  time_t when = (time_t)seconds;
  struct tm parts;
  if (!localtime_r(&when, &parts) || strftime(out, size, "%Y-%m-%d %H:%M", &parts) == 0) {
    snprintf(out, size, "%lld", (long long)seconds);
  }
}

static long long number(const json_t *object, const char *key) {
  return (long long)json_integer_value(json_object_get(object, key));
}

static void add_file(cs_strbuf *text, const json_t *file) {
  char device[64] = "", used[32];
  const char *name = json_string_value(json_object_get(file, "device"));
  const char *identity = json_string_value(json_object_get(file, "identity"));
  const char *error = json_string_value(json_object_get(file, "error"));
  const char *path = json_string_value(json_object_get(file, "file"));
  const char *slash = strrchr(path, '/');
  format_time(number(file, "last_use"), used, sizeof used);
  cs_strbuf_printf(text, "%-32s %10.2f  %s  ", slash ? slash + 1 : path,
                   (double)number(file, "bytes") / 1048576, used);
  if (error) {
    cs_strbuf_printf(text, "%s\n", error);
    return;
  }
  name_of_identity(identity, device, sizeof device);
  cs_strbuf_printf(text, "%6lld %10lld %10lld %8lld %8lld  %s\n", number(file, "method"),
                   number(file, "operations"), number(file, "records"), number(file, "kernels"),
                   number(file, "coruns"), name ? name : device);
}

static cs_status print_list(const cli_options *options) {
  char *json = NULL;
  CS_RETURN_IF_ERROR(cs_cache_json(options->cache_dir, &json));
  if (options->json) {
    cs_status st = cli_write(options->json, json);
    cs_string_free(json);
    return st;
  }
  json_t *root = json_loads(json, 0, NULL), *file;
  cs_string_free(json);
  if (!root) return cs_no_memory("a list of files", 0);
  size_t i;
  const json_t *files = json_object_get(root, "files");
  cs_strbuf text = {0};
  if (json_array_size(files) > 0) {
    cs_strbuf_printf(&text, "%-32s %10s  %-16s  %6s %10s %10s %8s %8s  %s\n", "file", "MiB",
                     "last use", "method", "operations", "records", "kernels", "co-runs", "device");
  }
  json_array_foreach(files, i, file) add_file(&text, file);
  cs_strbuf_printf(&text, "%s: %zu profile%s, %.2f MiB",
                   json_string_value(json_object_get(root, "directory")), i, i == 1 ? "" : "s",
                   (double)number(root, "bytes") / 1048576);
  if (number(root, "cap_bytes") > 0) {
    cs_strbuf_printf(&text, " of %.0f", (double)number(root, "cap_bytes") / 1048576);
  }
  cs_strbuf_printf(&text, "\n");
  json_decref(root);
  return cli_write_buffer(NULL, &text);
}

/* ---- clear ---- */

static cs_status clear(const cli_options *options) {
  int files = 0;
  int64_t bytes = 0;
  cs_strbuf text = {0};
  CS_RETURN_IF_ERROR(cs_cache_clear(options->cache_dir, options->older_than, &files, &bytes));
  cs_strbuf_printf(&text, "%d profile%s removed, %.2f MiB\n", files, files == 1 ? "" : "s",
                   (double)bytes / 1048576);
  return cli_write_buffer(NULL, &text);
}

static cs_status cache_command(const cli_options *options) {
  const char *action = options->models.n > 0 ? options->models.items[0] : "path";
  if (options->older_than > 0 && strcmp(action, "clear") != 0) {
    return cli_error(CS_CODE_USAGE, "--older-than: of `cache clear` only");
  }
  if (options->json && strcmp(action, "list") != 0) {
    return cli_error(CS_CODE_USAGE, "--json: of `cache list` only");
  }
  if (strcmp(action, "path") == 0) return print_path(options);
  if (strcmp(action, "list") == 0) return print_list(options);
  if (strcmp(action, "clear") == 0) return clear(options);
  return cli_error(CS_CODE_USAGE, "cache \"%s\": wanted path, list or clear", action);
}

const cli_command cli_cache = {
    .name = "cache",
    .arguments = "[path|list|clear]",
    .summary = "Show or remove what was measured",
    .help =
        "path (default) prints the folder of the profile database, list says what each device's "
        "file holds, clear removes them. A folder that grows beyond CONVSCHED_CACHE_CAP bytes "
        "(default 1G; 0: no limit) loses other devices' files, used longest ago first, when it is "
        "opened.\v"
        "Examples:\n  convsched cache list\n  convsched cache clear --older-than 30",
    .options = CLI_JSON | CLI_CACHE,
    .max_models = 1,
    .run = cache_command};
