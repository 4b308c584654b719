/* Sizes of parts that may be worth measuring, and measuring them. */
#include <stdlib.h>

#include "profiler/measure_session.h"
#include "runtime/micro_wanted.h"
#include "runtime/search.h"

#define AT_A_TIME 8 /* operations measured between two looks at the clock */

/* ---- Sizes ---- */

static void add_size(int64_t size, int64_t batch, int64_t out[CS_MICRO_SIZES], int *n) {
  if (size < 1 || size >= batch || *n == CS_MICRO_SIZES) return;
  int at = 0;
  while (at < *n && out[at] > size) at++;
  if (at < *n && out[at] == size) return;
  for (int i = (*n)++; i > at; i--) out[i] = out[i - 1];
  out[at] = size;
}

int cs_micro_sizes(int64_t batch, int64_t out[CS_MICRO_SIZES]) {
  int n = 0;
  for (int64_t size = batch; size > 1;) {
    size = (size + 1) / 2;
    add_size(size, batch, out, &n);
    add_size(batch % size, batch, out, &n);
  }
  return n;
}

cs_op_desc cs_micro_desc(const cs_op_desc *desc, int64_t entries) {
  cs_op_desc part = *desc;
  for (int i = 0; i < part.n_inputs; i++) part.inputs[i].shape.dims[0] = entries;
  part.output.shape.dims[0] = entries;
  return part;
}

int64_t cs_micro_bytes(const cs_op_desc *desc) {
  int64_t bytes = cs_tensor_span_bytes(&desc->output);
  for (int i = 0; i < desc->n_inputs; i++) bytes += cs_tensor_span_bytes(&desc->inputs[i]);
  return bytes;
}

bool cs_micro_divides(const cs_program *program, int task) {
  int node = program->tasks[task].node;
  return node >= 0 && cs_node_divides(program->graph, node);
}

cs_status cs_micro_is_known(const cs_session *session, const cs_measure_options *measure,
                            const cs_op_desc *desc, int64_t entries, bool *known) {
  char *signature = NULL;
  cs_op_desc part = cs_micro_desc(desc, entries);
  cs_completion wanted = {.workspace_limit = measure->workspace_limit,
                          .threads = measure->threads,
                          .full = measure->full};
  CS_RETURN_IF_ERROR(cs_op_signature(&part, &signature));
  const cs_op_profile *of = cs_profile_find(session->device->profile, signature);
  *known = cs_device_is_simulated(session->device) ? cs_op_profile_covered_once(of, &wanted)
                                                   : cs_op_profile_covers(of, &wanted);
  free(signature);
  return CS_OK;
}

/* ---- What is wanted ---- */

static void release(cs_wanted_parts *wanted) {
  free(wanted->descs);
  free(wanted->names);
}

static cs_status want(cs_wanted_parts *wanted, int task, int64_t entries) {
  const cs_task *t = &wanted->of->program->tasks[task];
  int64_t batch = wanted->of->program->graph->batch;
  if (entries < 1 || entries >= batch) return CS_OK;
  CS_RETURN_IF_ERROR(
      cs_grow(&wanted->descs, &wanted->descs_capacity, wanted->n + 1, sizeof *wanted->descs));
  CS_RETURN_IF_ERROR(
      cs_grow(&wanted->names, &wanted->names_capacity, wanted->n + 1, sizeof *wanted->names));
  wanted->descs[wanted->n] = cs_micro_desc(&t->desc, entries);
  wanted->names[wanted->n++] = t->name;
  return CS_OK;
}

cs_status cs_want_parts(cs_wanted_parts *wanted, int task, int64_t entries) {
  CS_RETURN_IF_ERROR(want(wanted, task, entries));
  return want(wanted, task, wanted->of->program->graph->batch % entries);
}

/* ---- Measuring ---- */

static cs_status measure_wanted(const cs_wanted_parts *wanted, double seconds,
                                cs_micro_measured *out) {
  cs_session *session = wanted->session;
  cs_status st = CS_OK;
  double begun = cs_now_seconds();
  const cs_op_desc **descs = cs_calloc(wanted->n, sizeof *descs);
  if (!descs) return cs_no_memory("operations", wanted->n * sizeof *descs);
  for (size_t i = 0; i < wanted->n; i++) descs[i] = &wanted->descs[i];
  for (size_t first = 0; first < wanted->n; first += AT_A_TIME) {
    cs_measure_report report = {0};
    cs_wanted some = {.profile = session->device->profile,
                      .backend = session->device->backend,
                      .options = wanted->of->measure,
                      .logger = &session->device->logger,
                      .report = &report};
    int n = (int)cs_min_i64(AT_A_TIME, (int64_t)(wanted->n - first));
    if (cs_now_seconds() - begun >= seconds) {
      cs_log(&session->device->logger, CS_LOG_INFO,
             "micro-batches: after %.1f s %zu of %zu sizes of parts are left unmeasured",
             cs_now_seconds() - begun, wanted->n - first, wanted->n);
      out->complete = false;
      break;
    }
    CS_TRY(st, cs_measure_wanted(&some, descs + first, wanted->names + first, n), done);
    out->operations += report.operations - report.operations_cached;
    session->timings.profile += report.seconds;
    cs_measure_report_add(&report, &session->planned.measured);
  }
done:
  free(descs);
  return st;
}

cs_status cs_micro_measure(cs_session *session, const cs_undivided *of, cs_micro_measured *out) {
  cs_status st = CS_OK;
  cs_wanted_parts wanted = {.session = session, .of = of};
  double seconds = session->settings.options.search_seconds;
  if (seconds < 0) seconds = CS_SEARCH_SECONDS;
  out->complete = true;
  CS_TRY(st, cs_session_check_cancelled(session, "looking for micro-batches"), done);
  CS_TRY(st, cs_want_fitting(&wanted), done);
  CS_TRY(st, cs_want_resident(&wanted), done);
  cs_log(&session->device->logger, CS_LOG_DEBUG, "micro-batches: %zu sizes of parts wanted",
         wanted.n);
  st = measure_wanted(&wanted, seconds, out);
done:
  release(&wanted);
  return st;
}
