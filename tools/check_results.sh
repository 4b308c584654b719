#!/usr/bin/env bash
# docs/results.md and docs/coselect.md are what bench/results_page.py and bench/coselect_page.py make
# of the records; `--write` makes them so.
set -eu
cd "$(dirname "$0")/.."
failed=0
for page in results coselect; do
  if [ "${1:-}" = --write ]; then
    python3 "bench/${page}_page.py" >"docs/$page.md"
    continue
  fi
  python3 "bench/${page}_page.py" | diff -u "docs/$page.md" - || {
    echo "docs/$page.md differs from the records: tools/check_results.sh --write" >&2
    failed=1
  }
done
exit $failed
