/* Candidates of a bench, prepared once, and their weights on the device. */
#include <stdlib.h>
#include <string.h>

#include "runtime/search_bench.h"

static cs_backend *backend_of(const cs_bench *bench) {
  return bench->session->device->backend;
}

/* The same bytes of the same node: of another candidate, or of another part; NULL: none. */
static void *find_packed(const cs_bench *bench, int task, const cs_prepared *wanted) {
  const cs_program *program = bench->input->program;
  for (int t = 0; t < program->n_tasks; t++) {
    if (t != task &&
        (program->tasks[t].part < 0 || program->tasks[t].node != program->tasks[task].node))
      continue;
    for (int i = 0; i < bench->input->choices[t].n; i++) {
      const cs_prepared *other = &bench->prepared[t][i];
      if (other != wanted && other->weights && other->packed_bytes == wanted->packed_bytes &&
          other->packed_hash == wanted->packed_hash) {
        return other->weights;
      }
    }
  }
  return NULL;
}

static cs_status upload(const cs_bench *bench, int task, cs_prepared *p) {
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
  p->weights = find_packed(bench, task, p);
  if (p->weights) goto done;
  CS_TRY(st, vtable->allocate(backend_of(bench), p->packed_bytes, &p->weights), done);
  p->owns = true;
  st = vtable->upload(backend_of(bench), p->weights, host, p->packed_bytes);
done:
  free(host);
  return st;
}

/* One whose weights did not get onto the device must not pass for prepared. */
static void forget(const cs_bench *bench, cs_prepared *p) {
  const cs_backend_vtable *vtable = backend_of(bench)->vtable;
  if (p->owns) vtable->release(backend_of(bench), p->weights);
  if (p->exec && !p->borrowed) vtable->exec_destroy(p->exec);
  memset(p, 0, sizeof *p);
}

static bool same_tensor(const cs_tensor_desc *a, const cs_tensor_desc *b) {
  bool same = cs_shape_equal(&a->shape, &b->shape) && a->layout == b->layout &&
              a->dtype == b->dtype && a->alignment == b->alignment;
  for (int i = 0; i < a->shape.rank && same; i++) same = a->strides[i] == b->strides[i];
  return same;
}

/* Of one node: operator and attributes are the same. */
static bool same_part(const cs_task *a, const cs_task *b) {
  if (a->part < 0 || b->part < 0 || a->node < 0 || a->node != b->node) return false;
  bool same = same_tensor(&a->desc.output, &b->desc.output);
  for (int i = 0; i < a->desc.n_inputs && same; i++) {
    same = same_tensor(&a->desc.inputs[i], &b->desc.inputs[i]);
  }
  return same;
}

/* The candidate, prepared for a part of the node that is the same operation; NULL: none is. */
static const cs_prepared *find_same(const cs_bench *bench, int task, const char *id) {
  const cs_program *program = bench->input->program;
  for (int t = 0; t < program->n_tasks; t++) {
    if (t == task || !same_part(&program->tasks[t], &program->tasks[task])) continue;
    int choice = cs_choice_find(&bench->input->choices[t], id);
    if (choice >= 0 && bench->prepared[t][choice].exec) return &bench->prepared[t][choice];
  }
  return NULL;
}

cs_status cs_bench_prepare(const cs_bench *bench, int task, int choice) {
  cs_prepared *p = &bench->prepared[task][choice];
  const cs_task *t = &bench->input->program->tasks[task];
  if (p->exec) return CS_OK;
  const cs_candidate *candidate = bench->input->choices[task].choices[choice].candidate;
  const cs_prepared *same = find_same(bench, task, candidate->id);
  if (same) {
    *p = *same;
    p->owns = false;
    p->borrowed = true;
    return CS_OK;
  }
  cs_status st =
      backend_of(bench)->vtable->prepare(backend_of(bench), &t->desc, candidate, &p->exec);
  if (st == CS_OK) st = upload(bench, task, p);
  if (st != CS_OK) forget(bench, p);
  return cs_annotate(st, "%s, candidate %s: ", t->name, candidate->id);
}

cs_status cs_bench_prepared(cs_bench *bench, int task, int choice, const cs_exec **exec,
                            const void **weights) {
  CS_RETURN_IF_ERROR(cs_bench_prepare(bench, task, choice));
  *exec = bench->prepared[task][choice].exec;
  *weights = bench->prepared[task][choice].weights;
  return CS_OK;
}

cs_status cs_bench_make_prepared(cs_bench *bench) {
  const cs_policy_input *input = bench->input;
  size_t n = (size_t)input->program->n_tasks;
  bench->prepared = cs_calloc(n, sizeof *bench->prepared);
  if (!bench->prepared) return cs_no_memory("a bench", n * sizeof *bench->prepared);
  for (size_t t = 0; t < n; t++) {
    size_t choices = (size_t)input->choices[t].n;
    bench->prepared[t] = cs_calloc(choices, sizeof **bench->prepared);
    if (!bench->prepared[t]) return cs_no_memory("a bench", choices * sizeof **bench->prepared);
  }
  return CS_OK;
}

void cs_bench_free_prepared(cs_bench *bench) {
  for (int t = 0; bench->prepared && t < bench->input->program->n_tasks; t++) {
    for (int i = 0; bench->prepared[t] && i < bench->input->choices[t].n; i++) {
      forget(bench, &bench->prepared[t][i]);
    }
    free(bench->prepared[t]);
  }
  free(bench->prepared);
}
