#!/usr/bin/env bash
# clang-tidy over the C files of src/ that a build compiles.
#   tools/check_tidy.sh BUILD_FOLDER [JOBS]
# CS_TIDY_NODES: states that the path analysis may explore in a function. Nearly all of the time goes
# into the few functions that use up clang's own limit, 225000: combinations of branches whose every
# block was reached long before. A third of it reaches the same blocks in a third of the time.
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

compiled() { # the C files of src/ in the compilation database, but for the one that the model replaces
  python3 - "$build" <<'PY'
import json, os, sys
for entry in json.load(open(os.path.join(sys.argv[1], "compile_commands.json"))):
    path = os.path.relpath(entry["file"])
    if path.startswith("src/") and path.endswith(".c") and path != "src/base/status.c":
        sys.stdout.write(path + "\0")
PY
}

# A process a file: clang-tidy 14 mistakes va_lists of the second file on for uninitialised.
export build
export model="$PWD/tools/tidy_model.h"
export budget="--extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang
  --extra-arg=max-nodes=${CS_TIDY_NODES:-75000}"
failed=0
# shellcheck disable=SC2086  # several options
clang-tidy --quiet -p "$build" $budget src/base/status.c 2>/dev/null || failed=1
# shellcheck disable=SC2016  # expanded by the inner shell
compiled | xargs -0 -n 1 -P "$jobs" bash -c '
  clang-tidy --quiet -p "$build" $budget --extra-arg=-include --extra-arg="$model" "$0" 2>/dev/null || exit 1' || failed=1
exit "$failed"
