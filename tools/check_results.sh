#!/usr/bin/env bash
# docs/results.md, docs/coselect.md and docs/peers.md with its pictures (docs/peers/) are what
# bench/results_page.py, bench/coselect_page.py and bench/peers_page.py make of the records; `--write` makes them so.
set -eu
cd "$(dirname "$0")/.."
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
python3 bench/results_page.py >"$made/results.md"
python3 bench/coselect_page.py >"$made/coselect.md"
mkdir "$made/peers"
python3 bench/peers_page.py --pictures "$made/peers" >"$made/peers.md"
failed=0
for page in results.md coselect.md peers.md peers; do
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
