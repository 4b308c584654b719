/* Files that one command both reads and writes, or writes twice: one would be lost. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "cli/cli.h"

typedef struct named_file {
  const char *option; /* "" of a model */
  const char *path;   /* NULL: not given */
} named_file;

/* The last part of a path; *in_folder: bytes before it. */
static const char *name_of(const char *path, size_t *in_folder) {
  const char *slash = strrchr(path, '/');
  *in_folder = slash ? (size_t)(slash - path) + 1 : 0;
  return path + *in_folder;
}

static bool stat_folder(const char *path, size_t length, struct stat *out) {
  char folder[PATH_MAX];
  if (length >= sizeof folder) return false;
  snprintf(folder, sizeof folder, "%.*s", (int)length, path);
  return stat(length > 0 ? folder : ".", out) == 0;
}

/* Of files that are still to be made. */
static bool is_same_name(const char *a, const char *b) {
  struct stat x, y;
  size_t in_a, in_b;
  if (strcmp(a, b) == 0) return true;
  if (strcmp(name_of(a, &in_a), name_of(b, &in_b)) != 0) return false;
  return stat_folder(a, in_a, &x) && stat_folder(b, in_b, &y) && x.st_dev == y.st_dev &&
         x.st_ino == y.st_ino;
}

/* What is no regular file, as /dev/null, loses nothing. */
static bool is_same_file(const char *a, const char *b) {
  struct stat x, y;
  if (stat(a, &x) != 0 || stat(b, &y) != 0) return is_same_name(a, b);
  return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static cs_status check_read(const named_file *written, const char *option, const char *path) {
  if (!path || !written->path || !is_same_file(path, written->path)) return CS_OK;
  return cli_error(CS_CODE_USAGE, "%s %s: would replace %s%s, which is read", written->option,
                   written->path, option, path);
}

cs_status cli_check_kept_file(const char *option, const char *written, const char *read) {
  const named_file file = {option, written};
  return check_read(&file, "", read);
}

/* Files of "FILE" or "NAME=FILE", where both may hold a '=': what is behind any of them. */
static cs_status check_list(const named_file *written, const char *option, const cli_list *list) {
  for (int i = 0; i < list->n; i++) {
    const char *path = list->items[i];
    do {
      CS_RETURN_IF_ERROR(check_read(written, option, path));
      path = strchr(path, '=');
    } while (path++);
  }
  return CS_OK;
}

static cs_status check_written(const cli_options *options, const named_file *written) {
  const char *device = options->device;
  const char *simulated = device && strncmp(device, "sim:", 4) == 0 ? device + 4 : NULL;
  for (int m = 0; m < options->models.n; m++) {
    CS_RETURN_IF_ERROR(check_read(written, "", options->models.items[m]));
  }
  CS_RETURN_IF_ERROR(check_read(written, "--weights ", options->weights));
  CS_RETURN_IF_ERROR(check_read(written, "--latents ", options->latents));
  CS_RETURN_IF_ERROR(check_list(written, "--input ", &options->inputs));
  CS_RETURN_IF_ERROR(check_read(written, "--plan ", options->plan));
  CS_RETURN_IF_ERROR(check_read(written, "--from ", options->from));
  CS_RETURN_IF_ERROR(check_read(written, "--profile ", options->profile));
  CS_RETURN_IF_ERROR(check_read(written, "--peers ", options->peers));
  return check_read(written, "--device sim:", simulated);
}

static cs_status check_file(const named_file *written) {
  if (!written->path || strcmp(written->path, "-") != 0) return CS_OK;
  return cli_error(CS_CODE_USAGE,
                   "%s -: wanted a file (./- for one of that name): standard output is the table's",
                   written->option);
}

/* The files that `run` writes its results to. */
static cs_status check_results(const cli_options *options, const named_file *json) {
  for (int i = 0; i < options->outputs.n; i++) {
    const char *path = options->outputs.items[i];
    do {
      const named_file output = {"--output", path};
      CS_RETURN_IF_ERROR(check_file(&output));
      CS_RETURN_IF_ERROR(cli_check_other_file("--json", json->path, "--output", path));
      CS_RETURN_IF_ERROR(check_written(options, &output));
      path = strchr(path, '=');
    } while (path++);
  }
  return CS_OK;
}

static cs_status check_pairs(const named_file *const *written, int n) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < i; j++) {
      const named_file *a = written[i], *b = written[j];
      CS_RETURN_IF_ERROR(cli_check_other_file(a->option, a->path, b->option, b->path));
    }
  }
  return CS_OK;
}

cs_status cli_check_files(const cli_options *options) {
  bool to_stdout = options->json && strcmp(options->json, "-") == 0;
  const named_file json = {"--json", to_stdout ? NULL : options->json},
                   output = {"--output", options->output}, onnx = {"--onnx", options->onnx},
                   page = {"--page", options->page};
  const named_file *const written[] = {&output, &onnx, &page, &json};
  CS_RETURN_IF_ERROR(check_file(&output));
  CS_RETURN_IF_ERROR(check_file(&onnx));
  CS_RETURN_IF_ERROR(check_file(&page));
  CS_RETURN_IF_ERROR(check_pairs(written, sizeof written / sizeof *written));
  CS_RETURN_IF_ERROR(check_results(options, &json));
  CS_RETURN_IF_ERROR(check_written(options, &json));
  CS_RETURN_IF_ERROR(check_written(options, &onnx));
  CS_RETURN_IF_ERROR(check_written(options, &page));
  return check_written(options, &output);
}

cs_status cli_check_other_file(const char *option, const char *path, const char *other_option,
                               const char *other) {
  if (!path || !other || !is_same_file(path, other)) return CS_OK;
  return cli_error(CS_CODE_USAGE, "%s %s: is the file of %s, too", option, path, other_option);
}

cs_status cli_check_written_file(const cli_options *options, const char *option, const char *path) {
  const named_file written = {option, path};
  CS_RETURN_IF_ERROR(check_file(&written));
  CS_RETURN_IF_ERROR(check_written(options, &written));
  return cli_check_other_file(option, path, "--json", options->json);
}
