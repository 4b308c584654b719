/* Names that were meant, for messages about names that do not exist. */
#ifndef CONVSCHED_BASE_NAMES_H_
#define CONVSCHED_BASE_NAMES_H_

#include "base/base.h"

#define CS_NEAR_NAMES 3

/* The names most like `wanted` of those offered, nearest first, cut to fit. Zero but for `wanted`
 * at first. */
#define CS_NEAR_SIZE 192
typedef struct cs_near {
  const char *wanted;
  char names[CS_NEAR_NAMES][CS_NEAR_SIZE];
  int distances[CS_NEAR_NAMES];
  int n;
} cs_near;
void cs_near_offer(cs_near *near, const char *name);
/* "; near it: a, b, c", or "" when nothing was offered. */
const char *cs_near_text(const cs_near *near, char *out, size_t size);

/* The length of `name` if `text` begins with it and a '=' follows, else -1: NODE of NODE=ID, where
 * both may hold a '='. The longest of all nodes' names is the one that is meant. */
int cs_name_before_equals(const char *text, const char *name);

#endif
