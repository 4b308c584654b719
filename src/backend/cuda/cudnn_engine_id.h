/* Identity of an engine configuration: engine index and knob choices, as text
 * "eng10{2=5,13=0}" (knob type = value, ascending by type). Pure data. */
#ifndef CONVSCHED_BACKEND_CUDA_CUDNN_ENGINE_ID_H_
#define CONVSCHED_BACKEND_CUDA_CUDNN_ENGINE_ID_H_

#include "base/base.h"

#define CS_MAX_KNOBS 32

typedef struct cs_knob {
  int64_t type, value;
} cs_knob;
typedef struct cs_engine_id {
  int64_t engine; /* global index within the operation graph */
  int n_knobs;    /* knobs not named keep the engine's defaults */
  cs_knob knobs[CS_MAX_KNOBS];
} cs_engine_id;

void cs_engine_id_sort(cs_engine_id *id);
cs_status cs_engine_id_format(const cs_engine_id *id, const char *prefix, char **out) CS_MUST_USE;
/* Strict; false on anything that cs_engine_id_format does not write. */
bool cs_engine_id_parse(const char *text, cs_engine_id *out);

#endif
