/* Files of JSON lines: a document a line, each appended whole. */
#ifndef CONVSCHED_BASE_JSON_LINES_H_
#define CONVSCHED_BASE_JSON_LINES_H_

#include <jansson.h>

#include "base/base.h"

/* Appends every line's object to the array `out`. A last line without its newline is what a killed
 * process left of it: *torn, and *whole is the length of what is before it (the file's, where there
 * is none).
 * Blank lines are passed over. Errors: IO; BAD_INPUT (file, line, what is wrong), also of a file
 * beyond `limit` bytes. */
cs_status cs_json_lines_read(const char *path, size_t limit, json_t *out, size_t *whole,
                             bool *torn) CS_MUST_USE;

#endif
