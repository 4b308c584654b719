#include "backend/backend.h"

const cs_backend_entry cs_backend_entries[] = {
#ifdef CS_HAVE_CUDA
    {"cuda", cs_cuda_backend_count, cs_cuda_backend_open, NULL, cs_cuda_backend_doctor},
#endif
    {"cpu", cs_cpu_backend_count, cs_cpu_backend_open, NULL, cs_cpu_backend_doctor},
    {"sim", cs_sim_backend_count, NULL, cs_sim_backend_open_file, cs_sim_backend_doctor},
    {NULL, NULL, NULL, NULL, NULL},
};
