/* The double CUDA reference is the plain C reference: every case of the conformance table, from the
 * device's own tensors, in all their layouts, strides and storage types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>

#include "conformance.h"

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

static cs_status check(const conformance_case *c, int *failures) {
  const cs_op_desc *d = &c->desc;
  cf_run run = {0};
  cf_region regions[CS_MAX_OP_INPUTS] = {{0}};
  const void *inputs[CS_MAX_OP_INPUTS] = {NULL};
  double *value = NULL, *magnitude = NULL;
  cs_status st = CS_OK;
  CS_TRY(st, cf_run_init(&run, device, c), done);
  for (int i = 0; i < d->n_inputs; i++) {
    CS_TRY(st, cf_region_create(device, c->inputs[i].bytes, &regions[i]), done);
    cs_tensor_from_f32(&d->inputs[i], run.inputs[i],
                       regions[i].host + CF_GUARD + c->inputs[i].offset);
    CS_TRY(st, cf_upload(device, &regions[i]), done);
    inputs[i] = (char *)cf_at(&regions[i]) + c->inputs[i].offset;
  }
  value = cf_alloc(run.elements * (int64_t)sizeof(double));
  magnitude = cf_alloc(run.elements * (int64_t)sizeof(double));
  CS_TRY(st, device->vtable->reference(device, d, inputs, run.weight, run.bias, value, magnitude),
         done);
  compare(&run, value, magnitude, failures);
done:
  free(value);
  free(magnitude);
  for (int i = 0; i < CS_MAX_OP_INPUTS; i++) cf_region_destroy(device, &regions[i]);
  cf_run_destroy(&run);
  return st;
}

static void the_two_references_agree(void **state) {
  (void)state;
  cs_layout layouts[CS_MAX_DEVICE_LAYOUTS];
  int n = device->vtable->layouts(device, CS_PRECISION_F32, layouts), failures = 0;
  conformance_table table = conformance_build(layouts, n);
  for (int i = 0; i < table.n; i++) {
    cs_status st = check(&table.cases[i], &failures);
    if (st != CS_OK) {
      fprintf(stderr, "FAIL %s: %s\n", table.cases[i].name, cs_status_message(st));
      cs_status_free(st);
      failures++;
    }
  }
  free(table.cases);
  assert_int_equal(failures, 0);
}

int main(void) {
  char reason[256];
  if (cs_cuda_backend_count(reason, sizeof(reason)) == 0) {
    fprintf(stderr, "skipped: %s\n", reason);
    return 77;
  }
  cs_status st = cs_cuda_backend_open(0, NULL, &device);
  if (st != CS_OK) {
    fprintf(stderr, "%s\n", cs_status_message(st));
    cs_status_free(st);
    return 1;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_two_references_agree)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->vtable->close(device);
  return failed;
}
