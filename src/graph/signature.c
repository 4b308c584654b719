/* The signature of an operation. */
#include <string.h>

#include "graph/op_family.h"

/* No vector access is wider: larger alignments make no difference. */
#define WIDEST_ALIGNMENT 16

static void sign_tensor(const char *label, const cs_tensor_desc *desc, cs_dtype storage,
                        cs_strbuf *out) {
  cs_strbuf_printf(out, " %s=", label);
  for (int i = 0; i < desc->shape.rank; i++) {
    cs_strbuf_printf(out, "%s%lld", i ? "x" : "", (long long)desc->shape.dims[i]);
  }
  cs_strbuf_printf(out, "/%s", desc->shape.rank == 4 ? cs_layout_name(desc->layout) : "row");
  if (desc->dtype != storage) cs_strbuf_printf(out, "/%s", cs_dtype_name(desc->dtype));
  if (!cs_tensor_is_dense(desc)) {
    for (int i = 0; i < desc->shape.rank; i++) {
      cs_strbuf_printf(out, "%s%lld", i ? "," : "/s", (long long)desc->strides[i]);
    }
  }
  if (desc->alignment < WIDEST_ALIGNMENT) {
    cs_strbuf_printf(out, "/a%lld", (long long)desc->alignment);
  }
}

static void sign_activation(const char *label, const cs_activation *activation, cs_strbuf *out) {
  cs_strbuf_printf(out, " %s=%s", label, cs_act_name(activation->kind));
  int params = cs_act_params(activation->kind);
  if (params == 1) cs_strbuf_printf(out, "(%.17g)", activation->alpha);
  if (params == 2) {
    cs_strbuf_printf(out, "(%.17g,%.17g)", activation->alpha, activation->beta);
  }
}

cs_status cs_op_signature(const cs_op_desc *desc, char **out) {
  cs_strbuf text = {0};
  cs_dtype storage = cs_precision_storage(desc->precision);
  cs_strbuf_printf(&text, "%s %s", cs_op_name(desc->op), cs_precision_name(desc->precision));
  for (int i = 0; i < desc->n_inputs; i++) {
    bool residual = desc->has_residual && i == desc->n_inputs - 1;
    sign_tensor(residual ? "r" : "x", &desc->inputs[i], storage, &text);
  }
  sign_tensor("y", &desc->output, storage, &text);
  cs_op_sign_attrs(desc->op, &desc->attrs, &text);
  if (desc->has_bias) cs_strbuf_printf(&text, " bias");
  if (desc->activation.kind != CS_ACT_NONE) sign_activation("act", &desc->activation, &text);
  if (desc->has_prologue) sign_activation("pre", &desc->prologue, &text);
  return cs_strbuf_take(&text, out);
}

bool cs_signatures_alike(const char *a, const char *b) {
  for (;; a++, b++) {
    if (*a == '/') a += strcspn(a, " ");
    if (*b == '/') b += strcspn(b, " ");
    if (*a != *b) return false;
    if (!*a) return true;
  }
}
