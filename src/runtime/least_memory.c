#include "runtime/least_memory.h"

#include <inttypes.h>

/* Whose output is computed from all of its input, so that both are there at once with bytes of
 * their own: never a view, and never in place. */
static bool reads_while_it_writes(cs_op op) {
  switch (op) {
    case CS_OP_CONV:
    case CS_OP_CONV_TRANSPOSE:
    case CS_OP_GEMM:
    case CS_OP_MAX_POOL:
    case CS_OP_AVERAGE_POOL:
    case CS_OP_GLOBAL_AVERAGE_POOL:
    case CS_OP_GLOBAL_MAX_POOL:
      return true;
    default:
      return false;
  }
}

/* INT64_MAX: more than fits. */
static cs_status bytes_of(const cs_graph *graph, int value, int64_t size, int64_t *out) {
  int64_t count;
  CS_RETURN_IF_ERROR(cs_shape_elements(&graph->values[value].shape, &count));
  if (!cs_mul_i64(count, size, out)) *out = INT64_MAX;
  return CS_OK;
}

static cs_status bytes_of_node(const cs_graph *graph, const cs_node *node, int64_t size,
                               int64_t *out) {
  int64_t input = 0;
  CS_RETURN_IF_ERROR(bytes_of(graph, node->output, size, out));
  if (!reads_while_it_writes(node->op)) return CS_OK;
  CS_RETURN_IF_ERROR(bytes_of(graph, node->inputs[0], size, &input));
  if (!cs_add_i64(*out, input, out)) *out = INT64_MAX;
  return CS_OK;
}

cs_status cs_check_least_memory(const cs_graph *graph, cs_precision precision, int64_t limit) {
  int64_t size = cs_dtype_size(cs_precision_storage(precision)), most = 0;
  const cs_node *largest = NULL;
  if (limit == 0) return CS_OK;
  for (int i = 0; i < graph->n_nodes; i++) {
    int64_t bytes;
    CS_RETURN_IF_ERROR(bytes_of_node(graph, &graph->nodes[i], size, &bytes));
    if (bytes <= most) continue;
    most = bytes;
    largest = &graph->nodes[i];
  }
  if (!largest || most <= limit) return CS_OK;
  return cs_error(CS_CODE_NOT_FOUND,
                  "no plan of %s holds the memory limit: wanted at most %" PRId64
                  " bytes of arena, what node \"%s\" reads and writes takes %" PRId64,
                  graph->name, limit, largest->name, most);
}
