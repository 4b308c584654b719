/* Reasons of kernels, in words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/told.h"
#include "profiler/kernel_roles.h"
#include "scheduler/kernel_list.h"

cs_status cs_reasons_begin(const cs_kernel_list_input *input, cs_reasons *out) {
  int n_blocks;
  *out = (cs_reasons){.input = input};
  out->block_of = cs_calloc((size_t)input->program->n_tasks, sizeof *out->block_of);
  out->nodes = cs_calloc((size_t)input->bound->n_nodes, sizeof *out->nodes);
  cs_status st = out->block_of && out->nodes
                     ? cs_program_blocks(input->program, out->block_of, &n_blocks)
                     : cs_no_memory("reasons", (size_t)input->program->n_tasks);
  if (st != CS_OK) cs_reasons_end(out);
  return st;
}

void cs_reasons_end(cs_reasons *reasons) {
  free(reasons->block_of);
  free(reasons->nodes);
  *reasons = (cs_reasons){0};
}

static const cs_task *task_at(const cs_reasons *reasons, int position) {
  return &reasons->input->program->tasks[reasons->input->plan->tasks[position].task];
}

static const char *value_name(const cs_program *program, int tensor) {
  return program->graph->values[program->tensors[tensor].value].name;
}

/* ---- Copies ---- */

/* The tasks that read a tensor, and the first of them. */
static int readers_of(const cs_program *program, int tensor, int *first) {
  int n = 0;
  for (int t = 0; t < program->n_tasks; t++) {
    const cs_task *task = &program->tasks[t];
    bool reads = false;
    for (int k = 0; k < task->desc.n_inputs; k++) reads = reads || task->inputs[k] == tensor;
    if (reads && n++ == 0) *first = t;
  }
  return n;
}

static void tell_layouts(const cs_task *copy, cs_strbuf *out) {
  cs_strbuf_printf(out, "layout %s -> %s", cs_layout_name(copy->desc.inputs[0].layout),
                   cs_layout_name(copy->desc.output.layout));
}

static void tell_layout_change(const cs_reasons *reasons, const cs_task *copy, cs_strbuf *out) {
  const cs_program *program = reasons->input->program;
  int from = copy->n_preds > 0 ? copy->preds[copy->n_preds - 1] : -1, to = -1;
  int n = readers_of(program, copy->output, &to);
  tell_layouts(copy, out);
  cs_strbuf_printf(out, " of %s", value_name(program, copy->inputs[0]));
  if (n > 0) cs_strbuf_printf(out, " for %s", program->tasks[to].name);
  if (n > 1) cs_strbuf_printf(out, " and %d more", n - 1);
  if (from < 0) {
    cs_strbuf_printf(out, ", before the first block");
  } else if (to < 0) {
    cs_strbuf_printf(out, ", behind block %d", reasons->block_of[from]);
  } else if (reasons->block_of[from] == reasons->block_of[to]) {
    cs_strbuf_printf(out, ", within block %d", reasons->block_of[from]);
  } else {
    cs_strbuf_printf(out, ", between block %d and block %d", reasons->block_of[from],
                     reasons->block_of[to]);
  }
}

/* What wants a copy: "copy:<value>:<why>", of a part with "/<part>" behind it. */
static void copy_reason(const cs_task *copy, const char *value, char *out, size_t size) {
  snprintf(out, size, "%s", copy->name + strlen("copy:") + strlen(value) + 1);
  char *part = copy->part >= 0 ? strrchr(out, '/') : NULL;
  if (part) *part = '\0';
}

/* A node of the graph wants the copy, or a layout. */
static cs_kernel_class tell_copy(const cs_reasons *reasons, const cs_task *copy, cs_strbuf *out) {
  const cs_program *program = reasons->input->program;
  const char *value = value_name(program, copy->inputs[0]);
  char why[1024];
  copy_reason(copy, value, why, sizeof why);
  bool changes = copy->desc.inputs[0].layout != copy->desc.output.layout;
  if (changes && strcmp(why, cs_layout_name(copy->desc.output.layout)) == 0) {
    tell_layout_change(reasons, copy, out);
    return CS_KERNEL_LAYOUT;
  }
  const cs_node *node = NULL;
  for (int i = 0; i < program->graph->n_nodes && !node; i++) {
    if (strcmp(program->graph->nodes[i].name, why) == 0) node = &program->graph->nodes[i];
  }
  if (node && node->op == CS_OP_CONCAT) {
    cs_strbuf_printf(out, "copies %s into its slice of the concat %s", value, why);
  } else if (node && (node->op == CS_OP_FLATTEN || node->op == CS_OP_RESHAPE)) {
    cs_strbuf_printf(out, "copies %s row by row for the %s %s", value, cs_op_name(node->op), why);
  } else {
    cs_strbuf_printf(out, "copies %s for %s", value, why);
  }
  if (changes) {
    cs_strbuf_printf(out, " (");
    tell_layouts(copy, out);
    cs_strbuf_printf(out, " on the way)");
  }
  return CS_KERNEL_COPY;
}

/* ---- Nodes ---- */

static cs_kernel_class class_of(cs_op op) {
  switch (op) {
    case CS_OP_CONV:
    case CS_OP_CONV_TRANSPOSE:
    case CS_OP_GEMM:
    case CS_OP_MATMUL:
      return CS_KERNEL_COMPUTE;
    case CS_OP_MAX_POOL:
    case CS_OP_AVERAGE_POOL:
    case CS_OP_GLOBAL_AVERAGE_POOL:
    case CS_OP_GLOBAL_MAX_POOL:
    case CS_OP_REDUCE_MEAN:
    case CS_OP_REDUCE_SUM:
    case CS_OP_REDUCE_MAX:
    case CS_OP_REDUCE_MIN:
      return CS_KERNEL_POOL;
    case CS_OP_BATCH_NORM:
    case CS_OP_INSTANCE_NORM:
    case CS_OP_LRN:
    case CS_OP_SOFTMAX:
      return CS_KERNEL_NORMALIZATION;
    case CS_OP_PAD:
      return CS_KERNEL_PAD;
    case CS_OP_TRANSPOSE:
    case CS_OP_SLICE:
      return CS_KERNEL_MOVE;
    default:
      return CS_KERNEL_ELEMENTWISE;
  }
}

static bool is_product(cs_op op) {
  return class_of(op) == CS_KERNEL_COMPUTE;
}

/* "+ bias + residual pool1 + relu". */
static void tell_behind(const cs_program *program, const cs_task *task, cs_strbuf *out) {
  const cs_op_desc *desc = &task->desc;
  if (desc->has_bias && is_product(desc->op)) cs_strbuf_printf(out, " + bias");
  if (desc->has_residual) {
    cs_strbuf_printf(out, " + residual %s", value_name(program, task->inputs[desc->n_inputs - 1]));
  }
  if (desc->activation.kind != CS_ACT_NONE) {
    cs_strbuf_printf(out, " + %s", cs_act_name(desc->activation.kind));
  }
}

/* "conv1 (bn1 folded in) + bias + relu"; `bare`: without what is behind the operation itself. */
static void tell_operation(const cs_program *program, const cs_task *task, bool bare,
                           cs_strbuf *out) {
  const cs_node *node = &program->graph->nodes[task->node];
  const char *before = node->bn_before.node, *after = node->bn_after.node;
  cs_strbuf_printf(out, "%s", task->name);
  if (!is_product(task->desc.op)) cs_strbuf_printf(out, " (%s)", cs_op_name(task->desc.op));
  if (before || after) {
    cs_strbuf_printf(out, " (%s%s%s folded in)", before ? before : "",
                     before && after ? " and " : "", after ? after : "");
  }
  if (!bare) tell_behind(program, task, out);
}

static cs_kernel_class tell_node(const cs_reasons *reasons, const cs_task *task, bool bare,
                                 cs_strbuf *out) {
  const cs_program *program = reasons->input->program;
  cs_strbuf_printf(out, "computes ");
  tell_operation(program, task, bare, out);
  if (cs_graph_could_be_fused(task->desc.op)) {
    cs_strbuf_printf(out, " that nothing could take over: ");
    cs_graph_tell_why_alone(program->graph, task->node, out);
  }
  return class_of(task->desc.op);
}

/* ---- Kernels ---- */

static const char *buffer_of_output(const cs_program *program, const cs_task *task) {
  return program->buffers[program->tensors[task->output].buffer].name;
}

static void tell_epilogue(const cs_reasons *reasons, int position, const cs_task *task,
                          cs_strbuf *out) {
  const cs_program *program = reasons->input->program;
  const char *family = reasons->input->plan->tasks[position].candidate.family;
  cs_strbuf_printf(out, "adds what the library did not compute of %s:", task->name);
  tell_behind(program, task, out);
  if (family && strstr(family, ".dense")) {
    cs_strbuf_printf(out, ", from its dense output into its slice of %s",
                     buffer_of_output(program, task));
  }
}

static cs_kernel_class class_of_role(int role) {
  switch (role) {
    case CS_ROLE_INPUT:
    case CS_ROLE_FILTER:
    case CS_ROLE_INPUT_OR_FILTER:
    case CS_ROLE_OUTPUT:
      return CS_KERNEL_TRANSFORM;
    case CS_ROLE_SPLIT_K:
      return CS_KERNEL_REDUCTION;
    case CS_ROLE_PREPARE:
      return CS_KERNEL_PREPARATION;
    case CS_ROLE_UNCLEAR:
      return CS_KERNEL_UNCLEAR;
    default:
      return CS_KERNEL_INNER;
  }
}

static void tell_merged(const cs_reasons *reasons, int position, cs_strbuf *out) {
  const cs_plan *plan = reasons->input->plan;
  int end = cs_plan_launch_end(plan, position);
  for (int p = position + 1; p < end; p++) {
    cs_strbuf_printf(out, "%s%s", p == position + 1 ? "; merged with " : ", ",
                     task_at(reasons, p)->name);
  }
}

cs_kernel_class cs_reason_of(const cs_reasons *reasons, int position, int k, int n, int role,
                             bool epilogue_apart, cs_strbuf *out) {
  const cs_program *program = reasons->input->program;
  const cs_task *task = task_at(reasons, position);
  cs_kernel_class kind = CS_KERNEL_SLICE;
  int leader = reasons->input->plan->tasks[position].merged;
  if (leader >= 0) {
    cs_strbuf_printf(out, "the same launch as %s (merged): computes ",
                     task_at(reasons, leader)->name);
    tell_operation(program, task, false, out);
    return class_of(task->desc.op);
  }
  if (n > 1) cs_strbuf_printf(out, "kernel %d of %d of this candidate: ", k + 1, n);
  if (role == CS_ROLE_COMPUTES && task->node < 0) {
    kind = tell_copy(reasons, task, out);
  } else if (role == CS_ROLE_COMPUTES) {
    kind = tell_node(reasons, task, epilogue_apart, out);
  } else if (role == CS_ROLE_EPILOGUE) {
    kind = CS_KERNEL_EPILOGUE;
    tell_epilogue(reasons, position, task, out);
  } else if (role == CS_ROLE_SLICE) {
    cs_strbuf_printf(out, "copies %s's dense output into its slice of %s", task->name,
                     buffer_of_output(program, task));
  } else {
    kind = class_of_role(role);
    cs_strbuf_printf(out, "%s, of %s", cs_kernel_role_text((cs_kernel_role)role), task->name);
  }
  if (k == 0) tell_merged(reasons, position, out);
  return kind;
}
