/* Planning for requests in flight, on a CPU that is told that it has them: a launch takes a made-up
 * time of the device that says nothing of what its candidate takes alone. */
#define DEVICE_SPEC "cpu"
#include "cpu/search_fixture.h"

#include <pthread.h>

#include "profiler/profiling_in_flight.h"

#define IN_FLIGHT 2

/* ---- The backend: the CPU's, but for times, and requests that take turns ---- */

static const cs_backend_vtable *cpu;
static cs_backend_vtable told;

typedef struct known_one {
  const void *made; /* an exec or a schedule that is there */
  double us;        /* of the device, with requests in flight */
  double alone_us;  /* of a schedule */
  uint64_t hash;    /* of a schedule's candidates and streams, in order */
} known_one;
static known_one execs[4096], schedules[64];
static int streams_of_copies[2]; /* schedules of one candidate's copies: on one stream, on all */
static uint64_t favoured;        /* requests of the schedule with this hash take a microsecond */

static int place_of(const known_one *list, int most, const void *made) {
  int i = 0;
  while (i < most && list[i].made != made) i++;
  assert_in_range(i, 0, most - 1);
  return i;
}

#define FIND(list, what) (&(list)[place_of(list, (int)(sizeof(list) / sizeof(list)[0]), what)])

#define MOST_US 100

/* 1 to MOST_US microseconds of the device; more for all of its cores, which one stream would have.
 */
static double cost_of(const char *id) {
  return (strstr(id, "/t1") || !strstr(id, "/t") ? 1 : 1000) +
         (double)(cs_hash_string(CS_HASH_SEED, id) % MOST_US);
}

static cs_status prepare(cs_backend *backend, const cs_op_desc *desc, const cs_candidate *candidate,
                         cs_exec **out) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  cs_status st = cpu->prepare(backend, desc, candidate, out);
  if (st != CS_OK) return st;
  pthread_mutex_lock(&lock);
  *FIND(execs, NULL) = (known_one){*out, cost_of(candidate->id), 0, 0};
  pthread_mutex_unlock(&lock);
  return CS_OK;
}

static void exec_destroy(cs_exec *exec) {
  FIND(execs, exec)->made = NULL;
  cpu->exec_destroy(exec);
}

/* By itself a candidate takes the longer the less it takes of the device; several launches of one
 * are measured as with requests in flight. */
static cs_status create(cs_backend *backend, const cs_launch *launches, int n,
                        const cs_stream_set *streams, bool use_graph, cs_schedule **out) {
  double us = 0, alone_us = 0;
  bool one_kind = true;
  uint64_t hash = CS_HASH_SEED;
  for (int i = 0; i < n; i++) {
    double its = FIND(execs, launches[i].exec)->us;
    hash = cs_hash_bytes(cs_hash_bytes(hash, &its, sizeof its), &launches[i].stream, sizeof(int));
    us += its;
    alone_us += fabs(its - MOST_US) + 1;
    one_kind = one_kind && launches[i].exec == launches[0].exec;
  }
  if (one_kind) alone_us = us;
  if (one_kind && n > 1) {
    streams_of_copies[0] += streams->n == 1;
    streams_of_copies[1] += streams->n == IN_FLIGHT;
  }
  cs_status st = cpu->schedule_create(backend, launches, n, streams, use_graph, out);
  if (st == CS_OK) *FIND(schedules, NULL) = (known_one){*out, us, alone_us, hash};
  return st;
}

static void destroy(cs_schedule *schedule) {
  FIND(schedules, schedule)->made = NULL;
  cpu->schedule_destroy(schedule);
}

static cs_status latency(cs_schedule *schedule, int count, double *us) {
  for (int i = 0; i < count; i++) us[i] = FIND(schedules, schedule)->alone_us;
  return CS_OK;
}

static struct { int made, live, bursts; } requests;

static cs_status requests_create(cs_backend *backend, const cs_request_slot *slots, int n,
                                 cs_requests **out) {
  (void)backend;
  assert_int_equal(n, IN_FLIGHT);
  assert_ptr_not_equal(slots[0].schedule, slots[1].schedule);
  *out = (cs_requests *)FIND(schedules, slots[0].schedule);
  requests.made++;
  requests.live++;
  return CS_OK;
}

static void requests_destroy(cs_requests *made) {
  (void)made;
  requests.live--;
}

static cs_status burst(cs_requests *made, int in_flight, bool copies, int n,
                       cs_request_times *times) {
  const known_one *schedule = (const known_one *)made;
  double us = schedule->hash == favoured ? 1 : schedule->us;
  assert_int_equal(in_flight, IN_FLIGHT);
  assert_false(copies);
  for (int i = 0; i < n; i++) times[i] = (cs_request_times){i * us, (i + in_flight) * us};
  requests.bursts++;
  return CS_OK;
}

static int64_t batch = 2;

static int open_told(void **state) {
  if (open_all(state) != 0) return -1;
  cpu = test_device->backend->vtable;
  told = *cpu;
  told.prepare = prepare;
  told.exec_destroy = exec_destroy;
  told.schedule_create = create;
  told.schedule_destroy = destroy;
  told.schedule_latency = latency;
  told.requests_create = requests_create;
  told.requests_destroy = requests_destroy;
  told.requests_burst = burst;
  test_device->backend->vtable = &told;
  return 0;
}

static int close_told(void **state) {
  test_device->backend->vtable = cpu;
  return close_all(state);
}

static cs_session_options options_for(int in_flight, int steps) {
  cs_session_options options = default_options("coselect");
  options.batch = batch;
  options.in_flight = in_flight;
  options.search_seconds = steps > 0 ? 60 : steps;
  options.search_steps = steps < 0 ? 0 : steps;
  return options;
}

static cs_session *open_for(int in_flight, int steps) {
  cs_session *session = NULL;
  cs_session_options options = options_for(in_flight, steps);
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  return session;
}

static const cs_op_profile *records_of(const cs_session *session, const char *suffix) {
  char *signature = NULL, name[256];
  assert_ok(cs_program_signature(session->planned.program, true, &signature));
  snprintf(name, sizeof name, "%s%s", signature, suffix);
  free(signature);
  return cs_profile_find(session->device->profile, name);
}

/* ---- Tests ---- */

/* The least that any candidate of the task takes which is measured with requests in flight. */
static double least_of(const cs_session *session, int task, int *measured) {
  char *signature = NULL, *name = NULL;
  const cs_task_choices *choices = &session->planned.choices[task];
  double least = INFINITY;
  assert_ok(cs_op_signature(&session->planned.program->tasks[task].desc, &signature));
  assert_ok(cs_in_flight_signature(signature, IN_FLIGHT, &name));
  const cs_op_profile *known = cs_profile_find(session->device->profile, name);
  for (int i = 0; i < choices->n; i++) {
    const cs_record *record = cs_op_profile_record(known, choices->choices[i].candidate->id);
    if (!record) continue;
    double us = cost_of(record->candidate.id);
    assert_true(fabs(record->measured.cold_us - us) < 1e-6 * us);
    least = fmin(least, us);
    (*measured)++;
  }
  free(signature);
  free(name);
  return least;
}

static void test_what_takes_least_of_the_device_is_planned(void **state) {
  (void)state;
  int before = requests.bursts, measured = 0;
  cs_session *session = open_for(IN_FLIGHT, 30);
  const cs_plan *plan = session->planned.plan;
  assert_true(requests.bursts > before);
  assert_int_equal(requests.live, 0);
  for (int p = 0; p < plan->n_tasks; p++) {
    double least = least_of(session, plan->tasks[p].task, &measured);
    assert_true(cost_of(plan->tasks[p].candidate.id) == least);
  }
  assert_true(measured > plan->n_tasks); /* there was something to choose from */
  const cs_op_profile *known = records_of(session, " with 2 in flight");
  assert_non_null(known);
  assert_true(confirmed(known) > 0);
  assert_verified(session, CS_VERIFY_SAMPLE);
  cs_session_destroy(session);
}

/* What is known is not measured again, and says nothing of one request's latency. */
static void test_records_are_apart_from_those_of_latency(void **state) {
  (void)state;
  cs_session *session = open_for(IN_FLIGHT, -1);
  int bursts = requests.bursts;
  cs_session *again = open_for(IN_FLIGHT, -1);
  assert_int_equal(requests.bursts, bursts);
  assert_same_plan(session->planned.plan, again->planned.plan);
  assert_null(records_of(session, ""));
  cs_session *alone = open_for(1, 5);
  assert_int_equal(requests.bursts, bursts);
  assert_non_null(records_of(alone, ""));
  cs_session_destroy(alone);
  cs_session_destroy(again);
  cs_session_destroy(session);
}

/* The plan that is best for one request's latency is tried as it is. */
static void test_the_plan_for_latency_is_tried(void **state) {
  (void)state;
  batch = 3;
  cs_session *alone = open_for(1, 20);
  favoured = FIND(schedules, alone->realised.schedule)->hash;
  cs_session *session = open_for(IN_FLIGHT, 40);
  assert_same_plan(session->planned.plan, alone->planned.plan);
  cs_session_destroy(session);
  cs_session_destroy(alone);
  favoured = 0;
  batch = 2;
}

/* Copies of an operation take a part of the device's memory only; fewer are in flight then. */
static void test_copies_keep_within_the_memory(void **state) {
  (void)state;
  cs_device_info *info = (cs_device_info *)cpu->info(test_device->backend);
  int64_t memory = info->memory_bytes;
  batch = 4;
  cs_session_destroy(open_for(1, 5)); /* times alone */
  memset(streams_of_copies, 0, sizeof streams_of_copies);
  cs_session_destroy(open_for(IN_FLIGHT, 5));
  assert_int_equal(streams_of_copies[0], 0);
  assert_true(streams_of_copies[1] > 0);
  batch = 5;
  cs_session_destroy(open_for(1, 5));
  memset(streams_of_copies, 0, sizeof streams_of_copies);
  info->memory_bytes = 1 << 20;
  cs_session_destroy(open_for(IN_FLIGHT, 5));
  info->memory_bytes = memory;
  assert_true(streams_of_copies[0] > 0);
  batch = 2;
}

/* The limit is for the arenas of all requests. */
static void test_memory_limit_is_of_all_requests(void **state) {
  (void)state;
  cs_session *session = open_for(IN_FLIGHT, -1), *limited = NULL;
  cs_session_options options = options_for(IN_FLIGHT, 5);
  int64_t arena = session->planned.sequential.arena;
  cs_session_destroy(session);
  options.memory_limit = IN_FLIGHT * arena;
  assert_ok(cs_session_create(test_device, test_graph, &options, &limited));
  assert_true(limited->planned.plan->arena_bytes <= arena);
  cs_session_destroy(limited);
  options.memory_limit = arena;
  assert_status(cs_session_create(test_device, test_graph, &options, &limited), CS_CODE_NOT_FOUND,
                "no plan of module holds the memory limit");
}

static void assert_refused(cs_session_options options, const char *fragment) {
  cs_session *session = NULL;
  assert_status(cs_session_create(test_device, test_graph, &options, &session), CS_CODE_USAGE,
                fragment);
  assert_null(session);
}

static void test_wrong_numbers_are_refused(void **state) {
  (void)state;
  char *json = NULL;
  assert_refused(options_for(-1, 0), "in_flight -1: wanted 0 to 16");
  assert_refused(options_for(17, 0), "in_flight 17: wanted 0 to 16");
  cs_session_options calls = options_for(IN_FLIGHT, 0);
  calls.no_graph = true;
  assert_refused(calls, "without no_graph");
  test_device->backend->vtable = cpu;
  assert_refused(options_for(IN_FLIGHT, 0), "no requests in flight");
  test_device->backend->vtable = &told;
  cs_session *session = open_for(IN_FLIGHT, -1);
  assert_status(cs_session_ablate(session, "streams", &json), CS_CODE_USAGE, "in_flight 2");
  cs_session_destroy(session);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_takes_least_of_the_device_is_planned),
      cmocka_unit_test(test_records_are_apart_from_those_of_latency),
      cmocka_unit_test(test_the_plan_for_latency_is_tried),
      cmocka_unit_test(test_copies_keep_within_the_memory),
      cmocka_unit_test(test_memory_limit_is_of_all_requests),
      cmocka_unit_test(test_wrong_numbers_are_refused),
  };
  return cmocka_run_group_tests(tests, open_told, close_told);
}
