/* Figures of Pourghassemi et al. for two convolutions of GoogLeNet's first module and one of its
 * third, to be set beside what was measured here. */
#include "report/report.h"

const char cs_paper_source[] =
    "Pourghassemi et al., \"On the Limits of Parallelizing Convolutional Neural Networks on "
    "GPUs\", "
    "SPAA 2020 (Tesla K40, cuDNN 7.6)";

/* Table 1. */
static const cs_paper_resources module1_3x3[] = {
    {"PRECOMP_GEMM", "implicit_convolve_sgemm", 92, 39, 38, 19, 70, 0.47},
    {"FFT_TILING", "fft2d_c2r_32x32", 38, 75, 25, 6, 30, 15.2},
};
static const cs_paper_resources module1_5x5[] = {
    {"PRECOMP_GEMM", "implicit_convolve_sgemm", 100, 70, 50, 100, 60, 0.03},
    {"FFT_TILING", "fft2d_c2r_32x32", 38, 75, 25, 6, 20, 16.5},
};

/* Table 2; its units are taken as powers of 1024. */
#define KB 1024.0
#define MB (1024.0 * KB)
#define GB (1024.0 * MB)
static const cs_paper_workspace module3_5x5[] = {
    {"GEMM", 0, 58},
    {"IMPLICIT_GEMM", 48 * KB, 59},
    {"IMPLICIT_PRECOMP_GEMM", 4.8 * GB, 126},
    {"WINOGRAD_NONFUSED", 691 * MB, 46},
    {"FFT", 2.2 * GB, 36},
    {"FFT_TILING", 1.1 * GB, 48},
};

/* Square kernel and image, stride 1, not grouped. */
static bool is_convolution(const cs_op_desc *desc, int64_t kernel, int64_t in, int64_t out,
                           int64_t extent) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  const int64_t *x = desc->inputs[0].shape.dims, *y = desc->output.shape.dims;
  return desc->op == CS_OP_CONV && conv->group == 1 && conv->kernel[0] == kernel &&
         conv->kernel[1] == kernel && conv->strides[0] == 1 && conv->strides[1] == 1 &&
         x[1] == in && y[1] == out && x[2] == extent && x[3] == extent;
}

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

const cs_paper_resources *cs_paper_resources_of(const cs_op_desc *desc, int *n) {
  if (is_convolution(desc, 3, 96, 128, 28)) {
    *n = COUNT(module1_3x3);
    return module1_3x3;
  }
  if (is_convolution(desc, 5, 16, 32, 28)) {
    *n = COUNT(module1_5x5);
    return module1_5x5;
  }
  *n = 0;
  return NULL;
}

const cs_paper_workspace *cs_paper_workspace_of(const cs_op_desc *desc, int *n) {
  if (is_convolution(desc, 5, 16, 48, 14)) {
    *n = COUNT(module3_5x5);
    return module3_5x5;
  }
  *n = 0;
  return NULL;
}
