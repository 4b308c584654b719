#include "scheduler/plan_diff.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "scheduler/member.h"

/* Members of a plan that are compared part by part; the others are compared whole. */
static const char *const parts[] = {"layouts", "tasks", "buffers"};

/* One of the plans. */
typedef struct side {
  json_t *root, *layouts, *tasks, *buffers;
  json_t *index; /* position by the name of a task */
} side;

typedef struct diff {
  side a, b;
  json_t *out, *totals;
} diff;

/* ---- Reading ---- */

static cs_status read_waits(const json_t *task, const char *path) {
  const json_t *waits = json_object_get(task, "waits");
  if (!json_is_array(waits)) return cs_member_wrong(path, "waits", waits, "an array");
  for (size_t i = 0; i < json_array_size(waits); i++)
    if (!json_is_string(json_array_get(waits, i)))
      return cs_member_wrong(path, "waits", json_array_get(waits, i), "an array of strings");
  return CS_OK;
}

static cs_status read_task(json_t *task, int position, json_t *index) {
  char path[40];
  const char *name, *id;
  int64_t number;
  double us;
  snprintf(path, sizeof path, "$.tasks[%d]", position);
  if (!json_is_object(task)) return cs_member_wrong(path, "", task, "an object");
  CS_RETURN_IF_ERROR(cs_member_text(task, path, "name", &name));
  CS_RETURN_IF_ERROR(cs_member_integer(task, path, "stream", 0, INT_MAX, &number));
  CS_RETURN_IF_ERROR(cs_member_integer(task, path, "workspace_offset", 0, INT64_MAX, &number));
  CS_RETURN_IF_ERROR(cs_member_time(task, path, "start_us", &us));
  CS_RETURN_IF_ERROR(cs_member_time(task, path, "end_us", &us));
  CS_RETURN_IF_ERROR(read_waits(task, path));
  const json_t *candidate = json_object_get(task, "candidate");
  if (!json_is_object(candidate)) return cs_member_wrong(path, "candidate", candidate, "an object");
  CS_RETURN_IF_ERROR(cs_annotate(cs_member_text(candidate, "candidate", "id", &id), "%s.", path));
  if (json_object_get(index, name))
    return cs_error(CS_CODE_BAD_INPUT, "%s.name: \"%s\" is there twice", path, name);
  if (json_object_set_new(index, name, json_integer(position)) != 0)
    return cs_no_memory("the tasks of a plan", 0);
  return CS_OK;
}

static cs_status read_buffers(const side *s) {
  for (size_t i = 0; i < json_array_size(s->buffers); i++) {
    char path[40];
    const char *name;
    int64_t number;
    json_t *buffer = json_array_get(s->buffers, i);
    snprintf(path, sizeof path, "$.buffers[%zu]", i);
    if (!json_is_object(buffer)) return cs_member_wrong(path, "", buffer, "an object");
    CS_RETURN_IF_ERROR(cs_member_text(buffer, path, "name", &name));
    CS_RETURN_IF_ERROR(cs_member_integer(buffer, path, "bytes", 0, INT64_MAX, &number));
    CS_RETURN_IF_ERROR(cs_member_integer(buffer, path, "offset", 0, INT64_MAX, &number));
  }
  return CS_OK;
}

static cs_status read_plan(const json_t *root, side *s) {
  const char *schema;
  double us;
  int64_t bytes;
  if (!json_is_object(root)) return cs_member_wrong("$", "", root, "an object");
  CS_RETURN_IF_ERROR(cs_member_text(root, "$", "schema", &schema));
  if (strcmp(schema, "convsched.plan/1") != 0)
    return cs_error(CS_CODE_BAD_INPUT, "$.schema: found \"%s\", wanted \"convsched.plan/1\"",
                    schema);
  CS_RETURN_IF_ERROR(cs_member_time(root, "$", "predicted_us", &us));
  CS_RETURN_IF_ERROR(cs_member_integer(root, "$", "arena_bytes", 0, INT64_MAX, &bytes));
  CS_RETURN_IF_ERROR(cs_member_integer(root, "$", "workspace_peak", 0, INT64_MAX, &bytes));
  s->layouts = json_object_get(root, "layouts");
  s->tasks = json_object_get(root, "tasks");
  s->buffers = json_object_get(root, "buffers");
  if (!json_is_object(s->layouts)) return cs_member_wrong("$", "layouts", s->layouts, "an object");
  if (!json_is_array(s->tasks)) return cs_member_wrong("$", "tasks", s->tasks, "an array");
  if (!json_is_array(s->buffers)) return cs_member_wrong("$", "buffers", s->buffers, "an array");
  for (size_t i = 0; i < json_array_size(s->tasks); i++)
    CS_RETURN_IF_ERROR(read_task(json_array_get(s->tasks, i), (int)i, s->index));
  return read_buffers(s);
}

static cs_status read_side(const cs_plan_text *text, side *s) {
  json_error_t error;
  s->root = json_loadb(text->text, text->length, JSON_REJECT_DUPLICATES, &error);
  if (!s->root)
    return cs_error(CS_CODE_BAD_INPUT, "%s: line %d, column %d: %s", text->name, error.line,
                    error.column, error.text);
  s->index = json_object();
  if (!s->index) return cs_no_memory("the tasks of a plan", 0);
  return cs_annotate(read_plan(s->root, s), "%s: ", text->name);
}

/* ---- Members by name ---- */

static bool same(const json_t *a, const json_t *b) {
  return a == b || (a && b && json_equal(a, b));
}

static json_t *or_null(json_t *value) {
  return value ? json_incref(value) : json_null();
}

/* {"a":…, "b":…} */
static json_t *both(json_t *a, json_t *b) {
  return json_pack("{s:o, s:o}", "a", or_null(a), "b", or_null(b));
}

static bool is_part(const char *key) {
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    if (strcmp(parts[i], key) == 0) return true;
  return false;
}

/* Members of two objects that differ: [{<what>: key, "a":…, "b":…}…], a's order, then b's rest. */
static json_t *differing(json_t *a, json_t *b, const char *what, bool with_parts) {
  json_t *list = json_array(), *value;
  const char *key;
  json_object_foreach(a, key, value) {
    if ((with_parts || !is_part(key)) && !same(value, json_object_get(b, key)))
      json_array_append_new(list, json_pack("{s:s, s:o, s:o}", what, key, "a", or_null(value), "b",
                                            or_null(json_object_get(b, key))));
  }
  json_object_foreach(b, key, value) {
    if ((with_parts || !is_part(key)) && !json_object_get(a, key))
      json_array_append_new(list,
                            json_pack("{s:s, s:n, s:o}", what, key, "a", "b", or_null(value)));
  }
  return list;
}

/* ---- Tasks ---- */

static void count(diff *d, const char *what, bool differs) {
  json_int_t now = json_integer_value(json_object_get(d->totals, what));
  json_object_set_new(d->totals, what, json_integer(now + differs));
}

/* Adds `key` of both to the entry where they differ. */
static void put_difference(diff *d, json_t *entry, const char *key, json_t *a, json_t *b,
                           const char *total) {
  bool differs = !same(a, b);
  if (differs) json_object_set_new(entry, key, both(a, b));
  count(d, total, differs);
}

static int position_of(const side *s, const json_t *task) {
  const json_t *at = json_object_get(s->index, json_string_value(json_object_get(task, "name")));
  return at ? (int)json_integer_value(at) : -1;
}

/* kept[position in a]: of a largest set of common tasks that both launch in the same order. Longest
 * increasing subsequence of b's positions. */
static cs_status find_kept(const diff *d, bool *kept) {
  int n = (int)json_array_size(d->a.tasks), last = -1;
  int *length = cs_calloc((size_t)n, sizeof *length),
      *previous = cs_calloc((size_t)n, sizeof *previous);
  int *at = cs_calloc((size_t)n, sizeof *at);
  cs_status st = CS_OK;
  if (!length || !previous || !at)
    CS_FAIL(st, done, CS_CODE_NO_MEMORY, "out of memory for the order of %d tasks", n);
  for (int i = 0; i < n; i++) {
    previous[i] = -1;
    at[i] = position_of(&d->b, json_array_get(d->a.tasks, (size_t)i));
    if (at[i] < 0) continue;
    length[i] = 1;
    for (int k = 0; k < i; k++)
      if (at[k] >= 0 && at[k] < at[i] && length[k] + 1 > length[i]) {
        length[i] = length[k] + 1;
        previous[i] = k;
      }
    if (last < 0 || length[i] > length[last]) last = i;
  }
  for (; last >= 0; last = previous[last]) kept[last] = true;
done:
  free(length);
  free(previous);
  free(at);
  return st;
}

/* Whether a task may begin early; it may where its plan does not say. */
static json_t *early_of(const json_t *task) {
  json_t *early = json_object_get(task, "early");
  return early ? early : json_true();
}

static void compare_task(diff *d, int at_a, int at_b, bool moved, json_t *list) {
  json_t *a = json_array_get(d->a.tasks, (size_t)at_a);
  json_t *b = json_array_get(d->b.tasks, (size_t)at_b);
  json_t *way_a = json_object_get(a, "candidate"), *way_b = json_object_get(b, "candidate");
  json_t *entry = json_object();
  json_object_set(entry, "name", json_object_get(a, "name"));
  put_difference(d, entry, "candidate", json_object_get(way_a, "id"), json_object_get(way_b, "id"),
                 "candidates");
  put_difference(d, entry, "stream", json_object_get(a, "stream"), json_object_get(b, "stream"),
                 "streams");
  if (moved) json_object_set_new(entry, "position", json_pack("{s:i, s:i}", "a", at_a, "b", at_b));
  count(d, "moved", moved);
  put_difference(d, entry, "waits", json_object_get(a, "waits"), json_object_get(b, "waits"),
                 "waits");
  put_difference(d, entry, "merged", json_object_get(a, "merged"), json_object_get(b, "merged"),
                 "merged");
  put_difference(d, entry, "priority", json_object_get(a, "priority"),
                 json_object_get(b, "priority"), "priorities");
  put_difference(d, entry, "early", early_of(a), early_of(b), "early");
  bool same_id = same(json_object_get(way_a, "id"), json_object_get(way_b, "id"));
  count(d, "candidate_details", same_id && !same(way_a, way_b));
  count(d, "times",
        !same(json_object_get(a, "start_us"), json_object_get(b, "start_us")) ||
            !same(json_object_get(a, "end_us"), json_object_get(b, "end_us")));
  count(d, "workspace_offsets",
        !same(json_object_get(a, "workspace_offset"), json_object_get(b, "workspace_offset")));
  if (json_object_size(entry) > 1) json_array_append(list, entry);
  json_decref(entry);
}

/* Names of tasks that the other plan does not have. */
static json_t *names_only_in(const side *s, const side *other) {
  json_t *list = json_array(), *task;
  size_t i;
  json_array_foreach(s->tasks, i, task) {
    if (position_of(other, task) < 0) json_array_append(list, json_object_get(task, "name"));
  }
  return list;
}

static cs_status compare_tasks(diff *d) {
  size_t n = json_array_size(d->a.tasks);
  json_t *list = json_array();
  bool *kept = cs_calloc(n, sizeof *kept);
  if (!kept || json_object_set_new(d->out, "tasks", list) != 0) {
    free(kept);
    return cs_no_memory("a comparison", n);
  }
  cs_status st = find_kept(d, kept);
  for (size_t i = 0; i < n && st == CS_OK; i++) {
    int at_b = position_of(&d->b, json_array_get(d->a.tasks, i));
    if (at_b >= 0) compare_task(d, (int)i, at_b, !kept[i], list);
  }
  free(kept);
  json_object_set_new(d->out, "only_a", names_only_in(&d->a, &d->b));
  json_object_set_new(d->out, "only_b", names_only_in(&d->b, &d->a));
  return st;
}

/* ---- Buffers: totals alone ---- */

static void compare_buffers(diff *d) {
  size_t n_a = json_array_size(d->a.buffers), n_b = json_array_size(d->b.buffers);
  size_t most = n_a > n_b ? n_a : n_b;
  count(d, "buffer_offsets", false);
  count(d, "buffers", false);
  for (size_t i = 0; i < most; i++) {
    json_t *a = json_array_get(d->a.buffers, i), *b = json_array_get(d->b.buffers, i);
    bool alike = same(json_object_get(a, "name"), json_object_get(b, "name")) &&
                 same(json_object_get(a, "bytes"), json_object_get(b, "bytes"));
    count(d, "buffers", !alike);
    count(d, "buffer_offsets",
          alike && !same(json_object_get(a, "offset"), json_object_get(b, "offset")));
  }
}

cs_status cs_plan_diff(const cs_plan_text *a, const cs_plan_text *b, char **out) {
  cs_status st = CS_OK;
  diff d = {.totals = json_object()};
  *out = NULL;
  CS_TRY(st, read_side(a, &d.a), done);
  CS_TRY(st, read_side(b, &d.b), done);
  d.out = json_pack("{s:s, s:s, s:s, s:b}", "schema", "convsched.plan-diff/1", "a", a->name, "b",
                    b->name, "same", json_equal(d.a.root, d.b.root));
  if (!d.out || !d.totals) CS_FAIL(st, done, CS_CODE_NO_MEMORY, "out of memory for a comparison");
  json_object_set_new(d.out, "head", differing(d.a.root, d.b.root, "member", false));
  json_object_set_new(d.out, "layouts", differing(d.a.layouts, d.b.layouts, "value", true));
  CS_TRY(st, compare_tasks(&d), done);
  compare_buffers(&d);
  json_object_set(d.out, "totals", d.totals);
  CS_TRY(st, cs_json_take_text(json_incref(d.out), out), done);
done:
  json_decref(d.a.root);
  json_decref(d.a.index);
  json_decref(d.b.root);
  json_decref(d.b.index);
  json_decref(d.totals);
  json_decref(d.out);
  return st;
}
