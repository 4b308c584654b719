/* Which of a list of names somebody may have meant. */
#ifndef CONVSCHED_REPORT_NAMES_NEAR_H_
#define CONVSCHED_REPORT_NAMES_NEAR_H_

#include "base/base.h"

/* Appends up to three names near to `wanted`, nearest first, with ", " between them: those that
 * hold it, and those that a few changed letters (a third of its length at most) make of it. */
void cs_report_near_names(const char *wanted, const char *const *names, int n, cs_strbuf *out);

#endif
