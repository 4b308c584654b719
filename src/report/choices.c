/* Which candidates of a node a report shows. */
#include <stdlib.h>

#include "profiler/pareto.h"
#include "report/report.h"

typedef struct choice_list {
  cs_report_choice *items;
  size_t n, capacity;
} choice_list;

static cs_status add_choice(choice_list *list, const cs_report_op *op, const cs_record *record) {
  CS_RETURN_IF_ERROR(cs_grow(&list->items, &list->capacity, list->n + 1, sizeof *list->items));
  list->items[list->n++] = (cs_report_choice){op, record};
  return CS_OK;
}

static cs_status add_pareto(const cs_report_input *input, const cs_report_op *op,
                            choice_list *list) {
  const cs_measure_options options = {.workspace_limit = input->workspace_limit,
                                      .deterministic = input->deterministic};
  const cs_record *set[CS_PARETO_MOST];
  int n = cs_op_pareto(op->known, input->device, &options, CS_PARETO_MOST, set);
  for (int i = 0; i < n; i++) CS_RETURN_IF_ERROR(add_choice(list, op, set[i]));
  return CS_OK;
}

/* Admissible ones, those that no plan chooses of itself left out unless all are wanted. */
static cs_status add_admissible(const cs_report_input *input, const cs_report_node *node,
                                const cs_report_op *op, choice_list *list) {
  for (int r = 0; op->known && r < op->known->n_records; r++) {
    const cs_record *record = &op->known->records[r];
    if (!cs_record_admissible(record, input->workspace_limit, input->deterministic, 0)) continue;
    if (input->candidates != CS_REPORT_ALL &&
        cs_candidate_is_coarse(&node->desc, &record->candidate)) {
      continue;
    }
    CS_RETURN_IF_ERROR(add_choice(list, op, record));
  }
  return CS_OK;
}

static int by_time(const void *a, const void *b) {
  double x = ((const cs_report_choice *)a)->record->measured.cold_us;
  double y = ((const cs_report_choice *)b)->record->measured.cold_us;
  if (x != y) return x < y ? -1 : 1;
  return (int)((const cs_report_choice *)a)->op->layout -
         (int)((const cs_report_choice *)b)->op->layout;
}

cs_status cs_report_choices_of(const cs_report_input *input, const cs_report_node *node,
                               cs_report_choice **out, int *n) {
  choice_list list = {0};
  cs_status st = CS_OK;
  *out = NULL;
  *n = 0;
  for (int k = 0; k < node->n_ops && st == CS_OK; k++) {
    st = input->candidates == CS_REPORT_PARETO ? add_pareto(input, &node->ops[k], &list)
                                               : add_admissible(input, node, &node->ops[k], &list);
  }
  if (st != CS_OK) {
    free(list.items);
    return st;
  }
  if (list.n > 0) qsort(list.items, list.n, sizeof *list.items, by_time);
  *out = list.items;
  *n = input->candidates == CS_REPORT_FASTEST && list.n > 0 ? 1 : (int)list.n;
  return CS_OK;
}
