/* The safetensors reader: every tensor of a file that it opens can be found and read. */
#include "fuzz/fuzz.h"
#include "fuzz/json_mutate.h"
#include "runtime/safetensors.h"

static const char *const names[] = {"a", "conv1.weight", "conv1.bias", ""};

static void read_tensor(const cs_safetensors *file, const char *name) {
  const cs_safetensor *tensor = cs_safetensors_find(file, name);
  if (!tensor) return;
  FUZZ_CHECK(strcmp(tensor->name, name) == 0, "found %s for %s", tensor->name, name);
  /* Its data lie in the file, so that they bound what is allocated; no bytes more than asked for
   * are there for AddressSanitizer. */
  float *values = malloc((size_t)tensor->elements * sizeof *values);
  FUZZ_CHECK(values || tensor->elements == 0, "no memory");
  if (values) (void)fuzz_taken(cs_safetensors_read_f32(file, tensor, values), CS_CODE_BAD_INPUT);
  free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_file contents = fuzz_file_of(data, size);
  cs_safetensors *file = NULL;
  if (fuzz_taken(cs_safetensors_open(contents.path, &file), CS_CODE_BAD_INPUT)) {
    FUZZ_CHECK(cs_safetensors_count(file) >= 0, "a negative count");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) read_tensor(file, names[i]);
  }
  cs_safetensors_close(file);
  close(contents.fd);
  return 0;
}

#ifdef CS_FUZZ
/* Changes the header and its length with it; every fourth time bytes of any kind. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  uint64_t length;
  cs_rng rng;
  cs_rng_init(&rng, seed, 2);
  if (size < 8 || fuzz_below(&rng, 4) == 0) return LLVMFuzzerMutate(data, size, max_size);
  memcpy(&length, data, 8);
  if (length > size - 8) return LLVMFuzzerMutate(data, size, max_size);
  size_t behind = size - 8 - length;
  char *header = fuzz_mutate_text(data + 8, length, max_size - 8 - behind, &rng);
  if (!header) return LLVMFuzzerMutate(data, size, max_size);
  size_t now = strlen(header);
  memmove(data + 8 + now, data + 8 + length, behind);
  memcpy(data + 8, header, now);
  free(header);
  length = now;
  memcpy(data, &length, 8);
  return 8 + now + behind;
}
#endif
