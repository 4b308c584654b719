/* What the files of the CPU backend share: the open device, a prepared candidate, and the interface
 * to oneDNN. Only dnn*.c include oneDNN's headers. */
#ifndef CONVSCHED_BACKEND_CPU_CPU_H_
#define CONVSCHED_BACKEND_CPU_CPU_H_

#include "backend/backend.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/transposed.h"

/* ---- The machine ---- */

typedef struct cpu_machine {
  char name[128];      /* the processor's model name */
  char signature[160]; /* vendor, family, model, stepping */
  int cores;           /* this process may use */
  int64_t memory_bytes, cache_bytes;
  int clock_mhz; /* 0: unknown */
} cpu_machine;
void cpu_machine_detect(cpu_machine *out);
int64_t cpu_free_memory(void); /* bytes; 0: unknown */

/* OpenMP threads of parallel regions that the calling thread starts; returns the former number. */
int cpu_set_threads(int threads);
const char *cpu_openmp_version(void); /* "none" in a build without OpenMP */

/* ---- oneDNN (dnn.c, dnn_desc.c) ---- */

typedef struct dnn dnn;                 /* an engine and a stream */
typedef struct dnn_op dnn_op;           /* a primitive */
typedef struct dnn_binding dnn_binding; /* a primitive with its memories */

cs_status dnn_open(dnn **out) CS_MUST_USE;
void dnn_close(dnn *engine);
const char *dnn_isa(void);     /* "avx512_core", … */
const char *dnn_version(void); /* "2.6.3" */
int dnn_lanes(void);           /* channels in a block: 16 (AVX-512), 8 (AVX2), 1 */

typedef struct dnn_implementation {
  char name[96]; /* oneDNN's name, numbered where one name occurs twice */
  int64_t scratchpad_bytes;
  bool winograd;
  bool reference; /* oneDNN's own plain loops */
} dnn_implementation;
/* Implementations of a dense-or-strided f32 operation, in oneDNN's order, for the calling thread's
 * number of threads. None is not an error. free() releases. */
cs_status dnn_implementations(dnn *engine, const cs_op_desc *desc, dnn_implementation **out,
                              int *count) CS_MUST_USE;
/* BAD_INPUT: no implementation of that name. */
cs_status dnn_op_create(dnn *engine, const cs_op_desc *desc, const char *name,
                        dnn_op **out) CS_MUST_USE;
void dnn_op_destroy(dnn_op *op);
int64_t dnn_op_scratchpad_bytes(const dnn_op *op);
int64_t dnn_op_weight_bytes(const dnn_op *op);
cs_status dnn_op_pack(const dnn_op *op, const float *weight, const float *bias,
                      void *out) CS_MUST_USE;
/* Fixes the addresses. `inputs` as in the op's desc. */
cs_status dnn_bind(const dnn_op *op, const void *const *inputs, void *output, const void *weights,
                   void *scratchpad, dnn_binding **out) CS_MUST_USE;
void dnn_binding_destroy(dnn_binding *binding);
cs_status dnn_run(const dnn_binding *binding) CS_MUST_USE;
/* out[rows][columns] = A · b[depth][columns], row-major; A is a[rows][a_stride], or with
 * `transposed` a[depth][a_stride]. On the calling thread's number of threads. */
cs_status dnn_sgemm(bool transposed, int64_t rows, int64_t columns, int64_t depth, const float *a,
                    int64_t a_stride, const float *b, float *out) CS_MUST_USE;

/* ---- Own loops (loops.c, loops_window.c): f32 unless said otherwise, any strides and layouts ----
 */

bool cpu_loop_exists(const cs_op_desc *desc);
/* `weights`: scale then shift for BatchNormalization and InstanceNormalization, weights then bias
 * for ConvTranspose, the constant of a binary operator as cs_op_operand says; else NULL. A residual
 * is not taken; the fused activation is. */
void cpu_loop_run(const cs_op_desc *desc, const void *const *inputs, const float *weights,
                  void *output);
/* Logical copy; any storage types. Lanes that pad a blocked layout become zeros. */
void cpu_copy(const cs_tensor_desc *from_desc, const void *from, const cs_tensor_desc *to_desc,
              void *to);
/* In place y = act(y + residual); `residual` may be NULL. */
void cpu_epilogue(const cs_tensor_desc *y_desc, void *y, const cs_tensor_desc *residual_desc,
                  const void *residual, cs_activation activation);
/* Add … PRelu, broadcast: a part of cpu_loop_run. */
void cpu_loop_binary(const cs_op_desc *desc, const void *const *inputs, const float *weights,
                     float *output);
/* Reductions and InstanceNormalization (`weights`: scale, then shift): as above. */
void cpu_loop_reduce(const cs_op_desc *desc, const float *input, float *output);
void cpu_loop_instance_norm(const cs_op_desc *desc, const float *input, const float *weights,
                            float *output);
/* Transpose, Slice (no blocks of channels); Pad; Resize. */
void cpu_loop_move(const cs_op_desc *desc, const float *input, float *output);
void cpu_loop_pad(const cs_op_desc *desc, const float *input, float *output);
void cpu_loop_resize(const cs_op_desc *desc, const float *input, float *output);
float cpu_activate(cs_activation activation, float x);
void cpu_clear_padding_lanes(const cs_tensor_desc *desc, void *memory);
/* Pooling, LRN, Softmax, GlobalAveragePool, ConvTranspose: a half of cpu_loop_run. */
void cpu_loop_window(const cs_op_desc *desc, const float *input, const float *weights,
                     float *output);

/* ---- Backend, prepared candidates, schedules ---- */

typedef struct cpu_backend {
  cs_backend base;
  cs_device_info info;
  cpu_machine machine;
  dnn *engine;
} cpu_backend;

/* How a candidate brings an operation to what an implementation accepts. */
typedef struct cpu_variant {
  bool applies;
  cs_op_desc core; /* f32; what the implementation computes. inputs[] keeps an unfused residual */
  bool staged_inputs[CS_MAX_OP_INPUTS]; /* converted into the workspace first */
  bool staged_output;                   /* computed in the workspace, converted afterwards */
  bool unfused;                         /* residual and activation in a pass of their own */
  int images;                           /* the core runs once per image, this many times */
  char suffix[32];                      /* of the candidate's id */
} cpu_variant;
/* Way number `index`, best first; false: no more. One that does not apply is to be passed over. */
bool cpu_variant_get(const cs_op_desc *desc, int index, cpu_variant *out);

struct cs_exec {
  cpu_backend *backend;
  cs_op_desc desc;
  cpu_variant variant;
  dnn_op *op;          /* NULL: an own loop */
  cpu_transposed form; /* of an own loop: a transposed convolution in this way */
  cpu_gemm gemm;       /* of an own loop: a dense layer in this way */
  int threads;
  int64_t stage_offsets[CS_MAX_OP_INPUTS + 1]; /* bytes into the workspace; the output's last */
  int64_t scratchpad_offset, workspace_bytes, weight_bytes;
};

cs_status cpu_enumerate(cs_backend *backend, const cs_op_desc *desc,
                        const cs_enumerate_options *options, cs_candidate_list *out) CS_MUST_USE;
cs_status cpu_baselines(cs_backend *backend, const cs_op_desc *desc,
                        const cs_enumerate_options *options, cs_candidate_list *out) CS_MUST_USE;
cs_status cpu_prepare(cs_backend *backend, const cs_op_desc *desc, const cs_candidate *candidate,
                      cs_exec **out) CS_MUST_USE;
void cpu_exec_destroy(cs_exec *exec);
int64_t cpu_exec_workspace(const cs_exec *exec);
int64_t cpu_exec_weight_bytes(const cs_exec *exec);
cs_status cpu_pack_weights(const cs_exec *exec, const float *weight, const float *bias,
                           void *host_out) CS_MUST_USE;

/* An exec with its addresses fixed. */
typedef struct cpu_bound {
  const cs_exec *exec;
  const void *inputs[CS_MAX_OP_INPUTS];      /* as launched */
  const void *core_inputs[CS_MAX_OP_INPUTS]; /* as the core sees them */
  void *output, *core_output;
  const void *weights;
  void *scratchpad;
  dnn_binding **images; /* variant.images of them */
} cpu_bound;
cs_status cpu_bind(const cs_launch *launch, cpu_bound *out) CS_MUST_USE;
void cpu_bound_clear(cpu_bound *bound);
cs_status cpu_bound_run(const cpu_bound *bound) CS_MUST_USE;

cs_status cpu_schedule_create(cs_backend *backend, const cs_launch *launches, int n,
                              const cs_stream_set *streams, bool use_graph,
                              cs_schedule **out) CS_MUST_USE;
void cpu_schedule_destroy(cs_schedule *schedule);
cs_status cpu_schedule_run(cs_schedule *schedule) CS_MUST_USE;
cs_status cpu_schedule_latency(cs_schedule *schedule, int count, double *us) CS_MUST_USE;
cs_status cpu_schedule_b2b(cs_schedule *schedule, int n, double *us) CS_MUST_USE;
cs_status cpu_schedule_trace(cs_schedule *schedule, cs_kernel_trace *out, int capacity,
                             int *count) CS_MUST_USE;

#endif
