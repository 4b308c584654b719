/* Layouts: a dynamic program over the chain of blocks. The state is the layout of the value between
 * two blocks. Inside a block every value but the last has one layout; the last, which is the next
 * state, may have another. Graph inputs and outputs cost nothing in any layout: they are converted
 * on their way to and from the device anyway. */
#include <stdlib.h>
#include <string.h>

#include "scheduler/layout_cost.h"

typedef struct assigner {
  cs_layout_costs costs;
  const cs_layout *available;
  int n_available;
  int n_blocks;
  int *block_of;  /* per node; blocks merged so that only their last values cross */
  int *last_node; /* per block */
  int *nodes;     /* by block, in topological order */
  int *first;     /* per block: its start in nodes; one more behind the last */
  cs_layout *layouts;
  /* The dynamic program, per block and layout behind it. */
  double (*best_us)[CS_LAYOUT_COUNT]; /* < 0: not reachable */
  cs_layout (*inner)[CS_LAYOUT_COUNT];
  cs_layout (*before)[CS_LAYOUT_COUNT];
} assigner;

/* ---- Blocks ---- */

/* Blocks between which another value than the last of the block before crosses become one. */
static void merge_blocks(assigner *a, const cs_graph *graph, int *joined) {
  for (int b = 0; b < a->n_blocks; b++) a->last_node[b] = -1;
  for (int i = 0; i < graph->n_nodes; i++) a->last_node[a->block_of[i]] = i;
  for (int i = 0; i < graph->n_nodes; i++) {
    for (int k = 0; k < graph->nodes[i].n_inputs; k++) {
      int reader = a->block_of[i], producer = graph->values[graph->nodes[i].inputs[k]].producer;
      int block = producer >= 0 ? a->block_of[producer] : -1;
      bool crosses_well = block == reader - 1 && (block < 0 || producer == a->last_node[block]);
      if (block == reader || crosses_well) continue;
      for (int b = block < 0 ? 1 : block + 1; b <= reader; b++) joined[b] = 1;
    }
  }
  int n = 0;
  for (int b = 0; b < a->n_blocks; b++) { /* joined[b] becomes the new number of block b */
    n += b > 0 && !joined[b];
    joined[b] = n;
  }
  for (int i = 0; i < graph->n_nodes; i++) {
    a->block_of[i] = joined[a->block_of[i]];
    a->last_node[a->block_of[i]] = i;
  }
  a->n_blocks = n + 1;
}

/* Lists the nodes of each block. */
static cs_status list_nodes(assigner *a, const cs_graph *graph) {
  a->nodes = cs_calloc((size_t)graph->n_nodes, sizeof *a->nodes);
  a->first = cs_calloc((size_t)a->n_blocks + 2, sizeof *a->first);
  if (!a->nodes || !a->first) return cs_no_memory("blocks", (size_t)graph->n_nodes);
  for (int i = 0; i < graph->n_nodes; i++) a->first[a->block_of[i] + 2]++;
  for (int b = 1; b <= a->n_blocks; b++) a->first[b + 1] += a->first[b];
  for (int i = 0; i < graph->n_nodes; i++) a->nodes[a->first[a->block_of[i] + 1]++] = i;
  return CS_OK;
}

static cs_status find_blocks(assigner *a, const cs_graph *graph) {
  cs_status st = CS_OK;
  size_t n = (size_t)graph->n_nodes;
  int *joined = NULL;
  a->block_of = cs_calloc(n, sizeof *a->block_of);
  if (!a->block_of) return cs_no_memory("blocks", n * sizeof *a->block_of);
  CS_TRY(st, cs_graph_blocks(graph, a->block_of, &a->n_blocks), done);
  a->last_node = cs_calloc((size_t)a->n_blocks, sizeof *a->last_node);
  joined = cs_calloc((size_t)a->n_blocks, sizeof *joined);
  if (!a->last_node || !joined) CS_FAIL(st, done, CS_CODE_NO_MEMORY, "out of memory for blocks");
  merge_blocks(a, graph, joined);
  CS_TRY(st, list_nodes(a, graph), done);
done:
  free(joined);
  return st;
}

/* ---- The cost of a block ---- */

static void set_layout(assigner *a, int value, cs_layout layout) {
  a->layouts[value] = cs_graph_is_row_major(a->costs.graph, value) ? CS_LAYOUT_NCHW : layout;
}

/* Lays the values of a block, and those that it reads, in the three layouts. False: not allowed. */
static bool lay_block(assigner *a, int block, cs_layout before, cs_layout inner, cs_layout behind) {
  const cs_graph *graph = a->costs.graph;
  for (int k = a->first[block]; k < a->first[block + 1]; k++) {
    int i = a->nodes[k];
    int output = graph->nodes[i].output;
    set_layout(a, output, i == a->last_node[block] ? behind : inner);
    if (!cs_graph_layout_allowed(graph, output, a->layouts[output])) return false;
  }
  if (block > 0) {
    set_layout(a, graph->nodes[a->last_node[block - 1]].output, before);
    return true;
  }
  for (int i = 0; i < graph->n_inputs; i++) {
    set_layout(a, graph->inputs[i], before);
    if (!cs_graph_layout_allowed(graph, graph->inputs[i], a->layouts[graph->inputs[i]]))
      return false;
  }
  return true;
}

/* Microseconds of a block in the layouts set; < 0: some node cannot run. */
static cs_status block_cost(assigner *a, int block, double *us) {
  *us = 0;
  cs_layout_costs_begin(&a->costs);
  for (int k = a->first[block]; k < a->first[block + 1]; k++) {
    double node_us;
    CS_RETURN_IF_ERROR(cs_layout_node_cost(&a->costs, a->nodes[k], a->layouts, &node_us));
    if (node_us < 0) {
      *us = -1;
      return CS_OK;
    }
    *us += node_us;
  }
  return CS_OK;
}

/* ---- The dynamic program ---- */

static cs_status try_one(assigner *a, int block, double reached_us, cs_layout before,
                         cs_layout inner, cs_layout behind) {
  double us;
  if (!lay_block(a, block, before, inner, behind)) return CS_OK;
  CS_RETURN_IF_ERROR(block_cost(a, block, &us));
  double *best = &a->best_us[block][behind];
  if (us < 0 || (*best >= 0 && reached_us + us >= *best)) return CS_OK;
  *best = reached_us + us;
  a->inner[block][behind] = inner;
  a->before[block][behind] = before;
  return CS_OK;
}

static cs_status solve_block(assigner *a, int block) {
  for (int l = 0; l < CS_LAYOUT_COUNT; l++) a->best_us[block][l] = -1;
  for (int b = 0; b < a->n_available; b++) {
    cs_layout before = a->available[b];
    double reached_us = block > 0 ? a->best_us[block - 1][before] : 0;
    if (reached_us < 0) continue;
    for (int i = 0; i < a->n_available; i++)
      for (int o = 0; o < a->n_available; o++)
        CS_RETURN_IF_ERROR(try_one(a, block, reached_us, before, a->available[i], a->available[o]));
  }
  for (int l = 0; l < CS_LAYOUT_COUNT; l++)
    if (a->best_us[block][l] >= 0) return CS_OK;
  int culprit;
  CS_RETURN_IF_ERROR(cs_layout_find_culprit(&a->costs, a->block_of, block, a->available,
                                            a->n_available, &culprit));
  const cs_node *node = &a->costs.graph->nodes[culprit >= 0 ? culprit : a->last_node[block]];
  return cs_error(CS_CODE_BAD_INPUT,
                  culprit >= 0 ? "node %s (%s): the device has no way to run it in any layout"
                               : "the block that ends with node %s (%s): there is no layout in "
                                 "which the device can run all its nodes",
                  node->name, cs_op_name(node->op));
}

static void trace_back(assigner *a, double *cost_us) {
  cs_layout behind = a->available[0];
  const double *last = a->best_us[a->n_blocks - 1];
  for (int i = 0; i < a->n_available; i++) {
    double us = last[a->available[i]];
    if (us >= 0 && (last[behind] < 0 || us < last[behind])) behind = a->available[i];
  }
  *cost_us = last[behind];
  for (int block = a->n_blocks - 1; block >= 0; block--) {
    cs_layout before = a->before[block][behind];
    lay_block(a, block, before, a->inner[block][behind], behind);
    behind = before;
  }
}

cs_status cs_layout_assign(const cs_graph *graph, cs_precision precision,
                           const cs_layout *available, int n_available, cs_cost_fn cost, void *user,
                           cs_layout *layouts, double *cost_us) {
  if (n_available < 1) return cs_error(CS_CODE_USAGE, "no layout is available");
  for (int v = 0; v < graph->n_values; v++)
    layouts[v] = cs_graph_is_row_major(graph, v) ? CS_LAYOUT_NCHW : available[0];
  *cost_us = 0;
  if (graph->n_nodes == 0) return CS_OK;
  cs_status st = CS_OK;
  size_t blocks;
  assigner a = {.available = available, .n_available = n_available, .layouts = layouts};
  CS_TRY(st, cs_layout_costs_init(&a.costs, graph, precision, cost, user), done);
  CS_TRY(st, find_blocks(&a, graph), done);
  blocks = (size_t)a.n_blocks;
  a.best_us = cs_calloc(blocks, sizeof *a.best_us);
  a.inner = cs_calloc(blocks, sizeof *a.inner);
  a.before = cs_calloc(blocks, sizeof *a.before);
  if (!a.best_us || !a.inner || !a.before)
    CS_FAIL(st, done, CS_CODE_NO_MEMORY, "out of memory for layouts");
  for (int block = 0; block < a.n_blocks; block++) CS_TRY(st, solve_block(&a, block), done);
  trace_back(&a, cost_us);
done:
  cs_layout_costs_free(&a.costs);
  free(a.block_of);
  free(a.last_node);
  free(a.nodes);
  free(a.first);
  free(a.best_us);
  free(a.inner);
  free(a.before);
  return st;
}
