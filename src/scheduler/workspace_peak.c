/* The most workspace bytes that can be in use at once: the maximum-weight antichain of the plan's
 * partial order. By the weighted form of Dilworth's theorem (Ann. Math. 1950) it equals the sum of
 * the weights less a maximum flow. Position p is two nodes, p.in and p.out:
 *   source → p.out and p.in → sink with capacity workspace(p);
 *   p.out → q.in unbounded for each edge p → q of the order; p.in → p.out unbounded, so that the
 *   edges need not be transitively closed.
 * A minimum cut gives the antichain: positions whose out is reachable from the source and whose in
 * is not. The flow is found by blocking flows (Dinic, 1970). */
#include <stdlib.h>
#include <string.h>

#include "scheduler/internal.h"

#define UNBOUNDED (INT64_MAX / 2)

typedef struct flow_edge {
  int to, next_edge; /* next edge out of the same node, -1: last; edge ^ 1 is the reverse */
  int64_t residual;
} flow_edge;

typedef struct flow_network {
  int n_nodes, source, sink;
  flow_edge *edges;
  int n_edges;
  int *head, *cursor, *level, *queue;
  int *path; /* edges from the source to where the search stands */
} flow_network;

static int node_in(int position) {
  return 2 * position;
}
static int node_out(int position) {
  return 2 * position + 1;
}

static void add_edge(flow_network *net, int from, int to, int64_t capacity) {
  net->edges[net->n_edges] = (flow_edge){to, net->head[from], capacity};
  net->head[from] = net->n_edges++;
  net->edges[net->n_edges] = (flow_edge){from, net->head[to], 0};
  net->head[to] = net->n_edges++;
}

static void network_free(flow_network *net) {
  free(net->edges);
  free(net->head);
  free(net->cursor);
  free(net->level);
  free(net->queue);
  free(net->path);
}

static cs_status network_build(flow_network *net, const cs_plan *plan, int *last_on_stream) {
  int n = plan->n_tasks, n_edges = 0;
  for (int p = 0; p < n; p++) n_edges += 2 * (4 + plan->tasks[p].n_waits);
  net->n_nodes = 2 * n + 2;
  net->source = 2 * n;
  net->sink = 2 * n + 1;
  size_t nodes = (size_t)net->n_nodes;
  net->edges = cs_calloc((size_t)n_edges, sizeof *net->edges);
  net->head = cs_calloc(nodes, sizeof *net->head);
  net->cursor = cs_calloc(nodes, sizeof *net->cursor);
  net->level = cs_calloc(nodes, sizeof *net->level);
  net->queue = cs_calloc(nodes, sizeof *net->queue);
  net->path = cs_calloc(nodes, sizeof *net->path);
  if (!net->edges || !net->head || !net->cursor || !net->level || !net->queue || !net->path)
    return cs_no_memory("the flow network of workspaces", (size_t)n_edges * sizeof *net->edges);
  for (size_t v = 0; v < nodes; v++) net->head[v] = -1;
  for (int s = 0; s < plan->n_streams; s++) last_on_stream[s] = -1;
  for (int p = 0; p < n; p++) {
    const cs_plan_task *task = &plan->tasks[p];
    if (task->workspace_bytes > 0) {
      add_edge(net, net->source, node_out(p), task->workspace_bytes);
      add_edge(net, node_in(p), net->sink, task->workspace_bytes);
    }
    add_edge(net, node_in(p), node_out(p), UNBOUNDED);
    int previous = last_on_stream[task->stream];
    if (previous >= 0) add_edge(net, node_out(previous), node_in(p), UNBOUNDED);
    for (int w = 0; w < task->n_waits; w++)
      add_edge(net, node_out(task->waits[w]), node_in(p), UNBOUNDED);
    last_on_stream[task->stream] = p;
  }
  return CS_OK;
}

/* Breadth-first levels in the residual network; true if the sink is reached. */
static bool network_levels(flow_network *net) {
  for (int v = 0; v < net->n_nodes; v++) net->level[v] = -1;
  int head = 0, tail = 0;
  net->level[net->source] = 0;
  net->queue[tail++] = net->source;
  while (head < tail) {
    int v = net->queue[head++];
    for (int e = net->head[v]; e >= 0; e = net->edges[e].next_edge) {
      int to = net->edges[e].to;
      if (net->edges[e].residual > 0 && net->level[to] < 0) {
        net->level[to] = net->level[v] + 1;
        net->queue[tail++] = to;
      }
    }
  }
  return net->level[net->sink] >= 0;
}

/* Pushes what the path carries; returns how many of its edges stay usable from the source on. */
static int push_path(flow_network *net, int length, int64_t *flow) {
  int64_t amount = UNBOUNDED;
  for (int i = 0; i < length; i++) amount = cs_min_i64(amount, net->edges[net->path[i]].residual);
  int keep = length;
  for (int i = length - 1; i >= 0; i--) {
    net->edges[net->path[i]].residual -= amount;
    net->edges[net->path[i] ^ 1].residual += amount;
    if (net->edges[net->path[i]].residual == 0) keep = i;
  }
  *flow += amount;
  return keep;
}

/* A blocking flow of the current levels. */
static int64_t network_block(flow_network *net) {
  memcpy(net->cursor, net->head, (size_t)net->n_nodes * sizeof *net->cursor);
  int64_t flow = 0;
  int length = 0, v = net->source;
  for (;;) {
    if (v == net->sink) {
      length = push_path(net, length, &flow);
      v = length ? net->edges[net->path[length - 1]].to : net->source;
      continue;
    }
    int e = net->cursor[v];
    if (e < 0) {
      if (length == 0) return flow;
      int into = net->path[--length];
      v = net->edges[into ^ 1].to;
      net->cursor[v] = net->edges[net->cursor[v]].next_edge;
      continue;
    }
    if (net->edges[e].residual > 0 && net->level[net->edges[e].to] == net->level[v] + 1) {
      net->path[length++] = e;
      v = net->edges[e].to;
    } else {
      net->cursor[v] = net->edges[e].next_edge;
    }
  }
}

cs_status cs_plan_heaviest_antichain(const cs_plan *plan, bool *members, int64_t *weight) {
  cs_status st = CS_OK;
  flow_network net = {0};
  int64_t total = 0, flow = 0;
  int *last = cs_calloc((size_t)plan->n_streams, sizeof *last);
  if (!last) return cs_no_memory("streams", (size_t)plan->n_streams * sizeof *last);
  for (int p = 0; p < plan->n_tasks; p++)
    if (plan->tasks[p].workspace_bytes < 0 ||
        !cs_add_i64(total, plan->tasks[p].workspace_bytes, &total) || total >= UNBOUNDED / 2)
      CS_FAIL(st, done, CS_CODE_INTERNAL, "the workspace of plan position %d is out of range", p);
  CS_TRY(st, network_build(&net, plan, last), done);
  while (network_levels(&net)) flow += network_block(&net);
  *weight = total - flow;
  for (int p = 0; p < plan->n_tasks; p++)
    members[p] = plan->tasks[p].workspace_bytes > 0 && net.level[node_out(p)] >= 0 &&
                 net.level[node_in(p)] < 0;
done:
  network_free(&net);
  free(last);
  return st;
}

cs_status cs_plan_workspace_peak(const cs_plan *plan, int64_t *out) {
  bool *members = cs_calloc((size_t)plan->n_tasks, sizeof *members);
  if (!members) return cs_no_memory("an antichain", (size_t)plan->n_tasks);
  cs_status st = cs_plan_heaviest_antichain(plan, members, out);
  free(members);
  return st;
}
