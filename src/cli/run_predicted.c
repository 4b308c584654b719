/* A case of `run` on a simulated device: plans and predicted times, nothing run. */
#include <string.h>

#include "cli/run.h"

cs_status run_check_simulated(const cli_options *options) {
  const char *extra = options->inputs.n > 0               ? "--input"
                      : options->outputs.n > 0            ? "--output"
                      : options->dumps.n > 0              ? "--dump"
                      : options->weights                  ? "--weights"
                      : options->ablate                   ? "--ablate"
                      : options->overlap                  ? "--overlap"
                      : options->pipeline                 ? "--pipeline"
                      : options->no_graph                 ? "--no-graph"
                      : options->verify == CS_VERIFY_FULL ? "--verify full"
                                                          : NULL;
  if (!extra) return cli_check_search(options);
  return cli_error(CS_CODE_USAGE,
                   "--device %s: a simulated device computes no numbers, so it goes without %s",
                   options->device, extra);
}

static cs_status predict(run_contender *contender) {
  CS_RETURN_IF_ERROR(cs_session_latency(contender->session, &contender->predicted_us));
  return cli_session_json(contender->session, &contender->info);
}

cs_status run_predict(run_case *run) {
  cs_session_options options;
  run_contender *main_one = &run->contenders[run->n - 1];
  run->passed = true;
  cli_session_options(run->options, run->batch, run->precision, main_one->policy, &options);
  CS_RETURN_IF_ERROR(cs_session_create(run->device, run->graph, &options, &main_one->session));
  for (int i = 0; i < run->n; i++) {
    run_contender *contender = &run->contenders[i];
    if (contender != main_one) {
      CS_RETURN_IF_ERROR(
          cs_session_fork(main_one->session, contender->policy, &contender->session));
    }
    CS_RETURN_IF_ERROR(predict(contender));
  }
  return CS_OK;
}
