/* Names of kernels and algorithms, shortened for a person. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"

#define LONGEST_KERNEL 48
#define KERNEL_HEAD 34

/* The last identifier of a mangled function's (nested) name: its length, and where it begins. */
static size_t mangled_identifier(const char *name, const char **begin) {
  const char *at = name + 2; /* behind _Z */
  size_t length = 0;
  if (*at == 'N') at++;
  while (isdigit((unsigned char)*at)) {
    char *end;
    size_t part = strtoul(at, &end, 10);
    if (part == 0 || part > strlen(end)) break;
    *begin = end;
    length = part;
    at = end + part;
  }
  return length;
}

static bool is_wrapper(const char *name, size_t length) {
  static const char *const wrappers[] = {"Kernel", "Kernel2", "device_kernel"};
  for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0]; i++) {
    if (strlen(wrappers[i]) == length && strncmp(wrappers[i], name, length) == 0) return true;
  }
  return false;
}

/* Of a readable C++ name: behind the return type and the scopes, before < and (. CUTLASS's wrappers
 * say nothing: their first template argument does. */
static size_t plain_identifier(const char *name, const char **begin) {
  size_t end = strcspn(name, "<(,>");
  size_t start = end;
  while (start > 0 && name[start - 1] != ' ' && name[start - 1] != ':') start--;
  *begin = name + start;
  if (name[end] == '<' && is_wrapper(*begin, end - start)) {
    return plain_identifier(name + end + 1, begin);
  }
  return end - start;
}

void cs_report_kernel_name(const char *name, char out[64]) {
  static const char tail[] = "_kernel";
  const char *begin = name;
  size_t length = strncmp(name, "_Z", 2) == 0 ? mangled_identifier(name, &begin) : 0;
  if (length == 0) length = plain_identifier(name, &begin);
  if (length == 0) {
    begin = name;
    length = strlen(name);
  }
  size_t tail_length = sizeof tail - 1;
  if (length > tail_length && strncmp(begin + length - tail_length, tail, tail_length) == 0) {
    length -= tail_length;
  }
  if (length <= LONGEST_KERNEL) {
    snprintf(out, 64, "%.*s", (int)length, begin);
    return;
  }
  size_t rest = LONGEST_KERNEL - KERNEL_HEAD - 1;
  snprintf(out, 64, "%.*s…%.*s", KERNEL_HEAD, begin, (int)rest, begin + length - rest);
}

cs_algorithm_kind cs_report_algorithm(const cs_candidate *candidate, char out[64]) {
  const char *family = candidate->family ? candidate->family : "";
  const char *colon = strchr(candidate->id, ':');
  const char *name = colon ? colon + 1 : candidate->id;
  size_t length = strlen(name);
  cs_algorithm_kind kind = CS_ALGORITHM_OTHER;
  if (strncmp(family, "cudnn.legacy", 12) == 0) {
    kind = CS_ALGORITHM_LEGACY;
    length = strcspn(name, "/");
  } else if (strncmp(family, "cudnn.graph", 11) == 0) {
    kind = CS_ALGORITHM_ENGINE;
    length = strcspn(name, "{");
  } else if (colon) {
    length = strcspn(name, "/");
  }
  snprintf(out, 64, "%.*s", (int)(length < 63 ? length : 63), name);
  return kind;
}
