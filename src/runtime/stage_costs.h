/* What stages of `ios` cost, as the profile has them: a stage is an operation of its own there, so
 * that equal stages of any network are measured once. Where one is not known the policy estimates
 * it. */
#ifndef CONVSCHED_RUNTIME_STAGE_COSTS_H_
#define CONVSCHED_RUNTIME_STAGE_COSTS_H_

#include "scheduler/policy.h"

#define CS_STAGE_CANDIDATE "stage" /* id of what is recorded of one */

/* How stages were priced, each as often as the policy asked. */
typedef struct cs_stage_report {
  int known;      /* found in the profile, those measured now as well */
  int measured;   /* by this session */
  int estimated;  /* neither: no time or room left, or frozen, or a simulated device */
  double seconds; /* that measuring took */
  bool priced;    /* by these at all */
} cs_stage_report;

typedef struct cs_stage_costs {
  const cs_policy_input *input;
  const cs_profile *profile;
  bool graph;          /* as one CUDA graph, not stream calls */
  uint64_t *task_hash; /* per task: its operation */
  cs_stage_report *report, own;
  /* Asked where the profile does not know a stage; may leave CS_STAGE_ESTIMATE. NULL: never. */
  cs_status (*measure)(void *user, const cs_stage *stage, const char *signature, double *us);
  void *user;
  bool again; /* asked where it does know it, too */
} cs_stage_costs;
/* `input` and `profile` must live as long. The report (NULL: none is wanted) counts `known` and
 * `estimated` anew. */
cs_status cs_stage_costs_create(const cs_policy_input *input, const cs_profile *profile, bool graph,
                                cs_stage_report *report, cs_stage_costs **out) CS_MUST_USE;
void cs_stage_costs_destroy(cs_stage_costs *costs);
/* The input's stage_cost, with `costs` as its stage_user. */
cs_status cs_stage_costs_price(void *costs, const cs_stage *stage, double *us) CS_MUST_USE;
/* Candidates and operations group by group, in the order of streams. */
cs_status cs_stage_signature(const cs_stage_costs *costs, const cs_stage *stage,
                             char **out) CS_MUST_USE;

#endif
