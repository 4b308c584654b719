/* A number that threads wait for: spinning for as long as a hand-over between busy threads takes,
 * then asleep. Thread-safe. */
#ifndef CONVSCHED_BACKEND_CPU_EVENT_H_
#define CONVSCHED_BACKEND_CPU_EVENT_H_

#include <pthread.h>
#include <stdatomic.h>

/* What sleepers of all events of a schedule share. */
typedef struct cpu_gate {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  double spin_seconds; /* 0 where threads outnumber cores */
} cpu_gate;

typedef struct cpu_event {
  atomic_uint value;
  atomic_int sleepers;
} cpu_event;

void cpu_event_set(cpu_gate *gate, cpu_event *event, unsigned value);
/* Until the value is `wanted`. */
void cpu_event_wait(cpu_gate *gate, cpu_event *event, unsigned wanted);

#endif
