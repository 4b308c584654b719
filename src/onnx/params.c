#include "onnx/params.h"

#include <stdlib.h>
#include <string.h>

/* Element (row, column) of the result is element (column, row) of what is stored. Columns are read
 * inside, a block of result rows at a time, so that each stored row's part is one piece. */
static void read_transposed(const cs_onnx_param *param, int64_t first, int64_t count, float *out) {
  const cs_onnx_tensor *tensor = &param->tensor;
  int64_t columns = param->columns, stored = param->rows;
  int64_t last = first + count - 1;
  int64_t row_first = first / columns, row_last = last / columns;
  float strip[64];
  for (int64_t row = row_first; row <= row_last; row += 64) {
    int64_t rows = cs_min_i64(64, row_last - row + 1);
    for (int64_t column = 0; column < columns; column++) {
      cs_onnx_tensor_f32(tensor, column * stored + row, rows, strip);
      for (int64_t r = 0; r < rows; r++) {
        int64_t at = (row + r) * columns + column;
        if (at >= first && at <= last) out[at - first] = strip[r];
      }
    }
  }
}

/* Varints have no fixed places, so a strip would be searched from the beginning each time. */
static cs_status read_transposed_list(const cs_onnx_param *param, int64_t first, int64_t count,
                                      float *out) {
  const cs_onnx_tensor *tensor = &param->tensor;
  int64_t columns = param->columns, stored = param->rows;
  float *all = cs_calloc((size_t)tensor->elements, sizeof *all);
  if (!all) return cs_no_memory("a parameter", (size_t)tensor->elements * sizeof *all);
  cs_onnx_tensor_f32(tensor, 0, tensor->elements, all);
  for (int64_t i = 0; i < count; i++) {
    out[i] = all[(first + i) % columns * stored + (first + i) / columns];
  }
  free(all);
  return CS_OK;
}

static cs_status read_param(const cs_onnx_param *param, int64_t first, int64_t count, float *out) {
  const cs_onnx_tensor *tensor = &param->tensor;
  if (param->values) {
    memcpy(out, param->values + first, (size_t)count * sizeof *out);
    return CS_OK;
  }
  if (!param->has_tensor || (tensor->elements == 1 && param->count != 1)) {
    float fill = (float)param->fill;
    if (param->has_tensor) {
      cs_onnx_tensor_f32(tensor, 0, 1, &fill);
      fill = (float)((double)fill * param->scale);
    }
    for (int64_t i = 0; i < count; i++) out[i] = fill;
    return CS_OK;
  }
  if (param->transposed && !tensor->data) {
    CS_RETURN_IF_ERROR(read_transposed_list(param, first, count, out));
  } else if (param->transposed) {
    read_transposed(param, first, count, out);
  } else {
    cs_onnx_tensor_f32(tensor, first, count, out);
  }
  for (int64_t i = 0; param->scale != 1.0 && i < count; i++) {
    out[i] = (float)((double)out[i] * param->scale);
  }
  if (first + count == param->count) cs_onnx_tensor_release(tensor);
  return CS_OK;
}

static cs_status read_source(const cs_param_source *source, const char *name, int64_t first,
                             int64_t count, float *out) {
  const cs_onnx_params *params = (const cs_onnx_params *)(const void *)source;
  int index = cs_name_map_get(&params->by_name, name);
  if (index < 0) return cs_error(CS_CODE_INTERNAL, "no imported parameter \"%s\"", name);
  const cs_onnx_param *param = &params->params[index];
  if (first < 0 || count < 0 || first > param->count - count) {
    return cs_error(CS_CODE_INTERNAL, "imported parameter \"%s\" has %lld elements", name,
                    (long long)param->count);
  }
  if (count == 0) return CS_OK;
  CS_RETURN_IF_ERROR(read_param(param, first, count, out));
  return param->has_tensor ? cs_onnx_model_check_at(params->model, param->tensor.data) : CS_OK;
}

static const char *file_at(const cs_param_source *source, const char *path) {
  const cs_onnx_params *params = (const cs_onnx_params *)(const void *)source;
  return cs_onnx_model_file_at(params->model, path);
}

static void destroy_source(cs_param_source *source) {
  cs_onnx_params_destroy((cs_onnx_params *)(void *)source);
}

cs_status cs_onnx_params_create(cs_onnx_model *model, cs_onnx_params **out) {
  *out = cs_calloc(1, sizeof **out);
  if (!*out) return cs_no_memory("parameters", sizeof **out);
  (*out)->source = (cs_param_source){read_source, file_at, destroy_source};
  (*out)->model = model;
  return CS_OK;
}

void cs_onnx_params_destroy(cs_onnx_params *params) {
  if (!params) return;
  for (size_t i = 0; i < params->n; i++) {
    free(params->names[i]);
    free(params->params[i].values);
  }
  free(params->names);
  free(params->params);
  cs_name_map_free(&params->by_name);
  cs_onnx_model_close(params->model);
  free(params);
}

cs_status cs_onnx_params_add(cs_onnx_params *params, char *name, const cs_onnx_param *param) {
  cs_status st = CS_OK;
  int existing;
  CS_TRY(st, cs_grow(&params->names, &params->names_capacity, params->n + 1, sizeof name), done);
  CS_TRY(st, cs_grow(&params->params, &params->capacity, params->n + 1, sizeof *param), done);
  CS_TRY(st, cs_name_map_put(&params->by_name, name, (int)params->n, &existing), done);
  if (existing >= 0) CS_FAIL(st, done, CS_CODE_INTERNAL, "parameter \"%s\" is there twice", name);
  params->names[params->n] = name;
  params->params[params->n++] = *param;
  name = NULL;
done:
  free(name);
  return st;
}
