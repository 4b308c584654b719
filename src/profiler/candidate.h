/* A candidate: one way to run one operation. Pure data. */
#ifndef CONVSCHED_PROFILER_CANDIDATE_H_
#define CONVSCHED_PROFILER_CANDIDATE_H_

#include "graph/op.h"

/* Numerical notes (bits). */
enum {
  CS_NOTE_TENSOR_CORE = 1 << 0,
  CS_NOTE_DOWN_CONVERT_INPUTS = 1 << 1,
  CS_NOTE_REDUCED_PRECISION_REDUCTION = 1 << 2,
  CS_NOTE_WINOGRAD = 1 << 3,
  CS_NOTE_FFT = 1 << 4,
  CS_NOTE_STRICT_NAN = 1 << 5,
};

#define CS_MERGE_MOST 8 /* operations that one launch computes */

typedef struct cs_candidate {
  char *id; /* stable identity within (operation, backend): "cudnn.graph:eng10{2=5,3=1}",
               "cudnn.legacy:IMPLICIT_PRECOMP_GEMM/tensor_op", "cuda.maxpool.v1",
               "onednn:jit:avx512_core/t2" */
  char
      *family; /* the part before ':' or the last dot: "cudnn.graph", "cudnn.legacy", "onednn", … */
  char *payload; /* what makes preparing fast (cuDNN: the plan's JSON); NULL if nothing does */
  int64_t workspace_bytes;
  bool deterministic;
  bool fused;     /* epilogue inside; false: a sequence of kernels */
  uint32_t notes; /* CS_NOTE_* */
  int threads;    /* CPU: threads it is prepared for; 0 elsewhere */
  bool merges;    /* one kernel can run it for up to CS_MERGE_MOST operations at once */
  bool baseline;  /* there to be compared with: sampled however slow it is; not recorded */
} cs_candidate;

typedef struct cs_candidate_list {
  cs_candidate *items;
  size_t n, capacity;
} cs_candidate_list;

void cs_candidate_clear(cs_candidate *candidate);
cs_status cs_candidate_copy(const cs_candidate *from, cs_candidate *to) CS_MUST_USE;
/* Takes over the strings of *candidate on success (which is then zeroed); an id already in the list
 * is dropped silently (equal identity = equal plan). */
cs_status cs_candidate_list_add(cs_candidate_list *list, cs_candidate *candidate) CS_MUST_USE;
/* The same of a copy. */
cs_status cs_candidate_list_add_copy(cs_candidate_list *list,
                                     const cs_candidate *candidate) CS_MUST_USE;
/* An f32 candidate whose result is no better than tf32's: Winograd beyond 3×3. It is measured and
 * may be pinned, but no plan chooses it of itself. */
bool cs_candidate_is_coarse(const cs_op_desc *desc, const cs_candidate *candidate);
/* Whether one of n patterns names the family: begins with the whole of its name, as
 * "cuda.gemm.naive*" does with "cuda.gemm.naive", and not "cuda.*". */
bool cs_family_is_named(const char *family, const char *const *patterns, int n);
const cs_candidate *cs_candidate_find(const cs_candidate_list *list, const char *id);
void cs_candidate_list_free(cs_candidate_list *list);

#endif
