#include <stdlib.h>

#include "backend/reference/reference.h"
#include "runtime/session.h"

static cs_status scratch_of(const cs_tensor_desc *desc, void **out) {
  int64_t bytes = cs_tensor_span_bytes(desc);
  *out = cs_calloc(1, (size_t)bytes);
  return *out ? CS_OK : cs_no_memory("a host copy of a tensor", (size_t)bytes);
}

cs_status cs_tensor_write(const cs_realised *realised, const cs_program *program,
                          const cs_plan *plan, int tensor, const float *data) {
  const cs_tensor_desc *desc = &program->tensors[tensor].desc;
  void *scratch = NULL;
  CS_RETURN_IF_ERROR(scratch_of(desc, &scratch));
  cs_tensor_from_f32(desc, data, scratch);
  cs_status st = realised->backend->vtable->upload(
      realised->backend, cs_realised_tensor(realised, program, plan, tensor), scratch,
      cs_tensor_span_bytes(desc));
  free(scratch);
  return st;
}

cs_status cs_tensor_read(const cs_realised *realised, const cs_program *program,
                         const cs_plan *plan, int tensor, float *data) {
  const cs_tensor_desc *desc = &program->tensors[tensor].desc;
  void *scratch = NULL;
  CS_RETURN_IF_ERROR(scratch_of(desc, &scratch));
  cs_status st = realised->backend->vtable->download(
      realised->backend, scratch, cs_realised_tensor(realised, program, plan, tensor),
      cs_tensor_span_bytes(desc));
  if (st == CS_OK) cs_tensor_to_f32(desc, scratch, data);
  free(scratch);
  return st;
}

cs_status cs_session_upload_inputs(const cs_session *session, const cs_realised *realised,
                                   const cs_plan *plan) {
  const cs_program *program = session->planned.program;
  for (int i = 0; i < program->graph->n_inputs; i++) {
    CS_RETURN_IF_ERROR(
        cs_tensor_write(realised, program, plan, program->input_tensors[i], session->inputs[i]));
  }
  return CS_OK;
}

cs_status cs_session_fetch_inputs(const cs_session *session) {
  const cs_program *program = session->planned.program;
  for (int i = 0; i < program->graph->n_inputs && session->inputs_on_device; i++) {
    CS_RETURN_IF_ERROR(cs_tensor_read(&session->realised, program, session->planned.plan,
                                      program->input_tensors[i], session->inputs[i]));
  }
  return CS_OK;
}
