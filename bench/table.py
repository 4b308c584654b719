#!/usr/bin/env python3
"""Prints records (convsched.run/1, a document or JSON lines) as a table.

    bench/table.py [--markdown] FILE…
"""
import sys

import records

COLUMNS = ("model", "dtype", "batch", "policy", "layout", "median us", "p90 us", "host us", "vs sequential", "error",
           "verdict")


def rows(record):
    for policy in record["policies"]:
        latency = policy["latency_us"]
        error = policy.get("rel_l2_float64", policy.get("verification", {}).get("rel_l2"))
        host = policy.get("host_us", {}).get("median")
        yield (record["model"], record["dtype"], str(record["batch"]), policy["name"],
               str(policy.get("layout", "")), f"{latency['median']:.1f}", f"{latency['p90']:.1f}",
               "" if host is None else f"{host:.1f}", f"{policy.get('speedup_vs_sequential', 0):.2f}",
               "" if error is None else f"{error:.1e}",
               "ok" if policy.get("verification", {}).get("passed") else "WRONG")


def show(table, markdown):
    widths = [max(len(row[i]) for row in table) for i in range(len(COLUMNS))]
    for index, row in enumerate(table):
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        print("| " + " | ".join(cells) + " |" if markdown else "  ".join(cells).rstrip())
        if markdown and index == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")


def main():
    arguments = [a for a in sys.argv[1:] if a != "--markdown"]
    if not arguments:
        sys.exit(__doc__)
    for path in arguments:
        found = records.of_schema(path)
        if not found:
            sys.exit(f"{path}: found no {records.RUN} records")
        first = found[0]
        print(f"{path}: {first['device'].get('name')}, commit {records.commit_of(first)}\n")
        show([COLUMNS] + [row for record in found for row in rows(record)], "--markdown" in sys.argv)
        print()


if __name__ == "__main__":
    main()
