#!/usr/bin/env bash
# Prints the path of a Python with the packages that ONNX's backend tests take, in build/onnx-python,
# which it makes (from PyPI) where it is not there. Exit: 2 it cannot be made.
set -euo pipefail
cd "$(dirname "$0")/.."
wanted="onnx==1.17.0" # the last one that has the folders of the tests
folder=$PWD/build/onnx-python
if ! "$folder/bin/python" -c "import onnx; assert 'onnx==' + onnx.__version__ == '$wanted'" 2>/dev/null; then
  rm -rf "$folder"
  python3 -m venv "$folder" >&2
  "$folder/bin/python" -m pip install -q --disable-pip-version-check --only-binary=:all: "$wanted" >&2 || {
    rm -rf "$folder"
    echo "onnx_python: $wanted cannot be installed from PyPI (it has packages for Python up to 3.12; here is" \
      "$(python3 --version)); CS_ONNX_PYTHON names another Python that has it" >&2
    exit 2
  }
fi
echo "$folder/bin/python"
