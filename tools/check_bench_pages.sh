#!/usr/bin/env bash
# docs/bench/OPERATION-MACHINE.{md,svg} are what `convsched bench --from` makes of bench/results/*-bench-OPERATION.jsonl.
#
#   tools/check_bench_pages.sh CONVSCHED [--write]
set -eu
convsched=$(realpath "$1")
cd "$(dirname "$0")/.."
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
for file in bench/results/*-bench-*.jsonl; do
  name=$(basename "$file" .jsonl)
  machine=${name%-bench-*}
  page=${name##*-bench-}-${machine:11} # without the date
  {
    printf '# %s\n\nMade by `tools/check_bench_pages.sh` of `%s`: [docs/bench.md](../bench.md).\n\n' "$page" "$file"
    printf '![%s](%s.svg)\n\n' "$page" "$page"
    "$convsched" bench --from "$file" --format md --output "$made/$page.svg" --quiet
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
