/* A report: the table of its kind, with title and what it is of. */
#include "report/report.h"

typedef cs_status (*table_fn)(const cs_report_input *input, const cs_report_nodes *nodes,
                              cs_table *out);

static const struct {
  const char *name;
  table_fn make;
} kinds[] = {
    [CS_REPORT_RESOURCES] = {"resources", cs_report_resources},
    [CS_REPORT_WORKSPACE] = {"workspace", cs_report_workspace},
    [CS_REPORT_COMPLEMENTARY] = {"complementary", cs_report_complementary},
};

static void describe(const cs_report_input *input, const char *kind, cs_table *table) {
  const char *device = cs_report_device_name(input);
  long long batch = (long long)input->graph->batch;
  cs_table_title(table, "%s: %s, batch %lld, %s, %s", kind, input->graph->name, batch,
                 cs_precision_name(input->precision), device);
  json_t *about =
      json_pack("{s:s, s:s, s:I, s:s, s:{s:s, s:s}}", "table", kind, "model", input->graph->name,
                "batch", (json_int_t)batch, "dtype", cs_precision_name(input->precision), "device",
                "name", device, "identity", cs_profile_identity(input->profile));
  if (!about || json_object_update(table->about, about) != 0) table->failed = true;
  json_decref(about);
}

cs_status cs_report_table_of(const cs_report_input *input, cs_report_kind kind, cs_table *out) {
  cs_report_nodes nodes;
  *out = (cs_table){0};
  if ((size_t)kind >= sizeof kinds / sizeof kinds[0]) {
    return cs_error(CS_CODE_USAGE, "report: no table %d", (int)kind);
  }
  CS_RETURN_IF_ERROR(cs_report_nodes_of(input, &nodes));
  cs_status st = kinds[kind].make(input, &nodes, out);
  cs_report_nodes_free(&nodes);
  if (st == CS_OK) describe(input, kinds[kind].name, out);
  return st;
}
