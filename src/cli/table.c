/* The table of `run`, for a person. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/run.h"

static void print_header(const run_case *run, cs_strbuf *text) {
  char *device = NULL;
  cs_status st = cs_device_info_json(run->device, &device);
  json_t *json = st == CS_OK ? json_loads(device, 0, NULL) : NULL;
  cs_status_free(st);
  cs_string_free(device);
  const char *name = json_string_value(json_object_get(json, "name"));
  const char *backend = json_string_value(json_object_get(json, "backend"));
  cs_strbuf_printf(text, "\n%s  batch %lld  %s  on %s (%s)\n", cs_graph_name(run->graph),
                   (long long)run->batch, cs_precision_name(run->precision), name ? name : "?",
                   backend ? backend : "?");
  if (backend && strcmp(backend, "cpu") == 0 && run->precision != CS_PRECISION_F32) {
    cs_strbuf_printf(text,
                     run->precision == CS_PRECISION_TF32
                         ? "On this backend tf32 runs as f32.\n"
                         : "On this backend %s is a storage type: arithmetic is f32.\n",
                     cs_precision_name(run->precision));
  }
  json_decref(json);
}

static void print_verdict(const run_contender *contender, cs_strbuf *text) {
  const cs_verification *v = &contender->verification;
  if (!contender->verified) {
    cs_strbuf_printf(text, "  not checked\n");
    return;
  }
  cs_strbuf_printf(text, "  %.1e %s\n", v->rel_l2, v->passed ? "ok" : "WRONG");
}

/* "1.23x", or "-" where the bound is not known. */
static void print_ratio(cs_strbuf *text, double us, double bound) {
  if (bound > 0) {
    cs_strbuf_printf(text, " %9.2fx", us / bound);
  } else {
    cs_strbuf_printf(text, " %10s", "-");
  }
}

static void print_row(const run_case *run, const run_contender *contender, cs_strbuf *text) {
  char memory[32];
  cli_bytes_text(memory, sizeof memory, run_info_number(contender, "arena_bytes"));
  double us = run_latency_us(run, contender);
  if (run->simulated) {
    cs_strbuf_printf(text, "%-12s %12.1f", contender->policy, us);
  } else {
    cs_strbuf_printf(text, "%-12s %10.1f %10.1f %10.1f", contender->policy, us,
                     contender->stats.p90, contender->b2b_us);
  }
  cs_strbuf_printf(text, " %7.0f %7.0f %10s %8.2fx", run_info_number(contender, "streams"),
                   run_info_number(contender, "kernels"), memory,
                   run_latency_us(run, &run->contenders[0]) / us);
  print_ratio(text, us, run_bound(contender, "roofline_us"));
  print_ratio(text, us, run_bound(contender, "critical_path_us"));
  print_ratio(text, us, run_bound(contender, "area_us"));
  if (run->simulated) {
    cs_strbuf_printf(text, "\n");
  } else {
    print_verdict(contender, text);
  }
}

/* What the variants of an ablation are called; the base comes last, as how far chance goes. */
static const struct {
  const char *name, *title;
} variants[] = {{"candidates_alone", "candidates alone"},
                {"candidates", "coselect's candidates"},
                {"order", "order alone"},
                {"streams_and_order", "streams and order alone"},
                {"both", "candidates, streams and order"},
                {"merge", "merged launches alone"},
                {"priority", "priorities alone"},
                {"partition", "streams and order on parts"},
                {"all", "all of it"},
                {"early_nowhere", "its plan without early beginnings"},
                {"early_everywhere", "with all of them"},
                {"no_hints", "without launch-order hints"}};

/* NaN: it was not measured. */
static double gain_of(const json_t *ablation, const char *name) {
  size_t i;
  json_t *row;
  json_array_foreach(json_object_get(ablation, "variants"), i, row) {
    if (strcmp(json_string_value(json_object_get(row, "name")), name) == 0) {
      return json_number_value(json_object_get(row, "speedup_vs_base"));
    }
  }
  return NAN;
}

/* Where the plan has nothing but candidates, streams and order, these are all of it. */
static void print_early_gain(const json_t *ablation, cs_strbuf *text) {
  double all = gain_of(ablation, "all"), nowhere = gain_of(ablation, "early_nowhere");
  if (isnan(nowhere)) return;
  if (isnan(all)) all = gain_of(ablation, "both");
  cs_strbuf_printf(text, "Kernels that begin early make its plan %.3fx as fast.\n", all / nowhere);
}

static void print_ablation(const run_case *run, cs_strbuf *text) {
  const char *before = "";
  if (!run->ablation) return;
  const char *base = json_string_value(json_object_get(run->ablation, "base"));
  cs_strbuf_printf(text, "%s against %s: ", run->contenders[run->n - 1].policy, base);
  for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
    double gain = gain_of(run->ablation, variants[i].name);
    if (isnan(gain)) continue;
    cs_strbuf_printf(text, "%s%s %.3fx", before, variants[i].title, gain);
    before = ", ";
  }
  cs_strbuf_printf(text, " (a second copy of %s: %.3fx).\n", base, gain_of(run->ablation, "base"));
  print_early_gain(run->ablation, text);
}

static void print_bounds(const run_case *run, cs_strbuf *text) {
  const run_contender *chosen = &run->contenders[run->n - 1];
  if (json_object_get(chosen->info, "bounds")) {
    cli_print_bounds(json_object_get(chosen->info, "bounds"), text);
  } else if (run->options->plan) {
    cs_strbuf_printf(text, "No bounds: a plan from a file is run without the profile.\n");
  }
  for (int i = 1; i < run->n; i++) {
    cli_print_memory(run->contenders[i].policy, run->contenders[i].info, text);
  }
  for (int i = 0; i < run->n; i++) {
    const run_contender *contender = &run->contenders[i];
    cli_print_split(contender->policy, json_object_get(contender->info, "split"), text);
  }
}

static void print_start(const run_case *run, cs_strbuf *text) {
  static const char *const parts[][2] = {{"open", "device"},    {"load", "model"},
                                         {"passes", "passes"},  {"profile", "profile"},
                                         {"plan", "plan"},      {"prepare", "prepare"},
                                         {"upload", "weights"}, {"first_run", "first run"}};
  json_t *timings = run_timings_json(run);
  cs_strbuf_printf(text, "First result after %.3f s", run->first_result_s);
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    double seconds = json_number_value(json_object_get(timings, parts[i][0]));
    cs_strbuf_printf(text, "%s%s %.3f", i ? ", " : ": ", parts[i][1], seconds);
  }
  cs_strbuf_printf(text, ".\n");
  json_decref(timings);
}

static void print_details(const run_case *run, cs_strbuf *text) {
  print_bounds(run, text);
  if (run->simulated) {
    cs_strbuf_printf(text,
                     "Times are predicted by the SM model from what was recorded of this device; "
                     "nothing was run.\nNot verified: simulated device.\n");
  }
  for (int i = 0; i < run->n; i++) {
    const run_contender *contender = &run->contenders[i];
    const cs_verification *v = &contender->verification;
    if (!contender->verified) continue;
    cs_strbuf_printf(
        text, "%s: %d nodes checked against float64, worst %s at %.2f of its limit %.1e%s",
        contender->policy, v->nodes_checked, v->worst_node, v->worst_ratio, v->tolerance,
        !v->bitwise_applies ? "; a candidate is not deterministic, so the serial run "
                              "was compared within rounding"
        : v->bitwise_equal  ? "; bit for bit as when run serially"
                            : "; DIFFERS from the serial run");
    if (isfinite(v->end_to_end)) {
      cs_strbuf_printf(text, "; end to end %.2e", v->end_to_end);
      if (isfinite(v->end_to_end_limit)) {
        cs_strbuf_printf(text, " (limit %.2e, twice PyTorch's own)", v->end_to_end_limit);
      } else {
        cs_strbuf_printf(text, " (no recorded limit)");
      }
    }
    cs_strbuf_printf(text, "\n");
    if (!v->passed) cs_strbuf_printf(text, "%s is WRONG: %s\n", contender->policy, v->problem);
  }
  if (run->first_result_s > 0) print_start(run, text);
  if (run->verify_s > 0) cs_strbuf_printf(text, "Verified in %.3f s.\n", run->verify_s);
}

static void print_column_names(const run_case *run, cs_strbuf *text) {
  if (run->simulated) {
    cs_strbuf_printf(text, "%-12s %12s", "policy", "predicted us");
  } else {
    cs_strbuf_printf(text, "%-12s %10s %10s %10s", "policy", "median us", "p90 us", "b2b us");
  }
  cs_strbuf_printf(text, " %7s %7s %10s %9s %10s %10s %10s%s\n", "streams", "kernels", "memory",
                   "vs seq.", "vs roof", "vs path", "vs area",
                   run->simulated ? "" : "  error, verdict");
}

cs_status run_table(const run_case *run, char **out) {
  cs_strbuf text = {0};
  print_header(run, &text);
  print_column_names(run, &text);
  for (int i = 0; i < run->n; i++) print_row(run, &run->contenders[i], &text);
  print_details(run, &text);
  print_ablation(run, &text);
  run_print_search(run, &text);
  run_print_pipeline(run, &text);
  run_print_overlap(run, &text);
  return cs_strbuf_take(&text, out);
}
