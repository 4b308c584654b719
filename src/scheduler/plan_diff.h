/* What two plan files differ in, without their model. Pure. */
#ifndef CONVSCHED_SCHEDULER_PLAN_DIFF_H_
#define CONVSCHED_SCHEDULER_PLAN_DIFF_H_

#include "base/base.h"

/* A plan file in memory; `name` stands for it in messages. */
typedef struct cs_plan_text {
  const char *name, *text;
  size_t length;
} cs_plan_text;

/* `convsched.plan-diff/1` (docs/scheduling.md) of two texts of `convsched.plan/1`; free() releases
 * *out. BAD_INPUT: one of them is none (file, JSON path, found, wanted). */
cs_status cs_plan_diff(const cs_plan_text *a, const cs_plan_text *b, char **out) CS_MUST_USE;

#endif
