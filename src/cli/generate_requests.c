/* Requests of generate: latent vectors in, pixels out, and how long that takes. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "cli/generate.h"

#define LATENT_STREAM \
  (UINT64_C(1) << 63) /* of the generator: far from those of weights and inputs */
#define LEAST_TIMED 4 /* requests of a window, at least */

/* ---- Generating ---- */

/* For all pictures. */
static int64_t requests_of(const generation *g) {
  return g->batch > 0 ? (g->count + g->batch - 1) / g->batch : 0;
}

static int slot_of(const generation *g, int64_t request) {
  return g->in_flight > 1 ? (int)(request % g->in_flight) : 0;
}

static int64_t pictures_of(const generation *g, int64_t request) {
  return cs_min_i64(g->batch, g->count - request * g->batch);
}

typedef struct latent_work {
  const generation *g;
  int64_t first; /* picture of the request */
} latent_work;

static cs_status make_latent(void *user, int64_t index, int worker) {
  (void)worker;
  const latent_work *work = user;
  const generation *g = work->g;
  cs_rng rng;
  cs_rng_init(&rng, g->options->seed, LATENT_STREAM + (uint64_t)(work->first + index));
  cs_rng_fill_normal(&rng, g->latents + index * g->latent, g->latent, 0, 1);
  return CS_OK;
}

/* `n` vectors of the file. A NaN would be a black picture. */
static cs_status read_latents(generation *g, int64_t first, int64_t n) {
  CS_RETURN_IF_ERROR(cs_array_reader_next(g->reader, n * g->latent, g->latents));
  for (int64_t i = 0; i < n * g->latent; i++) {
    if (isfinite(g->latents[i])) continue;
    return cli_error(CS_CODE_BAD_INPUT,
                     "--latents %s: vector %" PRId64 " holds %g, wanted finite numbers",
                     g->options->latents, first + i / g->latent, (double)g->latents[i]);
  }
  return CS_OK;
}

/* Those behind the last picture are zeros. */
static cs_status next_latents(generation *g, int64_t request) {
  int64_t n = pictures_of(g, request);
  memset(g->latents, 0, (size_t)(g->batch * g->latent) * sizeof *g->latents);
  if (g->reader) return read_latents(g, request * g->batch, n);
  latent_work work = {g, request * g->batch};
  return cs_parallel_for(n, 0, make_latent, &work);
}

static cs_status submit(generation *g, int64_t request) {
  const float *inputs[] = {g->latents};
  int64_t size = g->batch * g->latent;
  CS_RETURN_IF_ERROR(cli_check_interrupt());
  CS_RETURN_IF_ERROR(next_latents(g, request));
  return cs_pipeline_submit(g->pipeline, slot_of(g, request), inputs, &size, 1);
}

static cs_status take(generation *g, int64_t request) {
  const uint8_t *pixels = NULL;
  int64_t bytes = 0;
  CS_RETURN_IF_ERROR(cs_pipeline_wait_pixels(g->pipeline, slot_of(g, request), &pixels, &bytes));
  return cli_pictures_put(g->pictures, pixels, pictures_of(g, request));
}

cs_status generate_all(generation *g) {
  int64_t n = requests_of(g);
  double begun = cs_now_seconds();
  for (int64_t r = 0; r < n + g->in_flight; r++) {
    int64_t taken = r > g->in_flight ? (r - g->in_flight) * g->batch : 0;
    cli_tell_progress("generating", "pictures", taken, g->count);
    if (r >= g->in_flight && r - g->in_flight < n) {
      CS_RETURN_IF_ERROR(take(g, r - g->in_flight));
    }
    if (r < n) CS_RETURN_IF_ERROR(submit(g, r));
  }
  cli_pictures *pictures = g->pictures;
  g->pictures = NULL;
  CS_RETURN_IF_ERROR(cli_pictures_close(pictures, &g->packing_s));
  g->wall_s = cs_now_seconds() - begun;
  return CS_OK;
}

/* ---- Timing ---- */

/* Seconds that `count` pictures take in a steady state: computing one request after the other, and
 * with copies beside it. Both ways in turn. */
cs_status generate_time(generation *g) {
  int64_t requests = requests_of(g);
  if (requests < LEAST_TIMED) requests = LEAST_TIMED;
  for (int w = -1; w < GENERATE_WINDOWS; w++) { /* the first warms up */
    cli_tell_progress("timing", "windows", w + 1, GENERATE_WINDOWS + 1);
    for (int copies = 0; copies < 2; copies++) {
      cs_pipeline_rate rate;
      CS_RETURN_IF_ERROR(cli_check_interrupt());
      CS_RETURN_IF_ERROR(cs_pipeline_window(g->pipeline, copies > 0 ? g->in_flight : 1,
                                            (int)requests, copies > 0, &rate));
      if (w >= 0)
        (copies > 0 ? g->whole_s : g->compute_s)[w] = (double)g->count / rate.images_per_s;
    }
  }
  return CS_OK;
}
