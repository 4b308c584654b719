/* The figures that can be had by themselves. */
#include <string.h>

#include "base/names.h"
#include "report/view.h"

static cs_status no_plans(const cs_view *view) {
  return cs_error(CS_CODE_NOT_FOUND, "%s", view->no_plans);
}

/* What ran, where that is known, else what is predicted. */
static const cs_timeline *timeline_of(const cs_policy_view *policy) {
  return policy->measured ? policy->measured : policy->planned;
}

static cs_status draw_gantt(const cs_view *view, const char *style, cs_strbuf *out) {
  const cs_policy_view *policy = cs_view_main(view);
  if (!policy) return no_plans(view);
  return cs_draw_gantt(view, policy, timeline_of(policy), 0, style, out);
}

static cs_status draw_sm_use(const cs_view *view, const char *style, cs_strbuf *out) {
  const cs_policy_view *policy = cs_view_main(view);
  if (!policy) return no_plans(view);
  if (!cs_view_has_sm_use(view, timeline_of(policy))) {
    return cs_error(CS_CODE_NOT_FOUND,
                    "what kernels take of an SM is not known here: no kernels are recorded, or "
                    "the device has no SMs");
  }
  return cs_draw_sm_use(view, policy, timeline_of(policy), 0, style, out);
}

static cs_status draw_arena(const cs_view *view, const char *style, cs_strbuf *out) {
  const cs_policy_view *policy = cs_view_main(view);
  return policy ? cs_draw_arena(view, policy, style, out) : no_plans(view);
}

static cs_status draw_graph(const cs_view *view, const char *style, cs_strbuf *out) {
  const cs_policy_view *policy = cs_view_main(view);
  return policy ? cs_draw_graph(policy, style, out) : no_plans(view);
}

static cs_status draw_scatter(const cs_view *view, cs_scatter which, const char *style,
                              cs_strbuf *out) {
  cs_view_candidates candidates;
  CS_RETURN_IF_ERROR(cs_view_candidates_of(view, &candidates));
  cs_status st = cs_draw_scatter(&candidates, which, style, out);
  cs_view_candidates_free(&candidates);
  return st;
}

static cs_status draw_workspace(const cs_view *view, const char *style, cs_strbuf *out) {
  return draw_scatter(view, CS_SCATTER_WORKSPACE, style, out);
}

static cs_status draw_registers(const cs_view *view, const char *style, cs_strbuf *out) {
  return draw_scatter(view, CS_SCATTER_REGISTERS, style, out);
}

static cs_status draw_shared(const cs_view *view, const char *style, cs_strbuf *out) {
  return draw_scatter(view, CS_SCATTER_SHARED, style, out);
}

/* X(name, title, how it is drawn, the table of what is behind it) */
#define FIGURES(X)                                                                              \
  X("policies", "latency of each policy", cs_draw_policies, cs_tabulate_policies)               \
  X("gantt", "kernels on streams over time", draw_gantt, cs_tabulate_gantt)                     \
  X("sm-use", "SM resources over time", draw_sm_use, cs_tabulate_sm_use)                        \
  X("scatter", "candidates: time and workspace", draw_workspace, cs_tabulate_scatter)           \
  X("scatter-registers", "candidates: time and registers", draw_registers, cs_tabulate_scatter) \
  X("scatter-shared", "candidates: time and shared memory", draw_shared, cs_tabulate_scatter)   \
  X("arena", "memory over time", draw_arena, cs_tabulate_arena)                                 \
  X("graph", "tasks, blocks and streams", draw_graph, cs_tabulate_graph)                        \
  X("peers", "latency beside other systems", cs_draw_peers, cs_tabulate_peers)

#define FIGURE_NAME(name, title, draw, tabulate) name,
#define FIGURE(name, title, draw, tabulate) {name, title, draw, tabulate},
static const char *const names[] = {FIGURES(FIGURE_NAME)};
static const cs_figure figures[] = {FIGURES(FIGURE)};
#define N_FIGURES (sizeof figures / sizeof figures[0])

const char *const *cs_figure_names(int *count) {
  *count = (int)N_FIGURES;
  return names;
}

cs_status cs_figure_find(const char *name, const cs_figure **out) {
  cs_near near = {.wanted = name};
  char text[1024];
  *out = NULL;
  for (size_t i = 0; i < N_FIGURES; i++) {
    if (strcmp(figures[i].name, name) == 0) {
      *out = &figures[i];
      return CS_OK;
    }
    cs_near_offer(&near, figures[i].name);
  }
  return cs_error(CS_CODE_USAGE, "no figure \"%s\"%s", name,
                  cs_near_text(&near, text, sizeof text));
}
