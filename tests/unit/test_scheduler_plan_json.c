/* `convsched.plan/1`: what is written is read back to the same bytes; everything else is refused
 * with the place named. */
#include <jansson.h>

#include "scheduler/configuration.h"

#include "unit/scheduler_fixture.h"

typedef struct subject {
  cs_graph *graph;
  cs_program *program;
  fixture choices; /* only its choices are used */
  cs_plan *plan;
  char *text;
} subject;

static const char concat_twice[] =
    "{\"schema\":\"convsched.graph/1\",\"name\":\"twice\",\"inputs\":[{\"name\":\"x\",\"shape\":"
    "[\"N\",8,6,6],\"dtype\":\"f32\"}],\"nodes\":[{\"name\":\"k\",\"op\":\"Concat\",\"inputs\":"
    "[\"x\",\"x\"],\"attrs\":{\"axis\":1}},{\"name\":\"s\",\"op\":\"Sigmoid\",\"inputs\":[\"k\"]}],"
    "\"outputs\":[\"s\"]}";

/* A plan of a model (NULL: the graph above) by the streams policy, from random candidates. */
static void make_subject(subject *s, const char *model) {
  cs_graph *graph = NULL, *bound = NULL;
  cs_pass_report report;
  cs_rng rng;
  memset(s, 0, sizeof *s);
  cs_rng_init(&rng, 31, 1);
  if (model) {
    char path[512];
    snprintf(path, sizeof path, "%s/models/%s.json", CS_SOURCE_DIR, model);
    assert_ok(cs_graph_load(path, &graph));
  } else {
    assert_ok(cs_graph_parse(concat_twice, strlen(concat_twice), "twice", &graph));
  }
  assert_ok(cs_graph_bind(graph, 2, &bound));
  assert_ok(cs_graph_apply_passes(bound, CS_PASSES_ALL, &report, &s->graph));
  cs_graph_destroy(graph);
  cs_graph_destroy(bound);
  cs_layout *layouts = cs_calloc((size_t)s->graph->n_values, sizeof *layouts);
  for (int v = 0; v < s->graph->n_values; v++)
    layouts[v] = s->graph->values[v].shape.rank == 4 ? (cs_layout)below(&rng, 2) : CS_LAYOUT_NCHW;
  assert_ok(cs_program_lower(s->graph, CS_PRECISION_TF32, layouts, &s->program));
  free(layouts);
  fixture_init(&s->choices, s->program->n_tasks);
  for (int t = 0; t < s->program->n_tasks; t++) random_choices(&s->choices, &rng, t, 3, 100000);
  cs_policy_input input = fixture_input(&s->choices, 4, 0, 0);
  input.program = s->program;
  input.seed = UINT64_MAX;
  input.graph_hash = UINT64_C(0x00ff00ff12345678);
  assert_ok(cs_plan_make(&cs_policy_streams, &input, &s->plan));
  assert_ok(cs_plan_to_json(s->plan, s->program, &s->text));
}

static void free_subject(subject *s) {
  s->choices.program.n_tasks = s->program->n_tasks;
  cs_plan_destroy(s->plan);
  fixture_free(&s->choices);
  cs_program_destroy(s->program);
  cs_graph_destroy(s->graph);
  free(s->text);
}

static void a_plan_comes_back_as_it_was(void **state) {
  (void)state;
  static const char *const models[] = {"googlenet", "resnet50", "densenet121", "squeezenet1_1",
                                       NULL};
  for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
    subject s;
    cs_plan *back = NULL;
    char *again = NULL, *twice = NULL;
    make_subject(&s, models[m]);
    assert_ok(cs_plan_from_json(s.text, strlen(s.text), "plan.json", s.graph, &back));
    assert_ok(cs_plan_to_json(back, s.program, &again));
    assert_string_equal(again, s.text);
    assert_ok(cs_plan_to_json(s.plan, s.program, &twice));
    assert_string_equal(twice, s.text);
    assert_ok(cs_plan_check(back, s.program, 0, 0));
    assert_true(back->graph_hash == s.plan->graph_hash && back->seed == UINT64_MAX);
    assert_int_equal(back->precision, CS_PRECISION_TF32);
    assert_true(back->batch == 2);
    for (int v = 0; v < back->n_values; v++) assert_int_equal(back->layouts[v], s.plan->layouts[v]);
    for (int p = 0; p < back->n_tasks; p++) {
      const cs_plan_task *a = &back->tasks[p], *b = &s.plan->tasks[p];
      assert_int_equal(a->task, b->task);
      assert_int_equal(a->stream, b->stream);
      assert_int_equal(a->n_waits, b->n_waits);
      assert_string_equal(a->candidate.id, b->candidate.id);
      assert_true(a->workspace_bytes == b->workspace_bytes);
    }
    cs_plan_destroy(back);
    free(again);
    free(twice);
    free_subject(&s);
  }
}

/* A file that does not say which tasks may begin early is of a plan in which all may, without
 * hints: that is how plans without a choice of them run. */
static void what_a_plan_does_not_say_begins_early(void **state) {
  (void)state;
  subject s;
  cs_plan *back = NULL;
  make_subject(&s, "squeezenet1_1");
  assert_null(strstr(s.text, "\"early\""));
  assert_ok(cs_plan_from_json(s.text, strlen(s.text), "plan.json", s.graph, &back));
  for (int p = 0; p < back->n_tasks; p++) assert_false(back->tasks[p].late);
  assert_false(back->hints);
  cs_plan_destroy(back);
  back = NULL;
  json_t *root = json_loads(s.text, 0, NULL);
  json_object_set_new(json_array_get(json_object_get(root, "tasks"), 0), "early", json_true());
  json_object_set_new(json_array_get(json_object_get(root, "tasks"), 1), "early", json_false());
  json_object_set_new(root, "launch_hints", json_true());
  char *said = json_dumps(root, 0);
  assert_ok(cs_plan_from_json(said, strlen(said), "plan.json", s.graph, &back));
  for (int p = 0; p < back->n_tasks; p++) assert_int_equal(back->tasks[p].late, p == 1);
  assert_true(back->hints);
  char *again = NULL;
  assert_ok(cs_plan_to_json(back, s.program, &again));
  assert_non_null(strstr(again, "\"early\": false"));
  assert_non_null(strstr(again, "\"launch_hints\": true"));
  free(again);
  cs_plan_destroy(back);
  free(said);
  json_decref(root);
  free_subject(&s);
}

static void identity_is_checked(void **state) {
  (void)state;
  subject s;
  make_subject(&s, "squeezenet1_1");
  uint64_t hash = s.plan->graph_hash;
  assert_ok(cs_plan_check_identity(s.plan, hash, CS_PRECISION_TF32, "test device"));
  assert_fails(cs_plan_check_identity(s.plan, hash + 1, CS_PRECISION_TF32, "test device"),
               CS_CODE_BAD_INPUT, "found hash 00ff00ff12345678 (batch 2), wanted 00ff00ff12345679");
  assert_fails(cs_plan_check_identity(s.plan, hash, CS_PRECISION_F16, "test device"),
               CS_CODE_BAD_INPUT, "found tf32, wanted f16");
  assert_fails(cs_plan_check_identity(s.plan, hash, CS_PRECISION_TF32, "another"),
               CS_CODE_BAD_INPUT, "found \"test device\", wanted \"another\"");
  free_subject(&s);
}

/* Every task with a candidate that merges, those of a node's branches joined where they can be,
 * every third launch of high priority, every fourth one late, on two streams with a part of the
 * device each. */
static void make_merged(subject *s) {
  cs_configuration all;
  cs_plan_destroy(s->plan);
  free(s->text);
  s->plan = NULL;
  for (int t = 0; t < s->program->n_tasks; t++) {
    cs_candidate *candidate = (cs_candidate *)(uintptr_t)s->choices.choices[t].choices[0].candidate;
    candidate->merges = true;
    candidate->workspace_bytes = 0;
  }
  cs_policy_input input = fixture_input(&s->choices, 2, 0, 0);
  input.program = s->program;
  assert_ok(cs_configuration_make(s->program->n_tasks, &all));
  for (int p = 0; p < all.n; p++) {
    cs_placement *place = &all.places[p];
    *place = (cs_placement){.task = p, .stream = p % 2, .priority = p % 3 == 0, .late = p % 4 == 0};
    if (p == 0) continue;
    cs_placement kept = *place;
    place->stream = all.places[p - 1].stream;
    place->priority = all.places[p - 1].priority;
    place->late = all.places[p - 1].late;
    place->joined = cs_placement_joins(all.places, p, &input);
    if (!place->joined) *place = kept;
  }
  all.n_parts = 2;
  all.parts[0] = 100;
  all.parts[1] = 32;
  all.part_of[0] = 1;
  all.part_of[1] = -1;
  assert_ok(cs_configuration_plan(&all, "merged", &input, &s->plan));
  assert_ok(cs_plan_to_json(s->plan, s->program, &s->text));
  cs_configuration_free(&all);
}

static int first_member(const cs_plan *plan) {
  int p = 0;
  while (p < plan->n_tasks && plan->tasks[p].merged < 0) p++;
  assert_true(p < plan->n_tasks);
  return p;
}

static void merges_priorities_and_parts_come_back(void **state) {
  (void)state;
  int late = 0;
  subject s;
  cs_plan *back = NULL;
  char *again = NULL;
  make_subject(&s, "googlenet");
  make_merged(&s);
  assert_ok(cs_plan_from_json(s.text, strlen(s.text), "plan.json", s.graph, &back));
  assert_ok(cs_plan_check(back, s.program, 0, 0));
  assert_ok(cs_plan_to_json(back, s.program, &again));
  assert_string_equal(again, s.text);
  for (int p = 0; p < back->n_tasks; p++) {
    assert_int_equal(back->tasks[p].merged, s.plan->tasks[p].merged);
    assert_int_equal(back->tasks[p].priority, s.plan->tasks[p].priority);
    assert_int_equal(back->tasks[p].late, s.plan->tasks[p].late);
    late += back->tasks[p].late;
  }
  assert_in_range(late, 1, back->n_tasks - 1);
  assert_int_equal(back->n_parts, 2);
  assert_int_equal(back->parts[0], 100);
  assert_int_equal(back->stream_part[0], 1);
  assert_int_equal(back->stream_part[1], -1);
  assert_int_equal(cs_plan_leader(back, first_member(back)), first_member(back) - 1);
  cs_plan_destroy(back);
  free(again);
  free_subject(&s);
}

/* ---- What is refused ---- */

typedef struct edit {
  const char *where; /* members and indices, by '/' */
  const char *value; /* JSON; NULL: the member is removed */
  const char *wanted;
} edit;

static const edit edits[] = {
    {"surprise", "1", "$: unknown key \"surprise\""},
    {"policy", NULL, "$: key \"policy\" is missing"},
    {"policy", "3", "$.policy: found an integer, wanted a string"},
    {"schema", "\"convsched.plan/2\"", "$.schema: found \"convsched.plan/2\""},
    {"graph_hash", "\"12\"", "$.graph_hash: found \"12\", wanted 16 hexadecimal digits"},
    {"graph_hash", "\"00FF00ff12345678\"", "wanted 16 hexadecimal digits"},
    {"seed", "\"-1\"", "$.seed: found \"-1\""},
    {"seed", "\"18446744073709551616\"", "$.seed: found \"18446744073709551616\""},
    {"seed", "\"\"", "$.seed: found \"\""},
    {"precision", "\"f64\"", "$.precision: found \"f64\""},
    {"batch", "3", "$.batch: found 3, wanted the graph's 2"},
    {"batch", "\"two\"", "$.batch: found a string, wanted an integer"},
    {"streams", "0", "$.streams: found 0, wanted 1 to"},
    {"streams", "1000000", "$.streams: found 1000000, wanted at most one a task"},
    {"arena_bytes", "-1", "$.arena_bytes: found -1, wanted 0 to"},
    {"arena_bytes", "1.5", "$.arena_bytes: found a number, wanted an integer"},
    {"workspace_peak", "-5", "$.workspace_peak: found -5"},
    {"predicted_us", "-5", "$.predicted_us: found -5"},
    {"layouts", "[]", "$.layouts: found an array, wanted an object"},
    {"layouts/nothing", "\"NCHW\"", "$.layouts: the graph has no value \"nothing\""},
    {"layouts/input", NULL, "$.layouts.input: found nothing, wanted a string"},
    {"layouts/input", "\"CHWN\"", "$.layouts.input: unknown layout \"CHWN\""},
    {"tasks", "{}", "$.tasks: found an object, wanted an array"},
    {"tasks", "[]", "$.tasks: found 0 tasks, wanted"},
    {"tasks/3", "7", "$.tasks[3]: found an integer, wanted an object"},
    {"tasks/3/name", "\"nobody\"", "$.tasks[3].name: the program has no task \"nobody\""},
    {"tasks/3/stream", "-1", "$.tasks[3].stream: found -1, wanted 0 to"},
    {"tasks/3/stream", "99", "$.tasks[3].stream: found 99, wanted 0 to"},
    {"tasks/3/more", "99", "$.tasks[3]: unknown key \"more\""},
    {"tasks/3/waits", "3", "$.tasks[3].waits: found an integer, wanted an array"},
    {"tasks/3/waits", "[3]", "$.tasks[3].waits[0]: found an integer, wanted a string"},
    {"tasks/3/waits", "[\"nobody\"]", "$.tasks[3].waits[0]: found \"nobody\", wanted a task"},
    {"tasks/3/workspace_offset", "-256", "$.tasks[3].workspace_offset: found -256, wanted 0 to"},
    {"tasks/3/workspace_offset", "8", "$.tasks[3].workspace_offset: found 8, wanted a multiple"},
    {"tasks/3/start_us", "true", "$.tasks[3].start_us: found true, wanted a number"},
    {"tasks/3/candidate", "[]", "$.tasks[3].candidate: found an array, wanted an object"},
    {"tasks/3/candidate/id", "null", "$.tasks[3].candidate.id: found null, wanted a string"},
    {"tasks/3/candidate/payload", "5", "$.tasks[3].candidate.payload: found an integer"},
    {"tasks/3/candidate/fused", "0", "$.tasks[3].candidate.fused: found an integer, wanted true"},
    {"tasks/3/candidate/notes", "4294967296", "$.tasks[3].candidate.notes: found 4294967296"},
    {"tasks/3/candidate/workspace_bytes", "-1", "$.tasks[3].candidate.workspace_bytes: found -1"},
    {"buffers", "5", "$.buffers: found an integer, wanted an array"},
    {"buffers/1/name", "\"nothing\"", "$.buffers[1].name: found \"nothing\", wanted"},
    {"buffers/1/bytes", "12", "$.buffers[1].bytes: found 12, wanted"},
    {"buffers/1/offset", "-256", "$.buffers[1].offset: found -256"},
    {"buffers/1/offset", "100", "$.buffers[1].offset: found 100, wanted a multiple of 256"},
};

static void set_member(json_t *parent, const char *key, const char *value) {
  json_t *json = value ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;
  if (json_is_array(parent)) {
    json_array_set_new(parent, (size_t)atoi(key), json);
  } else if (json) {
    json_object_set_new(parent, key, json);
  } else {
    json_object_del(parent, key);
  }
}

static char *edited(const char *text, const edit *change) {
  char where[128], *save = NULL;
  json_t *root = json_loads(text, 0, NULL), *at = root;
  snprintf(where, sizeof where, "%s", change->where);
  char *key = strtok_r(where, "/", &save);
  for (char *next = strtok_r(NULL, "/", &save); next; next = strtok_r(NULL, "/", &save)) {
    at = json_is_array(at) ? json_array_get(at, (size_t)atoi(key)) : json_object_get(at, key);
    assert_non_null(at);
    key = next;
  }
  set_member(at, key, change->value);
  char *out = json_dumps(root, 0);
  json_decref(root);
  return out;
}

static void whatever_is_wrong_is_named(void **state) {
  (void)state;
  subject s;
  cs_plan *back = NULL;
  make_subject(&s, "googlenet");
  for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
    char *text = edited(s.text, &edits[i]);
    assert_fails(cs_plan_from_json(text, strlen(text), "plan.json", s.graph, &back),
                 CS_CODE_BAD_INPUT, edits[i].wanted);
    assert_null(back);
    free(text);
  }
  free_subject(&s);
}

/* Changes of a plan with a merged launch, made at its first member (%d) or the one before (%b). */
static const edit merged_edits[] = {
    {"tasks/%d/merged", "3", ".merged: found an integer, wanted a string"},
    {"tasks/%d/merged", "\"nobody\"", ".merged: found \"nobody\", wanted a task launched earlier"},
    {"tasks/%b/merged", "\"%d\"", "wanted a task launched earlier"}, /* its own member */
    {"tasks/%d/stream", "%o", "wanted a task of the same stream"},
    {"tasks/%d/candidate/id", "\"other\"",
     "wanted a task with the same candidate, one that merges"},
    {"tasks/%d/candidate/merges", "false",
     "wanted a task with the same candidate, one that merges"},
    {"tasks/%d/candidate/merges", "1", ".candidate.merges: found an integer, wanted true or false"},
    {"tasks/%d/candidate/workspace_bytes", "256", "wanted candidates without workspace"},
    {"tasks/%d/priority", "%p", "wanted a task of the same priority"},
    {"tasks/%d/priority", "2", ".priority: found 2, wanted 0 to 1"},
    {"tasks/%d/priority", "null", ".priority: found null, wanted an integer"},
    {"tasks/%d/early", "%e", "wanted a task that begins as early"},
    {"tasks/%d/early", "1", ".early: found an integer, wanted true or false"},
    {"launch_hints", "1", "$.launch_hints: found an integer, wanted true or false"},
    {"split", "[]", "$.split: found an array, wanted an object"},
    {"split/streams", NULL, "$.split: key \"streams\" is missing"},
    {"split/more", "1", "$.split: unknown key \"more\""},
    {"split/parts", "[]", "$.split.parts: found 0 parts, wanted 1 to 4"},
    {"split/parts", "[1,1,1,1,1]", "$.split.parts: found 5 parts, wanted 1 to 4"},
    {"split/parts", "7", "$.split.parts: found an integer, wanted an array"},
    {"split/parts/1", "0", "$.split.parts[1]: found an integer 0, wanted SMs, 1 or more"},
    {"split/streams", "{}", "$.split.streams: found an object, wanted an array"},
    {"split/streams", "[0]", "$.split.streams: found 1 entries, wanted one a stream (2)"},
    {"split/streams/0", "2", "$.split.streams[0]: found an integer 2, wanted null"},
    {"split/streams/0", "-1", "$.split.streams[0]: found an integer -1, wanted null"},
};

/* %d: position of the member, %b: the one before it; in a value %o: the other stream, %p: the other
 * priority, %e: the other way to begin, "%d": the member's name. */
static char *expanded(const char *text, const subject *s, bool value) {
  int d = first_member(s->plan);
  const cs_plan_task *member = &s->plan->tasks[d];
  cs_strbuf out = {0};
  char *taken = NULL;
  for (; *text; text++) {
    if (*text != '%') {
      cs_strbuf_append(&out, text, 1);
      continue;
    }
    text++;
    if (*text == 'd' && value)
      cs_strbuf_printf(&out, "%s", s->program->tasks[member->task].name);
    else if (*text == 'e')
      cs_strbuf_printf(&out, "%s", member->late ? "true" : "false");
    else
      cs_strbuf_printf(&out, "%d",
                       *text == 'd'   ? d
                       : *text == 'b' ? d - 1
                       : *text == 'o' ? 1 - member->stream
                                      : 1 - member->priority);
  }
  assert_ok(cs_strbuf_take(&out, &taken));
  return taken;
}

static void whatever_is_wrong_with_a_merge_or_a_split_is_named(void **state) {
  (void)state;
  subject s;
  cs_plan *back = NULL;
  make_subject(&s, "googlenet");
  make_merged(&s);
  for (size_t i = 0; i < sizeof merged_edits / sizeof merged_edits[0]; i++) {
    edit change = merged_edits[i];
    char *where = expanded(change.where, &s, false);
    char *value = change.value ? expanded(change.value, &s, true) : NULL;
    char *text = edited(s.text, &(edit){where, value, NULL});
    assert_fails(cs_plan_from_json(text, strlen(text), "plan.json", s.graph, &back),
                 CS_CODE_BAD_INPUT, change.wanted);
    assert_null(back);
    free(text);
    free(where);
    free(value);
  }
  free_subject(&s);
}

static void broken_text_is_refused(void **state) {
  (void)state;
  subject s;
  cs_plan *back = NULL;
  make_subject(&s, "squeezenet1_1");
  size_t length = strlen(s.text);
  for (size_t cut = 0; cut < length; cut += 1 + length / 50) /* truncated */
    assert_fails(cs_plan_from_json(s.text, cut, "plan.json", s.graph, &back), CS_CODE_BAD_INPUT,
                 "plan.json: line ");
  assert_fails(cs_plan_from_json("[]", 2, "plan.json", s.graph, &back), CS_CODE_BAD_INPUT,
               "plan.json: $: found an array, wanted an object");
  assert_fails(cs_plan_from_json("{\"a\":1,\"a\":2}", 13, "plan.json", s.graph, &back),
               CS_CODE_BAD_INPUT, "duplicate object key");
  assert_fails(cs_plan_from_json("{\"\xff\":1}", 7, "plan.json", s.graph, &back), CS_CODE_BAD_INPUT,
               "unable to decode byte 0xff");
  free_subject(&s);
}

/* A task that is launched twice, and one that waits for a later one. */
static void order_in_the_file_is_checked(void **state) {
  (void)state;
  subject s;
  cs_plan *back = NULL;
  make_subject(&s, "googlenet");
  json_t *root = json_loads(s.text, 0, NULL), *tasks = json_object_get(root, "tasks");
  json_t *first = json_array_get(tasks, 0), *second = json_array_get(tasks, 1);
  json_t *name = json_incref(json_object_get(second, "name"));
  json_array_append(json_object_get(first, "waits"), name);
  char *text = json_dumps(root, 0);
  assert_fails(cs_plan_from_json(text, strlen(text), "plan.json", s.graph, &back),
               CS_CODE_BAD_INPUT, "wanted a task launched earlier");
  free(text);
  json_array_clear(json_object_get(first, "waits"));
  json_object_set(first, "name", name);
  text = json_dumps(root, 0);
  assert_fails(cs_plan_from_json(text, strlen(text), "plan.json", s.graph, &back),
               CS_CODE_BAD_INPUT, "is there twice");
  free(text);
  json_decref(name);
  json_decref(root);
  free_subject(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_plan_comes_back_as_it_was),
      cmocka_unit_test(what_a_plan_does_not_say_begins_early),
      cmocka_unit_test(identity_is_checked),
      cmocka_unit_test(whatever_is_wrong_is_named),
      cmocka_unit_test(broken_text_is_refused),
      cmocka_unit_test(order_in_the_file_is_checked),
      cmocka_unit_test(merges_priorities_and_parts_come_back),
      cmocka_unit_test(whatever_is_wrong_with_a_merge_or_a_split_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
