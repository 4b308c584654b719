/* Hash maps of the graph module: names to integers, pairs of integers to integers. */
#ifndef CONVSCHED_GRAPH_INDEX_H_
#define CONVSCHED_GRAPH_INDEX_H_

#include "base/base.h"

/* Zero-initialise; names are borrowed. */
typedef struct cs_name_map {
  struct cs_name_slot {
    const char *name; /* NULL: free */
    int value;
  } * slots;
  size_t n, capacity;
} cs_name_map;
/* *existing: the value already there, else -1 (and the name is put in with `value`). */
cs_status cs_name_map_put(cs_name_map *map, const char *name, int value, int *existing) CS_MUST_USE;
int cs_name_map_get(const cs_name_map *map, const char *name); /* -1: none */
void cs_name_map_free(cs_name_map *map);

/* Zero-initialise. */
typedef struct cs_pair_map {
  struct cs_pair_slot {
    int64_t a, b;
    int value;
    bool used;
  } * slots;
  size_t n, capacity;
} cs_pair_map;
cs_status cs_pair_map_put(cs_pair_map *map, int64_t a, int64_t b, int value,
                          int *existing) CS_MUST_USE;
int cs_pair_map_get(const cs_pair_map *map, int64_t a, int64_t b); /* -1: none */
void cs_pair_map_free(cs_pair_map *map);

#endif
