/* The safetensors reader and writer: what is read back, and every kind of malformed file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/safetensors.h"

static char path[64];

static int make_path(void **state) {
  (void)state;
  strcpy(path, "/tmp/cs_safetensors_XXXXXX");
  int fd = mkstemp(path);
  if (fd < 0) return -1;
  close(fd);
  return 0;
}

static int remove_path(void **state) {
  (void)state;
  unlink(path);
  return 0;
}

static void write_bytes(const void *data, size_t length) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, length, file), length);
  assert_int_equal(fclose(file), 0);
}

/* A file of a header, `declared` as its length, and `data_bytes` bytes 0, 1, 2, … */
static void write_file(const char *header, size_t header_bytes, uint64_t declared,
                       size_t data_bytes) {
  size_t total = 8 + header_bytes + data_bytes;
  unsigned char *bytes = calloc(1, total);
  assert_non_null(bytes);
  memcpy(bytes, &declared, sizeof declared);
  memcpy(bytes + 8, header, header_bytes);
  for (size_t i = 0; i < data_bytes; i++) bytes[8 + header_bytes + i] = (unsigned char)i;
  write_bytes(bytes, total);
  free(bytes);
}

static void write_text(const char *header, size_t data_bytes) {
  write_file(header, strlen(header), strlen(header), data_bytes);
}

/* Opening fails with BAD_INPUT; the message names the file and holds `expected`. */
static void assert_refused(const char *expected) {
  cs_safetensors *file = (cs_safetensors *)&path;
  cs_status st = cs_safetensors_open(path, &file);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  assert_null(file);
  if (!strstr(cs_status_message(st), expected) || !strstr(cs_status_message(st), path)) {
    fail_msg("\"%s\" does not name the file and \"%s\"", cs_status_message(st), expected);
  }
  cs_status_free(st);
}

static cs_safetensors *open_good(void) {
  cs_safetensors *file = NULL;
  cs_status st = cs_safetensors_open(path, &file);
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
  return file;
}

static void reads_three_float_types(void **state) {
  (void)state;
  /* 1.5, -2 in each type, bit patterns written out by hand; spaces behind the header. */
  const char *header =
      "{\"__metadata__\":{\"format\":\"pt\"},"
      "\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
      "\"h\":{\"dtype\":\"F16\",\"shape\":[1,2],\"data_offsets\":[8,12]},"
      "\"b\":{\"dtype\":\"BF16\",\"shape\":[2,1],\"data_offsets\":[12,16]},"
      "\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[16,24]}}   ";
  const unsigned char data[24] = {0x00, 0x00, 0xc0, 0x3f, 0x00, 0x00, 0x00, 0xc0,
                                  0x00, 0x3e, 0x00, 0xc0, 0xc0, 0x3f, 0x00, 0xc0};
  unsigned char bytes[512];
  uint64_t length = strlen(header);
  memcpy(bytes, &length, 8);
  memcpy(bytes + 8, header, length);
  memcpy(bytes + 8 + length, data, sizeof data);
  write_bytes(bytes, 8 + length + sizeof data);
  cs_safetensors *file = open_good();
  assert_int_equal(cs_safetensors_count(file), 4);
  assert_null(cs_safetensors_find(file, "absent"));
  const char *names[] = {"w", "h", "b"};
  for (int i = 0; i < 3; i++) {
    const cs_safetensor *tensor = cs_safetensors_find(file, names[i]);
    float values[2];
    assert_non_null(tensor);
    assert_int_equal(tensor->elements, 2);
    assert_true(cs_safetensors_read_f32(file, tensor, values) == CS_OK);
    assert_true(values[0] == 1.5f && values[1] == -2.0f);
  }
  assert_int_equal(cs_safetensors_find(file, "h")->shape.rank, 2);
  const cs_safetensor *scalar = cs_safetensors_find(file, "n");
  assert_int_equal(scalar->shape.rank, 0);
  assert_int_equal(scalar->elements, 1);
  float unused;
  cs_status st = cs_safetensors_read_f32(file, scalar, &unused);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  assert_non_null(strstr(cs_status_message(st), "\"n\""));
  assert_non_null(strstr(cs_status_message(st), "I64"));
  cs_status_free(st);
  cs_safetensors_close(file);
}

static void writes_what_it_reads(void **state) {
  (void)state;
  const float data[] = {0.0f, -1.0f, 0.333251953125f, 65504.0f, 6e-8f, INFINITY};
  const cs_shape shape = {2, {2, 3}}, scalar = {0, {0}}, empty = {1, {0}};
  const cs_safetensors_item items[] = {
      {"layer.0/\"quoted\"", &shape, data}, {"s", &scalar, data + 2}, {"none", &empty, data}};
  const cs_dtype dtypes[] = {CS_DTYPE_F32, CS_DTYPE_F16, CS_DTYPE_BF16};
  for (int d = 0; d < 3; d++) {
    assert_true(cs_safetensors_write(path, dtypes[d], items, 3, NULL, NULL) == CS_OK);
    cs_safetensors *file = open_good();
    assert_int_equal(cs_safetensors_count(file), 3);
    const cs_safetensor *tensor = cs_safetensors_find(file, items[0].name);
    float back[6];
    assert_non_null(tensor);
    assert_true(cs_shape_equal(&tensor->shape, &shape));
    assert_true(cs_safetensors_read_f32(file, tensor, back) == CS_OK);
    for (int i = 0; i < 6; i++) {
      float wanted = dtypes[d] == CS_DTYPE_F32   ? data[i]
                     : dtypes[d] == CS_DTYPE_F16 ? cs_f16_to_f32(cs_f32_to_f16(data[i]))
                                                 : cs_bf16_to_f32(cs_f32_to_bf16(data[i]));
      assert_memory_equal(&back[i], &wanted, sizeof wanted);
    }
    assert_int_equal(cs_safetensors_find(file, "none")->elements, 0);
    cs_safetensors_close(file);
  }
}

static void refuses_to_write_a_name_twice(void **state) {
  (void)state;
  const float data[] = {1.0f};
  const cs_shape shape = {1, {1}};
  const cs_safetensors_item items[] = {{"a", &shape, data}, {"a", &shape, data}};
  cs_status st = cs_safetensors_write(path, CS_DTYPE_F32, items, 2, NULL, NULL);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  assert_non_null(strstr(cs_status_message(st), "\"a\""));
  cs_status_free(st);
  const cs_safetensors_item latin = {"\xe9", &shape, data};
  st = cs_safetensors_write(path, CS_DTYPE_F32, &latin, 1, NULL, NULL);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  cs_status_free(st);
}

static void a_missing_folder_is_an_io_error(void **state) {
  (void)state;
  const float data[] = {1.0f};
  const cs_shape shape = {1, {1}};
  const cs_safetensors_item item = {"a", &shape, data};
  cs_status st = cs_safetensors_write("/nonexistent/folder/a", CS_DTYPE_F32, &item, 1, NULL, NULL);
  assert_int_equal(cs_status_code(st), CS_CODE_IO);
  cs_status_free(st);
}

static void refuses_bad_framing(void **state) {
  (void)state;
  write_bytes("", 0);
  assert_refused("0 bytes");
  write_bytes("\x02\0\0\0", 4);
  assert_refused("4 bytes");
  write_file("{}", 2, 3, 0);
  assert_refused("cut off");
  write_file("{}", 2, UINT64_MAX, 0);
  assert_refused("header of 18446744073709551615 bytes");
  write_file("{}", 2, 100000001, 0);
  assert_refused("at most 100000000");
  write_file("", 0, 0, 0);
  assert_refused("begin with '{'");
  write_text(" {}", 0);
  assert_refused("begin with '{'");
  write_text("{\"a\":", 0);
  assert_refused("header, byte");
  write_text("{\"\xff\":1}", 0);
  assert_refused("header, byte");
  write_text("{} x", 0);
  assert_refused("header, byte");
}

static void refuses_deep_nesting(void **state) {
  (void)state;
  enum { DEPTH = 100000 };
  static char header[DEPTH + 5];
  memcpy(header, "{\"a\":", 5);
  memset(header + 5, '[', DEPTH);
  write_file(header, DEPTH + 5, DEPTH + 5, 0);
  assert_refused("header, byte");
}

typedef struct bad_header {
  const char *entry; /* of tensor "a" */
  size_t data_bytes;
  const char *expected;
} bad_header;

static void refuses_bad_entries(void **state) {
  (void)state;
  static const bad_header cases[] = {
      {"3", 0, "not an object"},
      {"{\"dtype\":\"F32\",\"shape\":[1]}", 4, "data_offsets"},
      {"{\"dtype\":\"F32\",\"data_offsets\":[0,4]}", 4, "shape"},
      {"{\"shape\":[1],\"data_offsets\":[0,4]}", 4, "unknown dtype"},
      {"{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}", 4, "F33"},
      {"{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}", 4, "unknown dtype"},
      {"{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}", 4, "shape"},
      {"{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}", 4, "shape[0]"},
      {"{\"dtype\":\"F32\",\"shape\":[1,1.5],\"data_offsets\":[0,4]}", 4, "shape[1]"},
      {"{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}", 4, "rank 9"},
      {"{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}", 4,
       "element count overflows"},
      {"{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}", 0,
       "byte count overflows"},
      {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}", 4, "data_offsets"},
      {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}", 4, "data_offsets"},
      {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}", 4, "data_offsets"},
      {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}", 4, "past the end"},
      {"{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}", 4, "wanted 8"},
      {"{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,4]}", 4, "wanted 2"},
      {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}", 8, "hole"},
      {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}", 5, "1 bytes behind"},
      {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"extra\":0}", 4, "extra"},
      {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,99999999999999999999]}", 4, "header"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char header[256];
    snprintf(header, sizeof header, "{\"a\":%s}", cases[i].entry);
    write_text(header, cases[i].data_bytes);
    assert_refused(cases[i].expected);
  }
}

static void refuses_overlaps_holes_and_duplicates(void **state) {
  (void)state;
#define ENTRY(name, range) \
  "\"" name "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" range "}"
  write_text("{" ENTRY("a", "[0,8]") "," ENTRY("b", "[4,12]") "}", 12);
  assert_refused("tensor \"b\": data begins at byte 4, wanted 8 (it overlaps");
  write_text("{" ENTRY("b", "[0,8]") "," ENTRY("a", "[0,8]") "}", 8);
  assert_refused("it overlaps");
  write_text("{" ENTRY("b", "[12,20]") "," ENTRY("a", "[0,8]") "}", 20);
  assert_refused("tensor \"b\": data begins at byte 12, wanted 8 (a hole)");
  write_text("{" ENTRY("a", "[0,8]") "," ENTRY("a", "[8,16]") "}", 16);
  assert_refused("\"a\"");
  write_text("{\"__metadata__\":[]}", 0);
  assert_refused("__metadata__");
  write_text("{\"__metadata__\":{\"k\":1}}", 0);
  assert_refused("\"k\"");
  /* Any order of names is fine as long as the ranges tile the data. */
  write_text("{" ENTRY("b", "[8,16]") "," ENTRY("a", "[0,8]") "}", 16);
  cs_safetensors *file = open_good();
  assert_int_equal(cs_safetensors_find(file, "b")->begin, 8);
  cs_safetensors_close(file);
#undef ENTRY
}

static void missing_and_special_files(void **state) {
  (void)state;
  cs_safetensors *file;
  cs_status st = cs_safetensors_open("/nonexistent.safetensors", &file);
  assert_int_equal(cs_status_code(st), CS_CODE_IO);
  cs_status_free(st);
  st = cs_safetensors_open("/tmp", &file);
  assert_int_equal(cs_status_code(st), CS_CODE_IO);
  cs_status_free(st);
  unlink(path);
  assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes: opening it could wait for ever */
  alarm(20);
  st = cs_safetensors_open(path, &file);
  alarm(0);
  assert_int_equal(cs_status_code(st), CS_CODE_IO);
  assert_non_null(strstr(cs_status_message(st), "not a regular file"));
  cs_status_free(st);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_three_float_types),
      cmocka_unit_test(writes_what_it_reads),
      cmocka_unit_test(refuses_to_write_a_name_twice),
      cmocka_unit_test(a_missing_folder_is_an_io_error),
      cmocka_unit_test(refuses_bad_framing),
      cmocka_unit_test(refuses_deep_nesting),
      cmocka_unit_test(refuses_bad_entries),
      cmocka_unit_test(refuses_overlaps_holes_and_duplicates),
      cmocka_unit_test(missing_and_special_files),
  };
  return cmocka_run_group_tests(tests, make_path, remove_path);
}
