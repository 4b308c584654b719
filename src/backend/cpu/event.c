#include "backend/cpu/event.h"

#include "base/base.h"

static inline void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/* The store and the look at `sleepers`, and a sleeper's increment and its look at `value`, are all
 * sequentially consistent: one of the two threads sees the other. */
void cpu_event_set(cpu_gate *gate, cpu_event *event, unsigned value) {
  atomic_store(&event->value, value);
  if (atomic_load(&event->sleepers) == 0) return;
  pthread_mutex_lock(&gate->mutex);
  pthread_cond_broadcast(&gate->changed);
  pthread_mutex_unlock(&gate->mutex);
}

void cpu_event_wait(cpu_gate *gate, cpu_event *event, unsigned wanted) {
  if (atomic_load_explicit(&event->value, memory_order_acquire) == wanted) return;
  if (gate->spin_seconds > 0) {
    double until = cs_now_seconds() + gate->spin_seconds;
    do {
      for (int i = 0; i < 64; i++) {
        if (atomic_load_explicit(&event->value, memory_order_acquire) == wanted) return;
        pause_briefly();
      }
    } while (cs_now_seconds() < until);
  }
  pthread_mutex_lock(&gate->mutex);
  atomic_fetch_add(&event->sleepers, 1);
  while (atomic_load(&event->value) != wanted) pthread_cond_wait(&gate->changed, &gate->mutex);
  atomic_fetch_sub(&event->sleepers, 1);
  pthread_mutex_unlock(&gate->mutex);
}
