/* The inside of cs_params: arrays sorted by name. */
#ifndef CONVSCHED_RUNTIME_PARAMS_STORE_H_
#define CONVSCHED_RUNTIME_PARAMS_STORE_H_

#include "runtime/params.h"

typedef struct cs_params_entry {
  char *name;
  cs_shape shape;
  int64_t count;
  float *data;
} cs_params_entry;

struct cs_params {
  cs_params_entry *entries; /* by name */
  int count;
};

/* One zeroed entry for each parameter of the graph as written. */
cs_status cs_params_allocate(const cs_graph *graph, cs_params **out) CS_MUST_USE;
/* NULL if there is none of that name. */
const cs_params_entry *cs_params_find(const cs_params *params, const char *name);

#endif
