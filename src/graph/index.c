/* Open addressing with linear probing, at most half full; capacities are powers of two. */
#include "graph/index.h"

#include <stdlib.h>
#include <string.h>

static struct cs_name_slot *name_slot(const cs_name_map *map, const char *name) {
  size_t i = cs_hash_string(CS_HASH_SEED, name) & (map->capacity - 1);
  while (map->slots[i].name && strcmp(map->slots[i].name, name) != 0) {
    i = (i + 1) & (map->capacity - 1);
  }
  return &map->slots[i];
}

static cs_status name_map_double(cs_name_map *map) {
  cs_name_map larger = {.n = map->n, .capacity = map->capacity ? map->capacity * 2 : 16};
  larger.slots = cs_calloc(larger.capacity, sizeof *larger.slots);
  if (!larger.slots) return cs_no_memory("a map of names", larger.capacity * sizeof *larger.slots);
  for (size_t i = 0; i < map->capacity; i++) {
    if (map->slots[i].name) *name_slot(&larger, map->slots[i].name) = map->slots[i];
  }
  free(map->slots);
  *map = larger;
  return CS_OK;
}

cs_status cs_name_map_put(cs_name_map *map, const char *name, int value, int *existing) {
  if (2 * (map->n + 1) > map->capacity) CS_RETURN_IF_ERROR(name_map_double(map));
  struct cs_name_slot *slot = name_slot(map, name);
  *existing = slot->name ? slot->value : -1;
  if (slot->name) return CS_OK;
  *slot = (struct cs_name_slot){name, value};
  map->n++;
  return CS_OK;
}

int cs_name_map_get(const cs_name_map *map, const char *name) {
  if (!map->capacity) return -1;
  const struct cs_name_slot *slot = name_slot(map, name);
  return slot->name ? slot->value : -1;
}

void cs_name_map_free(cs_name_map *map) {
  free(map->slots);
  *map = (cs_name_map){0};
}

static struct cs_pair_slot *pair_slot(const cs_pair_map *map, int64_t a, int64_t b) {
  uint64_t hash = cs_hash_bytes(cs_hash_bytes(CS_HASH_SEED, &a, sizeof a), &b, sizeof b);
  size_t i = hash & (map->capacity - 1);
  while (map->slots[i].used && (map->slots[i].a != a || map->slots[i].b != b)) {
    i = (i + 1) & (map->capacity - 1);
  }
  return &map->slots[i];
}

static cs_status pair_map_double(cs_pair_map *map) {
  cs_pair_map larger = {.n = map->n, .capacity = map->capacity ? map->capacity * 2 : 16};
  larger.slots = cs_calloc(larger.capacity, sizeof *larger.slots);
  if (!larger.slots) return cs_no_memory("a map of pairs", larger.capacity * sizeof *larger.slots);
  for (size_t i = 0; i < map->capacity; i++) {
    if (map->slots[i].used) *pair_slot(&larger, map->slots[i].a, map->slots[i].b) = map->slots[i];
  }
  free(map->slots);
  *map = larger;
  return CS_OK;
}

cs_status cs_pair_map_put(cs_pair_map *map, int64_t a, int64_t b, int value, int *existing) {
  if (2 * (map->n + 1) > map->capacity) CS_RETURN_IF_ERROR(pair_map_double(map));
  struct cs_pair_slot *slot = pair_slot(map, a, b);
  *existing = slot->used ? slot->value : -1;
  if (slot->used) return CS_OK;
  *slot = (struct cs_pair_slot){a, b, value, true};
  map->n++;
  return CS_OK;
}

int cs_pair_map_get(const cs_pair_map *map, int64_t a, int64_t b) {
  if (!map->capacity) return -1;
  const struct cs_pair_slot *slot = pair_slot(map, a, b);
  return slot->used ? slot->value : -1;
}

void cs_pair_map_free(cs_pair_map *map) {
  free(map->slots);
  *map = (cs_pair_map){0};
}
