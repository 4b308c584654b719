#include "backend/backend.h"

const cs_backend_entry cs_backend_entries[] = {
#ifdef CS_HAVE_CUDA
    {"cuda", cs_cuda_backend_count, cs_cuda_backend_open, cs_cuda_backend_doctor},
#endif
    {"cpu", cs_cpu_backend_count, cs_cpu_backend_open, cs_cpu_backend_doctor},
    {NULL, NULL, NULL, NULL},
};
