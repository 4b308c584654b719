/* Inside of generate: what its files share. */
#ifndef CONVSCHED_CLI_GENERATE_H_
#define CONVSCHED_CLI_GENERATE_H_

#include "cli/cli.h"
#include "cli/pictures.h"

#define GENERATE_WINDOWS 21 /* of --time */

typedef struct generation {
  const cli_options *options;
  cs_graph *graph;
  cs_device *device;
  cs_session *session;
  cs_pipeline *pipeline;
  cs_array_reader *reader; /* NULL: latents are generated */
  cli_pictures *pictures;
  cli_pictures_options to;
  char backend[32];
  int64_t count, batch, latent; /* pictures, a request's, elements of one latent vector */
  int in_flight;
  float *latents; /* of a request */
  /* Of --time, seconds for `count` pictures in every window: computing alone, with copies. */
  double compute_s[GENERATE_WINDOWS], whole_s[GENERATE_WINDOWS];
  double packing_s, wall_s;
} generation;

/* Computes and hands over all pictures, and ends their files. */
cs_status generate_all(generation *g) CS_MUST_USE;
/* Fills compute_s and whole_s. */
cs_status generate_time(generation *g) CS_MUST_USE;
/* The record and the sentences. */
cs_status generate_tell(const generation *g) CS_MUST_USE;

#endif
