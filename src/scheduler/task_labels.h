/* Labels of a program's tasks in a plan file: their names, with "#2", "#3", … behind a name that
 * came before. */
#ifndef CONVSCHED_SCHEDULER_TASK_LABELS_H_
#define CONVSCHED_SCHEDULER_TASK_LABELS_H_

#include <jansson.h>

#include "graph/program.h"

/* Task index by label, an object in task order; json_decref releases. */
cs_status cs_task_labels_index(const cs_program *program, json_t **out) CS_MUST_USE;
/* Label by task, borrowed from `index`; free() releases the array. */
cs_status cs_task_labels_list(const cs_program *program, json_t *index,
                              const char ***out) CS_MUST_USE;

#endif
