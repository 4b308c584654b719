#include "backend/cuda/versions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void format_cuda(int version, char out[CS_VERSION_TEXT]) {
  out[0] = '\0';
  if (version > 0) snprintf(out, CS_VERSION_TEXT, "%d.%d", version / 1000, version % 1000 / 10);
}

static void format_cudnn(size_t version, char out[CS_VERSION_TEXT]) {
  snprintf(out, CS_VERSION_TEXT, "%zu.%zu.%zu", version / 10000, version % 10000 / 100,
           version % 100);
}

void cs_cuda_driver_version(char out[CS_VERSION_TEXT]) {
  out[0] = '\0';
  FILE *file = fopen("/proc/driver/nvidia/version", "r");
  if (!file) return;
  char line[512];
  if (fgets(line, sizeof(line), file)) {
    /* The first word that is a dotted number. */
    for (char *save = NULL, *word = strtok_r(line, " \t\n", &save); word && !out[0];
         word = strtok_r(NULL, " \t\n", &save)) {
      size_t digits = strspn(word, "0123456789.");
      if (digits == strlen(word) && strchr(word, '.')) snprintf(out, CS_VERSION_TEXT, "%s", word);
    }
  }
  fclose(file);
}

void cs_cuda_driver_api_version(char out[CS_VERSION_TEXT]) {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess) version = 0;
  format_cuda(version, out);
}

void cs_cuda_runtime_version(char out[CS_VERSION_TEXT]) {
  int version = 0;
  if (cudaRuntimeGetVersion(&version) != cudaSuccess) version = 0;
  format_cuda(version, out);
}

void cs_cudnn_running_version(char out[CS_VERSION_TEXT]) {
  format_cudnn(cudnnGetVersion(), out);
}

void cs_cudnn_built_version(char out[CS_VERSION_TEXT]) {
  format_cudnn(CUDNN_VERSION, out);
}

cs_status cs_cudnn_check_version(void) {
  char running[CS_VERSION_TEXT], built[CS_VERSION_TEXT];
  cs_cudnn_running_version(running);
  cs_cudnn_built_version(built);
  if (atoi(running) == atoi(built)) return CS_OK;
  return cs_error(CS_CODE_DEVICE,
                  "cuDNN %s is installed, but this program was built for cuDNN %s: install cuDNN "
                  "%d or build again",
                  running, built, atoi(built));
}

cs_status cs_cuda_device_count(int *count) {
  *count = 0;
  cudaError_t result = cudaGetDeviceCount(count);
  if (result == cudaSuccess && *count > 0) return CS_OK;
  (void)cudaGetLastError();
  *count = 0;
  char api[CS_VERSION_TEXT], runtime[CS_VERSION_TEXT];
  cs_cuda_driver_api_version(api);
  cs_cuda_runtime_version(runtime);
  if (result == cudaErrorInsufficientDriver && (!api[0] || strcmp(api, "0.0") == 0)) {
    return cs_error(CS_CODE_DEVICE,
                    "no NVIDIA driver: install one for CUDA %s or newer (in a container: start it "
                    "with the GPU, for instance --gpus all)",
                    runtime);
  }
  if (result == cudaErrorInsufficientDriver) {
    return cs_error(CS_CODE_DEVICE,
                    "the NVIDIA driver supports CUDA %s only: update it to one for CUDA %s", api,
                    runtime);
  }
  if (result == cudaErrorNoDevice || result == cudaSuccess) {
    return cs_error(CS_CODE_DEVICE,
                    "the NVIDIA driver sees no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES");
  }
  return cs_error(CS_CODE_DEVICE, "the NVIDIA driver does not start: CUDA error %d (%s)",
                  (int)result, cudaGetErrorString(result));
}
