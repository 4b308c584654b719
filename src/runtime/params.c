#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op_family.h"
#include "runtime/params_store.h"
#include "runtime/safetensors.h"

static int by_name(const void *a, const void *b) {
  return strcmp(((const cs_params_entry *)a)->name, ((const cs_params_entry *)b)->name);
}

static cs_status describe_entry(const cs_param *param, cs_params_entry *entry) {
  CS_RETURN_IF_ERROR(cs_strdup_to(param->name, &entry->name));
  entry->shape = param->shape;
  return cs_shape_elements(&param->shape, &entry->count);
}

cs_status cs_params_create(const cs_graph *graph, cs_params **out) {
  cs_status st = CS_OK;
  cs_param *list = NULL;
  cs_params *params = NULL;
  int count = 0;
  *out = NULL;
  CS_TRY(st, cs_graph_params(graph, &list, &count), done);
  params = cs_calloc(1, sizeof *params);
  if (params) params->entries = cs_calloc((size_t)count, sizeof *params->entries);
  if (!params || !params->entries) {
    st = cs_no_memory("the parameter table", (size_t)count * sizeof(cs_params_entry));
    goto done;
  }
  while (params->count < count) {
    params->count++;
    CS_TRY(st, describe_entry(&list[params->count - 1], &params->entries[params->count - 1]), done);
  }
  qsort(params->entries, (size_t)count, sizeof *params->entries, by_name);
  *out = params, params = NULL;
done:
  cs_params_destroy(params);
  cs_params_free(list, count);
  return st;
}

void cs_params_destroy(cs_params *params) {
  if (!params) return;
  for (int i = 0; params->entries && i < params->count; i++) {
    free(params->entries[i].name);
    free(params->entries[i].data);
  }
  free(params->entries);
  cs_safetensors_close(params->file);
  free(params);
}

static int name_against_entry(const void *key, const void *element) {
  return strcmp(key, ((const cs_params_entry *)element)->name);
}

const cs_params_entry *cs_params_find(const cs_params *params, const char *name) {
  return bsearch(name, params->entries, (size_t)params->count, sizeof *params->entries,
                 name_against_entry);
}

/* ---- Elements ---- */

static cs_status read_entry(const cs_params *params, const cs_params_entry *entry, float *out) {
  if (entry->tensor) return cs_safetensors_read_f32(params->file, entry->tensor, out);
  return params->source->read(params->source, entry->name, 0, entry->count, out);
}

cs_status cs_params_open(const cs_params *params, const char *name, cs_params_array *out) {
  const cs_params_entry *entry = cs_params_find(params, name);
  *out = (cs_params_array){0};
  if (!entry) return cs_error(CS_CODE_NOT_FOUND, "no parameter \"%s\"", name);
  if (entry->tensor) CS_RETURN_IF_ERROR(cs_safetensors_check_unchanged(params->file));
  out->count = entry->count;
  out->data = entry->data;
  out->tensor = entry->tensor;
  if (entry->tensor) out->data = cs_safetensors_f32(params->file, entry->tensor);
  if (out->data) return CS_OK;
  out->own = cs_calloc((size_t)entry->count, sizeof *out->own);
  if (!out->own) return cs_no_memory(name, (size_t)entry->count * sizeof *out->own);
  cs_status st = read_entry(params, entry, out->own);
  if (st != CS_OK) {
    free(out->own);
    *out = (cs_params_array){0};
    return st;
  }
  out->data = out->own;
  return CS_OK;
}

void cs_params_close(const cs_params *params, cs_params_array *array) {
  if (array->tensor) cs_safetensors_release(params->file, array->tensor);
  free(array->own);
  *array = (cs_params_array){0};
}

cs_status cs_params_find_not_finite(const cs_params *params, cs_not_finite *out) {
  *out = (cs_not_finite){0};
  for (int i = 0; i < params->count && !out->name; i++) {
    cs_params_array array = {0};
    CS_RETURN_IF_ERROR(cs_params_open(params, params->entries[i].name, &array));
    for (int64_t e = 0; e < array.count && !out->name; e++) {
      if (isfinite(array.data[e])) continue;
      *out = (cs_not_finite){params->entries[i].name, e, array.data[e]};
    }
    cs_params_close(params, &array);
  }
  return CS_OK;
}

/* ---- From files ---- */

static cs_status find_tensor(const cs_safetensors *file, const char *path, cs_params_entry *entry) {
  char found[CS_TEXT_SIZE], wanted[CS_TEXT_SIZE];
  const cs_safetensor *tensor = cs_safetensors_find(file, entry->name);
  if (!tensor) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: no tensor \"%s\" (the graph wants it with shape %s)",
                    path, entry->name, cs_shape_text(&entry->shape, wanted));
  }
  if (!cs_shape_equal(&tensor->shape, &entry->shape)) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: tensor \"%s\": shape %s, the graph wants %s", path,
                    entry->name, cs_shape_text(&tensor->shape, found),
                    cs_shape_text(&entry->shape, wanted));
  }
  entry->tensor = tensor;
  return cs_safetensors_check_f32(file, tensor);
}

cs_status cs_params_load(const cs_graph *graph, const char *path, int *n_extra, cs_params **out) {
  cs_status st = CS_OK;
  cs_safetensors *file = NULL;
  cs_params *params = NULL;
  *out = NULL;
  CS_TRY(st, cs_safetensors_open(path, &file), done);
  CS_TRY(st, cs_params_create(graph, &params), done);
  for (int i = 0; i < params->count; i++) {
    CS_TRY(st, find_tensor(file, path, &params->entries[i]), done);
  }
  if (n_extra) *n_extra = cs_safetensors_count(file) - params->count;
  params->file = file, file = NULL;
  *out = params, params = NULL;
done:
  cs_params_destroy(params);
  cs_safetensors_close(file);
  return st;
}

cs_status cs_params_from_source(const cs_graph *graph, cs_params **out) {
  CS_RETURN_IF_ERROR(cs_params_create(graph, out));
  (*out)->source = graph->param_source;
  return CS_OK;
}

cs_status cs_params_save(const cs_params *params, cs_dtype dtype, const char *path) {
  cs_status st = CS_OK;
  size_t n = (size_t)params->count;
  cs_safetensors_item *items = cs_calloc(n, sizeof *items);
  cs_params_array *arrays = cs_calloc(n, sizeof *arrays);
  if (!items || !arrays) {
    st = cs_no_memory("the tensor table", n * (sizeof *items + sizeof *arrays));
    goto done;
  }
  for (int i = 0; i < params->count; i++) {
    const cs_params_entry *entry = &params->entries[i];
    CS_TRY(st, cs_params_open(params, entry->name, &arrays[i]), done);
    items[i] = (cs_safetensors_item){entry->name, &entry->shape, arrays[i].data};
  }
  st = cs_safetensors_write(path, dtype, items, params->count, NULL, NULL);
done:
  for (int i = 0; arrays && i < params->count; i++) cs_params_close(params, &arrays[i]);
  free(arrays);
  free(items);
  return st;
}
