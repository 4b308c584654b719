#!/usr/bin/env bash
# Builds one fuzz target of tests/fuzz (preset fuzz: clang, libFuzzer, ASan, UBSan) and runs it.
#   tools/fuzz.sh TARGET SECONDS [LIBFUZZER_OPTIONS]
# Starts from tests/fuzz/corpus/TARGET; what it finds new goes to build/fuzz/corpus/TARGET, inputs
# that crash, leak, take more than 2 s or allocate too much to build/fuzz/found/. One that was
# mended belongs into tests/fuzz/corpus/TARGET, where a CTest test replays it.
# Exit: 0 nothing found, 2 usage, else libFuzzer's.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -lt 2 ] || [ ! -e "tests/fuzz/fuzz_$1.c" ]; then
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  echo "targets: $(find tests/fuzz -name 'fuzz_*.c' | sed 's,.*/fuzz_\(.*\)\.c$,\1,' | sort | xargs)" >&2
  exit 2
fi
target=$1 seconds=$2
shift 2
build=build/fuzz
mkdir -p "$build/corpus/$target" "$build/found"
options=()
if command -v ccache >/dev/null; then options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache); fi
cmake --preset fuzz --no-warn-unused-cli "${options[@]}" >"$build/configure.log" || {
  cat "$build/configure.log" >&2
  exit 2
}
cmake --build "$build" -j "${CS_JOBS:-2}" --target "fuzz_$target" >&2
dictionary=tests/fuzz/dictionary/$target.dict
if [ -e "$dictionary" ]; then set -- "-dict=$dictionary" "$@"; fi
# A small quarantine: what the limit of memory sees is the program's.
export ASAN_OPTIONS="detect_leaks=1:quarantine_size_mb=32:allocator_may_return_null=0:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
exec "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=2 -rss_limit_mb=512 \
  -malloc_limit_mb=256 -artifact_prefix="$build/found/$target-" "$@" \
  "$build/corpus/$target" "tests/fuzz/corpus/$target"
