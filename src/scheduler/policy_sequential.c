/* One stream, program order, every task with its fastest candidate alone. */
#include "scheduler/internal.h"

static cs_status plan_sequential(const cs_policy_input *input, cs_plan *out) {
  CS_RETURN_IF_ERROR(cs_plan_begin(input->program, out));
  out->n_streams = 1;
  for (int t = 0; t < input->program->n_tasks; t++)
    CS_RETURN_IF_ERROR(cs_plan_place(out, t, t, 0, input->choices[t].choices[0].candidate));
  return CS_OK;
}

const cs_policy cs_policy_sequential = {
    .name = "sequential",
    .source = "one stream, each task with the candidate that is fastest alone: the baseline",
    .plan = plan_sequential,
};
