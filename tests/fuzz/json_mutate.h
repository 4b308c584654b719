/* Mutations of JSON as a tree, where libFuzzer's own, of bytes, hardly ever give JSON again. Of
 * JSON lines one line is taken. Include it in a target whose inputs are such text. */
#ifndef CONVSCHED_TESTS_FUZZ_JSON_MUTATE_H_
#define CONVSCHED_TESTS_FUZZ_JSON_MUTATE_H_

#ifdef CS_FUZZ
#include <jansson.h>

#include "fuzz/fuzz.h"

/* Counts the members and elements below `value`, and finds the one that *left counts down to. */
typedef struct fuzz_place {
  json_t *container, *value; /* NULL: not found yet */
  size_t index;
  const char *key;
} fuzz_place;

static inline void fuzz_walk(json_t *value, size_t *left, fuzz_place *found) {
  size_t i;
  const char *key;
  json_t *child;
  json_array_foreach(value, i, child) {
    if ((*left)-- == 0) *found = (fuzz_place){value, child, i, NULL};
    fuzz_walk(child, left, found);
  }
  json_object_foreach(value, key, child) {
    if ((*left)-- == 0) *found = (fuzz_place){value, child, 0, key};
    fuzz_walk(child, left, found);
  }
}

static inline bool fuzz_pick(json_t *root, cs_rng *rng, fuzz_place *out) {
  size_t left = SIZE_MAX;
  *out = (fuzz_place){0};
  fuzz_walk(root, &left, out);
  size_t n = SIZE_MAX - left;
  if (n == 0) return false;
  left = fuzz_below(rng, n);
  fuzz_walk(root, &left, out);
  return true;
}

static inline json_t *fuzz_integer(cs_rng *rng, json_int_t was) {
  static const json_int_t edges[] = {0,
                                     1,
                                     2,
                                     3,
                                     7,
                                     8,
                                     16,
                                     255,
                                     65536,
                                     INT32_MAX - 1,
                                     INT32_MAX,
                                     (json_int_t)INT32_MAX + 1,
                                     UINT32_MAX,
                                     INT64_MAX / 8,
                                     INT64_MAX / 2,
                                     INT64_MAX - 255,
                                     INT64_MAX,
                                     INT64_MIN,
                                     -1,
                                     -2,
                                     -8};
  uint64_t bits = (uint64_t)was;
  switch (fuzz_below(rng, 4)) {
    case 0:
      return json_integer((json_int_t)(bits + 1 - 2 * fuzz_below(rng, 2)));
    case 1:
      return json_integer((json_int_t)(bits * 2));
    case 2:
      return json_integer((json_int_t)(bits ^ UINT64_C(1) << fuzz_below(rng, 64)));
    default:
      return json_integer(edges[fuzz_below(rng, sizeof edges / sizeof *edges)]);
  }
}

static inline json_t *fuzz_scalar(cs_rng *rng, const json_t *was) {
  static const double reals[] = {0, -0.0, 1, 0.5, 1e-310, 1e308, -1, 3.5e38, 1e19};
  static const char *const texts[] = {"", "a", "x", "\xc3\xa9", "\"\\\n", "%s%n", "../a"};
  if (json_is_integer(was) && fuzz_below(rng, 8)) return fuzz_integer(rng, json_integer_value(was));
  switch (fuzz_below(rng, 8)) {
    case 0:
      return json_null();
    case 1:
      return json_boolean(fuzz_below(rng, 2));
    case 2:
      return json_array();
    case 3:
      return json_object();
    case 4:
      return json_real(reals[fuzz_below(rng, sizeof reals / sizeof *reals)]);
    case 5:
      return json_string(texts[fuzz_below(rng, sizeof texts / sizeof *texts)]);
    default:
      return fuzz_integer(rng, 1);
  }
}

static inline void fuzz_set(const fuzz_place *place, json_t *value) {
  if (place->key) {
    (void)json_object_set_new(place->container, place->key, value);
  } else {
    (void)json_array_set_new(place->container, place->index, value);
  }
}

static inline void fuzz_mutate_tree(json_t *root, cs_rng *rng) {
  fuzz_place place, other;
  if (!fuzz_pick(root, rng, &place) || !fuzz_pick(root, rng, &other)) return;
  json_t *copy = json_deep_copy(other.value);
  size_t step = fuzz_below(rng, 8);
  if (step == 0 && place.key) {
    (void)json_object_del(place.container, place.key);
  } else if (step == 0) {
    (void)json_array_remove(place.container, place.index);
  } else if (step == 1 && !place.key) {
    (void)json_array_insert_new(place.container, place.index, json_incref(copy));
  } else if (step == 2 && other.key && json_is_object(place.value)) {
    (void)json_object_set(place.value, other.key, copy);
  } else if (step == 3 || (step == 4 && json_typeof(copy) == json_typeof(place.value))) {
    fuzz_set(&place, json_incref(copy));
  } else {
    fuzz_set(&place, fuzz_scalar(rng, place.value));
  }
  json_decref(copy);
}

/* The text of JSON, changed, at most `most` bytes; NULL: it is not JSON, or grew too long. */
static inline char *fuzz_mutate_text(const uint8_t *text, size_t length, size_t most, cs_rng *rng) {
  json_t *root = json_loadb((const char *)text, length, 0, NULL);
  char *out = NULL;
  for (size_t n = 1 + fuzz_below(rng, 4); root && n > 0; n--) fuzz_mutate_tree(root, rng);
  if (root) out = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
  json_decref(root);
  if (out && strlen(out) <= most) return out;
  free(out);
  return NULL;
}

/* Data whose bytes from `from` on are JSON or lines of it. */
static inline size_t fuzz_mutate_json(uint8_t *data, size_t size, size_t max_size, size_t from,
                                      unsigned seed) {
  cs_rng rng;
  cs_rng_init(&rng, seed, 1);
  if (size <= from || fuzz_below(&rng, 4) == 0) return LLVMFuzzerMutate(data, size, max_size);
  size_t at = from + fuzz_below(&rng, size - from), begin = at, end = at;
  while (begin > from && data[begin - 1] != '\n') begin--;
  while (end < size && data[end] != '\n') end++;
  char *line = fuzz_mutate_text(data + begin, end - begin, max_size - (size - (end - begin)), &rng);
  if (!line) return LLVMFuzzerMutate(data, size, max_size);
  size_t length = strlen(line);
  memmove(data + begin + length, data + end, size - end);
  memcpy(data + begin, line, length);
  free(line);
  return size - (end - begin) + length;
}

#endif
#endif
