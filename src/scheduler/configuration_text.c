/* Configurations as text, and the signature under which a program's are kept. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/configuration.h"

static uint32_t candidate_hash(const cs_choice *choice) {
  uint64_t hash = cs_hash_string(CS_HASH_SEED, choice->candidate->id);
  return (uint32_t)(hash ^ hash >> 32);
}

static void split_text(const cs_configuration *configuration, cs_strbuf *text) {
  int n_streams = cs_configuration_streams(configuration);
  for (int i = 0; i < configuration->n_parts; i++)
    cs_strbuf_printf(text, "%s%d", i > 0 ? "," : " @", configuration->parts[i]);
  for (int s = 0; s < n_streams && s < CS_MAX_SPLIT_STREAMS; s++) {
    cs_strbuf_printf(text, s > 0 ? "," : ":");
    if (configuration->part_of[s] < 0) cs_strbuf_printf(text, "-");
    if (configuration->part_of[s] >= 0) cs_strbuf_printf(text, "%d", configuration->part_of[s]);
  }
}

cs_status cs_configuration_text(const cs_configuration *configuration,
                                const cs_task_choices *choices, char **out) {
  cs_strbuf text = {0};
  for (int p = 0; p < configuration->n; p++) {
    const cs_placement *place = &configuration->places[p];
    cs_strbuf_printf(&text, "%s%d.%d.%08" PRIx32 "%s%s%s", p > 0 ? " " : "", place->task,
                     place->stream, candidate_hash(&choices[place->task].choices[place->choice]),
                     place->joined ? "+" : "", place->priority > 0 ? "^" : "",
                     place->late ? "~" : "");
  }
  if (configuration->hints) cs_strbuf_printf(&text, " !");
  if (configuration->n_parts > 0) split_text(configuration, &text);
  return cs_strbuf_take(&text, out);
}

/* The choice with this hash; -1: none, or two of them. */
static int choice_of_hash(const cs_task_choices *choices, uint32_t hash) {
  int found = -1;
  for (int i = 0; i < choices->n; i++) {
    if (candidate_hash(&choices->choices[i]) != hash) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

static bool parse_place(const char **at, const cs_policy_input *input, cs_placement *out) {
  char *end = NULL;
  long task = strtol(*at, &end, 10);
  if (end == *at || *end != '.' || task < 0 || task >= input->program->n_tasks) return false;
  const char *begin = end + 1;
  long stream = strtol(begin, &end, 10);
  if (end == begin || *end != '.' || stream < 0 || stream >= input->max_streams) return false;
  begin = end + 1;
  unsigned long hash = strtoul(begin, &end, 16);
  if (end != begin + 8) return false;
  *out = (cs_placement){.task = (int)task,
                        .stream = (int)stream,
                        .choice = choice_of_hash(&input->choices[task], (uint32_t)hash)};
  out->joined = *end == '+';
  end += out->joined;
  out->priority = *end == '^';
  end += out->priority;
  out->late = *end == '~';
  end += out->late;
  *at = *end == ' ' ? end + 1 : end;
  return out->choice >= 0;
}

/* Numbers with commas between them; '-' is -1. How many; -1: they are none. */
static int parse_list(const char **at, int *out, int most) {
  for (int n = 0; n < most; n++) {
    char *end = NULL;
    long value = **at == '-' ? -1 : strtol(*at, &end, 10);
    if (**at == '-') end = (char *)(uintptr_t)*at + 1;
    if (end == *at || value < -1 || value > INT_MAX) return -1;
    out[n] = (int)value;
    *at = end;
    if (*end != ',') return n + 1;
    (*at)++;
  }
  return -1;
}

/* "@SMs,…:part,…" */
static bool parse_split(const char **at, cs_configuration *out) {
  for (int s = 0; s < CS_MAX_SPLIT_STREAMS; s++) out->part_of[s] = -1;
  (*at)++;
  out->n_parts = parse_list(at, out->parts, CS_MAX_PARTS);
  if (out->n_parts < 1 || **at != ':') return false;
  (*at)++;
  return parse_list(at, out->part_of, CS_MAX_SPLIT_STREAMS) == cs_configuration_streams(out);
}

static bool parse(const char *at, const cs_policy_input *input, cs_configuration *out) {
  for (int p = 0; p < out->n; p++) {
    if (!parse_place(&at, input, &out->places[p])) return false;
  }
  out->hints = *at == '!';
  at += out->hints;
  if (*at == '@' && !parse_split(&at, out)) return false;
  return *at == '\0' && cs_configuration_valid(out, input);
}

/* What would be written otherwise is damaged: of a split, say, only the blank before it is left. */
cs_status cs_configuration_parse(const char *text, const cs_policy_input *input,
                                 cs_configuration *out, bool *valid) {
  cs_status st = CS_OK;
  char *written = NULL;
  CS_RETURN_IF_ERROR(cs_configuration_make(input->program->n_tasks, out));
  *valid = parse(text, input, out);
  if (*valid) {
    st = cs_configuration_text(out, input->choices, &written);
    *valid = st == CS_OK && strcmp(written, text) == 0;
  }
  if (!*valid) cs_configuration_free(out);
  free(written);
  return st;
}

/* ---- The program's signature ---- */

static uint64_t hash_ints(uint64_t hash, const int *values, int n) {
  hash = cs_hash_bytes(hash, &n, sizeof n);
  return n > 0 ? cs_hash_bytes(hash, values, (size_t)n * sizeof *values) : hash;
}

cs_status cs_program_signature(const cs_program *program, bool graph, char **out) {
  uint64_t hash = CS_HASH_SEED;
  *out = NULL;
  for (int t = 0; t < program->n_tasks; t++) {
    const cs_task *task = &program->tasks[t];
    char *signature = NULL;
    CS_RETURN_IF_ERROR(cs_op_signature(&task->desc, &signature));
    hash = cs_hash_string(hash, signature);
    free(signature);
    hash = hash_ints(hash, task->preds, task->n_preds);
    hash = hash_ints(hash, task->inputs, task->desc.n_inputs);
    hash = hash_ints(hash, &task->output, 1);
  }
  cs_strbuf text = {0};
  cs_strbuf_printf(&text, "Schedule %s n=%d %016" PRIx64 "%s",
                   cs_precision_name(program->precision), program->n_tasks, hash,
                   graph ? "" : " calls");
  return cs_strbuf_take(&text, out);
}
