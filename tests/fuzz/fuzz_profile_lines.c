/* The lines of a database of device "d": read, asked for, and compacted to the latest of each key,
 * which says the same. */
#include "fuzz/json_mutate.h"
#include "fuzz/profile_use.h"
#include "profiler/record_json.h"

#define DEVICE "d"

static cs_profile *profile_of(const char *text, size_t length) {
  cs_profile *profile = cs_calloc(1, sizeof *profile);
  FUZZ_CHECK(profile, "no memory");
  profile->logger = fuzz_logger;
  profile->method = CS_MEASURE_VERSION;
  fuzz_want_ok(cs_strdup_to(DEVICE, &profile->identity), "identity");
  fuzz_want_ok(cs_strdup_to("lines", &profile->path), "path");
  fuzz_want_ok(cs_line_prefix(DEVICE, &profile->prefix), "prefix");
  profile->prefix_length = strlen(profile->prefix);
  profile->text = malloc(length + 1); /* and a NUL, as a file that is read has one */
  FUZZ_CHECK(profile->text, "no memory");
  if (length) memcpy(profile->text, text, length);
  profile->text[length] = '\0';
  fuzz_want_ok(cs_profile_index(profile, length), "indexing");
  return profile;
}

/* Compacting is settled by one round: a second one changes nothing. */
static void compact(const char *text, size_t length) {
  cs_strbuf once = {0}, twice = {0};
  cs_latest_lines report, again;
  fuzz_want_ok(cs_lines_latest(DEVICE, text, length, &once, &report), "the latest lines");
  if (once.length > 0) {
    fuzz_want_ok(cs_lines_latest(DEVICE, once.data, once.length, &twice, &again), "once more");
    FUZZ_CHECK(again.n == report.n && again.damaged.n == 0 && again.foreign.n == 0 &&
                   twice.length == once.length && memcmp(once.data, twice.data, once.length) == 0,
               "%d lines, then %d of them:\n%s", report.n, again.n, once.data);
    cs_profile *profile = profile_of(once.data, once.length);
    fuzz_use_profile(profile);
    FUZZ_CHECK(profile->damaged.n == 0, "%d of the latest lines are damaged:\n%s",
               profile->damaged.n, once.data);
    cs_profile_close(profile);
  }
  cs_strbuf_free(&once);
  cs_strbuf_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  bool wanted = false;
  cs_profile *profile = profile_of((const char *)data, size);
  fuzz_want_ok(cs_profile_wants_compaction(profile, &wanted), "counting keys");
  fuzz_use_profile(profile);
  cs_profile_close(profile);
  compact((const char *)data, size);
  return 0;
}

#ifdef CS_FUZZ
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  return fuzz_mutate_json(data, size, max_size, 0, seed);
}
#endif
