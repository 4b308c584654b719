#!/usr/bin/env bash
# docs/results.md, docs/coselect.md, docs/spaa-reproduction.md, docs/generate-times.md, docs/micro-batches.md, docs/peers.md and
# docs/throughput.md with their pictures (docs/peers/, docs/throughput/) are what bench/results_page.py, bench/coselect_page.py,
# bench/spaa_page.py, bench/generate_page.py, bench/micro_batches_page.py, bench/peers_page.py and bench/throughput_page.py make of
# the records; `--write` makes them so.
set -eu
cd "$(dirname "$0")/.."
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
python3 bench/results_page.py >"$made/results.md"
python3 bench/coselect_page.py >"$made/coselect.md"
python3 bench/spaa_page.py >"$made/spaa-reproduction.md"
python3 bench/generate_page.py >"$made/generate-times.md"
python3 bench/micro_batches_page.py >"$made/micro-batches.md"
pages="results.md coselect.md spaa-reproduction.md generate-times.md micro-batches.md"
for page in peers throughput; do
  mkdir "$made/$page"
  python3 "bench/${page}_page.py" --pictures "$made/$page" >"$made/$page.md"
  pages+=" $page.md $page"
done
failed=0
for page in $pages; do
  if [ "${1:-}" = --write ]; then
    rm -rf "docs/$page"
    cp -r "$made/$page" "docs/$page"
    continue
  fi
  diff -ruN "docs/$page" "$made/$page" || {
    echo "docs/$page differs from the records: tools/check_results.sh --write" >&2
    failed=1
  }
done
exit $failed
