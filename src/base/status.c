#include "base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

struct cs_error {
  cs_code code;
  char *message; /* behind the struct, or static */
};

static struct cs_error out_of_memory = {CS_CODE_NO_MEMORY, "out of host memory"};

static cs_status error_of_text(cs_code code, const char *text, size_t length) {
  struct cs_error *error = malloc(sizeof *error + length + 1);
  if (!error) return &out_of_memory;
  error->code = code;
  error->message = (char *)(error + 1);
  memcpy(error->message, text, length);
  error->message[length] = '\0';
  return error;
}

static char *format_text(const char *format, va_list args) CS_PRINTF(1, 0);
static char *format_text(const char *format, va_list args) {
  va_list copy;
  va_copy(copy, args);
  int length = vsnprintf(NULL, 0, format, copy);
  va_end(copy);
  if (length < 0) return NULL;
  char *text = malloc((size_t)length + 1);
  if (text) vsnprintf(text, (size_t)length + 1, format, args);
  return text;
}

cs_status cs_error(cs_code code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *text = format_text(format, args);
  va_end(args);
  if (!text) return &out_of_memory;
  cs_status status = error_of_text(code, text, strlen(text));
  free(text);
  return status;
}

cs_status cs_annotate(cs_status status, const char *format, ...) {
  if (status == CS_OK) return CS_OK;
  va_list args;
  va_start(args, format);
  char *prefix = format_text(format, args);
  va_end(args);
  if (!prefix) return status;
  cs_status annotated = cs_error(status->code, "%s%s", prefix, status->message);
  free(prefix);
  cs_status_free(status);
  return annotated;
}

cs_status cs_no_memory(const char *what, size_t bytes) {
  return cs_error(CS_CODE_NO_MEMORY, "out of host memory: %zu bytes for %s", bytes, what);
}

cs_status cs_io_error(const char *path, const char *action, int errno_value) {
  return cs_error(CS_CODE_IO, "%s: cannot %s: %s", path, action, strerror(errno_value));
}

cs_code cs_status_code(cs_status status) {
  return status ? status->code : CS_CODE_OK;
}

const char *cs_status_message(cs_status status) {
  return status ? status->message : "ok";
}

int cs_status_exit_code(cs_status status) {
  switch (cs_status_code(status)) {
#define CS_CODE_CASE(name, exit_code, text) \
  case CS_CODE_##name:                      \
    return exit_code;
    CS_CODES(CS_CODE_CASE)
#undef CS_CODE_CASE
  }
  return 4;
}

void cs_status_free(cs_status status) {
  if (status != &out_of_memory) free(status);
}
