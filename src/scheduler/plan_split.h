/* How plan files and records tell a plan's split of the device. */
#ifndef CONVSCHED_SCHEDULER_PLAN_SPLIT_H_
#define CONVSCHED_SCHEDULER_PLAN_SPLIT_H_

#include <jansson.h>

#include "scheduler/plan.h"

/* {"parts": [SMs of each], "streams": [of each stream the index of its part, null: the whole
 * device]}; JSON's null where the device is not split. NULL: no memory. */
json_t *cs_plan_split_json(const cs_plan *plan);

#endif
