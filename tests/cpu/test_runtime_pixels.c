/* Pipelines of pixels on the CPU backend, where the host makes them. */
#define DEVICE_SPEC "cpu"
#include "pixels_tests.h"

int main(void) {
  return run_pixels_tests();
}
