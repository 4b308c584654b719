/* State of lowering a graph to a program, shared by lower.c, lower_nodes.c and lower_preds.c. */
#ifndef CONVSCHED_GRAPH_LOWER_H_
#define CONVSCHED_GRAPH_LOWER_H_

#include "graph/graph_internal.h"
#include "graph/index.h"
#include "graph/program.h"

/* Who wrote a tensor: a task index, nobody (a graph input), or the parts of a concat. */
#define CS_WRITER_NONE (-1)
#define CS_WRITER_CONCAT(node) (-2 - (node))

/* Where a value lies: `root`'s buffer from channel `offset` on. */
typedef struct cs_location {
  int root;
  int64_t offset;
} cs_location;

typedef struct cs_lowering {
  const cs_graph *graph;
  cs_program *program;
  cs_dtype storage;
  bool *is_output;       /* per value */
  cs_location *location; /* per value */
  int *buffer;           /* per value: its own buffer, -1: none yet */
  int *lender; /* per value: the flattened output whose buffer it is written into, -1: none */
  int *writer; /* per tensor */
  size_t buffer_capacity, tensor_capacity, writer_capacity, task_capacity;
  int *converted;     /* per value and layout: the tensor of a converted copy, -1: none */
  cs_pair_map slices; /* (buffer, byte offset) to the task that copied a concat input there */
  int *first_slot;    /* per node: into slot_writers, for concats */
  int *slot_writers;  /* writer of each input of each concat, as in `writer` */
  size_t n_slots;
  /* Scratch of collecting predecessors. */
  int *seen_node, *seen_task; /* stamps */
  size_t seen_task_capacity;
  int stamp;
  int *stack, *found;
  size_t stack_capacity, found_capacity;
} cs_lowering;

/* The tensor that a value's producer writes: its own buffer or a slice of its root's. */
cs_status cs_lower_value(cs_lowering *lowering, int value, int writer, int *out) CS_MUST_USE;
/* Appends the tasks of a node whose inputs are lowered. */
cs_status cs_lower_node(cs_lowering *lowering, int index) CS_MUST_USE;
/* Can the bytes be read as a row-major tensor of any shape of as many elements? */
bool cs_lower_is_row_major(const cs_tensor_desc *desc);
/* Fills preds of the newest task from the writers of its inputs: ascending, each once. */
cs_status cs_lower_preds(cs_lowering *lowering) CS_MUST_USE;

#endif
