/* Graphs in tests are written as JSON with single quotes. */
#ifndef CONVSCHED_TESTS_GRAPH_FIXTURE_H_
#define CONVSCHED_TESTS_GRAPH_FIXTURE_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the four above. */
#include <cmocka.h>

#include "graph/program.h"

static inline void assert_ok(cs_status status) {
  if (status != CS_OK) print_error("%s\n", cs_status_message(status));
  assert_true(status == CS_OK);
}

/* Fails unless the code fits and the message holds `part`; releases the status. */
static inline void assert_fails(cs_status status, cs_code code, const char *part) {
  assert_true(status != CS_OK);
  if (cs_status_code(status) != code || !strstr(cs_status_message(status), part)) {
    print_error("message: %s\nwanted:  %s\n", cs_status_message(status), part);
  }
  assert_int_equal(cs_status_code(status), code);
  assert_non_null(strstr(cs_status_message(status), part));
  cs_status_free(status);
}

static inline cs_status parse(const char *text, cs_graph **out) {
  char *copy = strdup(text);
  for (char *p = copy; *p; p++) {
    if (*p == '\'') *p = '"';
  }
  cs_status status = cs_graph_parse(copy, strlen(copy), "t.json", out);
  free(copy);
  return status;
}

/* A graph of one input "x"; `shape`, `nodes` and `outputs` are the insides of JSON arrays. */
static inline cs_status parse_parts(const char *shape, const char *nodes, const char *outputs,
                                    cs_graph **out) {
  size_t size = strlen(shape) + strlen(nodes) + strlen(outputs) + 256;
  char *text = malloc(size);
  snprintf(text, size,
           "{'schema':'convsched.graph/1','name':'t','inputs':[{'name':'x','shape':[%s],"
           "'dtype':'f32'}],'nodes':[%s],'outputs':[%s]}",
           shape, nodes, outputs);
  cs_status status = parse(text, out);
  free(text);
  return status;
}

static inline cs_graph *graph_of(const char *shape, const char *nodes, const char *outputs) {
  cs_graph *graph = NULL;
  assert_ok(parse_parts(shape, nodes, outputs, &graph));
  return graph;
}

static inline cs_graph *passed(const cs_graph *graph, cs_pass_options options,
                               cs_pass_report *report) {
  cs_graph *out = NULL;
  assert_ok(cs_graph_apply_passes(graph, options, report, &out));
  return out;
}

static inline const cs_value *value_of(const cs_graph *graph, const char *name) {
  int index = cs_graph_find_value(graph, name);
  if (index < 0) print_error("no value %s\n", name);
  assert_true(index >= 0);
  return &graph->values[index];
}

static inline void assert_shape(const cs_graph *graph, const char *name, int rank,
                                const int64_t *dims) {
  const cs_value *value = value_of(graph, name);
  assert_int_equal(value->shape.rank, rank);
  for (int i = 0; i < rank; i++) assert_int_equal(value->shape.dims[i], dims[i]);
}

#define CONV(name, input, channels, k)                                                      \
  "{'name':'" name "','op':'Conv','inputs':['" input "'],'attrs':{'out_channels':" channels \
  ",'kernel_shape':[" k "," k "]}}"
#define NODE(name, op, input) "{'name':'" name "','op':'" op "','inputs':['" input "']}"
#define CONCAT(name, inputs) \
  "{'name':'" name "','op':'Concat','inputs':[" inputs "],'attrs':{'axis':1}}"

#endif
