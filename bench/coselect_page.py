#!/usr/bin/env python3
"""Prints docs/coselect.md: coselect beside the other policies, cell by cell, from the records
bench/results/*-coselect*.jsonl, *-ablation*.jsonl and *-overlap*.jsonl (or from a folder given).

    bench/coselect_page.py [FOLDER] > docs/coselect.md
"""
import pathlib
import re
import sys

import cell_table
import records

HEAD = """# coselect beside the other policies

Made by `bench/coselect_page.py` from the records under `bench/results/`; `bench/cells.py` writes such records. Times are medians
in microseconds of samples taken in turn in one process. *Over* a policy: its median over coselect's, so more than 1 means that
coselect is faster; *best other* is the fastest of the other policies. Slower than `sequential` is where the 95% interval of
their paired samples' ratios (order statistics) lies above 1: plans that are the same differ by chance, and where coselect runs
what `sequential` does, task by task, what is between the two is where in memory each copy of it lies. Of several records of a
cell the newest counts (the last by file name, which begins with its date). `roofline` is a bound; `path` (the longest path of the fastest candidates, cold) and
`area` (what the fastest candidates take of the machine) are estimates.
"""
KINDS = ("coselect", "ablation", "overlap")

# What coselect is to reach: cell, against which policy, how many times as fast.
WANTED = ((("googlenet_bn", "f16", 8), "streams", 1.15), (("googlenet_bn", "f16", 32), "streams", 1.10),
          (("googlenet_bn", "tf32", 32), "streams", 1.10), (("googlenet_bn", "tf32", 1), "sequential", 1.60))
# And its choice of candidates alone, over the ablation's base.
WANTED_CANDIDATES = {("googlenet_bn", "f16", 8): 1.08, ("googlenet_bn", "f16", 32): 1.04,
                     ("googlenet_bn", "tf32", 32): 1.04}


def age(path):
    """Numbers in names by value: NAME-coselect, NAME-coselect-2, …, NAME-coselect-10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.stem)]


def load(folder):
    """(file name, record), the oldest first."""
    paths = [path for path in folder.glob("*.jsonl")
             if any(re.search(rf"-{kind}(-|$)", path.stem) for kind in KINDS)]
    return [(path.name, record) for path in sorted(paths, key=age) for record in records.of_schema(path)]


def newest(found, wanted):
    """By device and cell: the last record that is `wanted`, with its file."""
    kept = {}
    for name, record in found:
        if wanted(record):
            kept.setdefault(record["device"]["name"], {})[cell_table.cell_of(record)] = (name, record)
    return kept


def rank(cell):
    """Models in their usual order, others behind; then precision and batch."""
    model, dtype, batch = cell
    usual = cell_table.MODELS
    return (usual.index(model) if model in usual else len(usual), model,
            cell_table.DTYPES.index(dtype) if dtype in cell_table.DTYPES else len(cell_table.DTYPES), dtype, batch)


def table(columns, rows):
    print("| " + " | ".join(columns) + " |")
    print("|" + "|".join("---" if c in ("model", "dtype", "policy", "block", "over", "base", "verdict", "file") else "--:" for c in columns) + "|")
    for row in rows:
        print("| " + " | ".join("" if v is None else str(v) for v in row) + " |")
    print()


def number(value, digits):
    return None if value is None else f"{value:.{digits}f}"


def names(cells):
    return ", ".join(map(cell_table.cell_name, cells)) or "none"


# ---- The cells ----

def cell_row(cell, name, record):
    us, gains, bounds = cell_table.latencies(record), cell_table.gains(record), record.get("bounds") or {}
    return (cell[0], cell[1], cell[2], *(number(us[p], 1) for p in cell_table.POLICIES),
            *(number(gains[g], 3) for g in ("best other", "sequential", "streams")),
            *(number(bounds.get(b), 1) for b in ("roofline_us", "critical_path_us", "area_us")),
            cell_table.samples(record), cell_table.verdict(record), name)


def judge(cells):
    """What the table is to show, in sentences. A wrong result wins nothing."""
    gains = {cell: cell_table.gains(record) for cell, (_, record) in cells.items()}
    right = {cell for cell, (_, record) in cells.items() if cell_table.verdict(record) != "WRONG"}
    order = sorted(cells, key=rank)
    margin = cell_table.MARGIN
    won = [c for c in order if c in right and gains[c]["best other"] > margin]
    print(f"coselect is more than 3% faster than the best other policy in **{len(won)} of {len(cells)}** cells recorded.\n")
    print(f"- More than 3% slower than the best other: {names(c for c in order if 1 / gains[c]['best other'] > margin)}.")
    slower = [c for c in order if cell_table.is_slower(cells[c][1], "sequential")]
    print(f"- Slower than `sequential`: {names(slower)}.")
    same = [c for c in order if cell_table.is_same_plan(cells[c][1], "sequential")]
    print(f"- The plan of `sequential` itself: {names(same)}.")
    print(f"- Wrong results: {names(c for c in order if c not in right)}.")
    few = [c for c in order if cell_table.samples(cells[c][1]) < 50]
    print(f"- Fewer than 50 samples of a policy: {names(few)}.")


def print_missing(cells):
    """Of the cells that are to be recorded of a GPU."""
    parts, count = [], 0
    for model in cell_table.MODELS:
        for dtype in cell_table.DTYPES:
            batches = [b for b in cell_table.BATCHES if (model, dtype, b) not in cells]
            count += len(batches)
            if batches:
                parts.append(f"{model} {dtype} batch {', '.join(map(str, batches))}")
    print(f"- Not recorded ({count}): {'; '.join(parts) or 'none'}.")


def is_gpu(record):
    return record["device"].get("backend") == "cuda"


def print_together(by_device):
    """The cells over all GPUs, each as its newest record has it, whichever of them that is of."""
    oldest_first = sorted(((pathlib.Path(name), device, cell, record) for device, cells in by_device.items()
                           for cell, (name, record) in cells.items() if is_gpu(record)), key=lambda f: age(f[0]))
    together = {cell: (name.name, record) for name, _, cell, record in oldest_first}
    devices = sorted({device for _, device, _, _ in oldest_first})
    if len(devices) < 2:
        return
    print("## All GPUs\n")
    print(f"Cells as their newest record has them, of {' or '.join(devices)}.\n")
    judge(together)
    print_missing(together)
    print()


def print_cells(cells, of_gpu):
    judge(cells)
    if of_gpu:
        print_missing(cells)
    print()
    table(("model", "dtype", "batch", *cell_table.POLICIES, "over best other", "over sequential", "over streams",
           "roofline", "path", "area", "samples", "verdict", "file"),
          [cell_row(cell, *cells[cell]) for cell in sorted(cells, key=rank)])
    reached = [(*cell, against, number(wanted, 2), number(cell_table.gains(cells[cell][1])[against], 3))
               for cell, against, wanted in WANTED if cell in cells]
    if of_gpu and reached:
        print("What is wanted of some cells:\n")
        table(("model", "dtype", "batch", "over", "wanted", "is"), reached)


# ---- What candidates, streams and order bring ----

def print_ablations(cells):
    order = sorted(cells, key=rank)
    variants = list(dict.fromkeys(v["name"] for c in order for v in cells[c][1]["ablation"]["variants"]))
    rows = []
    for cell in order:
        name, record = cells[cell]
        by_name = {v["name"]: v for v in record["ablation"]["variants"]}
        wanted = WANTED_CANDIDATES.get(cell) if is_gpu(record) else None
        rows.append((*cell, record["ablation"]["base"],
                     number(by_name["base"]["latency_us"], 1) if "base" in by_name else None,
                     *(number(by_name[v]["speedup_vs_base"], 3) if v in by_name else None for v in variants if v != "base"),
                     number(wanted, 2), record["ablation"]["samples"], name))
    print("Speed of the base policy's plan with a part of coselect's choices, over the base (`run --ablate`):\n")
    table(("model", "dtype", "batch", "base", "base us", *(v.replace("_", " ") for v in variants if v != "base"),
           "candidates alone wanted", "samples", "file"), rows)


# ---- Whether the planned concurrency is there ----

def overlaps(record):
    """(policy, overlap) of each policy whose timeline was traced."""
    return [(policy["name"], policy["overlap"]) for policy in record["policies"] if policy.get("overlap")]


def overlap_row(what, part):
    """Of a block or the whole; null: nothing of it ran on the device."""
    predicted, achieved = part.get("predicted") or {}, part.get("achieved") or {}
    return (*what, *(number(side.get("concurrency"), 2) for side in (predicted, achieved)),
            *(number(side.get("overlapped_us"), 1) for side in (predicted, achieved)))


def print_overlaps(cells):
    rows = []
    for cell in sorted(cells, key=rank):
        name, record = cells[cell]
        for policy, overlap in overlaps(record):
            for block in overlap["blocks"]:
                if block["streams"] > 1:  # on one stream there is nothing to promise
                    what = (*cell, policy, block["tasks"][0], len(block["tasks"]), block["streams"])
                    rows.append((*overlap_row(what, block), name))
            rows.append((*overlap_row((*cell, policy, "all", None, None), overlap["whole"]), name))
    print("What the plan promises to run at the same time, and what a tracer saw of it on the device (medians of several runs, which")
    print("are no latencies). Concurrency: the kernels' times together over the time in which at least one ran; overlapped: the")
    print("microseconds in which two or more did. A block is named by its first task; those on one stream are left out.\n")
    table(("model", "dtype", "batch", "policy", "block", "tasks", "streams", "concurrency predicted", "achieved",
           "overlapped us predicted", "achieved", "file"), rows)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else records.ROOT / "bench" / "results"
    found = load(folder)
    parts = (("Cells", newest(found, cell_table.is_complete)),
             ("Ablation", newest(found, lambda r: r.get("ablation"))),
             ("Overlap", newest(found, overlaps)))
    print(HEAD)
    print_together(parts[0][1])
    for device in sorted({device for _, kept in parts for device in kept}):
        print(f"## {device}\n")
        for title, kept in parts:
            cells = kept.get(device)
            if not cells:
                continue
            print(f"### {title}\n")
            if title == "Cells":
                first = next(iter(cells.values()))[1]
                print_cells(cells, is_gpu(first))
            else:
                (print_ablations if title == "Ablation" else print_overlaps)(cells)


if __name__ == "__main__":
    main()
