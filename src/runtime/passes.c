#include "runtime/passes.h"

static bool backend_takes(void *user, const cs_op_desc *desc) {
  cs_backend *backend = user;
  return backend->vtable->takes_prologue(backend, desc);
}

cs_status cs_passes_for_backend(cs_backend *backend, const cs_graph *bound, cs_precision precision,
                                cs_pass_report *report, cs_graph **out) {
  cs_pass_options options = CS_PASSES_ALL;
  cs_layout layouts[CS_MAX_DEVICE_LAYOUTS];
  if (backend->vtable->takes_prologue && backend->vtable->layouts(backend, precision, layouts) > 0)
    options.prologue = (cs_prologue_taker){backend_takes, backend, precision, layouts[0]};
  return cs_graph_apply_passes(bound, options, report, out);
}

typedef struct recorded {
  const cs_profile *profile;
} recorded;

static bool profile_takes(void *user, const cs_op_desc *desc) {
  return cs_profile_has_prologue(((const recorded *)user)->profile, desc);
}

cs_status cs_passes_for_profile(const cs_profile *profile, const cs_graph *bound,
                                cs_precision precision, cs_pass_report *report, cs_graph **out) {
  recorded of = {profile};
  cs_pass_options options = CS_PASSES_ALL;
  /* Whatever the layout: it makes no difference to what is recorded. */
  options.prologue = (cs_prologue_taker){profile_takes, &of, precision, CS_LAYOUT_NHWC};
  return cs_graph_apply_passes(bound, options, report, out);
}
