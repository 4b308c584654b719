#include "scheduler/task_labels.h"

#include <stdlib.h>

static cs_status add_label(json_t *index, const char *name, int task) {
  cs_strbuf label = {0};
  char *text = NULL;
  cs_strbuf_printf(&label, "%s", name);
  for (int k = 2; !label.failed && json_object_get(index, label.data); k++) {
    label.length = 0;
    cs_strbuf_printf(&label, "%s#%d", name, k);
  }
  CS_RETURN_IF_ERROR(cs_strbuf_take(&label, &text));
  int failed = json_object_set_new(index, text, json_integer(task));
  cs_status st =
      failed ? cs_error(CS_CODE_INTERNAL, "task %s cannot be named in JSON", text) : CS_OK;
  free(text);
  return st;
}

cs_status cs_task_labels_index(const cs_program *program, json_t **out) {
  *out = json_object();
  if (!*out) return cs_no_memory("the names of tasks", 0);
  for (int t = 0; t < program->n_tasks; t++)
    CS_RETURN_IF_ERROR(add_label(*out, program->tasks[t].name, t));
  return CS_OK;
}

cs_status cs_task_labels_list(const cs_program *program, json_t *index, const char ***out) {
  const char **labels = cs_calloc((size_t)program->n_tasks, sizeof *labels);
  if (!labels) return cs_no_memory("the names of tasks", (size_t)program->n_tasks);
  const char *label;
  json_t *task;
  json_object_foreach(index, label, task) labels[json_integer_value(task)] = label;
  *out = labels;
  return CS_OK;
}
