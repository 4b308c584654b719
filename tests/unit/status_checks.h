/* What a call's status is expected to be, for unit tests. */
#ifndef CONVSCHED_TESTS_STATUS_CHECKS_H_
#define CONVSCHED_TESTS_STATUS_CHECKS_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* clang-format off: cmocka wants the four first */
#include <cmocka.h>
/* clang-format on */

#include "base/base.h"

static inline void ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

/* Frees it. */
static inline void fails(cs_status st, cs_code code, const char *text) {
  if (cs_status_code(st) != code || !strstr(cs_status_message(st), text)) {
    fail_msg("found code %d: %s; wanted code %d: %s", (int)cs_status_code(st),
             cs_status_message(st), (int)code, text);
  }
  cs_status_free(st);
}

#endif
