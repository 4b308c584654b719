/* One file of a profile, compressed or not, opened for what is in it. */
#include "fuzz/json_mutate.h"
#include "fuzz/profile_use.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_file contents = fuzz_file_of(data, size);
  cs_profile *profile = NULL;
  cs_status st = cs_profile_open_file(contents.path, &fuzz_logger, &profile);
  if (fuzz_taken(st, CS_CODE_BAD_INPUT)) {
    FUZZ_CHECK(cs_profile_identity(profile), "no identity");
    fuzz_use_profile(profile);
  }
  cs_profile_close(profile);
  close(contents.fd);
  return 0;
}

#ifdef CS_FUZZ
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  return fuzz_mutate_json(data, size, max_size, 0, seed);
}
#endif
