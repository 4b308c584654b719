/* The SM model on what a profile file says of its device and of kernels, as a simulated device
 * takes it (sim:FILE). */
#include "fuzz/json_mutate.h"
#include "fuzz/profile_use.h"
#include "scheduler/sm_schedule.h"

enum { MOST = 8 }; /* operations at a time */

typedef struct prepared {
  cs_profile *profile;
  const cs_device_info *device;
  cs_sm_model *model;
  cs_sm_operation operations[MOST];
  int n;
} prepared;

static void prepare(void *user, const char *signature) {
  prepared *all = user;
  const cs_op_profile *found = cs_profile_find(all->profile, signature);
  for (int i = 0; found && i < found->n_records && all->n < MOST; i++) {
    const cs_record *record = &found->records[i];
    cs_demand demand = cs_kernels_demand(all->device, record->kernels, record->n_kernels);
    const cs_demand *twice[] = {&demand, &demand};
    FUZZ_CHECK(demand.units >= 0 && demand.resident >= 0 && demand.waves >= 0, "%d units, %g waves",
               demand.units, demand.waves);
    (void)cs_demands_limiter(all->device, twice, 2);
    cs_status st = cs_sm_operation_prepare(all->model, record->candidate.id, record->kernels,
                                           record->n_kernels, record->measured.cold_us,
                                           &all->operations[all->n]);
    if (fuzz_taken(st, CS_CODE_BAD_INPUT)) all->n++;
  }
}

/* Two streams, the second one waiting once. */
static void simulate(const prepared *all) {
  cs_sm_step steps[MOST] = {{0}};
  cs_sm_span spans[MOST];
  double total_us = -1;
  const int first = 0;
  for (int i = 0; i < all->n; i++) {
    steps[i] = (cs_sm_step){.operation = &all->operations[i], .stream = i % 2, .part = -1};
    if (i != 3) continue;
    steps[i].waits = &first;
    steps[i].n_waits = 1;
  }
  cs_status st = cs_sm_schedule_simulate(all->model, NULL, steps, all->n, spans, &total_us);
  if (fuzz_taken(st, CS_CODE_BAD_INPUT)) FUZZ_CHECK(total_us >= 0, "%g us", total_us);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_file contents = fuzz_file_of(data, size);
  prepared all = {0};
  cs_status st = cs_profile_open_file(contents.path, &fuzz_logger, &all.profile);
  if (!fuzz_taken(st, CS_CODE_BAD_INPUT)) goto done;
  all.device = cs_profile_device(all.profile);
  if (!all.device) goto done;
  if (!fuzz_taken(cs_sm_model_create(all.device, NULL, &all.model), CS_CODE_BAD_INPUT)) goto done;
  cs_profile_signatures(all.profile, prepare, &all);
  if (all.n > 0) simulate(&all);
done:
  for (int i = 0; i < all.n; i++) cs_sm_operation_clear(&all.operations[i]);
  cs_sm_model_destroy(all.model);
  cs_profile_close(all.profile);
  close(contents.fd);
  return 0;
}

#ifdef CS_FUZZ
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  return fuzz_mutate_json(data, size, max_size, 0, seed);
}
#endif
