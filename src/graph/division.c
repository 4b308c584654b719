#include "graph/division.h"

#include <stdlib.h>
#include <string.h>

#include "graph/op_family.h"

/* ---- Which nodes divide ---- */

/* A constant that is the same for every entry of tensors of this rank. */
static bool is_same_for_all(const cs_shape *operand, int rank) {
  return operand->rank < rank || (operand->rank == rank && operand->dims[0] == 1);
}

static bool operand_divides(const cs_graph *graph, const cs_node *node) {
  const cs_shape *operand = &node->attrs.binary.operand;
  int rank = graph->values[node->output].shape.rank;
  /* Axes 0 and 1 of a product of two matrices are rows and columns. */
  if (node->op == CS_OP_MATMUL && rank < 3)
    return operand->rank > 0 && !node->attrs.binary.operand_first;
  return operand->rank == 0 || is_same_for_all(operand, rank);
}

static bool attributes_divide(const cs_graph *graph, const cs_node *node) {
  const cs_attrs *attrs = &node->attrs;
  switch (node->op) {
    case CS_OP_REDUCE_MEAN:
    case CS_OP_REDUCE_SUM:
    case CS_OP_REDUCE_MAX:
    case CS_OP_REDUCE_MIN:
      for (int i = 0; i < attrs->reduce.n_axes; i++) {
        if (attrs->reduce.axes[i] == 0) return false;
      }
      return attrs->reduce.n_axes > 0;
    case CS_OP_SOFTMAX:
      return attrs->axis.axis != 0;
    case CS_OP_PAD:
      return attrs->pad.pads[0] == 0 && attrs->pad.pads[attrs->pad.rank] == 0;
    case CS_OP_TRANSPOSE:
      return attrs->transpose.input_shape.rank == 0 && attrs->transpose.output_shape.rank == 0 &&
             attrs->transpose.n_perm > 0 && attrs->transpose.perm[0] == 0;
    case CS_OP_CONCAT:
    case CS_OP_SLICE:
    case CS_OP_COPY:
      return false;
    default:
      if (cs_op_takes_operand(node->op)) return operand_divides(graph, node);
      return !cs_op_keeps_order(node->op);
  }
}

bool cs_node_divides(const cs_graph *graph, int index) {
  const cs_node *node = &graph->nodes[index];
  const cs_shape *output = &graph->values[node->output].shape;
  if (output->rank < 2 || output->dims[0] != graph->batch) return false;
  for (int k = 0; k < node->n_inputs; k++) {
    const cs_shape *input = &graph->values[node->inputs[k]].shape;
    if (input->rank < 2 || input->dims[0] != graph->batch) return false;
    if (cs_op_takes_operand(node->op) && input->rank != output->rank) return false;
  }
  return attributes_divide(graph, node);
}

/* ---- Divisions ---- */

cs_status cs_division_create(const cs_graph *graph, cs_division **out) {
  *out = NULL;
  cs_division *division = cs_calloc(1, sizeof *division);
  if (!division) return cs_no_memory("a division", sizeof *division);
  size_t n = (size_t)graph->n_nodes;
  division->n_nodes = graph->n_nodes;
  division->list_of = cs_calloc(n, sizeof *division->list_of);
  if (!division->list_of) {
    cs_division_destroy(division);
    return cs_no_memory("a division", n * sizeof *division->list_of);
  }
  for (size_t i = 0; i < n; i++) division->list_of[i] = -1;
  *out = division;
  return CS_OK;
}

void cs_division_destroy(cs_division *division) {
  if (!division) return;
  for (int i = 0; i < division->n_lists; i++) {
    free(division->lists[i].sizes);
    free(division->lists[i].firsts);
  }
  free(division->lists);
  free(division->list_of);
  free(division);
}

static cs_status add_list(cs_division *division, const int64_t *sizes, int n) {
  CS_RETURN_IF_ERROR(cs_grow(&division->lists, &division->capacity, (size_t)division->n_lists + 1,
                             sizeof *division->lists));
  cs_parts *parts = &division->lists[division->n_lists];
  *parts = (cs_parts){.n = n};
  parts->sizes = cs_calloc((size_t)n, sizeof *parts->sizes);
  parts->firsts = cs_calloc((size_t)n, sizeof *parts->firsts);
  division->n_lists++; /* what there is of it is released with the division */
  if (!parts->sizes || !parts->firsts) return cs_no_memory("parts", (size_t)n * sizeof(int64_t));
  int64_t first = 0;
  for (int i = 0; i < n; i++) {
    parts->sizes[i] = sizes[i];
    parts->firsts[i] = first;
    first += sizes[i];
  }
  return CS_OK;
}

static int find_list(const cs_division *division, const int64_t *sizes, int n) {
  for (int i = 0; i < division->n_lists; i++) {
    const cs_parts *parts = &division->lists[i];
    if (parts->n == n && memcmp(parts->sizes, sizes, (size_t)n * sizeof *sizes) == 0) return i;
  }
  return -1;
}

static cs_status check_sizes(const cs_graph *graph, const char *name, const int64_t *sizes, int n) {
  int64_t left = graph->batch;
  if (n < 1 || n > CS_MOST_PARTS) {
    return cs_error(CS_CODE_BAD_INPUT, "node %s: found %d parts, wanted 1 to %d", name, n,
                    CS_MOST_PARTS);
  }
  for (int i = 0; i < n; i++) {
    if (sizes[i] < 1 || sizes[i] > left) {
      return cs_error(CS_CODE_BAD_INPUT,
                      "node %s: part %d: found %lld batch entries, wanted 1 to the %lld that are "
                      "left of %lld",
                      name, i, (long long)sizes[i], (long long)left, (long long)graph->batch);
    }
    left -= sizes[i];
  }
  if (left == 0) return CS_OK;
  return cs_error(CS_CODE_BAD_INPUT,
                  "node %s: found parts of %lld batch entries together, wanted %lld", name,
                  (long long)(graph->batch - left), (long long)graph->batch);
}

cs_status cs_division_set(cs_division *division, const cs_graph *graph, int node,
                          const int64_t *sizes, int n) {
  const char *name = graph->nodes[node].name;
  CS_RETURN_IF_ERROR(check_sizes(graph, name, sizes, n));
  if (n == 1) {
    division->list_of[node] = -1;
    return CS_OK;
  }
  if (!cs_node_divides(graph, node)) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "node %s: a %s whose batch entries are not computed each by itself, or that "
                    "is no operation, cannot be divided",
                    name, cs_op_name(graph->nodes[node].op));
  }
  int list = find_list(division, sizes, n);
  if (list < 0) {
    CS_RETURN_IF_ERROR(add_list(division, sizes, n));
    list = division->n_lists - 1;
  }
  division->list_of[node] = list;
  return CS_OK;
}

cs_status cs_division_evenly(cs_division *division, const cs_graph *graph, int n) {
  int64_t sizes[CS_MOST_PARTS];
  if (n > graph->batch) n = (int)graph->batch;
  if (n < 1 || n > CS_MOST_PARTS) {
    return cs_error(CS_CODE_BAD_INPUT, "found %d parts, wanted 1 to %d", n, CS_MOST_PARTS);
  }
  for (int i = 0; i < n; i++) sizes[i] = graph->batch / n + (i < graph->batch % n);
  for (int i = 0; i < graph->n_nodes; i++) {
    if (cs_node_divides(graph, i))
      CS_RETURN_IF_ERROR(cs_division_set(division, graph, i, sizes, n));
  }
  return CS_OK;
}

cs_status cs_division_copy(const cs_division *from, cs_division **out) {
  cs_status st = CS_OK;
  *out = NULL;
  cs_division *copy = cs_calloc(1, sizeof *copy);
  if (!copy) return cs_no_memory("a division", sizeof *copy);
  copy->n_nodes = from->n_nodes;
  copy->list_of = cs_calloc((size_t)from->n_nodes, sizeof *copy->list_of);
  if (!copy->list_of) {
    st = cs_no_memory("a division", (size_t)from->n_nodes * sizeof *copy->list_of);
    goto done;
  }
  for (int i = 0; i < from->n_nodes; i++) copy->list_of[i] = from->list_of[i];
  for (int i = 0; i < from->n_lists; i++) {
    CS_TRY(st, add_list(copy, from->lists[i].sizes, from->lists[i].n), done);
  }
  *out = copy;
  copy = NULL;
done:
  cs_division_destroy(copy);
  return st;
}

const cs_parts *cs_division_parts(const cs_division *division, int node) {
  if (!division || division->list_of[node] < 0) return NULL;
  return &division->lists[division->list_of[node]];
}

int cs_division_count(const cs_division *division) {
  int n = 0;
  for (int i = 0; division && i < division->n_nodes; i++) n += division->list_of[i] >= 0;
  return n;
}
