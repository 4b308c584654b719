/* The kernels of a session's plan with what they were made of. */
#ifndef CONVSCHED_RUNTIME_KERNEL_LIST_H_
#define CONVSCHED_RUNTIME_KERNEL_LIST_H_

#include "runtime/session.h"
#include "scheduler/kernel_list.h"

typedef struct cs_session_kernels {
  cs_kernel_profile *kernels;
  cs_kernel_list_input input; /* borrows from the session and from `kernels` */
  cs_kernel_list list;
} cs_session_kernels;

cs_status cs_session_kernels_make(const cs_session *session, cs_session_kernels *out) CS_MUST_USE;
void cs_session_kernels_free(cs_session_kernels *kernels);

#endif
