/* The double CUDA reference is the plain C reference: every case of the conformance table, from the
 * device's own tensors, in all their layouts, strides and storage types. And the error that the
 * device measures against it is the one that the host measures of the same arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>

#include "conformance.h"
#include "gpu/open_device.h"

/* Both sum in double, in orders of their own. */
#define TOLERANCE 1e-12

static cs_backend *device;

static void complain(const char *name, const char *what, double found, double wanted,
                     int *failures) {
  fprintf(stderr, "FAIL %s: %s %.17g, plain C says %.17g\n", name, what, found, wanted);
  (*failures)++;
}

static void compare(const cf_run *run, const double *value, const double *magnitude,
                    int *failures) {
  for (int64_t i = 0; i < run->elements; i++) {
    double limit = TOLERANCE * (run->magnitude[i] + 1e-30);
    if (!(fabs(value[i] - run->value[i]) <= limit)) {
      complain(run->c->name, "value", value[i], run->value[i], failures);
      return;
    }
    if (!(fabs(magnitude[i] - run->magnitude[i]) <= limit)) {
      complain(run->c->name, "magnitude", magnitude[i], run->magnitude[i], failures);
      return;
    }
  }
}

/* ---- A case with its tensors on the device ---- */

typedef struct placed_case {
  const conformance_case *c;
  cf_run run;
  cf_region regions[CS_MAX_OP_INPUTS], output;
  const void *inputs[CS_MAX_OP_INPUTS];
  double *value, *magnitude; /* the device's own reference */
} placed_case;

static cs_status upload_input(placed_case *p, int i) {
  cs_tensor_from_f32(&p->c->desc.inputs[i], p->run.inputs[i],
                     p->regions[i].host + CF_GUARD + p->c->inputs[i].offset);
  return cf_upload(device, &p->regions[i]);
}

static cs_status device_reference(placed_case *p) {
  return device->vtable->reference(device, &p->c->desc, p->inputs, p->run.weight, p->run.bias,
                                   p->value, p->magnitude);
}

/* destroy_case() releases what there is of it, also after an error. */
static cs_status place_case(const conformance_case *c, placed_case *p) {
  *p = (placed_case){.c = c};
  CS_RETURN_IF_ERROR(cf_run_init(&p->run, device, c));
  for (int i = 0; i < c->desc.n_inputs; i++) {
    CS_RETURN_IF_ERROR(cf_region_create(device, c->inputs[i].bytes, &p->regions[i]));
    CS_RETURN_IF_ERROR(upload_input(p, i));
    p->inputs[i] = (char *)cf_at(&p->regions[i]) + c->inputs[i].offset;
  }
  CS_RETURN_IF_ERROR(cf_region_create(device, c->output.bytes, &p->output));
  p->value = cf_alloc(p->run.elements * (int64_t)sizeof(double));
  p->magnitude = cf_alloc(p->run.elements * (int64_t)sizeof(double));
  return device_reference(p);
}

static void destroy_case(placed_case *p) {
  free(p->value);
  free(p->magnitude);
  for (int i = 0; i < CS_MAX_OP_INPUTS; i++) cf_region_destroy(device, &p->regions[i]);
  cf_region_destroy(device, &p->output);
  cf_run_destroy(&p->run);
}

static conformance_table whole_table(void) {
  cs_layout layouts[CS_MAX_DEVICE_LAYOUTS];
  int n = device->vtable->layouts(device, CS_PRECISION_F32, layouts);
  return conformance_build(layouts, n);
}

/* Runs `check` on every case; an error counts as a failure. */
static int failures_of(const conformance_table *table,
                       cs_status (*check)(const conformance_case *c, int *failures)) {
  int failures = 0;
  for (int i = 0; i < table->n; i++) {
    cs_status st = check(&table->cases[i], &failures);
    if (st != CS_OK) {
      fprintf(stderr, "FAIL %s: %s\n", table->cases[i].name, cs_status_message(st));
      cs_status_free(st);
      failures++;
    }
  }
  return failures;
}

/* ---- Value and magnitude ---- */

static cs_status check_reference(const conformance_case *c, int *failures) {
  placed_case p;
  cs_status st = place_case(c, &p);
  if (st == CS_OK) compare(&p.run, p.value, p.magnitude, failures);
  destroy_case(&p);
  return st;
}

static void the_two_references_agree(void **state) {
  (void)state;
  conformance_table table = whole_table();
  int failures = failures_of(&table, check_reference);
  free(table.cases);
  assert_int_equal(failures, 0);
}

/* ---- The error of an output ---- */

static bool close_to(double found, double wanted) {
  if (isnan(wanted) || isinf(wanted)) return isnan(wanted) ? isnan(found) : found == wanted;
  /* A value is rounded to 1e-16 of its magnitude, and two kernels may round differently. */
  return fabs(found - wanted) <= TOLERANCE * wanted + 1e-14;
}

/* The output is run.out, rounded to its storage type, between bytes that read as NaN. */
static cs_status check_output(placed_case *p, const char *what, cs_error_measure *wanted,
                              int *failures) {
  const cs_op_desc *d = &p->c->desc;
  unsigned char *tensor = p->output.host + CF_GUARD + p->c->output.offset;
  const void *output = (char *)cf_at(&p->output) + p->c->output.offset;
  cs_error_measure found = {0}, again = {0};
  cs_tensor_from_f32(&d->output, p->run.out, tensor);
  CS_RETURN_IF_ERROR(cf_upload(device, &p->output));
  CS_RETURN_IF_ERROR(device->vtable->reference_error(device, d, p->inputs, p->run.weight,
                                                     p->run.bias, output, &found));
  CS_RETURN_IF_ERROR(device->vtable->reference_error(device, d, p->inputs, p->run.weight,
                                                     p->run.bias, output, &again));
  cs_tensor_to_f32(&d->output, tensor, p->run.out);
  *wanted = cs_measure_error(p->run.out, p->value, p->magnitude, p->run.elements);
  if (!close_to(found.rel_l2, wanted->rel_l2) || !close_to(found.max_scaled, wanted->max_scaled) ||
      found.finite != wanted->finite) {
    fprintf(stderr, "FAIL %s, %s: %.17g %.17g %s, the host says %.17g %.17g %s\n", p->c->name, what,
            found.rel_l2, found.max_scaled, found.finite ? "finite" : "not finite", wanted->rel_l2,
            wanted->max_scaled, wanted->finite ? "finite" : "not finite");
    (*failures)++;
  }
  if (found.rel_l2 != again.rel_l2 || found.max_scaled != again.max_scaled) {
    fprintf(stderr, "FAIL %s, %s: not the same bits again\n", p->c->name, what);
    (*failures)++;
  }
  return CS_OK;
}

static void expect(bool holds, const placed_case *p, const char *what, int *failures) {
  if (holds) return;
  fprintf(stderr, "FAIL %s, %s: not what was planted\n", p->c->name, what);
  (*failures)++;
}

/* The right output, but for one element. */
static void put_right(placed_case *p, int64_t place, float there) {
  for (int64_t i = 0; i < p->run.elements; i++) p->run.out[i] = (float)p->value[i];
  if (place >= 0) p->run.out[place] = there;
}

static cs_status check_errors(const conformance_case *c, int *failures) {
  placed_case p;
  cs_error_measure e;
  cs_status st = CS_OK;
  CS_TRY(st, place_case(c, &p), done);
  int64_t last = p.run.elements - 1, middle = p.run.elements / 2;
  put_right(&p, -1, 0);
  CS_TRY(st, check_output(&p, "right", &e, failures), done);
  expect(e.finite && e.max_scaled < 0x1p-8, &p, "right", failures);
  double off = 2 * (fabs(p.value[last]) + p.magnitude[last]) + 1;
  put_right(&p, last, (float)(p.value[last] + off));
  CS_TRY(st, check_output(&p, "one wrong", &e, failures), done);
  expect(e.finite && e.max_scaled > 1, &p, "one wrong", failures);
  put_right(&p, middle, NAN);
  CS_TRY(st, check_output(&p, "a NaN", &e, failures), done);
  expect(!e.finite, &p, "a NaN", failures);
  put_right(&p, last, -INFINITY);
  CS_TRY(st, check_output(&p, "an infinity", &e, failures), done);
  expect(!e.finite, &p, "an infinity", failures);

  /* Where the reference has them as well, they pass; what is finite there does not. */
  p.run.inputs[0][0] = INFINITY;
  CS_TRY(st, upload_input(&p, 0), done);
  CS_TRY(st, device_reference(&p), done);
  put_right(&p, -1, 0);
  CS_TRY(st, check_output(&p, "an infinite input", &e, failures), done);
  expect(e.finite, &p, "an infinite input", failures);
  int64_t there = 0;
  while (there < last && isfinite(p.value[there])) there++;
  bool infinite = !isfinite(p.value[there]);
  put_right(&p, there, 1);
  CS_TRY(st, check_output(&p, "finite for an infinite input", &e, failures), done);
  expect(e.finite == !infinite, &p, "finite for an infinite input", failures);
done:
  destroy_case(&p);
  return st;
}

static void the_device_measures_the_same_error(void **state) {
  (void)state;
  conformance_table table = whole_table();
  int failures = failures_of(&table, check_errors);
  free(table.cases);
  assert_int_equal(failures, 0);
}

/* More elements than the largest grid has threads, in views. */
static void so_it_does_where_threads_take_several_elements(void **state) {
  (void)state;
  conformance_table table = {0};
  conformance_spec spec = {.name = "relu_large",
                           .op = CS_OP_RELU,
                           .n_inputs = 1,
                           .flags = CC_VIEW_IN | CC_VIEW_OUT,
                           .input = cc_shape4(3, 64, 151, 149),
                           .output = cc_shape4(3, 64, 151, 149)};
  cc_emit(&table, &spec, CS_PRECISION_F16, CS_LAYOUT_NHWC);
  cc_emit(&table, &spec, CS_PRECISION_F32, CS_LAYOUT_NCHW);
  int failures = failures_of(&table, check_errors);
  free(table.cases);
  assert_int_equal(failures, 0);
}

int main(void) {
  device = open_or_skip(NULL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_two_references_agree),
      cmocka_unit_test(the_device_measures_the_same_error),
      cmocka_unit_test(so_it_does_where_threads_take_several_elements),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->vtable->close(device);
  return failed;
}
