/* The ladders: from plain loops to the libraries. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/bench.h"

static const bench_rung gemm_rungs[] = {
    {"naive",
     {"cpu.gemm_naive/t1", "cpu.gemm_naive/t1/*"}, /* one thread, not 16 */
     {"cuda.gemm.naive.*"},
     {true, true},
     {0.7e9, 0.3e12}},
    {"blocked", {"cpu.gemm_blocked/*"}, {NULL}, {true, false}, {5e9, 0}},
    {"shared", {NULL}, {"cuda.gemm.shared.*"}, {false, true}, {0, 1e12}},
    {"register", {NULL}, {"cuda.gemm.register.*"}, {false, true}, {0, 5e12}},
    {"tensor", {NULL}, {"cuda.gemm.mma.*", "cuda.gemm.tma.*"}, {false, true}, {0, 50e12}},
    {"library", {"onednn:*"}, {"cublaslt.*"}, {false, false}, {0, 0}},
};
static const bench_rung transposed_rungs[] = {
    {"naive",
     {"cpu.convtranspose_scatter/t1", "cpu.convtranspose_scatter/t1/*"},
     {"cuda.convtranspose_scatter.*"},
     {true, true},
     {0.7e9, 0.05e12}},
    {"gemm", {"cpu.convtranspose_gemm/*"}, {"cuda.col2im*", "cublaslt.*"}, {false, false}, {0, 0}},
    {"gather", {"cpu.convtranspose_gather/*"}, {"cuda.*"}, {false, false}, {0, 0}},
    {"library", {"onednn:*"}, {"cudnn.*"}, {false, false}, {0, 0}},
};
#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

const char *const *bench_patterns(const bench_rung *rung, bool on_cpu) {
  return on_cpu ? rung->cpu : rung->cuda;
}

static cs_status want(bench_ladder *ladder, const char *name) {
  cs_strbuf known = {0};
  for (int i = 0; i < ladder->n; i++) {
    if (strcmp(ladder->rungs[i].name, name) == 0) {
      ladder->wanted[i] = true;
      cs_strbuf_free(&known);
      return CS_OK;
    }
    cs_strbuf_printf(&known, "%s%s", i > 0 ? ", " : "", ladder->rungs[i].name);
  }
  cs_status st = cli_error(CS_CODE_USAGE, "bench %s: --rungs: found \"%s\", wanted some of %s",
                           bench_kind_name(ladder->kind), name, known.data ? known.data : "");
  cs_strbuf_free(&known);
  return st;
}

cs_status bench_ladder_of(const cli_options *options, bench_kind kind, bench_ladder *out) {
  const bool gemm = kind == BENCH_GEMM;
  *out = (bench_ladder){.kind = kind,
                        .rungs = gemm ? gemm_rungs : transposed_rungs,
                        .n = gemm ? COUNT(gemm_rungs) : COUNT(transposed_rungs)};
  if (!options->rungs) {
    for (int i = 0; i < out->n; i++) out->wanted[i] = true;
    return CS_OK;
  }
  for (const char *at = options->rungs;;) {
    char name[64];
    size_t length = strcspn(at, ",");
    snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), at);
    CS_RETURN_IF_ERROR(want(out, name));
    if (!at[length]) return CS_OK;
    at += length + 1;
  }
}
