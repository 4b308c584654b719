/* Pipelines of pixels on the first GPU. */
#define DEVICE_SPEC "cuda:0"
#include "pixels_tests.h"

int main(void) {
  for (const cs_backend_entry *entry = cs_backend_entries; entry->name; entry++) {
    char reason[512];
    if (strcmp(entry->name, "cuda") != 0 || entry->count(reason, sizeof reason) == 0) continue;
    return run_pixels_tests();
  }
  return 77;
}
