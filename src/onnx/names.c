/* Names of our nodes: docs/onnx.md, "Names". */
#include <stdlib.h>
#include <string.h>

#include "onnx/import.h"

const char *cs_onnx_label(const Onnx__NodeProto *node) {
  if (node->name && node->name[0]) return node->name;
  if (node->n_output > 0 && node->output[0][0]) return node->output[0];
  return node->op_type ? node->op_type : "";
}

size_t cs_onnx_most_name(const cs_onnx_import *import) {
  return import->model->as_written ? CS_ONNX_MOST_OWN_NAME : CS_ONNX_MOST_NAME;
}

/* Cut to `most` bytes between characters; `fallback` where it is empty. */
static cs_status usable(const char *wanted, const char *fallback, size_t most, char **out) {
  CS_RETURN_IF_ERROR(cs_strdup_to(wanted[0] ? wanted : fallback, out));
  size_t length = strlen(*out);
  if (length <= most) return CS_OK;
  length = most;
  while (length > 0 && ((unsigned char)(*out)[length] & 0xc0) == 0x80) length--;
  (*out)[length] = '\0';
  return CS_OK;
}

cs_status cs_onnx_new_name(cs_onnx_import *import, const char *wanted, const char *fallback,
                           char **out) {
  cs_status st = CS_OK;
  char *base = NULL, *name = NULL;
  *out = NULL;
  CS_TRY(st, usable(wanted, fallback, cs_onnx_most_name(import), &base), done);
  CS_TRY(st, cs_strdup_to(base, &name), done);
  /* The number last given is kept with the name, so that many equal ones take no longer each. */
  int first = cs_name_map_get(&import->used_names, base), existing = first;
  while (existing >= 0) {
    cs_strbuf text = {0};
    free(name);
    name = NULL;
    cs_strbuf_printf(&text, "%s_%d", base, ++import->numbers[first]);
    CS_TRY(st, cs_strbuf_take(&text, &name), done);
    existing = cs_name_map_get(&import->used_names, name);
  }
  size_t n = import->used_names.n;
  CS_TRY(st, cs_grow(&import->numbers, &import->numbers_capacity, n + 1, sizeof(int)), done);
  CS_TRY(st, cs_name_map_put(&import->used_names, name, (int)n, &existing), done);
  import->numbers[n] = 1;
  *out = name;
  name = NULL;
done:
  free(name);
  free(base);
  return st;
}

static bool makes_output(const cs_onnx_import *import, const Onnx__NodeProto *node) {
  int value = node->n_output ? cs_name_map_get(&import->value_of, node->output[0]) : -1;
  return value >= 0 && import->values[value].is_output;
}

cs_status cs_onnx_name_nodes(cs_onnx_import *import) {
  size_t n = import->graph->n_node;
  import->names = cs_calloc(n, sizeof *import->names);
  if (!import->names) return cs_no_memory("names", n * sizeof *import->names);
  /* Outputs first: their names are what the network is known by. */
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < n; i++) {
      const Onnx__NodeProto *node = import->graph->node[i];
      bool output = makes_output(import, node);
      if (output != (pass == 0)) continue;
      const char *wanted = output ? node->output[0] : cs_onnx_label(node);
      CS_RETURN_IF_ERROR(cs_onnx_new_name(import, wanted, "node", &import->names[i]));
    }
  }
  return CS_OK;
}
