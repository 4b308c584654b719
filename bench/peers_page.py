#!/usr/bin/env python3
"""Prints docs/peers.md: convsched beside other systems, from the records bench/results/*-peers*.jsonl (or
of a folder given), and writes a picture of each model.

    bench/peers_page.py [--pictures FOLDER] [FOLDER] > docs/peers.md
"""
import argparse
import pathlib
import re

import cell_table
import peer_list
import peer_ratio
import records
from coselect_page import age, newest, number, rank, table
from peers_svg import Bar, Panel, file_name, picture, write

HEAD = """# convsched beside other systems

Made by `bench/peers_page.py` from the records `bench/results/*-peers*.jsonl`, which `bench/peers.py` writes. Times are medians in
microseconds of samples taken in turn in one process, on the same weights and input. *ratio*: the best peer over the best of
convsched's policies, more than 1 where convsched is faster, with the 95% interval of the ratios of samples taken in the same
round; *coselect*: over that policy alone. Of NCHW and channels-last each peer has the faster. † is outside the ratio; a result that
is WRONG, too. Of several records of a configuration the newest counts (the last by file name, which begins with its date).

How samples are taken: convsched, CUDA graphs and `torch.compile` by device events around one call, the device kept busy until
just before; `torch.eager` likewise, which leaves most of its launching in, as its user has it. `torch.compile` copies a new input
into its CUDA graph, `torch.compile_static` has it lie still. `jax.jit` has no device events: the host's clock, so differenced that
launching and waiting are left out (`measured` in the records). *host*: one whole call on the host's clock, waiting for its end;
convsched's copies input and output from and to the host, the others' do not. *preparation*: seconds from the model and its weights
to the first result, all measuring, compiling and capturing in it; contenders are prepared one after the other and find caches
filled by those before, most of all those marked ∗ (and convsched its profile, where it was kept).
"""
# What is wanted of the ratio: tf32 and f16 at batch 1, then at batch 32.
CELLS = (("tf32", 1), ("f16", 1), ("tf32", 32), ("f16", 32))
WANTED = {"googlenet": (2.0, 2.0, 1.4, 1.5), "googlenet_bn": (2.0, 2.0, 1.4, 1.5), "inception_v3": (1.6, 1.6, 1.2, 1.3),
          "resnet50": (1.3, 1.3, 1.1, 1.1), "squeezenet1_1": (1.3, 1.4, 1.1, 1.2), "densenet121": (1.5, 1.4, 1.2, 1.3),
          "dcgan_generator": (1.3, 1.3, 1.1, 1.1)}


def wanted(cell):
    model, *rest = cell
    return dict(zip(CELLS, WANTED.get(model, ()))).get(tuple(rest))


def is_gpu(record):
    return record["device"].get("backend") == "cuda"


def load(folder):
    """(file name, record), the oldest first."""
    paths = [path for path in folder.glob("*.jsonl") if re.search(r"-peers(-|$)", path.stem)]
    return [(path.name, record) for path in sorted(paths, key=age) for record in records.of_schema(path)]


def is_comparison(record):
    found = peer_ratio.of(record)
    return bool(found.peer and found.ours)


def wrong(entry):
    verification = entry.get("verification")
    return verification is not None and not verification["passed"]


def samples(record):
    """The fewest of any contender that counts."""
    return min(len(e["latency_us"]["samples"]) for e in record["policies"] if peer_ratio.counts(e))


# ---- The configurations ----

def figure(entry):
    """A peer's latency in a cell of the table."""
    if entry is None or not entry.get("latency_us"):
        return None
    return number(peer_ratio.median(entry), 1) + ("†" if entry.get("outside_ratio") else "") + (
        " WRONG" if wrong(entry) else "")


def lacking(record):
    """Other systems that the record neither measured nor tells why not: the best peer may be among them."""
    told = {entry["name"] for entry in [*record["policies"], *record.get("left_out", ())]}
    return [name for name in peer_list.contender_names(peer_list.GPU) if name not in told]


def is_reached(cell, record):
    return not lacking(record) and peer_ratio.of(record).ratio >= wanted(cell)


def row(cell, name, record, peers):
    found, entries = peer_ratio.of(record), {e["name"]: e for e in record["policies"]}
    bar = wanted(cell) if is_gpu(record) else None
    interval = found.interval and f"{found.interval[0]:.2f}–{found.interval[1]:.2f}"
    return (*cell, number(peer_ratio.median(found.ours), 1), found.ours["name"], *(figure(entries.get(p)) for p in peers),
            found.peer["name"], number(found.ratio, 2), interval, number(found.coselect, 2), bar and f"{bar:.1f}",
            bar and ("yes" if is_reached(cell, record) else "peers lack" if found.ratio >= bar else "no"),
            samples(record), name)


def print_summary(cells):
    """How many of the bars are reached, and what is missing; of a GPU's records."""
    judged = {cell: cells[cell][1] for cell in sorted(cells, key=rank) if wanted(cell)}
    reached = [cell for cell, record in judged.items() if is_reached(cell, record)]
    below = {cell: peer_ratio.of(record).ratio for cell, record in judged.items()
             if peer_ratio.of(record).ratio < wanted(cell)}
    missed = ", ".join(f"{cell_table.cell_name(c)} ({ratio:.2f} of {wanted(c):.1f})" for c, ratio in below.items())
    partial = ", ".join(f"{cell_table.cell_name(c)} ({', '.join(lacking(record))})" for c, record in judged.items()
                        if lacking(record))
    everything = [(model, *cell) for model in WANTED for cell in CELLS]
    missing = ", ".join(cell_table.cell_name(cell) for cell in everything if cell not in cells)
    print(f"The ratio wanted is reached in **{len(reached)} of {len(judged)}** configurations recorded.\n")
    print(f"- Not reached: {missed or 'none'}.")
    print(f"- Peers not measured, so that nothing is decided: {partial or 'none'}.")
    print(f"- Not recorded ({sum(cell not in cells for cell in everything)}): {missing or 'none'}.")
    few = ", ".join(cell_table.cell_name(c) for c in judged if samples(cells[c][1]) < 50)
    print(f"- Fewer than 50 samples: {few or 'none'}.\n")


def contender_rows(cell, record):
    for entry in record["policies"]:
        if not entry.get("latency_us"):
            continue
        prepared = entry.get("first_result_s", entry.get("prepare_s") if peer_ratio.is_peer(entry) else None)
        error, latency = entry.get("rel_l2_float64"), entry["latency_us"]
        yield (*cell, entry["name"] + ("†" if entry.get("outside_ratio") else ""), entry.get("layout"),
               *(number(latency[what], 1) for what in ("median", "p10", "p90")),
               number(entry.get("other_layout", {}).get("median"), 1), number(entry.get("host_us", {}).get("median"), 1),
               None if prepared is None else f"{prepared:.1f}" + ("∗" if entry.get("prepare_reuses") else ""),
               None if error is None else f"{error:.1e}", "WRONG" if wrong(entry) else "ok", len(latency["samples"]))


def print_left_out(cells):
    told = [f"- {cell_table.cell_name(cell)}: {e['name']}{' ' + e['layout'] if e.get('layout') else ''}: {e['reason']}"
            for cell in sorted(cells, key=rank) for e in cells[cell][1].get("left_out", ())]
    if told:
        print("Left out:\n")
        print("\n".join(told) + "\n")


def print_device(cells, links):
    first = next(iter(cells.values()))[1]
    if is_gpu(first):
        print_summary(cells)
    order = sorted(cells, key=rank)
    peers = sorted({e["name"] for _, record in cells.values() for e in record["policies"] if peer_ratio.is_peer(e)})
    table(("model", "dtype", "batch", "convsched", "policy", *peers, "best peer", "ratio", "95%", "coselect", "wanted",
           "reached", "samples", "file"), [row(cell, *cells[cell], peers) for cell in order])
    for model, link in links:
        print(f"![{model}: latencies over convsched's best]({link})\n")
    print("Every contender:\n")
    table(("model", "dtype", "batch", "policy", "layout", "median", "p10", "p90", "other layout", "host",
           "preparation s", "error", "verdict", "samples"),
          [line for cell in order for line in contender_rows(cell, cells[cell][1])])
    print_left_out(cells)


# ---- The pictures ----

def bars(record):
    """The best of ours and the peers, the fastest first."""
    found = peer_ratio.of(record)
    shown = [e for e in record["policies"] if e.get("latency_us") and not wrong(e)
             and (peer_ratio.is_peer(e) or e is found.ours)]
    kind = lambda e: ("ours" if e is found.ours else "best" if e is found.peer else
                      "outside" if e.get("outside_ratio") else "peer")
    label = lambda e: f"convsched {e['name']}" if e is found.ours else e["name"]
    return [Bar(label(e), peer_ratio.median(e), kind(e)) for e in sorted(shown, key=peer_ratio.median)]


def pictures(device, cells):
    """{model: (file name, SVG)}."""
    made = {}
    for model in dict.fromkeys(cell[0] for cell in sorted(cells, key=rank)):
        own = [cell for cell in sorted(cells, key=rank) if cell[0] == model]
        panels = [Panel(f"{cell[1]}, batch {cell[2]}", bars(cells[cell][1]),
                        peer_ratio.median(peer_ratio.of(cells[cell][1]).ours),
                        wanted(cell) if is_gpu(cells[cell][1]) else None) for cell in own]
        made[model] = (file_name(model, device), picture(f"{model} on {device}: latency over convsched's best", panels))
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=records.ROOT / "bench" / "results")
    parser.add_argument("--pictures", type=pathlib.Path, default=None, metavar="FOLDER", help="where to write them")
    options = parser.parse_args()
    print(HEAD)
    for device, cells in sorted(newest(load(options.folder), is_comparison).items()):
        made = pictures(device, cells)
        print(f"## {device}\n")
        print_device(cells, [(model, f"peers/{name}") for model, (name, _) in made.items()])
        write(made, options.pictures)


if __name__ == "__main__":
    main()
