#include "backend/cuda/cudnn_way.h"

#include <string.h>

#define STAGING_ALIGNMENT 256

static const struct {
  const char *family;
  cs_cudnn_way way;
} ways[] = {
    {"cudnn.graph", {false, false, false}},
    {"cudnn.graph+epilogue", {false, true, false}},
    {"cudnn.graph.dense", {false, false, true}},
    {"cudnn.graph.dense+epilogue", {false, true, true}},
    {"cudnn.legacy", {true, true, false}},
    {"cudnn.legacy.dense", {true, true, true}},
};
#define N_WAYS (sizeof ways / sizeof ways[0])

const char *cs_cudnn_family(cs_cudnn_way way) {
  bool epilogue = way.legacy || way.epilogue;
  for (size_t i = 0; i < N_WAYS; i++) {
    const cs_cudnn_way *w = &ways[i].way;
    if (w->legacy == way.legacy && w->epilogue == epilogue && w->dense == way.dense) {
      return ways[i].family;
    }
  }
  return "cudnn";
}

bool cs_cudnn_way_parse(const char *id, cs_cudnn_way *out, const char **name) {
  const char *colon = strchr(id, ':');
  for (size_t i = 0; colon && i < N_WAYS; i++) {
    size_t length = strlen(ways[i].family);
    if (length != (size_t)(colon - id) || memcmp(id, ways[i].family, length) != 0) continue;
    *out = ways[i].way;
    *name = colon + 1;
    return true;
  }
  return false;
}

cs_cudnn_problem cs_cudnn_way_problem(cs_cudnn_way way, const cs_cudnn_problem *problem) {
  cs_cudnn_problem asked = way.epilogue ? cs_cudnn_problem_bare(problem) : *problem;
  cs_cudnn_problem dense;
  return way.dense && cs_cudnn_problem_dense(&asked, &dense) ? dense : asked;
}

int64_t cs_cudnn_way_staging(cs_cudnn_way way, const cs_cudnn_problem *problem) {
  if (!way.dense) return 0;
  return cs_round_up(cs_cudnn_problem_output_bytes(problem), STAGING_ALIGNMENT);
}
