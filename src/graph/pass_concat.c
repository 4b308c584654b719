/* Concats: nested ones become one; then values are laid in place. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph_internal.h"
#include "graph/index.h"

/* ---- Nested concats ---- */

/* The concat of the same axis that made `value` and is read here only. */
static cs_node *absorbable(const cs_rewrite *rewrite, const cs_node *outer, int value) {
  cs_node *inner = cs_rewrite_sole_producer(rewrite, value);
  bool same =
      inner && inner->op == CS_OP_CONCAT && inner->attrs.axis.axis == outer->attrs.axis.axis;
  return same ? inner : NULL;
}

/* In topological order the inner concats are flat already, so one level is enough. */
static cs_status absorb_inputs(cs_rewrite *rewrite, cs_node *outer, cs_pass_report *report) {
  cs_graph *graph = rewrite->graph;
  int64_t total = 0;
  bool any = false;
  for (int k = 0; k < outer->n_inputs; k++) {
    cs_node *inner = absorbable(rewrite, outer, outer->inputs[k]);
    total += inner ? inner->n_inputs : 1;
    any = any || inner;
  }
  if (!any || total > INT_MAX / 2) return CS_OK;
  int *inputs = cs_calloc((size_t)total, sizeof *inputs);
  if (!inputs) return cs_no_memory("inputs", (size_t)total * sizeof *inputs);
  int n = 0;
  for (int k = 0; k < outer->n_inputs; k++) {
    cs_node *inner = absorbable(rewrite, outer, outer->inputs[k]);
    if (!inner) {
      inputs[n++] = outer->inputs[k];
      continue;
    }
    memcpy(inputs + n, inner->inputs, (size_t)inner->n_inputs * sizeof *inputs);
    n += inner->n_inputs;
    rewrite->dead[inner - graph->nodes] = true;
    graph->values[inner->output].producer = -1;
    report->concats_flattened++;
  }
  free(outer->inputs);
  outer->inputs = inputs;
  outer->n_inputs = n;
  return CS_OK;
}

cs_status cs_pass_flatten_concats(cs_rewrite *rewrite, cs_pass_report *report) {
  cs_graph *graph = rewrite->graph;
  for (int i = 0; i < graph->n_nodes; i++) {
    if (rewrite->dead[i] || graph->nodes[i].op != CS_OP_CONCAT) continue;
    CS_RETURN_IF_ERROR(absorb_inputs(rewrite, &graph->nodes[i], report));
  }
  return CS_OK;
}

/* ---- In place ---- */

typedef struct in_place {
  cs_graph *graph;
  bool *is_output;
  int *concats; /* node indices of channel concats, most inputs first, then in order */
  int n_concats;
  cs_pair_map children; /* (trie node, value) to trie node: input lists that share a beginning */
  int *terminal;        /* per trie node: the concat whose list ends there, -1: none */
  size_t n_trie, trie_capacity;
} in_place;

typedef struct sized_concat {
  int node, n_inputs;
} sized_concat;

static int by_inputs(const void *a, const void *b) {
  const sized_concat *x = a, *y = b;
  if (x->n_inputs != y->n_inputs) return x->n_inputs < y->n_inputs ? 1 : -1;
  return (x->node > y->node) - (x->node < y->node);
}

static cs_status collect(in_place *pass) {
  const cs_graph *graph = pass->graph;
  size_t n = (size_t)graph->n_nodes;
  sized_concat *sized = cs_calloc(n, sizeof *sized);
  pass->concats = cs_calloc(n, sizeof *pass->concats);
  if (!sized || !pass->concats) {
    free(sized);
    return cs_no_memory("concats", n * sizeof *sized);
  }
  for (int i = 0; i < graph->n_nodes; i++) {
    const cs_node *node = &graph->nodes[i];
    if (node->op != CS_OP_CONCAT || node->attrs.axis.axis != 1) continue;
    if (graph->values[node->output].shape.rank != 4) continue;
    sized[pass->n_concats++] = (sized_concat){i, node->n_inputs};
  }
  qsort(sized, (size_t)pass->n_concats, sizeof *sized, by_inputs);
  for (int i = 0; i < pass->n_concats; i++) pass->concats[i] = sized[i].node;
  free(sized);
  return CS_OK;
}

static cs_status new_trie_node(in_place *pass) {
  CS_RETURN_IF_ERROR(
      cs_grow(&pass->terminal, &pass->trie_capacity, pass->n_trie + 1, sizeof *pass->terminal));
  pass->terminal[pass->n_trie++] = -1;
  return CS_OK;
}

/* Puts the input list of a concat in. The first of several equal lists owns the end of the way;
 * the others lie in it whole. */
static cs_status insert(in_place *pass, int concat) {
  const cs_node *node = &pass->graph->nodes[concat];
  int at = 0;
  for (int k = 0; k < node->n_inputs; k++) {
    int child = (int)pass->n_trie, existing;
    CS_RETURN_IF_ERROR(cs_pair_map_put(&pass->children, at, node->inputs[k], child, &existing));
    if (existing < 0) CS_RETURN_IF_ERROR(new_trie_node(pass));
    at = existing < 0 ? child : existing;
  }
  if (pass->terminal[at] < 0) {
    pass->terminal[at] = concat;
    return CS_OK;
  }
  int twin = pass->graph->nodes[pass->terminal[at]].output;
  if (!pass->is_output[node->output]) pass->graph->values[node->output].host = twin;
  return CS_OK;
}

/* Each concat whose list begins this one's lies at the beginning of the next longer on the way,
 * unless a longer list claimed it before. */
static void link_prefixes(in_place *pass, int concat) {
  cs_graph *graph = pass->graph;
  const cs_node *node = &graph->nodes[concat];
  int at = 0, previous = -1;
  for (int k = 0; k < node->n_inputs; k++) {
    at = cs_pair_map_get(&pass->children, at, node->inputs[k]);
    int ends = pass->terminal[at];
    if (ends < 0) continue;
    int value = graph->nodes[ends].output;
    if (previous >= 0 && graph->values[previous].host < 0 && !pass->is_output[previous]) {
      graph->values[previous].host = value;
    }
    previous = value;
  }
}

/* Inputs that may lie in this concat and have no place yet get one. */
static void place_inputs(in_place *pass, int concat) {
  cs_graph *graph = pass->graph;
  const cs_node *node = &graph->nodes[concat];
  int64_t offset = 0;
  for (int k = 0; k < node->n_inputs; k++) {
    cs_value *value = &graph->values[node->inputs[k]];
    if (value->producer >= 0 && value->host < 0 && !pass->is_output[node->inputs[k]]) {
      value->host = node->output;
      value->host_offset = offset;
    }
    offset += value->shape.dims[1];
  }
}

/* Follows hosts to the root for every value; each value is passed once on the way up and once on
 * the way down. */
static cs_status resolve_roots(cs_graph *graph) {
  int *way = cs_calloc((size_t)graph->n_values, sizeof *way);
  bool *resolved = cs_calloc((size_t)graph->n_values, sizeof *resolved);
  if (!way || !resolved) {
    free(way);
    free(resolved);
    return cs_no_memory("roots", (size_t)graph->n_values * sizeof *way);
  }
  for (int v = 0; v < graph->n_values; v++) {
    int n = 0, at = v;
    while (!resolved[at] && graph->values[at].host >= 0) {
      way[n++] = at;
      at = graph->values[at].host;
    }
    resolved[at] = true;
    while (n-- > 0) {
      cs_value *value = &graph->values[way[n]];
      const cs_value *host = &graph->values[value->host];
      value->root = host->root;
      value->channel_offset = host->channel_offset + value->host_offset;
      resolved[way[n]] = true;
    }
  }
  free(way);
  free(resolved);
  return CS_OK;
}

/* Counts the concats all of whose inputs lie where the concat wants them, and the copies. Concats
 * that share a place share their copies. */
static cs_status count(const in_place *pass, cs_pass_report *report) {
  const cs_graph *graph = pass->graph;
  cs_status st = CS_OK;
  cs_pair_map copied = {0};
  for (int i = 0; i < pass->n_concats; i++) {
    const cs_node *node = &graph->nodes[pass->concats[i]];
    const cs_value *whole = &graph->values[node->output];
    int64_t offset = whole->channel_offset;
    bool all = true;
    for (int k = 0; k < node->n_inputs; k++) {
      const cs_value *part = &graph->values[node->inputs[k]];
      if (part->root != whole->root || part->channel_offset != offset) {
        int existing;
        all = false;
        CS_TRY(st, cs_pair_map_put(&copied, whole->root, offset, 0, &existing), done);
        if (existing < 0) report->concat_inputs_copied++;
      }
      offset += part->shape.dims[1];
    }
    if (all) report->concats_in_place++;
  }
done:
  cs_pair_map_free(&copied);
  return st;
}

cs_status cs_pass_concat_in_place(cs_graph *graph, cs_pass_report *report) {
  cs_status st = CS_OK;
  in_place pass = {.graph = graph};
  CS_TRY(st, cs_graph_output_flags(graph, &pass.is_output), done);
  CS_TRY(st, collect(&pass), done);
  CS_TRY(st, new_trie_node(&pass), done);
  for (int i = 0; i < pass.n_concats; i++) CS_TRY(st, insert(&pass, pass.concats[i]), done);
  for (int i = 0; i < pass.n_concats; i++) link_prefixes(&pass, pass.concats[i]);
  for (int i = 0; i < pass.n_concats; i++) place_inputs(&pass, pass.concats[i]);
  CS_TRY(st, resolve_roots(graph), done);
  CS_TRY(st, count(&pass, report), done);
done:
  cs_pair_map_free(&pass.children);
  free(pass.terminal);
  free(pass.concats);
  free(pass.is_output);
  return st;
}
