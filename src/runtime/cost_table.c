#include "runtime/cost_table.h"

#include <stdlib.h>
#include <string.h>

cs_status cs_cost_table_add(cs_cost_table *table, uint64_t key, double us) {
  CS_RETURN_IF_ERROR(
      cs_grow(&table->entries, &table->capacity, table->n + 1, sizeof *table->entries));
  table->entries[table->n++] = (cs_cost_entry){key, us};
  return CS_OK;
}

static int compare_keys(const void *a, const void *b) {
  uint64_t x = ((const cs_cost_entry *)a)->key, y = ((const cs_cost_entry *)b)->key;
  return (x > y) - (x < y);
}

/* By key, then by time. */
static int compare_entries(const void *a, const void *b) {
  double x = ((const cs_cost_entry *)a)->us, y = ((const cs_cost_entry *)b)->us;
  int keys = compare_keys(a, b);
  return keys != 0 ? keys : (x > y) - (x < y);
}

void cs_cost_table_sort(cs_cost_table *table) {
  size_t kept = 0;
  if (table->n == 0) return;
  qsort(table->entries, table->n, sizeof *table->entries, compare_entries);
  for (size_t i = 1; i < table->n; i++) {
    if (table->entries[i].key != table->entries[kept].key) {
      table->entries[++kept] = table->entries[i];
    }
  }
  table->n = kept + 1;
}

double cs_cost_table_find(const cs_cost_table *table, uint64_t key) {
  cs_cost_entry wanted = {.key = key};
  if (table->n == 0) return -1;
  const cs_cost_entry *found =
      bsearch(&wanted, table->entries, table->n, sizeof wanted, compare_keys);
  return found ? found->us : -1;
}

void cs_cost_table_free(cs_cost_table *table) {
  free(table->entries);
  memset(table, 0, sizeof *table);
}
