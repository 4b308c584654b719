#!/usr/bin/env python3
"""What micro-batches bring: for each cell (model, dtype, batch) `coselect` without them and with them as a choice,
under one workspace limit, both in one process, samples in turn. A cell is a process of its own; its record, one JSON line
(convsched.micro-batches/1), is appended to --out as soon as it has ended. A table is printed last.

    bench/micro_batches.py --out bench/results/NAME-micro-batches.jsonl
    bench/micro_batches.py --device cpu --cells squeezenet1_1/f32/8 --search-seconds 1 --deadline-s 60 --out /tmp/x.jsonl
    bench/micro_batches.py --table bench/results/NAME-micro-batches.jsonl

Exit: 0 every cell has ended and is right, 1 not so (the cells say what), 2 usage.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import time

import cell_table
import convsched
import records

SCHEMA = "convsched.micro-batches/1"
# Where faster algorithms that do not fit the limit are expected first.
CELLS = ("vgg16/f32/128", "resnet50/f32/128", "dcgan_generator/f16/1000", "dcgan_generator/tf32/1000",
         "resnet50/f16/128", "vgg16/f16/128")
WAYS = ("without", "with")
NONE, AUTO = 1, 0  # cs_session_options.micro_batches
LEAST_S = 20       # of a cell: none is begun with less left


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cells", type=lambda text: [c for c in text.split(",") if c], default=CELLS,
                        metavar="MODEL/DTYPE/BATCH,…")
    parser.add_argument("--library", default=str(records.ROOT / "build/release/libconvsched.so"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workspace-limit", type=int, default=64 << 20, metavar="BYTES")
    parser.add_argument("--search-seconds", type=float, default=4, help="of the undivided search (default 4)")
    parser.add_argument("--samples", type=int, default=50, help="pairs, 2 or more (default 50)")
    parser.add_argument("--deadline-s", type=float, default=150, help="for all; a cell that runs then is ended")
    parser.add_argument("--cache", default=None, metavar="FOLDER", help="profile database (default: the command's)")
    parser.add_argument("--commit", default=None)
    parser.add_argument("--out", default=None, help="JSON lines; appended to")
    parser.add_argument("--table", default=None, metavar="FILE", help="only print the table of these records")
    parser.add_argument("--one", default=None, help=argparse.SUPPRESS)  # a cell, in a process of its own
    options = parser.parse_args()
    if not options.out and not options.table:
        parser.error("--out is needed")
    try:
        for cell in options.cells:
            split_cell(cell)
    except ValueError:
        parser.error(f"--cells: found {cell}, wanted MODEL/DTYPE/BATCH")
    return options


def split_cell(cell):
    model, dtype, batch = cell.rsplit("/", 2)
    if dtype not in convsched.PRECISIONS:
        raise ValueError(dtype)
    return model, dtype, int(batch)


# ---- One cell ----

def sessions(options, device, graph, dtype, batch):
    """The second one finds what the first measured, and looks for divisions."""
    made = []
    for micro_batches, seconds in ((NONE, options.search_seconds), (AUTO, -1)):
        begun = time.monotonic()
        session = convsched.Session(device, graph, "coselect", batch, dtype, micro_batches=micro_batches,
                                    workspace_limit=options.workspace_limit, search_seconds=seconds,
                                    **({"cache_dir": options.cache} if options.cache else {}))
        made.append((session, time.monotonic() - begun))
    return made


def entry(way, session, seconds, samples):
    info = session.info()
    kept = {key: info[key] for key in ("streams", "split", "kernels", "tasks_planned", "arena_bytes",
                                       "workspace_bytes", "micro_batches") if key in info}
    return {"name": way, "latency_us": records.statistics(samples), "made_s": seconds, **kept,
            "verification": session.verify("sample").as_record()}


def measure(options, cell):
    model, dtype, batch = split_cell(cell)
    path = pathlib.Path(model)
    path = path if path.suffix else records.ROOT / "models" / f"{model}.json"
    library = convsched.Library(options.library)
    with library.open_device(options.device) as device, library.load_graph(path) as graph:
        made = sessions(options, device, graph, dtype, batch)
        samples = [[], []]
        for i in range(options.samples):
            for way in (0, 1) if i % 2 == 0 else (1, 0):
                made[way][0].latency()  # its own buffers and weights are in the cache as after a run of its own
                samples[way].append(made[way][0].latency())
        ratios = [a / b for a, b in zip(*samples)]
        low, high = cell_table.interval(ratios)
        record = {"schema": SCHEMA, "commit": records.commit(options.commit), "command": records.command_line(),
                  "model": path.stem, "dtype": dtype, "batch": batch, "workspace_limit": options.workspace_limit,
                  "device": device.info(),
                  "speedup": {"median": statistics.median(ratios), "low": low, "high": high},
                  "ways": [entry(way, session, seconds, found)
                           for way, (session, seconds), found in zip(WAYS, made, samples)]}
        for session, _ in made:
            session.close()
    records.append(options.out, record)
    return 0 if all(way["verification"]["passed"] for way in record["ways"]) else 1


# ---- The table ----

def parts_of(way):
    lists = way.get("micro_batches", {}).get("divided", [])
    texts = []
    for divided in lists:
        sizes = divided["parts"]
        runs = [f"{sizes.count(size)}×{size}" for size in sorted(set(sizes), reverse=True)]
        n = len(divided["nodes"])
        texts.append(f"{n} node{'s' if n > 1 else ''} in {'+'.join(runs)}")
    return "; ".join(texts) or "none"


def expected_of(way):
    taken = [trial for trial in way.get("micro_batches", {}).get("trials", []) if trial["taken"]]
    if not taken:
        return ""
    gain = taken[-1]["gain_us"]
    return f"{gain['candidates']:.0f} / {gain['cache']:.0f}"


def table(found):
    lines = ["| model | dtype | batch | without, µs | with, µs | times as fast | divided | gain expected of candidates / cache, µs |",
             "|---|---|---|---|---|---|---|---|"]
    for record in found:
        without, divided = record["ways"]
        speedup = record["speedup"]
        lines.append(f"| `{record['model']}` | {record['dtype']} | {record['batch']} "
                     f"| {without['latency_us']['median']:.1f} | {divided['latency_us']['median']:.1f} "
                     f"| {speedup['median']:.3f} ({speedup['low']:.3f} to {speedup['high']:.3f}) "
                     f"| {parts_of(divided)} | {expected_of(divided)} |")
    return "\n".join(lines)


def run_cells(options):
    failed, begun = 0, time.monotonic()
    for cell in options.cells:
        left = options.deadline_s - (time.monotonic() - begun)
        if left < LEAST_S:
            print(f"{cell}: not begun, {left:.0f} s left", file=sys.stderr)
            failed = 1
            continue
        child = [sys.executable, *sys.argv, "--one", cell]
        try:
            failed |= subprocess.run(child, timeout=left, check=False).returncode != 0
        except subprocess.TimeoutExpired:  # run() has ended it
            print(f"{cell}: ended after {left:.0f} s, its time", file=sys.stderr)
            failed = 1
    return int(failed)


def main():
    options = arguments()
    if options.table:
        print(table(records.of_schema(options.table, SCHEMA)))
        return 0
    if options.one:
        try:
            return measure(options, options.one)
        except convsched.Error as problem:
            print(f"{options.one}: {problem}", file=sys.stderr)
            return 1
    failed = run_cells(options)
    if pathlib.Path(options.out).exists():
        print(table(records.of_schema(options.out, SCHEMA)))
    return failed


if __name__ == "__main__":
    sys.exit(main())
