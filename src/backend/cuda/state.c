#include <unistd.h>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_error.h"

/* NVML, loaded when first asked for, and the device's name in it. */
static cs_status find_nvml(cs_cuda_backend *cuda, char *bus_id, int size) {
  CS_RETURN_IF_ERROR(cs_cuda_status(cudaDeviceGetPCIBusId(bus_id, size, cuda->device),
                                    "asking for the bus id of CUDA device %d", cuda->device));
  return cuda->nvml ? CS_OK : cs_nvml_open(NULL, &cuda->nvml);
}

cs_status cs_cuda_state(cs_backend *backend, cs_device_state *out) {
  cs_cuda_backend *cuda = cs_cuda(backend);
  char bus_id[32] = "";
  cs_device_state_unknown("", out);
  cs_status missing = find_nvml(cuda, bus_id, sizeof(bus_id));
  if (missing != CS_OK && cs_status_code(missing) != CS_CODE_NOT_FOUND) return missing;
  if (missing != CS_OK) {
    cs_device_state_unknown(cs_status_message(missing), out);
    cs_status_free(missing);
    return CS_OK;
  }
  cs_nvml_read(cuda->nvml, bus_id, (int)getpid(), out);
  return CS_OK;
}

cs_status cs_cuda_energy(cs_backend *backend, double *joules) {
  cs_cuda_backend *cuda = cs_cuda(backend);
  char bus_id[32] = "";
  *joules = 0;
  CS_RETURN_IF_ERROR(find_nvml(cuda, bus_id, sizeof(bus_id)));
  return cs_nvml_energy(cuda->nvml, bus_id, joules);
}
