/* The inside of cs_params: named arrays, sorted by name, and where their elements are. */
#ifndef CONVSCHED_RUNTIME_PARAMS_STORE_H_
#define CONVSCHED_RUNTIME_PARAMS_STORE_H_

#include "runtime/params.h"
#include "runtime/safetensors.h"

typedef struct cs_params_entry {
  char *name;
  cs_shape shape;
  int64_t count;
  float *data;                 /* of generated parameters; NULL: they stay where they came from */
  const cs_safetensor *tensor; /* in `file` */
} cs_params_entry;

struct cs_params {
  cs_params_entry *entries; /* by name */
  int count;
  cs_safetensors *file;          /* owned; NULL: none */
  const cs_param_source *source; /* the graph's; NULL: none */
};

/* One entry without elements for each parameter of the graph as written. */
cs_status cs_params_create(const cs_graph *graph, cs_params **out) CS_MUST_USE;
/* NULL if there is none of that name. */
const cs_params_entry *cs_params_find(const cs_params *params, const char *name);

#endif
