/* What a line of the database says: its kind, and its contents into the entry it belongs to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/database.h"
#include "profiler/record_json.h"

/* ---- Reports ---- */

void cs_skipped_add(cs_skipped_lines *skipped, int number) {
  const int room = (int)(sizeof skipped->numbers / sizeof skipped->numbers[0]);
  if (skipped->n < room) skipped->numbers[skipped->n] = number;
  skipped->n++;
}

static void print_skipped(cs_strbuf *text, const cs_skipped_lines *skipped, const char *what) {
  const int room = (int)(sizeof skipped->numbers / sizeof skipped->numbers[0]);
  if (skipped->n == 0) return;
  cs_strbuf_printf(text, "%s%d %s (line%s", text->length ? ", " : "", skipped->n, what,
                   skipped->n == 1 ? "" : "s");
  for (int i = 0; i < skipped->n && i < room; i++) {
    cs_strbuf_printf(text, "%s %d", i ? "," : "", skipped->numbers[i]);
  }
  cs_strbuf_printf(text, "%s)", skipped->n > room ? ", …" : "");
}

void cs_report_skipped(const cs_logger *logger, const char *path, const cs_skipped_lines *damaged,
                       const cs_skipped_lines *foreign) {
  cs_strbuf text = {0};
  print_skipped(&text, damaged, "damaged");
  print_skipped(&text, foreign, "of another version or device");
  if (text.length > 0 && !text.failed) {
    cs_log(logger, damaged->n ? CS_LOG_WARNING : CS_LOG_INFO,
           "%s: skipped lines count as not measured: %s", path, text.data);
  }
  cs_strbuf_free(&text);
}

/* ---- Classifying a line by parsing it ---- */

cs_line_kind cs_line_kind_of(const json_t *object) {
  static const struct {
    const char *member;
    cs_line_kind kind;
  } kinds[] = {{"candidate", CS_LINE_RECORD},
               {"complete", CS_LINE_COMPLETION},
               {"kernels", CS_LINE_KERNELS},
               {"corun", CS_LINE_CORUN},
               {"device_info", CS_LINE_DEVICE}};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    if (json_object_get(object, kinds[i].member)) return kinds[i].kind;
  }
  return CS_LINE_FOREIGN;
}

/* A co-run is filed under its members' signatures, nowhere else. */
static bool belongs_to(const cs_corun *corun, const char *op, cs_status *st) {
  char *signature = NULL;
  *st = cs_signature_of_corun(corun, &signature);
  bool same = *st == CS_OK && strcmp(signature, op) == 0;
  free(signature);
  return same;
}

/* Would the line's contents be taken? Running out of memory is not damage. */
static bool is_readable(const json_t *root, cs_line_kind kind) {
  cs_profile scratch = {0};
  bool damaged = false;
  if (kind == CS_LINE_FOREIGN) return true;
  cs_profile_entry *entry = cs_calloc(1, sizeof *entry);
  if (!entry) return true;
  entry->op.signature = cs_strdup(json_string_value(json_object_get(root, "op")));
  if (entry->op.signature) cs_status_free(cs_profile_apply(&scratch, entry, root, &damaged));
  cs_profile_entry_free(entry);
  return !damaged;
}

cs_line_kind cs_line_classify(const char *identity, const char *line, size_t length,
                              json_t **root) {
  *root = json_loadb(line, length, 0, NULL);
  const char *schema = json_string_value(json_object_get(*root, "schema"));
  const char *device = json_string_value(json_object_get(*root, "device"));
  const json_t *method = json_object_get(*root, "method");
  if (!schema || strncmp(schema, "convsched.profile/", 18) != 0) return CS_LINE_DAMAGED;
  if (strcmp(schema, "convsched.profile/1") != 0) return CS_LINE_FOREIGN;
  if (!device || !json_is_integer(method)) return CS_LINE_DAMAGED;
  if (json_integer_value(method) != CS_MEASURE_VERSION || strcmp(device, identity) != 0) {
    return CS_LINE_FOREIGN;
  }
  if (!json_is_string(json_object_get(*root, "op"))) return CS_LINE_DAMAGED;
  cs_line_kind kind = cs_line_kind_of(*root);
  return is_readable(*root, kind) ? kind : CS_LINE_DAMAGED;
}

/* ---- Putting a parsed line into its entry ---- */

static cs_parse_result apply_record(cs_profile_entry *entry, const json_t *object, cs_status *st) {
  cs_record record;
  cs_parse_result result = cs_record_from_json(object, &record);
  if (result != CS_PARSED) return result;
  *st = cs_profile_put_record(entry, &record);
  cs_record_clear(&record);
  return result;
}

static cs_parse_result apply_completion(cs_profile_entry *entry, const json_t *object,
                                        cs_status *st) {
  cs_completion completion;
  cs_parse_result result = cs_completion_from_json(object, &completion);
  if (result == CS_PARSED) *st = cs_profile_put_completion(entry, &completion);
  return result;
}

static cs_parse_result apply_kernels(cs_profile_entry *entry, const json_t *object, cs_status *st) {
  const char *candidate = NULL;
  cs_kernel_profile *kernels = NULL;
  int n = 0;
  cs_parse_result result = cs_kernels_from_json(object, &candidate, &kernels, &n);
  if (result != CS_PARSED) return result;
  *st = cs_profile_put_kernels(entry, candidate, &kernels, n);
  free(kernels);
  return result;
}

static cs_parse_result apply_corun(cs_profile_entry *entry, const json_t *object, cs_status *st) {
  cs_corun corun;
  cs_parse_result result = cs_corun_from_json(object, &corun);
  if (result != CS_PARSED) return result;
  if (!belongs_to(&corun, entry->op.signature, st)) {
    result = CS_PARSE_DAMAGED;
  } else {
    *st = cs_profile_put_corun(entry, &corun);
  }
  cs_corun_clear(&corun);
  return result;
}

static cs_parse_result apply_device(cs_profile *profile, const cs_profile_entry *entry,
                                    const json_t *object) {
  cs_device_info info;
  cs_parse_result result = cs_device_from_json(object, &info);
  if (result == CS_PARSED && strcmp(entry->op.signature, CS_DEVICE_OP) != 0) {
    result = CS_PARSE_DAMAGED;
  }
  if (result != CS_PARSED) return result;
  snprintf(info.identity, sizeof info.identity, "%s", profile->identity ? profile->identity : "");
  profile->device = info;
  profile->has_device = true;
  return result;
}

cs_status cs_profile_apply(cs_profile *profile, cs_profile_entry *entry, const json_t *object,
                           bool *damaged) {
  cs_status st = CS_OK;
  cs_parse_result result = CS_PARSE_DAMAGED;
  switch (cs_line_kind_of(object)) {
    case CS_LINE_RECORD:
      result = apply_record(entry, object, &st);
      break;
    case CS_LINE_COMPLETION:
      result = apply_completion(entry, object, &st);
      break;
    case CS_LINE_KERNELS:
      result = apply_kernels(entry, object, &st);
      break;
    case CS_LINE_CORUN:
      result = apply_corun(entry, object, &st);
      break;
    case CS_LINE_DEVICE:
      result = apply_device(profile, entry, object);
      break;
    case CS_LINE_FOREIGN:
    case CS_LINE_DAMAGED:
      break;
  }
  if (result == CS_PARSE_NO_MEMORY) st = cs_no_memory("a profile record", 0);
  *damaged = result == CS_PARSE_DAMAGED;
  return st;
}

/* ---- Pending lines ---- */

static cs_status apply_line(cs_profile *profile, cs_profile_entry *entry,
                            const cs_pending_line *line, bool *damaged) {
  cs_record record;
  if (cs_record_scan(profile->text + line->tail, line->length, &record)) {
    cs_status st = cs_profile_put_record(entry, &record);
    cs_record_clear(&record);
    return st;
  }
  /* `,"candidate":{…},"measured":{…}}` with a brace for its comma is an object of its own. */
  profile->text[line->tail] = '{';
  json_t *object = json_loadb(profile->text + line->tail, line->length, 0, NULL);
  profile->text[line->tail] = ',';
  *damaged = object == NULL;
  if (!object) return CS_OK;
  cs_status st = cs_profile_apply(profile, entry, object, damaged);
  json_decref(object);
  return st;
}

static cs_status apply_pending(cs_profile *profile, cs_profile_entry *entry,
                               cs_skipped_lines *damaged) {
  while (entry->first_pending >= 0) {
    const cs_pending_line *line = &profile->pending[entry->first_pending];
    bool bad = false;
    CS_RETURN_IF_ERROR(apply_line(profile, entry, line, &bad));
    if (bad) {
      cs_skipped_add(damaged, line->number);
      cs_skipped_add(&profile->damaged, line->number);
    }
    entry->first_pending = line->next;
  }
  entry->last_pending = -1;
  return CS_OK;
}

cs_status cs_profile_materialise(cs_profile *profile, cs_profile_entry *entry) {
  cs_skipped_lines damaged = {0}, none = {0};
  if (entry->first_pending < 0) return CS_OK;
  cs_status st = apply_pending(profile, entry, &damaged);
  cs_profile_sort(entry);
  cs_report_skipped(&profile->logger, profile->path, &damaged, &none);
  return st;
}
