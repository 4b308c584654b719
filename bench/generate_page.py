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


def main():
    print(HEAD)
    for path in sorted((records.ROOT / "bench" / "results").glob("*-generate.jsonl")):
        found = records.of_schema(path, "convsched.generate/1")
        device = found[0]["device"]
        versions = ", ".join(f"{key} {device[key]}" for key in ("driver", "cuda", "cudnn", "onednn") if key in device)
        print(f"## {path.name}\n\n{device['name']} ({versions})\n")
        print("| " + " | ".join(COLUMNS) + " |")
        print("|" + "---|" * len(COLUMNS))
        for record in found:
            print("| " + " | ".join(row(record)) + " |")
        print("\nCommands:\n")
        for record in found:
            print(f"    {record['command']}  # {record['commit'][:12]}")
        print()


if __name__ == "__main__":
    main()
