/* Weights to the device. Where its memory is the host's they are packed in place, all tasks at
 * once. Elsewhere they go piece by piece: while a thread uploads one, the next is packed into a
 * second buffer, so that two pieces are in host memory and no more. */
#include "runtime/upload.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"

const cs_upload_way cs_upload_default = {.piece_bytes = (int64_t)32 << 20, .beside = true};

/* ---- Packing ---- */

cs_status cs_pack_weights(cs_backend *backend, const cs_params *params, const cs_program *program,
                          int task, const cs_exec *exec, void *host) {
  const cs_task *t = &program->tasks[task];
  cs_node_params its;
  CS_RETURN_IF_ERROR(cs_node_params_open(params, program->graph, t->node, &its));
  cs_status st = CS_OK;
  if (its.n_weight != cs_op_weight_elements(&t->desc) ||
      its.n_bias != cs_op_bias_elements(&t->desc)) {
    st = cs_error(CS_CODE_INTERNAL, "%s: %lld weights and %lld biases, wanted %lld and %lld",
                  t->name, (long long)its.n_weight, (long long)its.n_bias,
                  (long long)cs_op_weight_elements(&t->desc),
                  (long long)cs_op_bias_elements(&t->desc));
  } else {
    st = backend->vtable->pack_weights(exec, its.weight, its.bias, host);
  }
  cs_node_params_close(params, &its);
  return cs_annotate(st, "%s: ", t->name);
}

/* Of a position that has weights of its own: owner[position] is itself. */
static int64_t packed_bytes(const cs_weights *weights, const cs_realised *realised, int position) {
  const cs_exec *exec = realised->execs[realised->exec_of[position]];
  if (weights->owner && weights->owner[position] != position) return 0;
  return cs_round_up(realised->backend->vtable->exec_weight_bytes(exec), 256);
}

/* ---- What parts of a node share ---- */

/* Hash of a position's packed weights, whose bytes are not zero. */
static cs_status hash_packed(const cs_weights *weights, const cs_realised *realised, int position,
                             uint64_t *hash) {
  const cs_exec *exec = realised->execs[realised->exec_of[position]];
  size_t bytes = (size_t)realised->backend->vtable->exec_weight_bytes(exec);
  void *host = cs_calloc(1, bytes);
  if (!host) return cs_no_memory("packed weights", bytes);
  cs_status st = cs_pack_weights(realised->backend, weights->params, weights->program,
                                 weights->plan->tasks[position].task, exec, host);
  *hash = cs_hash_bytes(CS_HASH_SEED, host, bytes);
  free(host);
  return st;
}

typedef struct shared_weights {
  const cs_weights *weights;
  const cs_realised *realised;
  int *owner;
  uint64_t *hash; /* of owners; 0: not known */
} shared_weights;

/* Parts of one size have one prepared candidate; those of others may want the same bytes, too. */
static cs_status is_shared(const shared_weights *s, int owner, int position, bool *same) {
  const cs_backend_vtable *vtable = s->realised->backend->vtable;
  const int *exec_of = s->realised->exec_of;
  *same = exec_of[owner] == exec_of[position];
  if (*same || vtable->exec_weight_bytes(s->realised->execs[exec_of[owner]]) !=
                   vtable->exec_weight_bytes(s->realised->execs[exec_of[position]])) {
    return CS_OK;
  }
  const int both[2] = {owner, position};
  for (int i = 0; i < 2; i++) {
    if (s->hash[both[i]]) continue;
    CS_RETURN_IF_ERROR(hash_packed(s->weights, s->realised, both[i], &s->hash[both[i]]));
  }
  *same = s->hash[owner] == s->hash[position];
  return CS_OK;
}

/* What the first part of a node uploads serves all that pack the same bytes. */
static cs_status find_owners(const shared_weights *s) {
  const cs_plan *plan = s->weights->plan;
  const cs_task *tasks = s->weights->program->tasks;
  for (int p = 0; p < plan->n_tasks; p++) {
    const cs_task *task = &tasks[plan->tasks[p].task];
    s->owner[p] = p;
    if (task->part < 0 || task->node < 0 || packed_bytes(s->weights, s->realised, p) == 0) continue;
    for (int q = 0; q < p && s->owner[p] == p; q++) {
      bool same = false;
      if (tasks[plan->tasks[q].task].node != task->node || s->owner[q] != q) continue;
      CS_RETURN_IF_ERROR(is_shared(s, q, p, &same));
      if (same) s->owner[p] = q;
    }
  }
  return CS_OK;
}

/* Plan positions first … first + n − 1. */
typedef struct upload_piece {
  int first, n;
  int64_t bytes;
} upload_piece;

/* A piece whose weights are packed to `host`. */
typedef struct pack_work {
  const cs_weights *weights;
  const cs_realised *realised;
  upload_piece piece;
  char *host;
} pack_work;

static cs_status pack_one(void *user, int64_t index, int worker) {
  (void)worker;
  pack_work *work = user;
  const cs_realised *realised = work->realised;
  int position = work->piece.first + (int)index;
  int64_t bytes = packed_bytes(work->weights, realised, position);
  if (bytes == 0) return CS_OK;
  char *host =
      work->host + realised->weight_offset[position] - realised->weight_offset[work->piece.first];
  memset(host, 0, (size_t)bytes);
  return cs_pack_weights(realised->backend, work->weights->params, work->weights->program,
                         work->weights->plan->tasks[position].task,
                         realised->execs[realised->exec_of[position]], host);
}

static cs_status pack(const cs_weights *weights, const cs_realised *realised, upload_piece piece,
                      void *host, cs_upload_times *times) {
  double started = cs_now_seconds();
  pack_work work = {weights, realised, piece, host};
  cs_status st = cs_parallel_for(piece.n, 0, pack_one, &work);
  times->pack += cs_now_seconds() - started;
  return st;
}

/* ---- Pieces ---- */

/* Tasks from `first` on, or the next one that has weights of its own, whose weights are packed
 * together: one at least, no more than fill a piece; none where there are none left. */
static upload_piece piece_from(const cs_weights *weights, const cs_realised *realised, int first,
                               int64_t most) {
  int n_tasks = weights->plan->n_tasks;
  while (first < n_tasks && packed_bytes(weights, realised, first) == 0) first++;
  upload_piece found = {.first = first};
  while (first + found.n < n_tasks) {
    int64_t more = packed_bytes(weights, realised, first + found.n);
    if (found.n > 0 && found.bytes + more > most) break;
    found.bytes += more;
    found.n++;
  }
  return found;
}

/* A copy to the device by a thread of its own; zeroed: none is under way. */
typedef struct carrier {
  cs_backend *backend;
  void *device;
  const void *host;
  int64_t bytes;
  pthread_t thread;
  bool running;
  cs_status status; /* of the last copy, once it is waited for */
  double seconds;   /* of all copies */
} carrier;

static void *carry(void *user) {
  carrier *c = user;
  double started = cs_now_seconds();
  c->status = c->backend->vtable->upload(c->backend, c->device, c->host, c->bytes);
  c->seconds += cs_now_seconds() - started;
  return NULL;
}

/* The last copy was waited for. Where no thread is to be had, or wanted, it is done here. */
static void carrier_begin(carrier *c, bool beside, void *device, const void *host, int64_t bytes) {
  c->device = device;
  c->host = host;
  c->bytes = bytes;
  c->running = beside && pthread_create(&c->thread, NULL, carry, c) == 0;
  if (!c->running) (void)carry(c);
}

static cs_status carrier_wait(carrier *c, cs_upload_times *times) {
  double started = cs_now_seconds();
  if (c->running) (void)pthread_join(c->thread, NULL);
  c->running = false;
  times->wait += cs_now_seconds() - started;
  cs_status st = c->status;
  c->status = CS_OK;
  return st;
}

/* ---- Buffers: pieces lie in them in turn ---- */

static cs_status allocate(cs_backend *backend, bool pinned, int64_t bytes, void **out) {
  if (bytes == 0) return CS_OK;
  if (pinned) return backend->vtable->host_allocate(backend, bytes, out);
  *out = cs_calloc(1, (size_t)bytes);
  return *out ? CS_OK : cs_no_memory("packed weights", (size_t)bytes);
}

static void release(cs_backend *backend, bool pinned, void *memory) {
  if (!pinned) {
    free(memory);
  } else if (memory) {
    backend->vtable->host_release(backend, memory);
  }
}

static cs_status make_buffers(const cs_weights *weights, const cs_realised *realised,
                              const cs_upload_way *way, bool pinned, void *buffers[2]) {
  int64_t largest[2] = {0, 0};
  int n = 0;
  for (int p = 0; p < weights->plan->n_tasks;) {
    upload_piece next = piece_from(weights, realised, p, way->piece_bytes);
    p = next.first + next.n;
    if (next.bytes == 0) continue;
    largest[n % 2] = cs_max_i64(largest[n % 2], next.bytes);
    n++;
  }
  for (int b = 0; b < 2; b++) {
    CS_RETURN_IF_ERROR(allocate(realised->backend, pinned, largest[b], &buffers[b]));
  }
  return CS_OK;
}

/* ---- All ---- */

cs_status cs_upload_pieces(const cs_weights *weights, const cs_upload_way *way,
                           const cs_realised *realised, cs_upload_times *times) {
  cs_status st = CS_OK;
  carrier copy = {.backend = realised->backend};
  void *buffers[2] = {NULL, NULL};
  int n_tasks = weights->plan->n_tasks, n = 0;
  bool pinned = way->pinned && realised->backend->vtable->host_allocate;
  double started = cs_now_seconds();
  CS_TRY(st, make_buffers(weights, realised, way, pinned, buffers), done);
  times->buffers += cs_now_seconds() - started;
  for (int p = 0; p < n_tasks;) {
    upload_piece next = piece_from(weights, realised, p, way->piece_bytes);
    p = next.first + next.n;
    if (next.bytes == 0) continue;
    void *host = buffers[n++ % 2];
    cs_progress_step("upload", "bytes", realised->weight_offset[next.first],
                     realised->weights_bytes, NULL);
    CS_TRY(st, pack(weights, realised, next, host, times), done);
    CS_TRY(st, carrier_wait(&copy, times), done);
    char *device = (char *)realised->weights + realised->weight_offset[next.first];
    carrier_begin(&copy, way->beside, device, host, next.bytes);
  }
done:;
  cs_status last = carrier_wait(&copy, times);
  times->copy += copy.seconds;
  for (int b = 0; b < 2; b++) release(realised->backend, pinned, buffers[b]);
  if (st == CS_OK) return last;
  cs_status_free(last);
  return st;
}

static cs_status upload_owned(const cs_weights *weights, cs_realised *out) {
  const cs_backend_vtable *vtable = out->backend->vtable;
  int n_tasks = weights->plan->n_tasks;
  for (int p = 0; p < n_tasks; p++) {
    int owner = weights->owner[p];
    out->weight_offset[p] = owner == p ? out->weights_bytes : out->weight_offset[owner];
    out->weights_bytes += packed_bytes(weights, out, p);
  }
  if (out->weights_bytes == 0) return CS_OK;
  CS_RETURN_IF_ERROR(
      cs_annotate(vtable->allocate(out->backend, out->weights_bytes, &out->weights), "weights: "));
  if (!vtable->memory_is_hosts) {
    return cs_upload_pieces(weights, &cs_upload_default, out, &out->uploading);
  }
  cs_progress_step("upload", "bytes", 0, out->weights_bytes, NULL);
  upload_piece all = {.n = n_tasks, .bytes = out->weights_bytes};
  return pack(weights, out, all, out->weights, &out->uploading);
}

cs_status cs_upload_weights(const cs_weights *weights, cs_realised *out) {
  cs_status st = CS_OK;
  size_t n = (size_t)weights->plan->n_tasks;
  cs_weights owned = *weights;
  shared_weights shared = {.weights = weights, .realised = out};
  out->weight_offset = cs_calloc(n, sizeof *out->weight_offset);
  shared.owner = cs_calloc(n, sizeof *shared.owner);
  shared.hash = cs_calloc(n, sizeof *shared.hash);
  if (!out->weight_offset || !shared.owner || !shared.hash) {
    st = cs_no_memory("weight offsets", n * sizeof *out->weight_offset);
    goto done;
  }
  CS_TRY(st, find_owners(&shared), done);
  owned.owner = shared.owner;
  st = upload_owned(&owned, out);
done:
  free(shared.owner);
  free(shared.hash);
  return st;
}
