/* Which of CUPTI's metrics each of our counters is. */
#ifndef CONVSCHED_BACKEND_CUDA_CUPTI_METRICS_H_
#define CONVSCHED_BACKEND_CUDA_CUPTI_METRICS_H_

#include "backend/cuda/cupti_library.h"
#include "profiler/counters.h"

typedef struct cs_cupti_metric {
  const char *name; /* CUPTI's */
  double scale;     /* from CUPTI's unit to the counter's */
} cs_cupti_metric;

/* By cs_counter. */
extern const cs_cupti_metric cs_cupti_metrics[CS_COUNTER_COUNT];

/* The metrics that a chip has, and what collects them. */
typedef struct cs_metric_set {
  const cs_cupti *cupti;
  CUpti_Profiler_Host_Object *host;
  const char *names[CS_COUNTER_COUNT];
  cs_counter counters[CS_COUNTER_COUNT]; /* of each name */
  int n;
  uint8_t *config;
  size_t config_size;
  int passes;
} cs_metric_set;

/* Everything of the table that `chip` ("GH100") has; what it lacks is named in a warning, once for
 * all. `availability` is the device's counter availability image, NULL where there is no device.
 * NOT_FOUND: the chip has none, or CUPTI does not know it. Clear also after an error. */
cs_status cs_metric_set_create(const cs_cupti *cupti, const char *chip, const uint8_t *availability,
                               const cs_logger *logger, cs_metric_set *out) CS_MUST_USE;
/* Counters of range `index` of a decoded counter data image; NaN where CUPTI has no value. */
cs_status cs_metric_set_evaluate(const cs_metric_set *set, const uint8_t *image, size_t size,
                                 size_t index, cs_counters *out) CS_MUST_USE;
void cs_metric_set_clear(cs_metric_set *set);

#endif
