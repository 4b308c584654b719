/* JSON lines: whole ones, one that was cut off, damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json_lines.h"

static char path[64];

static int make_file(void **state) {
  (void)state;
  strcpy(path, "/tmp/convsched-lines-XXXXXX");
  int fd = mkstemp(path);
  return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state) {
  (void)state;
  return unlink(path);
}

static cs_status read_text(const char *text, json_t *lines, size_t *whole, bool *torn) {
  assert_null(cs_file_replace(path, text, strlen(text)));
  return cs_json_lines_read(path, 1 << 20, lines, whole, torn);
}

static void test_whole_lines(void **state) {
  (void)state;
  const char *text = "{\"a\":1}\n\n  \n{\"b\":[2]}\r\n";
  json_t *lines = json_array();
  size_t whole = 0;
  bool torn = true;
  assert_null(read_text(text, lines, &whole, &torn));
  assert_int_equal(json_array_size(lines), 2);
  assert_non_null(json_object_get(json_array_get(lines, 1), "b"));
  assert_int_equal(whole, strlen(text));
  assert_false(torn);
  json_decref(lines);
}

/* Even where what is there of it could be read. */
static void test_a_line_that_was_cut_off(void **state) {
  (void)state;
  static const char *const ends[] = {"{\"b\":", "{\"b\":2}", "x"};
  for (size_t i = 0; i < 3; i++) {
    char text[64];
    json_t *lines = json_array();
    size_t whole = 0;
    bool torn = false;
    snprintf(text, sizeof text, "{\"a\":1}\n%s", ends[i]);
    assert_null(read_text(text, lines, &whole, &torn));
    assert_int_equal(json_array_size(lines), 1);
    assert_int_equal(whole, 8);
    assert_true(torn);
    json_decref(lines);
  }
}

static void test_damaged_lines(void **state) {
  (void)state;
  static const char *const texts[] = {"{\"a\":1}\n{\"b\":\n{}\n", "{}\n[1]\n",
                                      "{}\n{\"a\":1,\"a\":2}\n"};
  for (size_t i = 0; i < 3; i++) {
    char place[80];
    json_t *lines = json_array();
    size_t whole = 0;
    bool torn = false;
    cs_status st = read_text(texts[i], lines, &whole, &torn);
    assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
    snprintf(place, sizeof place, "%s:2: ", path);
    assert_non_null(strstr(cs_status_message(st), place));
    assert_false(torn);
    cs_status_free(st);
    json_decref(lines);
  }
}

static void test_no_file_and_an_empty_one(void **state) {
  (void)state;
  json_t *lines = json_array();
  size_t whole = 7;
  bool torn = true;
  assert_null(read_text("", lines, &whole, &torn));
  assert_int_equal(json_array_size(lines), 0);
  assert_int_equal(whole, 0);
  assert_false(torn);
  cs_status st = cs_json_lines_read("/tmp/convsched-no-such-file", 10, lines, &whole, &torn);
  assert_int_equal(cs_status_code(st), CS_CODE_IO);
  cs_status_free(st);
  json_decref(lines);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_whole_lines), cmocka_unit_test(test_a_line_that_was_cut_off),
      cmocka_unit_test(test_damaged_lines), cmocka_unit_test(test_no_file_and_an_empty_one)};
  return cmocka_run_group_tests_name("json_lines", tests, make_file, remove_file);
}
