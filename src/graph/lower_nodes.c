/* Lowering values and nodes: buffers, views, tasks. */
#include "graph/lower.h"

#include <stdlib.h>

/* ---- Buffers, tensors, tasks ---- */

cs_status cs_lower_add_buffer(cs_lowering *lowering, cs_strbuf *name, cs_buffer_kind kind,
                              int64_t bytes, int *out) {
  cs_program *program = lowering->program;
  char *text = NULL;
  CS_RETURN_IF_ERROR(cs_strbuf_take(name, &text));
  cs_status status = cs_grow(&program->buffers, &lowering->buffer_capacity,
                             (size_t)program->n_buffers + 1, sizeof *program->buffers);
  if (status != CS_OK) {
    free(text);
    return status;
  }
  program->buffers[program->n_buffers] = (cs_buffer){bytes, kind, text};
  *out = program->n_buffers++;
  return CS_OK;
}

static int64_t alignment_of(int64_t offset) {
  int64_t alignment = 256;
  while (offset % alignment != 0) alignment /= 2;
  return alignment;
}

cs_status cs_lower_add_tensor(cs_lowering *lowering, int value, int buffer, int64_t offset,
                              const cs_tensor_desc *desc, int writer, int *out) {
  cs_program *program = lowering->program;
  size_t need = (size_t)program->n_tensors + 1;
  CS_RETURN_IF_ERROR(
      cs_grow(&program->tensors, &lowering->tensor_capacity, need, sizeof *program->tensors));
  CS_RETURN_IF_ERROR(
      cs_grow(&lowering->writer, &lowering->writer_capacity, need, sizeof *lowering->writer));
  cs_tensor *tensor = &program->tensors[program->n_tensors];
  *tensor = (cs_tensor){.value = value, .buffer = buffer, .offset = offset, .desc = *desc};
  tensor->desc.alignment = alignment_of(offset);
  lowering->writer[program->n_tensors] = writer;
  *out = program->n_tensors++;
  return CS_OK;
}

static cs_buffer_kind kind_of(const cs_lowering *lowering, int value) {
  if (lowering->is_output[value]) return CS_BUFFER_OUTPUT;
  return lowering->graph->values[value].producer < 0 ? CS_BUFFER_INPUT : CS_BUFFER_INTERMEDIATE;
}

cs_status cs_lower_value(cs_lowering *lowering, int value, int writer, int *out) {
  const cs_graph *graph = lowering->graph;
  cs_location at = lowering->location[value];
  cs_tensor_desc whole = cs_tensor_dense(&graph->values[at.root].shape, lowering->storage,
                                         lowering->program->layouts[at.root]);
  if (lowering->buffer[at.root] < 0) {
    int lender = lowering->lender[at.root], owner = lender < 0 ? at.root : lender;
    cs_strbuf name = {0};
    cs_strbuf_printf(&name, "%s", graph->values[owner].name);
    CS_RETURN_IF_ERROR(cs_lower_add_buffer(lowering, &name, kind_of(lowering, owner),
                                           cs_tensor_span_bytes(&whole),
                                           &lowering->buffer[at.root]));
  }
  cs_tensor_desc desc = whole;
  desc.shape = graph->values[value].shape;
  int64_t offset = at.offset ? cs_tensor_offset4(&whole, 0, at.offset, 0, 0) : 0;
  CS_RETURN_IF_ERROR(cs_lower_add_tensor(lowering, value, lowering->buffer[at.root],
                                         offset * cs_dtype_size(lowering->storage), &desc, writer,
                                         out));
  lowering->program->value_tensor[value] = *out;
  return CS_OK;
}

/* A task that reads `inputs` and writes `output`; takes over `name`. */
static cs_status add_task(cs_lowering *lowering, cs_strbuf *name, int node, const cs_op_desc *base,
                          const int *inputs, int n_inputs, int output) {
  cs_program *program = lowering->program;
  char *text = NULL;
  CS_RETURN_IF_ERROR(cs_strbuf_take(name, &text));
  cs_status status = cs_grow(&program->tasks, &lowering->task_capacity,
                             (size_t)program->n_tasks + 1, sizeof *program->tasks);
  if (status != CS_OK) {
    free(text);
    return status;
  }
  cs_task *task = &program->tasks[program->n_tasks];
  *task = (cs_task){
      .name = text, .node = node, .part = lowering->now.part, .desc = *base, .output = output};
  task->desc.n_inputs = n_inputs;
  for (int k = 0; k < n_inputs; k++) {
    task->inputs[k] = inputs[k];
    task->desc.inputs[k] = program->tensors[inputs[k]].desc;
  }
  task->desc.output = program->tensors[output].desc;
  lowering->writer[output] = program->n_tasks++;
  return cs_lower_preds(lowering);
}

static cs_status add_copy(cs_lowering *lowering, int from, int to, const char *why) {
  cs_op_desc desc = {.op = CS_OP_COPY, .precision = lowering->program->precision};
  cs_strbuf name = {0};
  int value = lowering->program->tensors[from].value;
  cs_strbuf_printf(&name, "copy:%s:", lowering->graph->values[value].name);
  cs_lower_name(lowering, why, &name);
  return add_task(lowering, &name, -1, &desc, &from, 1, to);
}

/* ---- Reading a value in a layout ---- */

/* With one pixel, NCHW and NHWC are the same bytes. */
static bool same_bytes(const cs_tensor_desc *desc, cs_layout layout) {
  return desc->shape.dims[2] == 1 && desc->shape.dims[3] == 1 && desc->strides[1] == 1 &&
         cs_layout_granule(desc->layout) == 1 && cs_layout_granule(layout) == 1;
}

/* Where the converted copy of a value's entries that are being lowered is noted; *made -1: there is
 * none yet. */
static void find_converted(cs_lowering *lowering, int value, cs_layout layout, int *made) {
  int64_t key = (int64_t)value * CS_LAYOUT_COUNT + (int)layout;
  const cs_lowered_part *now = &lowering->now;
  *made = now->part < 0 ? lowering->converted[key]
                        : cs_pair_map_get(&lowering->converted_parts, key,
                                          (int64_t)now->list * CS_MOST_PARTS + now->part);
}

static cs_status note_converted(cs_lowering *lowering, int value, cs_layout layout, int made) {
  int64_t key = (int64_t)value * CS_LAYOUT_COUNT + (int)layout;
  const cs_lowered_part *now = &lowering->now;
  int existing;
  if (now->part >= 0) {
    return cs_pair_map_put(&lowering->converted_parts, key,
                           (int64_t)now->list * CS_MOST_PARTS + now->part, made, &existing);
  }
  lowering->converted[key] = made;
  return CS_OK;
}

/* A dense tensor of `value`, which is in tensor `from`, in `layout`, made once and shared by all
 * that want it. */
static cs_status convert(cs_lowering *lowering, int value, int from, cs_layout layout, int *out) {
  find_converted(lowering, value, layout, out);
  if (*out >= 0) return CS_OK;
  cs_tensor_desc desc =
      cs_tensor_dense(&lowering->program->tensors[from].desc.shape, lowering->storage, layout);
  cs_strbuf name = {0};
  int buffer;
  cs_strbuf_printf(&name, "%s@", lowering->graph->values[value].name);
  cs_lower_name(lowering, cs_layout_name(layout), &name);
  CS_RETURN_IF_ERROR(cs_lower_add_buffer(lowering, &name, CS_BUFFER_INTERMEDIATE,
                                         cs_tensor_span_bytes(&desc), &buffer));
  CS_RETURN_IF_ERROR(cs_lower_add_tensor(lowering, value, buffer, 0, &desc, CS_WRITER_NONE, out));
  CS_RETURN_IF_ERROR(note_converted(lowering, value, layout, *out));
  return add_copy(lowering, from, *out, cs_layout_name(layout));
}

static cs_status read_value(cs_lowering *lowering, int value, cs_layout layout, int *out) {
  const cs_program *program = lowering->program;
  *out = program->value_tensor[value];
  if (lowering->now.part >= 0) CS_RETURN_IF_ERROR(cs_lower_part_of(lowering, value, out));
  int from = *out;
  const cs_tensor *tensor = &program->tensors[from];
  if (tensor->desc.shape.rank != 4 || tensor->desc.layout == layout) return CS_OK;
  if (!same_bytes(&tensor->desc, layout)) return convert(lowering, value, from, layout, out);
  find_converted(lowering, value, layout, out);
  if (*out >= 0) return CS_OK;
  cs_tensor_desc desc = cs_tensor_dense(&tensor->desc.shape, lowering->storage, layout);
  desc.strides[0] = tensor->desc.strides[0];
  CS_RETURN_IF_ERROR(cs_lower_add_tensor(lowering, value, tensor->buffer, tensor->offset, &desc,
                                         lowering->writer[from], out));
  return note_converted(lowering, value, layout, *out);
}

/* ---- Nodes ---- */

cs_status cs_lower_operation(cs_lowering *lowering, int index) {
  const cs_node *node = &lowering->graph->nodes[index];
  cs_op_desc base = cs_node_base_desc(node, lowering->program->precision);
  int inputs[CS_MAX_OP_INPUTS], output;
  for (int k = 0; k < node->n_inputs; k++) {
    CS_RETURN_IF_ERROR(read_value(lowering, node->inputs[k],
                                  lowering->program->layouts[node->output], &inputs[k]));
  }
  CS_RETURN_IF_ERROR(lowering->now.part >= 0
                         ? cs_lower_part(lowering, node->output, &output)
                         : cs_lower_value(lowering, node->output, CS_WRITER_NONE, &output));
  cs_strbuf name = {0};
  cs_lower_name(lowering, node->name, &name);
  return add_task(lowering, &name, index, &base, inputs, node->n_inputs, output);
}

/* The part of a tensor that holds a value which begins at `begin` along the axis. */
static cs_status add_slice(cs_lowering *lowering, int whole, int value, int axis, int64_t begin,
                           int *out) {
  cs_tensor tensor = lowering->program->tensors[whole];
  int64_t granule = axis == 1 ? cs_layout_granule(tensor.desc.layout) : 1;
  tensor.desc.shape = lowering->graph->values[value].shape;
  int64_t offset = begin / granule * tensor.desc.strides[axis];
  return cs_lower_add_tensor(lowering, value, tensor.buffer,
                             tensor.offset + offset * cs_dtype_size(lowering->storage),
                             &tensor.desc, CS_WRITER_NONE, out);
}

/* Copies an input into its slice unless a concat that shares the place has done so. */
static cs_status fill_slot(cs_lowering *lowering, int whole, const cs_node *node, int value,
                           int64_t begin, int *writer) {
  cs_program *program = lowering->program;
  int slice, existing;
  CS_RETURN_IF_ERROR(add_slice(lowering, whole, value, (int)node->attrs.axis.axis, begin, &slice));
  const cs_tensor *tensor = &program->tensors[slice];
  CS_RETURN_IF_ERROR(cs_pair_map_put(&lowering->slices, tensor->buffer, tensor->offset,
                                     program->n_tasks, &existing));
  if (existing >= 0) {
    program->n_tensors--;
    *writer = existing;
    return CS_OK;
  }
  *writer = program->n_tasks;
  return add_copy(lowering, program->value_tensor[value], slice, node->name);
}

static cs_status lower_concat(cs_lowering *lowering, int index) {
  const cs_graph *graph = lowering->graph;
  const cs_node *node = &graph->nodes[index];
  bool channels = cs_node_is_channel_concat(graph, node);
  cs_location place = lowering->location[node->output];
  int *writers = lowering->slot_writers + lowering->first_slot[index];
  int64_t begin = 0;
  int whole;
  CS_RETURN_IF_ERROR(cs_lower_value(lowering, node->output, CS_WRITER_CONCAT(index), &whole));
  for (int k = 0; k < node->n_inputs; k++) {
    int value = node->inputs[k];
    cs_location at = lowering->location[value];
    if (channels && at.root == place.root && at.offset == place.offset + begin) {
      writers[k] = lowering->writer[lowering->program->value_tensor[value]];
    } else {
      CS_RETURN_IF_ERROR(fill_slot(lowering, whole, node, value, begin, &writers[k]));
    }
    begin += graph->values[value].shape.dims[node->attrs.axis.axis];
  }
  return CS_OK;
}

bool cs_lower_is_row_major(const cs_tensor_desc *desc) {
  if (!cs_tensor_is_dense(desc)) return false;
  if (desc->layout == CS_LAYOUT_NCHW) return true;
  return desc->shape.dims[2] == 1 && desc->shape.dims[3] == 1 &&
         desc->shape.dims[1] % cs_layout_granule(desc->layout) == 0;
}

/* Has the value bytes of its own that must be written, as an output or inside a concat? */
static bool needs_own_bytes(const cs_lowering *lowering, int value) {
  return lowering->is_output[value] || lowering->location[value].root != value;
}

/* The input as row-major elements under another shape. */
static cs_status reshaped_view(cs_lowering *lowering, const cs_node *node, int *out) {
  cs_program *program = lowering->program;
  int from = program->value_tensor[node->inputs[0]];
  const cs_shape *shape = &lowering->graph->values[node->output].shape;
  cs_layout layout = program->layouts[node->output];
  if (!cs_lower_is_row_major(&program->tensors[from].desc)) {
    CS_RETURN_IF_ERROR(convert(lowering, node->inputs[0], from, CS_LAYOUT_NCHW, &from));
  }
  const cs_tensor *tensor = &program->tensors[from];
  cs_tensor_desc desc = cs_tensor_dense(shape, lowering->storage, CS_LAYOUT_NCHW);
  if (shape->rank == 4 && same_bytes(&desc, layout)) desc.layout = layout;
  return cs_lower_add_tensor(lowering, node->output, tensor->buffer, tensor->offset, &desc,
                             lowering->writer[from], out);
}

/* The copy writes the output's bytes through the input's shape. */
static cs_status copy_through_input(cs_lowering *lowering, const cs_node *node) {
  cs_program *program = lowering->program;
  int from = program->value_tensor[node->inputs[0]], whole, shaped;
  CS_RETURN_IF_ERROR(cs_lower_value(lowering, node->output, program->n_tasks, &whole));
  cs_tensor_desc desc =
      cs_tensor_dense(&program->tensors[from].desc.shape, lowering->storage, CS_LAYOUT_NCHW);
  CS_RETURN_IF_ERROR(cs_lower_add_tensor(lowering, node->inputs[0], program->tensors[whole].buffer,
                                         program->tensors[whole].offset, &desc, CS_WRITER_NONE,
                                         &shaped));
  return add_copy(lowering, from, shaped, node->name);
}

/* Flatten and Reshape. */
static cs_status lower_reshape(cs_lowering *lowering, int index) {
  const cs_node *node = &lowering->graph->nodes[index];
  cs_program *program = lowering->program;
  int output = node->output, view, to;
  bool own = needs_own_bytes(lowering, output) && lowering->lender[node->inputs[0]] != node->output;
  if (own && cs_node_copies_through_input(lowering->graph, node, program->layouts) &&
      lowering->location[output].root == output) {
    return copy_through_input(lowering, node);
  }
  CS_RETURN_IF_ERROR(reshaped_view(lowering, node, &view));
  const cs_tensor_desc *desc = &program->tensors[view].desc;
  if (!own && (desc->shape.rank != 4 || desc->layout == program->layouts[output])) {
    program->value_tensor[output] = view;
    return CS_OK;
  }
  program->tensors[view].value = node->inputs[0]; /* what the copy is told to be of */
  CS_RETURN_IF_ERROR(cs_lower_value(lowering, output, CS_WRITER_NONE, &to));
  return add_copy(lowering, view, to, node->name);
}

/* Neighbouring channels are a view of the input; other parts, and those that have bytes of their
 * own, are copied by an operation. */
static cs_status lower_slice(cs_lowering *lowering, int index) {
  const cs_node *node = &lowering->graph->nodes[index];
  cs_program *program = lowering->program;
  cs_layout layout = program->layouts[node->output];
  int from, to;
  if (needs_own_bytes(lowering, node->output) ||
      !cs_node_is_channel_view(lowering->graph, node, layout)) {
    return cs_lower_operation(lowering, index);
  }
  CS_RETURN_IF_ERROR(read_value(lowering, node->inputs[0], layout, &from));
  CS_RETURN_IF_ERROR(add_slice(lowering, from, node->output, 1, node->attrs.slice.starts[0], &to));
  lowering->writer[to] = lowering->writer[from];
  program->value_tensor[node->output] = to;
  return CS_OK;
}

/* An identity is the same bytes where nothing asks for others. */
static cs_status lower_identity(cs_lowering *lowering, int index) {
  const cs_node *node = &lowering->graph->nodes[index];
  cs_program *program = lowering->program;
  int from = program->value_tensor[node->inputs[0]], to;
  if (needs_own_bytes(lowering, node->output)) {
    CS_RETURN_IF_ERROR(cs_lower_value(lowering, node->output, CS_WRITER_NONE, &to));
    return add_copy(lowering, from, to, node->name);
  }
  CS_RETURN_IF_ERROR(read_value(lowering, node->inputs[0], program->layouts[node->output], &from));
  cs_tensor tensor = program->tensors[from];
  CS_RETURN_IF_ERROR(cs_lower_add_tensor(lowering, node->output, tensor.buffer, tensor.offset,
                                         &tensor.desc, lowering->writer[from], &to));
  program->value_tensor[node->output] = to;
  return CS_OK;
}

cs_status cs_lower_node(cs_lowering *lowering, int index) {
  switch (lowering->graph->nodes[index].op) {
    case CS_OP_CONCAT:
      return lower_concat(lowering, index);
    case CS_OP_FLATTEN:
    case CS_OP_RESHAPE:
      return lower_reshape(lowering, index);
    case CS_OP_SLICE:
      return lower_slice(lowering, index);
    case CS_OP_IDENTITY:
    case CS_OP_DROPOUT:
      return lower_identity(lowering, index);
    default:
      return cs_lower_operation(lowering, index);
  }
}
