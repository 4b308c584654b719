/* The fast way to read a record: exactly the form that cs_line_of_record writes, plain ASCII. What
 * is in any other form is left to the JSON parser, which alone says what is damaged. A second run
 * reads thousands of records before its first result; this takes a tenth of the parser's time. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/record_json.h"

typedef struct scanner {
  const char *at, *end;
  bool ok;
} scanner;

static bool is_next(const scanner *s, const char *text) {
  size_t length = strlen(text);
  return s->ok && (size_t)(s->end - s->at) >= length && memcmp(s->at, text, length) == 0;
}

static void expect(scanner *s, const char *text) {
  s->ok = is_next(s, text);
  if (s->ok) s->at += strlen(text);
}

/* The one-character escapes; 0: none of them. */
static char unescaped(char c) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  const char *found = c ? strchr(from, c) : NULL;
  return found ? to[found - from] : '\0';
}

/* Behind its opening quote, up to and with the closing one. NULL when !ok. */
static char *scan_text(scanner *s) {
  const char *close = s->at;
  if (!s->ok) return NULL;
  while (close < s->end && *close != '"') close += *close == '\\' ? 2 : 1;
  char *text = close < s->end ? malloc((size_t)(close - s->at) + 1) : NULL;
  size_t n = 0;
  s->ok = text != NULL;
  while (s->ok && s->at < close) {
    char c = *s->at++;
    if (c == '\\') {
      c = unescaped(*s->at++);
      s->ok = c != '\0';
    } else {
      s->ok = (unsigned char)c >= 0x20 && (unsigned char)c < 0x80;
    }
    text[n++] = c;
  }
  if (!s->ok) {
    free(text);
    return NULL;
  }
  text[n] = '\0';
  s->at = close + 1;
  return text;
}

/* Behind the JSON number that begins at the scanner, NULL: there is none. The C library would read
 * more than JSON has ("0x10", "007", "1."). A newline or NUL ends the text. */
static const char *number_end(const scanner *s, bool real) {
  const char *p = s->at;
  size_t digits = strspn(p, "0123456789");
  if (digits == 0 || (*p == '0' && digits > 1)) return NULL;
  p += digits;
  if (real && *p == '.') {
    digits = strspn(p + 1, "0123456789");
    if (digits == 0) return NULL;
    p += 1 + digits;
  }
  if (real && (*p == 'e' || *p == 'E')) {
    p += p[1] == '+' || p[1] == '-' ? 2 : 1;
    digits = strspn(p, "0123456789");
    if (digits == 0) return NULL;
    p += digits;
  }
  return p;
}

static int64_t scan_integer(scanner *s, const char *before, int64_t most) {
  expect(s, before);
  const char *end = s->ok ? number_end(s, false) : NULL;
  s->ok = end != NULL;
  if (!end) return 0;
  long long value = strtoll(s->at, NULL, 10);
  s->at = end;
  s->ok = value < LLONG_MAX && value <= most;
  return value;
}

static double scan_number(scanner *s, const char *before) {
  expect(s, before);
  const char *end = s->ok ? number_end(s, true) : NULL;
  s->ok = end != NULL;
  if (!end) return 0;
  double value = strtod(s->at, NULL);
  s->at = end;
  s->ok = isfinite(value);
  return value;
}

static bool scan_bool(scanner *s, const char *before) {
  expect(s, before);
  bool value = is_next(s, "true");
  expect(s, value ? "true" : "false");
  return value;
}

static void scan_candidate(scanner *s, cs_candidate *out) {
  expect(s, ",\"candidate\":{\"id\":\"");
  out->id = scan_text(s);
  expect(s, ",\"family\":\"");
  out->family = scan_text(s);
  out->workspace_bytes = scan_integer(s, ",\"workspace_bytes\":", INT64_MAX);
  out->deterministic = scan_bool(s, ",\"deterministic\":");
  out->fused = scan_bool(s, ",\"fused\":");
  out->notes = (uint32_t)scan_integer(s, ",\"notes\":", UINT32_MAX);
  out->threads = (int)scan_integer(s, ",\"threads\":", INT_MAX);
  if (is_next(s, ",\"payload\":\"")) {
    expect(s, ",\"payload\":\"");
    out->payload = scan_text(s);
  }
}

static void scan_measurement(scanner *s, cs_measurement *out) {
  if (is_next(s, "},\"measured\":{\"rejected\":\"")) {
    expect(s, "},\"measured\":{\"rejected\":\"");
    out->rejected = true;
    out->reason = scan_text(s);
  } else {
    out->cold_us = scan_number(s, "},\"measured\":{\"cold_us\":");
    out->warm_us = scan_number(s, ",\"warm_us\":");
    out->p10_us = scan_number(s, ",\"p10_us\":");
    out->p90_us = scan_number(s, ",\"p90_us\":");
    out->variation = scan_number(s, ",\"variation\":");
    out->samples = (int)scan_integer(s, ",\"samples\":", INT_MAX);
  }
  expect(s, "}}");
}

bool cs_record_scan(const char *text, size_t length, cs_record *out) {
  scanner s = {.at = text, .end = text + length, .ok = true};
  memset(out, 0, sizeof *out);
  scan_candidate(&s, &out->candidate);
  scan_measurement(&s, &out->measured);
  if (s.ok && s.at == s.end && out->candidate.id[0] != '\0' &&
      cs_measurement_is_possible(&out->measured)) {
    return true;
  }
  cs_record_clear(out);
  return false;
}
