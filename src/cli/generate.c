/* generate: pictures of a generator network, from latent vectors to PNG files. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/json.h"
#include "cli/generate.h"

#define DEFAULT_COUNT 64
#define GPU_BATCH 256
#define CPU_BATCH 16
#define GPU_IN_FLIGHT 3 /* one is copied in, one computed, one copied out */

/* ---- What is asked for ---- */

/* The file's first axis is the pictures', the others are as the input's behind its batch; axes of
 * extent 1 at the end may lack. */
static cs_status check_latents(generation *g, int rank, const int64_t *dims) {
  const char *path = g->options->latents;
  int found_rank;
  int64_t found[8];
  cs_array_reader_shape(g->reader, &found_rank, found);
  bool same = found_rank >= 1 && found_rank <= rank;
  for (int d = 1; same && d < rank; d++) same = dims[d] == (d < found_rank ? found[d] : 1);
  if (!same) {
    cs_strbuf shape = {0}, wanted = {0};
    for (int d = 0; d < found_rank; d++) {
      cs_strbuf_printf(&shape, "%s%" PRId64, d > 0 ? "x" : "", found[d]);
    }
    for (int d = 1; d < rank; d++) cs_strbuf_printf(&wanted, "x%" PRId64, dims[d]);
    cs_status st = cli_error(CS_CODE_BAD_INPUT, "--latents %s: shape %s, wanted N%s", path,
                             shape.data ? shape.data : "()", wanted.data ? wanted.data : "");
    cs_strbuf_free(&shape);
    cs_strbuf_free(&wanted);
    return st;
  }
  if (g->options->count > found[0]) {
    return cli_error(CS_CODE_BAD_INPUT, "--latents %s: %" PRId64 " vectors, --count wants %" PRId64,
                     path, found[0], g->options->count);
  }
  if (g->options->count == 0) g->count = found[0];
  return g->count > 0 ? CS_OK : cli_error(CS_CODE_BAD_INPUT, "--latents %s: no vectors", path);
}

static cs_status check_graph(const generation *g) {
  int inputs = cs_graph_input_count(g->graph), outputs = cs_graph_output_count(g->graph);
  int64_t dims[8];
  if (inputs != 1 || outputs != 1) {
    return cli_error(CS_CODE_BAD_INPUT,
                     "%s has %d inputs and %d outputs, wanted a generator: one of latent vectors "
                     "and one of pictures",
                     cs_graph_name(g->graph), inputs, outputs);
  }
  int rank = cs_graph_output_shape(g->graph, 0, dims);
  if (rank == 4 && (dims[1] == 1 || dims[1] == 3)) return CS_OK;
  cs_strbuf shape = {0};
  for (int d = 1; d < rank; d++) cs_strbuf_printf(&shape, "x%" PRId64, dims[d]);
  cs_status st =
      cli_error(CS_CODE_BAD_INPUT, "%s gives N%s, wanted pictures: NxCxHxW of one channel or three",
                cs_graph_name(g->graph), shape.data ? shape.data : "");
  cs_strbuf_free(&shape);
  return st;
}

static cs_status check_options(const cli_options *options) {
  if (!options->output) return cli_error(CS_CODE_USAGE, "generate: --output FILE is missing");
  CS_RETURN_IF_ERROR(cli_check_one_plan(options));
  CS_RETURN_IF_ERROR(cli_check_plan_options(options));
  if (cli_device_is_simulated(options)) {
    return cli_error(CS_CODE_USAGE, "--device %s: is simulated and computes nothing",
                     options->device);
  }
  cli_pictures_options to = {.path = options->output,
                             .count = options->count > 0 ? options->count : 1,
                             .columns = options->columns,
                             .force = options->force};
  CS_RETURN_IF_ERROR(cli_pictures_check(&to));
  return cli_check_writable(options->json);
}

/* ---- Opening ---- */

static cs_status open_session(generation *g) {
  cs_session_options session_options;
  bool on_cpu = strcmp(g->backend, "cpu") == 0;
  g->batch = on_cpu ? CPU_BATCH : GPU_BATCH;
  if (g->batch > g->count) g->batch = g->count;
  if (g->options->batch_given) g->batch = g->options->batches[0];
  g->in_flight = on_cpu ? 1 : GPU_IN_FLIGHT;
  if (g->options->in_flight > 0) g->in_flight = g->options->in_flight;
  cli_session_options(g->options, g->batch, g->options->precisions[0],
                      g->options->policy ? g->options->policy : CLI_DEFAULT_POLICY,
                      &session_options);
  CS_RETURN_IF_ERROR(cs_session_create(g->device, g->graph, &session_options, &g->session));
  return cs_pipeline_create_pixels(g->session, g->in_flight, &g->pipeline);
}

/* All pictures' files, before anything is measured, now that the count is known. */
static cs_status check_pictures(generation *g) {
  int64_t dims[8];
  (void)cs_graph_output_shape(g->graph, 0, dims);
  g->to = (cli_pictures_options){.path = g->options->output,
                                 .count = g->count,
                                 .channels = (int)dims[1],
                                 .height = dims[2],
                                 .width = dims[3],
                                 .columns = g->options->columns,
                                 .force = g->options->force};
  return cli_pictures_check(&g->to);
}

static cs_status open_latents(generation *g) {
  int rank;
  int64_t dims[8];
  CS_RETURN_IF_ERROR(cs_session_shape(g->session, cs_graph_input_name(g->graph, 0), &rank, dims));
  g->latent = 1;
  for (int d = 1; d < rank; d++) g->latent *= dims[d];
  g->latents = calloc((size_t)(g->batch * g->latent), sizeof *g->latents);
  return g->latents
             ? CS_OK
             : cs_no_memory("latent vectors", (size_t)(g->batch * g->latent) * sizeof(float));
}

/* The count, and that latents are of the right shape, before anything is measured. */
static cs_status open_reader(generation *g) {
  int64_t dims[8];
  g->count = g->options->count > 0 ? g->options->count : DEFAULT_COUNT;
  if (!g->options->latents) return CS_OK;
  CS_RETURN_IF_ERROR(cs_array_reader_open(g->options->latents, &g->reader));
  return check_latents(g, cs_graph_input_shape(g->graph, 0, dims), dims);
}

/* ---- The command ---- */

static void close_all(generation *g) {
  cli_pictures_abandon(g->pictures);
  free(g->latents);
  cs_pipeline_destroy(g->pipeline);
  cs_session_destroy(g->session);
  cs_array_reader_close(g->reader);
  cs_device_close(g->device);
  cs_graph_destroy(g->graph);
}

static cs_status generate_command(const cli_options *options) {
  cs_status st = CS_OK;
  generation g = {.options = options};
  CS_RETURN_IF_ERROR(check_options(options));
  CS_TRY(st, cli_load_graph(options->models.items[0], &g.graph), done);
  CS_TRY(st, check_graph(&g), done);
  CS_TRY(st, open_reader(&g), done);
  CS_TRY(st, check_pictures(&g), done);
  CS_TRY(st, cs_device_open(options->device, cli_logger(options), &g.device), done);
  CS_TRY(st, cli_device_backend(g.device, g.backend, sizeof g.backend), done);
  CS_TRY(st, open_session(&g), done);
  CS_TRY(st, open_latents(&g), done);
  CS_TRY(st, cli_pictures_open(&g.to, &g.pictures), done);
  cli_end_progress();
  CS_TRY(st, generate_all(&g), done);
  if (options->time) CS_TRY(st, generate_time(&g), done);
  st = generate_tell(&g);
done:
  close_all(&g);
  return st;
}

const cli_command cli_generate = {
    .name = "generate",
    .arguments = "MODEL.json",
    .summary = "Generate pictures with a generator network and write them as PNG",
    .help =
        "Runs a generator (one input of latent vectors, one output of pictures) on latent vectors "
        "from a seed or a file, and writes a contact sheet (FILE.png), or into a folder (FOLDER/) "
        "a PNG each; no other format of pictures is written. Pictures "
        "are packed and written while others are computed, however many there are.\v"
        "Examples:\n"
        "  convsched generate models/dcgan_generator.json --count 1000 --seed 7 --output "
        "faces.png\n"
        "  convsched generate dcgan.onnx --latents z.npy --output faces/ --dtype f16 --time\n"
        "\nLatent vector i is standard normal from Philox 4x32-10: the seed is its key, 2^63 + i "
        "the upper half of its counter; the same for every batch size.",
    .options = CLI_PLANNING | CLI_SEED | CLI_GENERATING | CLI_JSON,
    .min_models = 1,
    .max_models = 1,
    .run = generate_command,
    .asks = true};
