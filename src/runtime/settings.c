#include <stdlib.h>
#include <string.h>

#include "runtime/session.h"

void cs_session_options_init(cs_session_options *options) {
  *options = (cs_session_options){.struct_size = sizeof *options,
                                  .batch = 1,
                                  .precision = CS_PRECISION_F32,
                                  .policy = "sequential",
                                  .workspace_limit = INT64_C(256) << 20,
                                  .search_seconds = -1};
}

static void free_strings(char **strings, int n) {
  if (!strings) return;
  for (int i = 0; i < n; i++) free(strings[i]);
  free(strings);
}

void cs_settings_free(cs_settings *settings) {
  free(settings->policy);
  free(settings->weights_path);
  free(settings->cache_dir);
  free(settings->plan_path);
  free(settings->partition);
  free_strings(settings->pins, settings->options.n_pins);
  free_strings(settings->bans, settings->options.n_bans);
  free_strings(settings->keep, settings->options.n_keep);
  free_strings(settings->allows, settings->options.n_allows);
  memset(settings, 0, sizeof *settings);
}

static cs_status copy_strings(const char *const *from, int n, char ***out) {
  if (n == 0) return CS_OK;
  *out = cs_calloc((size_t)n, sizeof **out);
  if (!*out) return cs_no_memory("options", (size_t)n * sizeof **out);
  for (int i = 0; i < n; i++) CS_RETURN_IF_ERROR(cs_strdup_to(from[i], &(*out)[i]));
  return CS_OK;
}

static cs_status copy_string(const char *from, char **out) {
  return from ? cs_strdup_to(from, out) : CS_OK;
}

/* Reads as many bytes as the caller's struct has: one from an older version has fewer members, and
 * keeps the defaults for the rest. */
static cs_status read_options(const cs_session_options *from, cs_session_options *out) {
  cs_session_options_init(out);
  size_t smallest = offsetof(cs_session_options, precision) + sizeof out->precision;
  if (from->struct_size < smallest) {
    return cs_error(CS_CODE_USAGE,
                    "session options: struct_size %zu, wanted at least %zu (call "
                    "cs_session_options_init first)",
                    from->struct_size, smallest);
  }
  size_t known = from->struct_size < sizeof *out ? from->struct_size : sizeof *out;
  memcpy(out, from, known);
  out->struct_size = sizeof *out;
  return CS_OK;
}

static cs_status check_options(const cs_session_options *options) {
  if (options->batch < 1) {
    return cs_error(CS_CODE_BAD_INPUT, "batch %lld: wanted at least 1", (long long)options->batch);
  }
  if (!cs_precision_name(options->precision)) {
    return cs_error(CS_CODE_USAGE, "precision %d: wanted a cs_precision", (int)options->precision);
  }
  if (options->workspace_limit < 0 || options->memory_limit < 0 || options->max_streams < 0) {
    return cs_error(CS_CODE_USAGE,
                    "workspace limit %lld, memory limit %lld, streams %d: wanted none negative",
                    (long long)options->workspace_limit, (long long)options->memory_limit,
                    options->max_streams);
  }
  if (options->in_flight < 0 || options->in_flight > CS_PIPELINE_MOST_SLOTS) {
    return cs_error(CS_CODE_USAGE, "in_flight %d: wanted 0 to %d", options->in_flight,
                    CS_PIPELINE_MOST_SLOTS);
  }
  if (options->micro_batches < 0 || options->micro_batches > CS_MOST_PARTS) {
    return cs_error(CS_CODE_USAGE, "micro_batches %d: wanted 0 to %d", options->micro_batches,
                    CS_MOST_PARTS);
  }
  if (options->in_flight > 1 && options->no_graph) {
    return cs_error(CS_CODE_USAGE,
                    "in_flight %d: requests in flight are launches of CUDA graphs, so it goes "
                    "without no_graph",
                    options->in_flight);
  }
  return CS_OK;
}

/* A plan says which candidates run on which streams, so options that would are refused. */
static cs_status check_plan_options(const cs_session_options *options) {
  if (!options->plan_path) return CS_OK;
  const char *extra = options->n_pins > 0        ? "pins"
                      : options->n_bans > 0      ? "bans"
                      : options->n_allows > 0    ? "allows"
                      : options->max_streams > 0 ? "max_streams"
                      : options->deterministic   ? "deterministic"
                      : options->partition       ? "partition"
                      : options->micro_batches   ? "micro_batches"
                                                 : NULL;
  if (!extra) return CS_OK;
  return cs_error(CS_CODE_USAGE,
                  "%s: a plan fixes candidates and streams, so plan_path goes without %s",
                  options->plan_path, extra);
}

cs_status cs_settings_copy(const cs_session_options *from, cs_settings *out) {
  memset(out, 0, sizeof *out);
  cs_session_options options;
  CS_RETURN_IF_ERROR(read_options(from, &options));
  CS_RETURN_IF_ERROR(check_options(&options));
  CS_RETURN_IF_ERROR(check_plan_options(&options));
  cs_status st = CS_OK;
  out->options = options;
  CS_TRY(st, copy_string(options.policy ? options.policy : "sequential", &out->policy), done);
  CS_TRY(st, copy_string(options.weights_path, &out->weights_path), done);
  CS_TRY(st, copy_string(options.cache_dir, &out->cache_dir), done);
  CS_TRY(st, copy_string(options.plan_path, &out->plan_path), done);
  CS_TRY(st, copy_string(options.partition, &out->partition), done);
  CS_TRY(st, copy_strings(options.pins, options.n_pins, &out->pins), done);
  CS_TRY(st, copy_strings(options.bans, options.n_bans, &out->bans), done);
  CS_TRY(st, copy_strings(options.keep, options.n_keep, &out->keep), done);
  CS_TRY(st, copy_strings(options.allows, options.n_allows, &out->allows), done);
  out->options.policy = out->policy;
  out->options.weights_path = out->weights_path;
  out->options.cache_dir = out->cache_dir;
  out->options.plan_path = out->plan_path;
  out->options.partition = out->partition;
  out->options.pins = (const char *const *)out->pins;
  out->options.bans = (const char *const *)out->bans;
  out->options.keep = (const char *const *)out->keep;
  out->options.allows = (const char *const *)out->allows;
done:
  if (st != CS_OK) cs_settings_free(out);
  return st;
}
