/* Sessions on the CPU backend. */
#define DEVICE_SPEC "cpu"
#include "session_tests.h"

int main(void) {
  return run_session_tests();
}
