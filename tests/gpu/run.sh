#!/bin/sh
# Proves ops on this machine's GPU: tests/gpu/run.sh [OP...]. It needs nvcc and python3 with what opc depends on, and installs nothing.
# What nvcc makes of kernels, without a GPU: python3 -m tests.gpu.gates [OP...]
# Where there is a torch or an ONNX Runtime with CUDA too, in_torch.py, in_library.py and in_onnxruntime.py call ops on the GPU from there.
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
if python3 -c "import sys, torch; sys.exit(not torch.cuda.is_available())" 2> /dev/null; then
  # The proof may have left out one of these ops, or its library for GPUs.
  for op in leaky_relu layer_norm gather; do
    PYTHONPATH=. OPC_VARIANT=native OPC_OPTIMIZE=0 python3 -m opc build "specs/$op.yaml" --backend cuda --backend torch \
      --out "$out/packages"
  done
  PYTHONPATH=. OPC_VARIANT=native OPC_OPTIMIZE=0 OPC_CACHE_DIR="$out/cache" python3 tests/gpu/in_torch.py "$out/packages"
  for op in matmul linear; do
    PYTHONPATH=. OPC_VARIANT=native OPC_OPTIMIZE=0 python3 -m opc build "specs/$op.yaml" --backend cuda --backend torch \
      --out "$out/packages"
  done
  PYTHONPATH=. python3 tests/gpu/in_library.py "$out/packages"
else
  echo "there is no torch with CUDA: calls from torch are left out"
fi
if python3 -c "import sys, onnx, onnxruntime as o; sys.exit('CUDAExecutionProvider' not in o.get_available_providers())" 2> /dev/null; then
  for op in leaky_relu layer_norm gather; do
    PYTHONPATH=. OPC_VARIANT=native OPC_OPTIMIZE=0 python3 -m opc build "specs/$op.yaml" --backend cuda --backend onnx \
      --backend onnxruntime --out "$out/packages"
  done
  PYTHONPATH=. python3 tests/gpu/in_onnxruntime.py "$out/packages"
else
  echo "there is no ONNX Runtime with CUDA: runs of models are left out"
fi
if command -v compute-sanitizer > /dev/null && [ -n "$SANITIZE" ]; then
  PYTHONPATH=. compute-sanitizer --target-processes all --error-exitcode 1 \
    python3 -m opc test specs/softmax.yaml specs/matmul.yaml --backend cuda --cover --again --out "$out/packages"
fi
