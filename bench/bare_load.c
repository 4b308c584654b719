/* The yardstick for start-up: how long a bare cuDNN program takes, from the start of its process,
 * until it has a context and a handle, has loaded every cuDNN plan of a `convsched.plan/1` file
 * from the plan's own JSON, and has run each once.
 *
 *   bare_load plan.json
 *
 * prints one JSON object: {"seconds": …, "plans": …, "other_tasks": …}. Tasks without a cuDNN plan
 * (named algorithms, other kernels) are counted and left out. */
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_TENSORS 16

static void fail(const char *what, const char *why) {
  fprintf(stderr, "bare_load: %s: %s\n", what, why);
  exit(4);
}

static void check_cuda(cudaError_t result, const char *what) {
  if (result != cudaSuccess) fail(what, cudaGetErrorString(result));
}

static void check_cudnn(cudnnStatus_t result, const char *what) {
  if (result != CUDNN_STATUS_SUCCESS) fail(what, cudnnGetErrorString(result));
}

static double seconds_since_boot(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* When this process started, in seconds since boot (to a clock tick, 10 ms). */
static double process_start(void) {
  char text[1024];
  FILE *file = fopen("/proc/self/stat", "r");
  if (!file || !fgets(text, sizeof(text), file)) fail("/proc/self/stat", "cannot be read");
  fclose(file);
  char *field = strrchr(text, ')'); /* the command's name may hold spaces */
  for (int i = 2; field && i < 22; i++) field = strchr(field + 1, ' ');
  if (!field) fail("/proc/self/stat", "has no start time");
  return strtod(field, NULL) / (double)sysconf(_SC_CLK_TCK);
}

static int64_t type_bytes(const char *type) {
  if (strcmp(type, "CUDNN_DATA_FLOAT") == 0) return 4;
  if (strcmp(type, "CUDNN_DATA_HALF") == 0 || strcmp(type, "CUDNN_DATA_BFLOAT16") == 0) return 2;
  fail("a plan's tensor has an unexpected type", type);
  return 0;
}

/* What one plan binds: ids, and offsets into one allocation. */
typedef struct arguments {
  int n;
  int64_t uids[MAX_TENSORS], offsets[MAX_TENSORS], bytes;
} arguments;

static arguments read_arguments(const char *payload) {
  arguments a = {0};
  json_t *plan = json_loads(payload, 0, NULL);
  json_t *tensors = json_object_get(json_object_get(plan, "operationGraph"), "tensors"), *tensor;
  size_t index;
  json_array_foreach(tensors, index, tensor) {
    if (json_is_true(json_object_get(tensor, "isVirtual"))) continue;
    if (a.n == MAX_TENSORS) fail("a plan", "has too many tensors");
    json_t *dims = json_object_get(tensor, "dim"), *strides = json_object_get(tensor, "stride");
    int64_t last = 0;
    for (size_t i = 0; i < json_array_size(dims); i++) {
      last += (json_integer_value(json_array_get(dims, i)) - 1) *
              json_integer_value(json_array_get(strides, i));
    }
    const char *type = json_string_value(json_object_get(tensor, "dataType"));
    const char *name = json_string_value(json_object_get(tensor, "name"));
    if (!type || !name) fail("a plan", "has a tensor without type or name");
    a.uids[a.n] = strtoll(name, NULL, 10);
    a.offsets[a.n++] = a.bytes;
    a.bytes += ((last + 1) * type_bytes(type) + 255) / 256 * 256;
  }
  if (a.n == 0) fail("a plan", "has no tensors");
  json_decref(plan);
  return a;
}

static cudnnBackendDescriptor_t load_plan(cudnnHandle_t handle, const char *payload) {
  cudnnBackendDescriptor_t plan;
  check_cudnn(cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan),
              "creating a plan");
  check_cudnn(cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                                       &handle),
              "giving a plan the handle");
  check_cudnn(cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                       CUDNN_TYPE_CHAR, (int64_t)strlen(payload), payload),
              "loading a plan");
  check_cudnn(cudnnBackendFinalize(plan), "finalizing a plan");
  return plan;
}

static void run_plan(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, const arguments *a,
                     char *memory) {
  void *pointers[MAX_TENSORS], *workspace = memory + a->bytes;
  for (int i = 0; i < a->n; i++) pointers[i] = memory + a->offsets[i];
  cudnnBackendDescriptor_t pack;
  check_cudnn(cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack),
              "creating arguments");
  check_cudnn(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
                                       a->n, a->uids),
              "naming arguments");
  check_cudnn(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                       CUDNN_TYPE_VOID_PTR, a->n, pointers),
              "setting arguments");
  check_cudnn(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
                                       1, &workspace),
              "setting the workspace");
  check_cudnn(cudnnBackendFinalize(pack), "finalizing arguments");
  check_cudnn(cudnnBackendExecute(handle, plan, pack), "running a plan");
  (void)cudnnBackendDestroyDescriptor(pack);
}

/* Loads and runs the plans of the file; returns how many there are. */
static size_t run_all(cudnnHandle_t handle, json_t *tasks) {
  size_t n = 0, index;
  json_t *task;
  const char **payloads = calloc(json_array_size(tasks) + 1, sizeof(*payloads));
  if (!payloads) fail("host memory", "out of it");
  json_array_foreach(tasks, index, task) {
    json_t *candidate = json_object_get(task, "candidate");
    const char *payload = json_string_value(json_object_get(candidate, "payload"));
    if (payload && strstr(payload, "operationGraph")) payloads[n++] = payload;
  }
  cudnnBackendDescriptor_t *plans = calloc(n + 1, sizeof(cudnnBackendDescriptor_t));
  arguments *args = calloc(n + 1, sizeof(*args));
  if (!plans || !args) fail("host memory", "out of it");
  int64_t bytes = 0;
  for (size_t i = 0; i < n; i++) {
    plans[i] = load_plan(handle, payloads[i]);
    args[i] = read_arguments(payloads[i]);
    int64_t workspace = 0, count = 0;
    check_cudnn(cudnnBackendGetAttribute(plans[i], CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                         CUDNN_TYPE_INT64, 1, &count, &workspace),
                "asking for a workspace size");
    if (args[i].bytes + workspace > bytes) bytes = args[i].bytes + workspace;
  }
  char *memory = NULL;
  check_cuda(cudaMalloc((void **)&memory, (size_t)(bytes ? bytes : 1)), "allocating");
  for (size_t i = 0; i < n; i++) run_plan(handle, plans[i], &args[i], memory);
  check_cuda(cudaDeviceSynchronize(), "running the plans");
  free(payloads);
  free(plans);
  free(args);
  return n;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: bare_load plan.json\n");
    return 2;
  }
  double started = process_start();
  json_error_t error;
  json_t *root = json_load_file(argv[1], 0, &error);
  json_t *tasks = json_object_get(root, "tasks");
  if (!json_is_array(tasks)) {
    fprintf(stderr, "bare_load: %s: %s\n", argv[1], root ? "has no tasks" : error.text);
    return 3;
  }
  cudnnHandle_t handle;
  check_cudnn(cudnnCreate(&handle), "creating a handle");
  size_t plans = run_all(handle, tasks);
  double seconds = seconds_since_boot() - started;
  printf("{\"seconds\": %.4f, \"plans\": %zu, \"other_tasks\": %zu}\n", seconds, plans,
         json_array_size(tasks) - plans);
  return 0;
}
