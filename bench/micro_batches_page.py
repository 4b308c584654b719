#!/usr/bin/env python3
"""Prints docs/micro-batches.md: what bench/micro_batches.py recorded, bench/results/*-micro-batches.jsonl.

    bench/micro_batches_page.py > docs/micro-batches.md
"""
import micro_batches
import records

HEAD = """# What micro-batches bring

Made by `bench/micro_batches_page.py` from the records `bench/results/*-micro-batches.jsonl` of `bench/micro_batches.py`: `coselect`
under one workspace limit without micro-batches and with them as a choice ([scheduling.md](scheduling.md#micro-batches)), both in one
process, samples in turn; medians, and the 95% interval of the pairs' ratio. Every plan's outputs are checked. *None* divided: nothing
that was measured promised enough. What was expected is told of the last division taken, by candidates that fit with fewer
entries and by what stays in the cache. `16×8`: 16 parts of 8 entries each; `1×83+1×45`: one of 83 and one of 45. What is gained is gained
under that limit: with more workspace undivided operations have the faster algorithms too. Records come oldest first; a model that is
there twice was measured again with other candidates.
"""


def main():
    print(HEAD)
    for path in sorted((records.ROOT / "bench" / "results").glob("*-micro-batches.jsonl")):
        found = records.of_schema(path, micro_batches.SCHEMA)
        device = found[0]["device"]
        limits = sorted({record["workspace_limit"] >> 20 for record in found})
        print(f"## {path.name}\n\n{device['name']} ({records.versions(device)}); workspace limit {', '.join(map(str, limits))} MiB\n")
        print(micro_batches.table(found))
        print("\nCommands:\n")
        for command in dict.fromkeys(f"{record['command']}  # {records.commit_of(record)}" for record in found):
            print(f"    {command}")
        print()


if __name__ == "__main__":
    main()
