/* .npy and raw arrays: what NumPy wrote is read, what is written NumPy's rules hold for, and
 * malformed files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "runtime/params.h"

static char folder[64], npy[96], raw[96];

static int make_folder(void **state) {
  (void)state;
  strcpy(folder, "/tmp/cs_npy_XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(npy, sizeof npy, "%s/a.npy", folder);
  snprintf(raw, sizeof raw, "%s/a.bin", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  unlink(npy);
  unlink(raw);
  return rmdir(folder);
}

static void put(const char *path, const void *data, size_t length) {
  assert_true(cs_file_replace(path, data, length) == CS_OK);
}

/* A .npy of a version, a header text (padded with a newline) and data. */
static void put_npy(int major, const char *header, const void *data, size_t data_bytes) {
  unsigned char bytes[1024] = "\x93NUMPY";
  size_t length = strlen(header) + 1, field = major == 1 ? 2 : 4, at = 8;
  bytes[6] = (unsigned char)major;
  for (size_t i = 0; i < field; i++) bytes[at++] = (unsigned char)(length >> (8 * i));
  memcpy(bytes + at, header, length - 1);
  at += length - 1;
  bytes[at++] = '\n';
  if (data_bytes) memcpy(bytes + at, data, data_bytes);
  put(npy, bytes, at + data_bytes);
}

static void assert_reads(const char *path, const cs_shape *shape, const float *wanted, int count) {
  float *found = NULL;
  cs_status st = cs_array_read(path, shape, &found);
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
  assert_memory_equal(found, wanted, (size_t)count * sizeof *wanted);
  free(found);
}

static void assert_refused(const char *path, const cs_shape *shape, const char *expected) {
  float *found = (float *)folder;
  cs_status st = cs_array_read(path, shape, &found);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  assert_null(found);
  if (!strstr(cs_status_message(st), expected) || !strstr(cs_status_message(st), path)) {
    fail_msg("\"%s\" does not name the file and \"%s\"", cs_status_message(st), expected);
  }
  cs_status_free(st);
}

static const cs_shape pair_shape = {2, {1, 2}};

static void reads_types_and_versions(void **state) {
  (void)state;
  const float wanted[] = {1.5f, 200.0f};
  const double wide[] = {1.5, 200.0};
  const uint16_t half[] = {0x3e00, 0x5a40};
  const unsigned char bytes[] = {1, 200};
  const float from_bytes[] = {1.0f, 200.0f};
  put_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }", wanted, 8);
  assert_reads(npy, &pair_shape, wanted, 2);
  put_npy(2, "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }", wide, 16);
  assert_reads(npy, &pair_shape, wanted, 2);
  put_npy(3, "{\"shape\":(1,2),\"fortran_order\":False,\"descr\":\"<f2\"}", half, 4);
  assert_reads(npy, &pair_shape, wanted, 2);
  put_npy(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2), }", bytes, 2);
  assert_reads(npy, &pair_shape, from_bytes, 2);
}

static void reads_what_numpy_wrote(void **state) {
  (void)state;
  const cs_shape shape = {4, {2, 3, 8, 7}};
  float *found = NULL;
  cs_status st = cs_array_read(CS_SOURCE_DIR "/tests/data/goldens/pools/input.npy", &shape, &found);
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
  /* The generator's own values: the file holds the input of seed 0. */
  float *wanted = calloc(336, sizeof *wanted);
  cs_input_generate("input", 0, wanted, 336);
  for (int i = 0; i < 336; i++) assert_float_equal(found[i], wanted[i], 1e-6);
  free(wanted);
  free(found);
}

static void writes_aligned_version_1(void **state) {
  (void)state;
  const float data[] = {1.0f, -2.0f, 3.5f};
  const cs_shape vector = {1, {3}}, matrix = {2, {3, 1}};
  char *bytes;
  size_t length;
  assert_true(cs_array_write(npy, &vector, data) == CS_OK);
  assert_reads(npy, &vector, data, 3);
  assert_true(cs_file_read(npy, 4096, &bytes, &length) == CS_OK);
  assert_memory_equal(bytes, "\x93NUMPY\x01\x00", 8);
  assert_int_equal(length, 128 + 12);
  assert_int_equal((unsigned char)bytes[8] + 256 * (unsigned char)bytes[9], 128 - 10);
  assert_int_equal(bytes[127], '\n');
  assert_non_null(strstr(bytes + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"));
  free(bytes);
  assert_true(cs_array_write(npy, &matrix, data) == CS_OK);
  assert_reads(npy, &matrix, data, 3);
  assert_true(cs_array_write(raw, &matrix, data) == CS_OK);
  assert_reads(raw, &matrix, data, 3);
  assert_true(cs_file_read(raw, 4096, &bytes, &length) == CS_OK);
  assert_int_equal(length, 12);
  assert_memory_equal(bytes, data, 12);
  free(bytes);
}

static void refuses_wrong_sizes(void **state) {
  (void)state;
  const float data[] = {1.0f, 2.0f, 3.0f};
  put(raw, data, 4);
  assert_refused(raw, &pair_shape, "4 bytes of data, wanted 8");
  put(raw, data, 12);
  assert_refused(raw, &pair_shape, "12 bytes of data, wanted 8");
  put(raw, "", 0);
  assert_refused(raw, &pair_shape, "0 bytes of data");
  put_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }", data, 4);
  assert_refused(npy, &pair_shape, "4 bytes of data, wanted 8");
  put_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }", data, 12);
  assert_refused(npy, &pair_shape, "12 bytes of data, wanted 8");
  put_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }", data, 8);
  assert_refused(npy, &pair_shape, "shape [2, 1], wanted [1, 2]");
  put_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", data, 8);
  assert_refused(npy, &pair_shape, "shape [2], wanted [1, 2]");
}

static void refuses_malformed_headers(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"{'descr': '<i4', 'fortran_order': False, 'shape': (1, 2), }", "<i4"},
      {"{'descr': '>f4', 'fortran_order': False, 'shape': (1, 2), }", ">f4"},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }", "Fortran"},
      {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1, 2), }", "malformed"},
      {"{'descr': '<f4', 'shape': (1, 2), }", "malformed"},
      {"{'fortran_order': False, 'shape': (1, 2), }", "malformed"},
      {"{'descr': '<f4', 'fortran_order': False}", "malformed"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), 'x': 1}", "'x'"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, -2), }", "malformed"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2", "malformed"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 99999999999999999999), }",
       "malformed"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,2), }", "malformed"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1, 2), }", "malformed"},
      {"{'descr", "malformed"},
      {"", "malformed"}};
  const float data[] = {1.0f, 2.0f};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    put_npy(1, cases[i][0], data, sizeof data);
    assert_refused(npy, &pair_shape, cases[i][1]);
  }
  put(npy, "\x93NUMPZ\x01\x00", 8);
  assert_refused(npy, &pair_shape, "not a .npy");
  put(npy, "", 0);
  assert_refused(npy, &pair_shape, "not a .npy");
  put(npy, "\x93NUMPY\x04\x00\x00\x00\x00\x00", 12);
  assert_refused(npy, &pair_shape, "version 4");
  put(npy, "\x93NUMPY\x01\x00\xff\xff{}", 12);
  assert_refused(npy, &pair_shape, "cut off");
  put(npy, "\x93NUMPY\x02\x00\xff", 9);
  assert_refused(npy, &pair_shape, "cut off");
}

static void refuses_missing_and_huge(void **state) {
  (void)state;
  float *found;
  const float data[] = {1.0f};
  const cs_shape huge = {2, {INT64_MAX / 4, 2}};
  cs_status st = cs_array_read("/nonexistent.npy", &pair_shape, &found);
  assert_int_equal(cs_status_code(st), CS_CODE_IO);
  cs_status_free(st);
  put(raw, data, 4);
  assert_refused(raw, &huge, "overflow");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_types_and_versions),  cmocka_unit_test(reads_what_numpy_wrote),
      cmocka_unit_test(writes_aligned_version_1),  cmocka_unit_test(refuses_wrong_sizes),
      cmocka_unit_test(refuses_malformed_headers), cmocka_unit_test(refuses_missing_and_huge),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
