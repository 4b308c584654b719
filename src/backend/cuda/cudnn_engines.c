#include "backend/cuda/cudnn_engines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Heuristics' picks that are taken per mode, and below how many fused candidates unfused ones (and
 * the engines' default configurations) are offered too. */
typedef struct pick_counts {
  int a, b, fallback, few;
} pick_counts;
static const pick_counts preferred_picks = {16, 8, 4, 8};
/* The other layout rarely wins an operation: enough to know whether it does. */
static const pick_counts other_picks = {6, 2, 1, 4};
/* Of an output that cuDNN does not write densely: enough to notice an engine that can. */
static const pick_counts strided_picks = {3, 1, 1, 0};
/* Full enumeration: knobs with more values than this keep their defaults (split counts), and an
 * engine's grid stops after this many configurations. */
#define KNOB_VALUES_LIMIT 32
#define GRID_LIMIT 4096
#define MAX_PICKS 512

typedef struct enumeration {
  const cs_cudnn_target *target;
  cs_cudnn_way way;
  cs_cudnn_problem problem; /* what the graph computes, in this way */
  const pick_counts *picks;
  const cs_enumerate_options *options;
  cs_cudnn_graph *graph;
  cs_candidate_list *out;
} enumeration;

/* What an engine is, as far as admission goes. */
typedef struct engine_traits {
  bool admissible, deterministic;
  uint32_t notes;
} engine_traits;

static engine_traits traits_of(const enumeration *e, cudnnBackendDescriptor_t engine) {
  engine_traits t = {.admissible = true, .deterministic = true};
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT + 8];
  int n = cs_descriptor_get_many(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                 CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes);
  for (int i = 0; i < n; i++) {
    switch (notes[i]) {
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
        t.notes |= CS_NOTE_TENSOR_CORE;
        if (e->problem.precision == CS_PRECISION_F32) t.admissible = false;
        break;
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
        t.admissible = false;
        break;
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
        t.deterministic = false;
        if (e->options->deterministic) t.admissible = false;
        break;
      case CUDNN_NUMERICAL_NOTE_FFT:
        t.notes |= CS_NOTE_FFT;
        break;
      case CUDNN_NUMERICAL_NOTE_WINOGRAD:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
        t.notes |= CS_NOTE_WINOGRAD;
        break;
      case CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP:
        t.notes |= CS_NOTE_STRICT_NAN;
        break;
      default:
        break;
    }
  }
  cudnnBackendBehaviorNote_t behavior[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT + 8];
  n = cs_descriptor_get_many(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                             CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, behavior);
  for (int i = 0; i < n; i++) {
    if (behavior[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION && !e->options->full) {
      t.admissible = false;
    }
  }
  return t;
}

/* Configurations that come to the same plan (a default spelt out, say) count once. */
static bool plan_is_known(const enumeration *e, const cs_candidate *candidate) {
  for (size_t i = 0; i < e->out->n; i++) {
    const cs_candidate *known = &e->out->items[i];
    if (known->payload && strcmp(known->payload, candidate->payload) == 0 &&
        strcmp(known->family, candidate->family) == 0) {
      return true;
    }
  }
  return false;
}

/* Finalizes a plan for the configuration and appends it; *added tells whether it was admissible and
 * new. */
static cs_status add_config(enumeration *e, const cs_engine_id *id, engine_traits traits,
                            cudnnBackendDescriptor_t config, bool *added) {
  *added = false;
  cs_status st = CS_OK;
  cudnnBackendDescriptor_t plan = NULL;
  cs_candidate candidate = {
      .deterministic = traits.deterministic, .fused = !e->way.epilogue, .notes = traits.notes};
  const char *family = cs_cudnn_family(e->way);
  char prefix[64];
  snprintf(prefix, sizeof prefix, "%s:", family);
  CS_TRY(st, cs_engine_id_format(id, prefix, &candidate.id), done);
  if (cs_candidate_find(e->out, candidate.id)) goto done;

  cudnnStatus_t result = cs_cudnn_plan_finalize(e->target, config, &plan);
  if (result != CUDNN_STATUS_SUCCESS) {
    if (!cs_cudnn_unsupported(result)) st = cs_cudnn_status(result, "building %s", candidate.id);
    goto done;
  }
  candidate.workspace_bytes =
      cs_cudnn_way_staging(e->way, &e->problem) + cs_cudnn_plan_workspace(plan);
  if (candidate.workspace_bytes > e->options->workspace_limit) goto done;
  CS_TRY(st, cs_strdup_to(family, &candidate.family), done);
  CS_TRY(st, cs_cudnn_plan_json(plan, &candidate.payload), done);
  if (candidate.payload && plan_is_known(e, &candidate)) goto done;
  CS_TRY(st, cs_candidate_list_add(e->out, &candidate), done);
  *added = true;
done:
  cs_candidate_clear(&candidate);
  cs_descriptor_destroy(&plan);
  return st;
}

/* Reads engine and knobs out of a configuration; `engine` is the caller's to destroy. */
static bool read_config(cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t *engine,
                        cs_engine_id *id) {
  memset(id, 0, sizeof(*id));
  *engine = NULL;
  cudnnBackendDescriptor_t choices[CS_MAX_KNOBS] = {NULL};
  bool ok = false;
  if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, engine) !=
          CUDNN_STATUS_SUCCESS ||
      !cs_descriptor_get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                         engine) ||
      !cs_descriptor_get(*engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, &id->engine)) {
    goto done;
  }
  /* The count of choices is not told beforehand. */
  for (int i = 0; i < CS_MAX_KNOBS; i++) {
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &choices[i]) !=
        CUDNN_STATUS_SUCCESS) {
      goto done;
    }
  }
  id->n_knobs = cs_descriptor_get_many(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, CS_MAX_KNOBS, choices);
  for (int i = 0; i < id->n_knobs; i++) {
    cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
    if (!cs_descriptor_get(choices[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE,
                           &type) ||
        !cs_descriptor_get(choices[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64,
                           &id->knobs[i].value)) {
      goto done;
    }
    id->knobs[i].type = (int64_t)type;
  }
  cs_engine_id_sort(id);
  ok = true;
done:
  for (int i = 0; i < CS_MAX_KNOBS; i++) cs_descriptor_destroy(&choices[i]);
  return ok;
}

static cs_status add_pick(enumeration *e, cudnnBackendDescriptor_t config, bool *added) {
  *added = false;
  cs_status st = CS_OK;
  cs_engine_id id;
  cudnnBackendDescriptor_t engine = NULL;
  if (read_config(config, &engine, &id)) {
    engine_traits traits = traits_of(e, engine);
    if (traits.admissible) st = add_config(e, &id, traits, config, added);
  }
  cs_descriptor_destroy(&engine);
  return st;
}

/* Up to `wanted` new admissible picks of a heuristics mode. A mode that has nothing for this graph
 * gives none. */
static cs_status add_picks(enumeration *e, cudnnBackendHeurMode_t mode, int wanted) {
  cs_status st = CS_OK;
  cudnnBackendDescriptor_t heuristics = NULL;
  cudnnBackendDescriptor_t *configs = NULL;
  int n = 0;
  cs_descriptor d = cs_descriptor_begin(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  cs_descriptor_child(&d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                      cs_cudnn_graph_descriptor(e->graph));
  cs_descriptor_set(&d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (e->target->properties) {
    cs_descriptor_child(&d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, e->target->properties);
  }
  cudnnStatus_t result = cs_descriptor_finish_raw(&d, &heuristics);
  if (result != CUDNN_STATUS_SUCCESS) {
    return cs_cudnn_unsupported(result) ? CS_OK : cs_cudnn_status(result, "asking heuristics");
  }
  n = cs_descriptor_count(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  n = (int)cs_min_i64(n, MAX_PICKS);
  configs = cs_calloc((size_t)cs_max_i64(n, 1), sizeof(*configs));
  if (!configs) CS_FAIL(st, done, CS_CODE_NO_MEMORY, "out of memory for %d configurations", n);
  for (int i = 0; i < n; i++) {
    CS_TRY(st,
           cs_cudnn_status(
               cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[i]),
               "creating an engine configuration"),
           done);
  }
  int delivered = cs_descriptor_get_many(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, n, configs);
  for (int i = 0; i < delivered && wanted > 0; i++) {
    bool added = false;
    CS_TRY(st, add_pick(e, configs[i], &added), done);
    wanted -= added;
  }
done:
  for (int i = 0; configs && i < n; i++) cs_descriptor_destroy(&configs[i]);
  free(configs);
  cs_descriptor_destroy(&heuristics);
  return st;
}

typedef struct knob_range {
  int64_t type, minimum, maximum, stride;
} knob_range;

/* The engine's knobs that a grid varies; returns how many. */
static int read_knobs(cudnnBackendDescriptor_t engine, knob_range ranges[CS_MAX_KNOBS]) {
  cudnnBackendDescriptor_t infos[CS_MAX_KNOBS] = {NULL};
  int n = cs_descriptor_count(engine, CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  int kept = 0;
  if (n > CS_MAX_KNOBS) n = CS_MAX_KNOBS;
  for (int i = 0; i < n; i++) {
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR, &infos[i]) !=
        CUDNN_STATUS_SUCCESS) {
      n = i;
    }
  }
  if (n) {
    n = cs_descriptor_get_many(engine, CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                               n, infos);
  }
  for (int i = 0; i < n; i++) {
    cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
    knob_range r = {0};
    if (!cs_descriptor_get(infos[i], CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE, &type) ||
        !cs_descriptor_get(infos[i], CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE, CUDNN_TYPE_INT64,
                           &r.minimum) ||
        !cs_descriptor_get(infos[i], CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, CUDNN_TYPE_INT64,
                           &r.maximum) ||
        !cs_descriptor_get(infos[i], CUDNN_ATTR_KNOB_INFO_STRIDE, CUDNN_TYPE_INT64, &r.stride)) {
      continue;
    }
    r.type = (int64_t)type;
    r.stride = cs_max_i64(r.stride, 1);
    if ((r.maximum - r.minimum) / r.stride < KNOB_VALUES_LIMIT) ranges[kept++] = r;
  }
  for (int i = 0; i < CS_MAX_KNOBS; i++) cs_descriptor_destroy(&infos[i]);
  return kept;
}

/* Advances the grid like an odometer; false after the last point. */
static bool next_point(cs_engine_id *id, const knob_range *ranges) {
  for (int i = 0; i < id->n_knobs; i++) {
    id->knobs[i].value += ranges[i].stride;
    if (id->knobs[i].value <= ranges[i].maximum) return true;
    id->knobs[i].value = ranges[i].minimum;
  }
  return false;
}

/* Adds one engine: its default configuration, and under `grid` every combination of its knobs. */
static cs_status add_engine(enumeration *e, int64_t index, bool grid) {
  cs_status st = CS_OK;
  cudnnBackendDescriptor_t engine = NULL, config = NULL;
  if (cs_cudnn_engine_open(e->target, e->graph, index, &engine) != CUDNN_STATUS_SUCCESS) {
    return CS_OK;
  }
  engine_traits traits = traits_of(e, engine);
  knob_range ranges[CS_MAX_KNOBS];
  cs_engine_id id = {.engine = index};
  int points = traits.admissible ? 1 : 0;
  for (int point = 0; point < points; point++) {
    bool added = false, more = true;
    if (cs_cudnn_config_open(engine, &id, &config) == CUDNN_STATUS_SUCCESS) {
      cs_engine_id sorted = id;
      cs_engine_id_sort(&sorted);
      CS_TRY(st, add_config(e, &sorted, traits, config, &added), done);
      cs_descriptor_destroy(&config);
    }
    if (point == 0 && grid) {
      id.n_knobs = read_knobs(engine, ranges);
      for (int i = 0; i < id.n_knobs; i++) {
        id.knobs[i] = (cs_knob){.type = ranges[i].type, .value = ranges[i].minimum};
      }
      points = id.n_knobs ? GRID_LIMIT : 1;
    } else if (point > 0) {
      more = next_point(&id, ranges);
    }
    if (!more) break;
  }
done:
  cs_descriptor_destroy(&config);
  cs_descriptor_destroy(&engine);
  return st;
}

static cs_status add_engines(enumeration *e, bool grid) {
  int64_t n = 0;
  (void)cs_descriptor_get(cs_cudnn_graph_descriptor(e->graph),
                          CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64, &n);
  for (int64_t i = 0; i < n; i++) CS_RETURN_IF_ERROR(add_engine(e, i, grid));
  return CS_OK;
}

/* One graph: fused, or bare with the epilogue kernel behind. */
static cs_status enumerate_graph(enumeration *e, size_t *added) {
  cs_status st = CS_OK;
  size_t before = e->out->n;
  const pick_counts *picks = e->picks;
  bool full = e->options->full;
  st = cs_cudnn_graph_create(e->target, &e->problem, &e->graph);
  if (st != CS_OK && cs_status_code(st) == CS_CODE_BAD_INPUT) { /* no such graph: no candidates */
    cs_status_free(st);
    return CS_OK;
  }
  if (st != CS_OK) return st;
  CS_TRY(st, add_picks(e, CUDNN_HEUR_MODE_A, full ? MAX_PICKS : picks->a), done);
  CS_TRY(st, add_picks(e, CUDNN_HEUR_MODE_B, full ? MAX_PICKS : picks->b), done);
  CS_TRY(st, add_picks(e, CUDNN_HEUR_MODE_FALLBACK, full ? MAX_PICKS : picks->fallback), done);
  if (full || e->out->n - before < (size_t)picks->few) CS_TRY(st, add_engines(e, full), done);
done:
  cs_cudnn_graph_destroy(e->graph);
  e->graph = NULL;
  *added = e->out->n - before;
  return st;
}

/* cuDNN's precompiled engines fuse forward convolution + residual of the output's strides + bias +
 * relu; everything else is compiled at run time, and asking heuristics for it is slow. */
static bool has_precompiled_fusion(const cs_cudnn_problem *p) {
  if (!cs_cudnn_problem_has_epilogue(p)) return true;
  if (p->backward_data) return false;
  if (p->activation.kind != CS_ACT_NONE && p->activation.kind != CS_ACT_RELU) return false;
  return !p->has_residual ||
         memcmp(p->residual.strides, p->output.strides, sizeof(p->output.strides)) == 0;
}

/* Fused, and where that gives few, unfused. */
static cs_status enumerate_form(enumeration *e, const cs_cudnn_problem *problem, bool dense) {
  size_t fused = 0, unfused = 0;
  e->way = (cs_cudnn_way){.dense = dense};
  e->problem = cs_cudnn_way_problem(e->way, problem);
  if (e->options->full || has_precompiled_fusion(&e->problem)) {
    CS_RETURN_IF_ERROR(enumerate_graph(e, &fused));
  }
  if (!cs_cudnn_problem_has_epilogue(problem) ||
      (fused >= (size_t)e->picks->few && !e->options->full)) {
    return CS_OK;
  }
  e->way.epilogue = true;
  e->problem = cs_cudnn_way_problem(e->way, problem);
  return enumerate_graph(e, &unfused);
}

cs_status cs_cudnn_enumerate(const cs_cudnn_target *target, const cs_cudnn_problem *problem,
                             const cs_enumerate_options *options, cs_candidate_list *out) {
  enumeration e = {.target = target, .options = options, .out = out};
  cs_cudnn_problem dense;
  e.picks = problem->preferred_layout ? &preferred_picks : &other_picks;
  if (cs_cudnn_problem_dense(problem, &dense)) {
    CS_RETURN_IF_ERROR(enumerate_form(&e, problem, true));
    e.picks = &strided_picks;
  }
  return enumerate_form(&e, problem, false);
}
