#include "report/view.h"

#include <string.h>

double cs_policy_view_us(const cs_policy_view *policy) {
  return policy->latency.n > 0 ? policy->latency.median : policy->plan->predicted_us;
}

const cs_policy_view *cs_view_main(const cs_view *view) {
  return view->n_policies > 0 ? &view->policies[view->n_policies - 1] : NULL;
}

const cs_policy_view *cs_view_policy(const cs_view *view, const char *name) {
  for (int i = 0; i < view->n_policies; i++) {
    if (strcmp(view->policies[i].name, name) == 0) return &view->policies[i];
  }
  return NULL;
}
