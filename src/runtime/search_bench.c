#include "runtime/search_bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/reference/reference.h"
#include "runtime/pipeline.h"

/* Of a burst, for each request in flight: until as many are in flight, timed, and until none is. */
#define LEAD 1
#define MOST_TIMED 3
#define TAIL 1
#define BURST_US 3000.0 /* fewer are timed where these take longer */

static cs_backend *backend_of(const cs_bench *bench) {
  return bench->session->device->backend;
}

/* ---- Inputs: converted once ---- */

static cs_status convert_inputs(cs_bench *bench) {
  const cs_program *program = bench->input->program;
  bench->inputs = cs_calloc((size_t)program->graph->n_inputs, sizeof *bench->inputs);
  if (!bench->inputs) return cs_no_memory("inputs", (size_t)program->graph->n_inputs);
  for (int i = 0; i < program->graph->n_inputs; i++) {
    const cs_tensor_desc *desc = &program->tensors[program->input_tensors[i]].desc;
    int64_t bytes = cs_tensor_span_bytes(desc);
    bench->inputs[i] = cs_calloc(1, (size_t)bytes);
    if (!bench->inputs[i]) return cs_no_memory("an input", (size_t)bytes);
    cs_tensor_from_f32(desc, bench->session->inputs[i], bench->inputs[i]);
  }
  return CS_OK;
}

/* An input has its bytes of the arena to itself: where the last plan had it in the same place, it
 * is still there. */
static cs_status upload_inputs(const cs_bench *bench, const cs_plan *plan,
                               const cs_timed_copy *copy) {
  const cs_program *program = bench->input->program;
  for (int i = 0; i < program->graph->n_inputs; i++) {
    int tensor = program->input_tensors[i];
    void *at = cs_realised_tensor(&copy->realised, program, plan, tensor);
    if (copy->input_at[i] == at) continue;
    copy->input_at[i] = NULL;
    CS_RETURN_IF_ERROR(
        backend_of(bench)->vtable->upload(backend_of(bench), at, bench->inputs[i],
                                          cs_tensor_span_bytes(&program->tensors[tensor].desc)));
    copy->input_at[i] = at;
  }
  return CS_OK;
}

/* ---- Create, destroy ---- */

static void clear_copy(const cs_bench *bench, cs_timed_copy *copy) {
  cs_realised *r = &copy->realised;
  if (r->schedule) backend_of(bench)->vtable->schedule_destroy(r->schedule);
  free(r->exec_of);
  free(r->execs);
  free(r->weights_at);
  free(r->launches);
  void *arena = r->arena;
  memset(r, 0, sizeof *r);
  r->arena = arena;
}

static void clear_slot(const cs_bench *bench, cs_timed_schedule *slot) {
  if (slot->requests) backend_of(bench)->vtable->requests_destroy(slot->requests);
  slot->requests = NULL;
  for (int c = 0; slot->copies && c < bench->in_flight; c++) clear_copy(bench, &slot->copies[c]);
  cs_plan_destroy(slot->plan);
  slot->plan = NULL;
}

static void free_slot(const cs_bench *bench, cs_timed_schedule *slot) {
  clear_slot(bench, slot);
  for (int c = 0; slot->copies && c < bench->in_flight; c++) {
    void *arena = slot->copies[c].realised.arena;
    if (arena) backend_of(bench)->vtable->release(backend_of(bench), arena);
    free(slot->copies[c].input_at);
  }
  free(slot->copies);
}

void cs_bench_destroy(cs_bench *bench) {
  if (!bench) return;
  for (int s = 0; s < CS_BENCH_SLOTS; s++) free_slot(bench, &bench->slots[s]);
  cs_bench_free_prepared(bench);
  for (int i = 0; bench->inputs && i < bench->input->program->graph->n_inputs; i++) {
    free(bench->inputs[i]);
  }
  free(bench->inputs);
  free(bench->times);
  free(bench);
}

static cs_status make_slot(const cs_bench *bench, cs_timed_schedule *slot) {
  size_t copies = (size_t)bench->in_flight, n = (size_t)bench->input->program->graph->n_inputs;
  slot->copies = cs_calloc(copies, sizeof *slot->copies);
  if (!slot->copies) return cs_no_memory("schedules", copies * sizeof *slot->copies);
  for (size_t c = 0; c < copies; c++) {
    slot->copies[c].input_at = cs_calloc(n, sizeof *slot->copies[c].input_at);
    if (!slot->copies[c].input_at) return cs_no_memory("inputs", n * sizeof(void *));
  }
  return CS_OK;
}

static cs_status make_times(cs_bench *bench) {
  size_t n = (size_t)bench->in_flight * (LEAD + MOST_TIMED + TAIL);
  if (bench->in_flight == 1) return CS_OK;
  bench->times = cs_calloc(n, sizeof *bench->times);
  return bench->times ? CS_OK : cs_no_memory("times of requests", n * sizeof *bench->times);
}

cs_status cs_bench_create(cs_session *session, const cs_policy_input *input, int in_flight,
                          cs_bench **out) {
  cs_status st = CS_OK;
  *out = NULL;
  cs_bench *bench = cs_calloc(1, sizeof *bench);
  if (!bench) return cs_no_memory("a bench", sizeof *bench);
  bench->session = session;
  bench->input = input;
  bench->in_flight = in_flight;
  CS_TRY(st, cs_bench_make_prepared(bench), done);
  CS_TRY(st, make_times(bench), done);
  for (int s = 0; s < CS_BENCH_SLOTS; s++) CS_TRY(st, make_slot(bench, &bench->slots[s]), done);
  CS_TRY(st, convert_inputs(bench), done);
  *out = bench, bench = NULL;
done:
  cs_bench_destroy(bench);
  return st;
}

/* ---- Slots ---- */

static cs_status make_arena(const cs_bench *bench, cs_timed_copy *copy, int64_t bytes) {
  cs_realised *r = &copy->realised;
  const cs_backend_vtable *vtable = backend_of(bench)->vtable;
  if (r->arena && copy->arena_capacity >= bytes) return CS_OK;
  if (r->arena) vtable->release(backend_of(bench), r->arena);
  r->arena = NULL;
  for (int i = 0; i < bench->input->program->graph->n_inputs; i++) copy->input_at[i] = NULL;
  CS_RETURN_IF_ERROR(cs_annotate(vtable->allocate(backend_of(bench), bytes, &r->arena), "arena: "));
  copy->arena_capacity = bytes;
  return vtable->fill(backend_of(bench), r->arena, 0, bytes);
}

/* The prepared candidates of a plan, as cs_realise_launches wants them. */
static cs_status bind(cs_bench *bench, const cs_plan *plan, cs_realised *r) {
  size_t n = (size_t)plan->n_tasks;
  r->backend = backend_of(bench);
  r->borrowed = true;
  r->beside = bench->in_flight > 1;
  r->no_graph = bench->session->settings.options.no_graph;
  r->execs = cs_calloc(n, sizeof(cs_exec *));
  r->exec_of = cs_calloc(n, sizeof *r->exec_of);
  r->weights_at = cs_calloc(n, sizeof *r->weights_at);
  if (!r->execs || !r->exec_of || !r->weights_at) return cs_no_memory("a schedule", n);
  r->n_execs = plan->n_tasks;
  for (int p = 0; p < plan->n_tasks; p++) {
    int task = plan->tasks[p].task;
    int choice = cs_choice_find(&bench->input->choices[task], plan->tasks[p].candidate.id);
    CS_RETURN_IF_ERROR(cs_bench_prepare(bench, task, choice));
    r->execs[p] = bench->prepared[task][choice].exec;
    r->weights_at[p] = bench->prepared[task][choice].weights;
    r->exec_of[p] = p;
  }
  return CS_OK;
}

static cs_status make_requests(const cs_bench *bench, cs_timed_schedule *slot) {
  cs_request_slot slots[CS_PIPELINE_MOST_SLOTS] = {{0}};
  if (bench->in_flight == 1) return CS_OK;
  for (int c = 0; c < bench->in_flight; c++) {
    slots[c].schedule = slot->copies[c].realised.schedule;
  }
  return backend_of(bench)->vtable->requests_create(backend_of(bench), slots, bench->in_flight,
                                                    &slot->requests);
}

cs_status cs_bench_set(cs_bench *bench, cs_bench_slot slot, const cs_configuration *configuration) {
  cs_timed_schedule *timed = &bench->slots[slot];
  clear_slot(bench, timed);
  CS_RETURN_IF_ERROR(cs_configuration_plan(configuration, "coselect", bench->input, &timed->plan));
  for (int c = 0; c < bench->in_flight; c++) {
    cs_timed_copy *copy = &timed->copies[c];
    CS_RETURN_IF_ERROR(bind(bench, timed->plan, &copy->realised));
    CS_RETURN_IF_ERROR(make_arena(bench, copy, timed->plan->arena_bytes));
    CS_RETURN_IF_ERROR(cs_realise_launches(bench->input->program, timed->plan, &copy->realised));
    CS_RETURN_IF_ERROR(upload_inputs(bench, timed->plan, copy));
  }
  return make_requests(bench, timed);
}

void cs_bench_swap(cs_bench *bench) {
  cs_timed_schedule best = bench->slots[CS_BENCH_BEST];
  bench->slots[CS_BENCH_BEST] = bench->slots[CS_BENCH_TRIAL];
  bench->slots[CS_BENCH_TRIAL] = best;
}

cs_status cs_bench_configuration(const cs_bench *bench, cs_bench_slot slot, cs_configuration *out) {
  return cs_configuration_of_plan(bench->slots[slot].plan, bench->input->choices, out);
}

const cs_plan *cs_bench_plan(const cs_bench *bench, cs_bench_slot slot) {
  return bench->slots[slot].plan;
}

int64_t cs_bench_workspace(const cs_bench *bench, cs_bench_slot slot) {
  return bench->slots[slot].plan->workspace_peak;
}

/* ---- Timing ---- */

/* Microseconds a request, of a burst in which `timed` are timed. */
static cs_status time_burst(const cs_bench *bench, const cs_timed_schedule *slot, int timed,
                            double *us) {
  int n = bench->in_flight, all = LEAD * n + timed + TAIL * n;
  cs_pipeline_rate rate;
  CS_RETURN_IF_ERROR(
      backend_of(bench)->vtable->requests_burst(slot->requests, n, false, all, bench->times));
  CS_RETURN_IF_ERROR(cs_pipeline_rate_of(bench->times, LEAD * n, timed, TAIL * n, 1, &rate));
  *us = rate.seconds * 1e6 / timed;
  return CS_OK;
}

/* *timed: requests that a sample takes, of what a first one told. */
static cs_status warm_up(const cs_bench *bench, const cs_timed_schedule *slot, int *timed) {
  double us;
  if (!slot->requests) {
    return backend_of(bench)->vtable->schedule_latency(slot->copies[0].realised.schedule, 1, &us);
  }
  CS_RETURN_IF_ERROR(time_burst(bench, slot, bench->in_flight, &us));
  double fits = fmin(ceil(BURST_US / fmax(us, 1)), MOST_TIMED * bench->in_flight);
  *timed = (int)fmax(*timed, fits);
  return CS_OK;
}

static cs_status sample(const cs_bench *bench, const cs_timed_schedule *slot, int timed,
                        double *us) {
  if (slot->requests) return time_burst(bench, slot, timed, us);
  return backend_of(bench)->vtable->schedule_latency(slot->copies[0].realised.schedule, 1, us);
}

static cs_status median_of(const double *values, int n, double *out) {
  cs_stats stats;
  CS_RETURN_IF_ERROR(cs_stats_of(values, n, &stats));
  *out = stats.median;
  return CS_OK;
}

cs_status cs_bench_compare(cs_bench *bench, int n, cs_bench_pairs *out) {
  double *samples[CS_BENCH_SLOTS] = {out->best, out->trial};
  double ratios[CS_BENCH_SAMPLES];
  int timed = bench->in_flight;
  for (int s = 0; s < CS_BENCH_SLOTS; s++) {
    CS_RETURN_IF_ERROR(warm_up(bench, &bench->slots[s], &timed));
  }
  out->n = n;
  out->wins = 0;
  for (int i = 0; i < n; i++) {
    for (int s = 0; s < CS_BENCH_SLOTS; s++) {
      CS_RETURN_IF_ERROR(sample(bench, &bench->slots[s], timed, &samples[s][i]));
    }
    ratios[i] = out->trial[i] / out->best[i];
    out->wins += ratios[i] < 1;
  }
  CS_RETURN_IF_ERROR(median_of(out->best, n, &out->best_us));
  CS_RETURN_IF_ERROR(median_of(out->trial, n, &out->trial_us));
  cs_median_interval interval;
  CS_RETURN_IF_ERROR(cs_median_interval_of(ratios, n, CS_SEARCH_CONFIDENCE, &interval));
  out->low = interval.low;
  out->high = interval.high;
  return median_of(ratios, n, &out->ratio);
}
