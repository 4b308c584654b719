/* Sustained rates of the device, for the roofline: large operations measured like any other and
 * kept in the profile under their own signatures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/measure_session.h"

#define MAX_PEAK_DESCS (CS_MAX_DEVICE_LAYOUTS + 2)

static cs_op_desc gemm_desc(int64_t rows, int64_t features, cs_precision precision) {
  cs_op_desc desc;
  cs_shape shape = {.rank = 2, .dims = {rows, features}};
  memset(&desc, 0, sizeof desc);
  desc.op = CS_OP_GEMM;
  desc.attrs.gemm.out_features = features;
  desc.n_inputs = 1;
  desc.inputs[0] = desc.output =
      cs_tensor_dense(&shape, cs_precision_storage(precision), CS_LAYOUT_NCHW);
  desc.precision = precision;
  return desc;
}

/* Large enough for all units of the device, small enough that the reference takes seconds at most:
 * on a small device an image (or as many rows of the product) for every eight units, up to four. */
static int flops_descs(cs_backend *backend, cs_precision precision,
                       cs_op_desc out[MAX_PEAK_DESCS]) {
  const cs_device_info *info = backend->vtable->info(backend);
  bool large = info->units >= 64 && (backend->vtable->reference || backend->vtable->recorded);
  int64_t images = cs_min_i64(cs_max_i64((info->units + 7) / 8, 1), 4);
  cs_layout layouts[CS_MAX_DEVICE_LAYOUTS];
  int n = 0, n_layouts = backend->vtable->layouts(backend, precision, layouts);
  for (int i = 0; i < n_layouts; i++) {
    out[n++] = large ? cs_measure_conv_desc(32, 256, 56, 3, precision, layouts[i])
                     : cs_measure_conv_desc(images, 128, 28, 3, precision, layouts[i]);
  }
  out[n++] = large ? gemm_desc(8192, 4096, precision) : gemm_desc(128 * images, 1024, precision);
  return n; /* the product is the last */
}

/* A dense copy of four times the cache, 64 MiB to 512 MiB. */
static cs_op_desc copy_desc(cs_backend *backend) {
  cs_op_desc desc;
  int64_t cache = backend->vtable->info(backend)->cache_bytes, unit = (int64_t)64 * 128 * 128 * 4;
  int64_t n = cs_min_i64(cs_max_i64(4 * cache, (int64_t)64 << 20), (int64_t)512 << 20) / unit;
  cs_shape shape = {.rank = 4, .dims = {n, 64, 128, 128}};
  memset(&desc, 0, sizeof desc);
  desc.op = CS_OP_COPY;
  desc.n_inputs = 1;
  desc.inputs[0] = desc.output = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  return desc;
}

static cs_status best_us(const cs_profile *profile, const cs_op_desc *desc, double *out) {
  char *signature = NULL;
  *out = INFINITY;
  CS_RETURN_IF_ERROR(cs_op_signature(desc, &signature));
  const cs_op_profile *known = cs_profile_find(profile, signature);
  free(signature);
  for (int i = 0; known && i < known->n_records; i++) {
    const cs_measurement *measured = &known->records[i].measured;
    if (!measured->rejected && measured->warm_us > 0) *out = fmin(*out, measured->warm_us);
  }
  return CS_OK;
}

cs_status cs_profile_peaks(cs_profile *profile, cs_backend *backend, cs_precision precision,
                           const cs_measure_options *options, double *flops, double *bandwidth) {
  cs_measure_report report = {0};
  cs_measure_options own = *options;
  own.n_allows = 0; /* baselines are no peaks */
  cs_wanted wanted = {.profile = profile,
                      .backend = backend,
                      .options = &own,
                      .logger = &backend->logger,
                      .report = &report};
  cs_op_desc descs[MAX_PEAK_DESCS];
  const cs_op_desc *pointers[MAX_PEAK_DESCS];
  const char *names[MAX_PEAK_DESCS];
  double us = INFINITY;
  int n = flops_descs(backend, precision, descs);
  descs[n] = copy_desc(backend);
  for (int i = 0; i <= n; i++) {
    pointers[i] = &descs[i];
    names[i] = i < n ? "peak FLOP/s" : "peak bandwidth";
  }
  bool recorded = backend->vtable->recorded != NULL;
  *flops = *bandwidth = 0;
  if (!recorded) CS_RETURN_IF_ERROR(cs_measure_wanted(&wanted, pointers, names, n + 1));
  for (int i = 0; i < n; i++) {
    CS_RETURN_IF_ERROR(best_us(profile, &descs[i], &us));
    *flops = fmax(*flops, cs_op_flops(&descs[i]) / us * 1e6);
  }
  CS_RETURN_IF_ERROR(best_us(profile, &descs[n], &us));
  *bandwidth = cs_op_bytes(&descs[n]) / us * 1e6;
  if (*flops > 0 && *bandwidth > 0) return CS_OK;
  if (recorded) {
    *flops = *bandwidth = 0;
    return CS_OK;
  }
  return cs_error(
      CS_CODE_NOT_FOUND, "peak rates of %s: found no working implementation of a large %s in %s",
      backend->vtable->info(backend)->name, *flops > 0 ? "copy" : "convolution or matrix product",
      cs_precision_name(precision));
}

cs_status cs_profile_product_peak(const cs_profile *profile, cs_backend *backend,
                                  cs_precision precision, double *flops) {
  cs_op_desc descs[MAX_PEAK_DESCS];
  double us = INFINITY;
  const cs_op_desc *product = &descs[flops_descs(backend, precision, descs) - 1];
  CS_RETURN_IF_ERROR(best_us(profile, product, &us));
  *flops = cs_op_flops(product) / us * 1e6;
  return CS_OK;
}
