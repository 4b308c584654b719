/* Implementations, primitives and their execution in oneDNN 2.x. */
#include "backend/cpu/dnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dnn {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
};

struct dnn_op {
  const dnn *engine;
  dnnl_primitive_t primitive;
  dnn_arg args[DNN_MAX_ARGS + 2];
  int n_args;
  bool has_weights;
  dnnl_memory_desc_t plain_weights, weights;
  int64_t scratchpad_bytes, bias_offset, bias_elements, statistics_offset, weight_bytes;
};

struct dnn_binding {
  const dnn_op *op;
  int n_args;
  dnnl_exec_arg_t args[DNN_MAX_ARGS + 2];
};

cs_status dnn_status(dnnl_status_t status, const char *what) {
  if (status == dnnl_success) return CS_OK;
  return cs_error(status == dnnl_out_of_memory ? CS_CODE_NO_MEMORY : CS_CODE_DEVICE,
                  "oneDNN: %s failed with status %d", what, (int)status);
}

cs_status dnn_open(dnn **out) {
  cs_status st = CS_OK;
  *out = NULL;
  /* With its cache of primitives oneDNN 2.6's enumeration depends on what the process created
   * before: layouts that differ in axes of one position only count as the same there, so that one's
   * implementations come back for the other; and what comes from the cache is not passed in the
   * list of implementations, so that it comes again under another number. */
  CS_RETURN_IF_ERROR(
      dnn_status(dnnl_set_primitive_cache_capacity(0), "turning the primitive cache off"));
  dnn *engine = cs_calloc(1, sizeof *engine);
  if (!engine) return cs_no_memory("a oneDNN engine", sizeof *engine);
  CS_TRY(st, dnn_status(dnnl_engine_create(&engine->engine, dnnl_cpu, 0), "creating an engine"),
         done);
  CS_TRY(st,
         dnn_status(dnnl_stream_create(&engine->stream, engine->engine, dnnl_stream_default_flags),
                    "creating a stream"),
         done);
  *out = engine, engine = NULL;
done:
  dnn_close(engine);
  return st;
}

void dnn_close(dnn *engine) {
  if (!engine) return;
  if (engine->stream) dnnl_stream_destroy(engine->stream);
  if (engine->engine) dnnl_engine_destroy(engine->engine);
  free(engine);
}

const char *dnn_version(void) {
  static _Thread_local char text[32];
  const dnnl_version_t *version = dnnl_version();
  snprintf(text, sizeof text, "%d.%d.%d", version->major, version->minor, version->patch);
  return text;
}

const char *dnn_isa(void) {
  switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41:
      return "sse41";
    case dnnl_cpu_isa_avx:
      return "avx";
    case dnnl_cpu_isa_avx2:
      return "avx2";
    case dnnl_cpu_isa_avx2_vnni:
      return "avx2_vnni";
    case dnnl_cpu_isa_avx512_core:
      return "avx512_core";
    case dnnl_cpu_isa_avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl_cpu_isa_avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl_cpu_isa_avx512_core_amx:
      return "avx512_core_amx";
    default:
      return "generic";
  }
}

int dnn_lanes(void) {
  const char *isa = dnn_isa();
  if (strncmp(isa, "avx512", 6) == 0) return 16;
  return strncmp(isa, "avx2", 4) == 0 ? 8 : 1;
}

/* ---- Walking implementations ---- */

/* Called for each primitive descriptor; returns true to stop. */
typedef bool (*pd_visitor)(void *user, dnn_description *description, bool winograd,
                           dnnl_primitive_desc_t pd, const char *name, cs_status *st);

/* "jit:avx512_core", the second of that name "jit:avx512_core#2". */
static void unique_name(dnnl_primitive_desc_t pd, char seen[][96], int n_seen, char *name) {
  const char *raw = "unknown";
  dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &raw);
  int times = 1;
  for (int i = 0; i < n_seen; i++) times += strcmp(seen[i], raw) == 0;
  snprintf(seen[n_seen], sizeof seen[n_seen], "%s", raw);
  if (times > 1)
    snprintf(name, 96, "%.80s#%d", raw, times);
  else
    snprintf(name, 96, "%.90s", raw);
}

#define MAX_SEEN 64

static cs_status walk_algorithm(const dnn *engine, const cs_op_desc *desc, bool winograd,
                                pd_visitor visit, void *user, bool *stop) {
  dnn_description d;
  if (!dnn_describe(desc, winograd, &d)) return CS_OK;
  cs_status st = CS_OK;
  char seen[MAX_SEEN][96], name[96];
  dnnl_primitive_desc_iterator_t iterator = NULL;
  if (d.is_reorder) {
    dnnl_primitive_desc_t pd;
    if (dnnl_reorder_primitive_desc_create(&pd, &d.args[0].md, engine->engine, &d.args[1].md,
                                           engine->engine, d.attr) == dnnl_success) {
      unique_name(pd, seen, 0, name);
      *stop = visit(user, &d, false, pd, name, &st);
      dnnl_primitive_desc_destroy(pd);
    }
  } else if (dnnl_primitive_desc_iterator_create(&iterator, &d.op, d.attr, engine->engine, NULL) ==
             dnnl_success) {
    int n_seen = 0;
    do {
      dnnl_primitive_desc_t pd = dnnl_primitive_desc_iterator_fetch(iterator);
      if (!pd) break;
      unique_name(pd, seen, n_seen++, name);
      *stop = visit(user, &d, winograd, pd, name, &st);
      dnnl_primitive_desc_destroy(pd);
    } while (st == CS_OK && !*stop && n_seen < MAX_SEEN &&
             dnnl_primitive_desc_iterator_next(iterator) == dnnl_success);
    dnnl_primitive_desc_iterator_destroy(iterator);
  }
  dnn_description_clear(&d);
  return st;
}

static cs_status walk(const dnn *engine, const cs_op_desc *desc, pd_visitor visit, void *user) {
  bool stop = false;
  CS_RETURN_IF_ERROR(walk_algorithm(engine, desc, false, visit, user, &stop));
  if (stop || (desc->op != CS_OP_CONV && desc->op != CS_OP_CONV_TRANSPOSE)) return CS_OK;
  return walk_algorithm(engine, desc, true, visit, user, &stop);
}

static int64_t scratchpad_of(dnnl_primitive_desc_t pd) {
  const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
  return md ? (int64_t)dnnl_memory_desc_get_size(md) : 0;
}

typedef struct listing {
  dnn_implementation *items;
  size_t capacity;
  int n;
} listing;

static bool list_one(void *user, dnn_description *description, bool winograd,
                     dnnl_primitive_desc_t pd, const char *name, cs_status *st) {
  (void)description;
  listing *list = user;
  *st = cs_grow(&list->items, &list->capacity, (size_t)list->n + 1, sizeof *list->items);
  if (*st != CS_OK) return true;
  dnn_implementation *item = &list->items[list->n++];
  snprintf(item->name, sizeof item->name, "%s", name);
  item->scratchpad_bytes = scratchpad_of(pd);
  item->winograd = winograd || strstr(name, "wino");
  item->reference = strstr(name, "ref") != NULL;
  return false;
}

cs_status dnn_implementations(dnn *engine, const cs_op_desc *desc, dnn_implementation **out,
                              int *count) {
  listing list = {0};
  *out = NULL, *count = 0;
  cs_status st = walk(engine, desc, list_one, &list);
  if (st != CS_OK) {
    free(list.items);
    return st;
  }
  *out = list.items, *count = list.n;
  return CS_OK;
}

/* ---- Primitives ---- */

typedef struct creation {
  const dnn *engine;
  const char *name;
  dnn_op *op;
} creation;

/* The packed weights: the array as the primitive wants it, then bias; for BatchNormalization scale,
 * shift, a vector of zeros (mean) and one of ones (variance). Each part 64-aligned. */
static void place_weights(dnn_op *op, const dnn_description *d, bool statistics) {
  int64_t vector = cs_round_up(d->bias_elements * (int64_t)sizeof(float), 64);
  op->has_weights = d->has_weights;
  op->plain_weights = d->plain_weights;
  op->bias_elements = d->bias_elements;
  op->bias_offset = statistics ? vector
                    : d->has_weights
                        ? cs_round_up((int64_t)dnnl_memory_desc_get_size(&op->weights), 64)
                        : 0;
  op->statistics_offset = op->bias_offset + vector;
  op->weight_bytes = op->statistics_offset + (statistics ? 2 * vector : 0);
}

static bool create_if_named(void *user, dnn_description *d, bool winograd, dnnl_primitive_desc_t pd,
                            const char *name, cs_status *st) {
  (void)winograd;
  creation *c = user;
  if (strcmp(name, c->name) != 0) return false;
  dnn_op *op = cs_calloc(1, sizeof *op);
  if (!op) {
    *st = cs_no_memory("a oneDNN primitive", sizeof *op);
    return true;
  }
  op->engine = c->engine;
  memcpy(op->args, d->args, sizeof d->args);
  op->n_args = d->n_args;
  bool statistics = false;
  for (int i = 0; i < d->n_args; i++) statistics |= d->args[i].source == DNN_FROM_MEAN;
  if (d->has_weights) {
    op->weights = *dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    op->args[op->n_args++] = (dnn_arg){DNNL_ARG_WEIGHTS, DNN_FROM_WEIGHTS, op->weights};
  }
  place_weights(op, d, statistics);
  op->scratchpad_bytes = scratchpad_of(pd);
  if (op->scratchpad_bytes > 0)
    op->args[op->n_args++] =
        (dnn_arg){DNNL_ARG_SCRATCHPAD, DNN_FROM_SCRATCHPAD,
                  *dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0)};
  *st = dnn_status(dnnl_primitive_create(&op->primitive, pd), "creating a primitive");
  if (*st != CS_OK)
    dnn_op_destroy(op);
  else
    c->op = op;
  return true;
}

cs_status dnn_op_create(dnn *engine, const cs_op_desc *desc, const char *name, dnn_op **out) {
  creation c = {engine, name, NULL};
  *out = NULL;
  CS_RETURN_IF_ERROR(walk(engine, desc, create_if_named, &c));
  if (!c.op)
    return cs_error(CS_CODE_BAD_INPUT, "oneDNN %s has no implementation \"%s\" of this %s",
                    dnn_version(), name, cs_op_name(desc->op));
  *out = c.op;
  return CS_OK;
}

void dnn_op_destroy(dnn_op *op) {
  if (!op) return;
  if (op->primitive) dnnl_primitive_destroy(op->primitive);
  free(op);
}

int64_t dnn_op_scratchpad_bytes(const dnn_op *op) {
  return op->scratchpad_bytes;
}

int64_t dnn_op_weight_bytes(const dnn_op *op) {
  return op->weight_bytes;
}

static cs_status reorder_weights(const dnn_op *op, const float *weight, void *out) {
  cs_status st = CS_OK;
  dnnl_engine_t engine = op->engine->engine;
  dnnl_memory_t from = NULL, to = NULL;
  dnnl_primitive_desc_t pd = NULL;
  dnnl_primitive_t reorder = NULL;
  union {
    const float *given;
    void *taken; /* oneDNN only reads it */
  } source = {weight};
  CS_TRY(st,
         dnn_status(dnnl_memory_create(&from, &op->plain_weights, engine, source.taken), "memory"),
         done);
  CS_TRY(st, dnn_status(dnnl_memory_create(&to, &op->weights, engine, out), "memory"), done);
  CS_TRY(st,
         dnn_status(dnnl_reorder_primitive_desc_create(&pd, &op->plain_weights, engine,
                                                       &op->weights, engine, NULL),
                    "describing a weight reorder"),
         done);
  CS_TRY(st, dnn_status(dnnl_primitive_create(&reorder, pd), "creating a weight reorder"), done);
  dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  CS_TRY(st,
         dnn_status(dnnl_primitive_execute(reorder, op->engine->stream, 2, args),
                    "reordering weights"),
         done);
done:
  if (reorder) dnnl_primitive_destroy(reorder);
  if (pd) dnnl_primitive_desc_destroy(pd);
  if (to) dnnl_memory_destroy(to);
  if (from) dnnl_memory_destroy(from);
  return st;
}

cs_status dnn_op_pack(const dnn_op *op, const float *weight, const float *bias, void *out) {
  memset(out, 0, (size_t)op->weight_bytes);
  size_t vector = (size_t)op->bias_elements * sizeof(float);
  bool statistics = op->weight_bytes > op->statistics_offset;
  if (op->has_weights)
    CS_RETURN_IF_ERROR(reorder_weights(op, weight, out));
  else if (statistics)
    memcpy(out, weight, vector);
  if (op->bias_elements > 0) memcpy((char *)out + op->bias_offset, bias, vector);
  if (statistics) {
    int64_t half = (op->weight_bytes - op->statistics_offset) / 2;
    float *variance = (float *)((char *)out + op->statistics_offset + half);
    for (int64_t i = 0; i < op->bias_elements; i++) variance[i] = 1.0f;
  }
  return CS_OK;
}

/* ---- Execution ---- */

static const void *address_of(const dnn_op *op, dnn_source source, const void *const *inputs,
                              const void *output, const void *weights, const void *scratchpad) {
  switch (source) {
    case DNN_FROM_INPUT0:
    case DNN_FROM_INPUT1:
    case DNN_FROM_INPUT2:
      return inputs[source - DNN_FROM_INPUT0];
    case DNN_FROM_OUTPUT:
      return output;
    case DNN_FROM_WEIGHTS:
      return weights;
    case DNN_FROM_BIAS:
      return (const char *)weights + op->bias_offset;
    case DNN_FROM_MEAN:
      return (const char *)weights + op->statistics_offset;
    case DNN_FROM_VARIANCE:
      return (const char *)weights + op->statistics_offset +
             (op->weight_bytes - op->statistics_offset) / 2;
    case DNN_FROM_SCRATCHPAD:
      return scratchpad;
  }
  return NULL;
}

cs_status dnn_bind(const dnn_op *op, const void *const *inputs, void *output, const void *weights,
                   void *scratchpad, dnn_binding **out) {
  cs_status st = CS_OK;
  *out = NULL;
  dnn_binding *binding = cs_calloc(1, sizeof *binding);
  if (!binding) return cs_no_memory("a bound oneDNN primitive", sizeof *binding);
  binding->op = op;
  for (int i = 0; i < op->n_args; i++) {
    union {
      const void *given;
      void *taken; /* oneDNN has no constant memories */
    } at = {address_of(op, op->args[i].source, inputs, output, weights, scratchpad)};
    dnnl_memory_t memory;
    CS_TRY(st,
           dnn_status(dnnl_memory_create(&memory, &op->args[i].md, op->engine->engine, at.taken),
                      "describing memory"),
           done);
    binding->args[binding->n_args++] = (dnnl_exec_arg_t){op->args[i].arg, memory};
  }
  *out = binding, binding = NULL;
done:
  dnn_binding_destroy(binding);
  return st;
}

void dnn_binding_destroy(dnn_binding *binding) {
  if (!binding) return;
  for (int i = 0; i < binding->n_args; i++) dnnl_memory_destroy(binding->args[i].memory);
  free(binding);
}

cs_status dnn_run(const dnn_binding *binding) {
  const dnn_op *op = binding->op;
  dnnl_status_t status =
      dnnl_primitive_execute(op->primitive, op->engine->stream, binding->n_args, binding->args);
  return status == dnnl_success ? CS_OK : dnn_status(status, "executing a primitive");
}

cs_status dnn_sgemm(bool transposed, int64_t rows, int64_t columns, int64_t depth, const float *a,
                    int64_t a_stride, const float *b, float *out) {
  return dnn_status(dnnl_sgemm(transposed ? 'T' : 'N', 'N', rows, columns, depth, 1, a, a_stride, b,
                               columns, 0, out, columns),
                    "a matrix product");
}
