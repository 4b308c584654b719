/* One line of the profile database as text and back (docs/profile-format.md). */
#ifndef CONVSCHED_PROFILER_RECORD_JSON_H_
#define CONVSCHED_PROFILER_RECORD_JSON_H_

#include <jansson.h>

#include "profiler/profile.h"

/* What every line of a device's file begins with: schema, method, device, up to and with `"op":`.
 * BAD_INPUT: the identity is not UTF-8. */
cs_status cs_line_prefix(const char *identity, char **out) CS_MUST_USE;
/* Whole lines with their newline. BAD_INPUT names the text that is not UTF-8. */
cs_status cs_line_of_record(const char *prefix, const char *signature,
                            const cs_candidate *candidate, const cs_measurement *measured,
                            char **out) CS_MUST_USE;
cs_status cs_line_of_completion(const char *prefix, const char *signature,
                                const cs_completion *completion, char **out) CS_MUST_USE;
cs_status cs_line_of_kernels(const char *prefix, const char *signature, const char *candidate,
                             const cs_kernel_profile *kernels, int n, char **out) CS_MUST_USE;
/* `signature` as cs_corun_signature says. */
cs_status cs_line_of_corun(const char *prefix, const char *signature, const cs_corun *corun,
                           char **out) CS_MUST_USE;
cs_status cs_line_of_device(const char *prefix, const cs_device_info *info, char **out) CS_MUST_USE;

/* For the above: {"a":…,"b":…} (taken over; NULL is NO_MEMORY) is written behind the signature as
 * members of the line. BAD_INPUT names what is not UTF-8. */
cs_status cs_line_finish(const char *prefix, const char *signature, json_t *members,
                         char **out) CS_MUST_USE;
cs_status cs_check_utf8(const char *text, const char *what) CS_MUST_USE;

/* The `op` of co-runs: "corun:" and the members' signatures with '&' between them. */
#define CS_CORUN_PREFIX "corun:"
#define CS_DEVICE_OP "device"
cs_status cs_corun_signature(const char *const *signatures, int n, char **out) CS_MUST_USE;
cs_status cs_signature_of_corun(const cs_corun *corun, char **out) CS_MUST_USE;
int cs_corun_compare_members(const cs_corun_member *a, const cs_corun_member *b);

/* From an object with the members "candidate" and "measured", "complete", "kernels", "corun" or
 * "device_info". What *out points to is released by the caller when the result is CS_PARSED. */
typedef enum cs_parse_result { CS_PARSED, CS_PARSE_DAMAGED, CS_PARSE_NO_MEMORY } cs_parse_result;
cs_parse_result cs_record_from_json(const json_t *object, cs_record *out);
cs_parse_result cs_completion_from_json(const json_t *object, cs_completion *out);
/* free() releases *kernels; *candidate points into `object`. */
cs_parse_result cs_kernels_from_json(const json_t *object, const char **candidate,
                                     cs_kernel_profile **kernels, int *n);
cs_parse_result cs_corun_from_json(const json_t *object, cs_corun *out);
/* `identity` is not in the line's member: left empty. */
cs_parse_result cs_device_from_json(const json_t *object, cs_device_info *out);
/* Reads `,"candidate":{…},"measured":{…}}` where it has exactly the form written here; false: it
 * may still be a record in another form. `text` ends in a newline or NUL behind `length`. */
bool cs_record_scan(const char *text, size_t length, cs_record *out);
void cs_record_clear(cs_record *record);

/* Values as they will read back from their lines: six significant digits, unknown ones as such. */
void cs_corun_normalise(cs_corun *corun);
void cs_kernel_normalise(cs_kernel_profile *kernel);

/* A candidate that ran took time: no other line counts as one of ours. */
bool cs_measurement_is_possible(const cs_measurement *measured);

/* The value as it will read back from its line: six significant digits. */
double cs_six_digits(double value);

#endif
