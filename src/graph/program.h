/* A program: a bound, passed graph lowered for one precision and one layout assignment: buffers,
 * tensors (views of buffers with strides) and tasks with their dependencies. It is what is
 * profiled, scheduled and executed. Pure data, a deterministic function of its inputs. */
#ifndef CONVSCHED_GRAPH_PROGRAM_H_
#define CONVSCHED_GRAPH_PROGRAM_H_

#include "graph/division.h"
#include "graph/graph.h"

typedef enum cs_buffer_kind {
  CS_BUFFER_INTERMEDIATE,
  CS_BUFFER_INPUT,
  CS_BUFFER_OUTPUT
} cs_buffer_kind;
typedef struct cs_buffer {
  int64_t bytes;
  cs_buffer_kind kind; /* inputs and outputs live for the whole plan */
  char *name;          /* of the root value (a copy: "value@nhwc") */
} cs_buffer;

typedef struct cs_tensor {
  int value; /* graph value whose contents it holds */
  int buffer;
  int64_t offset;      /* bytes into the buffer */
  cs_tensor_desc desc; /* strides of the view; alignment follows from the offset (buffers: 256) */
} cs_tensor;

typedef struct cs_task {
  char *name; /* the node's name; for copies "copy:<value>:<why>" */
  int node;   /* graph node, -1 for an inserted copy */
  int part;   /* of its node's division, or of the reader's that it copies for; -1: all entries */
  cs_op_desc desc;
  int inputs[CS_MAX_OP_INPUTS]; /* tensor indices, desc.n_inputs of them */
  int output;                   /* tensor index */
  int *preds, n_preds;          /* tasks that wrote what this one reads; ascending, each once */
} cs_task;

typedef struct cs_program {
  const cs_graph *graph; /* borrowed; outlives the program */
  cs_precision precision;
  cs_layout *layouts;    /* per graph value: the layout its producer writes */
  cs_division *division; /* of the nodes' batches; NULL: all are whole */
  cs_buffer *buffers;
  int n_buffers;
  cs_tensor *tensors;
  int n_tensors;
  cs_task *tasks; /* topological order */
  int n_tasks;
  int *input_tensors;  /* per graph input */
  int *output_tensors; /* per graph output */
  int *value_tensor;   /* per graph value: the tensor its producer writes or, for views (Flatten),
                          aliases; -1: none (what parts write to buffers of their own) */
} cs_program;

/* Lowers. `layouts` has one entry per graph value (ignored for ranks other than 4). A node runs in
 * its output's layout; inputs in another layout get a Copy task, shared by all readers that want
 * the same. A concat input lies in place when the pass said so and layout and channel granule
 * allow; otherwise it is copied. Flatten of a row-major or 1×1 tensor is a view. Graph outputs and
 * inputs are buffers of their own kind. */
cs_status cs_program_lower(const cs_graph *graph, cs_precision precision, const cs_layout *layouts,
                           cs_program **out) CS_MUST_USE;
/* The same with the batches of nodes divided (NULL: none are). A divided node has a task for each
 * part, "NAME/0", "NAME/1", …, which reads its batch entries of the inputs and waits for those
 * alone; what has to be copied for it is copied by the part. Neighbours in topological order of one
 * list of parts run part by part. Where all that write and read a value have one list, its parts
 * are buffers of their own; elsewhere they are slices of one. */
cs_status cs_program_lower_divided(const cs_graph *graph, cs_precision precision,
                                   const cs_layout *layouts, const cs_division *division,
                                   cs_program **out) CS_MUST_USE;
void cs_program_destroy(cs_program *program);
/* Roofline inputs: sum over tasks. */
void cs_program_totals(const cs_program *program, double *flops, double *bytes);

#endif
