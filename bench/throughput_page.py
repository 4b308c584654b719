#!/usr/bin/env python3
"""Prints docs/throughput.md: convsched's throughput beside PyTorch's, from the records bench/results/*-throughput*.jsonl
(or of a folder given), and writes a picture of each model.

    bench/throughput_page.py [--pictures FOLDER] [FOLDER] > docs/throughput.md
"""
import argparse
import pathlib
import re

import cell_table
import records
import throughput_list
import throughput_ratio
from coselect_page import age, newest, number, rank, table
from peer_list import contender_names
from peer_ratio import is_peer
from peers_svg import Bar, Panel, file_name, picture, write

HEAD = """# Throughput: requests in flight, beside PyTorch

Made by `bench/throughput_page.py` from the records `bench/results/*-throughput*.jsonl`, which `bench/throughput.py` writes. Images
a second with several requests in flight, measured in one process on the same weights and inputs; on both sides the inputs of
every request are copied in from pinned host memory and its outputs out to it, in the precision's own type, and the host does
nothing between but launch. A window's rate is that of the requests that end in it while as many as told are in flight, by device
events; of a CPU by the host's clock.

Every contender is screened with each number of requests in flight, in a few short windows; the best of either side, three
unless the record says otherwise, then take windows in turn (*samples* of each), and only these decide. *ratio*: the best of
convsched's policies over PyTorch's best, medians of images a second, more than 1 where convsched is ahead, with the 95% interval
of the ratios of windows of the same round (order statistics). *ahead*: whether that interval lies above 1. *J/image*: joules an
image of the best of either side, of the whole board by NVML's counter, nothing subtracted, medians over longer windows of
their own. Of several records of a configuration the newest counts (the last by file name, which begins with its date).
A result that is WRONG takes no part. What a contender does: `how` in the records.
"""
WANTED = tuple((model, "f16", batch) for model in ("googlenet_bn", "resnet50") for batch in (1, 32))


def is_gpu(record):
    return record["device"].get("backend") == "cuda"


def load(folder):
    """(file name, record), the oldest first."""
    paths = [path for path in folder.glob("*.jsonl") if re.search(r"-throughput(-|$)", path.stem)]
    return [(path.name, record) for path in sorted(paths, key=age)
            for record in records.of_schema(path, throughput_ratio.SCHEMA)]


def is_comparison(record):
    return throughput_ratio.of(record).ratio is not None


# ---- The configurations ----

def lacking(record):
    """PyTorch's contenders that the record neither measured nor tells why not: the best may be among them."""
    told = {entry["name"] for entry in [*record["contenders"], *record["left_out"]]}
    return [name for name in contender_names(throughput_list.GPU) if name not in told] if is_gpu(record) else []


def verdict(record):
    """Whether convsched is ahead."""
    found = throughput_ratio.of(record)
    low, high = found.interval or (found.ratio, found.ratio)
    if high < 1:
        return "no"
    if low <= 1:
        return "draw"
    return "peers lack" if lacking(record) else "yes"


def joules(value):
    return None if value is None else f"{value:.3g}"


def best_of(found):
    return (number(found.images_per_s, 0), found.contender["name"], found.contender.get("layout"), found.rate["in_flight"])


def row(cell, name, record):
    found = throughput_ratio.of(record)
    ours, policy, _, in_flight = best_of(found.ours)
    interval = found.interval and f"{found.interval[0]:.2f}–{found.interval[1]:.2f}"
    samples = min(len(best.rate["final"]["images_per_s"]["samples"]) for best in (found.ours, found.peer))
    return (*cell, ours, policy, in_flight, *best_of(found.peer), number(found.ratio, 2), interval, verdict(record),
            joules(found.ours.joules), joules(found.peer.joules), number(found.joules, 2), samples, name)


def print_summary(cells):
    """Of a GPU's records: what is to be ahead, and whether it is."""
    told = {what: [] for what in ("yes", "draw", "no", "peers lack")}
    for cell in sorted(cells, key=rank):
        record, name = cells[cell][1], cell_table.cell_name(cell)
        ratio = f"{throughput_ratio.of(record).ratio:.2f}"
        more = {"yes": "", "peers lack": f" ({', '.join(lacking(record))})"}.get(verdict(record), f" ({ratio})")
        told[verdict(record)].append(name + more)
    missing = [cell_table.cell_name(cell) for cell in WANTED if cell not in cells]
    print(f"convsched is ahead of PyTorch's best in **{len(told['yes'])} of {len(cells)}** configurations recorded.\n")
    print(f"- Behind: {', '.join(told['no']) or 'none'}. A draw: {', '.join(told['draw']) or 'none'}.")
    print(f"- Contenders not measured, so that nothing is decided: {', '.join(told['peers lack']) or 'none'}.")
    print(f"- Wanted and not recorded ({len(missing)}): {', '.join(missing) or 'none'}.\n")


def rate_cell(rates, in_flight):
    """The median of the finals, which is told bold, or of the screening."""
    rate = next((r for r in rates if r["in_flight"] == in_flight), None)
    if rate is None:
        return None
    if rate.get("final"):
        return f"**{rate['final']['images_per_s']['median']:.0f}**"
    return number(rate["screening"]["images_per_s"]["median"], 0)


def contender_rows(cell, record, in_flight):
    for entry in record["contenders"]:
        error = entry.get("rel_l2_float64")
        yield (*cell, entry["name"], entry.get("layout"), *(rate_cell(entry["rates"], n) for n in in_flight),
               number(entry["first_result_s"], 1), None if error is None else f"{error:.1e}",
               "ok" if entry["verification"]["passed"] else "WRONG")


def print_left_out(cells):
    told = []
    for cell in sorted(cells, key=rank):
        record, name = cells[cell][1], cell_table.cell_name(cell)
        told += [f"- {name}: {e['name']}{' ' + e['layout'] if e.get('layout') else ''}: {e['reason']}"
                 for e in record["left_out"]]
        if record["no_joules"]:
            told.append(f"- {name}: joules: {record['no_joules']}")
    if told:
        print("Left out:\n\n" + "\n".join(told) + "\n")


def print_device(cells, links):
    if is_gpu(next(iter(cells.values()))[1]):
        print_summary(cells)
    order = sorted(cells, key=rank)
    table(("model", "dtype", "batch", "convsched", "policy", "in flight", "PyTorch", "contender", "layout", "in flight",
           "ratio", "95%", "ahead", "J/image", "PyTorch's J/image", "its ratio", "samples", "file"),
          [row(cell, *cells[cell]) for cell in order])
    for model, link in links:
        print(f"![{model}: images a second over convsched's best]({link})\n")
    in_flight = sorted({rate["in_flight"] for _, record in cells.values() for entry in record["contenders"]
                        for rate in entry["rates"]})
    print("Images a second of every contender with so many requests in flight, from the screening's few windows; **bold**: from "
          "the finals. *preparation*: seconds to the first result.\n")
    table(("model", "dtype", "batch", "contender", "layout", *(f"{n} in flight" for n in in_flight), "preparation s", "error",
           "verdict"), [line for cell in order for line in contender_rows(cell, cells[cell][1], in_flight)])
    print_left_out(cells)


# ---- The pictures ----

def fastest(entry):
    """(images a second, number in flight) of a contender: of its finals, where it has any."""
    finals = [(rate["final"]["images_per_s"]["median"], rate["in_flight"]) for rate in entry["rates"] if rate.get("final")]
    return max(finals or [(rate["screening"]["images_per_s"]["median"], rate["in_flight"]) for rate in entry["rates"]])


def bars(record):
    """The best of ours, and each of PyTorch's in its better layout; the fastest first."""
    found = throughput_ratio.of(record)
    ours, peer = found.ours.contender, found.peer.contender
    shown = {ours["name"]: ours, peer["name"]: peer}
    others = [e for e in record["contenders"] if is_peer(e) and e["verification"]["passed"]]
    for entry in sorted(others, key=fastest, reverse=True):
        shown.setdefault(entry["name"], entry)
    made = []
    for entry in shown.values():
        value, in_flight = fastest(entry)
        kind = "ours" if entry is ours else "best" if entry is peer else "peer"
        label = f"convsched {entry['name']}" if entry is ours else entry["name"].removeprefix("torch.")
        made.append(Bar(f"{label}, {in_flight}", value, kind))
    return sorted(made, key=lambda bar: -bar.value)


def pictures(device, cells):
    """{model: (file name, SVG)}."""
    made = {}
    order = sorted(cells, key=rank)
    for model in dict.fromkeys(cell[0] for cell in order):
        panels = [Panel(f"{cell[1]}, batch {cell[2]} (name, requests in flight)", bars(cells[cell][1]),
                        throughput_ratio.of(cells[cell][1]).ours.images_per_s, unit="images/s", digits=0)
                  for cell in order if cell[0] == model]
        made[model] = (file_name(model, device), picture(f"{model} on {device}: images a second over convsched's best", panels))
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=records.ROOT / "bench" / "results")
    parser.add_argument("--pictures", type=pathlib.Path, default=None, metavar="FOLDER", help="where to write them")
    options = parser.parse_args()
    print(HEAD)
    found = newest(load(options.folder), is_comparison)
    if not any(is_gpu(record) for cells in found.values() for _, record in cells.values()):
        print("No GPU is recorded yet.\n")
    for device, cells in sorted(found.items()):
        made = pictures(device, cells)
        print(f"## {device}\n")
        print_device(cells, [(model, f"throughput/{name}") for model, (name, _) in made.items()])
        write(made, options.pictures)


if __name__ == "__main__":
    main()
