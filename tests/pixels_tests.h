/* Tests of pipelines of pixels that every device must pass. The including file defines DEVICE_SPEC.
 */
#ifndef CONVSCHED_TESTS_PIXELS_TESTS_H_
#define CONVSCHED_TESTS_PIXELS_TESTS_H_

#include "runtime/pipeline.h"
#include "session_fixture.h"

/* A generator of pictures of CHANNELS, 8 by WIDTH, whose values go well beyond -1 and 1. */
#define GENERATOR(channels, width)                                                        \
  "{\"schema\":\"convsched.graph/1\",\"name\":\"generator\",\"inputs\":[{\"name\":\"z\"," \
  "\"shape\":[\"N\",16,4," width                                                          \
  "],\"dtype\":\"f32\"}],\"nodes\":[{\"name\":\"up\",\"op\":"                             \
  "\"ConvTranspose\",\"inputs\":[\"z\"],\"attrs\":{\"out_channels\":" channels            \
  ",\"kernel_shape\":[4,4],\"strides\":[2,2],\"pads\":[1,1,1,1],\"bias\":true}}],"        \
  "\"outputs\":[\"up\"]}"

static uint8_t pixel_wanted(float x) {
  float scaled = (x + 1.0f) * 127.5f;
  return scaled <= 0 ? 0 : scaled >= 255 ? 255 : (uint8_t)rintf(scaled);
}

static void check_pictures(const float *tensor, const uint8_t *pixels, const int64_t *dims) {
  int extremes = 0;
  for (int64_t n = 0, at = 0; n < dims[0]; n++)
    for (int64_t h = 0; h < dims[2]; h++)
      for (int64_t w = 0; w < dims[3]; w++)
        for (int64_t c = 0; c < dims[1]; c++, at++) {
          float x = tensor[((n * dims[1] + c) * dims[2] + h) * dims[3] + w];
          extremes += x < -1 || x > 1;
          if (pixels[at] == pixel_wanted(x)) continue;
          fail_msg("picture %d, row %d, column %d, channel %d: %d of %.9g", (int)n, (int)h, (int)w,
                   (int)c, pixels[at], (double)x);
        }
  assert_true(extremes > 0);
}

static void check_generator(const char *json, cs_precision precision) {
  cs_graph *graph = NULL;
  cs_session *session = NULL;
  cs_pipeline *pipeline = NULL;
  cs_session_options options = default_options("sequential");
  options.batch = 3;
  options.precision = precision;
  assert_ok(cs_graph_parse(json, strlen(json), "generator.json", &graph));
  assert_ok(cs_session_create(test_device, graph, &options, &session));
  int rank;
  int64_t dims[8], in_dims[8], size = 1, in_size = 1;
  assert_ok(cs_session_shape(session, "up", &rank, dims));
  assert_ok(cs_session_shape(session, "z", &rank, in_dims));
  for (int d = 0; d < 4; d++) size *= dims[d], in_size *= in_dims[d];
  float *in = cs_calloc((size_t)in_size, sizeof *in), *out = cs_calloc((size_t)size, sizeof *out);
  assert_ok(cs_pipeline_create_pixels(session, 2, &pipeline));
  for (int request = 0; request < 5; request++) {
    const float *inputs[] = {in};
    float *outputs[] = {out};
    const uint8_t *pixels = NULL;
    int64_t bytes = 0;
    cs_rng rng;
    cs_rng_init(&rng, 5, (uint64_t)request);
    cs_rng_fill_normal(&rng, in, in_size, 0, 2);
    assert_ok(cs_pipeline_submit(pipeline, request % 2, inputs, &in_size, 1));
    assert_ok(cs_pipeline_wait_pixels(pipeline, request % 2, &pixels, &bytes));
    assert_ok(cs_session_run(session, inputs, &in_size, 1, outputs, &size, 1));
    assert_int_equal(bytes, size);
    check_pictures(out, pixels, dims);
  }
  free(in);
  free(out);
  cs_pipeline_destroy(pipeline);
  cs_session_destroy(session);
  cs_graph_destroy(graph);
}

static void test_pixels_are_those_of_the_outputs(void **state) {
  (void)state;
  bool on_cpu = strcmp(DEVICE_SPEC, "cpu") == 0;
  for (int p = CS_PRECISION_F32; p <= (on_cpu ? CS_PRECISION_F32 : CS_PRECISION_BF16); p++) {
    check_generator(GENERATOR("3", "4"), (cs_precision)p); /* rows of whole words */
    check_generator(GENERATOR("3", "5"), (cs_precision)p);
    check_generator(GENERATOR("1", "6"), (cs_precision)p);
    check_generator(GENERATOR("1", "7"), (cs_precision)p);
  }
}

/* In flight together, in whatever order they are waited for, every slot has its own. */
static void test_windows_leave_pixels_right(void **state) {
  (void)state;
  static const char json[] = GENERATOR("3", "4");
  cs_graph *graph = NULL;
  cs_session *session = NULL;
  cs_pipeline *pipeline = NULL;
  cs_pipeline_rate rate;
  cs_session_options options = default_options("sequential");
  assert_ok(cs_graph_parse(json, strlen(json), "generator.json", &graph));
  assert_ok(cs_session_create(test_device, graph, &options, &session));
  assert_ok(cs_pipeline_create_pixels(session, 3, &pipeline));
  const uint8_t *first[3], *again;
  int64_t bytes;
  uint8_t *kept = NULL;
  for (int slot = 0; slot < 3; slot++) assert_ok(cs_pipeline_submit(pipeline, slot, NULL, NULL, 0));
  for (int slot = 2; slot >= 0; slot--) {
    assert_ok(cs_pipeline_wait_pixels(pipeline, slot, &first[slot], &bytes));
    if (slot == 2) kept = cs_calloc(1, (size_t)bytes);
    if (slot == 2) memcpy(kept, first[slot], (size_t)bytes);
    assert_memory_equal(first[slot], kept, (size_t)bytes); /* of the session's inputs all */
  }
  for (int copies = 0; copies < 2; copies++) {
    assert_ok(cs_pipeline_window(pipeline, 3, 50, copies > 0, &rate));
    assert_true(rate.images_per_s > 0);
  }
  assert_ok(cs_pipeline_submit(pipeline, 1, NULL, NULL, 0));
  assert_ok(cs_pipeline_wait_pixels(pipeline, 1, &again, &bytes));
  assert_memory_equal(again, kept, (size_t)bytes);
  free(kept);
  cs_pipeline_destroy(pipeline);
  cs_session_destroy(session);
  cs_graph_destroy(graph);
}

static void test_what_is_no_picture_is_refused(void **state) {
  (void)state;
  static const char five[] = GENERATOR("5", "4"), three[] = GENERATOR("3", "4");
  cs_graph *graph = NULL;
  cs_session *session = new_session("sequential");
  cs_pipeline *pipeline = NULL;
  cs_pipeline_check check;
  cs_session_options options = default_options("sequential");
  const uint8_t *pixels;
  float *outputs[1] = {NULL};
  int64_t bytes;
  assert_status(cs_pipeline_create_pixels(session, 1, &pipeline), CS_CODE_USAGE, "wanted pictures");
  assert_ok(cs_pipeline_create(session, 1, &pipeline));
  assert_status(cs_pipeline_wait_pixels(pipeline, 0, &pixels, &bytes), CS_CODE_USAGE, "tensors");
  cs_pipeline_destroy(pipeline);
  cs_session_destroy(session);
  assert_ok(cs_graph_parse(five, strlen(five), "five.json", &graph));
  assert_ok(cs_session_create(test_device, graph, &options, &session));
  assert_status(cs_pipeline_create_pixels(session, 1, &pipeline), CS_CODE_USAGE, "wanted pictures");
  assert_null(pipeline);
  cs_session_destroy(session);
  cs_graph_destroy(graph);
  assert_ok(cs_graph_parse(three, strlen(three), "three.json", &graph));
  assert_ok(cs_session_create(test_device, graph, &options, &session));
  assert_ok(cs_pipeline_create_pixels(session, 1, &pipeline));
  assert_status(cs_pipeline_wait_pixels(pipeline, 0, &pixels, &bytes), CS_CODE_USAGE, "no request");
  assert_status(cs_pipeline_wait(pipeline, 0, outputs, &bytes, 1), CS_CODE_USAGE, "are pixels");
  assert_status(cs_pipeline_verify(pipeline, &check), CS_CODE_USAGE, "are pixels");
  cs_pipeline_destroy(pipeline);
  cs_session_destroy(session);
  cs_graph_destroy(graph);
}

static int run_pixels_tests(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_pixels_are_those_of_the_outputs),
                                     cmocka_unit_test(test_windows_leave_pixels_right),
                                     cmocka_unit_test(test_what_is_no_picture_is_refused)};
  return cmocka_run_group_tests(tests, open_all, close_all);
}

#endif
