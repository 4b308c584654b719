/* The table of resources: what each kernel of a node's candidates takes of an SM. */
#include <math.h>
#include <stdlib.h>

#include "profiler/resources.h"
#include "report/report.h"

enum {
  NODE,
  LAYOUT,
  CANDIDATE,
  COLD,
  P10,
  P90,
  SPREAD,
  WORKSPACE,
  KERNEL,
  KERNEL_FULL,
  GRID,
  BLOCK,
  REGISTERS_THREAD,
  SHARED_BLOCK,
  REGISTERS,
  SHARED,
  THREADS,
  BLOCKS,
  RESIDENT,
  WAVES,
  ALU,
  FMA,
  TENSOR,
  STALLS,
  PAPER_STALLS,
  N_COLUMNS
};

static const cs_table_column columns[N_COLUMNS] = {
    [NODE] = {"node", "node", CS_COLUMN_TEXT, CS_COLUMN_ALL, true},
    [LAYOUT] = {"layout", "layout", CS_COLUMN_TEXT, CS_COLUMN_ALL, true},
    [CANDIDATE] = {"candidate", "candidate", CS_COLUMN_TEXT, CS_COLUMN_ALL, true},
    [COLD] = {"cold_us", "time us", 2, CS_COLUMN_ALL, true},
    [P10] = {"p10_us", "p10 us", 2, CS_COLUMN_DATA, true},
    [P90] = {"p90_us", "p90 us", 2, CS_COLUMN_DATA, true},
    [SPREAD] = {"spread", "p10–p90", CS_COLUMN_TEXT, CS_COLUMN_PERSON, true},
    [WORKSPACE] = {"workspace_bytes", "workspace", 0, CS_COLUMN_DATA, true},
    [KERNEL] = {"kernel", "kernel", CS_COLUMN_TEXT, CS_COLUMN_PERSON, false},
    [KERNEL_FULL] = {"kernel", "kernel", CS_COLUMN_TEXT, CS_COLUMN_DATA, false},
    [GRID] = {"grid", "grid", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [BLOCK] = {"block", "block", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [REGISTERS_THREAD] = {"registers_per_thread", "regs", 0, CS_COLUMN_ALL, false},
    [SHARED_BLOCK] = {"shared_bytes_per_block", "shared B", 0, CS_COLUMN_DATA, false},
    [REGISTERS] = {"registers_pct", "regs %", 0, CS_COLUMN_ALL, false},
    [SHARED] = {"shared_pct", "shared %", 0, CS_COLUMN_ALL, false},
    [THREADS] = {"threads_pct", "threads %", 0, CS_COLUMN_ALL, false},
    [BLOCKS] = {"blocks_pct", "blocks %", 0, CS_COLUMN_ALL, false},
    [RESIDENT] = {"blocks_per_sm", "blocks/SM", 0, CS_COLUMN_ALL, false},
    [WAVES] = {"waves", "waves", 2, CS_COLUMN_ALL, false},
    [ALU] = {"alu_pct", "ALU %", 0, CS_COLUMN_ALL, false},
    [FMA] = {"fma_pct", "FMA %", 0, CS_COLUMN_ALL, false},
    [TENSOR] = {"tensor_pct", "tensor %", 0, CS_COLUMN_ALL, false},
    [STALLS] = {"memory_stall_ratio", "mem stalls", 2, CS_COLUMN_ALL, false},
    [PAPER_STALLS] = {"paper_memory_stalls_pct", "paper stalls %", 2, CS_COLUMN_ALL, false},
};

typedef struct seen { /* what notes are needed for */
  bool no_kernels, not_counted, no_choice;
} seen;

static void put_extents(cs_table *table, int column, const int extents[3]) {
  if (extents[0] <= 0) return;
  cs_table_text(table, column, "%dx%dx%d", extents[0], extents[1], extents[2]);
}

static void put_shares(const cs_report_input *input, const cs_kernel_info *kernel,
                       cs_table *table) {
  const cs_unit_limits *unit = &input->device->unit;
  if (unit->registers <= 0) return;
  cs_demand demand = cs_kernel_demand(unit, input->device->units, kernel);
  const struct {
    int column, total;
    cs_resource resource;
  } shares[] = {{REGISTERS, unit->registers, CS_RESOURCE_REGISTERS},
                {SHARED, unit->shared_bytes, CS_RESOURCE_SHARED},
                {THREADS, unit->threads, CS_RESOURCE_THREADS},
                {BLOCKS, unit->blocks, CS_RESOURCE_BLOCKS}};
  for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
    if (shares[i].total <= 0) continue;
    cs_table_number(table, shares[i].column, 100 * demand.share[shares[i].resource]);
  }
  cs_table_number(table, RESIDENT, demand.resident);
  if (input->device->units > 0) cs_table_number(table, WAVES, demand.waves);
}

static void put_counters(const cs_kernel_profile *kernel, cs_table *table) {
  const double *value = kernel->counters.value;
  cs_table_number(table, ALU, value[CS_COUNTER_alu_pct]);
  cs_table_number(table, FMA, value[CS_COUNTER_fma_pct]);
  cs_table_number(table, TENSOR, value[CS_COUNTER_tensor_pct]);
  cs_table_number(table, STALLS, value[CS_COUNTER_memory_stall_ratio]);
}

static void put_kernel(const cs_report_input *input, const cs_kernel_profile *kernel,
                       cs_table *table, seen *notes) {
  const cs_kernel_info *info = &kernel->info;
  char name[64];
  cs_report_kernel_name(info->name, name);
  cs_table_text(table, KERNEL, "%s", name);
  cs_table_text(table, KERNEL_FULL, "%s", info->name);
  put_extents(table, GRID, info->grid);
  put_extents(table, BLOCK, info->block);
  cs_table_number(table, REGISTERS_THREAD, info->registers);
  cs_table_number(table, SHARED_BLOCK, info->static_shared + info->dynamic_shared);
  put_shares(input, info, table);
  if (kernel->counted) {
    put_counters(kernel, table);
  } else {
    notes->not_counted = true;
  }
}

static void put_choice(const cs_report_node *node, const cs_report_choice *choice,
                       cs_table *table) {
  const cs_measurement *measured = &choice->record->measured;
  cs_table_text(table, NODE, "%s", node->name);
  cs_table_text(table, LAYOUT, "%s", cs_layout_name(choice->op->layout));
  cs_table_text(table, CANDIDATE, "%s", choice->record->candidate.id);
  cs_table_number(table, COLD, measured->cold_us);
  cs_table_number(table, P10, measured->p10_us);
  cs_table_number(table, P90, measured->p90_us);
  cs_table_text(table, SPREAD, "%.2f–%.2f", measured->p10_us, measured->p90_us);
  cs_table_number(table, WORKSPACE, (double)choice->record->candidate.workspace_bytes);
}

/* A row a kernel; one without where they are not recorded. */
static void add_choice(const cs_report_input *input, const cs_report_node *node,
                       const cs_report_choice *choice, cs_table *table, seen *notes) {
  const cs_record *record = choice->record;
  if (record->n_kernels == 0) {
    cs_table_row(table, false);
    put_choice(node, choice, table);
    notes->no_kernels = true;
  }
  for (int k = 0; k < record->n_kernels; k++) {
    cs_table_row(table, k > 0);
    put_choice(node, choice, table);
    put_kernel(input, &record->kernels[k], table, notes);
  }
}

static bool add_paper(const cs_report_node *node, cs_table *table) {
  int n;
  const cs_paper_resources *paper = cs_paper_resources_of(&node->desc, &n);
  for (int i = 0; i < n; i++) {
    cs_table_row(table, false);
    cs_table_text(table, NODE, "%s", node->name);
    cs_table_text(table, CANDIDATE, "paper: %s", paper[i].algorithm);
    cs_table_text(table, KERNEL, "%s", paper[i].kernel);
    cs_table_text(table, KERNEL_FULL, "%s", paper[i].kernel);
    cs_table_number(table, REGISTERS, paper[i].registers);
    cs_table_number(table, SHARED, paper[i].shared);
    cs_table_number(table, THREADS, paper[i].threads);
    cs_table_number(table, BLOCKS, paper[i].blocks);
    cs_table_number(table, ALU, paper[i].alu);
    cs_table_number(table, PAPER_STALLS, paper[i].memory_stalls);
  }
  return n > 0;
}

static void add_notes(const cs_report_input *input, const seen *notes, bool papered,
                      cs_table *table) {
  cs_strbuf command = {0};
  if (notes->no_choice) {
    cs_table_note(table,
                  "Nodes without a candidate: none of theirs fits the workspace limit (and "
                  "--deterministic).");
  }
  if (input->device->unit.registers <= 0) {
    cs_table_note(table,
                  "Shares: unknown; the profile does not tell what an SM of this device "
                  "has (a CPU has none).");
  } else if (notes->no_kernels || notes->not_counted) {
    cs_report_measure_command(input, " --counters", &command);
    const char *text = command.data ? command.data : "convsched profile";
    if (notes->no_kernels) {
      cs_table_note(table,
                    "Kernels: not recorded of some candidates (more than 3 times slower "
                    "than the fastest, or measured before kernels were); %s records them.",
                    text);
    }
    if (notes->not_counted) {
      cs_table_note(table,
                    "ALU, FMA, tensor, mem stalls: not counted where –; %s counts those of "
                    "the Pareto sets, on a device that lets counters be read.",
                    text);
    }
  }
  table->failed = table->failed || command.failed;
  cs_strbuf_free(&command);
  if (!input->paper) return;
  cs_table_note(table,
                papered ? "Paper: %s; its memory stalls are percent of time."
                        : "Paper: no figures of these nodes in %s.",
                cs_paper_source);
}

cs_status cs_report_resources(const cs_report_input *input, const cs_report_nodes *nodes,
                              cs_table *out) {
  seen notes = {0};
  bool papered = false;
  cs_table_init(out, columns, N_COLUMNS);
  for (int i = 0; i < nodes->n; i++) {
    const cs_report_node *node = &nodes->items[i];
    cs_report_choice *choices;
    int n;
    if (!node->chosen) continue;
    CS_RETURN_IF_ERROR(cs_report_choices_of(input, node, &choices, &n));
    for (int k = 0; k < n; k++) add_choice(input, node, &choices[k], out, &notes);
    free(choices);
    if (n == 0) {
      cs_table_row(out, false);
      cs_table_text(out, NODE, "%s", node->name);
      notes.no_choice = true;
    }
    if (input->paper && add_paper(node, out)) papered = true;
  }
  if (!papered) cs_table_hide(out, PAPER_STALLS);
  add_notes(input, &notes, papered, out);
  return CS_OK;
}
