/* How `inspect` tells what it found. */
#ifndef CONVSCHED_CLI_INSPECT_H_
#define CONVSCHED_CLI_INSPECT_H_

#include "base/base.h"
#include "cli/cli.h"

/* Prints cs_session_kernels_json for a person. */
cs_status inspect_print_kernels(const char *json) CS_MUST_USE;

#endif
