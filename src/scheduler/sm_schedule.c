#include "scheduler/sm_schedule.h"

#include <math.h>
#include <stdlib.h>

/* ---- One operation ---- */

static cs_status prepare_unknown(const cs_sm_model *model, const char *candidate, double solo_us,
                                 cs_sm_kernel *out) {
  if (!(solo_us > 0) || !isfinite(solo_us)) {
    return cs_error(CS_CODE_BAD_INPUT, "candidate %s: a time alone of %g us; wanted: more than 0",
                    candidate, solo_us);
  }
  *out = (cs_sm_kernel){.blocks = 1, .cluster = 1, .take = {[CS_RESOURCE_BLOCKS] = 1}};
  out->gap_us = fmin(cs_sm_model_constants(model)->gap_us, solo_us / 2);
  out->block_us = solo_us - out->gap_us;
  return CS_OK;
}

cs_status cs_sm_operation_prepare(const cs_sm_model *model, const char *candidate,
                                  const cs_kernel_profile *kernels, int n, double solo_us,
                                  cs_sm_operation *out) {
  bool known = kernels && n > 0;
  *out = (cs_sm_operation){.n_kernels = known ? n : 1};
  out->kernels = cs_calloc((size_t)out->n_kernels, sizeof *out->kernels);
  if (!out->kernels) return cs_no_memory("kernels", (size_t)out->n_kernels * sizeof *out->kernels);
  cs_status st =
      known ? cs_sm_kernel_list_prepare(model, candidate, kernels, n, solo_us, out->kernels)
            : prepare_unknown(model, candidate, solo_us, out->kernels);
  if (st != CS_OK) cs_sm_operation_clear(out);
  return st;
}

cs_status cs_sm_operation_merge(const cs_sm_model *model, const cs_sm_operation *const *operations,
                                int n, cs_sm_operation *out) {
  const cs_sm_kernel *together[CS_MERGE_MOST];
  *out = (cs_sm_operation){0};
  if (n < 1 || n > CS_MERGE_MOST) {
    return cs_error(CS_CODE_BAD_INPUT, "a launch of %d operations; wanted: 1 to %d", n,
                    CS_MERGE_MOST);
  }
  for (int i = 0; i < n; i++) {
    if (operations[i]->n_kernels > out->n_kernels) out->n_kernels = operations[i]->n_kernels;
  }
  out->kernels = cs_calloc((size_t)out->n_kernels, sizeof *out->kernels);
  if (!out->kernels) return cs_no_memory("kernels", (size_t)out->n_kernels * sizeof *out->kernels);
  for (int k = 0; k < out->n_kernels; k++) {
    int found = 0;
    for (int i = 0; i < n; i++) {
      if (k < operations[i]->n_kernels) together[found++] = &operations[i]->kernels[k];
    }
    cs_sm_kernel_merge(model, together, found, &out->kernels[k]);
  }
  return CS_OK;
}

void cs_sm_operation_clear(cs_sm_operation *operation) {
  free(operation->kernels);
  *operation = (cs_sm_operation){0};
}

/* ---- A schedule: steps become launches of kernels ---- */

typedef struct expansion {
  int *last; /* per step: its last launch */
  cs_sm_launch *launches;
  int *waits; /* of all launches */
  cs_sm_span *spans;
  int n_launches;
} expansion;

static void expansion_free(expansion *e) {
  free(e->last);
  free(e->launches);
  free(e->waits);
  free(e->spans);
}

static cs_status make_room(const cs_sm_step *steps, int n, expansion *out) {
  size_t n_launches = 0, n_waits = 0;
  for (int i = 0; i < n; i++) {
    n_launches += steps[i].operation ? (size_t)steps[i].operation->n_kernels : 0;
    n_waits += (size_t)steps[i].n_waits;
  }
  out->last = cs_calloc((size_t)n, sizeof *out->last);
  out->launches = cs_calloc(n_launches, sizeof *out->launches);
  out->waits = cs_calloc(n_waits, sizeof *out->waits);
  out->spans = cs_calloc(n_launches, sizeof *out->spans);
  if (out->last && out->launches && out->waits && out->spans) return CS_OK;
  return cs_no_memory("launches", n_launches * sizeof *out->launches);
}

/* The first kernel of a step waits for the last ones of those that the step waits for. */
static cs_status expand(const cs_sm_step *steps, int n, expansion *e) {
  int n_waits = 0;
  for (int i = 0; i < n; i++) {
    const cs_sm_step *step = &steps[i];
    int *waits = e->waits + n_waits;
    if (!step->operation && i == 0) {
      return cs_error(CS_CODE_BAD_INPUT, "step 0 is part of the launch before; there is none");
    }
    if (!step->operation) {
      e->last[i] = e->last[i - 1];
      continue;
    }
    for (int w = 0; w < step->n_waits; w++) {
      if (step->waits[w] < 0 || step->waits[w] >= i) {
        return cs_error(CS_CODE_BAD_INPUT, "step %d waits for step %d; wanted: an earlier one", i,
                        step->waits[w]);
      }
      waits[w] = e->last[step->waits[w]];
    }
    for (int k = 0; k < step->operation->n_kernels; k++) {
      e->launches[e->n_launches++] = (cs_sm_launch){.kernel = &step->operation->kernels[k],
                                                    .stream = step->stream,
                                                    .waits = waits,
                                                    .n_waits = k == 0 ? step->n_waits : 0,
                                                    .part = step->part,
                                                    .priority = step->priority};
    }
    e->last[i] = e->n_launches - 1;
    n_waits += step->n_waits;
  }
  return CS_OK;
}

cs_status cs_sm_schedule_simulate(cs_sm_model *model, const cs_sm_parts *parts,
                                  const cs_sm_step *steps, int n, cs_sm_span *spans,
                                  double *total_us) {
  const cs_sm_parts whole = {0};
  cs_status st = CS_OK;
  expansion e = {0};
  cs_sm_timeline timeline;
  CS_TRY(st, make_room(steps, n, &e), done);
  CS_TRY(st, expand(steps, n, &e), done);
  CS_TRY(st,
         cs_sm_simulate_parts(model, parts ? parts : &whole, e.launches, e.n_launches, 1, e.spans,
                              &timeline),
         done);
  *total_us = timeline.total_us;
  for (int i = 0; spans && i < n; i++) {
    int n_kernels = steps[i].operation ? steps[i].operation->n_kernels : 0;
    int first = e.last[i] - n_kernels + 1;
    spans[i] = n_kernels > 0 ? (cs_sm_span){e.spans[first].start_us, e.spans[e.last[i]].end_us}
                             : spans[i - 1];
  }
done:
  expansion_free(&e);
  return st;
}
