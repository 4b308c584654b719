/* The kernels of a session's plan: from the driver where there is one, else as they were recorded.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "report/report.h"
#include "runtime/kernel_list.h"

static cs_status read_kernels(const cs_session *session, cs_kernel_info **out, int *n) {
  const cs_backend_vtable *vtable = session->device->backend->vtable;
  cs_schedule *schedule = session->realised.schedule;
  *n = session->planned.plan->n_tasks;
  if (vtable->schedule_kernels) CS_RETURN_IF_ERROR(vtable->schedule_kernels(schedule, NULL, 0, n));
  *out = cs_calloc((size_t)*n, sizeof **out);
  if (!*out) return cs_no_memory("kernels", (size_t)*n * sizeof **out);
  int count = *n;
  if (vtable->schedule_kernels) return vtable->schedule_kernels(schedule, *out, *n, &count);
  const cs_plan *plan = session->planned.plan;
  *n = 0;
  for (int p = 0; p < plan->n_tasks; p++) {
    if (plan->tasks[p].merged < 0) (*out)[(*n)++].launch = p;
  }
  return CS_OK;
}

/* Counters that the profile has of the same kernels; NULL: none. */
static cs_status find_record(const cs_session *session, int position, const cs_record **out) {
  const cs_plan_task *placed = &session->planned.plan->tasks[position];
  char *signature = NULL;
  *out = NULL;
  if (!session->device->profile) return CS_OK;
  CS_RETURN_IF_ERROR(
      cs_op_signature(&session->planned.program->tasks[placed->task].desc, &signature));
  *out = cs_op_profile_record(cs_profile_find(session->device->profile, signature),
                              placed->candidate.id);
  free(signature);
  return CS_OK;
}

/* kernels[n]: those of one launch. */
static cs_status add_counters(const cs_session *session, cs_kernel_profile *kernels, int n) {
  const cs_record *record;
  CS_RETURN_IF_ERROR(find_record(session, kernels[0].info.launch, &record));
  if (!record || record->n_kernels != n) return CS_OK;
  for (int k = 0; k < n; k++) {
    if (strcmp(record->kernels[k].info.name, kernels[k].info.name) != 0) return CS_OK;
  }
  for (int k = 0; k < n; k++) {
    kernels[k].counted = record->kernels[k].counted;
    kernels[k].counters = record->kernels[k].counters;
  }
  return CS_OK;
}

static cs_status make_kernels(const cs_session *session, cs_kernel_profile **out, int *n) {
  cs_kernel_info *infos = NULL;
  cs_status st = read_kernels(session, &infos, n);
  cs_kernel_profile *kernels = cs_calloc((size_t)*n, sizeof *kernels);
  if (st == CS_OK && !kernels) st = cs_no_memory("kernels", (size_t)*n * sizeof *kernels);
  for (int i = 0; st == CS_OK && i < *n; i++) kernels[i].info = infos[i];
  for (int i = 0, end; st == CS_OK && i < *n; i = end) {
    for (end = i + 1; end < *n && infos[end].launch == infos[i].launch; end++) continue;
    if (end > i + 1 && infos[i].launch >= 0) st = add_counters(session, kernels + i, end - i);
  }
  free(infos);
  if (st != CS_OK) {
    free(kernels);
    return st;
  }
  *out = kernels;
  return CS_OK;
}

cs_status cs_session_kernels_make(const cs_session *session, cs_session_kernels *out) {
  const cs_backend *backend = session->device->backend;
  *out = (cs_session_kernels){0};
  CS_RETURN_IF_ERROR(make_kernels(session, &out->kernels, &out->input.n_kernels));
  out->input.bound = session->planned.bound;
  out->input.program = session->planned.program;
  out->input.plan = session->planned.plan;
  out->input.device = backend->vtable->info(backend);
  out->input.kernels = out->kernels;
  out->input.recorded = cs_device_is_simulated(session->device);
  cs_status st = cs_kernel_list_make(&out->input, &out->list);
  if (st != CS_OK) cs_session_kernels_free(out);
  return st;
}

void cs_session_kernels_free(cs_session_kernels *kernels) {
  cs_kernel_list_free(&kernels->list);
  free(kernels->kernels);
  *kernels = (cs_session_kernels){0};
}

/* Names for a person beside the driver's. */
static cs_status add_short_names(json_t *kernels) {
  size_t i;
  json_t *kernel;
  json_array_foreach(kernels, i, kernel) {
    const char *name = json_string_value(json_object_get(kernel, "kernel"));
    char text[64];
    if (name) cs_report_kernel_name(name, text);
    if (json_object_set_new(kernel, "short", name ? json_string(text) : json_null()) != 0) {
      return cs_no_memory("a list of kernels", 0);
    }
  }
  return CS_OK;
}

static json_t *head_json(const cs_session *session) {
  const cs_plan *plan = session->planned.plan;
  const cs_backend *backend = session->device->backend;
  const cs_device_info *info = backend->vtable->info(backend);
  bool simulated = cs_device_is_simulated(session->device);
  const char *source = simulated                           ? "profile"
                       : backend->vtable->schedule_kernels ? "driver"
                                                           : "none";
  return json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:s, s:b, s:s, s:i, s:f}", "schema",
                   "convsched.kernels/1", "model", cs_graph_name(session->planned.bound), "batch",
                   (json_int_t)plan->batch, "dtype", cs_precision_name(plan->precision), "policy",
                   plan->policy, "device", info->name, "backend", info->backend, "simulated",
                   simulated, "source", source, "streams", plan->n_streams, "predicted_us",
                   plan->predicted_us);
}

cs_status cs_session_kernels_json(const cs_session *session, char **out) {
  cs_status st = CS_OK;
  cs_session_kernels kernels;
  json_t *json = NULL, *head = NULL;
  *out = NULL;
  CS_RETURN_IF_ERROR(cs_session_kernels_make(session, &kernels));
  CS_TRY(st, cs_kernel_list_json(&kernels.list, &kernels.input, &json), done);
  CS_TRY(st, add_short_names(json_object_get(json, "kernels")), done);
  head = head_json(session);
  if (!head || json_object_update(head, json) != 0) {
    json_decref(head);
    head = NULL; /* reported by cs_json_take_text */
  }
  st = cs_json_take_text(head, out);
done:
  json_decref(json);
  cs_session_kernels_free(&kernels);
  return st;
}
