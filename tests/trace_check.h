/* Judges a trace of the fixture's graph with tools/check_trace.py, which shares no code with what
 * makes traces. */
#ifndef CONVSCHED_TESTS_TRACE_CHECK_H_
#define CONVSCHED_TESTS_TRACE_CHECK_H_

#include "session_fixture.h"

static void write_beside(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static bool checker_finds_faults(const char *trace) {
  char path[96], graph[96], command[512];
  snprintf(path, sizeof path, "%s/trace.json", cache_folder);
  snprintf(graph, sizeof graph, "%s/graph.json", cache_folder);
  write_beside(path, trace);
  write_beside(graph, module_json);
  snprintf(command, sizeof command, "python3 %s/tools/check_trace.py %s --graph %s", CS_SOURCE_DIR,
           path, graph);
  return system(command) != 0;
}

#endif
