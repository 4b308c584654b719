#include "profiler/identity.h"

#include <stdio.h>
#include <string.h>

/* Fields of an identity lie between these. */
#define SEPARATORS ";|"

/* What fields of software begin with. */
static const char *const software[] = {
    "driver=", "driver_cuda=", "cuda=", "cudnn=", "cudnn_built=", "measure=", "onednn "};

static bool is_software(const char *field) {
  for (size_t i = 0; i < sizeof software / sizeof software[0]; i++) {
    if (strncmp(field, software[i], strlen(software[i])) == 0) return true;
  }
  return false;
}

/* The next field of the hardware from *at on; NULL at the end. */
static const char *next_field(const char **at, size_t *length) {
  while (**at) {
    const char *field = *at;
    *length = strcspn(field, SEPARATORS);
    *at = field + *length + (field[*length] ? 1 : 0);
    if (!is_software(field)) return field;
  }
  return NULL;
}

bool cs_identity_same_hardware(const char *a, const char *b) {
  for (;;) {
    size_t n_a = 0, n_b = 0;
    const char *x = next_field(&a, &n_a), *y = next_field(&b, &n_b);
    if (!x || !y) return !x && !y;
    if (n_a != n_b || memcmp(x, y, n_a) != 0) return false;
  }
}

void cs_identity_library(const char *identity, char *out, size_t size) {
  static const struct {
    const char *field, *name;
  } libraries[] = {{"cudnn=", "cuDNN"}, {"onednn ", "oneDNN"}};
  out[0] = '\0';
  for (const char *field = identity; *field;) {
    size_t length = strcspn(field, SEPARATORS);
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
      size_t key = strlen(libraries[i].field);
      if (strncmp(field, libraries[i].field, key) != 0) continue;
      snprintf(out, size, "%s %.*s", libraries[i].name, (int)(length - key), field + key);
      return;
    }
    field += length + (field[length] ? 1 : 0);
  }
}
