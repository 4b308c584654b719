/* cs_session_tradeoff: the latency/memory front of a session's policy as a table. */
#include "scheduler/tradeoff.h"
#include "runtime/planning.h"
#include "runtime/report.h"

enum {
  LIMIT,
  LIMIT_TEXT,
  ARENA,
  ARENA_TEXT,
  WORKSPACE,
  WORKSPACE_TEXT,
  STREAMS,
  PREDICTED,
  SLOWER,
  N_COLUMNS
};

static const cs_table_column columns[N_COLUMNS] = {
    [LIMIT] = {"memory_limit", "limit", 0, CS_COLUMN_DATA, false},
    [LIMIT_TEXT] = {"limit", "limit", CS_COLUMN_TEXT, CS_COLUMN_PERSON, false},
    [ARENA] = {"arena_bytes", "arena", 0, CS_COLUMN_DATA, false},
    [ARENA_TEXT] = {"arena", "arena", CS_COLUMN_TEXT, CS_COLUMN_PERSON, false},
    [WORKSPACE] = {"workspace_bytes", "workspace", 0, CS_COLUMN_DATA, false},
    [WORKSPACE_TEXT] = {"workspace", "workspace", CS_COLUMN_TEXT, CS_COLUMN_PERSON, false},
    [STREAMS] = {"streams", "streams", 0, CS_COLUMN_ALL, false},
    [PREDICTED] = {"predicted_us", "predicted us", 1, CS_COLUMN_ALL, false},
    [SLOWER] = {"slower", "of the fastest", 3, CS_COLUMN_ALL, false},
};

static void put_bytes(cs_table *table, int column, int text, int64_t bytes) {
  cs_table_number(table, column, (double)bytes);
  cs_table_text(table, text, "%lld (%.1f MiB)", (long long)bytes, (double)bytes / (1 << 20));
}

static void add_rows(const cs_tradeoff *front, cs_table *table) {
  for (int i = 0; i < front->n; i++) {
    const cs_tradeoff_point *point = &front->points[i];
    cs_table_row(table, false);
    if (point->memory_limit > 0) {
      put_bytes(table, LIMIT, LIMIT_TEXT, point->memory_limit);
    } else {
      cs_table_text(table, LIMIT_TEXT, "none");
    }
    put_bytes(table, ARENA, ARENA_TEXT, point->arena);
    put_bytes(table, WORKSPACE, WORKSPACE_TEXT, point->workspace);
    cs_table_number(table, STREAMS, point->n_streams);
    cs_table_number(table, PREDICTED, point->predicted_us);
    cs_table_number(table, SLOWER, point->predicted_us / front->points[0].predicted_us);
  }
}

/* What convsched.report/1 says besides the rows. */
static cs_status describe(const cs_policy_input *input, const cs_policy *policy, cs_table *table) {
  const cs_program *program = input->program;
  const char *name = cs_graph_name(program->graph);
  const char *dtype = cs_precision_name(program->precision);
  long long batch = (long long)program->graph->batch;
  cs_table_title(table, "tradeoff: %s, batch %lld, %s, %s on %s", name, batch, dtype, policy->name,
                 input->device->name);
  cs_table_note(table,
                "Plans of %s under falling memory limits, down to the least arena; those that "
                "another one is as small and as fast as are left out. Times are predicted.",
                policy->name);
  json_t *about = json_pack("{s:s, s:s, s:I, s:s, s:{s:s, s:s}}", "table", "tradeoff", "model",
                            name, "batch", (json_int_t)batch, "dtype", dtype, "device", "name",
                            input->device->name, "identity", input->device_identity);
  json_t *summary =
      json_pack("{s:s, s:I, s:i}", "policy", policy->name, "workspace_limit",
                (json_int_t)input->workspace_limit, "max_streams", input->max_streams);
  bool failed = !about || !summary || json_object_update(table->about, about) != 0 ||
                json_object_update(table->summary, summary) != 0;
  json_decref(about);
  json_decref(summary);
  return failed ? cs_no_memory("a table", 0) : CS_OK;
}

cs_status cs_session_tradeoff(const cs_session *session, cs_report **out) {
  *out = NULL;
  cs_status st = CS_OK;
  cs_tradeoff front;
  const cs_policy *policy = cs_policy_find(session->planned.plan->policy);
  if (!session->planned.choices || !policy)
    return cs_error(CS_CODE_USAGE, "%s: a plan from a file has no alternatives to compare",
                    session->settings.plan_path);
  cs_policy_input input = {0};
  cs_table table;
  cs_table_init(&table, columns, N_COLUMNS);
  CS_TRY(st, cs_planning_input_open(session, &input), done);
  CS_TRY(st, cs_tradeoff_of(policy, &input, &front), done);
  add_rows(&front, &table);
  st = describe(&input, policy, &table);
done:
  cs_planning_input_close(&input);
  return cs_report_give(st, &table, out);
}
