#!/bin/sh
# Proves ops on this machine's GPU: tests/gpu/run.sh [OP...]. It needs nvcc and python3 with what opc depends on, and installs nothing.
# What nvcc makes of their kernels, without a GPU: python3 tests/gpu/gates.py OP...
# The report is left in $OUT, or .opc/gpu: results.json and gpu.md. With the ops below it takes about five minutes on 16 processors.
set -e
cd "$(dirname "$0")/../.."
ops=${*:-leaky_relu softmax layer_norm matmul conv2d max_pool2d gather scatter_add cumsum argmax attention cross_entropy}
out=${OUT:-.opc/gpu}
mkdir -p "$out"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
nvcc --version | tail -n 1
# Backends are found through the entry points of an installed distribution.
python3 setup.py -q egg_info
specs=""
for op in $ops; do specs="$specs specs/$op.yaml"; done
# shellcheck disable=SC2086 # a word for each spec
PYTHONPATH=. OPC_VARIANT=native OPC_OPTIMIZE=0 python3 -m opc test $specs --backend cuda --cover --again --strict \
  --out "$out/packages" --results "$out/results.json" --markdown "$out/gpu.md"
if command -v compute-sanitizer > /dev/null && [ -n "$SANITIZE" ]; then
  PYTHONPATH=. compute-sanitizer --target-processes all --error-exitcode 1 \
    python3 -m opc test specs/softmax.yaml specs/matmul.yaml --backend cuda --cover --again --out "$out/packages"
fi
