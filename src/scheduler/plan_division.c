/* `micro_batches` of `convsched.plan/1`: lists of parts, each with the nodes that it divides. */
#include "scheduler/plan_division.h"

#include <stdio.h>
#include <string.h>

#include "graph/op_family.h"
#include "scheduler/member.h"

static const char *const list_keys[] = {"parts", "nodes"};

/* ---- Writing ---- */

static json_t *parts_json(const cs_parts *parts) {
  json_t *array = json_array();
  for (int i = 0; array && i < parts->n; i++) {
    json_array_append_new(array, json_integer(parts->sizes[i]));
  }
  return array;
}

static json_t *nodes_json(const cs_division *division, const cs_graph *graph, int list) {
  json_t *array = json_array();
  for (int i = 0; array && i < division->n_nodes; i++) {
    if (division->list_of[i] != list) continue;
    json_array_append_new(array, json_string(graph->nodes[i].name));
  }
  return array;
}

json_t *cs_division_json(const cs_division *division, const cs_graph *graph) {
  json_t *lists = json_array();
  for (int l = 0; lists && l < division->n_lists; l++) {
    json_t *nodes = nodes_json(division, graph, l);
    if (json_array_size(nodes) == 0) { /* of nodes that were divided otherwise later */
      json_decref(nodes);
      continue;
    }
    json_array_append_new(
        lists, json_pack("{s:o, s:o}", "parts", parts_json(&division->lists[l]), "nodes", nodes));
  }
  return lists;
}

/* ---- Reading ---- */

static cs_status read_sizes(json_t *list, const char *path, int64_t *sizes, int *n) {
  json_t *parts = json_object_get(list, "parts"), *value;
  size_t i;
  if (!json_is_array(parts)) return cs_member_wrong(path, "parts", parts, "an array");
  if (json_array_size(parts) < 2 || json_array_size(parts) > CS_MOST_PARTS)
    return cs_error(CS_CODE_BAD_INPUT, "%s.parts: found %zu parts, wanted 2 to %d", path,
                    json_array_size(parts), CS_MOST_PARTS);
  *n = (int)json_array_size(parts);
  json_array_foreach(parts, i, value) {
    char found[CS_TEXT_SIZE];
    if (!json_is_integer(value) || json_integer_value(value) < 1)
      return cs_error(CS_CODE_BAD_INPUT, "%s.parts[%zu]: found %s, wanted batch entries, 1 or more",
                      path, i, cs_json_found(value, found));
    sizes[i] = json_integer_value(value);
  }
  return CS_OK;
}

static int find_node(const cs_graph *graph, const char *name) {
  for (int i = 0; name && i < graph->n_nodes; i++) {
    if (strcmp(graph->nodes[i].name, name) == 0) return i;
  }
  return -1;
}

static cs_status read_nodes(json_t *list, const char *path, const cs_graph *graph,
                            const int64_t *sizes, int n, cs_division *division) {
  json_t *nodes = json_object_get(list, "nodes"), *value;
  size_t i;
  if (!json_is_array(nodes)) return cs_member_wrong(path, "nodes", nodes, "an array");
  json_array_foreach(nodes, i, value) {
    const char *name = json_string_value(value);
    int node = find_node(graph, name);
    char found[CS_TEXT_SIZE];
    if (node < 0)
      return cs_error(CS_CODE_BAD_INPUT,
                      "%s.nodes[%zu]: found %s, wanted a node of the graph after passes", path, i,
                      cs_json_found(value, found));
    if (cs_division_parts(division, node))
      return cs_error(CS_CODE_BAD_INPUT, "%s.nodes[%zu]: found \"%s\" again", path, i, name);
    CS_RETURN_IF_ERROR(cs_annotate(cs_division_set(division, graph, node, sizes, n), "%s: ", path));
  }
  return CS_OK;
}

cs_status cs_division_from_json(json_t *lists, const cs_graph *graph, cs_division **out) {
  cs_status st = CS_OK;
  json_t *list;
  size_t i;
  *out = NULL;
  cs_division *division = NULL;
  if (!json_is_array(lists)) return cs_member_wrong("$", "micro_batches", lists, "an array");
  CS_TRY(st, cs_division_create(graph, &division), done);
  json_array_foreach(lists, i, list) {
    char path[40];
    int64_t sizes[CS_MOST_PARTS];
    int n = 0;
    snprintf(path, sizeof path, "$.micro_batches[%zu]", i);
    CS_TRY(st, cs_member_keys(list, path, list_keys, sizeof list_keys / sizeof *list_keys, 0),
           done);
    CS_TRY(st, read_sizes(list, path, sizes, &n), done);
    CS_TRY(st, read_nodes(list, path, graph, sizes, n, division), done);
  }
  *out = division, division = NULL;
done:
  cs_division_destroy(division);
  return st;
}
