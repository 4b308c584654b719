/* What a graph is made of, as a table and for Graphviz. */
#include <stdlib.h>

#include "report/structure.h"
#include "runtime/report.h"

/* Bound to `batch`; 0: its own, or 1. */
static cs_status bind(const cs_graph *graph, int64_t batch, cs_graph **out) {
  if (batch == 0) batch = graph->batch == CS_DIM_N ? 1 : graph->batch;
  return cs_graph_bind(graph, batch, out);
}

/* A table, or with `dot` the text for Graphviz. */
static cs_status tell(const cs_graph *graph, int64_t batch, cs_precision precision, cs_table *table,
                      char **dot) {
  cs_graph *bound = NULL;
  cs_structure structure = {0};
  CS_RETURN_IF_ERROR(bind(graph, batch, &bound));
  cs_status st = cs_structure_of(bound, precision, &structure);
  if (st == CS_OK) {
    st = dot ? cs_report_dot(&structure, dot) : cs_report_layers(&structure, table);
  }
  cs_structure_free(&structure);
  cs_graph_destroy(bound);
  return st;
}

cs_status cs_graph_layers(const cs_graph *graph, int64_t batch, cs_precision precision,
                          cs_report **out) {
  cs_table table = {0};
  return cs_report_give(tell(graph, batch, precision, &table, NULL), &table, out);
}

cs_status cs_graph_dot(const cs_graph *graph, int64_t batch, cs_precision precision, char **out) {
  *out = NULL;
  return tell(graph, batch, precision, NULL, out);
}
