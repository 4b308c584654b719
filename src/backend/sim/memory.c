/* Simulated memory: addresses are reserved, so that no two pieces overlap, and nothing lies there.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "backend/sim/sim.h"

cs_status sim_allocate(cs_backend *backend, int64_t bytes, void **out) {
  sim_backend *sim = (sim_backend *)backend;
  *out = NULL;
  if (bytes < 0) {
    return cs_error(CS_CODE_INTERNAL, "found an allocation of %lld bytes", (long long)bytes);
  }
  int64_t left = sim->info.memory_bytes - sim->memory_used;
  if (sim->info.memory_bytes > 0 && bytes > left) {
    return cs_error(CS_CODE_NO_MEMORY, "out of simulated memory: wanted %lld bytes, %lld are free",
                    (long long)bytes, (long long)left);
  }
  sim_memory *piece = cs_calloc(1, sizeof *piece);
  if (!piece) return cs_no_memory("simulated memory", sizeof *piece);
  piece->bytes = (size_t)cs_max_i64(bytes, 1);
  piece->address =
      mmap(NULL, piece->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (piece->address == MAP_FAILED) {
    free(piece);
    return cs_no_memory("addresses of simulated memory", (size_t)bytes);
  }
  piece->next = sim->memory;
  sim->memory = piece;
  sim->memory_used += (int64_t)piece->bytes;
  *out = piece->address;
  return CS_OK;
}

void sim_release(cs_backend *backend, void *memory) {
  sim_backend *sim = (sim_backend *)backend;
  sim_memory **link = &sim->memory;
  while (*link && (*link)->address != memory) link = &(*link)->next;
  sim_memory *piece = *link;
  if (!piece) return;
  *link = piece->next;
  sim->memory_used -= (int64_t)piece->bytes;
  (void)munmap(piece->address, piece->bytes);
  free(piece);
}

/* What is written is not kept. */
cs_status sim_upload(cs_backend *backend, void *device, const void *host, int64_t bytes) {
  (void)backend, (void)device, (void)host, (void)bytes;
  return CS_OK;
}

cs_status sim_fill(cs_backend *backend, void *device, int byte, int64_t bytes) {
  (void)backend, (void)device, (void)byte, (void)bytes;
  return CS_OK;
}

cs_status sim_download(cs_backend *backend, void *host, const void *device, int64_t bytes) {
  (void)host, (void)device;
  return cs_error(CS_CODE_USAGE,
                  "a simulated device (%s) holds no numbers: %lld bytes cannot be read from it",
                  ((sim_backend *)backend)->info.name, (long long)bytes);
}
