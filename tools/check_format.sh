#!/usr/bin/env bash
# Format check of every C, CUDA and header file. Exit: 0 ok, 1 differs, 77 no clang-format 14.
set -euo pipefail
cd "$(dirname "$0")/.."
wanted=14
for tool in clang-format-$wanted clang-format; do
  command -v "$tool" >/dev/null || continue
  found=$("$tool" --version | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
  [ "$found" = "$wanted" ] || continue
  find src include tests bench examples \( -name '*.c' -o -name '*.h' -o -name '*.cu' \) -print0 2>/dev/null |
    xargs -0 "$tool" --dry-run --Werror
  exit
done
echo "the house format is clang-format $wanted's, which is not here (found: ${found:-none})"
exit 77
