/* Merged launches: random plans that have them are right by the oracle and the checker, mutants of
 * them are judged alike, and what has to be wrong is caught. Configurations with joined placements,
 * priorities, late beginnings and splits. */
#include "scheduler/configuration.h"
#include "unit/plan_oracle.h"

/* ---- Random configurations ---- */

/* Candidates without a workspace merge; all tasks have one of each id. */
static void mergeable_program(fixture *f, cs_rng *rng, int n) {
  random_program(f, rng, n, 2 + below(rng, 12));
  for (int t = 0; t < n; t++) {
    add_choice(f, t, 30 + below(rng, 30), 0);
    cs_choice *last = &f->choices[t].choices[f->choices[t].n - 1];
    cs_candidate *candidate = (cs_candidate *)(uintptr_t)last->candidate;
    free(candidate->id);
    candidate->id = numbered("merging:", below(rng, 2));
    candidate->merges = true;
  }
}

static int some_ready(const fixture *f, cs_rng *rng, const bool *done) {
  int n = f->program.n_tasks;
  for (int t = below(rng, n);; t = (t + 1) % n) {
    bool ready = !done[t];
    for (int i = 0; ready && i < f->program.tasks[t].n_preds; i++)
      ready = done[f->program.tasks[t].preds[i]];
    if (ready) return t;
  }
}

/* Any order, any streams; whatever may be joined with what is before it often is. */
static void random_configuration(const fixture *f, cs_rng *rng, const cs_policy_input *input,
                                 cs_configuration *out) {
  bool done[ORACLE_MAX] = {false};
  assert_ok(cs_configuration_make(f->program.n_tasks, out));
  for (int p = 0; p < out->n; p++) {
    cs_placement *place = &out->places[p];
    place->task = some_ready(f, rng, done);
    place->stream = below(rng, input->max_streams);
    place->priority = below(rng, 4) == 0;
    place->late = below(rng, 3) == 0;
    place->choice = f->choices[place->task].n - 1 - below(rng, 2) * below(rng, 2);
    if (place->choice < 0) place->choice = 0;
    done[place->task] = true;
    if (p == 0 || below(rng, 5) == 0) continue;
    cs_placement kept = *place;
    place->stream = out->places[p - 1].stream;
    place->priority = out->places[p - 1].priority;
    place->late = out->places[p - 1].late;
    place->joined = cs_placement_joins(out->places, p, input);
    if (!place->joined) *place = kept;
  }
  out->hints = below(rng, 2);
  if (below(rng, 4) > 0) return;
  out->hints = false; /* not both */
  out->n_parts = 1 + below(rng, CS_MAX_PARTS);
  for (int p = 0; p < out->n; p++) out->places[p].priority = 0; /* not both */
  for (int i = 0; i < out->n_parts; i++) out->parts[i] = 1 + below(rng, 33);
  for (int s = 0; s < CS_MAX_SPLIT_STREAMS; s++) out->part_of[s] = below(rng, out->n_parts + 1) - 1;
}

/* ---- Mutants ---- */

enum {
  SHARE_INPUT, /* a member's output is put where another one of its launch reads */
  DEPENDENT,   /* a task is merged with what it depends on */
  OWN_WAIT,    /* a member waits by itself */
  APART,       /* something of its own is launched before the last member */
  CHAIN,       /* merged with a member instead of the leader */
  SELF,
  STREAM,
  CANDIDATE,
  NOT_MERGING,
  WORKSPACE,
  PRIORITY,
  LATE,
  ALONE,    /* a member is launched by itself */
  NO_WAITS, /* the leader does not wait */
  N_MUTATIONS
};
static const char *const mutation_names[] = {
    "share input", "dependent",   "own wait",  "apart",    "chain", "self",  "stream",
    "candidate",   "not merging", "workspace", "priority", "late",  "alone", "no waits"};
/* What is left right by those that may be. */
static const bool may_be_right[N_MUTATIONS] = {[ALONE] = true, [NO_WAITS] = true};

static bool share_input(cs_plan *plan, const cs_program *program, int member, int other) {
  const cs_task *writer = &program->tasks[plan->tasks[member].task];
  const cs_task *reader = &program->tasks[plan->tasks[other].task];
  int to = program->tensors[writer->output].buffer;
  int from = program->tensors[reader->inputs[0]].buffer;
  if (from == to || program->buffers[from].bytes == 0 || program->buffers[to].bytes == 0)
    return false;
  plan->buffer_offsets[to] = plan->buffer_offsets[from];
  return true;
}

static void copy_launch(cs_plan_task *from, cs_plan_task *to) {
  cs_candidate_clear(&to->candidate);
  assert_ok(cs_candidate_copy(&from->candidate, &to->candidate));
  to->workspace_bytes = to->candidate.workspace_bytes;
  to->stream = from->stream;
  to->priority = from->priority;
  to->late = from->late;
  to->n_waits = 0;
}

/* A task directly behind one that it depends on comes into its launch, made to fit. */
static bool merge_dependent(cs_plan *plan, const cs_program *program, int p) {
  cs_plan_task *before = &plan->tasks[p - 1];
  const cs_task *task = &program->tasks[plan->tasks[p].task];
  bool depends = false;
  for (int i = 0; i < task->n_preds; i++) depends = depends || task->preds[i] == before->task;
  if (!depends || plan->tasks[p].merged >= 0 || !before->candidate.merges) return false;
  if (p - launch_of(plan, p - 1) >= CS_MERGE_MOST || cs_plan_launch_end(plan, p) > p + 1)
    return false;
  copy_launch(before, &plan->tasks[p]);
  plan->tasks[p].merged = launch_of(plan, p - 1);
  return true;
}

static bool own_wait(cs_plan *plan, int member) {
  cs_plan_task *own = &plan->tasks[member];
  for (int q = 0; q < own->merged; q++) {
    if (plan->tasks[q].stream == own->stream) continue;
    free(own->waits);
    own->waits = cs_calloc(1, sizeof *own->waits);
    own->waits[own->n_waits++] = q;
    return true;
  }
  return false;
}

/* The member and what is behind its launch change places. */
static bool part(cs_plan *plan, int leader) {
  int end = cs_plan_launch_end(plan, leader);
  if (end == plan->n_tasks || cs_plan_launch_end(plan, end) > end + 1) return false;
  cs_plan_task kept = plan->tasks[end];
  plan->tasks[end] = plan->tasks[end - 1];
  plan->tasks[end - 1] = kept;
  return true;
}

static void add_workspace(cs_plan_task *task) {
  task->workspace_bytes = task->candidate.workspace_bytes = 1;
  task->workspace_offset = 0;
}

/* Changes the launch of `member`, at `other` or as a whole; false: nothing to change. */
static bool mutate(cs_plan *plan, const cs_program *program, cs_rng *rng, int member,
                   int mutation) {
  cs_plan_task *own = &plan->tasks[member];
  int leader = own->merged, end = cs_plan_launch_end(plan, leader);
  int other = leader + below(rng, end - leader);
  switch (mutation) {
    case SHARE_INPUT:
      return other != member && share_input(plan, program, member, other);
    case DEPENDENT:
      return merge_dependent(plan, program, 1 + below(rng, plan->n_tasks - 1));
    case OWN_WAIT:
      return own_wait(plan, member);
    case APART:
      return part(plan, leader);
    case CHAIN:
      if (member == leader + 1) return false;
      own->merged = member - 1;
      return true;
    case SELF:
      own->merged = member;
      return true;
    case STREAM:
      own->stream = (own->stream + 1) % plan->n_streams;
      return plan->n_streams > 1;
    case CANDIDATE:
      own->candidate.id[0] = 'x';
      return true;
    case NOT_MERGING:
      plan->tasks[other].candidate.merges = false;
      return true;
    case WORKSPACE:
      add_workspace(&plan->tasks[other]);
      return true;
    case PRIORITY:
      own->priority = 1 - own->priority;
      return true;
    case LATE:
      own->late = !own->late;
      return true;
    case ALONE:
      if (end != member + 1) return false;
      own->merged = -1;
      return true;
    default:
      plan->tasks[leader].n_waits = 0;
      return true;
  }
}

typedef struct tally {
  int caught[N_MUTATIONS], equivalent[N_MUTATIONS], launches, most;
} tally;

static void try_mutant(const cs_plan *plan, const cs_program *program, cs_rng *rng, int member,
                       int mutation, tally *count) {
  cs_plan *mutant = clone(plan);
  if (mutate(mutant, program, rng, member, mutation)) {
    bool right = judged(mutant, program, mutation_names[mutation]);
    (right ? count->equivalent : count->caught)[mutation]++;
  }
  cs_plan_destroy(mutant);
}

/* A configuration as text and back. */
static void round_trip(const cs_configuration *configuration, const cs_policy_input *input) {
  cs_configuration back;
  char *text = NULL;
  bool valid = false;
  assert_ok(cs_configuration_text(configuration, input->choices, &text));
  assert_ok(cs_configuration_parse(text, input, &back, &valid));
  assert_true(valid);
  assert_true(cs_configuration_equal(configuration, &back));
  free(text);
  cs_configuration_free(&back);
}

static void one_program(cs_rng *rng, tally *count) {
  fixture f;
  cs_configuration configuration, back;
  cs_plan *plan = NULL;
  mergeable_program(&f, rng, 3 + below(rng, 30));
  cs_policy_input input = fixture_input(&f, 1 + below(rng, 4), 0, 0);
  input.priorities = input.hints = true;
  random_configuration(&f, rng, &input, &configuration);
  input.n_splits = configuration.n_parts > 0;
  input.splits[0].n = configuration.n_parts;
  memcpy(input.splits[0].units, configuration.parts, sizeof configuration.parts);
  cs_configuration_number_streams(&configuration);
  assert_true(cs_configuration_valid(&configuration, &input));
  round_trip(&configuration, &input);
  assert_ok(cs_configuration_plan(&configuration, "random", &input, &plan)); /* and checks it */
  assert_true(is_right(plan, &f.program));
  assert_ok(cs_configuration_of_plan(plan, f.choices, &back));
  assert_true(cs_configuration_equal(&configuration, &back));
  for (int p = 0; p < plan->n_tasks; p++) {
    if (plan->tasks[p].merged < 0) continue;
    count->launches += plan->tasks[p].merged == p - 1;
    if (p - plan->tasks[p].merged + 1 > count->most) count->most = p - plan->tasks[p].merged + 1;
    try_mutant(plan, &f.program, rng, p, below(rng, N_MUTATIONS), count);
  }
  cs_plan_destroy(plan);
  cs_configuration_free(&configuration);
  cs_configuration_free(&back);
  fixture_free(&f);
}

static void merged_plans_are_right_and_mutants_judged(void **state) {
  (void)state;
  cs_rng rng;
  tally count = {0};
  cs_rng_init(&rng, 2025, 1);
  for (int i = 0; i < 4000; i++) one_program(&rng, &count);
  print_message("%d merged launches, of at most %d tasks\n", count.launches, count.most);
  for (int m = 0; m < N_MUTATIONS; m++) {
    print_message("%-12s %5d wrong, all caught; %5d still right, all accepted\n", mutation_names[m],
                  count.caught[m], count.equivalent[m]);
    if (m != ALONE) assert_true(count.caught[m] >= 50);
    if (!may_be_right[m]) assert_int_equal(count.equivalent[m], 0);
  }
  assert_true(count.equivalent[ALONE] >= 50); /* its dependencies are the leader's waits */
  assert_true(count.most >= 5);
}

/* ---- Limits keep launches whole ---- */

static void limits_keep_launches_whole(void **state) {
  (void)state;
  cs_rng rng;
  int kept = 0;
  cs_rng_init(&rng, 77, 1);
  for (int i = 0; i < 300; i++) {
    fixture f;
    cs_configuration configuration;
    cs_plan *plan = NULL;
    mergeable_program(&f, &rng, 3 + below(&rng, 20));
    cs_policy_input input = fixture_input(&f, 1 + below(&rng, 4), 0, 0);
    random_configuration(&f, &rng, &input, &configuration);
    cs_configuration_number_streams(&configuration);
    input.workspace_limit = 1 + below(&rng, 6000);
    cs_status st = cs_configuration_plan(&configuration, "random", &input, &plan);
    if (st == CS_OK) {
      assert_ok(cs_plan_spare_workspace(plan, f.choices));
      for (int p = 0; p < plan->n_tasks; p++) {
        const cs_placement *place = &configuration.places[p];
        assert_int_equal(plan->tasks[p].merged >= 0, place->joined);
        if (!place->joined) continue;
        assert_string_equal(plan->tasks[p].candidate.id,
                            f.choices[place->task].choices[place->choice].candidate->id);
        kept++;
      }
    } else {
      assert_int_equal(cs_status_code(st), CS_CODE_NOT_FOUND);
    }
    cs_status_free(st);
    cs_plan_destroy(plan);
    cs_configuration_free(&configuration);
    fixture_free(&f);
  }
  assert_true(kept > 100);
}

/* ---- What no configuration is ---- */

static void refuse(const char *text, const cs_policy_input *input) {
  cs_configuration back;
  bool valid = true;
  assert_ok(cs_configuration_parse(text, input, &back, &valid));
  if (valid) fail_msg("\"%s\" was taken", text);
}

/* Two independent tasks and one that depends on the first. */
static void wrong_configurations_are_refused(void **state) {
  (void)state;
  static const cs_device_info device = {.units = 132};
  fixture f;
  int first = 0;
  fixture_init(&f, 3);
  for (int t = 0; t < 3; t++) {
    task_behind(&f, &first, t == 2, 10);
    ((cs_candidate *)(uintptr_t)f.choices[t].choices[0].candidate)->merges = true;
  }
  cs_policy_input input = fixture_input(&f, 2, 0, 0);
  input.device = &device;
  input.priorities = true;
  input.n_splits = 1;
  input.splits[0] = (cs_sm_parts){2, {100, 32}};
  cs_placement places[] = {{.task = 0}, {.task = 1, .joined = true}, {.task = 2}};
  cs_configuration configuration = {.places = places, .n = 3, .n_parts = 2, .parts = {100, 32}};
  char *text = NULL, wrong[160];
  assert_ok(cs_configuration_text(&configuration, f.choices, &text));
  size_t one = (size_t)(strchr(text, ' ') - text); /* of "0.0.xxxxxxxx" */
  const char *hash = text + 4;
  round_trip(&configuration, &input);
  assert_string_equal(text + 3 * one + 3, " @100,32:0");
#define WRONG(format, ...)                              \
  do {                                                  \
    snprintf(wrong, sizeof wrong, format, __VA_ARGS__); \
    refuse(wrong, &input);                              \
  } while (0)
#define H 8, hash
  WRONG("0.0.%.*s+ 1.0.%.*s 2.0.%.*s", H, H, H);             /* joined with nothing */
  WRONG("0.0.%.*s 1.1.%.*s+ 2.0.%.*s", H, H, H);             /* on another stream */
  WRONG("0.0.%.*s 1.0.%.*s+^ 2.0.%.*s", H, H, H);            /* of another priority */
  WRONG("0.0.%.*s 1.0.%.*s+~ 2.0.%.*s", H, H, H);            /* begins otherwise */
  WRONG("0.0.%.*s~^ 1.0.%.*s 2.0.%.*s", H, H, H);            /* marks in another order */
  WRONG("0.0.%.*s 1.0.%.*s+ 2.0.%.*s+", H, H, H);            /* depends on the leader */
  WRONG("0.0.%.*s 1.0.%.*s+ 2.0.%.*s @100,33:0", H, H, H);   /* no split that is allowed */
  WRONG("0.0.%.*s 1.0.%.*s+ 2.0.%.*s @0,32:0", H, H, H);     /* a part of none */
  WRONG("0.0.%.*s 1.0.%.*s+ 2.0.%.*s @100,32:2", H, H, H);   /* no such part */
  WRONG("0.0.%.*s 1.0.%.*s+ 2.0.%.*s @100,32:0,1", H, H, H); /* of a stream that is not there */
  WRONG("0.0.%.*s 1.0.%.*s+ 2.0.%.*s @100,32", H, H, H);
  WRONG("0.0.%.*s 1.0.%.*s+ 2.0.%.*s @1,1,1,1,1:0", H, H, H); /* too many */
  WRONG("0.0.%.*s 1.0.%.*s+ 2.0.%.*s @100,32:0x", H, H, H);
  WRONG("0.0.%.*s^ 1.0.%.*s 2.0.%.*s @100,32:0", H, H, H); /* a priority on a part */
  WRONG("0.0.%.*s 1.0.%.*s 2.0.%.*s !", H, H, H);          /* hints where there are none */
  input.hints = true;
  WRONG("0.0.%.*s 1.0.%.*s 2.0.%.*s !@100,32:0", H, H, H); /* hints on parts */
  WRONG("0.0.%.*s 1.0.%.*s 2.0.%.*s!", H, H, H);
  WRONG("0.0.%.*s 1.0.%.*s 2.0.%.*s !!", H, H, H);
  char high[160];
  snprintf(high, sizeof high, "0.0.%.*s^ 1.0.%.*s 2.0.%.*s", H, H, H);
  input.n_splits = 0; /* a split where none is allowed, and a priority where there are none */
  refuse(text, &input);
  input.priorities = false;
  refuse(high, &input);
  input.priorities = true;
  input.n_splits = 1;
  ((cs_candidate *)(uintptr_t)f.choices[1].choices[0].candidate)->merges = false;
  refuse(text, &input);
  free(text);
  fixture_free(&f);
}

static void a_split_must_fit_the_device(void **state) {
  (void)state;
  cs_plan plan = {.n_parts = 2, .parts = {100, 33}};
  assert_ok(cs_plan_check_split(&plan, 0)); /* not known */
  assert_ok(cs_plan_check_split(&plan, 133));
  assert_fails(cs_plan_check_split(&plan, 132), CS_CODE_BAD_INPUT,
               "2 parts of together 133 SMs, wanted at most the device's 132");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(merged_plans_are_right_and_mutants_judged),
      cmocka_unit_test(limits_keep_launches_whole),
      cmocka_unit_test(wrong_configurations_are_refused),
      cmocka_unit_test(a_split_must_fit_the_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
