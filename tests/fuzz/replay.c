/* Runs a target over files, and over the files of folders: the corpus as a test, without libFuzzer.
 */
#include <dirent.h>
#include <sys/stat.h>

#include "base/file.h"
#include "fuzz/fuzz.h"

/* An input's few KB are no reason for more; what a sanitizer finds ends the process. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "max_allocation_size_mb=256";
}
__attribute__((visibility("default"))) const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) {
  return "halt_on_error=1:print_stacktrace=1";
}

static int n_files;

static void replay(const char *path) {
  char *data = NULL;
  size_t length = 0;
  fuzz_want_ok(cs_file_read(path, SIZE_MAX / 2, &data, &length), "reading");
  /* As long as it is: what reads behind it is seen. */
  uint8_t *exact = malloc(length ? length : 1);
  FUZZ_CHECK(exact, "no memory");
  if (length) memcpy(exact, data, length);
  free(data);
  double start = cs_now_seconds();
  (void)LLVMFuzzerTestOneInput(exact, length);
  double seconds = cs_now_seconds() - start;
  if (seconds > 0.5) printf("%s: slow, %.1f s\n", path, seconds);
  free(exact);
  n_files++;
}

static void replay_folder(const char *path) {
  struct dirent **entries = NULL;
  int n = scandir(path, &entries, NULL, alphasort);
  FUZZ_CHECK(n >= 0, "%s", path);
  for (int i = 0; i < n; i++) {
    char file[4096];
    snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
    if (entries[i]->d_name[0] != '.') replay(file);
    free(entries[i]);
  }
  free(entries);
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    struct stat info;
    if (stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode)) {
      replay_folder(argv[i]);
    } else {
      replay(argv[i]);
    }
  }
  printf("%d inputs\n", n_files);
  /* A corpus that has gone is no success. */
  return n_files > 0 ? 0 : 1;
}
