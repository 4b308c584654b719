#include "scheduler/kernel_list.h"

#include <stdlib.h>

#include "profiler/kernel_roles.h"
#include "scheduler/sm_model.h"

typedef struct lister {
  const cs_kernel_list_input *input;
  cs_reasons reasons;
  cs_kernel_profile *sorted; /* kernels by launch */
  int *first;                /* per position: of its kernels among those; one entry more */
  cs_kernel_role *roles;
  cs_kernel_list *out;
} lister;

static cs_status sort_kernels(lister *l) {
  const cs_kernel_list_input *input = l->input;
  int n = input->plan->n_tasks;
  size_t n_kernels = (size_t)input->n_kernels;
  l->first = cs_calloc((size_t)n + 1, sizeof *l->first);
  l->sorted = cs_calloc(n_kernels, sizeof *l->sorted);
  l->roles = cs_calloc(n_kernels + 1, sizeof *l->roles);
  int *next = cs_calloc((size_t)n + 1, sizeof *next);
  cs_status st = CS_OK;
  if (!l->first || !l->sorted || !l->roles || !next) {
    st = cs_no_memory("kernels", n_kernels * sizeof *l->sorted);
    goto done;
  }
  for (int i = 0; i < input->n_kernels; i++) {
    int launch = input->kernels[i].info.launch;
    if (launch < 0 || launch >= n) {
      CS_FAIL(st, done, CS_CODE_INTERNAL, "kernel %s: found launch %d, wanted one of %d",
              input->kernels[i].info.name, launch, n);
    }
    l->first[launch + 1]++;
  }
  for (int p = 0; p < n; p++) next[p + 1] = l->first[p + 1] += l->first[p];
  for (int i = 0; i < input->n_kernels; i++) {
    l->sorted[next[input->kernels[i].info.launch]++] = input->kernels[i];
  }
done:
  free(next);
  return st;
}

/* Owns the reason at once. */
static cs_status add(lister *l, cs_listed_kernel kernel, cs_strbuf *reason) {
  CS_RETURN_IF_ERROR(cs_strbuf_take(reason, &kernel.reason));
  cs_kernel_list *list = l->out;
  cs_status st = cs_grow(&list->items, &list->capacity, list->n + 1, sizeof *list->items);
  if (st != CS_OK) {
    free(kernel.reason);
    return st;
  }
  list->items[list->n++] = kernel;
  if (kernel.of == 0) return CS_OK;
  list->kernels++;
  list->us += kernel.us;
  list->classes[kernel.kind].kernels++;
  list->classes[kernel.kind].us += kernel.us;
  return CS_OK;
}

/* The task that is part of another's launch: no kernel of its own. */
static cs_status add_member(lister *l, int position) {
  cs_strbuf reason = {0};
  cs_listed_kernel kernel = {.position = position,
                             .start_us = l->input->plan->tasks[position].start_us};
  kernel.kind = cs_reason_of(&l->reasons, position, 0, 1, CS_ROLE_COMPUTES, false, &reason);
  return add(l, kernel, &reason);
}

static cs_status add_launch(lister *l, int position) {
  const cs_kernel_list_input *input = l->input;
  const cs_plan_task *placed = &input->plan->tasks[position];
  const cs_kernel_profile *kernels = l->sorted + l->first[position];
  int n = l->first[position + 1] - l->first[position];
  bool merged = cs_plan_launch_end(input->plan, position) > position + 1;
  double start_us = placed->start_us;
  bool known = n > 0;
  for (int k = 0; k < n; k++) known = known && kernels[k].info.name[0];
  if (!known) n = 1;
  l->roles[0] = CS_ROLE_COMPUTES;
  if (known) cs_kernel_roles(&placed->candidate, kernels, n, l->roles);
  bool epilogue_apart = l->roles[n - 1] == CS_ROLE_EPILOGUE;
  l->out->launches++;
  l->out->unknown += !known;
  for (int k = 0; k < n; k++) {
    double share = known && n > 1 ? cs_sm_kernel_share(input->device, kernels, n, k) : 1;
    cs_listed_kernel kernel = {.position = position,
                               .index = k,
                               .of = n,
                               .info = known ? &kernels[k].info : NULL,
                               .grid_known = known && !(merged && input->recorded),
                               .start_us = start_us,
                               .us = (placed->end_us - placed->start_us) * share};
    cs_strbuf reason = {0};
    kernel.kind =
        cs_reason_of(&l->reasons, position, k, n, (int)l->roles[k], epilogue_apart, &reason);
    CS_RETURN_IF_ERROR(add(l, kernel, &reason));
    start_us += kernel.us;
  }
  return CS_OK;
}

cs_status cs_kernel_list_make(const cs_kernel_list_input *input, cs_kernel_list *out) {
  cs_status st = CS_OK;
  lister l = {.input = input, .out = out};
  *out = (cs_kernel_list){0};
  CS_TRY(st, cs_reasons_begin(input, &l.reasons), done);
  CS_TRY(st, sort_kernels(&l), done);
  for (int p = 0; p < input->plan->n_tasks; p++) {
    CS_TRY(st, input->plan->tasks[p].merged < 0 ? add_launch(&l, p) : add_member(&l, p), done);
  }
  out->sorted = l.sorted;
  l.sorted = NULL;
done:
  cs_reasons_end(&l.reasons);
  free(l.first);
  free(l.sorted);
  free(l.roles);
  if (st != CS_OK) cs_kernel_list_free(out);
  return st;
}

void cs_kernel_list_free(cs_kernel_list *list) {
  for (size_t i = 0; i < list->n; i++) free(list->items[i].reason);
  free(list->items);
  free(list->sorted);
  *list = (cs_kernel_list){0};
}
