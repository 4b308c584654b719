/* Which nodes of a graph the members of a co-run are. Several nodes may be the same operation. */
#ifndef CONVSCHED_REPORT_MEMBERS_H_
#define CONVSCHED_REPORT_MEMBERS_H_

#include "report/report.h"

/* The nodes (indices, one a member, each once) whose operations they are; of several choices the
 * one in which the nodes lie closest together in the order of the graph, then the earliest. *out is
 * NULL where the graph has no such nodes; free() releases. */
cs_status cs_report_places(const cs_report_nodes *nodes, const cs_corun *corun,
                           int **out) CS_MUST_USE;

#endif
