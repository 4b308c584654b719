/* Profiling on the CPU: worker threads are streams, nothing is known of kernels. On a machine of
 * few cores only pairs have a thread for each member. */
#define DEVICE_SPEC "cpu"
#define PROFILE_PRECISION CS_PRECISION_F32
#define PROFILE_BATCH 1
#include "profile_tests.h"

int main(void) {
  return run_profile_tests();
}
