/* What is told of plans beyond their bytes: an explanation, a comparison of two files. */
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "runtime/micro_batches.h"
#include "scheduler/explain.h"
#include "scheduler/plan_diff.h"

static cs_status no_choices(const cs_session *session) {
  return cs_error(CS_CODE_USAGE, "%s: a plan from a file has no alternatives to tell of",
                  session->settings.plan_path);
}

cs_status cs_session_explain_json(const cs_session *session, char **out) {
  const cs_planned *planned = &session->planned;
  cs_explanation explanation;
  json_t *json = NULL;
  *out = NULL;
  if (!planned->choices) return no_choices(session);
  cs_policy_input input = cs_planning_input(session);
  CS_RETURN_IF_ERROR(cs_explain(planned->plan, &input, CS_EXPLAIN_PAIRS, &explanation));
  cs_status st = cs_explanation_json(&explanation, planned->plan, planned->program, &json);
  cs_explanation_free(&explanation);
  CS_RETURN_IF_ERROR(st);
  json_t *head = json_pack(
      "{s:s, s:s, s:I, s:s, s:s, s:i, s:f, s:o, s:o}", "schema", "convsched.explanation/1", "model",
      cs_graph_name(planned->bound), "batch", (json_int_t)planned->plan->batch, "dtype",
      cs_precision_name(planned->plan->precision), "policy", planned->plan->policy, "streams",
      planned->plan->n_streams, "predicted_us", planned->plan->predicted_us, "bounds",
      cs_bounds_json(&planned->bounds), "memory",
      cs_memory_json(planned->plan, &planned->sequential));
  if (!head || json_object_update(head, json) != 0) {
    json_decref(head);
    head = NULL; /* reported by cs_json_take_text */
  }
  json_decref(json);
  if (head) CS_TRY(st, cs_micro_report_json(session, head), done);
  return cs_json_take_text(head, out);
done:
  json_decref(head);
  return st;
}

cs_status cs_plan_diff_json(const char *path_a, const char *path_b, char **out) {
  cs_status st = CS_OK;
  char *text_a = NULL, *text_b = NULL;
  cs_plan_text a = {.name = path_a}, b = {.name = path_b};
  *out = NULL;
  CS_TRY(st, cs_file_read(path_a, CS_PLAN_FILE_BYTES, &text_a, &a.length), done);
  CS_TRY(st, cs_file_read(path_b, CS_PLAN_FILE_BYTES, &text_b, &b.length), done);
  a.text = text_a;
  b.text = text_b;
  st = cs_plan_diff(&a, &b, out);
done:
  free(text_a);
  free(text_b);
  return st;
}
