/* Classifies one image with a model, then runs a small graph built in code: the whole public API
 * that a program needs, and nothing else.
 *
 *   classify MODEL.json [DEVICE [WEIGHTS.safetensors]]
 *
 * The image is synthetic (a smooth pattern); without weights the parameters are generated, so the
 * classes mean nothing, but the same ones come out every time. */
#include <convsched/convsched.h>
#include <stdio.h>
#include <stdlib.h>

/* Prints the status, releases it and tells whether it was an error. */
static bool failed(cs_status status) {
  if (status == CS_OK) return false;
  fprintf(stderr, "classify: %s\n", cs_status_message(status));
  cs_status_free(status);
  return true;
}

static void on_log(void *user, cs_log_level level, const char *message) {
  (void)user;
  if (level == CS_LOG_WARNING) fprintf(stderr, "classify: warning: %s\n", message);
}

static int64_t count_elements(const int64_t *dims, int rank, int64_t batch) {
  int64_t count = 1;
  for (int i = 0; i < rank; i++) count *= dims[i] == CS_DIM_N ? batch : dims[i];
  return count;
}

static void fill_pattern(float *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) values[i] = (float)(i % 251) / 125.0f - 1.0f;
}

static void print_top5(const float *scores, int64_t count) {
  int64_t best[5];
  int found = 0;
  for (; found < 5 && found < count; found++) {
    int64_t top = -1;
    for (int64_t i = 0; i < count; i++) {
      bool taken = false;
      for (int k = 0; k < found; k++) taken = taken || best[k] == i;
      if (!taken && (top < 0 || scores[i] > scores[top])) top = i;
    }
    best[found] = top;
    printf("  class %4lld  %.6f\n", (long long)top, (double)scores[top]);
  }
}

/* Plans `graph` for the device, runs it once on the pattern and returns its output (free() it). */
static float *run_once(cs_device *device, const cs_graph *graph, const char *weights,
                       int64_t *out_count) {
  cs_session_options options;
  cs_session *session = NULL;
  float *input = NULL, *output = NULL, *result = NULL;
  int64_t dims[8];

  cs_session_options_init(&options);
  options.policy = "streams";
  options.weights_path = weights;
  if (failed(cs_session_create(device, graph, &options, &session))) goto done;

  int rank = cs_graph_input_shape(graph, 0, dims);
  int64_t n_input = count_elements(dims, rank, options.batch);
  rank = cs_graph_output_shape(graph, 0, dims);
  int64_t n_output = count_elements(dims, rank, options.batch);
  input = malloc((size_t)n_input * sizeof *input);
  output = malloc((size_t)n_output * sizeof *output);
  if (input == NULL || output == NULL) goto done;
  fill_pattern(input, n_input);

  const float *inputs[] = {input};
  float *outputs[] = {output};
  if (failed(cs_session_run(session, inputs, &n_input, 1, outputs, &n_output, 1))) goto done;
  double us = 0;
  if (failed(cs_session_latency(session, &us))) goto done;
  printf("%s: %.0f us\n", cs_graph_name(graph), us);
  *out_count = n_output;
  result = output;
  output = NULL;
done:
  free(input);
  free(output);
  cs_session_destroy(session);
  return result;
}

/* A residual block: y = relu(conv(relu(conv(x))) + x). */
static cs_status build_block(cs_graph **out) {
  static const char conv[] =
      "{\"out_channels\": 8, \"kernel_shape\": [3, 3], \"pads\": [1, 1, 1, 1], \"bias\": true}";
  const struct {
    const char *name, *op, *inputs[2], *attrs;
    int n_inputs;
  } nodes[] = {{"conv1", "Conv", {"x"}, conv, 1},
               {"relu1", "Relu", {"conv1"}, NULL, 1},
               {"conv2", "Conv", {"relu1"}, conv, 1},
               {"add", "Add", {"conv2", "x"}, NULL, 2},
               {"y", "Relu", {"add"}, NULL, 1}};
  cs_builder *builder = NULL;
  cs_status status = cs_builder_create("residual_block", &builder);
  if (status == CS_OK)
    status = cs_builder_input(builder, "x", 4, (const int64_t[]){CS_DIM_N, 8, 16, 16});
  for (size_t i = 0; status == CS_OK && i < sizeof nodes / sizeof nodes[0]; i++)
    status = cs_builder_node(builder, nodes[i].name, nodes[i].op, nodes[i].n_inputs,
                             nodes[i].inputs, nodes[i].attrs);
  if (status == CS_OK) status = cs_builder_output(builder, "y");
  if (status != CS_OK) {
    cs_builder_destroy(builder);
    return status;
  }
  return cs_builder_finish(builder, out);
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 4) {
    fprintf(stderr, "usage: classify MODEL.json [DEVICE [WEIGHTS.safetensors]]\n");
    return 2;
  }
  cs_device *device = NULL;
  cs_graph *model = NULL, *block = NULL;
  float *scores = NULL, *values = NULL;
  int64_t n_scores = 0, n_values = 0;
  int exit_code = 1;
  const cs_logger logger = {on_log, NULL};

  if (failed(cs_graph_load(argv[1], &model))) goto done;
  if (failed(cs_device_open(argc > 2 ? argv[2] : "cpu", &logger, &device))) goto done;
  printf("convsched %s\n", cs_version_string());
  scores = run_once(device, model, argc > 3 ? argv[3] : NULL, &n_scores);
  if (scores == NULL) goto done;
  print_top5(scores, n_scores);

  if (failed(build_block(&block))) goto done;
  values = run_once(device, block, NULL, &n_values);
  if (values == NULL) goto done;
  /* The block ends in a Relu over 8 × 16 × 16 values. */
  for (int64_t i = 0; i < n_values; i++)
    if (!(values[i] >= 0)) goto done;
  exit_code = n_values == 8 * 16 * 16 ? 0 : 1;
done:
  free(scores);
  free(values);
  cs_graph_destroy(block);
  cs_graph_destroy(model);
  cs_device_close(device);
  return exit_code;
}
