/* One line of the profile database as text and back (docs/profile-format.md). */
#ifndef CONVSCHED_PROFILER_RECORD_JSON_H_
#define CONVSCHED_PROFILER_RECORD_JSON_H_

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

/* From an object with the members "candidate" and "measured", or "complete". */
typedef enum cs_parse_result { CS_PARSED, CS_PARSE_DAMAGED, CS_PARSE_NO_MEMORY } cs_parse_result;
cs_parse_result cs_record_from_json(const json_t *object, cs_record *out);
cs_parse_result cs_completion_from_json(const json_t *object, cs_completion *out);
/* Reads `,"candidate":{…},"measured":{…}}` where it has exactly the form written here; false: it
 * may still be a record in another form. `text` ends in a newline or NUL behind `length`. */
bool cs_record_scan(const char *text, size_t length, cs_record *out);
void cs_record_clear(cs_record *record);

/* The value as it will read back from its line: six significant digits. */
double cs_six_digits(double value);

#endif
