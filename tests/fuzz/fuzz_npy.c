/* The .npy reader: a header that is read is written so that it reads the same; an array file. */
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "runtime/npy.h"
#include "runtime/params.h"

static void write_and_read_again(const cs_npy_header *header) {
  cs_strbuf text = {0};
  cs_npy_header again;
  cs_npy_format(&header->shape, &text);
  FUZZ_CHECK(!text.failed, "no memory");
  fuzz_want_ok(cs_npy_parse(text.data, text.length, &again), "reading what was written");
  FUZZ_CHECK(again.type == CS_NPY_F4 && again.data_offset == text.length &&
                 cs_shape_equal(&again.shape, &header->shape),
             "%.*s", (int)text.length - 10, text.data + 10);
  cs_strbuf_free(&text);
}

/* A name that ends in .npy is what makes the file one. */
static void read_array(const uint8_t *data, size_t size, const cs_shape *shape) {
  char path[64];
  float *array = NULL;
  fuzz_file contents = fuzz_file_of(data, size);
  snprintf(path, sizeof path, "/tmp/cs-fuzz-%ld.npy", (long)getpid());
  unlink(path);
  FUZZ_CHECK(symlink(contents.path, path) == 0, "%s", path);
  (void)fuzz_taken(cs_array_read(path, shape, &array), CS_CODE_BAD_INPUT);
  unlink(path);
  close(contents.fd);
  free(array);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  cs_npy_header header;
  /* A copy as long as it is: AddressSanitizer sees a byte read behind it. */
  char *copy = malloc(size ? size : 1);
  FUZZ_CHECK(copy, "no memory");
  if (size) memcpy(copy, data, size);
  if (fuzz_taken(cs_npy_parse(copy, size, &header), CS_CODE_BAD_INPUT)) {
    FUZZ_CHECK(header.data_offset <= size, "data at byte %zu of %zu", header.data_offset, size);
    write_and_read_again(&header);
    read_array(data, size, &header.shape);
  }
  free(copy);
  return 0;
}
