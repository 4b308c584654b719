/* Inside of bench: cases, rungs, records. */
#ifndef CONVSCHED_CLI_BENCH_H_
#define CONVSCHED_CLI_BENCH_H_

#include "cli/cli.h"

#define BENCH_MOST_CASES 64
#define BENCH_MOST_DEVICES 8
#define BENCH_MOST_RUNGS 6
#define BENCH_MOST_PATTERNS 3

typedef enum bench_kind { BENCH_GEMM, BENCH_TRANSPOSED, BENCH_KINDS } bench_kind;
const char *bench_kind_name(bench_kind kind); /* "gemm", "convtranspose" */

/* ---- Cases (bench_cases.c) ---- */

typedef struct bench_case {
  bench_kind kind;
  char name[64]; /* "512", "512x1000x64", "dcgan.4", "64x32x32:3:k4s2p1" */
  double at;     /* place on the axis: extent (of several their geometric mean), layer */
  int64_t rows, features, inputs; /* Gemm: y[rows][features] = x[rows][inputs] · Wᵀ */
  int64_t batch, channels, height, width, filters, kernel, stride, pad;
} bench_case;

typedef struct bench_cases {
  bench_case items[BENCH_MOST_CASES];
  int n;
} bench_cases;

/* As the options say; `sizes` where they name none. USAGE: what cannot be read, 0, one given twice,
 * too many. */
cs_status bench_cases_of(const cli_options *options, bench_kind kind, const char *sizes,
                         bench_cases *out) CS_MUST_USE;
double bench_case_flops(const bench_case *one);
/* Of input, weights and output. */
double bench_case_bytes(const bench_case *one, cs_precision precision);
/* A network of this operation alone, with a symbolic batch of *batch. */
cs_status bench_case_graph(const bench_case *one, cs_graph **out, int64_t *batch) CS_MUST_USE;

/* ---- Rungs (bench_rungs.c) ---- */

/* A candidate is of the first rung one of whose patterns it matches. */
typedef struct bench_rung {
  const char *name;
  const char *cpu[BENCH_MOST_PATTERNS + 1], *cuda[BENCH_MOST_PATTERNS + 1]; /* NULL ends them */
  bool baseline[2];  /* of the CPU, of the GPU: has to be asked for */
  double assumed[2]; /* FLOP/s, until one was measured; 0: none */
} bench_rung;

typedef struct bench_ladder {
  bench_kind kind;
  const bench_rung *rungs;
  int n;
  bool wanted[BENCH_MOST_RUNGS];
} bench_ladder;

/* USAGE: a rung that there is none of. */
cs_status bench_ladder_of(const cli_options *options, bench_kind kind,
                          bench_ladder *out) CS_MUST_USE;
/* NULL-terminated; none: the backend has no such rung. */
const char *const *bench_patterns(const bench_rung *rung, bool on_cpu);

/* ---- One case on one device (bench_measure.c) ---- */

typedef struct bench_device {
  const char *spec;
  cs_device *device;
  json_t *info;
  bool on_cpu;
  double rates[BENCH_MOST_RUNGS]; /* FLOP/s measured last, of the precision under way; 0: none */
} bench_device;

/* Measures and makes a record, `convsched.bench/1`. *wrong grows by the rungs of which every
 * candidate was rejected. */
cs_status bench_measure(const cli_options *options, const bench_ladder *ladder,
                        bench_device *device, const bench_case *one, cs_precision precision,
                        json_t **out, int *wrong) CS_MUST_USE;

#endif
