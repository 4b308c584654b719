/* `ios` with stage costs measured on the device, under the time that `coselect` has for its search.
 */
#ifndef CONVSCHED_RUNTIME_SEARCH_IOS_H_
#define CONVSCHED_RUNTIME_SEARCH_IOS_H_

#include "runtime/session.h"

/* Lets the policy price the stages that it asks for: those that the profile does not know are
 * measured, kept there, and used. Nothing is measured on a simulated device, under `frozen`, with
 * no time for a search, or where that was done before for this program (unless --search-seconds or
 * --refresh asks for it). What was measured is kept where it is interrupted (CANCELLED). */
cs_status cs_search_stages(cs_session *session, const cs_policy_input *input) CS_MUST_USE;

#endif
