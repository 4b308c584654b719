/* Running a session: host arrays, device arrays, single values, time. */
#include <stdlib.h>
#include <string.h>

#include "runtime/session.h"

/* ---- Shapes and sizes ---- */

static cs_status check_count(const char *what, int found, int wanted) {
  if (found == wanted) return CS_OK;
  return cs_error(CS_CODE_USAGE, "%d %s given, wanted %d", found, what, wanted);
}

static cs_status check_size(const cs_graph *graph, int value, int64_t found) {
  int64_t wanted;
  CS_RETURN_IF_ERROR(cs_shape_elements(&graph->values[value].shape, &wanted));
  if (found == wanted) return CS_OK;
  return cs_error(CS_CODE_BAD_INPUT, "%s: %lld elements given, wanted %lld",
                  graph->values[value].name, (long long)found, (long long)wanted);
}

cs_status cs_session_shape(const cs_session *session, const char *value, int *rank,
                           int64_t dims[8]) {
  int index = cs_graph_find_value(session->planned.bound, value);
  if (index < 0) {
    return cs_error(CS_CODE_NOT_FOUND, "graph %s has no value \"%s\"", session->planned.bound->name,
                    value);
  }
  const cs_shape *shape = &session->planned.bound->values[index].shape;
  *rank = shape->rank;
  memcpy(dims, shape->dims, (size_t)shape->rank * sizeof *dims);
  return CS_OK;
}

/* ---- Host arrays ---- */

cs_status cs_session_check_inputs(const cs_session *session, const int64_t *sizes, int n) {
  const cs_graph *graph = session->planned.graph;
  CS_RETURN_IF_ERROR(check_count("inputs", n, graph->n_inputs));
  for (int i = 0; i < n; i++) {
    CS_RETURN_IF_ERROR(check_size(graph, graph->inputs[i], sizes[i]));
  }
  return CS_OK;
}

cs_status cs_session_check_outputs(const cs_session *session, const int64_t *sizes, int n) {
  const cs_graph *graph = session->planned.graph;
  CS_RETURN_IF_ERROR(check_count("outputs", n, cs_graph_output_count(session->source)));
  for (int i = 0; i < n; i++) {
    CS_RETURN_IF_ERROR(check_size(graph, graph->outputs[i], sizes[i]));
  }
  return CS_OK;
}

cs_status cs_session_set_inputs(cs_session *session, const float *const *inputs,
                                const int64_t *input_sizes, int n_inputs) {
  CS_RETURN_IF_ERROR(cs_device_must_compute(session->device, "cs_session_set_inputs"));
  CS_RETURN_IF_ERROR(cs_session_check_inputs(session, input_sizes, n_inputs));
  for (int i = 0; i < n_inputs; i++) {
    memcpy(session->inputs[i], inputs[i], (size_t)input_sizes[i] * sizeof(float));
  }
  session->inputs_on_device = false;
  return cs_session_upload_inputs(session, &session->realised, session->planned.plan);
}

cs_status cs_session_run(cs_session *session, const float *const *inputs,
                         const int64_t *input_sizes, int n_inputs, float *const *outputs,
                         const int64_t *output_sizes, int n_outputs) {
  const cs_program *program = session->planned.program;
  CS_RETURN_IF_ERROR(cs_device_must_compute(session->device, "cs_session_run"));
  CS_RETURN_IF_ERROR(cs_session_check_outputs(session, output_sizes, n_outputs));
  if (inputs) CS_RETURN_IF_ERROR(cs_session_set_inputs(session, inputs, input_sizes, n_inputs));
  CS_RETURN_IF_ERROR(session->realised.backend->vtable->schedule_run(session->realised.schedule));
  for (int i = 0; i < n_outputs; i++) {
    CS_RETURN_IF_ERROR(cs_tensor_read(&session->realised, program, session->planned.plan,
                                      program->output_tensors[i], outputs[i]));
  }
  return CS_OK;
}

cs_status cs_session_read(cs_session *session, const char *value, float *out, int64_t size) {
  const cs_program *program = session->planned.program;
  const cs_graph *graph = session->planned.graph;
  CS_RETURN_IF_ERROR(cs_device_must_compute(session->device, "cs_session_read"));
  int index = cs_graph_find_value(graph, value);
  bool is_input = index >= 0 && graph->values[index].producer < 0;
  if (index < 0 || (!is_input && !cs_graph_is_output(graph, index))) {
    return cs_error(CS_CODE_NOT_FOUND,
                    "value \"%s\" is not kept: name it in the session's `keep` option%s", value,
                    index < 0 ? " (the passes removed it from the graph)" : "");
  }
  CS_RETURN_IF_ERROR(check_size(graph, index, size));
  return cs_tensor_read(&session->realised, program, session->planned.plan,
                        program->value_tensor[index], out);
}

/* ---- Device arrays ---- */

cs_status cs_session_run_device(cs_session *session, const void *const *inputs, int n_inputs,
                                void *const *outputs, int n_outputs, void *stream) {
  const cs_program *program = session->planned.program;
  const cs_graph *graph = session->planned.graph;
  const cs_realised *realised = &session->realised;
  cs_backend *backend = realised->backend;
  const cs_backend_vtable *vtable = backend->vtable;
  if (!vtable->schedule_run_on || !vtable->import_tensor || !vtable->export_tensor) {
    return cs_error(CS_CODE_USAGE,
                    "cs_session_run_device: backend %s has no streams; use "
                    "cs_session_run",
                    vtable->name);
  }
  CS_RETURN_IF_ERROR(check_count("inputs", n_inputs, graph->n_inputs));
  CS_RETURN_IF_ERROR(check_count("outputs", n_outputs, cs_graph_output_count(session->source)));
  session->inputs_on_device = true;
  for (int i = 0; i < n_inputs; i++) {
    int tensor = program->input_tensors[i];
    CS_RETURN_IF_ERROR(vtable->import_tensor(
        backend, inputs[i], &program->tensors[tensor].desc,
        cs_realised_tensor(realised, program, session->planned.plan, tensor), stream));
  }
  CS_RETURN_IF_ERROR(vtable->schedule_run_on(realised->schedule, stream));
  for (int i = 0; i < n_outputs; i++) {
    int tensor = program->output_tensors[i];
    CS_RETURN_IF_ERROR(vtable->export_tensor(
        backend, &program->tensors[tensor].desc,
        cs_realised_tensor(realised, program, session->planned.plan, tensor), outputs[i], stream));
  }
  return CS_OK;
}

/* ---- Time ---- */

cs_status cs_session_latency(cs_session *session, double *us) {
  return session->realised.backend->vtable->schedule_latency(session->realised.schedule, 1, us);
}

cs_status cs_session_latency_b2b(cs_session *session, int n, double *us) {
  if (n < 1) return cs_error(CS_CODE_USAGE, "%d launches: wanted at least 1", n);
  return session->realised.backend->vtable->schedule_b2b(session->realised.schedule, n, us);
}
