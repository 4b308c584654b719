/* Profiles as files that travel: export and import. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "profiler/database.h"
#include "profiler/record_json.h"

static cs_status nothing_measured(const cs_profile *profile) {
  return cs_error(CS_CODE_NOT_FOUND, "%s: nothing is measured yet on %s", profile->path,
                  profile->identity);
}

cs_status cs_profile_export(const cs_profile *profile, const char *path) {
  cs_status st = CS_OK;
  char *text = NULL;
  size_t length = 0;
  int n = 0;
  cs_strbuf lines = {0};
  if (!cs_profile_path(profile)) {
    return cs_error(CS_CODE_IO,
                    "the measurements of this run are in memory only: nothing to export");
  }
  if (profile->n_entries == 0) return nothing_measured(profile);
  CS_TRY(st, cs_file_read(profile->path, CS_PROFILE_FILE_LIMIT, &text, &length), done);
  CS_TRY(st, cs_lines_latest(profile->identity, text, length, &lines, &n), done);
  if (n == 0) CS_TRY(st, nothing_measured(profile), done);
  st = cs_write_maybe_gzip(path, lines.data, lines.length);
done:
  free(text);
  cs_strbuf_free(&lines);
  return st;
}

/* Why a file had nothing to take. */
static cs_status refuse(const cs_profile *profile, const char *path) {
  cs_profile *other = NULL;
  CS_RETURN_IF_ERROR(cs_profile_open_file(path, NULL, &other));
  cs_status st = cs_error(CS_CODE_BAD_INPUT, "%s: a profile of \"%s\", %s; this device is \"%s\"",
                          path, cs_profile_identity(other),
                          strcmp(other->identity, profile->identity) == 0
                              ? "of which no line is of this version of measuring"
                              : "another device or other versions of its libraries",
                          profile->identity);
  cs_profile_close(other);
  return st;
}

cs_status cs_profile_import(cs_profile *profile, const char *path, int *taken) {
  cs_status st = CS_OK;
  char *text = NULL;
  size_t length = 0;
  cs_strbuf lines = {0};
  *taken = 0;
  if (!cs_profile_path(profile)) {
    return cs_error(CS_CODE_IO, "the profile database cannot be written: nothing can be imported");
  }
  CS_TRY(st, cs_read_maybe_gzip(path, &text, &length), done);
  CS_TRY(st, cs_lines_latest(profile->identity, text, length, &lines, taken), done);
  if (*taken == 0) {
    st = refuse(profile, path);
    goto done;
  }
  CS_TRY(st, cs_database_append(profile->path, lines.data, lines.length), done);
  cs_profile_forget(profile);
  st = cs_profile_load(profile);
done:
  free(text);
  cs_strbuf_free(&lines);
  return st;
}
