/* An output of a case, whole or in three images of it, judged where it is and on the host. */
#ifndef CONVSCHED_TESTS_GPU_JUDGED_H_
#define CONVSCHED_TESTS_GPU_JUDGED_H_

#include "conformance.h"

#define POISON 0xFF

/* ---- A case, its output between poison, and what the host knows of it ---- */

typedef struct judged {
  const conformance_case *c;
  cs_op_desc desc; /* of a part: the whole, or one image */
  int n;           /* parts */
  cf_run run;
  cf_region inputs[CS_MAX_OP_INPUTS], output;
  int64_t at[CS_MAX_EXPECTED]; /* of a part's first byte in output.host */
  const void *device_inputs[CS_MAX_EXPECTED * CS_MAX_OP_INPUTS];
  const void *outputs[CS_MAX_EXPECTED];
  int64_t elements, span; /* of a part */
  double *value[CS_MAX_EXPECTED], *magnitude[CS_MAX_EXPECTED];
  float *out;           /* of one part */
  unsigned char *owned; /* [span] 1: a byte of an element */
  cs_expected *expected;
} judged;

static inline void jd_note(const judged *j, const char *what, const char *how, int *failures) {
  fprintf(stderr, "FAIL %s in %d: %s: %s\n", j->c->name, j->n, what, how);
  (*failures)++;
}

static inline int64_t jd_image_bytes(const cs_tensor_desc *desc, int64_t image) {
  return image * desc->strides[0] * cs_dtype_size(desc->dtype);
}

static inline void jd_choose_parts(judged *j) {
  const cs_op_desc *d = &j->c->desc;
  const int64_t images[CS_MAX_EXPECTED] = {0, d->output.shape.dims[0] / 2,
                                           d->output.shape.dims[0] - 1};
  j->desc = *d;
  if (j->n > 1) j->desc.output.shape.dims[0] = 1;
  for (int i = 0; j->n > 1 && i < d->n_inputs; i++) j->desc.inputs[i].shape.dims[0] = 1;
  for (int r = 0; r < j->n; r++) {
    int64_t in_output = j->c->output.offset + jd_image_bytes(&d->output, images[r]);
    j->at[r] = CF_GUARD + in_output;
    j->outputs[r] = (char *)cf_at(&j->output) + in_output;
    for (int i = 0; i < d->n_inputs; i++) {
      j->device_inputs[r * d->n_inputs + i] = (char *)cf_at(&j->inputs[i]) +
                                              j->c->inputs[i].offset +
                                              jd_image_bytes(&d->inputs[i], images[r]);
    }
  }
  j->elements = cf_elements(&j->desc.output.shape);
  j->span = cs_tensor_span_bytes(&j->desc.output);
}

/* Those bytes that writing zeros sets whatever they were. */
static inline void jd_find_owned(judged *j) {
  unsigned char *ones = cf_alloc(j->span);
  j->owned = cf_alloc(j->span);
  memset(ones, 0xFF, (size_t)j->span);
  memset(j->out, 0, (size_t)j->elements * sizeof(float));
  cs_tensor_from_f32(&j->desc.output, j->out, ones);
  for (int64_t i = 0; i < j->span; i++) j->owned[i] = ones[i] == 0;
  free(ones);
}

/* judged_destroy() releases what there is of it, also after an error. */
static inline cs_status judged_create(cs_backend *device, const conformance_case *c, int n,
                                      judged *j) {
  *j = (judged){.c = c, .n = n};
  CS_RETURN_IF_ERROR(cf_run_init(&j->run, device, c));
  for (int i = 0; i < c->desc.n_inputs; i++) {
    CS_RETURN_IF_ERROR(cf_region_create(device, c->inputs[i].bytes, &j->inputs[i]));
    cs_tensor_from_f32(&c->desc.inputs[i], j->run.inputs[i],
                       j->inputs[i].host + CF_GUARD + c->inputs[i].offset);
    CS_RETURN_IF_ERROR(cf_upload(device, &j->inputs[i]));
  }
  CS_RETURN_IF_ERROR(cf_region_create(device, c->output.bytes, &j->output));
  jd_choose_parts(j);
  j->out = cf_alloc(j->elements * (int64_t)sizeof(float));
  jd_find_owned(j);
  for (int r = 0; r < n; r++) {
    j->value[r] = cf_alloc(j->elements * (int64_t)sizeof(double));
    j->magnitude[r] = cf_alloc(j->elements * (int64_t)sizeof(double));
    CS_RETURN_IF_ERROR(
        device->vtable->reference(device, &j->desc, j->device_inputs + r * j->desc.n_inputs,
                                  j->run.weight, j->run.bias, j->value[r], j->magnitude[r]));
  }
  return device->vtable->expected_create(device, &j->desc, j->device_inputs, n, j->run.weight,
                                         j->run.bias, &j->expected);
}

static inline void judged_destroy(judged *j) {
  cs_backend *device = j->run.backend;
  if (j->expected) device->vtable->expected_destroy(j->expected);
  for (int r = 0; r < CS_MAX_EXPECTED; r++) {
    free(j->value[r]);
    free(j->magnitude[r]);
  }
  free(j->out);
  free(j->owned);
  for (int i = 0; i < CS_MAX_OP_INPUTS; i++) cf_region_destroy(device, &j->inputs[i]);
  cf_region_destroy(device, &j->output);
  cf_run_destroy(&j->run);
}

/* ---- The device's judgement beside the host's ---- */

/* Two orders of a sum of squares, whose terms are all positive: n of them are 2^-53 n apart. */
static inline bool jd_close_to(const judged *j, double found, double wanted) {
  if (found == wanted) return true;
  return fabs(found - wanted) <= (1e-12 + 0x1p-53 * (double)j->elements) * wanted;
}

static inline cs_compared jd_by_host(judged *j, int r) {
  cs_compared by_host = {.gaps_kept = true};
  const unsigned char *memory = j->output.host + j->at[r];
  cs_tensor_to_f32(&j->desc.output, memory, j->out);
  by_host.error = cs_measure_error(j->out, j->value[r], j->magnitude[r], j->elements);
  for (int64_t i = 0; i < j->span; i++) {
    if (!j->owned[i] && memory[i] != POISON) by_host.gaps_kept = false;
  }
  return by_host;
}

/* Judges output.host, uploaded, twice. */
static inline cs_status jd_judge(judged *j, const char *what, cs_compared *found, int *failures) {
  cs_backend *device = j->run.backend;
  cs_compared again[CS_MAX_EXPECTED];
  CS_RETURN_IF_ERROR(cf_upload(device, &j->output));
  CS_RETURN_IF_ERROR(device->vtable->expected_compare(j->expected, j->outputs, POISON, found));
  CS_RETURN_IF_ERROR(device->vtable->expected_compare(j->expected, j->outputs, POISON, again));
  for (int r = 0; r < j->n; r++) {
    const cs_error_measure *e = &found[r].error, *a = &again[r].error;
    cs_compared host = jd_by_host(j, r);
    char how[200];
    snprintf(how, sizeof how, "part %d: %.17g %.17g %d %d, the host says %.17g %.17g %d %d", r,
             e->rel_l2, e->max_scaled, e->finite, found[r].gaps_kept, host.error.rel_l2,
             host.error.max_scaled, host.error.finite, host.gaps_kept);
    if (!jd_close_to(j, e->rel_l2, host.error.rel_l2) ||
        !jd_close_to(j, e->max_scaled, host.error.max_scaled) || e->finite != host.error.finite ||
        found[r].gaps_kept != host.gaps_kept) {
      jd_note(j, what, how, failures);
    }
    if (a->rel_l2 != e->rel_l2 || a->max_scaled != e->max_scaled || a->finite != e->finite ||
        again[r].gaps_kept != found[r].gaps_kept) {
      jd_note(j, what, "not the same bits again", failures);
    }
  }
  return CS_OK;
}

/* The right output in all parts, poison in between. */
static inline void jd_write_right(judged *j) {
  memset(j->output.host, POISON, (size_t)j->output.bytes + 2 * CF_GUARD);
  for (int r = 0; r < j->n; r++) {
    for (int64_t i = 0; i < j->elements; i++) j->out[i] = (float)j->value[r][i];
    cs_tensor_from_f32(&j->desc.output, j->out, j->output.host + j->at[r]);
  }
}

static inline bool jd_accepted(const judged *j, const cs_compared *found) {
  double rel_l2 = 0, max_scaled = 0;
  cs_tolerance(&j->desc, 0, &rel_l2, &max_scaled);
  return found->error.finite && found->error.rel_l2 <= rel_l2 &&
         found->error.max_scaled <= max_scaled && found->gaps_kept;
}

/* All parts but the last are right; the last is or is not. */
static inline void jd_expect(const judged *j, const char *what, const cs_compared *found,
                             bool last_right, int *failures) {
  for (int r = 0; r < j->n; r++) {
    bool right = r < j->n - 1 || last_right;
    if (jd_accepted(j, &found[r]) != right) {
      jd_note(j, what, right ? "rejected" : "accepted", failures);
    }
  }
}

#endif
