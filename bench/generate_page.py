#!/usr/bin/env python3
"""Prints docs/generate-times.md: what `convsched generate --time --json` recorded, bench/results/*-generate.jsonl.

    bench/generate_page.py > docs/generate-times.md
"""
import statistics

import records

HEAD = """# Times of generating

Made by `bench/generate_page.py` from the records `bench/results/*-generate.jsonl` of `convsched generate --time --json`. Milliseconds
for all pictures of a row, medians of the windows: computing alone (pixels included, one request after the other), and from latent
vectors in host memory to 8-bit pixels in host memory with requests in flight; in brackets the fastest and the slowest window.
The roofline bounds computing ([scheduling.md](scheduling.md)); what it is of the time is the last column.
"""
COLUMNS = ("model", "dtype", "policy", "pictures", "a request", "in flight", "computing", "with copies", "roofline",
           "roofline / computing")


def times(samples):
    return f"{statistics.median(samples):.3f} [{min(samples):.3f}, {max(samples):.3f}]"


def row(record):
    roofline, compute = record["roofline_ms"], record["samples_ms"]["compute"]
    known = roofline is not None
    return (record["model"], record["dtype"], record["policy"], str(record["count"]), str(record["batch"]),
            str(record["in_flight"]), times(compute), times(record["samples_ms"]["with_copies"]),
            f"{roofline:.3f}" if known else "not known",
            f"{roofline / statistics.median(compute):.2f}" if known else "")


# ---- Beside plain loops ----

NAIVE_HEAD = """## Beside plain loops on a CPU

The same layers by one thread's loops, every input added to the outputs that it reaches (`convsched bench convtranspose`, rung
naive, f32; the layers alone, without activations and pixels), as many times as long for as many pictures. Which machine's the
loops are and which one's the generator, the files' names tell: such loops differ between CPUs several times, and so do the factors.
"""
NAIVE_COLUMNS = ("loops of", "a picture, ms", "record", "dtype", "a request", "computing", "with copies")
LAYERS = tuple(f"dcgan.{i}" for i in range(5))


def loops_ms(path):
    """Milliseconds a picture of all layers of the generator, or None where some are not there."""
    layers = {record["case"]: rung["warm_us"] / record["batch"]
              for record in records.of_schema(path, "convsched.bench/1")
              if record["device"]["backend"] == "cpu" and record["dtype"] == "f32"
              for rung in record["rungs"] if rung["rung"] == "naive" and "warm_us" in rung}
    return sum(layers[name] for name in LAYERS) / 1e3 if set(LAYERS) <= layers.keys() else None


def naive_rows(generated):
    for path in sorted((records.ROOT / "bench" / "results").glob("*-bench-convtranspose.jsonl")):
        loops = loops_ms(path)
        if loops is None:
            continue
        for name, record in generated:
            ratios = [record["count"] * loops / statistics.median(record["samples_ms"][key])
                      for key in ("compute", "with_copies")]
            yield (path.name, f"{loops:.2f}", name, record["dtype"], str(record["batch"]),
                   *(f"{ratio:.0f}×" for ratio in ratios))


def table(columns, rows):
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for cells in rows:
        print("| " + " | ".join(cells) + " |")


def main():
    print(HEAD)
    generated = []
    for path in sorted((records.ROOT / "bench" / "results").glob("*-generate.jsonl")):
        found = records.of_schema(path, "convsched.generate/1")
        device = found[0]["device"]
        print(f"## {path.name}\n\n{device['name']} ({records.versions(device)})\n")
        table(COLUMNS, map(row, found))
        generated += [(path.name, record) for record in found if record["model"] == "dcgan_generator"]
        print("\nCommands:\n")
        for record in found:
            print(f"    {record['command']}  # {records.commit_of(record)}")
        print()
    print(NAIVE_HEAD)
    table(NAIVE_COLUMNS, naive_rows(generated))


if __name__ == "__main__":
    main()
