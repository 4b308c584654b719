/* Enumeration of cuDNN's graph-API candidates for an H100 that is known by its properties only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>
#include <dlfcn.h>

#include "backend/cuda/cudnn_engines.h"
#include "backend/cuda/exec.h"
#include "base/file.h"
#include "conformance_cases.h"

#define LIMIT ((int64_t)256 << 20)

static cs_cudnn_target h100;

static void ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

static int open_h100(void **state) {
  (void)state;
  char *json = NULL;
  size_t length = 0;
  /* Without a driver cuDNN loads and unloads this library for every runtime-compiled engine that it
   * looks at, leaking each time; kept loaded, it does not. */
  (void)dlopen("libnvrtc.so.13", RTLD_LAZY);
  ok(cs_file_read(CS_SOURCE_DIR "/tests/data/h100-deviceprop.json", 1 << 16, &json, &length));
  while (length > 0 && json[length - 1] == '\n') json[--length] = '\0';
  ok(cs_cudnn_properties_create(json, &h100.properties));
  free(json);
  return 0;
}

static int close_h100(void **state) {
  (void)state;
  cs_descriptor_destroy(&h100.properties);
  return 0;
}

typedef struct problem_spec {
  cs_op op;
  cs_precision precision;
  cs_layout layout;
  int64_t n, c, size, k, window, stride, pad;
  bool bias, residual;
  cs_act_kind activation;
  int64_t slice; /* channels that the output's parent has beside it */
} problem_spec;

static cs_op_desc describe(const problem_spec *s) {
  cs_op_desc d = {.op = s->op,
                  .precision = s->precision,
                  .has_bias = s->bias,
                  .has_residual = s->residual,
                  .activation = {.kind = s->activation},
                  .n_inputs = s->residual ? 2 : 1};
  cs_dtype dtype = cs_precision_storage(s->precision);
  cs_shape in = {.rank = 4, .dims = {s->n, s->c, s->size, s->size}};
  cs_shape out = {.rank = 4, .dims = {s->n, s->k, 0, 0}};
  if (s->op == CS_OP_GEMM) {
    d.attrs.gemm = (cs_gemm_attrs){.out_features = s->k, .bias = s->bias};
    in.rank = out.rank = 2;
  } else {
    int64_t w = s->window, t = s->stride, p = s->pad;
    d.attrs.conv = (cs_conv_attrs){.out_channels = s->k,
                                   .group = 1,
                                   .kernel = {w, w},
                                   .strides = {t, t},
                                   .pads = {p, p, p, p},
                                   .dilations = {1, 1},
                                   .bias = s->bias};
    out.dims[2] = out.dims[3] =
        s->op == CS_OP_CONV ? (s->size + 2 * p - w) / t + 1 : (s->size - 1) * t - 2 * p + w;
  }
  d.inputs[0] = cs_tensor_dense(&in, dtype, s->layout);
  d.output = cs_tensor_dense(&out, dtype, s->layout);
  d.inputs[1] = d.output;
  if (s->slice) {
    cs_shape parent = out;
    parent.dims[1] += s->slice;
    cs_tensor_desc wide = cs_tensor_dense(&parent, dtype, s->layout);
    memcpy(d.output.strides, wide.strides, sizeof(wide.strides));
    d.output.alignment = 32;
  }
  return d;
}

static cs_cudnn_problem problem_of(const problem_spec *s) {
  cs_op_desc desc = describe(s);
  cs_cudnn_problem problem;
  assert_true(cs_cudnn_problem_make(&desc, &problem));
  return problem;
}

static cs_candidate_list enumerate(const problem_spec *s, cs_enumerate_options options) {
  cs_cudnn_problem problem = problem_of(s);
  cs_candidate_list list = {0};
  ok(cs_cudnn_enumerate(&h100, &problem, &options, &list));
  return list;
}

static int count_fused(const cs_candidate_list *list) {
  int n = 0;
  for (size_t i = 0; i < list->n; i++) n += list->items[i].fused;
  return n;
}

static const problem_spec conv3x3_f16 = {CS_OP_CONV,
                                         CS_PRECISION_F16,
                                         CS_LAYOUT_NHWC,
                                         32,
                                         96,
                                         28,
                                         128,
                                         3,
                                         1,
                                         1,
                                         true,
                                         false,
                                         CS_ACT_RELU,
                                         0};

static void conv_f16_has_many_candidates(void **state) {
  (void)state;
  cs_candidate_list list =
      enumerate(&conv3x3_f16, (cs_enumerate_options){.workspace_limit = LIMIT});
  assert_in_range(count_fused(&list), 16, 28);
  assert_int_equal(count_fused(&list), (int)list.n);
  for (size_t i = 0; i < list.n; i++) {
    const cs_candidate *c = &list.items[i];
    assert_string_equal(c->family, "cudnn.graph");
    assert_non_null(c->payload);
    assert_in_range(c->workspace_bytes, 0, LIMIT);
    assert_int_equal(c->notes & (CS_NOTE_DOWN_CONVERT_INPUTS | CS_NOTE_REDUCED_PRECISION_REDUCTION),
                     0);
  }
  cs_candidate_list_free(&list);
}

static void ids_are_unique_and_stable(void **state) {
  (void)state;
  cs_enumerate_options options = {.workspace_limit = LIMIT};
  cs_candidate_list a = enumerate(&conv3x3_f16, options), b = enumerate(&conv3x3_f16, options);
  assert_int_equal(a.n, b.n);
  for (size_t i = 0; i < a.n; i++) {
    assert_string_equal(a.items[i].id, b.items[i].id);
    for (size_t j = i + 1; j < a.n; j++) assert_string_not_equal(a.items[i].id, a.items[j].id);
  }
  cs_candidate_list_free(&a);
  cs_candidate_list_free(&b);
}

/* A plan from the id and one from the payload are the plan that was enumerated. */
static void plans_rebuild_from_id_and_json(void **state) {
  (void)state;
  cs_candidate_list list =
      enumerate(&conv3x3_f16, (cs_enumerate_options){.workspace_limit = LIMIT});
  cs_cudnn_problem problem = problem_of(&conv3x3_f16);
  for (size_t i = 0; i < list.n; i++) {
    const cs_candidate *c = &list.items[i];
    cs_engine_id id;
    cs_cudnn_plan *from_id = NULL, *from_json = NULL;
    char *json = NULL;
    assert_true(cs_engine_id_parse(strchr(c->id, ':') + 1, &id));
    ok(cs_cudnn_plan_from_id(&h100, &problem, &id, &from_id));
    assert_int_equal(from_id->workspace_bytes, c->workspace_bytes);
    ok(cs_cudnn_plan_json(from_id->plan, &json));
    assert_string_equal(json, c->payload);
    free(json);
    ok(cs_cudnn_plan_from_json(&h100, c->payload, &from_json));
    assert_int_equal(from_json->workspace_bytes, c->workspace_bytes);
    ok(cs_cudnn_plan_json(from_json->plan, &json));
    assert_string_equal(json, c->payload);
    free(json);
    cs_cudnn_plan_destroy(from_id);
    cs_cudnn_plan_destroy(from_json);
  }
  cs_candidate_list_free(&list);
}

static void broken_plans_are_bad_input(void **state) {
  (void)state;
  cs_cudnn_problem problem = problem_of(&conv3x3_f16);
  cs_cudnn_plan *plan = NULL;
  cs_engine_id id = {.engine = 9999};
  cs_status st = cs_cudnn_plan_from_id(&h100, &problem, &id, &plan);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  assert_null(plan);
  cs_status_free(st);
  st = cs_cudnn_plan_from_json(&h100, "{\"cudnnVersion\":1", &plan);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  assert_null(plan);
  cs_status_free(st);
}

static void f32_uses_no_tensor_cores(void **state) {
  (void)state;
  problem_spec s = conv3x3_f16;
  s.precision = CS_PRECISION_F32;
  s.layout = CS_LAYOUT_NCHW;
  cs_candidate_list f32 = enumerate(&s, (cs_enumerate_options){.workspace_limit = LIMIT});
  assert_in_range(f32.n, 4, 40);
  for (size_t i = 0; i < f32.n; i++) assert_int_equal(f32.items[i].notes & CS_NOTE_TENSOR_CORE, 0);
  s.precision = CS_PRECISION_TF32;
  s.layout = CS_LAYOUT_NHWC;
  cs_candidate_list tf32 = enumerate(&s, (cs_enumerate_options){.workspace_limit = LIMIT});
  int tensor_core = 0;
  for (size_t i = 0; i < tf32.n; i++)
    tensor_core += (tf32.items[i].notes & CS_NOTE_TENSOR_CORE) != 0;
  assert_in_range(tensor_core, 8, 28);
  cs_candidate_list_free(&f32);
  cs_candidate_list_free(&tf32);
}

static void workspace_limit_is_held(void **state) {
  (void)state;
  cs_enumerate_options options = {.workspace_limit = LIMIT, .full = true};
  problem_spec s = conv3x3_f16;
  s.n = 1;
  cs_candidate_list all = enumerate(&s, options);
  options.workspace_limit = 0;
  cs_candidate_list none = enumerate(&s, options);
  assert_true(none.n > 0 && none.n < all.n);
  for (size_t i = 0; i < none.n; i++) assert_int_equal(none.items[i].workspace_bytes, 0);
  size_t without = 0;
  for (size_t i = 0; i < all.n; i++) without += all.items[i].workspace_bytes == 0;
  assert_int_equal(without, none.n);
  cs_candidate_list_free(&all);
  cs_candidate_list_free(&none);
}

/* A batch past what cuDNN takes has fewer candidates or none, and is no error. */
static void huge_batches_are_no_error(void **state) {
  (void)state;
  const int64_t batches[] = {200000, 4000000, 400000000};
  for (int p = 0; p < 4; p++) {
    for (int b = 0; b < 3; b++) {
      problem_spec s = conv3x3_f16;
      s.precision = (cs_precision)p;
      s.n = batches[b];
      for (int layout = 0; layout < 2; layout++) {
        s.layout = layout ? CS_LAYOUT_NHWC : CS_LAYOUT_NCHW;
        cs_candidate_list list = enumerate(&s, (cs_enumerate_options){.workspace_limit = LIMIT});
        cs_candidate_list_free(&list);
      }
    }
  }
}

static void deterministic_is_a_filter(void **state) {
  (void)state;
  problem_spec s = {CS_OP_CONV_TRANSPOSE,
                    CS_PRECISION_F32,
                    CS_LAYOUT_NCHW,
                    4,
                    64,
                    8,
                    32,
                    4,
                    2,
                    1,
                    false,
                    false,
                    CS_ACT_NONE,
                    0};
  cs_enumerate_options options = {.workspace_limit = LIMIT, .full = true};
  cs_candidate_list all = enumerate(&s, options);
  options.deterministic = true;
  cs_candidate_list fixed = enumerate(&s, options);
  size_t deterministic = 0;
  for (size_t i = 0; i < all.n; i++) deterministic += all.items[i].deterministic;
  assert_true(deterministic < all.n);
  assert_int_equal(fixed.n, deterministic);
  cs_candidate_list_free(&all);
  cs_candidate_list_free(&fixed);
}

/* Backward data has no precompiled epilogue: the unfused way is offered. */
static void conv_transpose_is_offered_unfused(void **state) {
  (void)state;
  problem_spec s = {CS_OP_CONV_TRANSPOSE,
                    CS_PRECISION_F16,
                    CS_LAYOUT_NHWC,
                    8,
                    512,
                    4,
                    256,
                    4,
                    2,
                    1,
                    true,
                    false,
                    CS_ACT_RELU,
                    0};
  cs_candidate_list list = enumerate(&s, (cs_enumerate_options){.workspace_limit = LIMIT});
  assert_int_equal(count_fused(&list), 0);
  assert_in_range(list.n, 8, 40);
  for (size_t i = 0; i < list.n; i++) {
    assert_string_equal(list.items[i].family, "cudnn.graph+epilogue");
  }
  cs_candidate_list_free(&list);
}

static int count_family(const cs_candidate_list *list, const char *family) {
  int n = 0;
  for (size_t i = 0; i < list->n; i++) n += strcmp(list->items[i].family, family) == 0;
  return n;
}

/* In-place concat rests on this: a channel slice has as many candidates as a tensor of its own; in
 * NHWC by way of a dense output, whose bytes are the candidate's workspace too. */
static void channel_slices_are_accepted(void **state) {
  (void)state;
  cs_layout layouts[] = {CS_LAYOUT_NHWC, CS_LAYOUT_NCHW};
  int64_t batches[] = {1, 32};
  for (int l = 0; l < 2; l++) {
    for (int b = 0; b < 2; b++) {
      problem_spec s = conv3x3_f16;
      s.layout = layouts[l];
      s.n = batches[b];
      cs_candidate_list dense = enumerate(&s, (cs_enumerate_options){.workspace_limit = LIMIT});
      s.slice = 160;
      cs_candidate_list slice = enumerate(&s, (cs_enumerate_options){.workspace_limit = LIMIT});
      int64_t output_bytes = batches[b] * 28 * 28 * 128 * 2;
      bool moved = layouts[l] == CS_LAYOUT_NHWC;
      const char *family = moved ? "cudnn.graph.dense" : "cudnn.graph";
      assert_int_equal(count_family(&slice, family), count_family(&dense, "cudnn.graph"));
      assert_in_range(slice.n - (size_t)count_family(&slice, family), moved ? 1 : 0, moved ? 5 : 0);
      for (size_t i = 0; moved && i < slice.n; i++) {
        if (strcmp(slice.items[i].family, family) == 0) {
          assert_in_range(slice.items[i].workspace_bytes, output_bytes, LIMIT);
        }
      }
      cs_candidate_list_free(&dense);
      cs_candidate_list_free(&slice);
    }
  }
}

/* The dense output counts towards the limit. */
static void a_slice_keeps_the_workspace_limit(void **state) {
  (void)state;
  problem_spec s = conv3x3_f16;
  s.slice = 160;
  int64_t output_bytes = INT64_C(32) * 28 * 28 * 128 * 2;
  cs_candidate_list list =
      enumerate(&s, (cs_enumerate_options){.workspace_limit = output_bytes - 1});
  assert_int_equal(count_family(&list, "cudnn.graph.dense"), 0);
  cs_candidate_list_free(&list);
}

static void ways_have_names(void **state) {
  (void)state;
  const char *families[] = {"cudnn.graph",       "cudnn.graph+epilogue",
                            "cudnn.graph.dense", "cudnn.graph.dense+epilogue",
                            "cudnn.legacy",      "cudnn.legacy.dense"};
  cs_cudnn_way way;
  const char *name = NULL;
  for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
    char id[64];
    snprintf(id, sizeof id, "%s:eng1{2=3}", families[i]);
    assert_true(cs_cudnn_way_parse(id, &way, &name));
    assert_string_equal(cs_cudnn_family(way), families[i]);
    assert_string_equal(name, "eng1{2=3}");
    assert_int_equal(way.dense, strstr(families[i], ".dense") != NULL);
    assert_int_equal(way.legacy, strstr(families[i], "legacy") != NULL);
  }
  assert_false(cs_cudnn_way_parse("cudnn.graph", &way, &name));
  assert_false(cs_cudnn_way_parse("cudnn.graph.dens:eng1", &way, &name));
  assert_false(cs_cudnn_way_parse("cuda.conv.v1", &way, &name));
}

static void residual_without_bias_stays_fused(void **state) {
  (void)state;
  problem_spec s = conv3x3_f16;
  s.bias = false;
  s.residual = true;
  cs_candidate_list list = enumerate(&s, (cs_enumerate_options){.workspace_limit = LIMIT});
  assert_in_range(count_fused(&list), 16, 28);
  cs_candidate_list_free(&list);
}

static void gemm_runs_as_convolution(void **state) {
  (void)state;
  problem_spec s = {CS_OP_GEMM,
                    CS_PRECISION_F16,
                    CS_LAYOUT_NCHW,
                    32,
                    1024,
                    1,
                    1000,
                    1,
                    1,
                    0,
                    true,
                    false,
                    CS_ACT_NONE,
                    0};
  cs_candidate_list list = enumerate(&s, (cs_enumerate_options){.workspace_limit = LIMIT});
  assert_in_range(count_fused(&list), 16, 28);
  cs_candidate_list_free(&list);
}

static void asymmetric_pads_are_kept(void **state) {
  (void)state;
  cs_op_desc desc = describe(&conv3x3_f16);
  desc.attrs.conv.pads[0] = 0;
  desc.attrs.conv.pads[2] = 2;
  cs_cudnn_problem problem;
  assert_true(cs_cudnn_problem_make(&desc, &problem));
  cs_enumerate_options options = {.workspace_limit = LIMIT};
  cs_candidate_list list = {0};
  ok(cs_cudnn_enumerate(&h100, &problem, &options, &list));
  assert_in_range(count_fused(&list), 8, 28);
  assert_non_null(strstr(list.items[0].payload, "\"pad_lower\":[0,1]"));
  assert_non_null(strstr(list.items[0].payload, "\"pad_upper\":[2,1]"));
  cs_candidate_list_free(&list);
}

/* Dilation allows output_padding >= stride, which no backward-data problem has. */
static void large_output_padding_is_no_backward_data(void **state) {
  (void)state;
  problem_spec s = {CS_OP_CONV_TRANSPOSE,
                    CS_PRECISION_F32,
                    CS_LAYOUT_NCHW,
                    1,
                    8,
                    6,
                    8,
                    3,
                    1,
                    2,
                    false,
                    false,
                    CS_ACT_NONE,
                    0};
  cs_op_desc desc = describe(&s);
  for (int i = 0; i < 2; i++) {
    desc.attrs.conv.dilations[i] = 2;
    desc.attrs.conv.output_padding[i] = 1;
    desc.output.shape.dims[2 + i] = 5 - 4 + 4 + 1 + 1;
  }
  desc.output = cs_tensor_dense(&desc.output.shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  cs_cudnn_problem problem;
  assert_false(cs_cudnn_problem_make(&desc, &problem));
  for (int i = 0; i < 2; i++) {
    desc.attrs.conv.output_padding[i] = 0;
    desc.output.shape.dims[2 + i] -= 1;
  }
  desc.output = cs_tensor_dense(&desc.output.shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  assert_true(cs_cudnn_problem_make(&desc, &problem));
}

/* Every convolution of the conformance table can be asked about; nearly all have candidates. */
static void the_conformance_table_enumerates(void **state) {
  (void)state;
  cs_layout layouts[] = {CS_LAYOUT_NCHW, CS_LAYOUT_NHWC};
  conformance_table table = conformance_build(layouts, 2);
  cs_enumerate_options options = {.workspace_limit = LIMIT};
  int convolutions = 0, with_candidates = 0;
  for (int i = 0; i < table.n; i++) {
    cs_cudnn_problem problem;
    if (!cs_cudnn_problem_make(&table.cases[i].desc, &problem)) continue;
    cs_candidate_list list = {0};
    cs_status st = cs_cudnn_enumerate(&h100, &problem, &options, &list);
    if (st != CS_OK) fail_msg("%s: %s", table.cases[i].name, cs_status_message(st));
    convolutions++;
    with_candidates += list.n > 0;
    if (list.n == 0) print_message("no graph candidate: %s\n", table.cases[i].name);
    cs_candidate_list_free(&list);
  }
  print_message("%d of %d convolutions have graph candidates\n", with_candidates, convolutions);
  assert_in_range(convolutions, 50, 100000);
  assert_true(with_candidates >= convolutions * 9 / 10);
  free(table.cases);
}

/* Arguments of a plan can be bound for every combination of bias, residual and activation. */
static void arguments_bind(void **state) {
  (void)state;
  char memory[8] = {0};
  for (int i = 0; i < 8; i++) {
    problem_spec s = conv3x3_f16;
    s.bias = i & 1;
    s.residual = (i & 2) != 0;
    s.activation = i & 4 ? CS_ACT_RELU : CS_ACT_NONE;
    cs_exec exec = {.kind = CS_EXEC_GRAPH, .id = "test", .desc = describe(&s)};
    assert_true(cs_cudnn_problem_make(&exec.desc, &exec.problem));
    cs_exec_plan_weights(&exec);
    cs_launch launch = {.merged = -1,
                        .exec = &exec,
                        .name = "conv",
                        .inputs = {&memory[0], &memory[1]},
                        .output = &memory[2],
                        .weights = &memory[3]};
    cs_bound bound;
    ok(cs_bound_create(&launch, &bound));
    assert_non_null(bound.pack);
    assert_string_equal(bound.launch.name, "conv");
    cs_bound_clear(&bound);
  }
}

static void fails(cs_status st, const char *wanted) {
  if (cs_status_code(st) != CS_CODE_BAD_INPUT || !strstr(cs_status_message(st), wanted))
    fail_msg("found %s, wanted %s", cs_status_message(st), wanted);
  cs_status_free(st);
}

/* A merged launch: its kernel gets the leader's and every member's tensors; others are refused. */
static void one_kernel_gets_all_of_a_merged_launch(void **state) {
  (void)state;
  enum { N = CS_CUDA_MERGE_MOST + 1 };
  const char *ids[CS_CUDA_VARIANTS_MOST], *merging[2] = {NULL}, *plain_id = NULL;
  char memory[2 * N];
  cs_bound bounds[N];
  cs_op_desc desc = describe(&conv3x3_f16);
  int n = cs_cuda_kernel_variants(&desc, ids, CS_CUDA_VARIANTS_MOST), found = 0;
  for (int i = 0; i < n; i++) {
    if (!cs_cuda_kernel_merges(ids[i])) plain_id = ids[i];
    if (cs_cuda_kernel_merges(ids[i]) && found < 2) merging[found++] = ids[i];
  }
  assert_true(found == 2 && plain_id);
  cs_exec exec = {
      .kind = CS_EXEC_KERNEL, .id = (char *)(uintptr_t)merging[0], .kernel = {.id = merging[0]}};
  cs_exec other = exec, plain = exec;
  other.id = (char *)(uintptr_t)merging[1], other.kernel.id = merging[1];
  plain.id = (char *)(uintptr_t)plain_id, plain.kernel.id = plain_id;
  for (int i = 0; i < N; i++) {
    cs_launch launch = {.exec = &exec,
                        .name = "conv",
                        .merged = i - 1 < 0 ? -1 : 0,
                        .inputs = {&memory[2 * i]},
                        .output = &memory[2 * i + 1]};
    ok(cs_bound_create(&launch, &bounds[i]));
  }
  for (int i = 1; i < CS_CUDA_MERGE_MOST; i++) ok(cs_bound_join(&bounds[0], &bounds[i]));
  assert_int_equal(bounds[0].n_parts, CS_CUDA_MERGE_MOST);
  for (int i = 0; i < CS_CUDA_MERGE_MOST; i++) {
    assert_ptr_equal(bounds[0].parts[i].desc, &exec.desc);
    assert_ptr_equal(bounds[0].parts[i].inputs[0], &memory[2 * i]);
    assert_ptr_equal(bounds[0].parts[i].output, &memory[2 * i + 1]);
  }
  ok(cs_bound_launch(&bounds[1], NULL, NULL)); /* the leader's kernel does it: no device needed */
  fails(cs_bound_join(&bounds[0], &bounds[N - 1]), "has 8 operations already");
  bounds[2].launch.exec = &other;
  fails(cs_bound_join(&bounds[1], &bounds[2]), "wanted one kernel that merges");
  bounds[1].launch.exec = bounds[2].launch.exec = &plain;
  fails(cs_bound_join(&bounds[1], &bounds[2]), "wanted one kernel that merges");
  for (int i = 0; i < N; i++) cs_bound_clear(&bounds[i]);
}

static void engine_ids_parse_strictly(void **state) {
  (void)state;
  cs_engine_id id;
  char *text = NULL;
  assert_true(cs_engine_id_parse("eng10{2=5,13=-1}", &id));
  assert_int_equal(id.engine, 10);
  assert_int_equal(id.n_knobs, 2);
  assert_int_equal(id.knobs[1].type, 13);
  assert_int_equal(id.knobs[1].value, -1);
  ok(cs_engine_id_format(&id, "x:", &text));
  assert_string_equal(text, "x:eng10{2=5,13=-1}");
  free(text);
  assert_true(cs_engine_id_parse("eng0{}", &id));
  const char *bad[] = {"",           "eng",
                       "eng1",       "eng1{",
                       "eng1{2}",    "eng1{2=}",
                       "eng1{=2}",   "eng1{2=3",
                       "eng1{2=3,}", "eng1{2=3}x",
                       "engx{}",     "eng 1{}",
                       "eng1{ 2=3}", "eng99999999999999999999{}"};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    if (cs_engine_id_parse(bad[i], &id)) fail_msg("'%s' was accepted", bad[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(conv_f16_has_many_candidates),
      cmocka_unit_test(ids_are_unique_and_stable),
      cmocka_unit_test(plans_rebuild_from_id_and_json),
      cmocka_unit_test(broken_plans_are_bad_input),
      cmocka_unit_test(f32_uses_no_tensor_cores),
      cmocka_unit_test(huge_batches_are_no_error),
      cmocka_unit_test(workspace_limit_is_held),
      cmocka_unit_test(deterministic_is_a_filter),
      cmocka_unit_test(conv_transpose_is_offered_unfused),
      cmocka_unit_test(channel_slices_are_accepted),
      cmocka_unit_test(a_slice_keeps_the_workspace_limit),
      cmocka_unit_test(ways_have_names),
      cmocka_unit_test(residual_without_bias_stays_fused),
      cmocka_unit_test(gemm_runs_as_convolution),
      cmocka_unit_test(asymmetric_pads_are_kept),
      cmocka_unit_test(large_output_padding_is_no_backward_data),
      cmocka_unit_test(the_conformance_table_enumerates),
      cmocka_unit_test(arguments_bind),
      cmocka_unit_test(one_kernel_gets_all_of_a_merged_launch),
      cmocka_unit_test(engine_ids_parse_strictly),
  };
  return cmocka_run_group_tests(tests, open_h100, close_h100);
}
