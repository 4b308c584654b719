/* What a session's search found out beside its plan: which blocks are worth their streams, and how
 * the result compares with every policy. Kept in memory for the session; empty where nothing was
 * searched. */
#ifndef CONVSCHED_RUNTIME_SEARCH_REPORT_H_
#define CONVSCHED_RUNTIME_SEARCH_REPORT_H_

#include "base/base.h"

#define CS_SEARCH_CONFIDENCE 0.95 /* of intervals */

/* A paired ratio of times: the median and a confidence interval of it. */
typedef struct cs_ratio {
  double median, low, high;
  int samples; /* 0: not compared */
} cs_ratio;

/* A block of the best configuration that uses several streams (or merged launches), beside its
 * sequential form. */
typedef struct cs_fallback {
  char *first, *last; /* names of its tasks, in program order */
  int tasks, streams;
  cs_ratio gain;  /* time of the schedule with its sequential form / with its concurrent one */
  bool fell_back; /* in the plan that came of the search it is sequential */
  int window;     /* of the search */
  /* What keeps its kernels apart, of the pair that can overlap longest (scheduler/explain.h). */
  char limiter[16]; /* "": not known */
  char *pair[2];    /* names; NULL: no two of its tasks may run together */
} cs_fallback;

/* The best of the search beside another plan, at the end. */
typedef struct cs_comparison {
  char *name;     /* a policy, "earlier search" */
  bool same;      /* it is the same configuration: nothing to compare */
  cs_ratio ratio; /* its time / that of the best then */
  bool took_over; /* it was no slower, and became the best of those behind */
} cs_comparison;

typedef struct cs_search_report {
  bool searched;
  cs_fallback *fallbacks;
  int n_fallbacks;
  int untried; /* blocks of several streams for which there was no time or room */
  cs_comparison *comparisons;
  int n_comparisons;
  size_t fallbacks_capacity, comparisons_capacity;
} cs_search_report;
/* Add one with copies of the names; everything else is zero. */
cs_status cs_search_report_fallback(cs_search_report *report, const char *first, const char *last,
                                    cs_fallback **out) CS_MUST_USE;
cs_status cs_search_report_comparison(cs_search_report *report, const char *name,
                                      cs_comparison **out) CS_MUST_USE;
void cs_search_report_free(cs_search_report *report);
/* Sets "fallbacks" and "comparisons" of an object where anything was searched; NO_MEMORY. */
struct json_t;
cs_status cs_search_report_json(const cs_search_report *report, struct json_t *into) CS_MUST_USE;

#endif
