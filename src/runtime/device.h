/* An open device as the public API hands it out: a backend and its profile. */
#ifndef CONVSCHED_RUNTIME_DEVICE_H_
#define CONVSCHED_RUNTIME_DEVICE_H_

#include "backend/backend.h"
#include "profiler/profile.h"

struct cs_device {
  cs_backend *backend;
  cs_logger logger;
  cs_profile *profile; /* of `profile_directory`, or the recorded one, which is the backend's;
                          opened by the first session */
  char *profile_directory;
  unsigned fresh_rates; /* bit of each precision whose sustained rates a refresh measured anew */
};

/* The device's profile below `directory` (NULL: the default), opened once. */
cs_status cs_device_profile(cs_device *device, const char *directory, cs_profile **out) CS_MUST_USE;

/* Was recorded elsewhere: times are predicted, nothing is measured or computed. */
bool cs_device_is_simulated(const cs_device *device);
/* USAGE error on a simulated device: "WHAT: …". */
cs_status cs_device_must_compute(const cs_device *device, const char *what) CS_MUST_USE;

#endif
