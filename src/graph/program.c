/* The program object. */
#include "graph/program.h"

#include <stdlib.h>

void cs_program_destroy(cs_program *program) {
  if (!program) return;
  for (int i = 0; i < program->n_buffers; i++) free(program->buffers[i].name);
  for (int i = 0; i < program->n_tasks; i++) {
    free(program->tasks[i].name);
    free(program->tasks[i].preds);
  }
  free(program->layouts);
  cs_division_destroy(program->division);
  free(program->buffers);
  free(program->tensors);
  free(program->tasks);
  free(program->input_tensors);
  free(program->output_tensors);
  free(program->value_tensor);
  free(program);
}

void cs_program_totals(const cs_program *program, double *flops, double *bytes) {
  *flops = *bytes = 0;
  for (int i = 0; i < program->n_tasks; i++) {
    *flops += cs_op_flops(&program->tasks[i].desc);
    *bytes += cs_op_bytes(&program->tasks[i].desc);
  }
}
