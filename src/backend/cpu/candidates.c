/* What can run an operation: oneDNN's implementations in the first way that has a fast one, own
 * loops where oneDNN has none. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/reference/reference.h"

static int64_t stage_bytes(const cs_tensor_desc *tensor) {
  return cs_round_up(cs_tensor_span_bytes(tensor), 256);
}

/* Bytes of staged tensors; where each lies, if `offsets` is given. */
static int64_t stage_layout(const cs_op_desc *desc, const cpu_variant *variant, int64_t *offsets) {
  int64_t bytes = 0;
  for (int i = 0; i < desc->n_inputs; i++) {
    if (offsets) offsets[i] = bytes;
    if (variant->staged_inputs[i]) bytes += stage_bytes(&variant->core.inputs[i]);
  }
  if (offsets) offsets[CS_MAX_OP_INPUTS] = bytes;
  if (variant->staged_output) bytes += stage_bytes(&variant->core.output);
  return bytes;
}

/* ---- Enumeration ---- */

typedef struct enumeration {
  cpu_backend *backend;
  const cs_op_desc *desc;
  const cs_enumerate_options *options;
  int threads;
  cs_candidate_list *out;
  int fast; /* admitted, oneDNN's own reference loops not counted */
} enumeration;

static cs_status add(enumeration *e, const cpu_variant *variant, const char *family,
                     const char *name, int64_t scratchpad, uint32_t notes) {
  cs_status st = CS_OK;
  cs_candidate candidate = {.deterministic = true, .threads = e->threads, .notes = notes};
  candidate.workspace_bytes = stage_layout(e->desc, variant, NULL) + scratchpad;
  candidate.fused = !variant->unfused;
  if (candidate.workspace_bytes > e->options->workspace_limit) return CS_OK;
  char id[192];
  snprintf(id, sizeof id, "%s%s/t%d%s", family, name, e->threads, variant->suffix);
  CS_TRY(st, cs_strdup_to(id, &candidate.id), done);
  CS_TRY(st, cs_strdup_to(strcmp(family, "onednn:") == 0 ? "onednn" : "cpu", &candidate.family),
         done);
  CS_TRY(st, cs_candidate_list_add(e->out, &candidate), done);
done:
  cs_candidate_clear(&candidate);
  return st;
}

/* GEMM lowering of oneDNN 2.6.3 adds a tensor post-operation wrongly. Kernels for older instruction
 * sets (also behind a repeated name) and GEMM lowering lose to what comes before them. */
static bool worth_measuring(const enumeration *e, const cpu_variant *variant, const char *name,
                            int admitted) {
  if (variant->core.has_residual && strstr(name, "gemm")) return false;
  if (e->options->full || admitted == 0) return true;
  bool older =
      strstr(name, "sse41") || strchr(name, '#') || (dnn_lanes() == 16 && strstr(name, "avx2"));
  return !older && !strstr(name, "gemm");
}

static cs_status add_variant(enumeration *e, const cpu_variant *variant, bool reference) {
  cs_status st = CS_OK;
  dnn_implementation *items = NULL;
  int count = 0, admitted = 0;
  CS_TRY(st, dnn_implementations(e->backend->engine, &variant->core, &items, &count), done);
  for (int i = 0; i < count; i++) {
    if (items[i].reference != reference || !worth_measuring(e, variant, items[i].name, admitted))
      continue;
    size_t before = e->out->n;
    CS_TRY(st,
           add(e, variant, "onednn:", items[i].name, items[i].scratchpad_bytes,
               items[i].winograd ? CS_NOTE_WINOGRAD : 0),
           done);
    if (e->out->n == before) continue;
    admitted++;
    if (!reference) e->fast++;
    if (reference) break;
  }
done:
  free(items);
  return st;
}

static void loop_name(cs_op op, char *out, size_t size) {
  snprintf(out, size, "cpu.%s", cs_op_name(op));
  for (char *c = out; *c; c++) *c = (char)tolower((unsigned char)*c);
}

typedef bool (*takes_fn)(const cs_op_desc *desc);

/* The first way that forms of our own take. */
static bool own_variant(const cs_op_desc *desc, takes_fn takes, cpu_variant *out) {
  for (int i = 0; cpu_variant_get(desc, i, out); i++) {
    if (out->applies && out->images == 1 && takes(&out->core)) return true;
  }
  return false;
}

/* "cpu.convtranspose_gather" */
static void form_name(cs_op op, const char *form, char *out, size_t size) {
  char loop[48];
  loop_name(op, loop, sizeof loop);
  snprintf(out, size, "%s_%s", loop, form);
}

static cs_status add_transposed(enumeration *e) {
  cpu_variant variant;
  if (!own_variant(e->desc, cpu_transposed_takes, &variant)) return CS_OK;
  for (int form = CPU_TRANSPOSED_NONE + 1; form < CPU_TRANSPOSED_FORMS; form++) {
    char name[64];
    if (form == CPU_TRANSPOSED_SCATTER) continue; /* a baseline */
    form_name(CS_OP_CONV_TRANSPOSE, cpu_transposed_name(form), name, sizeof name);
    CS_RETURN_IF_ERROR(
        add(e, &variant, name, "", cpu_transposed_workspace(&variant.core, form), 0));
  }
  return CS_OK;
}

/* On as many threads as others, and on one: as a plain program is. */
static cs_status add_baseline(enumeration *e, takes_fn takes, const char *form) {
  cpu_variant variant;
  char name[64];
  int threads = e->threads;
  cs_status st = CS_OK;
  form_name(e->desc->op, form, name, sizeof name);
  if (!own_variant(e->desc, takes, &variant) || !cs_baseline_is_wanted(e->options, name)) return st;
  for (int sequential = 0; sequential < 2 && st == CS_OK; sequential++) {
    e->threads = sequential ? 1 : threads;
    st = add(e, &variant, name, "", 0, 0);
  }
  e->threads = threads;
  return st;
}

/* The first way an own loop takes: as it is where everything is f32 (a Copy always), else staged.
 */
static bool loop_variant(const cs_op_desc *desc, cpu_variant *out) {
  for (int i = 0; cpu_variant_get(desc, i, out); i++) {
    if (!cpu_loop_exists(&out->core)) continue; /* the unfused ways have no residual */
    if (desc->op == CS_OP_COPY && i == 0) {
      out->core = *desc;
      return true;
    }
    if (out->applies && out->images == 1) return true;
  }
  return false;
}

/* Operands that are broadcast: oneDNN takes few of them as they lie. */
static bool repeats(const cs_op_desc *desc) {
  if (!cs_op_is_binary(desc->op)) return false;
  for (int i = 0; i < desc->n_inputs; i++)
    if (!cs_shape_equal(&desc->inputs[i].shape, &desc->output.shape)) return true;
  return cs_op_has_operand(desc);
}

static cs_status enumerate_ways(enumeration *e) {
  cpu_variant variant;
  for (int i = 0; cpu_variant_get(e->desc, i, &variant); i++) {
    if (!variant.applies || (e->fast > 0 && !e->options->full)) continue;
    CS_RETURN_IF_ERROR(add_variant(e, &variant, false));
  }
  CS_RETURN_IF_ERROR(add_transposed(e));
  bool own_too = e->desc->op == CS_OP_BATCH_NORM || e->desc->op == CS_OP_COPY || repeats(e->desc);
  if (e->fast > 0 && !own_too) return CS_OK;
  if (loop_variant(e->desc, &variant)) {
    char name[48];
    loop_name(e->desc->op, name, sizeof name);
    return add(e, &variant, name, "", 0, 0);
  }
  for (int i = 0; e->out->n == 0 && cpu_variant_get(e->desc, i, &variant); i++)
    if (variant.applies) CS_RETURN_IF_ERROR(add_variant(e, &variant, true));
  return CS_OK;
}

cs_status cpu_enumerate(cs_backend *backend, const cs_op_desc *desc,
                        const cs_enumerate_options *options, cs_candidate_list *out) {
  enumeration e = {(cpu_backend *)backend, desc, options, options->threads, out, 0};
  if (desc->has_prologue) return CS_OK; /* oneDNN has none */
  if (e.threads <= 0) e.threads = e.backend->machine.cores;
  int former = cpu_set_threads(e.threads);
  cs_status st = enumerate_ways(&e);
  cpu_set_threads(former);
  return st;
}

cs_status cpu_baselines(cs_backend *backend, const cs_op_desc *desc,
                        const cs_enumerate_options *options, cs_candidate_list *out) {
  enumeration e = {(cpu_backend *)backend, desc, options, options->threads, out, 0};
  if (desc->has_prologue) return CS_OK;
  if (e.threads <= 0) e.threads = e.backend->machine.cores;
  CS_RETURN_IF_ERROR(
      add_baseline(&e, cpu_transposed_takes, cpu_transposed_name(CPU_TRANSPOSED_SCATTER)));
  for (int form = CPU_GEMM_NONE + 1; form < CPU_GEMM_FORMS; form++)
    CS_RETURN_IF_ERROR(add_baseline(&e, cpu_gemm_takes, cpu_gemm_name(form)));
  return CS_OK;
}

/* ---- Preparing ---- */

/* Splits "onednn:NAME/tN/SUFFIX" or "cpu.NAME/tN/SUFFIX". */
static bool parse_id(const char *id, char name[128], int *threads, const char **suffix) {
  const char *slash = strstr(id, "/t");
  if (!slash || (size_t)(slash - id) >= 128) return false;
  char *end;
  long value = strtol(slash + 2, &end, 10);
  if (end == slash + 2 || value < 1 || value > 4096 || (*end && *end != '/')) return false;
  snprintf(name, 128, "%.*s", (int)(slash - id), id);
  *threads = (int)value;
  *suffix = end;
  return true;
}

static cs_status no_such(const cs_op_desc *desc, const char *id) {
  return cs_error(CS_CODE_BAD_INPUT, "the CPU has no candidate \"%s\" for this %s", id,
                  cs_op_name(desc->op));
}

static bool find_variant(const cs_op_desc *desc, const char *suffix, cpu_variant *out) {
  for (int i = 0; cpu_variant_get(desc, i, out); i++)
    if (out->applies && strcmp(out->suffix, suffix) == 0) return true;
  return false;
}

/* Whether the candidate is this form of the operation, which is then prepared but for its weights.
 */
static bool prepare_form(cs_exec *exec, takes_fn takes, const char *form, const char *name,
                         const char *suffix) {
  char own[64];
  form_name(exec->desc.op, form, own, sizeof own);
  return strcmp(name, own) == 0 && own_variant(&exec->desc, takes, &exec->variant) &&
         strcmp(suffix, exec->variant.suffix) == 0;
}

/* False: the name is no form's. */
static bool prepare_own(cs_exec *exec, const char *name, const char *suffix) {
  for (int form = CPU_TRANSPOSED_NONE + 1; form < CPU_TRANSPOSED_FORMS; form++) {
    if (!prepare_form(exec, cpu_transposed_takes, cpu_transposed_name(form), name, suffix))
      continue;
    exec->form = form;
    exec->weight_bytes = cpu_transposed_weight_bytes(&exec->variant.core, form);
    return true;
  }
  for (int form = CPU_GEMM_NONE + 1; form < CPU_GEMM_FORMS; form++) {
    if (!prepare_form(exec, cpu_gemm_takes, cpu_gemm_name(form), name, suffix)) continue;
    exec->gemm = form;
    exec->weight_bytes = cpu_gemm_weight_bytes(&exec->variant.core, form);
    return true;
  }
  return false;
}

static cs_status prepare_loop(cs_exec *exec, const char *name, const char *suffix, const char *id) {
  if (prepare_own(exec, name, suffix)) return CS_OK;
  char own[48];
  loop_name(exec->desc.op, own, sizeof own);
  if (strcmp(name, own) != 0 || !loop_variant(&exec->desc, &exec->variant) ||
      strcmp(suffix, exec->variant.suffix) != 0)
    return no_such(&exec->desc, id);
  exec->weight_bytes = (cs_op_weight_elements(&exec->desc) + cs_op_bias_elements(&exec->desc)) *
                       (int64_t)sizeof(float);
  return CS_OK;
}

static cs_status prepare_exec(cs_exec *exec, const char *id) {
  char name[128];
  const char *suffix;
  if (exec->desc.has_prologue || !parse_id(id, name, &exec->threads, &suffix))
    return no_such(&exec->desc, id);
  if (strncmp(name, "onednn:", 7) != 0) {
    CS_RETURN_IF_ERROR(prepare_loop(exec, name, suffix, id));
  } else {
    if (!find_variant(&exec->desc, suffix, &exec->variant)) return no_such(&exec->desc, id);
    int former = cpu_set_threads(exec->threads);
    cs_status st = dnn_op_create(exec->backend->engine, &exec->variant.core, name + 7, &exec->op);
    cpu_set_threads(former);
    CS_RETURN_IF_ERROR(st);
    exec->weight_bytes = dnn_op_weight_bytes(exec->op);
  }
  if (cs_op_has_operand(&exec->desc)) {
    cs_tensor_desc operand = cs_op_operand(&exec->variant.core, CS_DTYPE_F32);
    exec->weight_bytes = cs_tensor_span_bytes(&operand);
  }
  exec->scratchpad_offset = stage_layout(&exec->desc, &exec->variant, exec->stage_offsets);
  exec->workspace_bytes = exec->scratchpad_offset +
                          (exec->op     ? dnn_op_scratchpad_bytes(exec->op)
                           : exec->form ? cpu_transposed_workspace(&exec->variant.core, exec->form)
                                        : 0);
  return CS_OK;
}

cs_status cpu_prepare(cs_backend *backend, const cs_op_desc *desc, const cs_candidate *candidate,
                      cs_exec **out) {
  *out = NULL;
  cs_exec *exec = cs_calloc(1, sizeof *exec);
  if (!exec) return cs_no_memory("a prepared operation", sizeof *exec);
  exec->backend = (cpu_backend *)backend;
  exec->desc = *desc;
  cs_status st = prepare_exec(exec, candidate->id);
  if (st != CS_OK) {
    cpu_exec_destroy(exec);
    return st;
  }
  *out = exec;
  return CS_OK;
}

void cpu_exec_destroy(cs_exec *exec) {
  if (!exec) return;
  dnn_op_destroy(exec->op);
  free(exec);
}

int64_t cpu_exec_workspace(const cs_exec *exec) {
  return exec->workspace_bytes;
}

int64_t cpu_exec_weight_bytes(const cs_exec *exec) {
  return exec->weight_bytes;
}

/* The constant of a binary operator, rounded as a tensor of the storage type is, in f32. */
static cs_status pack_operand(const cs_exec *exec, const float *weight, void *host_out) {
  size_t n = (size_t)cs_op_weight_elements(&exec->desc);
  float *rounded = cs_calloc(n, sizeof *rounded);
  if (!rounded) return cs_no_memory("a constant operand", n * sizeof *rounded);
  memcpy(rounded, weight, n * sizeof *rounded);
  cs_round_to_dtype(exec->desc.output.dtype, rounded, (int64_t)n);
  cs_tensor_desc operand = cs_op_operand(&exec->variant.core, CS_DTYPE_F32);
  cs_tensor_from_f32(&operand, rounded, host_out);
  free(rounded);
  return CS_OK;
}

cs_status cpu_pack_weights(const cs_exec *exec, const float *weight, const float *bias,
                           void *host_out) {
  if (cs_op_has_operand(&exec->desc)) return pack_operand(exec, weight, host_out);
  if (exec->op) return dnn_op_pack(exec->op, weight, bias, host_out);
  if (exec->form) {
    cpu_transposed_pack(&exec->variant.core, exec->form, weight, bias, host_out);
    return CS_OK;
  }
  if (exec->gemm) {
    cpu_gemm_pack(&exec->variant.core, exec->gemm, weight, bias, host_out);
    return CS_OK;
  }
  size_t n_weight = (size_t)cs_op_weight_elements(&exec->desc);
  size_t n_bias = (size_t)cs_op_bias_elements(&exec->desc);
  if (n_weight > 0) memcpy(host_out, weight, n_weight * sizeof(float));
  if (n_bias > 0) memcpy((float *)host_out + n_weight, bias, n_bias * sizeof(float));
  return CS_OK;
}
