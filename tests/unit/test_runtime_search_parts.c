/* Which priorities and parts a measured search tries: against a stand-in for the measuring, which
 * takes what the model expects to be faster. And how the option is read. No device needed. */
#include "profiler/partition.h"
#include "runtime/planning.h"
#include "runtime/search_state.h"
#include "unit/parts_fixture.h"

#define MOST_TRIES 400

/* ---- The stand-in ---- */

static struct {
  int parts[MOST_TRIES], first_part[MOST_TRIES], high[MOST_TRIES]; /* of each that was tried */
  int n;
} tried;

cs_status cs_search_try(cs_search *s, const cs_configuration *configuration) {
  assert_true(cs_configuration_valid(configuration, s->input));
  if (cs_configuration_equal(configuration, &s->best)) return CS_OK;
  assert_true(tried.n < MOST_TRIES);
  tried.parts[tried.n] = configuration->n_parts;
  tried.first_part[tried.n] = configuration->n_parts ? configuration->parts[0] : 0;
  tried.high[tried.n++] = parts_high(configuration);
  s->measured++;
  double us = parts_predicted(s->model, configuration);
  if (us > 0.999 * s->best_us) return CS_OK;
  s->best_us = us;
  s->accepted++;
  cs_configuration_free(&s->best);
  return cs_configuration_copy(configuration, &s->best);
}

bool cs_search_is_over(const cs_search *s) {
  return s->round < 0;
}

typedef struct subject {
  parts_block b;
  cs_search search;
} subject;

static void make(subject *s) {
  memset(s, 0, sizeof *s);
  memset(&tried, 0, sizeof tried);
  parts_block_init(&s->b);
  s->b.input.priorities = true;
  s->b.input.n_splits = 2;
  s->b.input.splits[0] = half;
  s->b.input.splits[1] = quarter;
  s->search.input = &s->b.input;
  assert_ok(cs_coselect_create(&s->b.input, &s->search.model));
  parts_plain(&s->search.best);
  s->search.best_us = parts_predicted(s->search.model, &s->search.best);
}

static void destroy(subject *s) {
  cs_coselect_destroy(s->search.model);
  cs_configuration_free(&s->search.best);
  fixture_free(&s->b.f);
}

/* ---- Tests ---- */

/* The chain is the critical path: it comes first, all at once. */
static void the_critical_path_comes_first(void **state) {
  (void)state;
  subject s;
  make(&s);
  double plain = s.search.best_us;
  assert_ok(cs_search_priorities(&s.search));
  assert_int_equal(tried.high[0], 3);
  assert_true(s.search.accepted > 0);
  assert_true(s.search.best_us < plain);
  for (int p = 1; p <= 3; p++) assert_int_equal(s.search.best.places[p].priority, 1);
  assert_int_equal(s.search.best.places[0].priority, 0);
  for (int i = 0; i < tried.n; i++) assert_int_equal(tried.parts[i], 0);
  destroy(&s);
}

static void splits_are_tried_and_the_better_one_stays(void **state) {
  (void)state;
  subject s;
  make(&s);
  double plain = s.search.best_us;
  assert_ok(cs_search_partitions(&s.search));
  assert_true(tried.n > 0);
  assert_true(s.search.best_us < plain);
  assert_int_equal(s.search.best.n_parts, 2);
  assert_int_equal(s.search.best.parts[0], 4); /* exchanged for the half that came first */
  for (int i = 0; i < tried.n; i++) assert_int_equal(tried.high[i], 0);
  destroy(&s);
}

/* Where measuring says that parts do not pay, the block leaves them. */
static void parts_to_no_use_are_left(void **state) {
  (void)state;
  subject s;
  const int from[] = {0, 1}, to[] = {0, 1}; /* the large kernel on the small part */
  make(&s);
  assert_true(cs_coselect_enter_parts(s.search.model, 0, from, &quarter, to, &s.search.best));
  cs_configuration_number_streams(&s.search.best);
  s.search.best_us = parts_predicted(s.search.model, &s.search.best);
  assert_ok(cs_search_partitions(&s.search));
  assert_int_equal(tried.parts[0], 0);
  assert_true(s.search.accepted > 0);
  destroy(&s);
}

static void only_what_is_allowed_is_tried(void **state) {
  (void)state;
  subject s;
  make(&s);
  s.b.input.priorities = false;
  s.b.input.n_splits = 0;
  assert_ok(cs_search_priorities(&s.search));
  assert_ok(cs_search_partitions(&s.search));
  assert_int_equal(tried.n, 0);
  s.b.input.n_splits = 1; /* half alone */
  assert_ok(cs_search_partitions(&s.search));
  assert_true(tried.n > 0);
  for (int i = 0; i < tried.n; i++) assert_true(tried.first_part[i] == 8 || !tried.parts[i]);
  int before = tried.n;
  s.b.input.priorities = true;
  s.search.round = -1; /* over */
  assert_ok(cs_search_priorities(&s.search));
  assert_ok(cs_search_partitions(&s.search));
  assert_int_equal(tried.n, before);
  destroy(&s);
}

/* A search with the streams of the best on parts finds variants for those streams. */
static void blocks_are_searched_on_their_parts(void **state) {
  (void)state;
  subject s;
  make(&s);
  assert_ok(cs_search_partitions(&s.search));
  cs_configuration start;
  parts_plain(&start);
  int accepted = s.search.accepted;
  double split = s.search.best_us;
  assert_ok(cs_search_blocks(&s.search, &start, 1));
  assert_true(s.search.best_us <= split);
  assert_int_equal(s.search.best.n_parts, 2);
  assert_true(s.search.accepted >= accepted);
  cs_configuration_free(&start);
  destroy(&s);
}

static void the_option_is_read(void **state) {
  (void)state;
  cs_device_info h100 = {.name = "H100", .units = 132, .part_least = 8, .part_step = 8};
  const cs_device_info cpu = {.name = "CPU", .units = 8};
  const char *const wrong[] = {"",        "32",     "32,",          ",32",    "32,100,",
                               "a,b",     "32;100", "0,132",        "-8,140", "8,8,8,8,8",
                               "32,100 ", "none,",  "99999999999,8"};
  cs_sm_parts splits[CS_MOST_SPLITS];
  int n = -1;
  assert_ok(cs_partition_splits(NULL, &h100, splits, &n));
  assert_int_equal(n, 2);
  assert_int_equal(splits[0].units[0], 32);
  assert_int_equal(splits[1].units[1], 68);
  assert_ok(cs_partition_splits("none", &h100, splits, &n));
  assert_int_equal(n, 0);
  assert_ok(cs_partition_splits("16,16,100", &h100, splits, &n));
  assert_int_equal(n, 1);
  assert_int_equal(splits[0].n, 3);
  assert_int_equal(splits[0].units[2], 100);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_fails(cs_partition_splits(wrong[i], &h100, splits, &n), CS_CODE_USAGE, "wanted none or");
  assert_fails(cs_partition_splits("20,112", &h100, splits, &n), CS_CODE_BAD_INPUT, "20 units");
  assert_fails(cs_partition_splits("4,4", &cpu, splits, &n), CS_CODE_BAD_INPUT, "cannot be split");
  assert_ok(cs_partition_splits(NULL, &cpu, splits, &n));
  assert_int_equal(n, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_critical_path_comes_first),
      cmocka_unit_test(splits_are_tried_and_the_better_one_stays),
      cmocka_unit_test(parts_to_no_use_are_left),
      cmocka_unit_test(only_what_is_allowed_is_tried),
      cmocka_unit_test(blocks_are_searched_on_their_parts),
      cmocka_unit_test(the_option_is_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
