#!/bin/sh
# Prints docs/profile-tables.md: the SPAA paper's two tables for GoogLeNet on an H100, from the
# recorded profiles, and the sets of convolutions that gain from candidates chosen together.
#   tools/make_profile_tables.sh CONVSCHED > docs/profile-tables.md
#   tools/make_profile_tables.sh --check CONVSCHED
set -eu
cd "$(dirname "$0")/.."
if [ "${1:-}" = --check ]; then
  "$0" "$2" | diff -u docs/profile-tables.md - && exit 0
  echo "docs/profile-tables.md is not what the recorded profiles say: tools/make_profile_tables.sh CONVSCHED > it" >&2
  exit 1
fi
profiles=tests/data/profiles
report() { "$convsched" report models/googlenet.json --format md "$@"; }
convsched=$1
cat <<'HEAD'
# Profiled tables

Made by `tools/make_profile_tables.sh` from the profiles recorded on an H100 under `tests/data/profiles/`. Table 1 and 2 are those
of Pourghassemi et al., SPAA 2020 (K40, cuDNN 7.6), whose figures stand beside ours.
HEAD
echo; echo "## How many sets gain"; echo
echo "Independent convolutions that take at least 3% less time together when their candidates are chosen together, confirmed on fresh"
echo "samples, cold caches, and the largest gain over the fastest alone."
echo
echo "| model | dtype | batch | sets | largest gain | of |"
echo "|---|---|--:|--:|--:|---|"
for model in googlenet inception_v3; do
  for case in "f16 1" "f16 32" "tf32 1" "tf32 32"; do
    set -- $case
    "$convsched" report "models/$model.json" --format csv --table complementary --dtype "$1" --batch "$2" \
      --profile "$profiles/h100-$1-b$2.jsonl.gz" | awk -F, -v model="$model" -v dtype="$1" -v batch="$2" '
      NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
      $column["set"] != "" { set = $column["set"] }
      set == 1 { gain = $column["gain"] != "" ? $column["gain"] : gain; names = names (names ? " + " : "") $column["node"] }
      END { printf "| %s | %s | %s | %d | %.3f | %s |\n", model, dtype, batch, set, gain, names }'
  done
done
echo; echo "## Table 1: resources, first module"; echo
report --table resources --dtype f16 --batch 32 --profile $profiles/h100-f16-b32.jsonl.gz --node 'inception_3a/*' --paper
echo; echo "## Table 1: resources, third module"; echo
report --table resources --dtype f16 --batch 32 --profile $profiles/h100-f16-b32.jsonl.gz --node 'inception_4a/*' --paper
echo; echo "## Table 2: workspace and time, first module"; echo
report --table workspace --dtype tf32 --batch 32 --profile $profiles/h100-tf32-b32.jsonl.gz --node 'inception_3a/*' --paper
echo; echo "## Table 2: workspace and time, third module"; echo
report --table workspace --dtype tf32 --batch 32 --profile $profiles/h100-tf32-b32.jsonl.gz --node 'inception_4a/*' --paper
for case in "f16 1" "f16 32" "tf32 1" "tf32 32"; do
  set -- $case
  echo; echo "## Complementary sets, $1, batch $2"; echo
  report --table complementary --dtype "$1" --batch "$2" --profile "$profiles/h100-$1-b$2.jsonl.gz"
done
echo; echo "## Complementary sets of inception_v3, f16, batch 32"; echo
"$convsched" report models/inception_v3.json --format md --table complementary --dtype f16 --batch 32 --profile $profiles/h100-f16-b32.jsonl.gz
