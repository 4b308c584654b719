/* Candidates that were recorded with another version of their library than is installed, or with
 * one that is not installed, where their ids tell (the device's identity does not). They stay in
 * the profile, for who has that version; here they are as if they had not been recorded. */
#include <string.h>

#include "profiler/measure_session.h"

static cs_presence presence_of(cs_backend *backend, const cs_record *record) {
  const cs_backend_vtable *vtable = backend->vtable;
  return vtable->presence ? vtable->presence(backend, record->candidate.id) : CS_PRESENCE_UNTOLD;
}

/* Said once of a profile. */
static void tell(const cs_wanted *wanted, cs_presence presence, const char *name,
                 const cs_record *record) {
  bool missing = presence == CS_PRESENCE_NO_LIBRARY;
  cs_log(wanted->logger, CS_LOG_INFO,
         "%s: candidate %s was recorded with %s: such candidates are left out%s", name,
         record->candidate.id,
         missing ? "a library that is not installed" : "another version of its library",
         missing || wanted->options->frozen ? "" : ", and those of the installed version measured");
}

static cs_status mark(const cs_wanted *wanted, cs_presence presence, const char *name,
                      const char *signature, const cs_record *record) {
  bool first = false;
  CS_RETURN_IF_ERROR(
      cs_profile_mark_absent(wanted->profile, signature, record->candidate.id, &first));
  if (first) tell(wanted, presence, name, record);
  return CS_OK;
}

/* Something of this family, admitted or not, was measured with the installed version. */
static bool has_installed(cs_backend *backend, const cs_op_profile *known, const char *family) {
  for (int i = 0; i < known->n_records; i++) {
    if (strcmp(known->records[i].candidate.family, family) == 0 &&
        presence_of(backend, &known->records[i]) == CS_PRESENCE_THERE) {
      return true;
    }
  }
  return false;
}

cs_status cs_mark_absent(const cs_wanted *wanted, const char *name, const char *signature,
                         bool *outdated) {
  const cs_op_profile *known = cs_profile_find(wanted->profile, signature);
  *outdated = false;
  for (int i = 0; known && i < known->n_records; i++) {
    const cs_record *record = &known->records[i];
    cs_presence presence = presence_of(wanted->backend, record);
    if (presence == CS_PRESENCE_UNTOLD || presence == CS_PRESENCE_THERE) continue;
    if (!record->absent) CS_RETURN_IF_ERROR(mark(wanted, presence, name, signature, record));
    if (record->measured.rejected || presence == CS_PRESENCE_NO_LIBRARY || *outdated) continue;
    *outdated = !has_installed(wanted->backend, known, record->candidate.family);
  }
  return CS_OK;
}
