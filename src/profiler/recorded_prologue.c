/* Whether a recorded device ran a convolution with its prologue. */
#include <stdlib.h>

#include "profiler/profile.h"

typedef struct prologue_search {
  const char *wanted;
  bool found;
} prologue_search;

static void compare(void *user, const char *signature) {
  prologue_search *search = user;
  search->found = search->found || cs_signatures_alike(search->wanted, signature);
}

bool cs_profile_has_prologue(const cs_profile *profile, const cs_op_desc *desc) {
  char *wanted = NULL;
  cs_status st = cs_op_signature(desc, &wanted);
  prologue_search search = {wanted, false};
  if (st == CS_OK) cs_profile_signatures(profile, compare, &search);
  cs_status_free(st);
  free(wanted);
  return search.found;
}
