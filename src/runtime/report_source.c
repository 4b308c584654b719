#include "runtime/report_source.h"

#include "runtime/passes.h"

static cs_status open_profile(cs_device *device, const cs_session_options *session,
                              const cs_report_options *options, cs_report_source *out,
                              cs_profile **profile) {
  if (options->profile_path) {
    CS_RETURN_IF_ERROR(cs_profile_open_file(options->profile_path, &options->logger, &out->own));
    *profile = out->own;
    return CS_OK;
  }
  if (!device) return cs_error(CS_CODE_USAGE, "report: wanted a device or a profile's file");
  return cs_device_profile(device, session->cache_dir, profile);
}

static const cs_device_info *device_info(const cs_device *device, const cs_profile *profile,
                                         bool from_file) {
  static const cs_device_info unknown;
  const cs_device_info *recorded = cs_profile_device(profile);
  if (!from_file) return device->backend->vtable->info(device->backend);
  return recorded ? recorded : &unknown;
}

cs_status cs_report_source_open(cs_device *device, const cs_graph *graph,
                                const cs_session_options *session, const cs_report_options *options,
                                cs_report_source *out) {
  cs_pass_report passes;
  cs_profile *profile = NULL;
  *out = (cs_report_source){0};
  CS_RETURN_IF_ERROR(open_profile(device, session, options, out, &profile));
  CS_RETURN_IF_ERROR(cs_graph_bind(graph, session->batch, &out->bound));
  CS_RETURN_IF_ERROR(out->own ? cs_passes_for_profile(out->own, out->bound, session->precision,
                                                      &passes, &out->passed)
                              : cs_passes_for_backend(device->backend, out->bound,
                                                      session->precision, &passes, &out->passed));
  out->input = (cs_report_input){.bound = out->bound,
                                 .graph = out->passed,
                                 .precision = session->precision,
                                 .profile = profile,
                                 .device = device_info(device, profile, out->own != NULL),
                                 .patterns = options->nodes,
                                 .n_patterns = options->n_nodes,
                                 .candidates = options->candidates,
                                 .workspace_limit = session->workspace_limit,
                                 .deterministic = session->deterministic,
                                 .paper = options->paper};
  return CS_OK;
}

void cs_report_source_close(cs_report_source *source) {
  cs_graph_destroy(source->passed);
  cs_graph_destroy(source->bound);
  cs_profile_close(source->own);
  *source = (cs_report_source){0};
}
