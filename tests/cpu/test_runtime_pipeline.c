/* Requests in flight on the CPU backend, which runs them one after the other. */
#define DEVICE_SPEC "cpu"
#include "pipeline_tests.h"

int main(void) {
  return run_pipeline_tests();
}
