/* The public API's view of the profile database: its folder, and a device's part of it. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "profiler/cache.h"
#include "runtime/device.h"

/* ---- What is there ---- */

static cs_status add_summary(json_t *json, cs_profile *profile) {
  cs_profile_summary s;
  const cs_device_info *device = cs_profile_device(profile);
  CS_RETURN_IF_ERROR(cs_profile_summarise(profile, &s));
  json_t *all =
      json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "identity",
                cs_profile_identity(profile), "method", s.method, "operations", s.operations,
                "complete", s.complete, "records", s.records, "rejected", s.rejected, "kernels",
                s.kernels, "coruns", s.coruns, "damaged", s.damaged, "foreign", s.foreign);
  bool failed = !all || json_object_update(json, all) != 0;
  json_decref(all);
  if (device) json_object_set_new(json, "device", json_string(device->name));
  return failed ? cs_no_memory("a description of a profile", 0) : CS_OK;
}

static cs_status describe_file(const cs_cache_file *file, json_t *list) {
  cs_profile *profile = NULL;
  json_t *json = json_pack("{s:s, s:I, s:I}", "file", file->path, "bytes", (json_int_t)file->bytes,
                           "last_use", (json_int_t)file->last_use);
  if (!json || json_array_append_new(list, json) != 0) return cs_no_memory("a list of files", 0);
  cs_status st = cs_profile_open_file(file->path, NULL, &profile);
  if (st != CS_OK) {
    json_object_set_new(json, "error", json_string(cs_status_message(st)));
    cs_status_free(st);
    return CS_OK;
  }
  st = add_summary(json, profile);
  cs_profile_close(profile);
  return st;
}

static cs_status choose_directory(const char *cache_dir, char **out) {
  return cache_dir ? cs_strdup_to(cache_dir, out) : cs_default_cache_directory(out);
}

cs_status cs_cache_json(const char *cache_dir, char **out) {
  cs_status st = CS_OK;
  cs_cache_files files = {0};
  char *directory = NULL;
  int64_t cap = 0;
  json_t *list = json_array();
  *out = NULL;
  CS_TRY(st, choose_directory(cache_dir, &directory), done);
  CS_TRY(st, cs_cache_cap(&cap), done);
  CS_TRY(st, cs_cache_list(directory, &files), done);
  for (int i = 0; i < files.n; i++) CS_TRY(st, describe_file(&files.items[i], list), done);
  st = cs_json_take_text(
      json_pack("{s:s, s:I, s:I, s:O}", "directory", directory, "bytes", (json_int_t)files.bytes,
                "cap_bytes", (json_int_t)cap, "files", list),
      out);
done:
  json_decref(list);
  cs_cache_files_clear(&files);
  free(directory);
  return st;
}

cs_status cs_cache_clear(const char *cache_dir, double older_than_days, int *files,
                         int64_t *bytes) {
  cs_status st = CS_OK;
  cs_cache_files found = {0};
  char *directory = NULL;
  *files = 0;
  *bytes = 0;
  CS_TRY(st, choose_directory(cache_dir, &directory), done);
  CS_TRY(st, cs_cache_list(directory, &found), done);
  for (int i = 0; i < found.n; i++) {
    const cs_cache_file *file = &found.items[i];
    double age_s = difftime(time(NULL), (time_t)file->last_use);
    if (older_than_days > 0 && age_s <= older_than_days * 86400) continue;
    CS_TRY(st, cs_cache_remove(file->path), done);
    (*files)++;
    *bytes += file->bytes;
  }
done:
  cs_cache_files_clear(&found);
  free(directory);
  return st;
}

/* ---- A device's own ---- */

cs_status cs_device_profile_json(cs_device *device, const char *cache_dir, char **out) {
  cs_profile *profile = NULL;
  *out = NULL;
  CS_RETURN_IF_ERROR(cs_device_profile(device, cache_dir, &profile));
  json_t *json = json_object();
  const char *path = cs_profile_path(profile);
  const cs_device_info *info = device->backend->vtable->info(device->backend);
  json_object_set_new(json, "path", path ? json_string(path) : json_null());
  json_object_set_new(json, "device", json_string(info->name));
  cs_status st = json ? add_summary(json, profile) : CS_OK;
  if (st != CS_OK) {
    json_decref(json);
    return st;
  }
  return cs_json_take_text(json, out);
}

cs_status cs_device_export_profile(cs_device *device, const char *cache_dir, const char *path) {
  cs_profile *profile = NULL;
  CS_RETURN_IF_ERROR(cs_device_profile(device, cache_dir, &profile));
  return cs_profile_export(profile, path);
}

cs_status cs_device_import_profile(cs_device *device, const char *cache_dir, const char *path,
                                   int *taken) {
  cs_profile *profile = NULL;
  *taken = 0;
  CS_RETURN_IF_ERROR(cs_device_must_compute(device, "import of a profile"));
  CS_RETURN_IF_ERROR(cs_device_profile(device, cache_dir, &profile));
  return cs_profile_import(profile, path, taken);
}
