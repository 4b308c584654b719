/* What an arena takes whatever the plan: known before anything is measured. */
#ifndef CONVSCHED_RUNTIME_LEAST_MEMORY_H_
#define CONVSCHED_RUNTIME_LEAST_MEMORY_H_

#include "graph/graph.h"

/* NOT_FOUND, naming the node, where one node's input and output are more than `limit` bytes (0: no
 * limit) in `graph`, bound and behind its passes. Where it is CS_OK, plans may still need more. */
cs_status cs_check_least_memory(const cs_graph *graph, cs_precision precision,
                                int64_t limit) CS_MUST_USE;

#endif
