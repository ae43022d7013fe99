#!/bin/sh
# Proves ops on this machine's GPU: tests/gpu/run.sh [OP...]. It needs nvcc and python3 with what opc depends on, and installs nothing.
# What nvcc makes of kernels, without a GPU: python3 -m tests.gpu.gates [OP...]
# Where there is a torch or an ONNX Runtime with CUDA too, in_torch.py, in_library.py and in_onnxruntime.py call ops on the GPU from there.
# Where there is a compute-sanitizer, it watches a part of the proof; SANITIZE=off leaves that out. Where torch has CUDA, the frameworks' column
# of it and `opc bench --device cuda` run too; BENCH=off leaves the latter out.
# The report is left in $OUT, or .opc/gpu: results.json, gpu.md and bench.md. With the ops below the proof takes about five minutes on 16
# processors.
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
torch=
if python3 -c "
import sys, torch
sys.exit(not torch.cuda.is_available() or tuple(map(int, torch.__version__.split('.')[:2])) < (2, 10))" 2> /dev/null; then torch=yes; fi
# shellcheck disable=SC2086 # a word for each spec
PYTHONPATH=. OPC_VARIANT=native OPC_OPTIMIZE=0 python3 -m opc test $specs --backend cuda ${torch:+--backend torch_cuda} --cover --again --strict \
  --out "$out/packages" --results "$out/results.json" --markdown "$out/gpu.md"
if [ -n "$torch" ]; then
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
  if [ "${BENCH:-on}" != off ]; then
    # shellcheck disable=SC2086 # a word for each op
    measured=$(PYTHONPATH=. python3 -c "
import sys
from opc.testing.bench import gpu_cases
print(*(op for op in sys.argv[1:] if op in {case.op for case in gpu_cases.CASES}))" $ops)
    # shellcheck disable=SC2086
    if [ -n "$measured" ]; then
      PYTHONPATH=. python3 -m opc bench $measured --device cuda --eager --markdown --out "$out/measured" > "$out/bench.md"
      cat "$out/bench.md"
    fi
  fi
else
  echo "there is no torch with CUDA, of version 2.10 or later: calls from torch and measurements are left out"
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
if command -v compute-sanitizer > /dev/null; then
  if [ "${SANITIZE:-on}" != off ]; then
    PYTHONPATH=. compute-sanitizer --target-processes all --error-exitcode 1 \
      python3 -m opc test specs/softmax.yaml specs/matmul.yaml --backend cuda --cover --again --out "$out/packages"
  fi
else
  echo "there is no compute-sanitizer: nothing is run under it"
fi
