/* Sessions after an update of a library whose version is in candidates' ids alone: a CPU device
 * whose convolutions are told to be of such a library. */
#define DEVICE_SPEC "cpu"
#include "base/file.h"
#include "session_fixture.h"

#define PREFIX "lib.v0:" /* of which the digit is the version */

static struct {
  const cs_backend_vtable *real;
  cs_backend_vtable vtable;
  char version; /* installed */
  int warnings, infos;
  char last[1024];
} library;

static bool is_of_library(const char *id) {
  return strncmp(id, PREFIX, 5) == 0;
}

static cs_presence library_presence(cs_backend *backend, const char *candidate) {
  (void)backend;
  if (!is_of_library(candidate)) return CS_PRESENCE_UNTOLD;
  return candidate[5] == library.version ? CS_PRESENCE_THERE : CS_PRESENCE_OTHER_VERSION;
}

/* The CPU's convolutions, by other names. */
static cs_status library_enumerate(cs_backend *backend, const cs_op_desc *desc,
                                   const cs_enumerate_options *options, cs_candidate_list *out) {
  size_t n = out->n;
  CS_RETURN_IF_ERROR(library.real->enumerate(backend, desc, options, out));
  for (size_t i = n; desc->op == CS_OP_CONV && i < out->n; i++) {
    cs_strbuf text = {0};
    char *id = NULL;
    cs_strbuf_printf(&text, PREFIX "%s", out->items[i].id);
    CS_RETURN_IF_ERROR(cs_strbuf_take(&text, &id));
    id[5] = library.version;
    free(out->items[i].id);
    out->items[i].id = id;
  }
  return CS_OK;
}

static cs_status library_prepare(cs_backend *backend, const cs_op_desc *desc,
                                 const cs_candidate *candidate, cs_exec **out) {
  cs_candidate real = *candidate;
  *out = NULL;
  if (is_of_library(candidate->id)) {
    if (candidate->id[5] != library.version) {
      return cs_error(CS_CODE_BAD_INPUT, "'%s' is of another version", candidate->id);
    }
    real.id += strlen(PREFIX);
  }
  return library.real->prepare(backend, desc, &real, out);
}

static void note(void *user, cs_log_level level, const char *message) {
  (void)user;
  library.warnings += level == CS_LOG_WARNING;
  library.infos += level == CS_LOG_INFO;
  if (level == CS_LOG_WARNING || level == CS_LOG_INFO) {
    snprintf(library.last, sizeof library.last, "%s", message);
  }
}

/* Opens the device anew, as another process does. */
static void install(char version) {
  cs_device_close(test_device);
  assert_ok(cs_device_open(DEVICE_SPEC, NULL, &test_device));
  test_device->logger = (cs_logger){note, NULL};
  library.real = test_device->backend->vtable;
  library.vtable = *library.real;
  library.vtable.presence = library_presence;
  library.vtable.enumerate = library_enumerate;
  library.vtable.prepare = library_prepare;
  test_device->backend->vtable = &library.vtable;
  library.version = version;
  library.warnings = library.infos = 0;
}

/* How many candidates of the plan are of the library; all of that version. */
static int count_of(const cs_session *session, char version) {
  const cs_plan *plan = session->planned.plan;
  int n = 0;
  for (int p = 0; p < plan->n_tasks; p++) {
    const char *id = plan->tasks[p].candidate.id;
    if (!is_of_library(id)) continue;
    assert_int_equal(id[5], version);
    n++;
  }
  return n;
}

static void write_plan(const cs_session *session, char *path, size_t size) {
  char *text = NULL;
  snprintf(path, size, "%s/plan.json", cache_folder);
  assert_ok(cs_session_plan_json(session, &text));
  assert_ok(cs_file_replace(path, text, strlen(text)));
  cs_string_free(text);
}

static cs_status create(const char *policy, const char *plan, bool frozen, cs_session **out) {
  cs_session_options options = default_options(policy);
  options.plan_path = plan;
  options.deterministic = !plan;
  options.frozen = frozen;
  return cs_session_create(test_device, test_graph, &options, out);
}

static void test_an_update_of_a_library(void **state) {
  (void)state;
  cs_session *session = NULL;
  char path[128];
  install('1');
  assert_ok(create("streams", NULL, false, &session));
  int n = count_of(session, '1');
  assert_true(n > 0);
  assert_int_equal(library.warnings + library.infos, 0);
  write_plan(session, path, sizeof path);
  cs_session_destroy(session);

  /* Nothing may be measured: there is no convolution left, and that is said. */
  install('2');
  assert_status(create("streams", NULL, true, &session), CS_CODE_NOT_FOUND,
                "of libraries' versions that are not installed");
  install('2');
  assert_status(create("streams", path, true, &session), CS_CODE_NOT_FOUND,
                "it is of a version of its library that is not installed");

  install('2');
  assert_ok(create("streams", path, false, &session));
  assert_int_equal(count_of(session, '2'), n);
  assert_int_equal(library.warnings, 1); /* the plan's file */
  assert_int_equal(library.infos, 1);
  if (!strstr(library.last, "was recorded with another version")) fail_msg("%s", library.last);
  assert_true(session->planned.measured.operations > session->planned.measured.operations_cached);
  assert_verified(session, CS_VERIFY_SAMPLE);
  cs_session_destroy(session);

  /* All is measured now; and who has the first version lost nothing. */
  for (const char *v = "12"; *v; v++) {
    char version = *v;
    install(version);
    assert_ok(create("streams", NULL, true, &session));
    assert_int_equal(count_of(session, version), n);
    assert_int_equal(library.warnings, 0);
    assert_int_equal(library.infos, 1);
    cs_session_destroy(session);
  }
}

static void test_a_pin_of_another_version(void **state) {
  (void)state;
  cs_session *session = NULL;
  char pin[256] = "";
  install('3');
  assert_ok(create("sequential", NULL, false, &session));
  const cs_plan *plan = session->planned.plan;
  for (int p = 0; p < plan->n_tasks; p++) {
    const char *id = plan->tasks[p].candidate.id;
    if (!is_of_library(id)) continue;
    snprintf(pin, sizeof pin, "%s=%s", session->planned.program->tasks[plan->tasks[p].task].name,
             id);
  }
  cs_session_destroy(session);
  install('4');
  const char *pins[] = {pin};
  cs_session_options options = default_options("sequential");
  options.pins = pins;
  options.n_pins = 1;
  assert_status(cs_session_create(test_device, test_graph, &options, &session), CS_CODE_BAD_INPUT,
                "of a version of its library that is not installed");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_an_update_of_a_library),
                                     cmocka_unit_test(test_a_pin_of_another_version)};
  return cmocka_run_group_tests(tests, open_all, close_all);
}
