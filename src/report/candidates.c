/* Every candidate that was measured of a report's nodes, once for nodes that are the same
 * operation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/view.h"

#define NAMED 3 /* nodes of a group */

/* ---- Families ---- */

static const struct {
  const char *prefix, *name;
} families[] = {{"", "other"},
                {"cudnn.graph", "cuDNN engine"},
                {"cudnn.legacy", "cuDNN legacy algorithm"},
                {"cuda", "own kernel"},
                {"cublas", "cuBLASLt"},
                {"onednn", "oneDNN"}};
#define N_FAMILIES ((int)(sizeof families / sizeof families[0]))

int cs_family_colour(const char *family) {
  for (int i = 1; i < N_FAMILIES; i++) {
    if (strncmp(family, families[i].prefix, strlen(families[i].prefix)) == 0) return i;
  }
  return 0;
}

const char *cs_family_name(int colour) {
  return colour >= 0 && colour < N_FAMILIES ? families[colour].name : NULL;
}

/* ---- What a plan runs ---- */

/* "SIGNATURE\nCANDIDATE" of every task. */
static cs_status add_chosen(const cs_policy_view *policy, json_t *set) {
  for (int p = 0; policy && p < policy->plan->n_tasks; p++) {
    const cs_plan_task *placed = &policy->plan->tasks[p];
    cs_strbuf key = {0};
    char *signature = NULL, *text = NULL;
    CS_RETURN_IF_ERROR(cs_op_signature(&policy->program->tasks[placed->task].desc, &signature));
    cs_strbuf_printf(&key, "%s\n%s", signature, placed->candidate.id);
    free(signature);
    CS_RETURN_IF_ERROR(cs_strbuf_take(&key, &text));
    int failed = json_object_set_new(set, text, json_true());
    free(text);
    if (failed) return cs_no_memory("candidates", 0);
  }
  return CS_OK;
}

static cs_status is_chosen(const json_t *set, const cs_report_op *op, const cs_record *record,
                           bool *out) {
  cs_strbuf key = {0};
  char *text = NULL;
  cs_strbuf_printf(&key, "%s\n%s", op->signature, record->candidate.id);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&key, &text));
  *out = json_object_get(set, text) != NULL;
  free(text);
  return CS_OK;
}

/* ---- Groups ---- */

static bool same_operations(const cs_report_node *a, const cs_report_node *b) {
  if (a->n_ops != b->n_ops) return false;
  for (int k = 0; k < a->n_ops; k++) {
    if (strcmp(a->ops[k].signature, b->ops[k].signature) != 0) return false;
  }
  return true;
}

static int count_records(const cs_report_node *node) {
  int n = 0;
  for (int k = 0; k < node->n_ops; k++) {
    if (node->ops[k].known) n += node->ops[k].known->n_records;
  }
  return n;
}

static int by_time(const void *a, const void *b) {
  const cs_view_candidate *x = a, *y = b;
  double s = x->record->measured.cold_us, t = y->record->measured.cold_us;
  if (s != t) return s < t ? -1 : 1;
  return strcmp(x->record->candidate.id, y->record->candidate.id);
}

static cs_status add_candidates(const cs_view *view, const json_t *chosen, cs_view_group *group) {
  const cs_report_node *node = group->node;
  group->candidates = cs_calloc((size_t)count_records(node) + 1, sizeof *group->candidates);
  if (!group->candidates) return cs_no_memory("candidates", 0);
  for (int k = 0; k < node->n_ops; k++) {
    const cs_op_profile *known = node->ops[k].known;
    for (int r = 0; known && r < known->n_records; r++) {
      const cs_record *record = &known->records[r];
      if (record->absent) continue;
      if (record->measured.rejected) {
        group->rejected++;
        continue;
      }
      cs_view_candidate *out = &group->candidates[group->n++];
      *out = (cs_view_candidate){.op = &node->ops[k], .record = record};
      out->demand = cs_kernels_demand(view->report->device, record->kernels, record->n_kernels);
      group->without_kernels += record->n_kernels == 0;
      CS_RETURN_IF_ERROR(is_chosen(chosen, out->op, record, &out->chosen));
    }
  }
  if (group->n > 0) qsort(group->candidates, (size_t)group->n, sizeof *group->candidates, by_time);
  return CS_OK;
}

static cs_status name_group(const cs_report_nodes *nodes, cs_view_group *group) {
  cs_strbuf names = {0};
  int n = 0;
  for (int i = 0; i < nodes->n; i++) {
    if (!nodes->items[i].chosen || !same_operations(&nodes->items[i], group->node)) continue;
    if (n < NAMED) cs_strbuf_printf(&names, "%s%s", n ? ", " : "", nodes->items[i].name);
    n++;
  }
  if (n > NAMED) cs_strbuf_printf(&names, " and %d more", n - NAMED);
  return cs_strbuf_take(&names, &group->nodes);
}

static cs_status add_group(const cs_view *view, int node, const json_t *chosen,
                           cs_view_candidates *out) {
  const cs_report_nodes *nodes = view->nodes;
  for (int g = 0; g < out->n_groups; g++) {
    if (same_operations(out->groups[g].node, &nodes->items[node])) return CS_OK;
  }
  cs_view_group *group = &out->groups[out->n_groups++];
  group->node = &nodes->items[node];
  CS_RETURN_IF_ERROR(name_group(nodes, group));
  CS_RETURN_IF_ERROR(add_candidates(view, chosen, group));
  out->n += group->n;
  out->rejected += group->rejected;
  out->without_kernels += group->without_kernels;
  return CS_OK;
}

cs_status cs_view_candidates_of(const cs_view *view, cs_view_candidates *out) {
  cs_status st = CS_OK;
  json_t *chosen = json_object();
  *out = (cs_view_candidates){0};
  if (!view->nodes) {
    st = cs_error(CS_CODE_NOT_FOUND, "%s", view->no_nodes);
    goto done;
  }
  CS_TRY(st, add_chosen(cs_view_main(view), chosen), done);
  out->groups = cs_calloc((size_t)view->nodes->n + 1, sizeof *out->groups);
  if (!out->groups) CS_FAIL(st, done, CS_CODE_NO_MEMORY, "out of memory for candidates");
  for (int i = 0; i < view->nodes->n; i++) {
    if (view->nodes->items[i].chosen) CS_TRY(st, add_group(view, i, chosen, out), done);
  }
done:
  json_decref(chosen);
  if (st != CS_OK) cs_view_candidates_free(out);
  return st;
}

void cs_view_candidates_free(cs_view_candidates *candidates) {
  for (int g = 0; g < candidates->n_groups; g++) {
    free(candidates->groups[g].nodes);
    free(candidates->groups[g].candidates);
  }
  free(candidates->groups);
  *candidates = (cs_view_candidates){0};
}
