/* Transposed convolutions by steps of 2 for the kernel whose weights stay in shared memory: every
 * way of sharing taps out, and what meets the edges of tiles, stages and slices of filters. */
#ifndef CONVSCHED_TESTS_STATIONARY_T_CASES_H_
#define CONVSCHED_TESTS_STATIONARY_T_CASES_H_

#include "conformance_cases.h"

#define STATIONARY_T_FAMILY "cuda.stationary_t."

typedef struct stationary_t_case {
  const char *name;
  int in[4], conv[3], pads[4], more[2];
  int flags;
  cs_act_kind act;
} stationary_t_case;

/* `images`: times as many. The caller frees table->cases. */
static inline void stationary_t_cases(conformance_table *table, int images) {
  static const stationary_t_case cases[] = {
      {"generator", {2, 128, 16, 16}, {64, 4, 4}, {1, 1, 1, 1}, {0, 0}, CC_BIAS, CS_ACT_RELU},
      {"narrow", {3, 64, 8, 8}, {40, 4, 4}, {1, 1, 1, 1}, {0, 0}, CC_BIAS, CS_ACT_LEAKY_RELU},
      {"odd", {2, 24, 13, 15}, {72, 4, 4}, {1, 1, 1, 1}, {0, 0}, CC_BIAS, CS_ACT_RELU},
      {"high", {2, 40, 30, 7}, {32, 4, 4}, {1, 1, 1, 1}, {0, 0}, 0, CS_ACT_NONE},
      {"k4_p0", {1, 64, 15, 15}, {64, 4, 4}, {0, 0, 0, 0}, {0, 0}, CC_BIAS, CS_ACT_NONE},
      {"k4_p2", {2, 64, 16, 16}, {64, 4, 4}, {2, 2, 2, 2}, {0, 0}, CC_BIAS, CS_ACT_NONE},
      {"k3_more", {2, 64, 16, 15}, {64, 3, 3}, {1, 1, 1, 1}, {1, 1}, CC_BIAS, CS_ACT_RELU},
      {"k3", {2, 64, 15, 16}, {64, 3, 3}, {1, 1, 1, 1}, {0, 0}, CC_BIAS, CS_ACT_RELU},
      {"k3_p0", {2, 40, 15, 15}, {64, 3, 3}, {0, 0, 0, 0}, {0, 0}, CC_BIAS, CS_ACT_RELU},
      {"k3_p2", {2, 64, 17, 18}, {64, 3, 3}, {2, 2, 2, 2}, {1, 0}, CC_BIAS, CS_ACT_NONE},
      {"k2", {2, 96, 16, 16}, {64, 2, 2}, {0, 0, 0, 0}, {0, 0}, CC_BIAS, CS_ACT_RELU},
      {"k2_4", {2, 64, 15, 15}, {64, 2, 4}, {1, 0, 0, 1}, {0, 0}, CC_BIAS, CS_ACT_NONE},
      {"k4_3", {2, 64, 15, 15}, {32, 4, 3}, {2, 1, 1, 0}, {0, 1}, CC_BIAS, CS_ACT_NONE},
      {"deep_pads", {2, 32, 18, 17}, {64, 4, 4}, {5, 4, 3, 5}, {0, 0}, CC_BIAS, CS_ACT_NONE},
      {"slices",
       {2, 64, 16, 16},
       {64, 4, 4},
       {1, 1, 1, 1},
       {0, 0},
       CC_BIAS | CC_VIEW_IN | CC_VIEW_OUT,
       CS_ACT_RELU},
      {"slice_tail",
       {2, 24, 15, 16},
       {40, 4, 4},
       {1, 1, 1, 1},
       {0, 0},
       CC_BIAS | CC_VIEW_IN,
       CS_ACT_RELU},
  };
  const cs_layout nhwc[] = {CS_LAYOUT_NHWC};
  cc_context x = {table, nhwc, 1};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const stationary_t_case *c = &cases[i];
    int in[] = {c->in[0] * images, c->in[1], c->in[2], c->in[3]};
    cc_conv_transpose(&x, c->name, in, c->conv, CC2(2, 2), c->pads, CC2(1, 1), c->more, 1, c->flags,
                      c->act);
  }
}

#endif
