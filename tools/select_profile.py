#!/usr/bin/env python3
"""Cuts an exported profile down to what tests replay: the operations of some dtypes and batches.

    convsched profile --export all.jsonl.gz
    tools/select_profile.py all.jsonl.gz out.jsonl.gz --dtypes f16 tf32 --batches 1 32

Keeps the lines as they come, without the candidates' payloads (which only make preparing faster), and
the device's own line. The same input gives the same bytes. The export has the latest line of each
key, sorted; a file of the cache, which has not, is refused. Exit: 0 ok, 1 refused.
"""
import argparse
import gzip
import json
import re
import sys


def wanted(op, dtypes, batches):
    if op == "device":
        return True
    operations = op.removeprefix("corun:").split("&")
    for operation in operations:
        words = operation.split()
        shape = re.search(r" [xa]=(\d+)x", operation)
        if len(words) < 2 or words[1] not in dtypes or not shape or int(shape[1]) not in batches:
            return False
    return True


def selected(options):
    """The lines to write."""
    opener = gzip.open if options.profile.endswith(".gz") else open
    lines, before, measured = [], "", False
    with opener(options.profile, "rt", encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            line = json.loads(text)
            if line["op"] < before:
                sys.exit(f"{options.profile}:{number}: not sorted by operation; wanted: a file that "
                         "`convsched profile --export` wrote")
            before = line["op"]
            if wanted(line["op"], options.dtypes, options.batches):
                measured = measured or line["op"] != "device"
                line.get("candidate", {}).pop("payload", None)
                lines.append(json.dumps(line, separators=(",", ":"), ensure_ascii=False))
    return lines if measured else []


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profile")
    parser.add_argument("out")
    parser.add_argument("--dtypes", nargs="+", default=["f16", "tf32"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 32])
    options = parser.parse_args()
    lines = selected(options)
    if not lines:
        sys.exit(f"{options.profile}: nothing of {', '.join(options.dtypes)} at batch "
                 f"{', '.join(map(str, options.batches))}")
    with open(options.out, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(("\n".join(lines) + "\n").encode())
    print(f"{len(lines)} lines", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
