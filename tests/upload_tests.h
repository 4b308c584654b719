/* Tests of weights that go to a device piece by piece, which every device must pass. The including
 * file defines DEVICE_SPEC. */
#ifndef CONVSCHED_TESTS_UPLOAD_TESTS_H_
#define CONVSCHED_TESTS_UPLOAD_TESTS_H_

#include "runtime/upload.h"
#include "session_fixture.h"

#define FILLED 0xA5

static cs_weights weights_of_session(const cs_session *session) {
  return (cs_weights){.program = session->planned.program,
                      .plan = session->planned.plan,
                      .params = session->shared->params};
}

/* Every task's weights packed by themselves, at their places; zeros between. free() releases. */
static char *packed_alone(const cs_session *session) {
  const cs_realised *realised = &session->realised;
  const cs_plan *plan = session->planned.plan;
  char *packed = calloc(1, (size_t)realised->weights_bytes);
  assert_non_null(packed);
  for (int p = 0; p < plan->n_tasks; p++) {
    const cs_exec *exec = realised->execs[realised->exec_of[p]];
    if (realised->backend->vtable->exec_weight_bytes(exec) == 0) continue;
    assert_ok(cs_pack_weights(realised->backend, session->shared->params, session->planned.program,
                              plan->tasks[p].task, exec, packed + realised->weight_offset[p]));
  }
  return packed;
}

/* The session's weights once more, to memory of their own. */
static cs_realised other_weights(const cs_session *session) {
  cs_realised other = session->realised;
  const cs_backend_vtable *vtable = other.backend->vtable;
  assert_ok(vtable->allocate(other.backend, other.weights_bytes, &other.weights));
  assert_ok(vtable->fill(other.backend, other.weights, FILLED, other.weights_bytes));
  return other;
}

static void assert_weights(const cs_realised *realised, const char *wanted) {
  char *found = malloc((size_t)realised->weights_bytes);
  assert_non_null(found);
  assert_ok(realised->backend->vtable->download(realised->backend, found, realised->weights,
                                                realised->weights_bytes));
  for (int64_t i = 0; i < realised->weights_bytes; i++) {
    if (found[i] != wanted[i]) fail_msg("byte %lld differs", (long long)i);
  }
  free(found);
}

/* A piece a task, pieces of some tasks, all in one piece; sizes that nothing is a multiple of. */
static void test_every_byte_arrives(void **state) {
  (void)state;
  static const int64_t pieces[] = {1, 300, 4096, 5001, 20000, 100003, 1 << 20, 32 << 20};
  cs_session *session = new_session("sequential");
  cs_weights weights = weights_of_session(session);
  char *wanted = packed_alone(session);
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    for (int how = 0; how < 4; how++) {
      cs_upload_way way = {.piece_bytes = pieces[i], .beside = how & 1, .pinned = how & 2};
      cs_upload_times times = {0};
      cs_realised other = other_weights(session);
      assert_ok(cs_upload_pieces(&weights, &way, &other, &times));
      assert_weights(&other, wanted);
      assert_true(times.pack > 0 && times.copy > 0);
      other.backend->vtable->release(other.backend, other.weights);
    }
  }
  free(wanted);
  cs_session_destroy(session);
}

#endif
