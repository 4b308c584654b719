#include "backend/cuda/exec.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cuda/columns_exec.h"
#include "backend/cuda/cudnn_engines.h"
#include "backend/cuda/winograd_exec.h"

/* A stored plan saves building the operation graph; where cuDNN no longer takes it, engine and
 * knobs say the same. */
static cs_status prepare_graph(cs_exec *exec, const char *engine, const char *payload) {
  cs_cudnn_slot *slot = NULL;
  cs_engine_id id;
  if (!cs_engine_id_parse(engine, &id)) {
    return cs_error(CS_CODE_BAD_INPUT, "'%s' names no cuDNN engine", exec->id);
  }
  CS_RETURN_IF_ERROR(cs_cudnn_acquire(&exec->backend->pool, &slot));
  cs_cudnn_target target = {.handle = slot->handle};
  cs_status st = CS_OK;
  if (payload) {
    st = cs_cudnn_plan_from_json(&target, payload, &exec->plan);
    if (st != CS_OK && cs_status_code(st) == CS_CODE_BAD_INPUT) {
      cs_log(&exec->backend->base.logger, CS_LOG_DEBUG, "%s: %s; building it anew", exec->id,
             cs_status_message(st));
      cs_status_free(st);
      st = CS_OK;
    }
  }
  if (st == CS_OK && !exec->plan) {
    st = cs_cudnn_plan_from_id(&target, &exec->problem, &id, &exec->plan);
  }
  cs_cudnn_release(&exec->backend->pool, slot);
  if (exec->plan) exec->workspace_bytes = exec->staging_bytes + exec->plan->workspace_bytes;
  return st;
}

static cs_status prepare_legacy(cs_exec *exec, const char *algorithm) {
  cs_cudnn_slot *slot = NULL;
  CS_RETURN_IF_ERROR(cs_cudnn_acquire(&exec->backend->pool, &slot));
  cs_status st = cs_cudnn_legacy_create(slot->handle, &exec->problem, algorithm, &exec->legacy);
  cs_cudnn_release(&exec->backend->pool, slot);
  if (st == CS_OK) {
    exec->workspace_bytes = exec->staging_bytes + cs_cudnn_legacy_workspace(exec->legacy);
  }
  return st;
}

static cs_status prepare_cublaslt(cs_exec *exec) {
  cs_cuda_backend *cuda = exec->backend;
  const char *refusal = cs_cublaslt_problem_make(&exec->desc, &exec->product);
  if (refusal) {
    return cs_error(CS_CODE_BAD_INPUT, "'%s' is for products of matrices, and this %s is %s",
                    exec->id, cs_op_name(exec->desc.op), refusal);
  }
  CS_RETURN_IF_ERROR(cs_cublaslt_plan_create(&cuda->cublaslt, &cuda->base.logger, &exec->product,
                                             exec->id, &exec->matmul));
  exec->workspace_bytes = cs_cublaslt_plan_workspace(exec->matmul);
  return CS_OK;
}

/* What cuDNN computes, and what is left for kernels of our own. */
static cs_status plan_way(cs_exec *exec, cs_cudnn_way way) {
  cs_cudnn_problem whole, dense;
  if (!cs_cudnn_problem_make(&exec->desc, &whole)) {
    return cs_error(CS_CODE_BAD_INPUT, "cuDNN cannot express this %s, which '%s' asks for",
                    cs_op_name(exec->desc.op), exec->id);
  }
  if (way.dense && !cs_cudnn_problem_dense(&whole, &dense)) {
    return cs_error(CS_CODE_BAD_INPUT, "'%s' is for outputs that are slices; this one is dense",
                    exec->id);
  }
  exec->epilogue = way.epilogue && cs_cudnn_problem_has_epilogue(&whole);
  exec->problem = cs_cudnn_way_problem(way, &whole);
  exec->staging_bytes = cs_cudnn_way_staging(way, &exec->problem);
  exec->moved = way.dense;
  exec->staged = exec->desc.output;
  for (int i = 0; i < exec->staged.shape.rank; i++) {
    exec->staged.strides[i] = exec->problem.output.strides[i];
  }
  exec->staged.alignment = exec->problem.output.alignment;
  return CS_OK;
}

/* What an id names; the way, and what follows it, where it is cuDNN's. */
static cs_exec_kind kind_of(const char *id, cs_cudnn_way *way, const char **name) {
  if (strncmp(id, CS_CUBLASLT_PREFIX, strlen(CS_CUBLASLT_PREFIX)) == 0) return CS_EXEC_CUBLASLT;
  if (strncmp(id, CS_COLUMNS_PREFIX, strlen(CS_COLUMNS_PREFIX)) == 0) return CS_EXEC_COLUMNS;
  if (strcmp(id, CS_CUDA_SCATTER_ID) == 0) return CS_EXEC_SCATTER;
  if (strncmp(id, CS_WINOGRAD_PREFIX, strlen(CS_WINOGRAD_PREFIX)) == 0) return CS_EXEC_WINOGRAD;
  if (!cs_cudnn_way_parse(id, way, name)) return CS_EXEC_KERNEL;
  return way->legacy ? CS_EXEC_LEGACY : CS_EXEC_GRAPH;
}

bool cs_cuda_begins_early(const cs_backend *backend, const cs_candidate *candidate) {
  cs_cudnn_way way;
  const char *name = NULL;
  return backend->vtable->info(backend)->compute_capability >= CS_CUDA_EARLY_CAPABILITY &&
         kind_of(candidate->id, &way, &name) == CS_EXEC_KERNEL;
}

static cs_status prepare_any(cs_exec *exec, const char *payload) {
  cs_cudnn_way way;
  const char *name = NULL;
  exec->kind = kind_of(exec->id, &way, &name);
  if (exec->kind == CS_EXEC_CUBLASLT) return prepare_cublaslt(exec);
  if (exec->kind == CS_EXEC_COLUMNS) return cs_columns_prepare(exec);
  if (exec->kind == CS_EXEC_SCATTER) return cs_scatter_prepare(exec);
  if (exec->kind == CS_EXEC_WINOGRAD) return cs_winograd_prepare(exec);
  if (exec->kind == CS_EXEC_KERNEL) {
    return cs_cuda_kernel_find(&exec->desc, exec->id, &exec->kernel);
  }
  CS_RETURN_IF_ERROR(plan_way(exec, way));
  return way.legacy ? prepare_legacy(exec, name) : prepare_graph(exec, name, payload);
}

cs_status cs_exec_prepare(cs_backend *backend, const cs_op_desc *desc,
                          const cs_candidate *candidate, cs_exec **out) {
  *out = NULL;
  cs_status st = CS_OK;
  CS_RETURN_IF_ERROR(cs_cuda_enter(cs_cuda(backend)));
  cs_exec *exec = cs_calloc(1, sizeof(*exec));
  if (!exec) return cs_no_memory("a prepared operation", sizeof(*exec));
  exec->backend = cs_cuda(backend);
  exec->desc = *desc;
  CS_TRY(st, cs_strdup_to(candidate->id, &exec->id), done);
  CS_TRY(st, prepare_any(exec, candidate->payload), done);
  cs_exec_plan_weights(exec);
  *out = exec;
  exec = NULL;
done:
  cs_exec_destroy(exec);
  return st;
}

void cs_exec_destroy(cs_exec *exec) {
  if (!exec) return;
  cs_cudnn_plan_destroy(exec->plan);
  cs_cudnn_legacy_destroy(exec->legacy);
  cs_cublaslt_plan_destroy(exec->matmul);
  free(exec->id);
  free(exec);
}

int64_t cs_exec_workspace(const cs_exec *exec) {
  return exec->workspace_bytes;
}

int64_t cs_exec_weight_bytes(const cs_exec *exec) {
  return exec->weight_bytes;
}

/* ---- Binding and launching ---- */

static const void *bias_of(const cs_exec *exec, const cs_launch *launch) {
  if (exec->bias_offset < 0) return NULL;
  return (const char *)launch->weights + exec->bias_offset;
}

static const void *residual_of(const cs_exec *exec, const cs_launch *launch) {
  return exec->desc.has_residual ? launch->inputs[exec->desc.n_inputs - 1] : NULL;
}

/* Where cuDNN writes, and its workspace behind that. */
static void *computed_at(const cs_exec *exec, const cs_launch *launch) {
  return exec->moved ? launch->workspace : launch->output;
}

static void *workspace_of(const cs_exec *exec, const cs_launch *launch) {
  return exec->moved ? (char *)launch->workspace + exec->staging_bytes : launch->workspace;
}

static cs_status bind_graph(const cs_launch *launch, cs_bound *out) {
  const cs_exec *exec = launch->exec;
  int64_t uids[5] = {CS_CUDNN_UID_INPUT, CS_CUDNN_UID_FILTER, CS_CUDNN_UID_OUTPUT};
  const void *pointers[5] = {launch->inputs[0], launch->weights, computed_at(exec, launch)};
  void *workspace = workspace_of(exec, launch);
  int n = 3;
  if (!exec->epilogue && exec->bias_offset >= 0) {
    uids[n] = CS_CUDNN_UID_BIAS;
    pointers[n++] = bias_of(exec, launch);
  }
  if (!exec->epilogue && exec->desc.has_residual) {
    uids[n] = CS_CUDNN_UID_RESIDUAL;
    pointers[n++] = residual_of(exec, launch);
  }
  cs_descriptor d = cs_descriptor_begin(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  cs_descriptor_set(&d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, uids);
  cs_descriptor_set(&d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, pointers);
  cs_descriptor_set(&d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  return cs_descriptor_finish(&d, "a plan's arguments", &out->pack);
}

cs_status cs_bound_create(const cs_launch *launch, cs_bound *out) {
  memset(out, 0, sizeof(*out));
  out->launch = *launch;
  out->launch.name = NULL;
  CS_RETURN_IF_ERROR(cs_strdup_to(launch->name ? launch->name : "", &out->name));
  out->launch.name = out->name;
  cs_status st = CS_OK;
  if (launch->exec->kind == CS_EXEC_GRAPH) st = bind_graph(launch, out);
  if (launch->exec->kind == CS_EXEC_COLUMNS && launch->exec->matmul) {
    st = cs_cublaslt_bind(launch->exec->matmul, NULL, &out->product);
  }
  if (launch->exec->kind == CS_EXEC_CUBLASLT) {
    st = cs_cublaslt_bind(launch->exec->matmul, bias_of(launch->exec, launch), &out->product);
  }
  st = cs_annotate(st, "%s: ", out->name);
  if (st != CS_OK) cs_bound_clear(out);
  return st;
}

static cs_cuda_merge_part part_of(const cs_bound *bound) {
  const cs_launch *launch = &bound->launch;
  return (cs_cuda_merge_part){&launch->exec->desc, launch->inputs, launch->weights, launch->output};
}

cs_status cs_bound_join(cs_bound *leader, const cs_bound *member) {
  const cs_exec *own = leader->launch.exec, *other = member->launch.exec;
  if (own->kind != CS_EXEC_KERNEL || other->kind != CS_EXEC_KERNEL ||
      strcmp(own->id, other->id) != 0 || !cs_cuda_kernel_merges(own->kernel.id)) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s (%s) is merged with %s (%s), wanted one kernel that merges", member->name,
                    other->id, leader->name, own->id);
  }
  if (!leader->parts) {
    leader->parts = cs_calloc(CS_CUDA_MERGE_MOST, sizeof(*leader->parts));
    if (!leader->parts) return cs_no_memory("a merged launch", sizeof(*leader->parts));
    leader->parts[leader->n_parts++] = part_of(leader);
  }
  if (leader->n_parts == CS_CUDA_MERGE_MOST) {
    return cs_error(CS_CODE_BAD_INPUT, "%s is merged with %s, which has %d operations already",
                    member->name, leader->name, leader->n_parts);
  }
  leader->parts[leader->n_parts++] = part_of(member);
  return CS_OK;
}

void cs_bound_clear(cs_bound *bound) {
  free(bound->parts);
  bound->parts = NULL;
  cs_descriptor_destroy(&bound->pack);
  cs_cublaslt_unbind(bound->product);
  bound->product = NULL;
  free(bound->name);
  bound->name = NULL;
}

bool cs_bound_needs_cudnn(const cs_bound *bound) {
  cs_exec_kind kind = bound->launch.exec->kind;
  return kind == CS_EXEC_GRAPH || kind == CS_EXEC_LEGACY;
}

bool cs_bound_waits_itself(const cs_bound *bound) {
  return bound->launch.exec->kind == CS_EXEC_KERNEL;
}

/* A MatMul's factors, one of which may be the weights. */
static cs_status launch_cublaslt(const cs_bound *bound, cudaStream_t stream) {
  const cs_launch *launch = &bound->launch;
  const cs_exec *exec = launch->exec;
  const cs_op_desc *desc = &exec->desc;
  const void *a = launch->weights, *b = launch->inputs[0];
  if (desc->op == CS_OP_MATMUL) {
    bool constant = cs_op_has_operand(desc), first = constant && desc->attrs.binary.operand_first;
    if (!constant) a = launch->inputs[1];
    if (first) a = launch->inputs[0], b = launch->weights;
  }
  return cs_cublaslt_launch(exec->matmul, bound->product, a, b, residual_of(exec, launch),
                            launch->output, launch->workspace, stream);
}

static cs_status launch_any(const cs_bound *bound, cs_cudnn_slot *slot, cudaStream_t stream) {
  const cs_launch *launch = &bound->launch;
  const cs_exec *exec = launch->exec;
  if (launch->merged >= 0) return CS_OK;
  if (bound->n_parts > 0) {
    return cs_cuda_kernel_launch_merged(bound->parts, bound->n_parts, exec->kernel.id, stream);
  }
  if (exec->kind == CS_EXEC_KERNEL) {
    return cs_cuda_kernel_launch(&exec->kernel, &exec->desc, launch->inputs, launch->weights,
                                 launch->output, stream);
  }
  if (exec->kind == CS_EXEC_CUBLASLT) return launch_cublaslt(bound, stream);
  if (exec->kind == CS_EXEC_COLUMNS || exec->kind == CS_EXEC_SCATTER) {
    return cs_columns_launch(bound, stream);
  }
  if (exec->kind == CS_EXEC_WINOGRAD) return cs_winograd_launch(bound, stream);
  CS_RETURN_IF_ERROR(cs_cudnn_slot_use(slot, stream));
  if (exec->kind == CS_EXEC_GRAPH) {
    CS_RETURN_IF_ERROR(cs_cudnn_status(
        cudnnBackendExecute(slot->handle, exec->plan->plan, bound->pack), "launching the plan"));
  } else {
    CS_RETURN_IF_ERROR(cs_cudnn_legacy_launch(exec->legacy, slot->handle, launch->inputs[0],
                                              launch->weights, computed_at(exec, launch),
                                              workspace_of(exec, launch)));
  }
  if (exec->epilogue) {
    return cs_cuda_epilogue_launch(&exec->desc, &exec->staged, computed_at(exec, launch),
                                   bias_of(exec, launch), residual_of(exec, launch), launch->output,
                                   stream);
  }
  if (!exec->moved) return CS_OK;
  return cs_cuda_copy_launch(&exec->staged, launch->workspace, &exec->desc.output, launch->output,
                             stream);
}

cs_status cs_bound_launch(const cs_bound *bound, cs_cudnn_slot *slot, cudaStream_t stream) {
  cs_status st = launch_any(bound, slot, stream);
  return st == CS_OK ? st
                     : cs_annotate(st, "%s (%s): ", bound->launch.name, bound->launch.exec->id);
}
