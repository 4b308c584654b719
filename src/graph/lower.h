/* State of lowering a graph to a program, shared by lower*.c. */
#ifndef CONVSCHED_GRAPH_LOWER_H_
#define CONVSCHED_GRAPH_LOWER_H_

#include "graph/graph_internal.h"
#include "graph/index.h"
#include "graph/program.h"

/* Who wrote a tensor: a task index, nobody (a graph input), the inputs of a concat, or the parts of
 * a divided node, by the value that it makes. */
#define CS_WRITER_NONE (-1)
#define CS_WRITER_CONCAT(node) (-2 - 2 * (node))
#define CS_WRITER_PARTS(value) (-3 - 2 * (value))

/* The batch entries that are being lowered: part `part` of a list of the division. */
typedef struct cs_lowered_part {
  int list, part; /* -1: all entries */
  int64_t first, n;
} cs_lowered_part;

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
  /* Divided nodes. */
  cs_lowered_part now;
  bool *apart;     /* per value: what lies in it is written and read by parts of one list alone */
  int *first_part; /* per value of a divided node: into the two below */
  int *part_tensor, *part_buffer; /* per part of such a value; -1: none yet */
  size_t n_parts;
  cs_pair_map sliced;          /* (tensor, part) to the tensor of its batch entries */
  cs_pair_map converted_parts; /* (value and layout, part) to the tensor of a converted copy */
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

/* ---- lower_parts.c ---- */
/* Once values are located: makes what divided nodes need. */
cs_status cs_lower_parts_begin(cs_lowering *lowering) CS_MUST_USE;
void cs_lower_parts_release(cs_lowering *lowering);
/* Nodes first … end − 1, all of one list, part by part. */
cs_status cs_lower_divided(cs_lowering *lowering, int first, int end) CS_MUST_USE;
/* lowering->now of a value, as its producer wrote it: its part's tensor, or a slice of the whole.
 */
cs_status cs_lower_part_of(cs_lowering *lowering, int value, int *out) CS_MUST_USE;
/* The tensor that the part which is being lowered of a value's producer writes. */
cs_status cs_lower_part(cs_lowering *lowering, int value, int *out) CS_MUST_USE;
/* Adds what is between the names of a value or node and the part that is being lowered. */
void cs_lower_name(const cs_lowering *lowering, const char *name, cs_strbuf *out);

/* ---- lower_nodes.c ---- */
cs_status cs_lower_add_buffer(cs_lowering *lowering, cs_strbuf *name, cs_buffer_kind kind,
                              int64_t bytes, int *out) CS_MUST_USE;
cs_status cs_lower_add_tensor(cs_lowering *lowering, int value, int buffer, int64_t offset,
                              const cs_tensor_desc *desc, int writer, int *out) CS_MUST_USE;
/* The task of a node that is an operation, of the part that is being lowered. */
cs_status cs_lower_operation(cs_lowering *lowering, int index) CS_MUST_USE;

/* The tensor that a value's producer writes: its own buffer or a slice of its root's. */
cs_status cs_lower_value(cs_lowering *lowering, int value, int writer, int *out) CS_MUST_USE;
/* Appends the tasks of a node whose inputs are lowered. */
cs_status cs_lower_node(cs_lowering *lowering, int index) CS_MUST_USE;
/* Can the bytes be read as a row-major tensor of any shape of as many elements? */
bool cs_lower_is_row_major(const cs_tensor_desc *desc);
/* Fills preds of the newest task from the writers of its inputs: ascending, each once. */
cs_status cs_lower_preds(cs_lowering *lowering) CS_MUST_USE;

#endif
