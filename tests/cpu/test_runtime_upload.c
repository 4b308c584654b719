/* Weights piece by piece to a CPU device that is told to have memory of its own, and to be slow, or
 * to fail, when something is copied to it. */
#define DEVICE_SPEC "cpu"
#include <stdatomic.h>
#include <unistd.h>

#include "upload_tests.h"

static struct {
  const cs_backend_vtable *real;
  cs_backend_vtable vtable;
  atomic_int begun, packed;         /* tasks whose packing was */
  atomic_bool carrying;             /* a copy is under way */
  atomic_int beside;                /* tasks packed meanwhile */
  int copies, fail_copy, fail_pack; /* number of the one that fails; < 0: none */
  int patience_ms;                  /* of a copy, for something to be packed meanwhile */
  int buffers;                      /* live */
  int64_t buffer_bytes;             /* of all that were made */
} slow;

/* The host's bytes stay as they are until the copy has ended. Waits until something is packed
 * beside it, not for ever: nothing may be. */
static cs_status slow_upload(cs_backend *backend, void *device, const void *host, int64_t bytes) {
  int packed = slow.packed;
  void *before = malloc((size_t)bytes);
  assert_non_null(before);
  memcpy(before, host, (size_t)bytes);
  slow.carrying = true;
  for (int ms = 0; ms < slow.patience_ms && slow.packed == packed; ms++) usleep(1000);
  bool same = memcmp(before, host, (size_t)bytes) == 0;
  slow.carrying = false;
  free(before);
  if (!same) return cs_error(CS_CODE_INTERNAL, "overwritten while it was copied");
  if (slow.copies++ == slow.fail_copy) return cs_error(CS_CODE_DEVICE, "the copy failed");
  return slow.real->upload(backend, device, host, bytes);
}

static cs_status slow_pack(const cs_exec *exec, const float *weight, const float *bias, void *out) {
  if (slow.begun++ == slow.fail_pack) return cs_error(CS_CODE_DEVICE, "packing failed");
  cs_status st = slow.real->pack_weights(exec, weight, bias, out);
  slow.beside += slow.carrying;
  slow.packed++;
  return st;
}

static cs_status slow_host_allocate(cs_backend *backend, int64_t bytes, void **out) {
  (void)backend;
  *out = calloc(1, (size_t)bytes);
  slow.buffers++;
  slow.buffer_bytes += bytes;
  return CS_OK;
}

static void slow_host_release(cs_backend *backend, void *memory) {
  (void)backend;
  slow.buffers--;
  free(memory);
}

static int open_slow(void **state) {
  int rc = open_all(state);
  if (rc != 0) return rc;
  slow.real = test_device->backend->vtable;
  slow.vtable = *slow.real;
  slow.vtable.memory_is_hosts = false;
  slow.vtable.upload = slow_upload;
  slow.vtable.pack_weights = slow_pack;
  slow.vtable.host_allocate = slow_host_allocate;
  slow.vtable.host_release = slow_host_release;
  return 0;
}

/* A session of the device as it is, which is then told to be slow. */
static cs_session *session_on_slow(void) {
  test_device->backend->vtable = slow.real;
  cs_session *session = new_session("sequential");
  test_device->backend->vtable = &slow.vtable;
  slow.begun = slow.packed = slow.beside = 0;
  slow.copies = slow.buffers = 0;
  slow.buffer_bytes = 0;
  slow.fail_copy = slow.fail_pack = -1;
  slow.patience_ms = 5;
  return session;
}

static void close_session(cs_session *session) {
  test_device->backend->vtable = slow.real;
  cs_session_destroy(session);
}

static int64_t largest_task(const cs_session *session) {
  const cs_realised *realised = &session->realised;
  int64_t largest = 0;
  for (int p = 0; p < session->planned.plan->n_tasks; p++) {
    const cs_exec *exec = realised->execs[realised->exec_of[p]];
    largest = cs_max_i64(largest, slow.real->exec_weight_bytes(exec));
  }
  return cs_round_up(largest, 256);
}

static void test_pieces_are_packed_while_others_are_copied(void **state) {
  (void)state;
  cs_session *session = session_on_slow();
  cs_weights weights = weights_of_session(session);
  char *wanted = packed_alone(session);
  for (int beside = 0; beside < 2; beside++) {
    cs_upload_way way = {.piece_bytes = 1, .beside = beside};
    cs_upload_times times = {0};
    cs_realised other = other_weights(session);
    slow.beside = 0;
    slow.patience_ms = beside ? 2000 : 5; /* on a busy machine, too */
    assert_ok(cs_upload_pieces(&weights, &way, &other, &times));
    assert_weights(&other, wanted);
    assert_int_equal(slow.beside > 0, beside);
    assert_true(times.pack > 0 && times.copy > 0);
    if (!beside) assert_true(times.wait < times.copy);
    slow.real->release(other.backend, other.weights);
  }
  free(wanted);
  close_session(session);
}

/* Two pieces of host memory, or two tasks' where those are more, and less where less will do. */
static void test_host_memory_is_bounded(void **state) {
  (void)state;
  static const int64_t pieces[] = {1, 5001, 70000, 1 << 24};
  cs_session *session = session_on_slow();
  cs_weights weights = weights_of_session(session);
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    cs_upload_way way = {.piece_bytes = pieces[i], .beside = true, .pinned = true};
    cs_upload_times times = {0};
    cs_realised other = other_weights(session);
    slow.buffer_bytes = 0;
    assert_ok(cs_upload_pieces(&weights, &way, &other, &times));
    int64_t bound = 2 * cs_max_i64(pieces[i], largest_task(session));
    assert_true(slow.buffer_bytes > 0 && slow.buffer_bytes <= bound);
    assert_true(slow.buffer_bytes <= other.weights_bytes);
    assert_int_equal(slow.buffers, 0);
    slow.real->release(other.backend, other.weights);
  }
  close_session(session);
}

/* Whichever copy or task fails, its error comes back, and nothing is left under way. */
static void test_failures_are_told(void **state) {
  (void)state;
  cs_session *session = session_on_slow();
  cs_weights weights = weights_of_session(session);
  cs_upload_way way = {.piece_bytes = 5001, .beside = true, .pinned = true};
  cs_upload_times times = {0};
  cs_realised other = other_weights(session);
  assert_ok(cs_upload_pieces(&weights, &way, &other, &times));
  int copies = slow.copies, tasks = slow.packed;
  assert_true(copies > 2 && tasks >= copies);
  for (int i = 0; i < copies; i++) {
    slow.copies = 0;
    slow.fail_copy = i;
    assert_status(cs_upload_pieces(&weights, &way, &other, &times), CS_CODE_DEVICE,
                  "the copy failed");
    assert_int_equal(slow.buffers, 0);
    assert_int_equal(slow.copies, i + 1);
    assert_false(slow.carrying);
  }
  slow.fail_copy = -1;
  for (int i = 0; i < tasks; i++) {
    slow.begun = 0;
    slow.fail_pack = i;
    assert_status(cs_upload_pieces(&weights, &way, &other, &times), CS_CODE_DEVICE,
                  "packing failed");
    assert_int_equal(slow.buffers, 0);
    assert_false(slow.carrying);
  }
  slow.real->release(other.backend, other.weights);
  close_session(session);
}

/* A session on such a device computes the right thing. */
static void test_a_session_on_memory_of_its_own(void **state) {
  (void)state;
  close_session(session_on_slow());
  test_device->backend->vtable = &slow.vtable;
  cs_session *session = new_session("sequential");
  assert_true(slow.copies > 0);
  assert_true(session->realised.uploading.copy > 0);
  assert_true(session->realised.uploading.all >= session->realised.uploading.pack);
  assert_verified(session, CS_VERIFY_SAMPLE);
  close_session(session);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_byte_arrives),
      cmocka_unit_test(test_pieces_are_packed_while_others_are_copied),
      cmocka_unit_test(test_host_memory_is_bounded),
      cmocka_unit_test(test_failures_are_told),
      cmocka_unit_test(test_a_session_on_memory_of_its_own),
  };
  return cmocka_run_group_tests(tests, open_slow, close_all);
}
