/* The SMs of a simulation, in classes of equals. Part of the SM model; not for other files. */
#ifndef CONVSCHED_SCHEDULER_SM_UNITS_H_
#define CONVSCHED_SCHEDULER_SM_UNITS_H_

#include "scheduler/sm_model.h"

/* Blocks of one launch that started together on every SM of a class. */
typedef struct sm_cohort {
  int launch, stream, blocks; /* blocks: on each SM */
  double left_us;             /* of their time alone */
  double rate;                /* now: share of the pace alone */
  cs_sm_rate slowed_by;       /* where rate < 1 */
  const cs_sm_kernel *kernel;
} sm_cohort;

#define SM_NO_PART (-1)
#define SM_NOT_SPLIT (-2)
typedef struct sm_class {
  int units, n_cohorts;
  int part;     /* that the SMs are of; SM_NO_PART, SM_NOT_SPLIT */
  uint32_t key; /* of launches and blocks: classes that hold the same have the same */
  double load;  /* share of its fullest resource that is taken */
  int free[CS_RESOURCE_COUNT];
} sm_class;

typedef struct sm_units {
  int units, slots; /* SMs; the most cohorts an SM can hold */
  int total[CS_RESOURCE_COUNT];
  double share_of_one[CS_RESOURCE_COUNT]; /* 1 / total */
  int n;                                  /* classes, at most `units` */
  sm_class *classes;
  sm_cohort *cohorts; /* `slots` per class */
} sm_units;

/* The resources of one SM in the order of cs_resource. */
void cs_sm_unit_totals(const cs_unit_limits *unit, int total[CS_RESOURCE_COUNT]);

cs_status cs_sm_units_create(const cs_device_info *device, sm_units *out) CS_MUST_USE;
void cs_sm_units_free(sm_units *units);
void cs_sm_units_clear(sm_units *units, const cs_sm_parts *parts);
/* Places up to `wanted` blocks of launch `index`, whole clusters only; returns how many. */
int64_t cs_sm_units_place(sm_units *units, int index, const cs_sm_launch *launch, int64_t wanted);
/* Makes one class of classes that hold the same. */
void cs_sm_units_merge(sm_units *units);
/* Sets every cohort's rate. */
void cs_sm_units_share(sm_units *units, const cs_sm_constants *constants);
/* Microseconds until the next cohort ends; INFINITY: nothing runs. */
double cs_sm_units_next(const sm_units *units);
/* Lets `us` pass; finished[launch] grows by the blocks that end. */
void cs_sm_units_advance(sm_units *units, double us, int64_t *finished);
/* Adds what `us` of the present state mean for a timeline; `waiting`: the launch at the head of the
 * queue, NULL: none. */
void cs_sm_units_account(const sm_units *units, double us, const cs_sm_launch *waiting,
                         cs_sm_timeline *timeline);

static inline sm_cohort *sm_cohorts_of(const sm_units *units, int class_index) {
  return units->cohorts + (size_t)class_index * (size_t)units->slots;
}

#endif
