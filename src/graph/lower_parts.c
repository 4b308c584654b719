/* Lowering nodes whose batch is divided: part by part, each on its entries of the tensors. */
#include <stdlib.h>

#include "graph/lower.h"

/* Lists of the values in a buffer, before it is known whether there is one. */
enum { UNUSED = -2, WHOLE = -1 };

/* ---- Which values' parts are buffers of their own ---- */

/* `list`: of a node that writes or reads the value. */
static void use_value(const cs_lowering *lowering, int *list_of_root, int value, int list) {
  int *at = &list_of_root[lowering->location[value].root];
  if (*at == UNUSED) *at = list;
  if (*at != list) *at = WHOLE;
}

static cs_status find_apart(cs_lowering *lowering) {
  const cs_graph *graph = lowering->graph;
  const cs_division *division = lowering->program->division;
  size_t n = (size_t)graph->n_values;
  int *list_of_root = cs_calloc(n, sizeof *list_of_root);
  lowering->apart = cs_calloc(n, sizeof *lowering->apart);
  if (!list_of_root || !lowering->apart) {
    free(list_of_root);
    return cs_no_memory("parts", n * sizeof *list_of_root);
  }
  for (size_t v = 0; v < n; v++) list_of_root[v] = UNUSED;
  for (int i = 0; i < graph->n_nodes; i++) {
    const cs_node *node = &graph->nodes[i];
    for (int k = 0; k < node->n_inputs; k++) {
      use_value(lowering, list_of_root, node->inputs[k], division->list_of[i]);
    }
    use_value(lowering, list_of_root, node->output, division->list_of[i]);
  }
  for (int v = 0; v < graph->n_values; v++) {
    bool external = lowering->is_output[v] || graph->values[v].producer < 0;
    if (external) use_value(lowering, list_of_root, v, WHOLE);
  }
  for (size_t v = 0; v < n; v++) {
    lowering->apart[v] = list_of_root[lowering->location[v].root] >= 0;
  }
  free(list_of_root);
  return CS_OK;
}

/* ---- Begin, end ---- */

cs_status cs_lower_parts_begin(cs_lowering *lowering) {
  const cs_graph *graph = lowering->graph;
  CS_RETURN_IF_ERROR(find_apart(lowering));
  lowering->first_part = cs_calloc((size_t)graph->n_values, sizeof *lowering->first_part);
  if (!lowering->first_part) return cs_no_memory("parts", (size_t)graph->n_values * sizeof(int));
  for (int i = 0; i < graph->n_nodes; i++) {
    const cs_parts *parts = cs_division_parts(lowering->program->division, i);
    if (!parts) continue;
    lowering->first_part[graph->nodes[i].output] = (int)lowering->n_parts;
    lowering->n_parts += (size_t)parts->n;
  }
  lowering->part_tensor = cs_calloc(lowering->n_parts, sizeof *lowering->part_tensor);
  lowering->part_buffer = cs_calloc(lowering->n_parts, sizeof *lowering->part_buffer);
  if (!lowering->part_tensor || !lowering->part_buffer) {
    return cs_no_memory("parts", lowering->n_parts * sizeof *lowering->part_tensor);
  }
  for (size_t i = 0; i < lowering->n_parts; i++) {
    lowering->part_tensor[i] = lowering->part_buffer[i] = -1;
  }
  return CS_OK;
}

void cs_lower_parts_release(cs_lowering *lowering) {
  free(lowering->apart);
  free(lowering->first_part);
  free(lowering->part_tensor);
  free(lowering->part_buffer);
  cs_pair_map_free(&lowering->sliced);
  cs_pair_map_free(&lowering->converted_parts);
}

/* ---- Tensors of parts ---- */

void cs_lower_name(const cs_lowering *lowering, const char *name, cs_strbuf *out) {
  cs_strbuf_printf(out, "%s", name);
  if (lowering->now.part >= 0) cs_strbuf_printf(out, "/%d", lowering->now.part);
}

/* The entries that are being lowered of a tensor that has all of them. */
static cs_status slice(cs_lowering *lowering, int whole, int *out) {
  const cs_lowered_part *now = &lowering->now;
  int64_t key = (int64_t)now->list * CS_MOST_PARTS + now->part;
  int existing;
  *out = cs_pair_map_get(&lowering->sliced, whole, key);
  if (*out >= 0) return CS_OK;
  cs_tensor from = lowering->program->tensors[whole];
  from.desc.shape.dims[0] = now->n;
  int64_t offset = now->first * from.desc.strides[0] * cs_dtype_size(lowering->storage);
  CS_RETURN_IF_ERROR(cs_lower_add_tensor(lowering, from.value, from.buffer, from.offset + offset,
                                         &from.desc, lowering->writer[whole], out));
  return cs_pair_map_put(&lowering->sliced, whole, key, *out, &existing);
}

cs_status cs_lower_part_of(cs_lowering *lowering, int value, int *out) {
  int producer = lowering->graph->values[value].producer;
  const cs_division *division = lowering->program->division;
  if (producer >= 0 && division->list_of[producer] == lowering->now.list) {
    *out = lowering->part_tensor[lowering->first_part[value] + lowering->now.part];
    return CS_OK;
  }
  return slice(lowering, lowering->program->value_tensor[value], out);
}

/* A tensor in the part's own buffer, which others in the same root share. */
static cs_status own_part(cs_lowering *lowering, int value, int *out) {
  const cs_graph *graph = lowering->graph;
  cs_location at = lowering->location[value];
  cs_shape shape = graph->values[at.root].shape;
  shape.dims[0] = lowering->now.n;
  cs_tensor_desc desc =
      cs_tensor_dense(&shape, lowering->storage, lowering->program->layouts[at.root]);
  int *buffer = &lowering->part_buffer[lowering->first_part[at.root] + lowering->now.part];
  if (*buffer < 0) {
    cs_strbuf name = {0};
    cs_lower_name(lowering, graph->values[at.root].name, &name);
    CS_RETURN_IF_ERROR(cs_lower_add_buffer(lowering, &name, CS_BUFFER_INTERMEDIATE,
                                           cs_tensor_span_bytes(&desc), buffer));
  }
  return cs_lower_add_tensor(lowering, value, *buffer, 0, &desc, CS_WRITER_NONE, out);
}

cs_status cs_lower_part(cs_lowering *lowering, int value, int *out) {
  int *tensor = &lowering->part_tensor[lowering->first_part[value] + lowering->now.part];
  CS_RETURN_IF_ERROR(lowering->apart[value]
                         ? own_part(lowering, value, tensor)
                         : slice(lowering, lowering->program->value_tensor[value], tensor));
  *out = *tensor;
  return CS_OK;
}

/* ---- Nodes ---- */

cs_status cs_lower_divided(cs_lowering *lowering, int first, int end) {
  const cs_graph *graph = lowering->graph;
  const cs_division *division = lowering->program->division;
  const cs_parts *parts = cs_division_parts(division, first);
  for (int i = first; i < end; i++) {
    int value = graph->nodes[i].output, whole;
    if (lowering->apart[value]) continue;
    CS_RETURN_IF_ERROR(cs_lower_value(lowering, value, CS_WRITER_PARTS(value), &whole));
  }
  for (int p = 0; p < parts->n; p++) {
    lowering->now = (cs_lowered_part){.list = division->list_of[first],
                                      .part = p,
                                      .first = parts->firsts[p],
                                      .n = parts->sizes[p]};
    for (int i = first; i < end; i++) CS_RETURN_IF_ERROR(cs_lower_operation(lowering, i));
  }
  lowering->now = (cs_lowered_part){.list = -1, .part = -1};
  return CS_OK;
}
