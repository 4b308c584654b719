#include "base/ranges.h"

#ifdef CS_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>

bool cs_ranges_are_built(void) {
  return true;
}

void cs_range_push(const char *name) {
  (void)nvtxRangePushA(name ? name : "?");
}

void cs_range_pop(void) {
  (void)nvtxRangePop();
}

#else

bool cs_ranges_are_built(void) {
  return false;
}

void cs_range_push(const char *name) {
  (void)name;
}

void cs_range_pop(void) {}

#endif
