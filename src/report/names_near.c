#include "report/names_near.h"

#include <string.h>

#define LONGEST 127
#define MOST 3

static int least3(int a, int b, int c) {
  int least = a < b ? a : b;
  return least < c ? least : c;
}

/* Letters to be inserted, dropped or replaced; of the first LONGEST letters. */
static int distance(const char *a, const char *b) {
  int n = (int)strnlen(a, LONGEST), m = (int)strnlen(b, LONGEST);
  int row[LONGEST + 1];
  for (int j = 0; j <= m; j++) row[j] = j;
  for (int i = 1; i <= n; i++) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= m; j++) {
      int above = row[j];
      row[j] = least3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
      diagonal = above;
    }
  }
  return row[m];
}

/* Less is nearer; −1: not near. */
static int rank(const char *wanted, const char *name) {
  if (strstr(name, wanted)) return 0;
  int limit = (int)strnlen(wanted, LONGEST) / 3;
  int letters = distance(wanted, name);
  return letters <= (limit > 1 ? limit : 1) ? letters : -1;
}

void cs_report_near_names(const char *wanted, const char *const *names, int n, cs_strbuf *out) {
  int written = 0;
  for (int wanted_rank = 0; wanted_rank <= LONGEST / 3 && written < MOST; wanted_rank++) {
    for (int i = 0; i < n && written < MOST; i++) {
      if (rank(wanted, names[i]) != wanted_rank) continue;
      cs_strbuf_printf(out, "%s%s", written ? ", " : "", names[i]);
      written++;
    }
  }
}
