/* What the SM model expects of configurations. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/coselect.h"
#include "scheduler/sm_corun.h"

/* ---- Candidates worth trying ---- */

/* Where some candidates' kernels are known, one whose are not cannot be weighed against them: only
 * the fastest stays. */
static cs_pareto_point point_of(const cs_policy_input *input, const cs_task_choices *choices, int i,
                                bool some_known) {
  const cs_choice *choice = &choices->choices[i];
  int n_kernels = input->device && choice->kernels ? choice->n_kernels : 0;
  cs_pareto_point point = cs_pareto_point_of(input->device, choice->candidate, choice->cold_us,
                                             choice->kernels, n_kernels);
  if (n_kernels > 0 || !some_known) return point;
  for (int c = CS_COST_REGISTERS; c < CS_COST_COUNT; c++) point.cost[c] = INFINITY;
  if (i > 0) point.cost[CS_COST_TIME] = INFINITY;
  return point;
}

static cs_status choose_set(const cs_policy_input *input, int task, cs_coselect_task *out) {
  const cs_task_choices *choices = &input->choices[task];
  cs_pareto_point *points = cs_calloc((size_t)choices->n, sizeof *points);
  if (!points) return cs_no_memory("candidates", (size_t)choices->n * sizeof *points);
  bool some_known = false;
  for (int i = 0; i < choices->n; i++) some_known = some_known || choices->choices[i].kernels;
  for (int i = 0; i < choices->n; i++) {
    points[i] = point_of(input, choices, i, some_known && input->device);
  }
  int pareto[CS_PARETO_MOST];
  int n = cs_pareto_select(points, choices->n, CS_PARETO_WITHIN, CS_PARETO_MOST, pareto);
  for (int i = 0; i < n; i++) out->choices[out->n++] = pareto[i];
  for (int i = 0; i < choices->n && out->n < CS_COSELECT_CHOICES; i++) {
    bool there = false;
    for (int k = 0; k < n; k++) there = there || pareto[k] == i;
    if (!there &&
        points[i].cost[CS_COST_TIME] <= CS_COSELECT_WITHIN * choices->choices[0].cold_us) {
      out->choices[out->n++] = i;
    }
  }
  free(points);
  return CS_OK;
}

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
  CS_RETURN_IF_ERROR(choose_set(c->input, task, t));
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
  c->waits = cs_calloc(waits, sizeof *c->waits);
  c->last_launch = cs_calloc(n_tasks, sizeof *c->last_launch);
  c->task_end = cs_calloc(n_tasks, sizeof *c->task_end);
  c->stream_names = cs_calloc(streams, sizeof *c->stream_names);
  c->stream_end = cs_calloc(streams, sizeof *c->stream_end);
  if (!c->launches || !c->waits || !c->last_launch || !c->task_end || !c->stream_names ||
      !c->stream_end) {
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
  free(c->waits);
  free(c->last_launch);
  free(c->task_end);
  free(c->stream_names);
  free(c->stream_end);
  free(c);
}

/* ---- Prediction ---- */

/* Without a model of the device: tasks of different streams do not slow each other. */
static double predict_alone(cs_coselect *c, const cs_placement *places, int n) {
  double end = 0;
  for (int s = 0; s < c->input->max_streams; s++) c->stream_end[s] = 0;
  for (int i = 0; i < n; i++) c->task_end[places[i].task] = 0;
  for (int i = 0; i < n; i++) {
    const cs_task *task = &c->input->program->tasks[places[i].task];
    double at = c->stream_end[places[i].stream];
    for (int p = 0; p < task->n_preds; p++) {
      if (c->window_of[task->preds[p]] == c->window_of[places[i].task]) {
        at = fmax(at, c->task_end[task->preds[p]]);
      }
    }
    at += c->input->choices[places[i].task].choices[places[i].choice].cold_us;
    c->task_end[places[i].task] = c->stream_end[places[i].stream] = at;
    end = fmax(end, at);
  }
  return end;
}

/* Streams by first appearance: the model wants fewer streams than launches. */
static int name_stream(cs_coselect *c, int stream, int *n_streams) {
  if (c->stream_names[stream] < 0) c->stream_names[stream] = (*n_streams)++;
  return c->stream_names[stream];
}

/* The launches of one placement; how many. */
static int add_launches(cs_coselect *c, const cs_placement *place, int n, int *n_waits,
                        int *n_streams) {
  const cs_coselect_task *t = &c->tasks[place->task];
  const cs_task *task = &c->input->program->tasks[place->task];
  int member = cs_coselect_member(c, place->task, place->choice), *waits = &c->waits[*n_waits];
  if (member < 0) member = 0; /* not worth trying by itself: taken for the fastest */
  int stream = name_stream(c, place->stream, n_streams), found = 0;
  for (int p = 0; p < task->n_preds; p++) {
    if (c->last_launch[task->preds[p]] >= 0) waits[found++] = c->last_launch[task->preds[p]];
  }
  *n_waits += found;
  for (int k = 0; k < t->n_kernels[member]; k++) {
    c->launches[n + k] = (cs_sm_launch){.kernel = &t->kernels[member][k],
                                        .stream = stream,
                                        .waits = k == 0 ? waits : NULL,
                                        .n_waits = k == 0 ? found : 0};
  }
  c->last_launch[place->task] = n + t->n_kernels[member] - 1;
  return t->n_kernels[member];
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
  for (int i = 0; i < n; i++) {
    launches += add_launches(c, &places[i], launches, &n_waits, &n_streams);
  }
  cs_status st = cs_sm_simulate(c->model, c->launches, launches, c->cold, NULL, &timeline);
  for (int i = 0; i < n; i++) c->last_launch[places[i].task] = -1;
  *us = timeline.total_us;
  return st;
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
    if (c->window_of[configuration->places[p].task] == window) out[n++] = configuration->places[p];
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
