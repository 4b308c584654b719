/* Never slower, block by block: each block of the best configuration that uses several streams is
 * timed beside its sequential form, which takes its place where it is no slower. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/search_state.h"
#include "scheduler/explain.h"

#define SCREEN_SAMPLES 7 /* all of them won: the concurrent form is faster (p < 0.01) */
#define FRESH_SAMPLES 21
#define MOST_SECONDS 2
#define SHARE 0.1 /* of the search's time */

double cs_search_fallback_seconds(double search_seconds) {
  return fmin(MOST_SECONDS, SHARE * search_seconds);
}

/* ---- The sequential form ---- */

static int streams_of(const cs_placement *places, int n) {
  int streams = 0;
  for (int i = 0; i < n; i++) {
    bool seen = false;
    for (int k = 0; k < i && !seen; k++) seen = places[k].stream == places[i].stream;
    streams += !seen;
  }
  return streams;
}

/* Kernels beside each other: on several streams, or joined in one launch. */
static bool is_concurrent(const cs_placement *places, int n) {
  for (int i = 0; i < n; i++) {
    if (places[i].joined) return true;
  }
  return streams_of(places, n) > 1;
}

/* The stream on which a window begins; where the device is split one that has all of it, if any. */
static int stream_for(const cs_configuration *configuration, const cs_placement *window) {
  int stream = window[0].stream;
  if (configuration->n_parts == 0 || configuration->part_of[stream] < 0) return stream;
  for (int i = 0; i < cs_configuration_streams(configuration); i++) {
    if (configuration->part_of[i] < 0) return i;
  }
  return stream;
}

/* The best with a window's tasks as `sequential` runs them, on one of its streams; they begin as
 * early as they do in the best. */
static cs_status make_sequential(const cs_search *s, int window, const cs_configuration *sequential,
                                 cs_configuration *out) {
  cs_placement now[CS_IOS_MOST_TASKS], then[CS_IOS_MOST_TASKS];
  CS_RETURN_IF_ERROR(cs_coselect_window_order(s->model, &s->best, out));
  cs_coselect_gather(s->model, out, window, now);
  int n = cs_coselect_gather(s->model, sequential, window, then);
  int stream = stream_for(out, now);
  for (int i = 0; i < n; i++) then[i].stream = stream;
  cs_coselect_scatter(s->model, window, then, out);
  cs_configuration_begin_as(&s->best, out);
  cs_configuration_number_streams(out);
  return CS_OK;
}

/* ---- What keeps a block's kernels apart ---- */

static const char *task_name(const cs_search *s, int task) {
  return s->input->program->tasks[task].name;
}

/* Of the window's pairs the one that could overlap longest, of those that something limits where
 * there are any. */
static const cs_explained_pair *find_pair(const cs_search *s, int window,
                                          const cs_explanation *explanation) {
  const cs_explained_pair *found = NULL;
  bool found_limited = false;
  for (int b = 0; b < explanation->n_blocks; b++) {
    const cs_explained_block *block = &explanation->blocks[b];
    for (int i = 0; i < block->n_pairs; i++) {
      const cs_explained_pair *pair = &block->pairs[i];
      bool limited = pair->limiter[0] && strcmp(pair->limiter, "none") != 0;
      if (s->model->window_of[pair->a] != window || s->model->window_of[pair->b] != window) {
        continue;
      }
      if (found && (found_limited || !limited)) continue;
      found = pair;
      found_limited = limited;
    }
  }
  return found;
}

static cs_status tell_limiter(const cs_search *s, int window, cs_fallback *out) {
  cs_status st = CS_OK;
  cs_explanation explanation;
  CS_RETURN_IF_ERROR(
      cs_explain(cs_bench_plan(s->bench, CS_BENCH_BEST), s->input, CS_EXPLAIN_PAIRS, &explanation));
  const cs_explained_pair *pair = find_pair(s, window, &explanation);
  if (pair) {
    snprintf(out->limiter, sizeof out->limiter, "%s", pair->limiter);
    CS_TRY(st, cs_strdup_to(task_name(s, pair->a), &out->pair[0]), done);
    CS_TRY(st, cs_strdup_to(task_name(s, pair->b), &out->pair[1]), done);
  }
done:
  cs_explanation_free(&explanation);
  return st;
}

/* ---- A block ---- */

static cs_status record(cs_search *s, int window, const cs_bench_pairs *pairs, bool fell_back) {
  cs_placement places[CS_IOS_MOST_TASKS];
  cs_fallback *out;
  int n = cs_coselect_gather(s->model, &s->best, window, places), first = places[0].task,
      last = first;
  for (int i = 0; i < n; i++) {
    if (places[i].task < first) first = places[i].task;
    if (places[i].task > last) last = places[i].task;
  }
  CS_RETURN_IF_ERROR(cs_search_report_fallback(&s->session->search, task_name(s, first),
                                               task_name(s, last), &out));
  out->window = window;
  out->tasks = n;
  out->streams = streams_of(places, n);
  out->gain = cs_bench_ratio(pairs);
  out->fell_back = fell_back;
  return tell_limiter(s, window, out);
}

/* Times what the trial holds beside the best: a few pairs, and where they leave any doubt more,
 * fresh ones. */
static cs_status compare(cs_search *s, cs_bench_pairs *out, bool *no_slower) {
  *no_slower = false;
  CS_RETURN_IF_ERROR(cs_bench_compare(s->bench, SCREEN_SAMPLES, out));
  if (out->wins > 0) CS_RETURN_IF_ERROR(cs_bench_compare(s->bench, FRESH_SAMPLES, out));
  CS_RETURN_IF_ERROR(cs_search_record(s, CS_BENCH_TRIAL, out->trial, out->n));
  *no_slower = out->ratio <= 1;
  return CS_OK;
}

static cs_status try_window(cs_search *s, int window, const cs_configuration *sequential) {
  cs_status st = CS_OK;
  cs_configuration form = {0};
  bool fits = false, no_slower = false;
  cs_bench_pairs pairs;
  CS_TRY(st, make_sequential(s, window, sequential, &form), done);
  CS_TRY(st, cs_search_set_trial(s, &form, &fits), done);
  if (!fits) {
    s->session->search.untried++;
    goto done;
  }
  CS_TRY(st, compare(s, &pairs, &no_slower), done);
  CS_TRY(st, record(s, window, &pairs, no_slower), done);
  if (!no_slower) goto done;
  s->best_us = pairs.trial_us;
  st = cs_search_accept(s);
done:
  cs_configuration_free(&form);
  return st;
}

/* ---- All blocks ---- */

/* Under a number of steps the clock must not decide what is tried, short of the search's end. */
static double deadline_of(const cs_search *s) {
  double now = cs_now_seconds(), own = now + s->fallback_seconds;
  double end = s->begun + s->seconds + s->fallback_seconds;
  return s->session->settings.options.search_steps > 0 ? fmax(own, end) : own;
}

cs_status cs_search_fall_back(cs_search *s, const cs_configuration *sequential) {
  double deadline = deadline_of(s);
  cs_placement places[CS_IOS_MOST_TASKS];
  for (int w = 0; w < s->model->windows.n; w++) {
    int n = cs_coselect_gather(s->model, &s->best, w, places);
    if (!is_concurrent(places, n)) continue;
    CS_RETURN_IF_ERROR(cs_search_check_cancelled(s));
    if (cs_now_seconds() > deadline) {
      s->session->search.untried++;
    } else {
      CS_RETURN_IF_ERROR(try_window(s, w, sequential));
    }
  }
  return CS_OK;
}

void cs_search_settle_fallbacks(cs_search *s) {
  cs_placement places[CS_IOS_MOST_TASKS];
  for (int i = 0; i < s->session->search.n_fallbacks; i++) {
    cs_fallback *f = &s->session->search.fallbacks[i];
    int n = cs_coselect_gather(s->model, &s->best, f->window, places);
    f->fell_back = !is_concurrent(places, n);
  }
}
