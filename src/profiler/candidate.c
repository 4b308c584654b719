#include "profiler/candidate.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/profile.h"

void cs_candidate_clear(cs_candidate *candidate) {
  free(candidate->id);
  free(candidate->family);
  free(candidate->payload);
  memset(candidate, 0, sizeof *candidate);
}

cs_status cs_candidate_copy(const cs_candidate *from, cs_candidate *to) {
  cs_status st = CS_OK;
  cs_candidate copy = *from;
  copy.id = copy.family = copy.payload = NULL;
  CS_TRY(st, cs_strdup_to(from->id ? from->id : "", &copy.id), done);
  CS_TRY(st, cs_strdup_to(from->family ? from->family : "", &copy.family), done);
  if (from->payload) CS_TRY(st, cs_strdup_to(from->payload, &copy.payload), done);
  *to = copy;
  memset(&copy, 0, sizeof copy);
done:
  cs_candidate_clear(&copy);
  return st;
}

cs_status cs_candidate_list_add(cs_candidate_list *list, cs_candidate *candidate) {
  if (cs_candidate_find(list, candidate->id)) {
    cs_candidate_clear(candidate);
    return CS_OK;
  }
  CS_RETURN_IF_ERROR(cs_grow(&list->items, &list->capacity, list->n + 1, sizeof *list->items));
  list->items[list->n++] = *candidate;
  memset(candidate, 0, sizeof *candidate);
  return CS_OK;
}

cs_status cs_candidate_list_add_copy(cs_candidate_list *list, const cs_candidate *candidate) {
  cs_candidate copy = {0};
  CS_RETURN_IF_ERROR(cs_candidate_copy(candidate, &copy));
  cs_status st = cs_candidate_list_add(list, &copy);
  cs_candidate_clear(&copy);
  return st;
}

bool cs_candidate_is_coarse(const cs_op_desc *desc, const cs_candidate *candidate) {
  const int64_t *kernel = desc->attrs.conv.kernel;
  return (desc->op == CS_OP_CONV || desc->op == CS_OP_CONV_TRANSPOSE) &&
         desc->precision == CS_PRECISION_F32 && (candidate->notes & CS_NOTE_WINOGRAD) &&
         (kernel[0] > 3 || kernel[1] > 3);
}

bool cs_family_is_named(const char *family, const char *const *patterns, int n) {
  for (int i = 0; i < n; i++) {
    if (strncmp(patterns[i], family, strlen(family)) == 0) return true;
  }
  return false;
}

const cs_candidate *cs_candidate_find(const cs_candidate_list *list, const char *id) {
  for (size_t i = 0; i < list->n; i++) {
    if (strcmp(list->items[i].id, id) == 0) return &list->items[i];
  }
  return NULL;
}

void cs_candidate_list_free(cs_candidate_list *list) {
  for (size_t i = 0; i < list->n; i++) cs_candidate_clear(&list->items[i]);
  free(list->items);
  memset(list, 0, sizeof *list);
}

/* ---- Which operations have which candidates ---- */

/* Whether the first tensor so labelled has the layout "/nhwc" or "/nchw", no blocked one. */
static bool lies_as(const char *layout, const char *signature, const char *label) {
  const char *at = strstr(signature, label);
  at = at ? strchr(at, '/') : NULL;
  return at && strncmp(at, layout, 5) == 0 && (at[5] == ' ' || at[5] == '/');
}

static bool has_tiles(const char *signature) {
  return strncmp(signature, "Conv f32 ", 9) == 0 && strstr(signature, " k=3x3 s=1x1 ") &&
         strstr(signature, " d=1x1 ") && lies_as("/nchw", signature, " x=") &&
         lies_as("/nchw", signature, " y=");
}

/* 1: none said. */
static long groups_of(const char *signature) {
  const char *groups = strstr(signature, " g=");
  return groups ? strtol(groups + 3, NULL, 10) : 1;
}

static bool has_stationary_weights(const char *signature) {
  return strncmp(signature, "ConvTranspose f32 ", 18) != 0 && strstr(signature, " s=2x2 ") &&
         strstr(signature, " d=1x1 ") && groups_of(signature) == 1 &&
         lies_as("/nhwc", signature, " x=") && lies_as("/nhwc", signature, " y=");
}

/* Until 6 all operations; on CUDA 7 and 8: strips of depthwise convolutions (cuda.depthwise_strip),
 * whose variants 8 changed; 9: transposed convolutions on the CPU as a product and by gathering; on
 * CUDA 10: those to few channels, those of one pixel as dense layers and others as products of
 * columns, and baselines of them and of dense layers; 11: 3 × 3 convolutions of planes in f32 by
 * Winograd's way; 12: transposed convolutions by steps of 2 in NHWC on tensor cores with weights
 * that stay in shared memory. */
int cs_candidates_since(const char *device, const char *signature) {
  bool transposed = strncmp(signature, "ConvTranspose ", 14) == 0;
  if (strncmp(device, "cuda;", 5) != 0) return transposed ? 9 : 6;
  if (transposed) return has_stationary_weights(signature) ? 12 : 10;
  if (strncmp(signature, "Gemm ", 5) == 0) return 10;
  if (strncmp(signature, "Conv ", 5) == 0 && groups_of(signature) > 1) return 8;
  return has_tiles(signature) ? 11 : 6;
}

/* ---- What was measured of one ---- */

cs_status cs_measurement_of(const double *samples, int n, double scale, cs_measurement *out) {
  cs_stats stats;
  CS_RETURN_IF_ERROR(cs_stats_of(samples, n, &stats));
  *out = (cs_measurement){.cold_us = stats.median * scale,
                          .warm_us = stats.median * scale,
                          .p10_us = stats.p10 * scale,
                          .p90_us = stats.p90 * scale,
                          .variation = stats.variation,
                          .samples = n};
  return CS_OK;
}
