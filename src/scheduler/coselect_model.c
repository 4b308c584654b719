/* What the SM model expects of configurations. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/coselect.h"
#include "scheduler/sm_corun.h"

/* ---- Tasks and their sets ---- */

int cs_coselect_member(const cs_coselect *c, int task, int choice) {
  const cs_coselect_task *t = &c->tasks[task];
  for (int i = 0; i < t->n; i++) {
    if (t->choices[i] == choice) return i;
  }
  return -1;
}

bool cs_coselect_independent(const cs_coselect *c, int a, int b) {
  size_t words = cs_bit_words(c->input->program->n_tasks);
  return !cs_bit_get(c->ancestors + (size_t)a * words, b) &&
         !cs_bit_get(c->ancestors + (size_t)b * words, a);
}

/* ---- Kernels ---- */

static double alone_us(const cs_coselect *c, const cs_choice *choice) {
  return c->cold * choice->cold_us + (1 - c->cold) * fmin(choice->warm_us, choice->cold_us);
}

/* Something that takes the time and no resources: all that is known of it. */
static cs_sm_kernel plain_kernel(double us) {
  return (cs_sm_kernel){.blocks = 1, .cluster = 1, .block_us = us};
}

static cs_status prepare_choice(cs_coselect *c, const cs_choice *choice, cs_sm_kernel **out,
                                int *n) {
  *n = choice->kernels ? choice->n_kernels : 1;
  *out = cs_calloc((size_t)*n, sizeof **out);
  if (!*out) return cs_no_memory("kernels", (size_t)*n * sizeof **out);
  double us = alone_us(c, choice);
  if (!choice->kernels) {
    (*out)[0] = plain_kernel(us);
    return CS_OK;
  }
  cs_record record = {.kernels = (cs_kernel_profile *)(uintptr_t)choice->kernels,
                      .n_kernels = choice->n_kernels};
  record.candidate.id = choice->candidate->id;
  cs_status st = cs_sm_kernels_prepare(c->model, &record, us, *out);
  if (cs_status_code(st) != CS_CODE_BAD_INPUT) return st;
  cs_status_free(st); /* a kernel that no SM of the device holds was recorded elsewhere */
  *n = 1;
  (*out)[0] = plain_kernel(us);
  return CS_OK;
}

static cs_status prepare_task(cs_coselect *c, int task) {
  cs_coselect_task *t = &c->tasks[task];
  CS_RETURN_IF_ERROR(cs_coselect_choose(c->input, task, t));
  for (int i = 0; c->model && i < t->n; i++) {
    const cs_choice *choice = &c->input->choices[task].choices[t->choices[i]];
    CS_RETURN_IF_ERROR(prepare_choice(c, choice, &t->kernels[i], &t->n_kernels[i]));
  }
  return CS_OK;
}

/* ---- Create, destroy ---- */

/* Bytes of tensors and weights, each once. */
static int64_t footprint(const cs_program *program) {
  int64_t bytes = 0;
  for (int b = 0; b < program->n_buffers; b++) bytes += program->buffers[b].bytes;
  for (int t = 0; t < program->n_tasks; t++) {
    const cs_op_desc *desc = &program->tasks[t].desc;
    bytes += cs_op_weight_elements(desc) * cs_dtype_size(desc->output.dtype);
  }
  return bytes;
}

static cs_status open_model(cs_coselect *c) {
  c->cold = 1;
  if (!c->input->device) return CS_OK;
  cs_status st = cs_sm_model_create(c->input->device, NULL, &c->model);
  if (cs_status_code(st) == CS_CODE_BAD_INPUT) { /* no such device: a CPU */
    cs_status_free(st);
    return CS_OK;
  }
  if (st == CS_OK) c->cold = cs_sm_coldness(c->model, footprint(c->input->program));
  return st;
}

/* The largest window's launches, with the candidates of most kernels. */
static cs_status make_room(cs_coselect *c) {
  size_t most = 0, waits = 0, n_tasks = (size_t)c->input->program->n_tasks;
  for (int w = 0; w < c->windows.n; w++) {
    size_t launches = 0;
    for (int i = c->windows.first[w]; i < c->windows.first[w + 1]; i++) {
      int task = c->windows.order[i], kernels = 1;
      for (int k = 0; k < c->tasks[task].n; k++) {
        if (c->tasks[task].n_kernels[k] > kernels) kernels = c->tasks[task].n_kernels[k];
      }
      launches += (size_t)kernels;
      c->window_of[task] = w;
    }
    if (launches > most) most = launches;
  }
  for (size_t t = 0; t < n_tasks; t++) waits += (size_t)c->input->program->tasks[t].n_preds;
  size_t streams = (size_t)c->input->max_streams;
  c->launches = cs_calloc(most, sizeof *c->launches);
  c->merged = cs_calloc(most, sizeof *c->merged);
  c->marks = cs_calloc(n_tasks, sizeof *c->marks);
  c->waits = cs_calloc(waits, sizeof *c->waits);
  c->last_launch = cs_calloc(n_tasks, sizeof *c->last_launch);
  c->task_end = cs_calloc(n_tasks, sizeof *c->task_end);
  c->stream_names = cs_calloc(streams, sizeof *c->stream_names);
  c->stream_end = cs_calloc(streams, sizeof *c->stream_end);
  if (!c->launches || !c->merged || !c->marks || !c->waits || !c->last_launch || !c->task_end ||
      !c->stream_names || !c->stream_end) {
    return cs_no_memory("a simulation", most * sizeof *c->launches);
  }
  for (size_t t = 0; t < n_tasks; t++) c->last_launch[t] = -1;
  return CS_OK;
}

static cs_status find_ancestors(cs_coselect *c) {
  cs_dag dag;
  CS_RETURN_IF_ERROR(cs_dag_of_program(c->input->program, &dag));
  c->ancestors = cs_dag_ancestors(&dag);
  cs_dag_free(&dag);
  return c->ancestors ? CS_OK : cs_no_memory("ancestors", (size_t)c->input->program->n_tasks);
}

cs_status cs_coselect_create(const cs_policy_input *input, cs_coselect **out) {
  cs_status st = CS_OK;
  size_t n = (size_t)input->program->n_tasks;
  *out = NULL;
  cs_coselect *c = cs_calloc(1, sizeof *c);
  if (!c) return cs_no_memory("a search", sizeof *c);
  c->input = input;
  c->tasks = cs_calloc(n, sizeof *c->tasks);
  c->window_of = cs_calloc(n, sizeof *c->window_of);
  if (!c->tasks || !c->window_of) {
    st = cs_no_memory("a search", n * sizeof *c->tasks);
    goto done;
  }
  CS_TRY(st, open_model(c), done);
  for (size_t t = 0; t < n; t++) CS_TRY(st, prepare_task(c, (int)t), done);
  CS_TRY(st, cs_ios_windows_of(input, &c->windows), done);
  CS_TRY(st, find_ancestors(c), done);
  CS_TRY(st, make_room(c), done);
  *out = c;
  c = NULL;
done:
  cs_coselect_destroy(c);
  return st;
}

void cs_coselect_destroy(cs_coselect *c) {
  if (!c) return;
  for (int t = 0; c->tasks && t < c->input->program->n_tasks; t++) {
    for (int i = 0; i < CS_COSELECT_CHOICES; i++) free(c->tasks[t].kernels[i]);
  }
  cs_ios_windows_free(&c->windows);
  cs_sm_model_destroy(c->model);
  free(c->tasks);
  free(c->window_of);
  free(c->ancestors);
  free(c->launches);
  free(c->merged);
  free(c->marks);
  free(c->waits);
  free(c->last_launch);
  free(c->task_end);
  free(c->stream_names);
  free(c->stream_end);
  free(c);
}

/* ---- Prediction ---- */

/* When one of the launch's tasks can start at the earliest, by what it depends on in its window. */
static double ready_us(const cs_coselect *c, const cs_placement *place) {
  const cs_task *task = &c->input->program->tasks[place->task];
  double at = 0;
  for (int p = 0; p < task->n_preds; p++) {
    if (c->window_of[task->preds[p]] == c->window_of[place->task]) {
      at = fmax(at, c->task_end[task->preds[p]]);
    }
  }
  return at;
}

/* Without a model of the device: tasks of different streams, and of one launch, do not slow each
 * other. */
static double predict_alone(cs_coselect *c, const cs_placement *places, int n) {
  double end = 0;
  for (int s = 0; s < c->input->max_streams; s++) c->stream_end[s] = 0;
  for (int i = 0; i < n; i++) c->task_end[places[i].task] = 0;
  for (int i = 0, behind = 0; i < n; i = behind) {
    double at = c->stream_end[places[i].stream], longest = 0;
    behind = cs_launch_end(places, n, i);
    for (int k = i; k < behind; k++) {
      at = fmax(at, ready_us(c, &places[k]));
      longest = fmax(longest, c->input->choices[places[k].task].choices[places[k].choice].cold_us);
    }
    at += longest;
    for (int k = i; k < behind; k++) c->task_end[places[k].task] = at;
    c->stream_end[places[i].stream] = at;
    end = fmax(end, at);
  }
  return end;
}

/* Streams by first appearance: the model wants fewer streams than launches. */
static int name_stream(cs_coselect *c, int stream, int *n_streams) {
  if (c->stream_names[stream] < 0) c->stream_names[stream] = (*n_streams)++;
  return c->stream_names[stream];
}

/* The member of the task's set that it runs with. */
static int member_of(const cs_coselect *c, const cs_placement *place) {
  int member = cs_coselect_member(c, place->task, place->choice);
  return member < 0 ? 0 : member; /* not worth trying by itself: taken for the fastest */
}

static int kernels_of(const cs_coselect *c, const cs_placement *places, int n) {
  int most = 0;
  for (int i = 0; i < n; i++) {
    int own = c->tasks[places[i].task].n_kernels[member_of(c, &places[i])];
    if (own > most) most = own;
  }
  return most;
}

/* The k-th kernel of a launch of n placements; `into`: room where it is to be made of several. */
static const cs_sm_kernel *kernel_of(const cs_coselect *c, const cs_placement *places, int n, int k,
                                     cs_sm_kernel *into) {
  const cs_sm_kernel *together[CS_MERGE_MOST];
  int found = 0;
  for (int i = 0; i < n; i++) {
    const cs_coselect_task *t = &c->tasks[places[i].task];
    int member = member_of(c, &places[i]);
    if (k < t->n_kernels[member]) together[found++] = &t->kernels[member][k];
  }
  if (found == 1) return together[0];
  cs_sm_kernel_merge(c->model, together, found, into);
  return into;
}

/* The launches of n placements that are launched together; how many. */
static int add_launches(cs_coselect *c, const cs_placement *places, int n, int at, int *n_waits,
                        int *n_streams) {
  int *waits = &c->waits[*n_waits], found = 0, n_kernels = kernels_of(c, places, n);
  int stream = name_stream(c, places[0].stream, n_streams);
  int part = c->parts.n > 0 ? c->part_of[places[0].stream] : -1;
  for (int i = 0; i < n; i++) {
    const cs_task *task = &c->input->program->tasks[places[i].task];
    for (int p = 0; p < task->n_preds; p++) {
      if (c->last_launch[task->preds[p]] >= 0) waits[found++] = c->last_launch[task->preds[p]];
    }
  }
  *n_waits += found;
  for (int k = 0; k < n_kernels; k++) {
    c->launches[at + k] = (cs_sm_launch){.kernel = kernel_of(c, places, n, k, &c->merged[at + k]),
                                         .stream = stream,
                                         .waits = k == 0 ? waits : NULL,
                                         .n_waits = k == 0 ? found : 0,
                                         .part = part,
                                         .priority = places[0].priority};
  }
  for (int i = 0; i < n; i++) c->last_launch[places[i].task] = at + n_kernels - 1;
  return n_kernels;
}

void cs_coselect_use_split(cs_coselect *c, const cs_configuration *configuration) {
  c->parts.n = configuration ? configuration->n_parts : 0;
  if (c->parts.n == 0) return;
  memcpy(c->parts.units, configuration->parts, sizeof c->parts.units);
  memcpy(c->part_of, configuration->part_of, sizeof c->part_of);
}

cs_status cs_coselect_predict(cs_coselect *c, const cs_placement *places, int n, double *us) {
  int launches = 0, n_waits = 0, n_streams = 0;
  cs_sm_timeline timeline;
  *us = 0;
  if (n == 0) return CS_OK;
  if (!c->model) {
    *us = predict_alone(c, places, n);
    return CS_OK;
  }
  for (int s = 0; s < c->input->max_streams; s++) c->stream_names[s] = -1;
  for (int i = 0, end = 0; i < n; i = end) {
    end = cs_launch_end(places, n, i);
    launches += add_launches(c, &places[i], end - i, launches, &n_waits, &n_streams);
  }
  cs_status st =
      cs_sm_simulate_parts(c->model, &c->parts, c->launches, launches, c->cold, NULL, &timeline);
  for (int i = 0; i < n; i++) c->last_launch[places[i].task] = -1;
  *us = timeline.total_us;
  if (c->parts.n == 0 || cs_status_code(st) != CS_CODE_BAD_INPUT) return st;
  cs_status_free(st); /* a part does not hold a cluster of one of the kernels */
  *us = INFINITY;
  return CS_OK;
}

/* ---- Windows within a configuration ---- */

cs_status cs_coselect_window_order(const cs_coselect *c, const cs_configuration *from,
                                   cs_configuration *out) {
  int n = 0;
  CS_RETURN_IF_ERROR(cs_configuration_copy(from, out));
  for (int w = 0; w < c->windows.n; w++) {
    n += cs_coselect_gather(c, from, w, &out->places[n]);
  }
  return CS_OK;
}

int cs_coselect_gather(const cs_coselect *c, const cs_configuration *configuration, int window,
                       cs_placement *out) {
  int n = 0;
  for (int p = 0; p < configuration->n; p++) {
    if (c->window_of[configuration->places[p].task] != window) continue;
    out[n] = configuration->places[p];
    /* A launch of tasks of several windows is not one within a window. */
    out[n].joined =
        out[n].joined && p > 0 && n > 0 && out[n - 1].task == configuration->places[p - 1].task;
    n++;
  }
  return n;
}

void cs_coselect_scatter(const cs_coselect *c, int window, const cs_placement *places,
                         cs_configuration *configuration) {
  for (int p = 0, n = 0; p < configuration->n; p++) {
    if (c->window_of[configuration->places[p].task] == window) {
      configuration->places[p] = places[n++];
    }
  }
}
