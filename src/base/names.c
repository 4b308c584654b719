#include "base/names.h"

#include <stdio.h>
#include <string.h>

static int least(int a, int b) {
  return a < b ? a : b;
}

/* Insertions, deletions and substitutions from a to b (Levenshtein), of the first CS_NEAR_SIZE
 * characters; 0 where b contains a. */
static int distance(const char *a, const char *b) {
  if (strstr(b, a)) return 0;
  int row[CS_NEAR_SIZE + 1];
  int n = (int)strnlen(a, CS_NEAR_SIZE), m = (int)strnlen(b, CS_NEAR_SIZE);
  for (int j = 0; j <= m; j++) row[j] = j;
  for (int i = 1; i <= n; i++) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= m; j++) {
      int above = row[j];
      int change = diagonal + (a[i - 1] != b[j - 1]);
      row[j] = least(change, 1 + least(above, row[j - 1]));
      diagonal = above;
    }
  }
  return row[m];
}

void cs_near_offer(cs_near *near, const char *name) {
  for (int i = 0; i < near->n; i++) {
    if (strncmp(near->names[i], name, CS_NEAR_SIZE - 1) == 0) return;
  }
  int d = distance(near->wanted, name);
  int at = near->n;
  while (at > 0 && near->distances[at - 1] > d) at--;
  if (at == CS_NEAR_NAMES) return;
  int moved = least(near->n, CS_NEAR_NAMES - 1) - at;
  memmove(&near->names[at + 1], &near->names[at], (size_t)moved * sizeof near->names[0]);
  memmove(&near->distances[at + 1], &near->distances[at],
          (size_t)moved * sizeof near->distances[0]);
  snprintf(near->names[at], sizeof near->names[at], "%s", name);
  near->distances[at] = d;
  near->n = least(near->n + 1, CS_NEAR_NAMES);
}

const char *cs_near_text(const cs_near *near, char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (int i = 0; i < near->n && used < size; i++) {
    used += (size_t)snprintf(out + used, size - used, "%s%s", i == 0 ? "; near it: " : ", ",
                             near->names[i]);
  }
  return out;
}

int cs_name_before_equals(const char *text, const char *name) {
  size_t length = strlen(name);
  return strncmp(text, name, length) == 0 && text[length] == '=' ? (int)length : -1;
}
