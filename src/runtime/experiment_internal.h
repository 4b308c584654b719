/* Inside of reading a specification. */
#ifndef CONVSCHED_RUNTIME_EXPERIMENT_INTERNAL_H_
#define CONVSCHED_RUNTIME_EXPERIMENT_INTERNAL_H_

#include "runtime/experiment.h"

/* Of every axis the values, checked and in one form (bytes as integers); and the policies. */
typedef struct cs_experiment_spec {
  const char *path;
  json_t *root;
  json_t *axes[CS_DIMENSION_COUNT]; /* arrays */
  json_t *policies;                 /* array */
  json_t *families;                 /* name → {"allow", "ban"} */
  json_t *excluded;                 /* [{KEY: [values]}…], KEY of an axis or "policy" */
} cs_experiment_spec;
void cs_experiment_spec_free(cs_experiment_spec *spec);

/* Reads the lists and exclusions of spec->root. */
cs_status cs_experiment_read_axes(cs_experiment_spec *spec) CS_MUST_USE;
/* Reads the rest into `out`: one member each of what cs_experiment_resolve tells. */
cs_status cs_experiment_read_settings(cs_experiment_spec *spec, json_t *out) CS_MUST_USE;

#endif
