/* What `plan` prints for a person, from the JSON that the library gives. */
#ifndef CONVSCHED_CLI_PLAN_H_
#define CONVSCHED_CLI_PLAN_H_

#include "base/base.h"
#include "cli/cli.h"

/* `convsched.plan/1`, with what the session says of it. */
cs_status plan_print(const cs_session *session, const char *text) CS_MUST_USE;
/* `convsched.explanation/1`. */
cs_status plan_print_explanation(const char *json) CS_MUST_USE;
/* `convsched.plan-diff/1`. */
cs_status plan_print_diff(const char *json) CS_MUST_USE;

#endif
