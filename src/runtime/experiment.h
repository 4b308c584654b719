/* Specifications of experiments, `convsched.experiment/1`: lists for every dimension, whose cross
 * product are the cells that `convsched experiment` measures. Pure but for the files' names. */
#ifndef CONVSCHED_RUNTIME_EXPERIMENT_H_
#define CONVSCHED_RUNTIME_EXPERIMENT_H_

#include <jansson.h>

#include "base/base.h"

#define CS_EXPERIMENT_MOST_CELLS 10000
#define CS_EXPERIMENT_MOST_BYTES ((size_t)4 << 20) /* of a specification's file */

/* A dimension of cells; the order is that in which cells run, the last changes first. */
typedef enum cs_dimension {
  CS_DIMENSION_MODEL,
  CS_DIMENSION_DTYPE,
  CS_DIMENSION_BATCH,
  CS_DIMENSION_FAMILY,
  CS_DIMENSION_WORKSPACE,
  CS_DIMENSION_STREAMS,
  CS_DIMENSION_PARTITION,
  CS_DIMENSION_COUNT
} cs_dimension;
/* Its list's key in a specification ("batches"), and its key in a cell ("batch"). */
const char *cs_dimension_list(cs_dimension axis);
const char *cs_dimension_key(cs_dimension axis);

/* Reads a specification and takes its cross product; models' files lie beside `path`. *out:
 * {"name","title" (or null),"samples","search_seconds","seed","verify","memory_limit",
 *  "families":{NAME:{"allow":[…],"ban":[…]}}, "spec" (as written),
 *  "cells":[{"model" (file's name without folder and extension),"path","dtype","batch","family",
 *   "workspace_limit" (bytes),"streams" (null: the device's default),"partition" (null: as the
 *   policy likes),"policies":[…]}…],
 *  "cases":[{"model","path","dtype","batch","workspace_limit" (the largest)}…],
 *  "profile":{"corun","counters","full"} or null,
 * "tables":[{"table","candidates","nodes","paper"}…]}. Errors: BAD_INPUT (path, JSON path, found,
 * wanted; more cells than CS_EXPERIMENT_MOST_CELLS, with their number). */
cs_status cs_experiment_resolve(const char *path, const char *text, size_t length,
                                json_t **out) CS_MUST_USE;

#endif
