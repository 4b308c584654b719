#include "runtime/stage_costs.h"

#include <inttypes.h>
#include <stdlib.h>

cs_status cs_stage_costs_create(const cs_policy_input *input, const cs_profile *profile, bool graph,
                                cs_stage_report *report, cs_stage_costs **out) {
  cs_status st = CS_OK;
  size_t n = (size_t)input->program->n_tasks;
  *out = NULL;
  cs_stage_costs *costs = cs_calloc(1, sizeof *costs);
  if (!costs) return cs_no_memory("costs of stages", sizeof *costs);
  *costs = (cs_stage_costs){.input = input,
                            .profile = profile,
                            .graph = graph,
                            .task_hash = cs_calloc(n, sizeof *costs->task_hash),
                            .report = report ? report : &costs->own};
  if (!costs->task_hash) {
    st = cs_no_memory("costs of stages", n * sizeof *costs->task_hash);
    goto done;
  }
  for (size_t t = 0; t < n; t++) {
    char *signature = NULL;
    CS_TRY(st, cs_op_signature(&input->program->tasks[t].desc, &signature), done);
    costs->task_hash[t] = cs_hash_string(CS_HASH_SEED, signature);
    free(signature);
  }
  costs->report->priced = true;
  costs->report->known = costs->report->estimated = 0;
  *out = costs;
  costs = NULL;
done:
  cs_stage_costs_destroy(costs);
  return st;
}

void cs_stage_costs_destroy(cs_stage_costs *costs) {
  if (!costs) return;
  free(costs->task_hash);
  free(costs);
}

cs_status cs_stage_signature(const cs_stage_costs *costs, const cs_stage *stage, char **out) {
  cs_strbuf text = {0};
  cs_strbuf_printf(&text, "Stage %s%s", costs->graph ? "graph" : "streams",
                   stage->merged ? " merged" : "");
  for (int group = 0; group < stage->n_groups; group++) {
    cs_strbuf_printf(&text, " [");
    for (int i = 0; i < stage->n; i++) {
      if (stage->group_of[i] != group) continue;
      int task = stage->tasks[i];
      const char *id =
          stage->merged ? stage->merged : costs->input->choices[task].choices[0].candidate->id;
      cs_strbuf_printf(&text, "%016" PRIx64, cs_hash_string(costs->task_hash[task], id));
    }
    cs_strbuf_printf(&text, "]");
  }
  return cs_strbuf_take(&text, out);
}

cs_status cs_stage_costs_price(void *costs, const cs_stage *stage, double *us) {
  cs_stage_costs *c = costs;
  char *signature = NULL;
  *us = CS_STAGE_ESTIMATE;
  CS_RETURN_IF_ERROR(cs_stage_signature(c, stage, &signature));
  const cs_record *known =
      cs_op_profile_record(cs_profile_find(c->profile, signature), CS_STAGE_CANDIDATE);
  cs_status st = CS_OK;
  if (known && !known->measured.rejected && !c->again) {
    *us = known->measured.cold_us;
    c->report->known++;
  } else {
    if (c->measure) st = c->measure(c->user, stage, signature, us);
    if (*us >= 0) {
      c->report->measured++;
    } else {
      c->report->estimated++;
    }
  }
  free(signature);
  return st;
}
