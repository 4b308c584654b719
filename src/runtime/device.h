/* An open device as the public API hands it out: a backend and its profile. */
#ifndef CONVSCHED_RUNTIME_DEVICE_H_
#define CONVSCHED_RUNTIME_DEVICE_H_

#include "backend/backend.h"
#include "profiler/profile.h"

struct cs_device {
  cs_backend *backend;
  cs_logger logger;
  cs_profile *profile; /* of `profile_directory`; opened by the first session */
  char *profile_directory;
};

/* The device's profile below `directory` (NULL: the default), opened once. */
cs_status cs_device_profile(cs_device *device, const char *directory, cs_profile **out) CS_MUST_USE;

#endif
