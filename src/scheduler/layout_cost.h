/* What nodes and copies cost in given layouts, asked once per operation. */
#ifndef CONVSCHED_SCHEDULER_LAYOUT_COST_H_
#define CONVSCHED_SCHEDULER_LAYOUT_COST_H_

#include "scheduler/internal.h"

/* Channel `offset` of the value that a value or a concat's slot lies in. */
typedef struct cs_place {
  int root;
  int64_t offset;
} cs_place;

typedef struct cs_layout_costs {
  const cs_graph *graph;
  cs_precision precision;
  cs_cost_fn cost;
  void *user;
  json_t *memo; /* microseconds by signature */
  double (*node_us)[CS_LAYOUT_COUNT];
  double (*copy_us)[CS_LAYOUT_COUNT][CS_LAYOUT_COUNT]; /* per value, from, to */
  int (*copied)[CS_LAYOUT_COUNT]; /* per value and layout: the evaluation that paid the copy */
  int evaluation;
  cs_place *slots; /* filled by copies in this evaluation */
  size_t n_slots, slot_capacity;
} cs_layout_costs;

cs_status cs_layout_costs_init(cs_layout_costs *costs, const cs_graph *graph,
                               cs_precision precision, cs_cost_fn cost, void *user) CS_MUST_USE;
void cs_layout_costs_free(cs_layout_costs *costs);
/* Starts an evaluation: within it a copy of a value to a layout is paid once. */
void cs_layout_costs_begin(cs_layout_costs *costs);
/* Microseconds of a node in the layout of its output, with the copies of inputs that lie otherwise
 * and are not paid yet, as cs_program_lower inserts them; < 0: cannot run. `layouts`: per value. */
cs_status cs_layout_node_cost(cs_layout_costs *costs, int node, const cs_layout *layouts,
                              double *us) CS_MUST_USE;
/* The first node of a block that runs in none of the layouts; −1: there is none. */
cs_status cs_layout_find_culprit(cs_layout_costs *costs, const int *block_of, int block,
                                 const cs_layout *available, int n_available,
                                 int *node) CS_MUST_USE;

#endif
