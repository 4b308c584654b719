#include "report/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double cs_policy_view_us(const cs_policy_view *policy) {
  return policy->latency.n > 0 ? policy->latency.median : policy->plan->predicted_us;
}

double cs_policy_view_begin_us(const cs_policy_view *policy) {
  const cs_plan *plan = policy->plan;
  double first = plan->n_tasks > 0 ? plan->tasks[0].start_us : 0;
  for (int p = 1; p < plan->n_tasks; p++) first = fmin(first, plan->tasks[p].start_us);
  return first;
}

double cs_view_longest_us(const cs_view *view) {
  double most = 0;
  for (int i = 0; i < view->n_policies; i++) {
    const cs_policy_view *policy = &view->policies[i];
    most = fmax(most, fmax(policy->planned->span_us, policy->plan->predicted_us));
    if (policy->measured) most = fmax(most, policy->measured->span_us);
  }
  return most;
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

void cs_view_short_name(const char *name, char out[64]) {
  static const char conv[] = ".conv";
  const char *slash = strrchr(name, '/'), *from = slash && slash[1] ? slash + 1 : name;
  const char *dot = strchr(from, '.');
  size_t length = strlen(from), end = strlen(conv);
  if (length > end && strcmp(from + length - end, conv) == 0) length -= end;
  if (dot && dot[1] && (size_t)(dot - from) < length) {
    length -= (size_t)(dot + 1 - from);
    from = dot + 1;
  }
  snprintf(out, 64, "%.*s", (int)(length < 63 ? length : 63), from);
}

bool cs_view_has_sms(const cs_view *view) {
  return view->report->device->unit.registers > 0;
}

const char *cs_view_device_name(const cs_view *view) {
  const char *name = view->report->device->name;
  return name[0] ? name : cs_report_device_name(view->report);
}
