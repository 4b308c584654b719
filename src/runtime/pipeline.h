/* Inside of a pipeline: slots for requests in flight, and where the backend lacks these, requests
 * one after the other. */
#ifndef CONVSCHED_RUNTIME_PIPELINE_H_
#define CONVSCHED_RUNTIME_PIPELINE_H_

#include "runtime/session.h"

typedef struct cs_slot {
  cs_realised realised; /* the session's plan once more */
  cs_transfer *inputs, *outputs;
  bool busy; /* submitted and not waited for */
} cs_slot;

struct cs_pipeline {
  cs_session *session;
  cs_backend *backend;
  cs_slot *slots;
  int n;
  cs_requests *requests; /* NULL: the backend has none */
  bool pixels;           /* the only output leaves the device as 8-bit pixels */
};

/* ---- pipeline.c ---- */
/* USAGE where a request was not waited for: "WHAT: …". */
cs_status cs_pipeline_must_rest(const cs_pipeline *pipeline, const char *what) CS_MUST_USE;
/* USAGE where outputs leave as pixels: "WHAT: …". */
cs_status cs_pipeline_must_give_tensors(const cs_pipeline *pipeline, const char *what) CS_MUST_USE;
/* The inputs of a slot's next requests, f32 row-major; sizes as the session's. */
void cs_slot_set_inputs(const cs_pipeline *pipeline, int slot, const float *const *inputs);
/* Output i that the slot's last request left in host memory, f32 row-major. */
void cs_slot_output(const cs_pipeline *pipeline, int slot, int i, float *out);

/* ---- pipeline_window.c ---- */
/* n requests, number i in slot i % in_flight; requests_burst's meaning. */
cs_status cs_pipeline_burst(const cs_pipeline *pipeline, int in_flight, bool copies, int n,
                            cs_request_times *times) CS_MUST_USE;
/* What the times of lead + timed + tail requests (lead and timed: 1 or more) of `batch` images
 * tell: rates from the end number `lead` (counted as they end) to the end `timed` later, latencies
 * of the timed requests. Leaves host_images_per_s and joules alone. */
cs_status cs_pipeline_rate_of(const cs_request_times *times, int lead, int timed, int tail,
                              int64_t batch, cs_pipeline_rate *out) CS_MUST_USE;

/* ---- pipeline_queue.c: a request at a time, for backends without requests in flight ---- */
cs_status cs_queue_run(const cs_pipeline *pipeline, const cs_slot *slot, bool copies) CS_MUST_USE;
cs_status cs_queue_burst(const cs_pipeline *pipeline, int in_flight, bool copies, int n,
                         cs_request_times *times) CS_MUST_USE;

#endif
