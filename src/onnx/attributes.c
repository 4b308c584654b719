/* Attributes of a node, with ONNX's defaults. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/import.h"

const Onnx__AttributeProto *cs_onnx_attribute(const cs_onnx_node *node, const char *name) {
  for (size_t i = 0; i < node->proto->n_attribute; i++) {
    const Onnx__AttributeProto *attribute = node->proto->attribute[i];
    if (attribute->name && strcmp(attribute->name, name) == 0) return attribute;
  }
  return NULL;
}

static const char *type_name(Onnx__AttributeProto__AttributeType type) {
  static const char *const names[] = {"no type",  "a float", "an integer", "a string",
                                      "a tensor", "a graph", "floats",     "integers",
                                      "strings",  "tensors", "graphs"};
  size_t at = (size_t)type;
  return at < sizeof names / sizeof names[0] ? names[at] : "another type";
}

/* *out is NULL where the attribute is absent or refused. */
static cs_status find(cs_onnx_node *node, const char *name,
                      Onnx__AttributeProto__AttributeType wanted,
                      const Onnx__AttributeProto **out) {
  *out = cs_onnx_attribute(node, name);
  if (!*out || (*out)->type == wanted) return CS_OK;
  Onnx__AttributeProto__AttributeType found = (*out)->type;
  *out = NULL;
  return cs_onnx_refuse(node, "attribute %s: found %s, wanted %s", name, type_name(found),
                        type_name(wanted));
}

cs_status cs_onnx_int(cs_onnx_node *node, const char *name, int64_t fallback, int64_t *out) {
  const Onnx__AttributeProto *attribute;
  CS_RETURN_IF_ERROR(find(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, &attribute));
  *out = attribute ? attribute->i : fallback;
  return CS_OK;
}

double cs_onnx_exact(const cs_onnx_node *node, const char *name, double value) {
  const json_t *reals = node->import->model->reals;
  char key[CS_ONNX_MOST_OWN_NAME + 64];
  if (!reals || !node->proto->name) return value;
  snprintf(key, sizeof key, "%s.%s", node->proto->name, name);
  double exact = json_real_value(json_object_get(reals, key));
  /* One that was left behind when the file was changed says something else. */
  bool in_range = fabs(exact) <= (double)FLT_MAX;
  return in_range && (double)(float)exact == value && exact != 0.0 ? exact : value;
}

cs_status cs_onnx_real(cs_onnx_node *node, const char *name, double fallback, double *out) {
  const Onnx__AttributeProto *attribute;
  CS_RETURN_IF_ERROR(find(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, &attribute));
  *out = fallback;
  if (!attribute) return CS_OK;
  if (isfinite(attribute->f)) {
    *out = cs_onnx_exact(node, name, (double)attribute->f);
    return CS_OK;
  }
  return cs_onnx_refuse(node, "attribute %s: found %g, wanted a finite number", name,
                        (double)attribute->f);
}

cs_status cs_onnx_ints(cs_onnx_node *node, const char *name, int n, int64_t fallback, int64_t least,
                       int64_t *out) {
  const Onnx__AttributeProto *attribute;
  for (int i = 0; i < n; i++) out[i] = fallback;
  CS_RETURN_IF_ERROR(find(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS, &attribute));
  if (!attribute) return CS_OK;
  if (attribute->n_ints != (size_t)n) {
    return cs_onnx_refuse(node, "attribute %s: found %zu numbers, wanted %d", name,
                          attribute->n_ints, n);
  }
  for (int i = 0; i < n; i++) {
    if (attribute->ints[i] < least || attribute->ints[i] > CS_MAX_EXTENT) {
      return cs_onnx_refuse(node, "attribute %s: found %lld, wanted %lld to %lld", name,
                            (long long)attribute->ints[i], (long long)least,
                            (long long)CS_MAX_EXTENT);
    }
    out[i] = attribute->ints[i];
  }
  return CS_OK;
}

cs_status cs_onnx_text(cs_onnx_node *node, const char *name, const char *fallback, char *out,
                       size_t size) {
  const Onnx__AttributeProto *attribute;
  strcpy(out, fallback);
  CS_RETURN_IF_ERROR(find(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING, &attribute));
  if (!attribute) return CS_OK;
  bool keyword = attribute->s.len < size;
  for (size_t i = 0; keyword && i < attribute->s.len; i++) {
    keyword = attribute->s.data[i] > 0x20 && attribute->s.data[i] < 0x7f;
  }
  if (!keyword) {
    return cs_onnx_refuse(node, "attribute %s: found a text of %zu bytes, wanted a keyword", name,
                          attribute->s.len);
  }
  if (attribute->s.len) memcpy(out, attribute->s.data, attribute->s.len);
  out[attribute->s.len] = '\0';
  return CS_OK;
}

cs_status cs_onnx_want_int(cs_onnx_node *node, const char *name, int64_t fallback, int64_t wanted) {
  int64_t found;
  CS_RETURN_IF_ERROR(cs_onnx_int(node, name, fallback, &found));
  if (found == wanted) return CS_OK;
  return cs_onnx_refuse(node, "attribute %s: found %lld, wanted %lld", name, (long long)found,
                        (long long)wanted);
}

cs_status cs_onnx_list(cs_onnx_node *node, const char *name, size_t i, int64_t since, int most,
                       int64_t *out, int *n) {
  const Onnx__AttributeProto *attribute;
  cs_onnx_value *value = NULL;
  const cs_onnx_item *items = NULL;
  int64_t count = 0;
  *n = -1;
  if (node->import->opset < since) {
    CS_RETURN_IF_ERROR(find(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS, &attribute));
    if (!attribute) return CS_OK;
    count = (int64_t)attribute->n_ints;
  } else {
    CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, i, true, &value));
    if (!value) return CS_OK;
    CS_RETURN_IF_ERROR(cs_onnx_items(node->import, value, &items));
    count = cs_onnx_count(&value->data.shape);
  }
  bool good = count <= most && (!value || (items && cs_onnx_dtype_is_whole(value->dtype)));
  for (int64_t k = 0; good && k < count; k++) {
    int64_t found = items ? items[k].whole : attribute->ints[k];
    good = !items || !items[k].times_n;
    out[k] = cs_max_i64(-CS_MAX_EXTENT, cs_min_i64(found, CS_MAX_EXTENT));
  }
  if (good) *n = (int)count;
  if (good) return CS_OK;
  return cs_onnx_refuse(node, "%s %s: found %lld of %s, wanted at most %d integers",
                        value ? "input" : "attribute", name, (long long)count,
                        value ? cs_onnx_dtype_name(value->dtype) : "INT64", most);
}

cs_status cs_onnx_reals(cs_onnx_node *node, const char *name, size_t i, int most, double *out,
                        int *n) {
  cs_onnx_value *value;
  const cs_onnx_item *items;
  *n = -1;
  CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, i, true, &value));
  if (!value) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_items(node->import, value, &items));
  int64_t count = cs_onnx_count(&value->data.shape);
  if (!items || count > most || !cs_onnx_dtype_is_real(value->dtype)) {
    return cs_onnx_refuse(node, "input %s: found %lld of %s, wanted at most %d numbers", name,
                          (long long)count, cs_onnx_dtype_name(value->dtype), most);
  }
  *n = (int)count;
  for (int k = 0; k < *n; k++) {
    char element[64];
    snprintf(element, sizeof element, "%s.%d", name, k);
    if (items[k].times_n) return cs_onnx_refuse_of_batch(node, value);
    out[k] = cs_onnx_exact(node, element, items[k].real);
  }
  return CS_OK;
}

cs_status cs_onnx_axes(cs_onnx_node *node, size_t i, int64_t since, int rank,
                       int64_t axes[CS_MAX_RANK], int *n) {
  CS_RETURN_IF_ERROR(cs_onnx_list(node, "axes", i, since, CS_MAX_RANK, axes, n));
  for (int k = 0; k < *n; k++) {
    int64_t found = axes[k];
    if (found < -rank || found >= rank) {
      *n = -1;
      return cs_onnx_refuse(node, "axes: found %lld, wanted %d to %d", (long long)found, -rank,
                            rank - 1);
    }
    if (found < 0) axes[k] += rank;
    for (int earlier = 0; earlier < k; earlier++) {
      if (axes[earlier] != axes[k]) continue;
      *n = -1;
      return cs_onnx_refuse(node, "axes: found %lld twice, wanted each once", (long long)found);
    }
  }
  return CS_OK;
}
