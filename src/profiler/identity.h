/* Identities of devices, as far as they are told apart: the hardware and the software beside it.
 * Pure.
 */
#ifndef CONVSCHED_PROFILER_IDENTITY_H_
#define CONVSCHED_PROFILER_IDENTITY_H_

#include <stdbool.h>
#include <stddef.h>

/* Whether two identities (cs_device_info) are of the same kind of device, whatever the versions of
 * drivers, libraries and of the measuring method. */
bool cs_identity_same_hardware(const char *a, const char *b);
/* "cuDNN 9.19.0", "oneDNN 2.6.3"; "" where the identity does not tell. */
void cs_identity_library(const char *identity, char *out, size_t size);

#endif
