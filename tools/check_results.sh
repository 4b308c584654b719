#!/usr/bin/env bash
# docs/results.md is what bench/results_page.py makes of the records; `--write` makes it so.
set -eu
cd "$(dirname "$0")/.."
if [ "${1:-}" = --write ]; then
  python3 bench/results_page.py >docs/results.md
  exit
fi
python3 bench/results_page.py | diff -u docs/results.md - || {
  echo "docs/results.md differs from the records: tools/check_results.sh --write" >&2
  exit 1
}
