#!/usr/bin/env bash
# docs/bench/OPERATION-MACHINE.md and …-PRECISION.svg are what `convsched bench --from` makes of bench/results/*-bench-OPERATION.jsonl.
#
#   tools/check_bench_pages.sh CONVSCHED [--write]
set -eu
convsched=$(realpath "$1")
cd "$(dirname "$0")/.."

# What recorded a file: devices, and commands with their commits.
tell_origin() {
  python3 - "$1" <<'PY'
import json
import sys

records = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
versions = ("driver", "cuda", "cudnn", "onednn")
devices = {record["device"]["spec"]: record["device"] for record in records}
for spec, device in devices.items():
    told = [f"{key} {device[key]}" if key != "onednn" else device[key] for key in versions if device.get(key)]
    print(f"`{spec}`: {device['name']} ({', '.join(told)})\n")
print("Commands:\n")
for command in dict.fromkeys(f"    {record['command']}  # {record['commit']}" for record in records):
    print(command)
print()
PY
}

# The records of each precision, as FOLDER/PRECISION.jsonl: a figure of all would be too full.
split_by_precision() { # FILE FOLDER
  python3 - "$1" "$2" <<'PY'
import json
import pathlib
import sys

for line in open(sys.argv[1], encoding="utf-8"):
    with open(pathlib.Path(sys.argv[2]) / f"{json.loads(line)['dtype']}.jsonl", "a", encoding="utf-8") as file:
        file.write(line)
PY
}

made=$(mktemp -d)
parts=$(mktemp -d)
trap 'rm -rf "$made" "$parts"' EXIT
for file in bench/results/*-bench-*.jsonl; do
  name=$(basename "$file" .jsonl)
  machine=${name%-bench-*}
  page=${name##*-bench-}-${machine:11} # without the date
  rm -f "$parts"/*
  split_by_precision "$file" "$parts"
  {
    printf '# %s\n\nMade by `tools/check_bench_pages.sh` of `%s`: [docs/bench.md](../bench.md).\n\n' "$page" "$file"
    for part in "$parts"/*; do
      figure=$page-$(basename "$part" .jsonl)
      printf '![%s](%s.svg)\n\n' "$figure" "$figure"
      "$convsched" bench --from "$part" --format csv --output "$made/$figure.svg" --quiet >/dev/null
    done
    tell_origin "$file"
    "$convsched" bench --from "$file" --format md --quiet
  } >"$made/$page.md"
done
if [ "${2:-}" = --write ]; then
  rm -rf docs/bench
  cp -r "$made" docs/bench
  chmod 755 docs/bench
fi
diff -ruN docs/bench "$made" || {
  echo "docs/bench differs from the records: tools/check_bench_pages.sh CONVSCHED --write" >&2
  exit 1
}
