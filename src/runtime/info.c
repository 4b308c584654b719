/* What a session says of itself, as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "runtime/micro_batches.h"
#include "scheduler/plan_split.h"

static json_t *tasks_json(const cs_session *session) {
  const cs_planned *planned = &session->planned;
  json_t *tasks = json_array();
  for (int p = 0; p < planned->plan->n_tasks; p++) {
    const cs_plan_task *step = &planned->plan->tasks[p];
    const cs_task *task = &planned->program->tasks[step->task];
    json_t *entry = json_pack("{s:s, s:s, s:s, s:i, s:s, s:I, s:f, s:f}", "name", task->name, "op",
                              cs_op_name(task->desc.op), "candidate", step->candidate.id, "stream",
                              step->stream, "layout", cs_layout_name(task->desc.output.layout),
                              "workspace_bytes", (json_int_t)step->workspace_bytes, "start_us",
                              step->start_us, "end_us", step->end_us);
    json_array_append_new(tasks, entry);
  }
  return tasks;
}

static json_t *passes_json(const cs_pass_report *passes) {
  return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "identities_dropped",
                   passes->identities_dropped, "batch_norms_folded", passes->batch_norms_folded,
                   "activations_fused", passes->activations_fused, "residuals_fused",
                   passes->residuals_fused, "prologues_fused", passes->prologues_fused,
                   "concats_in_place", passes->concats_in_place, "concat_inputs_copied",
                   passes->concat_inputs_copied);
}

static json_t *measured_json(const cs_measure_report *measured) {
  return json_pack("{s:i, s:i, s:i, s:i, s:f}", "operations", measured->operations,
                   "operations_cached", measured->operations_cached, "candidates",
                   measured->candidates, "candidates_rejected", measured->candidates_rejected,
                   "seconds", measured->seconds);
}

static json_t *stages_json(const cs_stage_report *stages) {
  return json_pack("{s:i, s:i, s:i, s:f}", "known", stages->known, "measured", stages->measured,
                   "estimated", stages->estimated, "seconds", stages->seconds);
}

static json_t *bytes_json(int64_t arena, int64_t workspace) {
  return json_pack("{s:I, s:I}", "arena_bytes", (json_int_t)arena, "workspace_bytes",
                   (json_int_t)workspace);
}

json_t *cs_memory_json(const cs_plan *plan, const cs_plan_bytes *sequential) {
  return json_pack("{s:o, s:o, s:o}", "plan", bytes_json(plan->arena_bytes, plan->workspace_peak),
                   "sequential", bytes_json(sequential->arena, sequential->workspace),
                   "concurrency_costs",
                   bytes_json(plan->arena_bytes - sequential->arena,
                              plan->workspace_peak - sequential->workspace));
}

json_t *cs_bounds_json(const cs_bounds *bounds) {
  return json_pack("{s:o, s:f, s:o}", "roofline_us", cs_json_number(bounds->roofline_us),
                   "critical_path_us", bounds->critical_path_us, "area_us",
                   cs_json_number(bounds->area_us));
}

/* Tasks by the layout of their outputs; *copies: those that are layout transforms. */
static json_t *layouts_json(const cs_program *program, int *copies) {
  int counts[CS_LAYOUT_COUNT] = {0};
  *copies = 0;
  for (int t = 0; t < program->n_tasks; t++) {
    counts[program->tasks[t].desc.output.layout]++;
    *copies += program->tasks[t].desc.op == CS_OP_COPY;
  }
  json_t *layouts = json_object();
  for (int l = 0; l < CS_LAYOUT_COUNT; l++) {
    if (counts[l] == 0) continue;
    json_object_set_new(layouts, cs_layout_name((cs_layout)l), json_integer(counts[l]));
  }
  return layouts;
}

static json_t *timings_json(const cs_timings *timings) {
  const cs_upload_times *upload = &timings->upload;
  return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:{s:f, s:f, s:f, s:f}}", "load", timings->load,
                   "passes", timings->passes, "profile", timings->profile, "plan", timings->plan,
                   "prepare", timings->prepare, "upload", upload->all, "upload_parts", "buffers",
                   upload->buffers, "pack", upload->pack, "copy", upload->copy, "wait",
                   upload->wait);
}

cs_status cs_session_info_json(const cs_session *session, char **out) {
  const cs_planned *planned = &session->planned;
  const cs_plan *plan = planned->plan;
  const cs_timings *timings = &session->timings;
  char hash[17];
  snprintf(hash, sizeof hash, "%016" PRIx64, planned->graph_hash);
  int copies = 0;
  json_t *layouts = layouts_json(planned->program, &copies);
  json_t *json = json_pack(
      "{s:s, s:i, s:i, s:i, s:i, s:I, s:I, s:f, s:f, s:s}", "policy", plan->policy, "streams",
      plan->n_streams, "kernels", session->realised.kernels, "tasks_planned", plan->n_tasks,
      "copies", copies, "arena_bytes", (json_int_t)plan->arena_bytes, "workspace_bytes",
      (json_int_t)plan->workspace_peak, "prepare_s", timings->prepare + timings->upload.all,
      "predicted_us", plan->predicted_us, "graph_hash", hash);
  if (!json) {
    json_decref(layouts);
    return cs_no_memory("JSON", 0);
  }
  json_object_set_new(json, "layouts", layouts);
  json_object_set_new(json, "split", cs_plan_split_json(plan));
  if (cs_device_is_simulated(session->device)) {
    json_object_set_new(json, "simulated", json_true());
  } else {
    json_object_set_new(json, "weights_bytes",
                        json_integer((json_int_t)session->realised.weights_bytes));
  }
  if (planned->choices) {
    json_object_set_new(json, "bounds", cs_bounds_json(&planned->bounds));
    json_object_set_new(json, "memory", cs_memory_json(plan, &planned->sequential));
  }
  json_object_set_new(json, "timings_s", timings_json(&session->timings));
  json_object_set_new(json, "passes", passes_json(&planned->passes));
  json_object_set_new(json, "measured", measured_json(&planned->measured));
  json_object_set_new(json, "tasks", tasks_json(session));
  if (session->stages.priced) json_object_set_new(json, "stages", stages_json(&session->stages));
  cs_status st = cs_search_report_json(&session->search, json);
  if (st == CS_OK) st = cs_micro_report_json(session, json);
  if (st != CS_OK) {
    json_decref(json);
    return st;
  }
  return cs_json_take_text(json, out);
}

cs_status cs_session_plan_json(const cs_session *session, char **out) {
  return cs_plan_to_json(session->planned.plan, session->planned.program, out);
}

cs_status cs_graph_write_generated_weights(const cs_graph *graph, uint64_t seed, const char *path) {
  cs_params *params = NULL;
  CS_RETURN_IF_ERROR(cs_params_generate(graph, seed, &params));
  cs_status st = cs_params_save(params, CS_DTYPE_F32, path);
  cs_params_destroy(params);
  return st;
}
