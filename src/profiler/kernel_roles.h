/* What each kernel of a candidate is there for, as far as its family, the kernels' names and their
 * order tell. Pure. */
#ifndef CONVSCHED_PROFILER_KERNEL_ROLES_H_
#define CONVSCHED_PROFILER_KERNEL_ROLES_H_

#include "profiler/profile.h"

typedef enum cs_kernel_role {
  CS_ROLE_COMPUTES, /* the operation itself */
  CS_ROLE_EPILOGUE, /* ours: bias, residual and activation behind what a library computed */
  CS_ROLE_SLICE,    /* ours: from the candidate's dense output into its slice of a concat */
  CS_ROLE_INPUT,
  CS_ROLE_FILTER,
  CS_ROLE_INPUT_OR_FILTER,
  CS_ROLE_OUTPUT, /* transforms, as of Winograd's or an FFT's domain */
  CS_ROLE_SPLIT_K,
  CS_ROLE_LAYOUT,
  CS_ROLE_CONVERT,
  CS_ROLE_CHANNELS, /* pads or cuts channels */
  CS_ROLE_PREPARE,  /* fills a workspace, computes indices */
  CS_ROLE_UNCLEAR
} cs_kernel_role;

/* out[n], of the kernels in the order they run. A name is believed where it says what the kernel
 * does; of a candidate in which all kernels but one are told so, that one computes; else it is not
 * clear. */
void cs_kernel_roles(const cs_candidate *candidate, const cs_kernel_profile *kernels, int n,
                     cs_kernel_role *out);
/* "split-K reduction", …; of COMPUTES, EPILOGUE and SLICE, which take more words, "". */
const char *cs_kernel_role_text(cs_kernel_role role);

#endif
