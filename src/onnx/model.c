#include "onnx/model.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "onnx/wire.h"

/* ---- Mapped files ---- */

static cs_status map_descriptor(const char *path, int fd, cs_onnx_mapping *out) {
  struct stat info;
  if (fstat(fd, &info) != 0) return cs_io_error(path, "read", errno);
  if (S_ISDIR(info.st_mode)) return cs_io_error(path, "read", EISDIR);
  if (!S_ISREG(info.st_mode)) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: found a device or pipe, wanted a file", path);
  }
  CS_RETURN_IF_ERROR(cs_strdup_to(path, &out->path));
  out->modified = info.st_mtim;
  out->size = (size_t)info.st_size;
  if (out->size == 0) return CS_OK;
  void *data = mmap(NULL, out->size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return cs_io_error(path, "map", errno);
  out->data = data;
  return CS_OK;
}

static void unmap(cs_onnx_mapping *mapping) {
  if (mapping->data) munmap((void *)(uintptr_t)mapping->data, mapping->size);
  if (mapping->fd >= 0) close(mapping->fd);
  free(mapping->path);
  *mapping = (cs_onnx_mapping){.fd = -1};
}

static cs_status map_file(const char *path, cs_onnx_mapping *out) {
  *out = (cs_onnx_mapping){.fd = -1};
  /* Not blocking: a pipe without a writer is refused, not waited for. */
  out->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (out->fd < 0) return cs_io_error(path, "open", errno);
  cs_status st = map_descriptor(path, out->fd, out);
  if (st != CS_OK) unmap(out);
  return st;
}

static cs_status check_unchanged(const cs_onnx_mapping *mapping) {
  return cs_file_check_unchanged(mapping->fd, mapping->path, mapping->size, &mapping->modified);
}

cs_status cs_onnx_model_check_unchanged(const cs_onnx_model *model) {
  CS_RETURN_IF_ERROR(check_unchanged(&model->file));
  for (size_t i = 0; i < model->n_external; i++) {
    CS_RETURN_IF_ERROR(check_unchanged(&model->external[i]));
  }
  return CS_OK;
}

static bool holds(const cs_onnx_mapping *mapping, const uint8_t *at) {
  return mapping->data && at >= mapping->data && at < mapping->data + mapping->size;
}

cs_status cs_onnx_model_check_at(const cs_onnx_model *model, const uint8_t *at) {
  for (size_t i = 0; i < model->n_external; i++) {
    if (holds(&model->external[i], at)) return check_unchanged(&model->external[i]);
  }
  return check_unchanged(&model->file);
}

static bool is_of(const cs_onnx_mapping *mapping, const struct stat *other) {
  struct stat info;
  return fstat(mapping->fd, &info) == 0 && info.st_dev == other->st_dev &&
         info.st_ino == other->st_ino;
}

const char *cs_onnx_model_file_at(const cs_onnx_model *model, const char *path) {
  struct stat info;
  if (stat(path, &info) != 0) return NULL;
  if (is_of(&model->file, &info)) return model->file.path;
  for (size_t i = 0; i < model->n_external; i++) {
    if (is_of(&model->external[i], &info)) return model->external[i].path;
  }
  return NULL;
}

/* ---- External data ---- */

static cs_status location_error(const cs_onnx_model *model, const char *tensor,
                                const char *location, const char *wanted) {
  return cs_error(CS_CODE_BAD_INPUT,
                  "%s: tensor \"%s\": external data: found location \"%s\", wanted %s",
                  model->file.path, tensor, location, wanted);
}

/* The real path of the model's folder, ending in '/'. */
static cs_status real_folder(const cs_onnx_model *model, char folder[PATH_MAX]) {
  char *path = NULL;
  CS_RETURN_IF_ERROR(cs_strdup_to(model->file.path, &path));
  char *slash = strrchr(path, '/');
  if (slash) slash[slash == path ? 1 : 0] = '\0';
  char *real = realpath(slash ? path : ".", folder);
  int error = errno;
  free(path);
  if (!real) return cs_io_error(model->file.path, "find the folder of", error);
  size_t length = strlen(folder);
  if (folder[length - 1] != '/' && length + 1 < PATH_MAX) strcpy(folder + length, "/");
  return CS_OK;
}

cs_status cs_onnx_model_external(cs_onnx_model *model, const char *tensor, const char *location,
                                 const cs_onnx_mapping **out) {
  char folder[PATH_MAX], real[PATH_MAX];
  *out = NULL;
  if (!location || !location[0] || location[0] == '/') {
    return location_error(model, tensor, location ? location : "",
                          "a path relative to the model's folder");
  }
  CS_RETURN_IF_ERROR(real_folder(model, folder));
  cs_strbuf joined = {0};
  char *path = NULL;
  cs_strbuf_printf(&joined, "%s%s", folder, location);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&joined, &path));
  char *found = realpath(path, real);
  free(path);
  if (!found) return location_error(model, tensor, location, "a file that is there");
  /* After links and ".." are resolved: a model must not make others read /etc. */
  if (strncmp(real, folder, strlen(folder)) != 0) {
    return location_error(model, tensor, location, "a file below the model's folder");
  }
  for (size_t i = 0; i < model->n_external; i++) {
    if (strcmp(model->external[i].path, real) != 0) continue;
    *out = &model->external[i];
    return CS_OK;
  }
  CS_RETURN_IF_ERROR(cs_grow(&model->external, &model->external_capacity, model->n_external + 1,
                             sizeof *model->external));
  CS_RETURN_IF_ERROR(map_file(real, &model->external[model->n_external]));
  *out = &model->external[model->n_external++];
  return CS_OK;
}

/* ---- The model ---- */

static cs_status find_opset(cs_onnx_model *model) {
  const char *path = model->file.path;
  bool found = false;
  for (size_t i = 0; i < model->proto->n_opset_import; i++) {
    const Onnx__OperatorSetIdProto *import = model->proto->opset_import[i];
    const char *domain = import->domain ? import->domain : "";
    if (*domain && strcmp(domain, "ai.onnx") != 0) continue;
    if (found && model->opset != import->version) {
      return cs_error(CS_CODE_BAD_INPUT, "%s: opset_import: found opsets %lld and %lld, wanted one",
                      path, (long long)model->opset, (long long)import->version);
    }
    model->opset = import->version;
    found = true;
  }
  if (!found) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: opset_import: found no opset of ONNX's own operators, wanted %d to %d",
                    path, CS_ONNX_OPSET_MIN, CS_ONNX_OPSET_MAX);
  }
  if (model->opset >= CS_ONNX_OPSET_MIN && model->opset <= CS_ONNX_OPSET_MAX) return CS_OK;
  return cs_error(CS_CODE_BAD_INPUT, "%s: opset_import: found opset %lld, wanted %d to %d", path,
                  (long long)model->opset, CS_ONNX_OPSET_MIN, CS_ONNX_OPSET_MAX);
}

/* NULL: there is none. */
static const char *metadata(const Onnx__ModelProto *proto, const char *key) {
  for (size_t i = 0; i < proto->n_metadata_props; i++) {
    const Onnx__StringStringEntryProto *entry = proto->metadata_props[i];
    if (entry->key && entry->value && strcmp(entry->key, key) == 0) return entry->value;
  }
  return NULL;
}

static cs_status read_mark(cs_onnx_model *model) {
  const char *mark = metadata(model->proto, CS_ONNX_MARK_KEY);
  const char *reals = metadata(model->proto, CS_ONNX_REALS_KEY);
  model->as_written = mark && strcmp(mark, CS_ONNX_MARK_VALUE) == 0;
  if (!model->as_written || !reals) return CS_OK;
  model->reals = json_loads(reals, JSON_REJECT_DUPLICATES, NULL);
  if (json_is_object(model->reals)) return CS_OK;
  return cs_error(CS_CODE_BAD_INPUT,
                  "%s: metadata_props: found no JSON object in %s, wanted numbers by name",
                  model->file.path, CS_ONNX_REALS_KEY);
}

static cs_status unpack(cs_onnx_model *model) {
  cs_strbuf skeleton = {0};
  cs_status st = CS_OK;
  const char *path = model->file.path;
  if (model->file.size == 0) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: found an empty file, wanted an ONNX model", path);
  }
  CS_TRY(st, cs_wire_skeleton(path, model->file.data, model->file.size, &skeleton), done);
  model->proto = onnx__model_proto__unpack(NULL, skeleton.length, (const uint8_t *)skeleton.data);
  if (!model->proto) {
    CS_FAIL(st, done, CS_CODE_BAD_INPUT,
            "%s: found fields of other types than ONNX's ModelProto has, wanted an ONNX model",
            path);
  }
  model->graph = model->proto->graph;
  if (!model->graph) CS_FAIL(st, done, CS_CODE_BAD_INPUT, "%s: found no graph, wanted one", path);
  CS_TRY(st, read_mark(model), done);
  st = find_opset(model);
done:
  cs_strbuf_free(&skeleton);
  return st;
}

cs_status cs_onnx_model_open(const char *path, cs_onnx_model **out) {
  cs_status st = CS_OK;
  *out = NULL;
  cs_onnx_model *model = cs_calloc(1, sizeof *model);
  if (!model) return cs_no_memory("a model", sizeof *model);
  CS_TRY(st, map_file(path, &model->file), done);
  CS_TRY(st, unpack(model), done);
  *out = model;
  model = NULL;
done:
  cs_onnx_model_close(model);
  return st;
}

void cs_onnx_model_close(cs_onnx_model *model) {
  if (!model) return;
  json_decref(model->reals);
  if (model->proto) onnx__model_proto__free_unpacked(model->proto, NULL);
  for (size_t i = 0; i < model->n_external; i++) unmap(&model->external[i]);
  free(model->external);
  unmap(&model->file);
  free(model);
}
