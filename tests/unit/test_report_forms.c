/* The forms of a table, and names shortened for a person. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* clang-format off: cmocka wants its headers first */
#include <cmocka.h>
/* clang-format on */

#include "report/report.h"

static const cs_table_column columns[] = {
    {"name", "name", CS_COLUMN_TEXT, CS_COLUMN_ALL, true},
    {"us", "time us", 1, CS_COLUMN_ALL, false},
    {"short", "short", CS_COLUMN_TEXT, CS_COLUMN_PERSON, false},
    {"bytes", "bytes", 0, CS_COLUMN_DATA, false},
};

static void set_up_table(cs_table *table) {
  cs_table_init(table, columns, 4);
  cs_table_title(table, "a *title*");
  cs_table_row(table, false);
  cs_table_text(table, 0, "é|\"x\", y");
  cs_table_number(table, 1, 12.25);
  cs_table_text(table, 2, "s");
  cs_table_number(table, 3, 1024);
  cs_table_row(table, true);
  cs_table_text(table, 0, "again");
  cs_table_note(table, "a note");
}

static void assert_form(cs_status (*form)(const cs_table *, char **), const char *wanted) {
  cs_table table;
  char *text = NULL;
  set_up_table(&table);
  assert_true(form(&table, &text) == CS_OK);
  assert_string_equal(text, wanted);
  free(text);
  cs_table_free(&table);
}

static void test_text(void **state) {
  (void)state;
  assert_form(cs_table_to_text,
              "a *title*\n\n"
              "name      time us  short\n"
              "é|\"x\", y     12.2  s\n"
              "                –  –\n"
              "\na note\n");
}

static void test_markdown(void **state) {
  (void)state;
  assert_form(cs_table_to_markdown,
              "a \\*title\\*\n\n"
              "| name | time us | short |\n"
              "|---|--:|---|\n"
              "| é\\|\"x\", y | 12.2 | s |\n"
              "|  | – | – |\n"
              "\na note\n");
}

static void test_csv(void **state) {
  (void)state;
  assert_form(cs_table_to_csv, "name,us,bytes\r\n\"é|\"\"x\"\", y\",12.25,1024\r\nagain,,\r\n");
}

static void test_json(void **state) {
  (void)state;
  cs_table table;
  char *text = NULL;
  set_up_table(&table);
  assert_true(cs_table_to_json(&table, &text) == CS_OK);
  json_t *json = json_loads(text, 0, NULL);
  assert_non_null(json);
  json_t *rows = json_object_get(json, "rows");
  assert_int_equal(json_array_size(rows), 2);
  json_t *first = json_array_get(rows, 0);
  assert_int_equal(json_integer_value(json_object_get(first, "bytes")), 1024);
  assert_null(json_object_get(first, "short"));
  assert_true(json_is_null(json_object_get(json_array_get(rows, 1), "us")));
  json_decref(json);
  free(text);
  cs_table_free(&table);
}

static void test_kernel_names(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"void cudnn::ops::nchwToNhwc<float, float, true>(int)", "nchwToNhwc"},
      {"_ZN5cudnn3gen11gemm_kernelEv", "gemm"},
      {"_Z15fft2d_r2c_32x32fi", "fft2d_r2c_32x32"},
      {"void cutlass::Kernel<cutlass_80_simt_sgemm_128x64, 1>(int)",
       "cutlass_80_simt_sgemm_128x64"},
      {"relu_kernel", "relu"},
      {"sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64",
       "sm90_xmma_fprop_implicit_gemm_f16f…ize128x128x64"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char name[64];
    cs_report_kernel_name(cases[i][0], name);
    assert_string_equal(name, cases[i][1]);
  }
}

static void test_algorithms_of_candidates(void **state) {
  (void)state;
  static const struct {
    const char *id, *family, *wanted;
    cs_algorithm_kind kind;
  } cases[] = {
      {"cudnn.legacy:FFT/fma", "cudnn.legacy", "FFT", CS_ALGORITHM_LEGACY},
      {"cudnn.graph:eng10{2=5}", "cudnn.graph", "eng10", CS_ALGORITHM_ENGINE},
      {"onednn:jit:avx2/t2", "onednn", "jit:avx2", CS_ALGORITHM_OTHER},
      {"cublaslt.v130100:algo66/20/36/1/0/0/3/0/2", "cublaslt", "algo66", CS_ALGORITHM_OTHER},
      {"cuda.conv.v1", "cuda.conv", "cuda.conv.v1", CS_ALGORITHM_OTHER},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cs_candidate candidate = {.id = (char *)(uintptr_t)cases[i].id,
                              .family = (char *)(uintptr_t)cases[i].family};
    char name[64];
    assert_int_equal(cs_report_algorithm(&candidate, name), cases[i].kind);
    assert_string_equal(name, cases[i].wanted);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_text),         cmocka_unit_test(test_markdown),
      cmocka_unit_test(test_csv),          cmocka_unit_test(test_json),
      cmocka_unit_test(test_kernel_names), cmocka_unit_test(test_algorithms_of_candidates),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
