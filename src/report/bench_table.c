/* The table of a bench, and what is told below it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/bench.h"

enum {
  BENCH,
  CASE,
  BATCH,
  DTYPE,
  DEVICE,
  RUNG,
  US,
  COLD,
  GFLOPS,
  OF_PEAK,
  OF_ROOFLINE,
  AGAINST_OWN,
  AGAINST_CPU,
  SAMPLES,
  CANDIDATE,
  SKIPPED,
  NOTE,
  N_COLUMNS
};

static const cs_table_column columns[N_COLUMNS] = {
    [BENCH] = {"bench", "", CS_COLUMN_TEXT, CS_COLUMN_DATA, false},
    [CASE] = {"case", "case", CS_COLUMN_TEXT, CS_COLUMN_ALL, true},
    [BATCH] = {"batch", "batch", 0, CS_COLUMN_ALL, true},
    [DTYPE] = {"dtype", "dtype", CS_COLUMN_TEXT, CS_COLUMN_ALL, true},
    [DEVICE] = {"device", "device", CS_COLUMN_TEXT, CS_COLUMN_ALL, true},
    [RUNG] = {"rung", "rung", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [US] = {"us", "us", 2, CS_COLUMN_ALL, false},
    [COLD] = {"cold_us", "", 2, CS_COLUMN_DATA, false},
    [GFLOPS] = {"gflops", "GFLOP/s", 1, CS_COLUMN_ALL, false},
    [OF_PEAK] = {"share_of_peak_pct", "% of peak", 2, CS_COLUMN_ALL, false},
    [OF_ROOFLINE] = {"share_of_roofline_pct", "% of roofline", 2, CS_COLUMN_ALL, false},
    [AGAINST_OWN] = {"times_naive", "x naive", 1, CS_COLUMN_ALL, false},
    [AGAINST_CPU] = {"times_cpu_naive", "x CPU naive", 1, CS_COLUMN_ALL, false},
    [SAMPLES] = {"samples", "samples", 0, CS_COLUMN_ALL, false},
    [CANDIDATE] = {"candidate", "", CS_COLUMN_TEXT, CS_COLUMN_DATA, false},
    [SKIPPED] = {"skipped", "", CS_COLUMN_TEXT, CS_COLUMN_DATA, false},
    [NOTE] = {"", "candidate", CS_COLUMN_TEXT, CS_COLUMN_PERSON, false},
};

static void add_row(const cs_bench_row *row, bool continues, cs_table *table) {
  cs_table_row(table, continues);
  cs_table_text(table, BENCH, "%s", row->bench);
  cs_table_text(table, CASE, "%s", row->which);
  cs_table_number(table, BATCH, row->batch);
  cs_table_text(table, DTYPE, "%s", row->dtype);
  cs_table_text(table, DEVICE, "%s", row->device);
  cs_table_text(table, RUNG, "%s", row->rung);
  if (row->skipped) {
    cs_table_text(table, SKIPPED, "%s", row->skipped);
    cs_table_text(table, NOTE, "skipped: %s", row->skipped);
    return;
  }
  cs_table_number(table, US, row->us);
  cs_table_number(table, COLD, row->cold_us);
  cs_table_number(table, GFLOPS, 1e-9 * row->flops);
  cs_table_number(table, OF_PEAK, 100 * row->of_peak);
  cs_table_number(table, OF_ROOFLINE, 100 * row->of_roofline);
  cs_table_number(table, AGAINST_OWN, row->against_own);
  cs_table_number(table, AGAINST_CPU, row->against_cpu);
  cs_table_number(table, SAMPLES, row->samples);
  cs_table_text(table, CANDIDATE, "%s", row->id);
  cs_table_text(table, NOTE, "%s", row->id);
}

/* ---- All cases together ---- */

/* Of the best rows of one device, dtype and batch, where a naive time of the CPU is known for every
 * case: the sums of both. */
typedef struct sums {
  double us, naive_us;
  int cases, unknown; /* unknown: without a naive time */
} sums;

static bool same_sweep(const cs_bench_row *a, const cs_bench_row *b) {
  bool same_batch = isnan(a->batch) ? isnan(b->batch) : a->batch == b->batch;
  return same_batch && strcmp(a->bench, b->bench) == 0 && strcmp(a->device, b->device) == 0 &&
         strcmp(a->dtype, b->dtype) == 0;
}

static sums sums_of(const cs_bench_records *records, const cs_bench_row *first) {
  sums out = {0};
  for (size_t i = 0; i < records->n; i++) {
    const cs_bench_row *row = &records->rows[i];
    if (!row->best || !same_sweep(row, first)) continue;
    out.cases++;
    out.unknown += isnan(row->against_cpu);
    if (isnan(row->against_cpu)) continue;
    out.us += row->us;
    out.naive_us += row->us * row->against_cpu;
  }
  return out;
}

static bool is_first(const cs_bench_records *records, size_t index) {
  for (size_t i = 0; i < index; i++)
    if (records->rows[i].best && same_sweep(&records->rows[i], &records->rows[index])) return false;
  return true;
}

static void add_notes(const cs_bench_records *records, cs_table *table) {
  for (size_t i = 0; i < records->n; i++) {
    const cs_bench_row *row = &records->rows[i];
    char batch[48] = "";
    if (!row->best || !is_first(records, i)) continue;
    sums all = sums_of(records, row);
    if (all.cases == all.unknown) continue;
    if (!isnan(row->batch)) snprintf(batch, sizeof batch, ", batch %.0f", row->batch);
    cs_table_note(table,
                  "%s, %s%s: sequential naive loops on the CPU %.4g ms, the fastest on %s %.4g ms: "
                  "%.4gx, over %d of %d cases.",
                  row->bench, row->dtype, batch, 1e-3 * all.naive_us, row->device, 1e-3 * all.us,
                  all.naive_us / all.us, all.cases - all.unknown, all.cases);
  }
  cs_table_note(
      table,
      "us: median, the same tensors every time (of slow rungs others every time). Peak and "
      "roofline: the rates that the "
      "device sustains in that precision, measured (the highest of all cases). x naive: "
      "times as fast as the "
      "device's own naive rung, and as the CPU's on one thread.");
}

void cs_bench_table_of(const cs_bench_records *records, cs_table *out) {
  bool batches = false;
  const json_t *before = NULL;
  cs_table_init(out, columns, N_COLUMNS);
  for (size_t i = 0; i < records->n; i++) {
    const cs_bench_row *row = &records->rows[i];
    batches = batches || !isnan(row->batch);
    add_row(row, row->record == before, out);
    before = row->record;
  }
  if (!batches) cs_table_hide(out, BATCH);
  add_notes(records, out);
}
