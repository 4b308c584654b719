#!/usr/bin/env bash
# clang-tidy over the C files of src/ that a build compiles.
#   tools/check_tidy.sh BUILD_FOLDER [JOBS]
# Exit: 0 ok, 1 findings, 77 no clang-tidy.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
jobs=${2:-$(nproc)}
if ! command -v clang-tidy >/dev/null; then
  echo "clang-tidy is not here"
  [ -z "${CS_CHECKS_REQUIRED:-}" ] || exit 1
  exit 77
fi
# A process a file: clang-tidy 14 mistakes va_lists of the second file on for uninitialised.
python3 - "$build" <<'PY' | xargs -0 -n 1 -P "$jobs" clang-tidy --quiet -p "$build" 2>/dev/null
import json, os, sys
root = os.getcwd()
for entry in json.load(open(os.path.join(sys.argv[1], "compile_commands.json"))):
    path = os.path.relpath(entry["file"], root)
    if path.startswith("src/") and path.endswith(".c"):
        sys.stdout.write(path + "\0")
PY
