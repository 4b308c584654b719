#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/params_store.h"

/* The rule is stated in docs/weights.md. Every value is a uniform draw scaled by operations that
 * IEEE 754 rounds correctly, so the same seed gives the same bits on every machine. */

#define RESIDUAL_SCALE 0.25
/* A MaxPool of rectified values multiplies their mean square by about this. */
#define MAX_POOL_GAIN 2.0
/* A gate is about 1/2: what it multiplies loses this much of its mean square. */
#define GATE_LOSS 4.0

/* What the surroundings of a node say about its weights. */
typedef struct node_role {
  bool rectified; /* a Relu (or the like) follows, perhaps behind linear operations and pools */
  bool residual;  /* its output is the branch of a residual Add */
  /* Its input is a MaxPool's or a gate's output, perhaps behind an LRN or BatchNormalization. */
  bool pooled, gated;
} node_role;

static bool is_rectifier(const cs_graph *graph, const cs_node *node) {
  cs_op op = node->op;
  return op == CS_OP_RELU || op == CS_OP_LEAKY_RELU || op == CS_OP_CLIP || op == CS_OP_PRELU ||
         op == CS_OP_ELU || op == CS_OP_HARD_SWISH || op == CS_OP_SWISH ||
         cs_node_gate(graph, node) >= 0;
}

static bool passes_through(cs_op op) {
  switch (op) {
    case CS_OP_BATCH_NORM:
    case CS_OP_INSTANCE_NORM:
    case CS_OP_GLOBAL_MAX_POOL:
    case CS_OP_ADD:
    case CS_OP_MAX_POOL:
    case CS_OP_AVERAGE_POOL:
    case CS_OP_GLOBAL_AVERAGE_POOL:
    case CS_OP_LRN:
    case CS_OP_CONCAT:
    case CS_OP_PAD:
    case CS_OP_RESHAPE:
    case CS_OP_TRANSPOSE:
    case CS_OP_SLICE:
    case CS_OP_RESIZE:
    case CS_OP_IDENTITY:
    case CS_OP_DROPOUT:
      return true;
    default:
      return false;
  }
}

/* Its output can be made small by its weights: all of them are factors. */
static bool is_scaled(const cs_node *node) {
  cs_op op = node->op;
  return op == CS_OP_CONV || op == CS_OP_CONV_TRANSPOSE || op == CS_OP_GEMM ||
         op == CS_OP_BATCH_NORM || op == CS_OP_INSTANCE_NORM ||
         (op == CS_OP_MUL && node->n_inputs == 1);
}

static const cs_node *producer_of(const cs_graph *graph, int value) {
  int producer = graph->values[value].producer;
  return producer >= 0 ? &graph->nodes[producer] : NULL;
}

/* The first operand of an Add that such a node made is its residual branch. */
static void mark_residual(const cs_graph *graph, const cs_node *add, node_role *roles) {
  for (int i = 0; i < add->n_inputs; i++) {
    const cs_node *producer = producer_of(graph, add->inputs[i]);
    if (producer && is_scaled(producer)) {
      roles[producer - graph->nodes].residual = true;
      return;
    }
  }
}

/* A product of two inputs of which one, and not of the other, is a Sigmoid or HardSigmoid. */
static bool is_gated(const cs_graph *graph, const cs_node *node) {
  if (node->op != CS_OP_MUL || node->n_inputs != 2 || cs_node_gate(graph, node) >= 0) return false;
  for (int i = 0; i < 2; i++) {
    const cs_node *gate = producer_of(graph, node->inputs[i]);
    if (gate && (gate->op == CS_OP_SIGMOID || gate->op == CS_OP_HARD_SIGMOID)) return true;
  }
  return false;
}

static void find_source(const cs_graph *graph, const cs_node *node, node_role *role) {
  const cs_node *source = producer_of(graph, node->inputs[0]);
  while (source && (source->op == CS_OP_LRN || source->op == CS_OP_BATCH_NORM)) {
    source = producer_of(graph, source->inputs[0]);
  }
  role->pooled = source && source->op == CS_OP_MAX_POOL;
  role->gated = source && is_gated(graph, source);
}

static cs_status find_roles(const cs_graph *graph, node_role **out) {
  node_role *roles = cs_calloc((size_t)graph->n_nodes, sizeof *roles);
  bool *rectified = cs_calloc((size_t)graph->n_values, sizeof *rectified);
  if (!roles || !rectified) {
    free(roles);
    free(rectified);
    return cs_no_memory("the roles of nodes", (size_t)graph->n_nodes * sizeof *roles);
  }
  for (int i = graph->n_nodes - 1; i >= 0; i--) {
    const cs_node *node = &graph->nodes[i];
    roles[i].rectified = rectified[node->output];
    find_source(graph, node, &roles[i]);
    bool reaches =
        is_rectifier(graph, node) || (passes_through(node->op) && rectified[node->output]);
    for (int k = 0; k < node->n_inputs; k++) {
      if (reaches) rectified[node->inputs[k]] = true;
    }
    if (node->op == CS_OP_ADD && node->n_inputs == 2) mark_residual(graph, node, roles);
  }
  free(rectified);
  *out = roles;
  return CS_OK;
}

/* Products summed into one inner output element. An axis of a transposed convolution meets
 * kernel / stride taps, and no axis meets more taps than it has elements. */
static double fan_in(const cs_graph *graph, const cs_node *node) {
  const cs_shape *in = &graph->values[node->inputs[0]].shape;
  if (node->op == CS_OP_GEMM) return (double)in->dims[1];
  if (node->op == CS_OP_MATMUL) {
    return (double)in->dims[in->rank - (node->attrs.binary.operand_first ? 2 : 1)];
  }
  const cs_conv_attrs *conv = &node->attrs.conv;
  int64_t fan = in->dims[1] / conv->group;
  for (int axis = 0; axis < 2; axis++) {
    int64_t taps = conv->kernel[axis];
    if (node->op == CS_OP_CONV_TRANSPOSE) {
      taps = (taps + conv->strides[axis] - 1) / conv->strides[axis];
    }
    fan *= cs_min_i64(taps, in->dims[2 + axis]);
  }
  return (double)fan;
}

typedef struct uniform_range {
  double center, half_width;
} uniform_range;

/* The constant of an Add … Pow: what keeps the mean square about as it is; whole exponents. */
static uniform_range operand_range(cs_op op, double scale) {
  if (op == CS_OP_MUL) return (uniform_range){scale, scale * 0.1};
  if (op == CS_OP_DIV) return (uniform_range){1.0, 0.1};
  if (op == CS_OP_POW) return (uniform_range){2.0, 0.0};
  if (op == CS_OP_PRELU) return (uniform_range){0.25, 0.1};
  return (uniform_range){0.0, sqrt(0.03)};
}

static uniform_range range_of(const cs_graph *graph, int index, node_role role,
                              const char *parameter) {
  const cs_node *node = &graph->nodes[index];
  double scale = role.residual ? RESIDUAL_SCALE : 1.0;
  if (strcmp(parameter, "running_var") == 0) return (uniform_range){1.0, 0.5};
  if (strcmp(parameter, "running_mean") == 0) return (uniform_range){0.0, sqrt(0.03)};
  if (strcmp(parameter, "bias") == 0) return (uniform_range){0.0, scale * sqrt(0.03)};
  if (node->op == CS_OP_BATCH_NORM || node->op == CS_OP_INSTANCE_NORM) {
    return (uniform_range){scale, scale * 0.1};
  }
  if (cs_op_is_binary(node->op)) return operand_range(node->op, scale);
  double gain = (role.rectified ? 2.0 : 1.0) / (role.pooled ? MAX_POOL_GAIN : 1.0) *
                (role.gated ? GATE_LOSS : 1.0);
  return (uniform_range){0.0, scale * sqrt(3.0 * gain / fan_in(graph, node))};
}

typedef struct generation {
  const cs_graph *graph;
  uint64_t seed;
  cs_params *params;
  const node_role *roles;
} generation;

/* Kept, since drawing an element costs ten times what reading one does and each is read by
 * realising, searching and verifying. */
static cs_status fill(cs_params_entry *entry, uint64_t seed, uniform_range range) {
  cs_rng rng;
  entry->data = cs_calloc((size_t)entry->count, sizeof *entry->data);
  if (!entry->data) return cs_no_memory(entry->name, (size_t)entry->count * sizeof *entry->data);
  cs_rng_init(&rng, seed, cs_hash_string(CS_HASH_SEED, entry->name));
  for (int64_t i = 0; i < entry->count; i++) {
    entry->data[i] = (float)(range.center + range.half_width * (2.0 * cs_rng_uniform(&rng) - 1.0));
  }
  return CS_OK;
}

static cs_status fill_node(void *user, int64_t index, int worker) {
  static const char *const parameters[] = {"weight", "bias", "running_mean", "running_var"};
  const generation *job = user;
  (void)worker;
  for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) {
    cs_strbuf buffer = {0};
    char *name = NULL;
    cs_strbuf_printf(&buffer, "%s.%s", job->graph->nodes[index].name, parameters[i]);
    CS_RETURN_IF_ERROR(cs_strbuf_take(&buffer, &name));
    cs_params_entry *entry = (cs_params_entry *)(uintptr_t)cs_params_find(job->params, name);
    free(name);
    if (!entry) continue;
    CS_RETURN_IF_ERROR(
        fill(entry, job->seed, range_of(job->graph, (int)index, job->roles[index], parameters[i])));
  }
  return CS_OK;
}

cs_status cs_params_generate(const cs_graph *graph, uint64_t seed, cs_params **out) {
  cs_status st = CS_OK;
  node_role *roles = NULL;
  cs_params *params = NULL;
  *out = NULL;
  CS_TRY(st, cs_params_create(graph, &params), done);
  CS_TRY(st, find_roles(graph, &roles), done);
  generation job = {graph, seed, params, roles};
  CS_TRY(st, cs_parallel_stage("weights", "nodes", graph->n_nodes, 0, fill_node, &job), done);
  *out = params, params = NULL;
done:
  cs_params_destroy(params);
  free(roles);
  return st;
}

void cs_input_generate(const char *name, uint64_t seed, float *out, int64_t count) {
  cs_rng rng;
  cs_rng_init(&rng, seed, cs_hash_string(cs_hash_string(CS_HASH_SEED, "input"), name));
  cs_rng_fill_normal(&rng, out, count, 0.0, 1.0);
}
