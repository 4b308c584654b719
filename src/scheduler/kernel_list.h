/* The kernels of a plan in launch order, each with what it is there for. Pure: a function of the
 * plan, of its program, and of the kernels as a driver or a profile tells them. */
#ifndef CONVSCHED_SCHEDULER_KERNEL_LIST_H_
#define CONVSCHED_SCHEDULER_KERNEL_LIST_H_

#include <jansson.h>

#include "scheduler/plan.h"

/* X(name, text, whether it computes: copies and layout changes do not) */
#define CS_KERNEL_CLASSES(X)              \
  X(COMPUTE, "compute", true)             \
  X(POOL, "pool", true)                   \
  X(NORMALIZATION, "normalization", true) \
  X(ELEMENTWISE, "elementwise", true)     \
  X(EPILOGUE, "epilogue", true)           \
  X(TRANSFORM, "transform", true)         \
  X(REDUCTION, "reduction", true)         \
  X(PREPARATION, "preparation", true)     \
  X(UNCLEAR, "unclear", true)             \
  X(PAD, "pad", true)                     \
  X(MOVE, "data movement", true)          \
  X(COPY, "copy", false)                  \
  X(SLICE, "slice copy", false)           \
  X(LAYOUT, "layout change", false)       \
  X(INNER, "copy inside of a candidate", false)
typedef enum cs_kernel_class {
#define CS_KERNEL_CLASS_ENUM(name, text, computes) CS_KERNEL_##name,
  CS_KERNEL_CLASSES(CS_KERNEL_CLASS_ENUM)
#undef CS_KERNEL_CLASS_ENUM
      CS_KERNEL_CLASS_COUNT
} cs_kernel_class;

typedef struct cs_kernel_list_input {
  const cs_graph *bound; /* as it was before passes */
  const cs_program *program;
  const cs_plan *plan;
  const cs_device_info *device;
  /* `info.launch` is a position of the plan, those of one launch in the order they run; without a
   * name: only known that there is one. */
  const cs_kernel_profile *kernels;
  int n_kernels;
  bool recorded; /* of candidates alone: the grid of a merged launch is not known */
} cs_kernel_list_input;

typedef struct cs_listed_kernel {
  int position;  /* in the plan */
  int index, of; /* which of its launch's kernels, from 0; of 0: it is part of another launch */
  const cs_kernel_info *info; /* NULL: not known */
  bool grid_known;
  cs_kernel_class kind;
  double start_us, us; /* planned; a launch's time divided over its kernels as in the SM model */
  char *reason;
} cs_listed_kernel;

typedef struct cs_kernel_list {
  cs_listed_kernel *items;
  size_t n, capacity;
  cs_kernel_profile *sorted; /* what `info` points into */
  int launches, kernels;
  int unknown; /* launches whose kernels are not known: each counts as one */
  double us;
  struct {
    int kernels;
    double us;
  } classes[CS_KERNEL_CLASS_COUNT];
} cs_kernel_list;

/* INTERNAL: kernels of no launch. */
cs_status cs_kernel_list_make(const cs_kernel_list_input *input, cs_kernel_list *out) CS_MUST_USE;
void cs_kernel_list_free(cs_kernel_list *list);
/* {"kernels":[…],"totals":{…}} as of cs_session_kernels_json. */
cs_status cs_kernel_list_json(const cs_kernel_list *list, const cs_kernel_list_input *input,
                              json_t **out) CS_MUST_USE;

/* ---- kernel_reasons.c ---- */

/* Why a task of the program is there, whole or without what another kernel does of it. */
typedef struct cs_reasons {
  const cs_kernel_list_input *input;
  int *block_of; /* per task */
  int *nodes;    /* scratch of cs_graph_nodes_of */
} cs_reasons;
cs_status cs_reasons_begin(const cs_kernel_list_input *input, cs_reasons *out) CS_MUST_USE;
void cs_reasons_end(cs_reasons *reasons);
/* Appends the reason of a kernel: k of n of the launch at `position`, of that role; returns its
 * class. */
cs_kernel_class cs_reason_of(const cs_reasons *reasons, int position, int k, int n, int role,
                             bool epilogue_apart, cs_strbuf *out);

#endif
