#!/usr/bin/env bash
# One session on a GPU machine that is had for a short time and has no compilers or files of ours: the
# build is carried there in an archive, what comes of it goes into few files of bounded size.
#
#   bench/gpu_session.sh pack BUILD ARCHIVE.tar.xz    here: packs what `run` needs of a build with CUDA
#   bench/gpu_session.sh run ARCHIVE.tar.xz [OPTIONS] there, in a copy of the sources: unpacks, tests
#                                                     (ctest -L gpu), records cells (bench/cells.py OPTIONS)
#   bench/gpu_session.sh peers ARCHIVE.tar.xz [OPTIONS]  likewise, but without the tests, and what it records are
#                                                     comparisons with other systems (bench/peers.py OPTIONS)
#   bench/gpu_session.sh throughput ARCHIVE.tar.xz OPTIONS  likewise, with requests in flight (bench/throughput.py)
#
# Environment of `run`, `peers` and `throughput`:
#   OUT             folder for results (there, empty): records.jsonl.gz (records.jsonl until the end) and
#                   session.tar.xz.00, .01, … (join with cat): measurements (cache/), logs, records
#   CS_SECONDS      for everything (540); of these CS_PACK_SECONDS (30) are kept for packing the results
#   CS_TEST_SECONDS at most for the tests (180; 0: none); CS_TESTS: only those that match this expression
#   CS_CACHE        archive with the measurements of earlier sessions (cache/ in it, or .cache/)
#   CS_LIBRARIES    folders to search first for libraries, joined by ':'; cuDNN of python3's packages,
#                   the archive's libraries and the CUDA toolkit follow
#   CS_PART_MIB, CS_PARTS  size of a part and how many files may come back (15, 8)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
begun=$SECONDS

say() { printf 'gpu_session: %s\n' "$*" >&2; }
die() {
  say "$*"
  exit 2
}

# Paths in the archive are those in the sources: BUILD (relative), and lib/ for what a bare machine lacks.
pack() {
  local build=$1 archive=$2 library file linked
  [ -e "$build/libconvsched.so" ] || die "$build: found no libconvsched.so, wanted a build"
  [ "${build#/}" = "$build" ] || die "$build: found an absolute path, wanted one below $root"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work/$build/tests" "$work/lib"
  cp -a "$build/convsched" "$build"/libconvsched.so* "$build/CTestTestfile.cmake" "$work/$build/"
  cp "$build/tests/CTestTestfile.cmake" "$work/$build/tests/"
  for file in tests/gpu/test_*.c; do
    file=$build/tests/$(basename "$file" .c)
    [ -e "$file" ] || die "$file is not built"
    cp "$file" "$work/$build/tests/"
  done
  linked=$(ldd "$work/$build/convsched" "$work/$build"/tests/test_*)
  for library in libdnnl libcmocka libjansson libgomp libprotobuf-c; do
    file=$(awk -v l="$library" 'index($1, l ".") == 1 && !found++ { print $3 }' <<<"$linked")
    [ -n "$file" ] || { say "$library: not linked, left out" && continue; }
    cp -L "$file" "$work/lib/$(basename "$file")"
  done
  printf '%s\n' "$build" >"$work/lib/BUILD"
  find "$work" -type f \( -perm -100 -o -name '*.so*' \) -exec strip --strip-unneeded {} + 2>/dev/null || true
  # The tests hold the same kernels: a dictionary over all of them keeps one copy.
  XZ_OPT='--lzma2=preset=1,dict=512MiB' tar -C "$work" -cJf "$archive" .
  say "$archive: $(du -h "$archive" | cut -f 1)"
}

left() { echo $((CS_SECONDS - CS_PACK_SECONDS - (SECONDS - begun))); }

unpack() {
  local source
  tar -xJf "$1"
  build=$(cat lib/BUILD)
  # CTest's files and the tests have the paths of the machine that built them.
  source=$(sed -n 's/^# Source directory: //p' "$build/CTestTestfile.cmake")
  if [ -n "$source" ] && [ ! -e "$source" ]; then
    mkdir -p "$(dirname "$source")"
    ln -s "$root" "$source"
  fi
  mkdir -p "$work/cache"
  if [ -n "${CS_CACHE:-}" ]; then
    tar -C "$work" -xf "$CS_CACHE"
    if [ -d "$work/.cache" ]; then cp -a "$work/.cache/." "$work/cache/" && rm -rf "$work/.cache"; fi
  fi
}

find_libraries() {
  local cudnn toolkit="" folder
  cudnn=$(python3 -c 'import glob, sys; print(":".join(d for p in sys.path for d in glob.glob(p + "/nvidia/cudnn/lib")))')
  for folder in /usr/local/cuda*/lib64 /usr/local/cuda*/targets/*/lib /usr/local/cuda*/extras/CUPTI/lib64; do
    [ ! -d "$folder" ] || toolkit+=":$folder"
  done
  export LD_LIBRARY_PATH="${CS_LIBRARIES:+$CS_LIBRARIES:}${cudnn:+$cudnn:}$root/lib:$root/$build$toolkit${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
}

run_tests() {
  local limit=$CS_TEST_SECONDS
  [ "$limit" -le "$(left)" ] || limit=$(left)
  if [ "$limit" -le 0 ]; then
    tests="none"
    return
  fi
  timeout -k 10 "$limit" ctest --test-dir "$build" -L gpu -R "${CS_TESTS:-.}" --output-on-failure --timeout "$limit" \
    >"$work/ctest.txt" 2>&1 && tests=ok || tests="exit code $?"
}

# The session's files in parts that each may come back, and no more of them than may.
collect() {
  local parts
  if [ -e "$OUT/records.jsonl" ]; then
    cp "$OUT/records.jsonl" "$work/"
    gzip -f "$OUT/records.jsonl"
  fi
  XZ_OPT='-T0 -1' tar -C "$work" -cJf - . | split -b "${CS_PART_MIB}M" -d - "$OUT/session.tar.xz."
  parts=$(find "$OUT" -type f | wc -l)
  [ "$parts" -le "$CS_PARTS" ] || say "$OUT: found $parts files, wanted at most $CS_PARTS"
  find "$OUT" -type f -size +"$CS_PART_MIB"M | while read -r file; do say "$file: larger than $CS_PART_MIB MiB"; done
}

tell() {
  echo "== tests: $tests"
  if [ -e "$work/ctest.txt" ]; then
    grep -E '\*\*\*(Failed|Timeout|Exception)|\[  (ERROR|FAILED)' "$work/ctest.txt" | cut -c1-150 | tail -n 25 || true
    grep -E '^[0-9]+% tests passed|^Total Test time' "$work/ctest.txt" || true
    grep -E '\*\*\*(Skipped|Not Run)' "$work/ctest.txt" | cut -c1-150 || true
  fi
  echo "== $kind: exit code $code, $((SECONDS - begun)) s"
  if [ "$kind" != cells ]; then
    grep -E "^$kind: |Error" "$work/$kind.log" | cut -c1-500 || true
    return
  fi
  grep -E '^convsched: ' "$work/cells.log" | grep -v ': search: ' | cut -c1-200 | sort | uniq -c | sort -rn | head -n 6 || true
  cat "$work/cells.txt"
}

record_cells() {
  python3 bench/cells.py --command "$build/convsched" --cache "$work/cache" --log "$work/cells.log" \
    --out "$OUT/records.jsonl" --deadline-s "$(left)" "$@" >"$work/cells.txt"
}

# A configuration that does not end is interrupted, so that the others' records come back.
record_beside() {
  local limit
  limit=$(left)
  mkdir -p "$work/cache/convsched/v1"
  timeout -k 10 -s INT "$limit" python3 "bench/$kind.py" --lib "$build/libconvsched.so" \
    --cache-dir "$work/cache/convsched/v1" --out "$OUT/records.jsonl" --time-limit "$limit" "$@" 2>"$work/$kind.log"
}

session() {
  local archive
  kind=$1 archive=$2
  shift 2
  : "${CS_SECONDS:=540}" "${CS_PACK_SECONDS:=30}" "${CS_TEST_SECONDS:=180}" "${CS_PART_MIB:=15}" "${CS_PARTS:=8}"
  [ "$kind" = cells ] || CS_TEST_SECONDS=0
  [ -d "${OUT:-}" ] || die "OUT: found '${OUT:-}', wanted a folder"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  unpack "$archive"
  find_libraries
  "$build/convsched" doctor >"$work/doctor.txt" 2>&1 || true
  run_tests
  code=0
  if [ "$kind" = cells ]; then record_cells "$@" || code=$?; else record_beside "$@" || code=$?; fi
  collect
  tell
  [ "$code" -eq 0 ] && { [ "$tests" = ok ] || [ "$tests" = none ]; }
}

run() { session cells "$@"; }
peers() { session peers "$@"; }
throughput() { session throughput "$@"; }

case ${1:-} in
  pack) [ $# -eq 3 ] || die "pack wants BUILD and ARCHIVE" ;;
  run | peers | throughput) [ $# -ge 2 ] || die "$1 wants ARCHIVE" ;;
  *)
    sed -n '2,23s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
"$@"
