/* Reshape, Transpose, Reshape become one Transpose, whose input_shape and output_shape say what the
 * Reshapes did: a shuffle of channels, for example. Tensors of five axes and more in between, which
 * backends do not have, are gone then. */
#include <string.h>

#include "graph/graph_internal.h"

/* Each of `coarse`'s axes in pieces, so that every axis of `other` is some neighbouring pieces. */
typedef struct refinement {
  int n[CS_MAX_RANK], total;                /* pieces of each axis */
  int64_t pieces[CS_MAX_RANK][CS_MAX_RANK]; /* outermost first */
} refinement;

/* false: there is no such split, or it has more than CS_MAX_RANK pieces. */
static bool refine(const cs_shape *coarse, const cs_shape *other, refinement *out) {
  int at = other->rank - 1;
  int64_t left = other->dims[at];
  memset(out, 0, sizeof *out);
  for (int axis = coarse->rank - 1; axis >= 0; axis--) {
    int64_t rest = coarse->dims[axis], reversed[CS_MAX_RANK];
    int n = 0;
    do {
      while (left == 1 && at > 0) left = other->dims[--at];
      int64_t piece = cs_min_i64(rest, left);
      if (rest == 1) piece = 1;
      if (piece < 1 || rest % piece != 0 || (rest > 1 && left % piece != 0)) return false;
      if (out->total++ == CS_MAX_RANK) return false;
      reversed[n++] = piece;
      rest /= piece;
      left /= piece;
    } while (rest > 1);
    out->n[axis] = n;
    for (int i = 0; i < n; i++) out->pieces[axis][i] = reversed[n - 1 - i];
  }
  return true;
}

/* The same Transpose of the finer axes. `split[k]`: which of refined's axes input axis k is. */
static void take_refinement(cs_transpose_attrs *t, const refinement *refined, const int *split) {
  cs_shape finer = {0};
  int first[CS_MAX_RANK] = {0};
  int64_t perm[CS_MAX_RANK];
  int rank = t->n_perm, n_perm = 0;
  for (int k = 0; k < rank; k++) {
    first[k] = finer.rank;
    for (int i = 0; i < refined->n[split[k]]; i++) {
      finer.dims[finer.rank++] = refined->pieces[split[k]][i];
    }
  }
  for (int k = 0; k < rank; k++) {
    int axis = (int)t->perm[k];
    for (int i = 0; i < refined->n[split[axis]]; i++) perm[n_perm++] = first[axis] + i;
  }
  memcpy(t->perm, perm, sizeof perm[0] * (size_t)n_perm);
  t->n_perm = n_perm;
  t->input_shape = finer;
}

static const cs_shape *shape_of(const cs_rewrite *rewrite, int value) {
  return &rewrite->graph->values[value].shape;
}

static const cs_shape *factors_of(const cs_rewrite *rewrite, const cs_node *transpose) {
  const cs_shape *given = &transpose->attrs.transpose.input_shape;
  return given->rank ? given : shape_of(rewrite, transpose->inputs[0]);
}

/* The Transpose reads what the Reshape before it does. */
static bool absorb_before(cs_rewrite *rewrite, cs_node *transpose) {
  cs_graph *graph = rewrite->graph;
  cs_transpose_attrs *t = &transpose->attrs.transpose;
  int between = transpose->inputs[0], producer = graph->values[between].producer;
  if (producer < 0 || graph->nodes[producer].op != CS_OP_RESHAPE) return false;
  int input = graph->nodes[producer].inputs[0];
  refinement refined;
  int split[CS_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
  if (!refine(factors_of(rewrite, transpose), shape_of(rewrite, input), &refined)) return false;
  if (!t->output_shape.rank) t->output_shape = *shape_of(rewrite, transpose->output);
  take_refinement(t, &refined, split);
  transpose->inputs[0] = input;
  rewrite->uses[input]++;
  if (--rewrite->uses[between] > 0) return true;
  rewrite->uses[input]--;
  rewrite->dead[producer] = true;
  graph->values[between].producer = -1;
  return true;
}

/* The Transpose makes what the Reshape behind it does. */
static bool absorb_behind(cs_rewrite *rewrite, int reshape) {
  cs_graph *graph = rewrite->graph;
  const cs_node *node = &graph->nodes[reshape];
  cs_node *transpose = cs_rewrite_sole_producer(rewrite, node->inputs[0]);
  if (!transpose || transpose->op != CS_OP_TRANSPOSE) return false;
  cs_transpose_attrs *t = &transpose->attrs.transpose;
  const cs_shape *factors = factors_of(rewrite, transpose);
  cs_shape permuted = {.rank = t->n_perm};
  int split[CS_MAX_RANK] = {0};
  refinement refined;
  for (int i = 0; i < t->n_perm; i++) {
    permuted.dims[i] = factors->dims[t->perm[i]];
    split[t->perm[i]] = i;
  }
  if (!refine(&permuted, &node->attrs.reshape, &refined)) return false;
  t->output_shape = node->attrs.reshape;
  take_refinement(t, &refined, split);
  cs_rewrite_take_over(rewrite, (int)(transpose - graph->nodes), reshape);
  return true;
}

void cs_pass_compose_movements(cs_rewrite *rewrite, cs_pass_report *report) {
  cs_graph *graph = rewrite->graph;
  for (int i = 0; i < graph->n_nodes; i++) {
    cs_node *node = &graph->nodes[i];
    if (rewrite->dead[i]) continue;
    if (node->op == CS_OP_TRANSPOSE && absorb_before(rewrite, node)) report->movements_composed++;
    if (node->op == CS_OP_RESHAPE && absorb_behind(rewrite, i)) report->movements_composed++;
  }
}
