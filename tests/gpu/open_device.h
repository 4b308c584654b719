/* The first GPU for a test. */
#ifndef CONVSCHED_TESTS_GPU_OPEN_DEVICE_H_
#define CONVSCHED_TESTS_GPU_OPEN_DEVICE_H_

#include <stdio.h>
#include <stdlib.h>

#include "backend/backend.h"

/* Exits with 77 where there is no GPU, 1 where it cannot be opened. */
static inline cs_backend *open_or_skip(const cs_logger *logger) {
  char reason[256];
  cs_backend *device = NULL;
  if (cs_cuda_backend_count(reason, sizeof(reason)) == 0) {
    fprintf(stderr, "skipped: %s\n", reason);
    exit(77);
  }
  cs_status st = cs_cuda_backend_open(0, logger, &device);
  if (st == CS_OK) return device;
  fprintf(stderr, "%s\n", cs_status_message(st));
  cs_status_free(st);
  exit(1);
}

#endif
