/* Streams and launch order after Opara (Chen et al., "Opara: Exploiting Operator Parallelism for
 * Expediting DNN Inference on GPUs", 2023). A task takes over the stream of the first of its
 * predecessors whose stream no earlier child took, else it gets a new one. Of the tasks whose
 * predecessors are launched, those that memory bounds and those that arithmetic bounds are launched
 * in turn, the one with the least demand on the device first.
 *
 * What differs: a stream that no later task can continue is used again behind its last task, which
 * costs no concurrency; at max_streams, a task that would get a new one joins the stream with the
 * least work; the published code lets only a predecessor's very first child continue its stream.
 * Demand and kind of a task come from its recorded kernels and counters, and where there are none
 * from its arithmetic intensity (`cs_task_demands`). Arithmetic begins; ties go to the lower
 * number. */
#include <stdlib.h>

#include "scheduler/internal.h"

typedef struct opara_state {
  const cs_policy_input *input;
  int n, n_streams;
  cs_dag dag;
  uint64_t *ancestors; /* per task */
  int *children_left;  /* per task: children without a stream */
  bool *taken;         /* per task: a child continues its stream */
  int *stream_of;      /* per task */
  int *last;           /* per stream: its last task */
  double *work_us;     /* per stream */
  cs_task_demand *demands;
  int *waiting;   /* per task: predecessors that are not launched */
  bool *launched; /* per task */
} opara_state;

static void state_free(opara_state *s) {
  cs_dag_free(&s->dag);
  free(s->ancestors);
  free(s->children_left);
  free(s->taken);
  free(s->stream_of);
  free(s->last);
  free(s->work_us);
  free(s->demands);
  free(s->waiting);
  free(s->launched);
}

static bool allocate(opara_state *s) {
  size_t n = (size_t)s->n;
  s->ancestors = cs_dag_ancestors(&s->dag);
  s->children_left = cs_calloc(n, sizeof *s->children_left);
  s->taken = cs_calloc(n, sizeof *s->taken);
  s->stream_of = cs_calloc(n, sizeof *s->stream_of);
  s->last = cs_calloc(n, sizeof *s->last);
  s->work_us = cs_calloc(n, sizeof *s->work_us);
  s->demands = cs_calloc(n, sizeof *s->demands);
  s->waiting = cs_calloc(n, sizeof *s->waiting);
  s->launched = cs_calloc(n, sizeof *s->launched);
  return s->ancestors && s->children_left && s->taken && s->stream_of && s->last && s->work_us &&
         s->demands && s->waiting && s->launched;
}

/* ---- Streams ---- */

/* A predecessor that is the last on its stream, whose stream no earlier child took; −1: none. */
static int untaken_predecessor(const opara_state *s, int t) {
  for (int e = s->dag.first[t]; e < s->dag.first[t + 1]; e++) {
    int u = s->dag.from[e];
    if (!s->taken[u] && s->last[s->stream_of[u]] == u) return u;
  }
  return -1;
}

/* A stream that nothing will continue and that has ended whenever t starts; −1: none. */
static int ended_stream(const opara_state *s, int t) {
  const uint64_t *before = s->ancestors + (size_t)t * cs_bit_words(s->n);
  for (int stream = 0; stream < s->n_streams; stream++) {
    int last = s->last[stream];
    if (s->children_left[last] == 0 && cs_bit_get(before, last)) return stream;
  }
  return -1;
}

static int least_work(const opara_state *s) {
  int best = 0;
  for (int stream = 1; stream < s->n_streams; stream++)
    if (s->work_us[stream] < s->work_us[best]) best = stream;
  return best;
}

static void allocate_streams(opara_state *s) {
  for (int t = 0; t < s->n; t++) {
    int pred = untaken_predecessor(s, t), stream;
    for (int e = s->dag.first[t]; e < s->dag.first[t + 1]; e++) s->children_left[s->dag.from[e]]--;
    if (pred >= 0) {
      stream = s->stream_of[pred];
      s->taken[pred] = true;
    } else {
      stream = ended_stream(s, t);
      if (stream < 0)
        stream = s->n_streams < s->input->max_streams ? s->n_streams++ : least_work(s);
    }
    s->stream_of[t] = stream;
    s->last[stream] = t;
    s->work_us[stream] += s->input->choices[t].choices[0].cold_us;
  }
}

/* ---- Launch order ---- */

/* The ready task of a kind with the least demand; −1: none. */
static int least_demand(const opara_state *s, bool memory_bound) {
  int best = -1;
  for (int t = 0; t < s->n; t++) {
    if (s->launched[t] || s->waiting[t] > 0 || s->demands[t].memory_bound != memory_bound) continue;
    if (best < 0 || s->demands[t].share < s->demands[best].share) best = t;
  }
  return best;
}

static void mark_launched(opara_state *s, int task) {
  s->launched[task] = true;
  for (int t = task + 1; t < s->n; t++)
    for (int e = s->dag.first[t]; e < s->dag.first[t + 1]; e++)
      if (s->dag.from[e] == task) s->waiting[t]--;
}

static cs_status launch_all(opara_state *s, cs_plan *out) {
  bool memory_bound = false; /* arithmetic begins */
  for (int p = 0; p < s->n; p++) {
    int t = least_demand(s, memory_bound);
    if (t < 0) t = least_demand(s, !memory_bound);
    mark_launched(s, t);
    CS_RETURN_IF_ERROR(
        cs_plan_place(out, p, t, s->stream_of[t], s->input->choices[t].choices[0].candidate));
    memory_bound = !s->demands[t].memory_bound;
  }
  return CS_OK;
}

static cs_status plan_opara(const cs_policy_input *input, cs_plan *out) {
  cs_status st = CS_OK;
  opara_state s = {.input = input, .n = input->program->n_tasks};
  CS_TRY(st, cs_plan_begin(input->program, out), done);
  CS_TRY(st, cs_dag_of_program(input->program, &s.dag), done);
  if (!allocate(&s))
    CS_FAIL(st, done, CS_CODE_NO_MEMORY, "out of memory for the streams of %d tasks", s.n);
  for (int e = 0; e < s.dag.n_edges; e++) s.children_left[s.dag.from[e]]++;
  for (int t = 0; t < s.n; t++) s.waiting[t] = s.dag.first[t + 1] - s.dag.first[t];
  cs_task_demands(input, s.demands);
  allocate_streams(&s);
  out->n_streams = s.n_streams > 0 ? s.n_streams : 1;
  CS_TRY(st, launch_all(&s, out), done);
  CS_TRY(st, cs_plan_fill_waits(out, input->program), done);
done:
  state_free(&s);
  return st;
}

const cs_policy cs_policy_opara = {
    .name = "opara",
    .source =
        "Opara (Chen et al., 2023): a task continues the stream of a predecessor that no earlier "
        "child took; least demand first, memory- and compute-bound tasks in turn; here ended "
        "streams are used again and their number is limited; demand is the share of the scarcest "
        "SM resource, and the kind of a task is counted, where its kernels are recorded, else both "
        "follow from its arithmetic intensity and the roofline (CPU: demand is threads)",
    .plan = plan_opara,
};
