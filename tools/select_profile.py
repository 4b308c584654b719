#!/usr/bin/env python3
"""Cuts a profile down to what tests replay: the operations of some dtypes and batches.

    tools/select_profile.py profile.jsonl[.gz] out.jsonl.gz --dtypes f16 tf32 --batches 1 32

Keeps the latest line of each key in a fixed order, without the candidates' payloads (which only make
preparing faster), and the device's own line. The same input gives the same bytes.
"""
import argparse
import gzip
import json
import re
import sys


def key(line):
    """What a later line overrides this one by (docs/profile-format.md)."""
    for name in ("candidate", "kernels", "corun", "complete", "device_info"):
        if name in line:
            what = line[name]
            rest = {"candidate": lambda: what["id"], "kernels": lambda: what["candidate"],
                    "corun": lambda: what["members"], "complete": lambda: what,
                    "device_info": lambda: ""}[name]()
            return line["op"], name, json.dumps(rest, sort_keys=True)
    return None


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


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profile")
    parser.add_argument("out")
    parser.add_argument("--dtypes", nargs="+", default=["f16", "tf32"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 32])
    options = parser.parse_args()
    opener = gzip.open if options.profile.endswith(".gz") else open
    latest = {}
    with opener(options.profile, "rt", encoding="utf-8") as file:
        for text in file:
            line = json.loads(text)
            identity = key(line)
            if identity and wanted(line["op"], options.dtypes, options.batches):
                line.get("candidate", {}).pop("payload", None)
                latest[identity] = line
    lines = [json.dumps(latest[k], separators=(",", ":"), ensure_ascii=False) for k in sorted(latest)]
    with open(options.out, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(("\n".join(lines) + "\n").encode())
    print(f"{len(lines)} lines", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
