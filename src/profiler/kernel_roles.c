#include "profiler/kernel_roles.h"

#include <string.h>

/* Parts of kernels' names that say what a kernel does: cuDNN's, cuBLAS's. The first that fits. */
static const struct {
  const char *part;
  cs_kernel_role role;
} named[] = {
    {"splitKreduce", CS_ROLE_SPLIT_K},
    {"winogradForwardData", CS_ROLE_INPUT},
    {"winogradForwardFilter", CS_ROLE_FILTER},
    {"winogradForwardOutput", CS_ROLE_OUTPUT},
    {"generateWinogradTiles", CS_ROLE_FILTER},
    {"flip_filter", CS_ROLE_FILTER},
    {"fft1d_r2c", CS_ROLE_INPUT_OR_FILTER},
    {"fft2d_r2c", CS_ROLE_INPUT_OR_FILTER},
    {"fft1d_c2r", CS_ROLE_OUTPUT},
    {"fft2d_c2r", CS_ROLE_OUTPUT},
    {"im2col", CS_ROLE_INPUT},
    {"nchwToNhwc", CS_ROLE_LAYOUT},
    {"nhwcToNchw", CS_ROLE_LAYOUT},
    {"genericTranspose", CS_ROLE_LAYOUT},
    {"convertTensor", CS_ROLE_CONVERT},
    {"nhwcAddPadding", CS_ROLE_CHANNELS},
    {"nhwcSliceC", CS_ROLE_CHANNELS},
    {"init_device_workspace", CS_ROLE_PREPARE},
    {"kern_precompute_indices", CS_ROLE_PREPARE},
    {"computeOffsetsKernel", CS_ROLE_PREPARE},
};

static cs_kernel_role named_role(const char *name) {
  for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
    if (strstr(name, named[i].part)) return named[i].role;
  }
  return CS_ROLE_UNCLEAR;
}

/* The kernel of ours that ends a candidate of cuDNN's: its family says whether there is one. */
static cs_kernel_role last_role(const cs_candidate *candidate, const char *name) {
  const char *family = candidate->family ? candidate->family : "";
  if (strncmp(family, "cudnn.", 6) != 0) return CS_ROLE_UNCLEAR;
  if (strstr(name, "cs_elementwise_kernel")) return CS_ROLE_EPILOGUE;
  bool copies = strstr(name, "cs_copy_kernel") || strstr(name, "cs_transpose_kernel");
  return copies && strstr(family, ".dense") ? CS_ROLE_SLICE : CS_ROLE_UNCLEAR;
}

void cs_kernel_roles(const cs_candidate *candidate, const cs_kernel_profile *kernels, int n,
                     cs_kernel_role *out) {
  int unclear = 0, last_unclear = 0;
  for (int k = 0; k < n; k++) {
    out[k] = n > 1 ? named_role(kernels[k].info.name) : CS_ROLE_UNCLEAR;
    if (k > 0 && k == n - 1 && out[k] == CS_ROLE_UNCLEAR) {
      out[k] = last_role(candidate, kernels[k].info.name);
    }
    if (out[k] != CS_ROLE_UNCLEAR) continue;
    unclear++;
    last_unclear = k;
  }
  if (unclear == 1) out[last_unclear] = CS_ROLE_COMPUTES;
}

const char *cs_kernel_role_text(cs_kernel_role role) {
  switch (role) {
    case CS_ROLE_INPUT:
      return "input transform";
    case CS_ROLE_FILTER:
      return "filter transform";
    case CS_ROLE_INPUT_OR_FILTER:
      return "input or filter transform";
    case CS_ROLE_OUTPUT:
      return "output transform";
    case CS_ROLE_SPLIT_K:
      return "split-K reduction";
    case CS_ROLE_LAYOUT:
      return "layout change inside of the candidate";
    case CS_ROLE_CONVERT:
      return "conversion of elements inside of the candidate";
    case CS_ROLE_CHANNELS:
      return "pads or cuts channels inside of the candidate";
    case CS_ROLE_PREPARE:
      return "prepares a workspace or indices";
    case CS_ROLE_UNCLEAR:
      return "not known which part of the work";
    default:
      return "";
  }
}
