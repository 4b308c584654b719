#include <stdlib.h>
#include <string.h>

#include "backend/reference/reference.h"
#include "runtime/search.h"

/* A candidate of a task, prepared. Candidates of a task whose packed weights are the same bytes
 * share them on the device. */
typedef struct prepared {
  cs_exec *exec; /* NULL: not yet */
  void *weights; /* its own, or those of another candidate of the task */
  uint64_t packed_hash;
  int64_t packed_bytes;
  bool owns;
} prepared;

typedef struct timed_schedule {
  cs_plan *plan;
  cs_realised realised; /* its arena is kept for the next plan */
  int64_t arena_capacity;
  void **input_at; /* per graph input: where in the arena it lies; NULL: nowhere */
} timed_schedule;

struct cs_bench {
  cs_session *session;
  const cs_policy_input *input;
  prepared **prepared; /* [task][choice] */
  timed_schedule slots[CS_BENCH_SLOTS];
  void **inputs; /* per graph input: as it lies in the tensor */
};

static cs_backend *backend_of(const cs_bench *bench) {
  return bench->session->device->backend;
}

/* ---- Candidates ---- */

static cs_status upload(const cs_bench *bench, int task, prepared *p) {
  const cs_backend_vtable *vtable = backend_of(bench)->vtable;
  cs_status st = CS_OK;
  void *host = NULL;
  p->packed_bytes = vtable->exec_weight_bytes(p->exec);
  if (p->packed_bytes == 0) return CS_OK;
  host = cs_calloc(1, (size_t)p->packed_bytes);
  if (!host) return cs_no_memory("packed weights", (size_t)p->packed_bytes);
  CS_TRY(st,
         cs_pack_weights(backend_of(bench), bench->session->shared->params, bench->input->program,
                         task, p->exec, host),
         done);
  p->packed_hash = cs_hash_bytes(CS_HASH_SEED, host, (size_t)p->packed_bytes);
  for (int i = 0; i < bench->input->choices[task].n; i++) {
    const prepared *other = &bench->prepared[task][i];
    if (other == p || !other->weights || other->packed_bytes != p->packed_bytes ||
        other->packed_hash != p->packed_hash) {
      continue;
    }
    p->weights = other->weights;
    goto done;
  }
  CS_TRY(st, vtable->allocate(backend_of(bench), p->packed_bytes, &p->weights), done);
  p->owns = true;
  st = vtable->upload(backend_of(bench), p->weights, host, p->packed_bytes);
done:
  free(host);
  return st;
}

/* One whose weights did not get onto the device must not pass for prepared. */
static void forget(const cs_bench *bench, prepared *p) {
  const cs_backend_vtable *vtable = backend_of(bench)->vtable;
  if (p->owns) vtable->release(backend_of(bench), p->weights);
  if (p->exec) vtable->exec_destroy(p->exec);
  memset(p, 0, sizeof *p);
}

static cs_status prepare(const cs_bench *bench, int task, int choice) {
  prepared *p = &bench->prepared[task][choice];
  const cs_task *t = &bench->input->program->tasks[task];
  if (p->exec) return CS_OK;
  const cs_candidate *candidate = bench->input->choices[task].choices[choice].candidate;
  cs_status st =
      backend_of(bench)->vtable->prepare(backend_of(bench), &t->desc, candidate, &p->exec);
  if (st == CS_OK) st = upload(bench, task, p);
  if (st != CS_OK) forget(bench, p);
  return cs_annotate(st, "%s, candidate %s: ", t->name, candidate->id);
}

cs_status cs_bench_prepared(cs_bench *bench, int task, int choice, const cs_exec **exec,
                            const void **weights) {
  CS_RETURN_IF_ERROR(prepare(bench, task, choice));
  *exec = bench->prepared[task][choice].exec;
  *weights = bench->prepared[task][choice].weights;
  return CS_OK;
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

/* An input has its bytes of the arena to itself: where the slot's last plan had it in the same
 * place, it is still there. */
static cs_status upload_inputs(const cs_bench *bench, cs_bench_slot slot) {
  const cs_program *program = bench->input->program;
  const timed_schedule *timed = &bench->slots[slot];
  for (int i = 0; i < program->graph->n_inputs; i++) {
    int tensor = program->input_tensors[i];
    void *at = cs_realised_tensor(&timed->realised, program, timed->plan, tensor);
    if (timed->input_at[i] == at) continue;
    timed->input_at[i] = NULL;
    CS_RETURN_IF_ERROR(
        backend_of(bench)->vtable->upload(backend_of(bench), at, bench->inputs[i],
                                          cs_tensor_span_bytes(&program->tensors[tensor].desc)));
    timed->input_at[i] = at;
  }
  return CS_OK;
}

/* ---- Create, destroy ---- */

static void clear_slot(cs_bench *bench, cs_bench_slot slot) {
  cs_realised *r = &bench->slots[slot].realised;
  const cs_backend_vtable *vtable = backend_of(bench)->vtable;
  if (r->schedule) vtable->schedule_destroy(r->schedule);
  free(r->exec_of);
  free(r->execs);
  free(r->weights_at);
  free(r->launches);
  void *arena = r->arena;
  memset(r, 0, sizeof *r);
  r->arena = arena;
  cs_plan_destroy(bench->slots[slot].plan);
  bench->slots[slot].plan = NULL;
}

void cs_bench_destroy(cs_bench *bench) {
  if (!bench) return;
  const cs_backend_vtable *vtable = backend_of(bench)->vtable;
  for (int s = 0; s < CS_BENCH_SLOTS; s++) {
    clear_slot(bench, (cs_bench_slot)s);
    if (bench->slots[s].realised.arena)
      vtable->release(backend_of(bench), bench->slots[s].realised.arena);
    free(bench->slots[s].input_at);
  }
  for (int t = 0; bench->prepared && t < bench->input->program->n_tasks; t++) {
    for (int i = 0; bench->prepared[t] && i < bench->input->choices[t].n; i++) {
      forget(bench, &bench->prepared[t][i]);
    }
    free(bench->prepared[t]);
  }
  for (int i = 0; bench->inputs && i < bench->input->program->graph->n_inputs; i++) {
    free(bench->inputs[i]);
  }
  free(bench->inputs);
  free(bench->prepared);
  free(bench);
}

cs_status cs_bench_create(cs_session *session, const cs_policy_input *input, cs_bench **out) {
  size_t n = (size_t)input->program->n_tasks;
  *out = NULL;
  cs_bench *bench = cs_calloc(1, sizeof *bench);
  if (!bench) return cs_no_memory("a bench", sizeof *bench);
  bench->session = session;
  bench->input = input;
  bench->prepared = cs_calloc(n, sizeof(prepared *));
  bool failed = !bench->prepared;
  for (int s = 0; s < CS_BENCH_SLOTS; s++) {
    bench->slots[s].input_at =
        cs_calloc((size_t)input->program->graph->n_inputs, sizeof *bench->slots[s].input_at);
    failed = failed || !bench->slots[s].input_at;
  }
  for (size_t t = 0; !failed && t < n; t++) {
    bench->prepared[t] = cs_calloc((size_t)input->choices[t].n, sizeof **bench->prepared);
    failed = !bench->prepared[t];
  }
  if (failed) {
    cs_bench_destroy(bench);
    return cs_no_memory("a bench", n * sizeof(prepared *));
  }
  cs_status st = convert_inputs(bench);
  if (st != CS_OK) {
    cs_bench_destroy(bench);
    return st;
  }
  *out = bench;
  return CS_OK;
}

/* ---- Slots ---- */

static cs_status make_arena(cs_bench *bench, cs_bench_slot slot, int64_t bytes) {
  cs_realised *r = &bench->slots[slot].realised;
  const cs_backend_vtable *vtable = backend_of(bench)->vtable;
  if (r->arena && bench->slots[slot].arena_capacity >= bytes) return CS_OK;
  if (r->arena) vtable->release(backend_of(bench), r->arena);
  r->arena = NULL;
  for (int i = 0; i < bench->input->program->graph->n_inputs; i++) {
    bench->slots[slot].input_at[i] = NULL;
  }
  CS_RETURN_IF_ERROR(cs_annotate(vtable->allocate(backend_of(bench), bytes, &r->arena), "arena: "));
  bench->slots[slot].arena_capacity = bytes;
  return vtable->fill(backend_of(bench), r->arena, 0, bytes);
}

/* The prepared candidates of a plan, as cs_realise_launches wants them. */
static cs_status bind(cs_bench *bench, cs_bench_slot slot) {
  cs_realised *r = &bench->slots[slot].realised;
  cs_plan *plan = bench->slots[slot].plan;
  size_t n = (size_t)plan->n_tasks;
  r->backend = backend_of(bench);
  r->borrowed = true;
  r->no_graph = bench->session->settings.options.no_graph;
  r->execs = cs_calloc(n, sizeof(cs_exec *));
  r->exec_of = cs_calloc(n, sizeof *r->exec_of);
  r->weights_at = cs_calloc(n, sizeof *r->weights_at);
  if (!r->execs || !r->exec_of || !r->weights_at) return cs_no_memory("a schedule", n);
  r->n_execs = plan->n_tasks;
  for (int p = 0; p < plan->n_tasks; p++) {
    int task = plan->tasks[p].task;
    int choice = cs_choice_find(&bench->input->choices[task], plan->tasks[p].candidate.id);
    CS_RETURN_IF_ERROR(prepare(bench, task, choice));
    r->execs[p] = bench->prepared[task][choice].exec;
    r->weights_at[p] = bench->prepared[task][choice].weights;
    r->exec_of[p] = p;
  }
  return CS_OK;
}

cs_status cs_bench_set(cs_bench *bench, cs_bench_slot slot, const cs_configuration *configuration) {
  clear_slot(bench, slot);
  CS_RETURN_IF_ERROR(
      cs_configuration_plan(configuration, "coselect", bench->input, &bench->slots[slot].plan));
  cs_plan *plan = bench->slots[slot].plan;
  CS_RETURN_IF_ERROR(bind(bench, slot));
  CS_RETURN_IF_ERROR(make_arena(bench, slot, plan->arena_bytes));
  CS_RETURN_IF_ERROR(
      cs_realise_launches(bench->input->program, plan, &bench->slots[slot].realised));
  return upload_inputs(bench, slot);
}

void cs_bench_swap(cs_bench *bench) {
  timed_schedule best = bench->slots[CS_BENCH_BEST];
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

static cs_status median_of(const double *values, int n, double *out) {
  cs_stats stats;
  CS_RETURN_IF_ERROR(cs_stats_of(values, n, &stats));
  *out = stats.median;
  return CS_OK;
}

cs_status cs_bench_compare(cs_bench *bench, int n, cs_bench_pairs *out) {
  const cs_backend_vtable *vtable = backend_of(bench)->vtable;
  double *samples[CS_BENCH_SLOTS] = {out->best, out->trial};
  double ratios[CS_BENCH_SAMPLES], warm_up;
  for (int s = 0; s < CS_BENCH_SLOTS; s++) {
    CS_RETURN_IF_ERROR(vtable->schedule_latency(bench->slots[s].realised.schedule, 1, &warm_up));
  }
  out->n = n;
  out->wins = 0;
  for (int i = 0; i < n; i++) {
    for (int s = 0; s < CS_BENCH_SLOTS; s++) {
      CS_RETURN_IF_ERROR(
          vtable->schedule_latency(bench->slots[s].realised.schedule, 1, &samples[s][i]));
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
