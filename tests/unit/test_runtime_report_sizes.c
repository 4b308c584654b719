/* Options of reports and pages that their init functions did not make are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "convsched/convsched.h"

static void refused(cs_status st, const char *what, size_t found, size_t session) {
  char wanted[96];
  snprintf(wanted, sizeof wanted, "%s: struct_size %zu and %zu, wanted", what, found, session);
  assert_int_equal(cs_status_code(st), CS_CODE_USAGE);
  assert_non_null(strstr(cs_status_message(st), wanted));
  cs_status_free(st);
}

static void test_sizes(void **state) {
  (void)state;
  cs_session_options session;
  cs_report_options report;
  cs_page_options page;
  cs_report *made = NULL;
  cs_page *page_made = NULL;
  cs_session_options_init(&session);
  cs_report_options_init(&report);
  cs_page_options_init(&page);
  for (int is_session = 0; is_session < 2; is_session++) {
    session.struct_size = sizeof session - (is_session ? 1 : 0);
    report.struct_size = sizeof report - (is_session ? 0 : 1);
    page.struct_size = is_session ? sizeof page : 0;
    refused(cs_report_create(NULL, NULL, &session, &report, &made), "report", report.struct_size,
            session.struct_size);
    refused(cs_page_create(NULL, NULL, &session, &page, &page_made), "page", page.struct_size,
            session.struct_size);
    assert_true(!made && !page_made);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
