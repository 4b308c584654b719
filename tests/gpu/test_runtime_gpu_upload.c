/* Weights piece by piece to the first GPU, and what each way of it takes. */
#define DEVICE_SPEC "cuda:0"
#include "upload_tests.h"

#define CONVS 16
#define REPEATS 5

/* A chain of convolutions with 151 MB of weights in f32. */
static cs_graph *large_graph(void) {
  cs_strbuf text = {0};
  cs_graph *graph = NULL;
  cs_strbuf_printf(&text,
                   "{\"schema\":\"convsched.graph/1\",\"name\":\"large\",\"inputs\":[{\"name\":"
                   "\"c0\",\"shape\":[\"N\",512,7,7],\"dtype\":\"f32\"}],\"nodes\":[");
  for (int i = 0; i < CONVS; i++) {
    cs_strbuf_printf(
        &text,
        "%s{\"name\":\"c%d\",\"op\":\"Conv\",\"inputs\":[\"c%d\"],\"attrs\":{"
        "\"out_channels\":512,\"kernel_shape\":[3,3],\"pads\":[1,1,1,1],\"bias\":true}}",
        i ? "," : "", i + 1, i);
  }
  cs_strbuf_printf(&text, "],\"outputs\":[\"c%d\"]}", CONVS);
  assert_ok(cs_graph_parse(text.data, strlen(text.data), "large.json", &graph));
  cs_strbuf_free(&text);
  return graph;
}

/* Five times each in turn; the least of each part, since the first time finds cold memory. */
static void test_what_the_ways_take(void **state) {
  (void)state;
  static const struct {
    const char *name;
    cs_upload_way way;
  } ways[] = {{"one after the other", {(int64_t)32 << 20, false, false}},
              {"beside", {(int64_t)32 << 20, true, false}},
              {"beside, pinned", {(int64_t)32 << 20, true, true}},
              {"beside, 8 MiB", {(int64_t)8 << 20, true, false}},
              {"beside, 8 MiB, pinned", {(int64_t)8 << 20, true, true}}};
  enum { WAYS = sizeof ways / sizeof *ways };
  cs_graph *graph = large_graph();
  cs_session *session = NULL;
  cs_session_options options = default_options("sequential");
  cs_upload_times least[WAYS];
  assert_ok(cs_session_create(test_device, graph, &options, &session));
  cs_weights weights = weights_of_session(session);
  char *wanted = packed_alone(session);
  cs_realised other = other_weights(session);
  for (int repeat = 0; repeat < REPEATS; repeat++) {
    for (int w = 0; w < WAYS; w++) {
      cs_upload_times times = {0};
      double started = cs_now_seconds();
      assert_ok(cs_upload_pieces(&weights, &ways[w].way, &other, &times));
      times.all = cs_now_seconds() - started;
      if (repeat == 0 || times.all < least[w].all) least[w] = times;
    }
  }
  assert_weights(&other, wanted);
  print_message("%lld bytes of weights, ms: all (buffers, pack, copy, wait)\n",
                (long long)other.weights_bytes);
  for (int w = 0; w < WAYS; w++) {
    const cs_upload_times *t = &least[w];
    print_message("%-24s %7.2f (%6.2f %6.2f %6.2f %6.2f)\n", ways[w].name, 1e3 * t->all,
                  1e3 * t->buffers, 1e3 * t->pack, 1e3 * t->copy, 1e3 * t->wait);
  }
  other.backend->vtable->release(other.backend, other.weights);
  free(wanted);
  cs_session_destroy(session);
  cs_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_byte_arrives),
                                     cmocka_unit_test(test_what_the_ways_take)};
  for (const cs_backend_entry *entry = cs_backend_entries; entry->name; entry++) {
    char reason[512];
    if (strcmp(entry->name, "cuda") != 0 || entry->count(reason, sizeof reason) == 0) continue;
    return cmocka_run_group_tests(tests, open_all, close_all);
  }
  return 77;
}
