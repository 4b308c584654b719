/* The kernel of transposed convolutions whose weights stay in shared memory, emulated: its tables
 * of taps, its packed weights and where it finds and puts everything, against the plain C
 * reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>

#include "stationary_t_cases.h"
#include "unit/emulated_case.h"
#include "unit/stationary_t_emulated.h"

static int check(emulated *e, int variant, int *variants) {
  const cs_op_desc *d = &e->c->desc;
  const char *id = stationary_t_id(variant);
  stationary_t_faults faults = {0};
  memcpy(e->output, e->untouched, (size_t)e->c->output.bytes);
  cs_status st = stationary_t_emulate(d, variant, e->input + e->c->inputs[0].offset, e->weight,
                                      e->bias, e->output + e->c->output.offset, &faults);
  if (st != CS_OK) {
    bool too_large = cs_status_code(st) == CS_CODE_NOT_FOUND;
    cs_status_free(st);
    return too_large ? 0 : complain(e, id, "fails");
  }
  (*variants)++;
  int failures = judge(e, id);
  if (faults.outputs != e->elements)
    failures += complain(e, id, "stores outputs twice, or leaves some out");
  if (faults.misplaced > 0) failures += complain(e, id, "shared memory that wgmma cannot read");
  if (faults.overrun > 0) failures += complain(e, id, "reads past a stage, or past the weights");
  return failures;
}

static void every_way_of_sharing_out_is_right(void **state) {
  (void)state;
  conformance_table table = {0};
  stationary_t_cases(&table, 1);
  int failures = 0, variants = 0, cases = 0;
  for (int i = 0; i < table.n; i++) {
    if (table.cases[i].desc.precision == CS_PRECISION_F32) {
      assert_false(stationary_t_takes(&table.cases[i].desc));
      continue;
    }
    emulated e = emulated_of(&table.cases[i]);
    if (!stationary_t_takes(&table.cases[i].desc)) failures += complain(&e, "takes", "not taken");
    for (int v = 0; stationary_t_id(v); v++) failures += check(&e, v, &variants);
    emulated_free(&e);
    cases++;
  }
  assert_int_equal(failures, 0);
  assert_true(variants >= 4 * cases); /* of 6; some are too large for 64 filters in tf32 */
  free(table.cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_way_of_sharing_out_is_right),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
