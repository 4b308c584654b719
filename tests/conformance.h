/* The conformance runner: every case of the table, every candidate and baseline of the backend for
 * it, against the plain C reference. Outputs are poisoned with NaN, everything the backend is given
 * lies between guard bands, and whatever lies outside a view must come back untouched. */
#ifndef CONVSCHED_TESTS_CONFORMANCE_H_
#define CONVSCHED_TESTS_CONFORMANCE_H_

#include <fnmatch.h>
#include <math.h>

#include "backend/backend.h"
#include "backend/reference/reference.h"
#include "conformance_cases.h"

/* A case (shell pattern of its name) that a backend has no implementation for, and why. A listed
 * case that has candidates after all is a failure: the list must stay true. */
typedef struct conformance_unsupported {
  const char *pattern, *reason;
} conformance_unsupported;

typedef struct conformance_options {
  const conformance_unsupported *unsupported; /* ended by a NULL pattern; NULL: none */
  const char *only;                           /* shell pattern of case names; NULL: all */
  const cs_layout *layouts;                   /* NULL: the backend's own for f32 */
  int n_layouts;
  cs_enumerate_options enumerate;
  bool verbose;
} conformance_options;

typedef struct conformance_report {
  int cases, candidates, unsupported, failures;
  double closest; /* largest error as a fraction of its limit, over all that passed or not */
  char closest_name[256];
} conformance_report;

#define CF_GUARD 512

/* Device memory between guard bands; `host` mirrors all of it. */
typedef struct cf_region {
  unsigned char *host;
  void *base;
  int64_t bytes;
} cf_region;

typedef struct cf_run {
  cs_backend *backend;
  const conformance_case *c;
  float *inputs[CS_MAX_OP_INPUTS]; /* logical, rounded to storage */
  float *weight, *bias;            /* rounded to storage */
  double *value, *magnitude;
  float *out;
  int64_t elements;
  double closest; /* of the candidate that ran last */
} cf_run;

static inline int64_t cf_elements(const cs_shape *shape) {
  int64_t n = 1;
  for (int i = 0; i < shape->rank; i++) n *= shape->dims[i];
  return n;
}

static inline void *cf_alloc(int64_t bytes) {
  void *memory = calloc(1, bytes > 0 ? (size_t)bytes : 1);
  if (!memory) abort();
  return memory;
}

static inline cs_status cf_region_create(cs_backend *backend, int64_t bytes, cf_region *out) {
  *out = (cf_region){.bytes = bytes};
  out->host = cf_alloc(bytes + 2 * CF_GUARD);
  memset(out->host, 0xFF, (size_t)bytes + 2 * CF_GUARD);
  return backend->vtable->allocate(backend, bytes + 2 * CF_GUARD, &out->base);
}

static inline void cf_region_destroy(cs_backend *backend, cf_region *region) {
  free(region->host);
  if (region->base) backend->vtable->release(backend, region->base);
  *region = (cf_region){0};
}

static inline void *cf_at(const cf_region *region) {
  return (char *)region->base + CF_GUARD;
}

static inline cs_status cf_upload(cs_backend *backend, const cf_region *region) {
  return backend->vtable->upload(backend, region->base, region->host, region->bytes + 2 * CF_GUARD);
}

/* True when the device's bytes are the mirror's, `within` bytes at the start excepted. */
static inline cs_status cf_same(cs_backend *backend, const cf_region *region, bool guards_only,
                                bool *same) {
  unsigned char *now = cf_alloc(region->bytes + 2 * CF_GUARD);
  cs_status st =
      backend->vtable->download(backend, now, region->base, region->bytes + 2 * CF_GUARD);
  *same =
      memcmp(now, region->host, CF_GUARD) == 0 &&
      memcmp(now + CF_GUARD + region->bytes, region->host + CF_GUARD + region->bytes, CF_GUARD) ==
          0 &&
      (guards_only || memcmp(now + CF_GUARD, region->host + CF_GUARD, (size_t)region->bytes) == 0);
  free(now);
  return st;
}

static inline float *cf_random(int64_t n, uint64_t stream, double deviation, cs_dtype dtype) {
  float *values = cf_alloc(n * (int64_t)sizeof(float));
  cs_rng rng;
  cs_rng_init(&rng, 20240607, stream);
  cs_rng_fill_normal(&rng, values, n, 0.0, deviation);
  cs_round_to_dtype(dtype, values, n);
  return values;
}

static inline void cf_run_destroy(cf_run *run) {
  for (int i = 0; i < CS_MAX_OP_INPUTS; i++) free(run->inputs[i]);
  free(run->weight);
  free(run->bias);
  free(run->value);
  free(run->magnitude);
  free(run->out);
}

/* Random inputs and parameters, and what the reference makes of them. */
static inline cs_status cf_run_init(cf_run *run, cs_backend *backend, const conformance_case *c) {
  *run = (cf_run){.backend = backend, .c = c};
  const cs_op_desc *d = &c->desc;
  uint64_t stream = cs_hash_string(CS_HASH_SEED, c->name);
  double *doubles[CS_MAX_OP_INPUTS] = {0};
  for (int i = 0; i < d->n_inputs; i++) {
    int64_t n = cf_elements(&d->inputs[i].shape);
    run->inputs[i] = cf_random(n, stream + (uint64_t)i, 1.0, d->inputs[i].dtype);
    doubles[i] = cf_alloc(n * (int64_t)sizeof(double));
    if (cs_op_wants_positive(d, i))
      conformance_make_positive(run->inputs[i], n, d->inputs[i].dtype);
    for (int64_t j = 0; j < n; j++) doubles[i][j] = run->inputs[i][j];
  }
  cs_dtype storage = cs_precision_storage(d->precision);
  int64_t n_weight = cs_op_weight_elements(d), n_bias = cs_op_bias_elements(d);
  if (n_weight > 0)
    run->weight = cf_random(n_weight, stream + 7, 1.0 / sqrt((double)cs_op_reduction(d)), storage);
  if (cs_op_wants_positive(d, d->n_inputs))
    conformance_make_positive(run->weight, n_weight, storage);
  if (n_bias > 0) run->bias = cf_random(n_bias, stream + 8, 0.5, storage);
  run->elements = cf_elements(&d->output.shape);
  run->value = cf_alloc(run->elements * (int64_t)sizeof(double));
  run->magnitude = cf_alloc(run->elements * (int64_t)sizeof(double));
  run->out = cf_alloc(run->elements * (int64_t)sizeof(float));
  cs_status st = cs_reference_run(d, (const double *const *)doubles, run->weight, run->bias,
                                  run->value, run->magnitude, 0);
  for (int i = 0; i < d->n_inputs; i++) free(doubles[i]);
  return st;
}

/* Reads the output, compares it, and checks that nothing around it was written and that the lanes
 * that pad a blocked layout are zeros. */
static inline cs_status cf_judge(cf_run *run, const cs_candidate *candidate, cf_region *output,
                                 char *verdict, size_t size) {
  const cs_op_desc *d = &run->c->desc;
  int64_t total = output->bytes + 2 * CF_GUARD;
  unsigned char *now = cf_alloc(total);
  cs_status st = run->backend->vtable->download(run->backend, now, output->base, total);
  if (st == CS_OK) {
    int64_t at = CF_GUARD + run->c->output.offset;
    cs_tensor_to_f32(&d->output, now + at, run->out);
    unsigned char *expected = cf_alloc(total);
    memcpy(expected, output->host, (size_t)total);
    cs_tensor_from_f32(&d->output, run->out, expected + at);
    double rel_l2, max_scaled;
    cs_tolerance(d, candidate->notes, &rel_l2, &max_scaled);
    cs_error_measure e = cs_measure_error(run->out, run->value, run->magnitude, run->elements);
    run->closest = fmax(e.rel_l2 / rel_l2, e.max_scaled / max_scaled);
    if (!e.finite || e.rel_l2 > rel_l2 || e.max_scaled > max_scaled)
      snprintf(verdict, size, "%s: rel_l2 %.3g (limit %.3g), max_scaled %.3g (limit %.3g)",
               e.finite ? "wrong" : "not finite", e.rel_l2, rel_l2, e.max_scaled, max_scaled);
    else if (memcmp(now, expected, (size_t)total) != 0)
      snprintf(verdict, size, "writes outside the output, or padding lanes that are not zero");
    free(expected);
  }
  free(now);
  return st;
}

typedef struct cf_regions {
  cf_region inputs[CS_MAX_OP_INPUTS], output, weights, workspace;
} cf_regions;

static inline cs_status cf_regions_create(cf_run *run, const cs_exec *exec, cf_regions *r) {
  const cs_backend_vtable *v = run->backend->vtable;
  const cs_op_desc *d = &run->c->desc;
  cs_status st = CS_OK;
  for (int i = 0; i < d->n_inputs; i++) {
    CS_TRY(st, cf_region_create(run->backend, run->c->inputs[i].bytes, &r->inputs[i]), done);
    cs_tensor_from_f32(&d->inputs[i], run->inputs[i],
                       r->inputs[i].host + CF_GUARD + run->c->inputs[i].offset);
    CS_TRY(st, cf_upload(run->backend, &r->inputs[i]), done);
  }
  CS_TRY(st, cf_region_create(run->backend, run->c->output.bytes, &r->output), done);
  CS_TRY(st, cf_upload(run->backend, &r->output), done);
  CS_TRY(st, cf_region_create(run->backend, v->exec_weight_bytes(exec), &r->weights), done);
  if (r->weights.bytes > 0)
    CS_TRY(st, v->pack_weights(exec, run->weight, run->bias, r->weights.host + CF_GUARD), done);
  CS_TRY(st, cf_upload(run->backend, &r->weights), done);
  CS_TRY(st, cf_region_create(run->backend, v->exec_workspace(exec), &r->workspace), done);
  CS_TRY(st, cf_upload(run->backend, &r->workspace), done);
done:
  return st;
}

static inline void cf_regions_destroy(cs_backend *backend, cf_regions *r) {
  for (int i = 0; i < CS_MAX_OP_INPUTS; i++) cf_region_destroy(backend, &r->inputs[i]);
  cf_region_destroy(backend, &r->output);
  cf_region_destroy(backend, &r->weights);
  cf_region_destroy(backend, &r->workspace);
}

/* What must not have changed: inputs, weights, and the guards of the workspace. */
static inline cs_status cf_check_untouched(cf_run *run, cf_regions *r, char *verdict, size_t size) {
  cs_status st = CS_OK;
  bool same = true;
  for (int i = 0; i < run->c->desc.n_inputs; i++) {
    CS_TRY(st, cf_same(run->backend, &r->inputs[i], false, &same), done);
    if (!same) snprintf(verdict, size, "writes to input %d", i);
  }
  CS_TRY(st, cf_same(run->backend, &r->weights, false, &same), done);
  if (!same) snprintf(verdict, size, "writes to its weights");
  CS_TRY(st, cf_same(run->backend, &r->workspace, true, &same), done);
  if (!same) snprintf(verdict, size, "writes past its workspace");
done:
  return st;
}

/* Runs one candidate; an empty verdict means that it passed. */
static inline cs_status cf_candidate(cf_run *run, const cs_candidate *candidate, char *verdict,
                                     size_t size) {
  const cs_backend_vtable *v = run->backend->vtable;
  const cs_op_desc *d = &run->c->desc;
  cf_regions r = {0};
  cs_exec *exec = NULL;
  cs_schedule *schedule = NULL;
  float *first = NULL;
  cs_status st = CS_OK;
  CS_TRY(st, v->prepare(run->backend, d, candidate, &exec), done);
  if (v->exec_workspace(exec) > candidate->workspace_bytes)
    snprintf(verdict, size, "wants %lld bytes of workspace, announced %lld",
             (long long)v->exec_workspace(exec), (long long)candidate->workspace_bytes);
  CS_TRY(st, cf_regions_create(run, exec, &r), done);
  cs_launch launch = {.exec = exec, .name = run->c->name, .merged = -1};
  for (int i = 0; i < d->n_inputs; i++)
    launch.inputs[i] = (char *)cf_at(&r.inputs[i]) + run->c->inputs[i].offset;
  launch.output = (char *)cf_at(&r.output) + run->c->output.offset;
  launch.weights = cf_at(&r.weights);
  launch.workspace = cf_at(&r.workspace);
  CS_TRY(st, v->schedule_create(run->backend, &launch, 1, &cs_one_stream, true, &schedule), done);
  CS_TRY(st, v->schedule_run(schedule), done);
  CS_TRY(st, cf_judge(run, candidate, &r.output, verdict, size), done);
  CS_TRY(st, cf_check_untouched(run, &r, verdict, size), done);
  first = cf_alloc(run->elements * (int64_t)sizeof(float));
  memcpy(first, run->out, (size_t)run->elements * sizeof(float));
  CS_TRY(st, v->schedule_run(schedule), done);
  CS_TRY(st, cf_judge(run, candidate, &r.output, verdict, size), done);
  if (candidate->deterministic &&
      memcmp(first, run->out, (size_t)run->elements * sizeof(float)) != 0 && !verdict[0])
    snprintf(verdict, size, "called deterministic, but two runs differ");
done:
  free(first);
  if (schedule) v->schedule_destroy(schedule);
  cf_regions_destroy(run->backend, &r);
  if (exec) v->exec_destroy(exec);
  return st;
}

static inline void cf_complain(conformance_report *report, const char *name, const char *id,
                               const char *what) {
  fprintf(stderr, "FAIL %s %s: %s\n", name, id, what);
  report->failures++;
}

static inline const conformance_unsupported *cf_listed(const conformance_options *options,
                                                       const char *name) {
  for (const conformance_unsupported *u = options->unsupported; u && u->pattern; u++)
    if (fnmatch(u->pattern, name, 0) == 0) return u;
  return NULL;
}

static inline void cf_case(cs_backend *backend, const conformance_options *options,
                           const conformance_case *c, conformance_report *report) {
  cs_candidate_list list = {0};
  cf_run run = {0};
  report->cases++;
  cs_status st = backend->vtable->enumerate(backend, &c->desc, &options->enumerate, &list);
  bool listed = cf_listed(options, c->name) != NULL;
  if (st == CS_OK && list.n == 0) {
    if (listed)
      report->unsupported++;
    else
      cf_complain(report, c->name, "-", "no candidate");
  } else if (st == CS_OK && listed) {
    cf_complain(report, c->name, list.items[0].id, "listed as unsupported, yet has candidates");
  }
  if (st == CS_OK && !listed && backend->vtable->baselines) {
    cs_enumerate_options all = options->enumerate;
    all.full = true;
    st = backend->vtable->baselines(backend, &c->desc, &all, &list);
  }
  if (st == CS_OK && list.n > 0) st = cf_run_init(&run, backend, c);
  for (size_t i = 0; st == CS_OK && i < list.n; i++) {
    char verdict[256] = "";
    cs_status ran = cf_candidate(&run, &list.items[i], verdict, sizeof verdict);
    if (ran != CS_OK) snprintf(verdict, sizeof verdict, "%s", cs_status_message(ran));
    report->candidates++;
    if (ran == CS_OK && run.closest > report->closest) {
      report->closest = run.closest;
      snprintf(report->closest_name, sizeof report->closest_name, "%s %s", c->name,
               list.items[i].id);
    }
    cs_status_free(ran);
    if (list.items[i].workspace_bytes > options->enumerate.workspace_limit)
      cf_complain(report, c->name, list.items[i].id, "workspace past the limit");
    if (verdict[0]) cf_complain(report, c->name, list.items[i].id, verdict);
    if (options->verbose)
      fprintf(stderr, "%s %s %.3f of the limit %s\n", c->name, list.items[i].id, run.closest,
              verdict);
  }
  if (st != CS_OK) cf_complain(report, c->name, "-", cs_status_message(st));
  cs_status_free(st);
  cf_run_destroy(&run);
  cs_candidate_list_free(&list);
}

/* Runs the whole table on a backend. Failures are told on stderr and counted. */
static inline conformance_report cs_conformance_run(cs_backend *backend,
                                                    const conformance_options *options) {
  conformance_report report = {0};
  cs_layout own[CS_MAX_DEVICE_LAYOUTS];
  const cs_layout *layouts = options->layouts;
  int n_layouts = options->n_layouts;
  if (!layouts) {
    n_layouts = backend->vtable->layouts(backend, CS_PRECISION_F32, own);
    layouts = own;
  }
  conformance_table table = conformance_build(layouts, n_layouts);
  for (int i = 0; i < table.n; i++)
    if (!options->only || fnmatch(options->only, table.cases[i].name, 0) == 0)
      cf_case(backend, options, &table.cases[i], &report);
  free(table.cases);
  fprintf(stderr,
          "%s: %d cases, %d candidates, %d cases unsupported, %d failures; closest to its limit: "
          "%.3f, %s\n",
          backend->vtable->name, report.cases, report.candidates, report.unsupported,
          report.failures, report.closest, report.closest_name);
  return report;
}

#endif
