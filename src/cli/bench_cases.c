/* What bench measures: sizes of matrices, layers. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/bench.h"

#define MOST_EXTENT (INT64_C(1) << 24)
#define DEFAULT_BATCH 16

const char *bench_kind_name(bench_kind kind) {
  static const char *const names[BENCH_KINDS] = {"gemm", "convtranspose"};
  return names[kind];
}

/* The transposed convolutions of DCGAN's generator of 64 × 64 pixels
 * (models/dcgan_generator.json). */
static const char *const dcgan[] = {"100x1x1:512:k4s1p0", "512x4x4:256:k4s2p1",
                                    "256x8x8:128:k4s2p1", "128x16x16:64:k4s2p1",
                                    "64x32x32:3:k4s2p1"};
#define N_DCGAN ((int)(sizeof dcgan / sizeof *dcgan))

/* ---- Reading ---- */

/* A whole number from `least` to 2^24 at *at, which is moved behind it. */
static bool read_extent(const char **at, int64_t least, int64_t *out) {
  char *end;
  errno = 0;
  if (**at < '0' || **at > '9') return false;
  *out = strtoll(*at, &end, 10);
  if (errno || *out < least || *out > MOST_EXTENT) return false;
  *at = end;
  return true;
}

static bool read_char(const char **at, char wanted) {
  if (**at != wanted) return false;
  ++*at;
  return true;
}

/* A case twice would count twice in the sums. */
static cs_status check_news(const bench_cases *cases, const bench_case *one) {
  char batch[48] = "";
  for (int c = 0; c < cases->n; c++) {
    const bench_case *there = &cases->items[c];
    if (there->batch != one->batch || strcmp(there->name, one->name) != 0) continue;
    if (one->batch > 0) snprintf(batch, sizeof batch, " of batch %" PRId64, one->batch);
    return cli_error(CS_CODE_USAGE, "bench %s: %s%s is given twice", bench_kind_name(one->kind),
                     one->name, batch);
  }
  return CS_OK;
}

static cs_status add_case(bench_cases *cases, const bench_case *one) {
  CS_RETURN_IF_ERROR(check_news(cases, one));
  if (cases->n == BENCH_MOST_CASES)
    return cli_error(CS_CODE_USAGE, "bench: more than %d cases", BENCH_MOST_CASES);
  cases->items[cases->n++] = *one;
  return CS_OK;
}

static cs_status add_product(bench_cases *cases, int64_t rows, int64_t features, int64_t inputs) {
  bench_case one = {.kind = BENCH_GEMM, .rows = rows, .features = features, .inputs = inputs};
  one.at = round(cbrt((double)rows * (double)features * (double)inputs));
  if (rows == features && rows == inputs) {
    snprintf(one.name, sizeof one.name, "%" PRId64, rows);
  } else {
    snprintf(one.name, sizeof one.name, "%" PRId64 "x%" PRId64 "x%" PRId64, rows, features, inputs);
  }
  return add_case(cases, &one);
}

/* "N", "A..B" or "MxNxK". */
static cs_status add_size(bench_cases *cases, const char *text) {
  const char *at = text;
  int64_t a, b, c;
  bool good = read_extent(&at, 1, &a);
  if (good && !*at) return add_product(cases, a, a, a);
  if (good && strncmp(at, "..", 2) == 0) {
    at += 2;
    if (read_extent(&at, a, &b) && !*at) {
      for (int64_t n = a; n <= b; n *= 2) CS_RETURN_IF_ERROR(add_product(cases, n, n, n));
      return CS_OK;
    }
  } else if (good && read_char(&at, 'x') && read_extent(&at, 1, &b) && read_char(&at, 'x') &&
             read_extent(&at, 1, &c) && !*at) {
    return add_product(cases, a, b, c);
  }
  return cli_error(CS_CODE_USAGE,
                   "bench gemm: --sizes: found \"%s\", wanted extents of 1 to %" PRId64
                   ", as 64..4096, 1000 or 128x512x64",
                   text, MOST_EXTENT);
}

/* "CxHxW:K:kNsNpN" */
static bool read_layer(const char *text, bench_case *out) {
  const char *at = text;
  bool good = read_extent(&at, 1, &out->channels) && read_char(&at, 'x') &&
              read_extent(&at, 1, &out->height) && read_char(&at, 'x') &&
              read_extent(&at, 1, &out->width) && read_char(&at, ':') &&
              read_extent(&at, 1, &out->filters) && read_char(&at, ':') && read_char(&at, 'k') &&
              read_extent(&at, 1, &out->kernel) && read_char(&at, 's') &&
              read_extent(&at, 1, &out->stride) && read_char(&at, 'p') &&
              read_extent(&at, 0, &out->pad) && !*at;
  return good && (out->height - 1) * out->stride + out->kernel > 2 * out->pad &&
         (out->width - 1) * out->stride + out->kernel > 2 * out->pad;
}

/* `name` NULL: its spec. */
static cs_status add_layer_of(bench_cases *cases, const char *name, const char *spec) {
  bench_case one = {.kind = BENCH_TRANSPOSED};
  if (!read_layer(spec, &one)) {
    return cli_error(CS_CODE_USAGE,
                     "bench convtranspose: --layers: found \"%s\", wanted dcgan, dcgan.0 to "
                     "dcgan.%d, or CxHxW:K:kNsNpN with an output, as 64x32x32:3:k4s2p1",
                     spec, N_DCGAN - 1);
  }
  if (name) {
    snprintf(one.name, sizeof one.name, "%s", name);
  } else { /* as numbers are written: 08 is 8 */
    snprintf(one.name, sizeof one.name,
             "%" PRId64 "x%" PRId64 "x%" PRId64 ":%" PRId64 ":k%" PRId64 "s%" PRId64 "p%" PRId64,
             one.channels, one.height, one.width, one.filters, one.kernel, one.stride, one.pad);
  }
  return add_case(cases, &one);
}

static cs_status add_layer(bench_cases *cases, const char *text) {
  bool all = strcmp(text, "dcgan") == 0;
  for (int i = 0; i < N_DCGAN; i++) {
    char name[32];
    snprintf(name, sizeof name, "dcgan.%d", i);
    if (!all && strcmp(text, name) != 0) continue;
    CS_RETURN_IF_ERROR(add_layer_of(cases, name, dcgan[i]));
    if (!all) return CS_OK;
  }
  return all ? CS_OK : add_layer_of(cases, NULL, text);
}

/* `add` for what stands between commas. */
static cs_status each_part(const char *text, bench_cases *cases,
                           cs_status (*add)(bench_cases *, const char *)) {
  cs_status st = CS_OK;
  while (st == CS_OK) {
    char part[128];
    size_t length = strcspn(text, ",");
    if (length >= sizeof part)
      return cli_error(CS_CODE_USAGE, "bench: found \"%.24s…\", wanted at most %zu bytes", text,
                       sizeof part - 1);
    snprintf(part, sizeof part, "%.*s", (int)length, text);
    st = add(cases, part);
    if (!text[length]) break;
    text += length + 1;
  }
  return st;
}

/* Every layer at every batch. */
static cs_status add_batches(const cli_options *options, bench_cases *cases) {
  bench_cases layers = *cases;
  cases->n = 0;
  for (int b = 0; b < options->n_batches; b++) {
    int64_t batch = options->batch_given ? options->batches[b] : DEFAULT_BATCH;
    if (batch > MOST_EXTENT)
      return cli_error(CS_CODE_USAGE, "bench: --batch: found %" PRId64 ", wanted 1 to %" PRId64,
                       batch, MOST_EXTENT);
    for (int l = 0; l < layers.n; l++) {
      bench_case one = layers.items[l];
      one.batch = batch;
      one.at = l + 1;
      CS_RETURN_IF_ERROR(add_case(cases, &one));
    }
  }
  return CS_OK;
}

cs_status bench_cases_of(const cli_options *options, bench_kind kind, const char *sizes,
                         bench_cases *out) {
  out->n = 0;
  if (kind == BENCH_GEMM) {
    if (options->layers || options->batch_given)
      return cli_error(CS_CODE_USAGE, "bench gemm: --%s is for convtranspose",
                       options->layers ? "layers" : "batch");
    return each_part(options->sizes ? options->sizes : sizes, out, add_size);
  }
  if (options->sizes) return cli_error(CS_CODE_USAGE, "bench convtranspose: --sizes is for gemm");
  CS_RETURN_IF_ERROR(each_part(options->layers ? options->layers : "dcgan", out, add_layer));
  return add_batches(options, out);
}

/* ---- What a case is ---- */

static int64_t output_extent(const bench_case *one, int64_t in) {
  return (in - 1) * one->stride + one->kernel - 2 * one->pad;
}

double bench_case_flops(const bench_case *one) {
  if (one->kind == BENCH_GEMM)
    return 2.0 * (double)one->rows * (double)one->features * (double)one->inputs;
  return 2.0 * (double)one->batch * (double)(one->channels * one->height) * (double)one->width *
         (double)one->filters * (double)(one->kernel * one->kernel);
}

double bench_case_bytes(const bench_case *one, cs_precision precision) {
  bool half = precision == CS_PRECISION_F16 || precision == CS_PRECISION_BF16;
  double in, weights, out;
  if (one->kind == BENCH_GEMM) {
    in = (double)one->rows * (double)one->inputs;
    weights = (double)one->features * (double)one->inputs;
    out = (double)one->rows * (double)one->features;
  } else {
    double batch = (double)one->batch;
    in = batch * (double)one->channels * (double)one->height * (double)one->width;
    weights =
        (double)one->channels * (double)one->filters * (double)one->kernel * (double)one->kernel;
    out = batch * (double)one->filters * (double)output_extent(one, one->height) *
          (double)output_extent(one, one->width);
  }
  return (in + weights + out) * (half ? 2 : 4);
}

cs_status bench_case_graph(const bench_case *one, cs_graph **out, int64_t *batch) {
  cs_builder *builder = NULL;
  char attrs[512];
  const char *name = bench_kind_name(one->kind), *input = "x";
  const bool gemm = one->kind == BENCH_GEMM;
  int64_t dims[4] = {CS_DIM_N, gemm ? one->inputs : one->channels, one->height, one->width};
  *batch = gemm ? one->rows : one->batch;
  if (gemm) {
    snprintf(attrs, sizeof attrs, "{\"out_features\":%" PRId64 ",\"bias\":false}", one->features);
  } else {
    snprintf(attrs, sizeof attrs,
             "{\"out_channels\":%" PRId64 ",\"kernel_shape\":[%" PRId64 ",%" PRId64
             "],\"strides\":[%" PRId64 ",%" PRId64 "],\"pads\":[%" PRId64 ",%" PRId64 ",%" PRId64
             ",%" PRId64 "],\"bias\":false}",
             one->filters, one->kernel, one->kernel, one->stride, one->stride, one->pad, one->pad,
             one->pad, one->pad);
  }
  CS_RETURN_IF_ERROR(cs_builder_create(name, &builder));
  cs_status st = cs_builder_input(builder, input, gemm ? 2 : 4, dims);
  if (st == CS_OK)
    st = cs_builder_node(builder, name, gemm ? "Gemm" : "ConvTranspose", 1, &input, attrs);
  if (st == CS_OK) st = cs_builder_output(builder, name);
  if (st == CS_OK) return cs_builder_finish(builder, out);
  cs_builder_destroy(builder);
  return st;
}
