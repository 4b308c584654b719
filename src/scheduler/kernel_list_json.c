/* The list of kernels as JSON. */
#include <stdlib.h>

#include "graph/told.h"
#include "scheduler/kernel_list.h"
#include "scheduler/task_labels.h"

static const struct {
  const char *text;
  bool computes;
} classes[CS_KERNEL_CLASS_COUNT] = {
#define CS_KERNEL_CLASS_TEXT(name, text, computes) {text, computes},
    CS_KERNEL_CLASSES(CS_KERNEL_CLASS_TEXT)
#undef CS_KERNEL_CLASS_TEXT
};

static json_t *extents_json(const int extents[3]) {
  return json_pack("[i, i, i]", extents[0], extents[1], extents[2]);
}

/* The nodes that a task computes, by their names in the graph's file; of a copy none. */
static json_t *nodes_json(const cs_reasons *reasons, const cs_task *task) {
  const cs_kernel_list_input *input = reasons->input;
  json_t *names = json_array();
  if (task->node < 0) return names;
  int n = cs_graph_nodes_of(input->bound, input->program->graph, task->node, reasons->nodes);
  for (int i = 0; i < n; i++) {
    json_array_append_new(names, json_string(input->bound->nodes[reasons->nodes[i]].name));
  }
  if (n == 0) json_array_append_new(names, json_string(task->name));
  return names;
}

static int set_kernel(json_t *object, const cs_listed_kernel *kernel, bool recorded) {
  static const char *const members[] = {
      "grid",           "block",       "cluster",       "registers", "static_shared",
      "dynamic_shared", "local_bytes", "blocks_per_sm", "early",
  };
  const cs_kernel_info *info = kernel->info;
  int failed = json_object_set_new(object, "kernel", info ? json_string(info->name) : json_null());
  for (size_t i = 0; !info && i < sizeof members / sizeof members[0]; i++) {
    failed |= json_object_set_new(object, members[i], json_null());
  }
  if (!info) return failed;
  json_t *known =
      json_pack("{s:o, s:o, s:o, s:i, s:i, s:i, s:i, s:i, s:o}", "grid",
                kernel->grid_known ? extents_json(info->grid) : json_null(), "block",
                extents_json(info->block), "cluster", extents_json(info->cluster), "registers",
                info->registers, "static_shared", info->static_shared, "dynamic_shared",
                info->dynamic_shared, "local_bytes", info->local_bytes, "blocks_per_sm",
                info->blocks_per_unit, "early", recorded ? json_null() : json_boolean(info->early));
  failed |= !known || json_object_update(object, known);
  json_decref(known);
  return failed;
}

static json_t *kernel_json(const cs_listed_kernel *kernel, const cs_reasons *reasons,
                           const char *const *labels) {
  const cs_kernel_list_input *input = reasons->input;
  const cs_plan *plan = input->plan;
  const cs_plan_task *placed = &plan->tasks[kernel->position];
  const cs_task *task = &input->program->tasks[placed->task];
  int part = plan->n_parts > 0 ? plan->stream_part[placed->stream] : -1;
  bool leads = placed->merged < 0;
  json_t *object = json_pack(
      "{s:i, s:s, s:o, s:s, s:s, s:i, s:o, s:o, s:i, s:i, s:f, s:f, s:s, s:s}", "position",
      kernel->position, "task", labels[placed->task], "nodes", nodes_json(reasons, task), "op",
      cs_op_name(task->desc.op), "candidate", placed->candidate.id, "stream", placed->stream,
      "part", part < 0 ? json_null() : json_integer(plan->parts[part]), "merged",
      leads ? json_null() : json_string(labels[plan->tasks[placed->merged].task]), "index",
      kernel->index, "of", kernel->of, "start_us", kernel->start_us, "us", kernel->us, "class",
      classes[kernel->kind].text, "reason", kernel->reason);
  if (object && set_kernel(object, kernel, input->recorded) != 0) {
    json_decref(object);
    return NULL;
  }
  return object;
}

static double share(double us, double of) {
  return of > 0 ? us / of : 0;
}

static json_t *totals_json(const cs_kernel_list *list) {
  int idle_kernels = 0;
  double idle_us = 0;
  json_t *by_class = json_array();
  for (int c = 0; c < CS_KERNEL_CLASS_COUNT; c++) {
    int kernels = list->classes[c].kernels;
    double us = list->classes[c].us;
    if (kernels == 0) continue;
    json_array_append_new(by_class, json_pack("{s:s, s:b, s:i, s:f, s:f}", "class", classes[c].text,
                                              "computes", classes[c].computes, "kernels", kernels,
                                              "us", us, "share", share(us, list->us)));
    if (classes[c].computes) continue;
    idle_kernels += kernels;
    idle_us += us;
  }
  return json_pack("{s:i, s:i, s:i, s:f, s:o, s:{s:i, s:f, s:f}}", "launches", list->launches,
                   "kernels", list->kernels, "launches_of_unknown_kernels", list->unknown, "us",
                   list->us, "classes", by_class, "not_computing", "kernels", idle_kernels, "us",
                   idle_us, "share", share(idle_us, list->us));
}

cs_status cs_kernel_list_json(const cs_kernel_list *list, const cs_kernel_list_input *input,
                              json_t **out) {
  cs_status st = CS_OK;
  json_t *index = NULL, *kernels = json_array();
  const char **labels = NULL;
  cs_reasons reasons = {0};
  *out = NULL;
  CS_TRY(st, cs_reasons_begin(input, &reasons), done);
  CS_TRY(st, cs_task_labels_index(input->program, &index), done);
  CS_TRY(st, cs_task_labels_list(input->program, index, &labels), done);
  for (size_t i = 0; i < list->n; i++) {
    json_t *kernel = kernel_json(&list->items[i], &reasons, labels);
    if (!kernel || json_array_append_new(kernels, kernel) != 0) {
      CS_FAIL(st, done, CS_CODE_INTERNAL, "kernel %zu cannot be written as JSON", i);
    }
  }
  *out = json_pack("{s:O, s:o}", "kernels", kernels, "totals", totals_json(list));
  if (!*out) st = cs_no_memory("a list of kernels", 0);
done:
  cs_reasons_end(&reasons);
  free(labels);
  json_decref(index);
  json_decref(kernels);
  return st;
}
