/* When the kernels of a plan run: as predicted, or as they were seen to run. Pure data, what traces
 * and drawings are made from. */
#ifndef CONVSCHED_REPORT_TIMELINE_H_
#define CONVSCHED_REPORT_TIMELINE_H_

#include "scheduler/kernel_list.h"

typedef enum cs_timeline_source {
  CS_TIMELINE_PLANNED,   /* the plan's predicted times */
  CS_TIMELINE_SIMULATED, /* the same, of a device that is simulated */
  CS_TIMELINE_MEASURED   /* one run under a tracer */
} cs_timeline_source;
/* "planned", "simulated", "measured". */
const char *cs_timeline_source_name(cs_timeline_source source);

/* One kernel (of a CPU: one operation). Where the kernels of a launch are not known, one slice is
 * the launch. */
typedef struct cs_timeline_slice {
  /* The task's name in a plan's file, which is its node's; of a merged launch all of them, " + "
   * between. */
  char *name;
  char **nodes; /* that it computes, fused ones too, by their names in the graph's file */
  int n_nodes;  /* 0 of a copy */
  char *candidate;
  int position;      /* of the plan; of a merged launch its leader's */
  int index, of;     /* which of its launch's kernels, from 0 */
  int stream;        /* of the plan */
  int device_stream; /* that the tracer told, in the device's own numbering; -1: none */
  int part;          /* SMs that its stream keeps to; 0: the whole device */
  int priority;
  double start_us, end_us; /* from the first start */
  int64_t workspace_bytes; /* of its launch */
  bool copy;               /* a task of its own that only moves or converts a tensor */
  /* Else nothing is known of `kernel` but what is said here: registers a thread, bytes of shared
   * memory, grid, occupancy, … */
  bool kernel_known;
  bool grid_known; /* false: of a merged launch, the grid is its leader's */
  cs_kernel_info kernel;
  char short_kernel[64]; /* its name for a person; "": not known */
  /* It was seen to begin before the slice before it on its stream, or one that it needs, had ended,
   * as kernels may that wait for themselves. */
  bool early;
  /* start_us; of an early slice, and where clocks differ, the end of what it waited for, so that
   * slices of a stream do not overlap and none is before what it needs. */
  double shown_us;
} cs_timeline_slice;

/* `to` needs what `from` makes: slices, of two launches the last kernel and the first. */
typedef struct cs_timeline_edge {
  int from, to;
} cs_timeline_edge;

typedef struct cs_timeline {
  cs_timeline_source source;
  cs_timeline_slice *slices; /* by start, then plan position, then index */
  int n_slices;
  cs_timeline_edge *edges; /* by `to`, then `from` */
  int n_edges;
  int n_streams; /* of the plan; some may have no slice */
  double span_us;
  /* The most by which a slice that is not early started before what it waited for had ended: what
   * the clocks of streams differ by. */
  double slack_us;
} cs_timeline;

typedef struct cs_timeline_times { /* of one kernel, microseconds */
  double start_us, end_us;
  int device_stream; /* -1: unknown */
} cs_timeline_times;

/* Of a plan, its kernels (`list`, made of `input`) and, for a run, times per item of the list (of
 * items that are part of another launch nothing is read; NaN: it was not seen, and has no slice);
 * NULL: the list's own. */
cs_status cs_timeline_make(const cs_kernel_list_input *input, const cs_kernel_list *list,
                           const cs_timeline_times *times, cs_timeline_source source,
                           cs_timeline *out) CS_MUST_USE;
void cs_timeline_free(cs_timeline *timeline);

#endif
