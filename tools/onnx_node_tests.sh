#!/usr/bin/env bash
# ONNX's own tests and light models on the library of build/release, with a Python of tools/onnx_python.sh
# (or of CS_ONNX_PYTHON): compares them with docs/onnx-node-tests.md; `--write` makes that page.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${CS_ONNX_PYTHON:-$(tools/onnx_python.sh)}
how=--page
[ "${1:-}" = --write ] && how=--write
export OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=0
exec "$python" tools/onnx_backend_tests.py build/release/libconvsched.so "$how" docs/onnx-node-tests.md
