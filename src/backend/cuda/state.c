#include <unistd.h>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_error.h"

cs_status cs_cuda_state(cs_backend *backend, cs_device_state *out) {
  cs_cuda_backend *cuda = cs_cuda(backend);
  char bus_id[32] = "";
  cs_device_state_unknown("", out);
  CS_RETURN_IF_ERROR(cs_cuda_status(cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), cuda->device),
                                    "asking for the bus id of CUDA device %d", cuda->device));
  if (!cuda->nvml) {
    cs_status missing = cs_nvml_open(NULL, &cuda->nvml);
    if (cs_status_code(missing) == CS_CODE_NO_MEMORY) return missing;
    if (missing != CS_OK) {
      cs_device_state_unknown(cs_status_message(missing), out);
      cs_status_free(missing);
      return CS_OK;
    }
  }
  cs_nvml_read(cuda->nvml, bus_id, (int)getpid(), out);
  return CS_OK;
}
