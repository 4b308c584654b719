/* How a plan file tells the division of its nodes' batches. */
#ifndef CONVSCHED_SCHEDULER_PLAN_DIVISION_H_
#define CONVSCHED_SCHEDULER_PLAN_DIVISION_H_

#include <jansson.h>

#include "graph/division.h"

/* [{"parts": [batch entries of each], "nodes": [names]}]; NULL: no memory. */
json_t *cs_division_json(const cs_division *division, const cs_graph *graph);
/* Strict; BAD_INPUT names the path below $.micro_batches. */
cs_status cs_division_from_json(json_t *lists, const cs_graph *graph,
                                cs_division **out) CS_MUST_USE;

#endif
