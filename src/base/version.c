#include <stdlib.h>

#include "convsched/convsched.h"

#define CS_TEXT_(x) #x
#define CS_TEXT(x) CS_TEXT_(x)

const char *cs_version_string(void) {
  return CS_TEXT(CS_VERSION_MAJOR) "." CS_TEXT(CS_VERSION_MINOR) "." CS_TEXT(CS_VERSION_PATCH);
}

int cs_version_number(void) {
  return CS_VERSION_MAJOR * 10000 + CS_VERSION_MINOR * 100 + CS_VERSION_PATCH;
}

void cs_string_free(char *string) {
  free(string);
}
