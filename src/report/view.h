/* What a report's page and its figures are drawn from: a profile, and the plans of one or more
 * policies as they were predicted, measured and traced. Everything is borrowed. Pure data. */
#ifndef CONVSCHED_REPORT_VIEW_H_
#define CONVSCHED_REPORT_VIEW_H_

#include "report/chart.h"
#include "report/compare.h"
#include "report/page.h"
#include "report/report.h"
#include "report/timeline.h"
#include "scheduler/policy.h"

typedef struct cs_policy_view {
  const char *name;
  const cs_plan *plan;
  const cs_program *program;
  const cs_timeline *planned;
  const cs_timeline *measured;     /* NULL: nothing was traced */
  const char *not_traced;          /* why not; NULL: it was, or the view tells why none was */
  int traced_runs;                 /* of which `measured` is the one of the median span */
  cs_stats latency;                /* n 0: not measured */
  cs_median_interval interval;     /* 95%, of `latency` */
  const cs_bounds *bounds;         /* NULL: not known */
  const cs_plan_bytes *sequential; /* with the same choices; NULL: not known */
  const json_t *explanation;       /* convsched.explanation/1; NULL: not known */
} cs_policy_view;
/* Microseconds: the median measured, or what is predicted. */
double cs_policy_view_us(const cs_policy_view *policy);
/* When the plan's first task starts, microseconds: figures of predicted times begin there. */
double cs_policy_view_begin_us(const cs_policy_view *policy);

typedef struct cs_view {
  const cs_report_input *report;
  const cs_report_nodes *nodes;   /* NULL: nothing of them was measured, */
  const char *no_nodes;           /* for this reason */
  const cs_policy_view *policies; /* the baseline first; what the page is about last */
  int n_policies;
  const char *no_plans;     /* why there are none */
  const char *not_measured; /* why latencies are predictions; NULL: they are measured */
  const char *not_traced;   /* why no policy was traced; NULL: they were, or tell themselves */
  const cs_records *peers;  /* NULL: no file was given */
  const char *measure, *trace, *bench; /* commands that give what is missing */
  json_t *environment;                 /* label → text */
} cs_view;
/* A node's name where its block is seen, too: "inception_3a/3x3" → "3x3", "Mixed_5b.branch1x1.conv"
 * → "branch1x1". */
void cs_view_short_name(const char *name, char out[64]);
/* The longest of all policies' timelines, microseconds. */
double cs_view_longest_us(const cs_view *view);
/* NULL: there are no plans. */
const cs_policy_view *cs_view_main(const cs_view *view);
const cs_policy_view *cs_view_policy(const cs_view *view, const char *name);

/* ---- Candidates (candidates.c) ---- */

typedef struct cs_view_candidate {
  const cs_report_op *op;
  const cs_record *record;
  cs_demand demand;
  bool chosen; /* the main policy's plan runs a task with it */
} cs_view_candidate;
/* Nodes that are the same operations in all layouts, and what was measured of them. */
typedef struct cs_view_group {
  const cs_report_node *node;    /* the first of them */
  char *nodes;                   /* names: "3a/1x1, 3b/1x1 and 2 more" */
  cs_view_candidate *candidates; /* by time; rejected ones are not among them */
  int n, rejected, without_kernels;
} cs_view_group;
typedef struct cs_view_candidates {
  cs_view_group *groups; /* in the order of the graph */
  int n_groups;
  int n, rejected, without_kernels; /* of all */
} cs_view_candidates;
cs_status cs_view_candidates_of(const cs_view *view, cs_view_candidates *out) CS_MUST_USE;
void cs_view_candidates_free(cs_view_candidates *candidates);
/* Which of the colours of points a family has (0 … 5), and its name for a legend. */
int cs_family_colour(const char *family);
const char *cs_family_name(int colour); /* NULL: no such colour */

/* ---- Figures (figures.c) ---- */

/* NOT_FOUND: what it is drawn from is not there; the message says why and what gives it. */
typedef struct cs_figure {
  const char *name, *title;
  cs_status (*draw)(const cs_view *view, const char *style, cs_strbuf *out);
  cs_status (*tabulate)(const cs_view *view, cs_table *out); /* its data; to be freed in any case */
} cs_figure;
/* Of all; *count of them; static. */
const char *const *cs_figure_names(int *count);
/* USAGE with near names where there is none of the name. */
cs_status cs_figure_find(const char *name, const cs_figure **out) CS_MUST_USE;

/* Those that are drawn for one policy at a time. `suffix` makes ids unique on a page. */
cs_status cs_draw_gantt(const cs_view *view, const cs_policy_view *policy,
                        const cs_timeline *timeline, double most_us, const char *style,
                        cs_strbuf *out) CS_MUST_USE;
cs_status cs_draw_sm_use(const cs_view *view, const cs_policy_view *policy,
                         const cs_timeline *timeline, double most_us, const char *style,
                         cs_strbuf *out) CS_MUST_USE;
cs_status cs_draw_arena(const cs_view *view, const cs_policy_view *policy, const char *style,
                        cs_strbuf *out) CS_MUST_USE;
cs_status cs_draw_graph(const cs_policy_view *policy, const char *style,
                        cs_strbuf *out) CS_MUST_USE;
/* One of the three of a scatter. */
typedef enum cs_scatter {
  CS_SCATTER_WORKSPACE,
  CS_SCATTER_REGISTERS,
  CS_SCATTER_SHARED,
  CS_SCATTER_COUNT
} cs_scatter;
cs_status cs_draw_scatter(const cs_view_candidates *candidates, cs_scatter which, const char *style,
                          cs_strbuf *out) CS_MUST_USE;
cs_status cs_draw_policies(const cs_view *view, const char *style, cs_strbuf *out) CS_MUST_USE;
cs_status cs_draw_peers(const cs_view *view, const char *style, cs_strbuf *out) CS_MUST_USE;

/* "NVIDIA H200": of which devices the records are; free() releases. */
cs_status cs_view_peer_devices(const cs_view *view, char **out) CS_MUST_USE;

cs_status cs_tabulate_gantt(const cs_view *view, cs_table *out) CS_MUST_USE;
cs_status cs_tabulate_sm_use(const cs_view *view, cs_table *out) CS_MUST_USE;
cs_status cs_tabulate_arena(const cs_view *view, cs_table *out) CS_MUST_USE;
cs_status cs_tabulate_graph(const cs_view *view, cs_table *out) CS_MUST_USE;
cs_status cs_tabulate_scatter(const cs_view *view, cs_table *out) CS_MUST_USE;
cs_status cs_tabulate_policies(const cs_view *view, cs_table *out) CS_MUST_USE;
cs_status cs_tabulate_peers(const cs_view *view, cs_table *out) CS_MUST_USE;

/* As it calls itself, else as the profile does. */
const char *cs_view_device_name(const cs_view *view);
bool cs_view_has_sms(const cs_view *view); /* the device has SMs, and what one has is known */
/* Whether an operation's tasks can be told by SM resources: the device has them, kernels are known.
 */
bool cs_view_has_sm_use(const cs_view *view, const cs_timeline *timeline);
/* Of the device while these kernels run, 0 … (more than 1: blocks wait for each other). */
typedef struct cs_sm_use {
  double us;   /* from here to the next */
  int unknown; /* kernels that run, too, of which it is not known: they count as nothing */
  double share[CS_RESOURCE_COUNT];
} cs_sm_use;
cs_status cs_sm_use_of(const cs_device_info *device, const cs_timeline *timeline, cs_sm_use **out,
                       int *n) CS_MUST_USE;

/* ---- The page (verdict.c, page_candidates.c, report_page.c) ---- */

/* Writes what a NOT_FOUND says in place of what is not there; other errors stay. Consumes `st`. */
cs_status cs_write_missing(cs_status st, const char *command, cs_html *page) CS_MUST_USE;
/* The figure, which was drawn with status `st`, or that it is missing; releases `svg`. */
cs_status cs_write_figure(cs_status st, cs_strbuf *svg, const char *caption, bool zoom,
                          const char *command, cs_html *page) CS_MUST_USE;
/* The section of candidates; NULL: there are none. */
cs_status cs_write_candidates(const cs_view *view, const cs_view_candidates *candidates,
                              cs_html *page) CS_MUST_USE;

/* Cards and sentences: latency, gain, what bounds it, what keeps kernels apart, how good the
 * prediction was. */
void cs_write_verdict(const cs_view *view, cs_html *page);
/* free() releases. */
cs_status cs_report_page(const cs_view *view, char **out) CS_MUST_USE;

#endif
