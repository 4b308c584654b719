#include "backend/cuda/stream_name.h"

#include <stdio.h>

#ifdef CS_HAVE_NVTX
#include <nvtx3/nvToolsExtCudaRt.h>
#endif

void cs_cuda_name_stream(cudaStream_t stream, int index, bool urgent, int part_units) {
  char name[96], part[32] = "";
  if (part_units > 0) snprintf(part, sizeof(part), " on %d SMs", part_units);
  snprintf(name, sizeof(name), "convsched stream %d%s%s", index, part,
           urgent ? ", high priority" : "");
#ifdef CS_HAVE_NVTX
  nvtxNameCudaStreamA(stream, name);
#else
  (void)stream;
#endif
}
