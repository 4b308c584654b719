#!/usr/bin/env bash
# Installs a build, moves the installed tree, builds a consumer with pkg-config or find_package and
# runs it and the installed command from there.
#   tests/consumer/run.sh pkgconfig|cmake BUILD_FOLDER
set -euo pipefail
how=$1
build=$(cd "$2" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME="$work/cache"

cmake --install "$build" --prefix "$work/installed" >/dev/null
mv "$work/installed" "$work/moved"
prefix=$work/moved
pc=$(find "$prefix" -name convsched.pc)
libdir=$(dirname "$(dirname "$pc")")

case $how in
  pkgconfig)
    PKG_CONFIG_PATH=$(dirname "$pc")
    export PKG_CONFIG_PATH
    read -ra flags <<<"$(pkg-config --cflags --libs convsched)"
    cc -std=c11 -Wall -Wextra -Werror "$source/examples/classify.c" -o "$work/classify" "${flags[@]}" "-Wl,-rpath,$libdir"
    models=$(pkg-config --variable=modelsdir convsched)
    consumer=$work/classify
    ;;
  cmake)
    cmake -G Ninja -S "$source/tests/consumer" -B "$work/consumer" "-DCMAKE_PREFIX_PATH=$prefix" \
      "-DCS_EXAMPLES_DIR=$source/examples" >/dev/null
    cmake --build "$work/consumer" >/dev/null
    models=$(cat "$work/consumer/models_dir.txt")
    consumer=$work/consumer/classify
    ;;
  *)
    echo "pkgconfig or cmake wanted, found $how" >&2
    exit 2
    ;;
esac

case $(readlink -f "$models") in
  "$(readlink -f "$prefix")"/*) ;;
  *) echo "models found in $models, wanted under $prefix" >&2 && exit 1 ;;
esac
output=$("$consumer" "$models/squeezenet1_1.json" cpu)
printf '%s\n' "$output"
[ "$(grep -c '^  class' <<<"$output")" -eq 5 ] || { echo "5 classes wanted" >&2 && exit 1; }
"$prefix/bin/convsched" --version
for file in man/man1/convsched.1 man/man1/convsched-run.1 bash-completion/completions/convsched \
  zsh/site-functions/_convsched; do
  [ -s "$prefix/share/$file" ] || { echo "share/$file wanted" >&2 && exit 1; }
done
"$prefix/bin/convsched" inspect "$models/googlenet.json" >/dev/null
