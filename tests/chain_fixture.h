/* A chain, `chain_json` of the including file, beside the session fixture's device and folder. */
#ifndef CONVSCHED_TESTS_CHAIN_FIXTURE_H_
#define CONVSCHED_TESTS_CHAIN_FIXTURE_H_

#include "session_fixture.h"

static cs_graph *chain;

static int open_chain(void **state) {
  int failed = open_all(state);
  if (!failed) assert_ok(cs_graph_parse(chain_json, strlen(chain_json), "chain.json", &chain));
  return failed;
}

static int close_chain(void **state) {
  cs_graph_destroy(chain);
  return close_all(state);
}

#endif
