/* Measured times by operation, for the layout search: many entries of one key, then look-ups. */
#ifndef CONVSCHED_RUNTIME_COST_TABLE_H_
#define CONVSCHED_RUNTIME_COST_TABLE_H_

#include "base/base.h"

typedef struct cs_cost_entry {
  uint64_t key;
  double us;
} cs_cost_entry;

/* Zero-initialise; cs_cost_table_free releases. */
typedef struct cs_cost_table {
  cs_cost_entry *entries;
  size_t n, capacity;
} cs_cost_table;

cs_status cs_cost_table_add(cs_cost_table *table, uint64_t key, double us) CS_MUST_USE;
/* Ends adding: of the entries of one key the least time stays. */
void cs_cost_table_sort(cs_cost_table *table);
/* -1: no such key. Of a sorted table. */
double cs_cost_table_find(const cs_cost_table *table, uint64_t key);
void cs_cost_table_free(cs_cost_table *table);

#endif
